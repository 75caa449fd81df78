//! The progressive part of an Argo Rollout: its steps, and where it stands.
//!
//! Source: argoproj/argo-rollouts v1.9.1, `pkg/apis/rollouts/v1alpha1/types.go`. Must not judge: see `world::promotion`.

use jiff::Timestamp;

use super::field::Field;

/// Most steps kept.
const MAX_STEPS: usize = 256;

/// Strategy steps and progress of an Argo Rollout.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Canary {
    /// Steps of a canary; empty for blue-green.
    pub steps: Vec<Step>,
    /// It is a blue-green rollout; whether it promotes by itself then.
    pub blue_green: Option<bool>,
    /// `status.currentStepIndex`, from 0; the number of steps when all are done.
    pub index: Option<u32>,
    /// `status.pauseConditions`: reason and start.
    pub pauses: Vec<(String, Option<Timestamp>)>,
    /// `status.controllerPause`: the controller paused it, not a person's `spec.paused`.
    pub controller_pause: bool,
    /// `status.abort`.
    pub aborted: bool,
    /// `status.abortedAt`.
    pub aborted_at: Option<Timestamp>,
    /// `status.message`.
    pub message: String,
    /// `status.stableRS`: pod hash of the revision that is stable.
    pub stable: String,
    /// `status.currentPodHash`: pod hash of the newest revision.
    pub current: String,
    /// `status.canary.weights.canary.weight`, per cent, where a traffic router reports it.
    pub weight: Option<u32>,
    /// `spec.progressDeadlineAbort`: the deadline aborts it.
    pub deadline_aborts: bool,
}

/// One step of a canary.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// `setWeight`: per cent of the traffic.
    Weight(u32),
    /// `pause` with its duration as written; without one it waits for a person.
    Pause(Option<String>),
    /// Any other step, by its name.
    Other(String),
}

impl Canary {
    /// Reads a Rollout.
    pub fn read(root: &Field) -> Self {
        let (spec, status) = (root.get("spec"), root.get("status"));
        let green = spec.at(&["strategy", "blueGreen"]);
        Self {
            steps: spec.at(&["strategy", "canary", "steps"]).items().iter().take(MAX_STEPS).map(Step::read).collect(),
            blue_green: green.is_set().then(|| green.get("autoPromotionEnabled").flag().some().unwrap_or(true)),
            index: status.get("currentStepIndex").count().some(),
            pauses: status
                .get("pauseConditions")
                .items()
                .iter()
                .map(|pause| (pause.get("reason").name_or_empty(), pause.get("startTime").instant().some()))
                .collect(),
            controller_pause: status.get("controllerPause").flag().some().unwrap_or(false),
            aborted: status.get("abort").flag().some().unwrap_or(false),
            aborted_at: status.get("abortedAt").instant().some(),
            message: status.get("message").text_or_empty(),
            stable: status.get("stableRS").name_or_empty(),
            current: status.get("currentPodHash").name_or_empty(),
            weight: status.at(&["canary", "weights", "canary", "weight"]).count().some(),
            deadline_aborts: spec.get("progressDeadlineAbort").flag().some().unwrap_or(false),
        }
    }

    /// The step at which it stands; absent before the first and after the last.
    pub fn step(&self) -> Option<&Step> {
        self.steps.get(usize::try_from(self.index?).ok()?)
    }

    /// Per cent of the traffic that the newest revision should have now: as its traffic router says, else by the last weight that was set.
    pub fn percent(&self) -> Option<u32> {
        self.weight.or_else(|| {
            let upto = usize::try_from(self.index?).ok()?.saturating_add(1).min(self.steps.len());
            let passed = self.steps.get(..upto)?;
            passed.iter().rev().find_map(|step| match step {
                Step::Weight(percent) => Some(*percent),
                _ => None,
            })
        })
    }

    /// Whether the revision that is newest is not the stable one: an update is under way, or was aborted.
    pub fn in_update(&self) -> bool {
        !self.current.is_empty() && !self.stable.is_empty() && self.current != self.stable
    }
}

impl Step {
    fn read(field: &Field) -> Self {
        if field.get("setWeight").is_set() {
            return Self::Weight(field.get("setWeight").count().some().unwrap_or(0));
        }
        if field.get("pause").is_set() {
            return Self::Pause(field.at(&["pause", "duration"]).int_or_text().some());
        }
        Self::Other(field.members().into_iter().next().map_or_else(|| "a step that could not be read".into(), |(name, _)| name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};
    use std::cell::RefCell;

    fn read(doc: &Value) -> Canary {
        let problems = RefCell::new(Vec::new());
        Canary::read(&Field::root(doc, &problems))
    }

    #[test]
    fn the_weight_is_that_of_the_last_step_passed() {
        let doc = |index: u32| {
            json!({"spec": {"strategy": {"canary": {"steps": [{"setWeight": 25}, {"pause": {}}, {"setWeight": 50},
                {"pause": {"duration": "1h"}}, {"analysis": {}}]}}}, "status": {"currentStepIndex": index}})
        };
        let at = |index: u32| read(&doc(index));
        assert_eq!((at(1).percent(), at(1).step()), (Some(25), Some(&Step::Pause(None))));
        assert_eq!((at(3).percent(), at(3).step()), (Some(50), Some(&Step::Pause(Some("1h".into())))));
        assert_eq!((at(4).percent(), at(4).step()), (Some(50), Some(&Step::Other("analysis".into()))));
        assert_eq!((at(9).percent(), at(9).step()), (Some(50), None));
        assert_eq!(read(&json!({})).percent(), None);
    }

    #[test]
    fn a_traffic_router_knows_the_weight_better() {
        let canary = read(&json!({"status": {"currentStepIndex": 0, "canary": {"weights": {"canary": {"weight": 10}}}}}));
        assert_eq!(canary.percent(), Some(10));
    }
}
