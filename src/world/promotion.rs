//! Rollouts in steps: where one stands, and whether it waits for a person.
//!
//! Argo Rollouts v1.9 (canary and blue-green), and Deployments that are paused half-way. A pause with a duration ends by itself and
//! waits for nobody.

use jiff::Timestamp;

use crate::model::object::canary::Step;
use crate::model::object::{Workload, WorkloadKind};
use crate::model::{Evidence, Place, Subject};

/// A rollout that goes on only when a person says so.
#[derive(Debug, Clone, PartialEq)]
pub struct Waiting {
    /// Why, in words.
    pub why: String,
    /// Since when.
    pub since: Option<Timestamp>,
    /// What shows it.
    pub evidence: Vec<Evidence>,
}

/// An update that was aborted or has failed.
#[derive(Debug, Clone, PartialEq)]
pub struct Failed {
    /// Why, in words.
    pub why: String,
    /// Since when.
    pub since: Option<Timestamp>,
    /// What shows it.
    pub evidence: Vec<Evidence>,
}

/// Whether the rollout of this workload waits for a person. `behind`: pods of an older revision are still wanted.
pub fn waiting(subject: &Subject, body: &Workload, behind: bool) -> Option<Waiting> {
    match body.kind {
        WorkloadKind::Rollout => rollout(subject, body),
        WorkloadKind::Deployment if body.paused && behind => {
            let condition = body.condition("Progressing").filter(|condition| condition.reason == "DeploymentPaused");
            Some(Waiting {
                why: "spec.paused is set in the middle of the rollout".into(),
                since: condition.and_then(|condition| condition.since),
                evidence: vec![Evidence::field(subject, "spec.paused", "true")],
            })
        }
        _ => None,
    }
}

fn rollout(subject: &Subject, body: &Workload) -> Option<Waiting> {
    let canary = body.canary.as_ref()?;
    if canary.aborted || !canary.in_update() {
        return None;
    }
    if body.paused {
        return Some(Waiting {
            why: "a person paused it (spec.paused)".into(),
            since: body.condition("Progressing").and_then(|condition| condition.since),
            evidence: vec![Evidence::field(subject, "spec.paused", "true")],
        });
    }
    let (reason, since) = canary.pauses.iter().find(|(reason, _)| match reason.as_str() {
        "CanaryPauseStep" => canary.step() == Some(&Step::Pause(None)),
        "BlueGreenPause" => canary.blue_green == Some(false),
        reason => reason.starts_with("Inconclusive"),
    })?;
    let why = match reason.as_str() {
        "CanaryPauseStep" => "the step is a pause without duration, which only a person ends",
        "BlueGreenPause" => "it does not promote by itself (autoPromotionEnabled: false), only a person does",
        _ => "its analysis was inconclusive, so a person decides",
    };
    let mut evidence = vec![Evidence::new(subject, Place::Field("status.pauseConditions".into()), reason.clone(), *since)];
    if let Some(index) = canary.index.filter(|_| reason == "CanaryPauseStep") {
        evidence.push(Evidence::field(subject, &format!("spec.strategy.canary.steps[{index}]"), "pause: {} (no duration)"));
    }
    Some(Waiting { why: why.into(), since: *since, evidence })
}

/// Whether the update of an Argo Rollout was aborted or has failed. A failed update of other kinds has no field of its own.
pub fn failed(subject: &Subject, body: &Workload) -> Option<Failed> {
    let canary = body.canary.as_ref()?;
    let degraded = body.status.phase == "Degraded";
    if !canary.in_update() || !(canary.aborted || degraded) {
        return None;
    }
    let progressing = body.condition("Progressing").filter(|condition| condition.is_false());
    let (why, proof) = if canary.aborted {
        ("the update was aborted", Evidence::field(subject, "status.abort", "true").seen_at(canary.aborted_at))
    } else {
        ("the update has failed", Evidence::field(subject, "status.phase", "Degraded"))
    };
    let said = if canary.message.is_empty() { String::new() } else { format!(": {}", canary.message) };
    let mut evidence = vec![proof];
    evidence.extend(
        progressing.map(|condition| Evidence::new(subject, Place::Condition("Progressing".into()), condition.shown(), condition.since)),
    );
    Some(Failed { why: format!("{why}{said}"), since: canary.aborted_at.or_else(|| progressing?.since), evidence })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::object::{Body, Object};
    use rstest::rstest;
    use serde_json::{Value, json};

    fn read(doc: &Value) -> (Subject, Workload) {
        let object = Object::read(doc, Timestamp::UNIX_EPOCH).unwrap();
        let Body::Workload(body) = object.body.clone() else { panic!("no workload") };
        (object.subject(), *body)
    }

    fn rollout(strategy: Value, status: Value) -> (Subject, Workload) {
        let mut doc = json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout", "metadata": {"name": "r", "namespace": "s"},
            "spec": {"replicas": 4, "strategy": strategy}, "status": {"stableRS": "a", "currentPodHash": "b"}});
        doc["status"].as_object_mut().unwrap().extend(status.as_object().unwrap().clone());
        read(&doc)
    }

    #[rstest]
    #[case::no_duration(json!({"canary": {"steps": [{"setWeight": 25}, {"pause": {}}]}}),
        json!({"currentStepIndex": 1, "pauseConditions": [{"reason": "CanaryPauseStep"}]}), true)]
    #[case::a_duration(json!({"canary": {"steps": [{"setWeight": 25}, {"pause": {"duration": "1h"}}]}}),
        json!({"currentStepIndex": 1, "pauseConditions": [{"reason": "CanaryPauseStep"}]}), false)]
    #[case::blue_green(json!({"blueGreen": {"autoPromotionEnabled": false}}), json!({"pauseConditions": [{"reason": "BlueGreenPause"}]}), true)]
    #[case::blue_green_by_itself(json!({"blueGreen": {}}), json!({"pauseConditions": [{"reason": "BlueGreenPause"}]}), false)]
    #[case::inconclusive(json!({"canary": {"steps": [{"analysis": {}}]}}),
        json!({"currentStepIndex": 0, "pauseConditions": [{"reason": "InconclusiveAnalysisRun"}]}), true)]
    #[case::aborted(json!({"canary": {"steps": [{"pause": {}}]}}),
        json!({"abort": true, "currentStepIndex": 0, "pauseConditions": [{"reason": "CanaryPauseStep"}]}), false)]
    #[case::done(json!({"canary": {"steps": [{"pause": {}}]}}),
        json!({"stableRS": "b", "currentStepIndex": 0, "pauseConditions": [{"reason": "CanaryPauseStep"}]}), false)]
    #[case::moving(json!({"canary": {"steps": [{"pause": {}}]}}), json!({"currentStepIndex": 0}), false)]
    fn who_waits(#[case] strategy: Value, #[case] status: Value, #[case] waits: bool) {
        let (subject, body) = rollout(strategy, status);
        assert_eq!(waiting(&subject, &body, true).is_some(), waits);
    }

    #[rstest]
    #[case(json!({"abort": true}), true)]
    #[case(json!({"phase": "Degraded"}), true)]
    #[case(json!({"phase": "Degraded", "stableRS": "b"}), false)]
    #[case(json!({"phase": "Progressing"}), false)]
    fn what_failed(#[case] status: Value, #[case] wanted: bool) {
        let (subject, body) = rollout(json!({"canary": {}}), status);
        assert_eq!(failed(&subject, &body).is_some(), wanted);
    }

    #[rstest]
    #[case(true, true, true)]
    #[case(true, false, false)]
    #[case(false, true, false)]
    fn a_paused_deployment_waits_only_half_way(#[case] paused: bool, #[case] behind: bool, #[case] waits: bool) {
        let (subject, body) = read(&json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d", "namespace": "s"},
            "spec": {"paused": paused}}));
        assert_eq!(waiting(&subject, &body, behind).is_some(), waits);
    }
}
