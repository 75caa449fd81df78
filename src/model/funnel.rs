//! The funnel of a role: how many replicas are left at each step from "wanted" to "routed".

use super::{Known, Unknown};

/// A step of the funnel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Step {
    /// What the autoscaler, the system or the spec wants.
    Wanted,
    /// What the workload's spec asks for.
    Asked,
    /// Replicas that exist.
    Existing,
    /// Bound to nodes.
    Scheduled,
    /// Weights are in.
    Loaded,
    /// Pod Ready.
    PodReady,
    /// In the set from which the router or proxy picks.
    Listed,
    /// Counted by the router.
    Routed,
}

impl Step {
    /// All, from the top.
    pub const ALL: [Self; 8] =
        [Self::Wanted, Self::Asked, Self::Existing, Self::Scheduled, Self::Loaded, Self::PodReady, Self::Listed, Self::Routed];

    /// The name of the value in the public document.
    pub fn word(self) -> &'static str {
        match self {
            Self::Wanted => "wanted",
            Self::Asked => "asked",
            Self::Existing => "existing",
            Self::Scheduled => "scheduled",
            Self::Loaded => "loaded",
            Self::PodReady => "pod-ready",
            Self::Listed => "listed",
            Self::Routed => "routed",
        }
    }
}

/// Counts of replicas of a role or workload. What is not known carries its reason.
#[derive(Debug, Clone, PartialEq)]
pub struct Funnel {
    /// See [`Step`].
    pub wanted: Known<u32>,
    /// Whose number `wanted` is: `spec.replicas`, or the name of an HPA.
    pub wanted_by: String,
    /// See [`Step`].
    pub asked: Known<u32>,
    /// See [`Step`].
    pub existing: Known<u32>,
    /// See [`Step`].
    pub scheduled: Known<u32>,
    /// The engine's container runs (or ran).
    pub started: Known<u32>,
    /// See [`Step`].
    pub loaded: Known<u32>,
    /// See [`Step`].
    pub pod_ready: Known<u32>,
    /// See [`Step`].
    pub listed: Known<u32>,
    /// See [`Step`].
    pub routed: Known<u32>,
    /// Replicas that answer a request now: ready, awake, moving, and listed where listing is known.
    pub serving: Known<u32>,
    /// Engines asleep.
    pub sleeping: Known<u32>,
    /// Engines that say they are awake.
    pub awake: Known<u32>,
    /// Replicas on their way out.
    pub draining: Known<u32>,
    /// Replicas that no node takes.
    pub unschedulable: Known<u32>,
    /// Replicas whose image is being pulled.
    pub pulling: Known<u32>,
    /// Replicas whose container runs and whose engine is not ready yet: they download, load, warm up, or do not tell.
    pub loading: Known<u32>,
}

impl Funnel {
    /// A funnel of which nothing is known.
    pub fn unknown(why: &str) -> Self {
        let no = || Err(Unknown::because(why));
        Self {
            wanted: no(),
            wanted_by: String::new(),
            asked: no(),
            existing: no(),
            scheduled: no(),
            started: no(),
            loaded: no(),
            pod_ready: no(),
            listed: no(),
            routed: no(),
            serving: no(),
            sleeping: no(),
            awake: no(),
            draining: no(),
            unschedulable: no(),
            pulling: no(),
            loading: no(),
        }
    }

    /// The count of a step.
    pub fn step(&self, step: Step) -> &Known<u32> {
        match step {
            Step::Wanted => &self.wanted,
            Step::Asked => &self.asked,
            Step::Existing => &self.existing,
            Step::Scheduled => &self.scheduled,
            Step::Loaded => &self.loaded,
            Step::PodReady => &self.pod_ready,
            Step::Listed => &self.listed,
            Step::Routed => &self.routed,
        }
    }

    /// The first step at which replicas are lost, and how many are lost there. Unknown steps are passed over.
    pub fn bottleneck(&self) -> Option<(Step, u32)> {
        let mut above: Option<u32> = None;
        for step in Step::ALL {
            let Ok(here) = self.step(step) else { continue };
            if let Some(lost) = above.and_then(|before| before.checked_sub(*here)).filter(|lost| *lost > 0) {
                return Some((step, lost));
            }
            above = Some(*here);
        }
        None
    }

    /// How many are wanted beyond those that serve.
    pub fn short(&self) -> Known<u32> {
        Ok(self.wanted.clone()?.saturating_sub(self.serving.clone()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_drop_is_the_bottleneck_and_unknown_steps_do_not_count_as_zero() {
        let mut funnel = Funnel::unknown("not read");
        assert_eq!(funnel.bottleneck(), None);
        (funnel.wanted, funnel.asked, funnel.existing) = (Ok(12), Ok(12), Ok(12));
        funnel.scheduled = Ok(9);
        funnel.pod_ready = Ok(7);
        assert_eq!(funnel.bottleneck(), Some((Step::Scheduled, 3)));
        funnel.scheduled = Ok(12);
        assert_eq!(funnel.bottleneck(), Some((Step::PodReady, 5)));
        funnel.serving = Ok(7);
        assert_eq!(funnel.short(), Ok(5));
    }
}
