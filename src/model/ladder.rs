//! The ladder: how far a replica is on its way from "asked for" to "the router sends it requests".

use std::fmt;

use jiff::Timestamp;

use super::{Evidence, Known, time};

/// A rung. A higher one is reached only after the lower ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Stage {
    /// 0: counted in desired, no pod yet.
    Requested,
    /// 1: no scheduling gate, quota given.
    Admitted,
    /// 2: bound to a node, and so to its GPUs.
    Scheduled,
    /// 3: image on the node, containers created.
    Pulled,
    /// 4: the engine's container runs.
    Started,
    /// 5: the engine reads the weights.
    Loading,
    /// 6: weights in; compile, graphs, KV cache.
    Warming,
    /// 7: the engine says that it serves this model and is awake.
    EngineReady,
    /// 8: the pod's Ready condition, readiness gates included.
    PodReady,
    /// 9: in the set from which its router or proxy picks.
    Listed,
    /// 10: the router counts it or has sent it a request.
    Routed,
}

impl Stage {
    /// All, from the lowest.
    pub const ALL: [Self; 11] = [
        Self::Requested,
        Self::Admitted,
        Self::Scheduled,
        Self::Pulled,
        Self::Started,
        Self::Loading,
        Self::Warming,
        Self::EngineReady,
        Self::PodReady,
        Self::Listed,
        Self::Routed,
    ];

    /// Its number on the ladder, 0 to 10.
    pub fn number(self) -> u8 {
        self as u8
    }

    /// Its name as shown.
    pub fn word(self) -> &'static str {
        match self {
            Self::Requested => "requested",
            Self::Admitted => "admitted",
            Self::Scheduled => "scheduled",
            Self::Pulled => "pulled",
            Self::Started => "started",
            Self::Loading => "loading",
            Self::Warming => "warming",
            Self::EngineReady => "engine ready",
            Self::PodReady => "pod ready",
            Self::Listed => "listed",
            Self::Routed => "routed",
        }
    }

    /// The stage of that name, as durations files write it: `loading`, `engine-ready`.
    pub fn parse(word: &str) -> Option<Self> {
        let word = word.trim().replace(['-', '_'], " ").to_ascii_lowercase();
        Self::ALL.into_iter().find(|stage| stage.word() == word)
    }
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.word())
    }
}

/// One rung of one replica.
#[derive(Debug, Clone, PartialEq)]
pub enum Rung {
    /// Reached, with the time if anything tells it and the evidence that does.
    Reached {
        /// When. Unknown where only "already there" is known.
        at: Known<Timestamp>,
        /// What proves it.
        evidence: Evidence,
    },
    /// Not reached, with what stands in the way where that is known.
    NotReached {
        /// Why, in words; empty where a lower rung says it.
        why: String,
        /// What proves it.
        evidence: Option<Evidence>,
    },
    /// Nothing tells.
    Unknown(super::Unknown),
    /// Does not exist for this replica: a plain Service has no router.
    NotApplicable(String),
}

impl Rung {
    /// Whether it is reached, as far as is known.
    pub fn is_reached(&self) -> bool {
        matches!(self, Self::Reached { .. })
    }

    /// When it was reached, if that is known.
    pub fn at(&self) -> Option<Timestamp> {
        match self {
            Self::Reached { at: Ok(at), .. } => Some(*at),
            _ => None,
        }
    }
}

/// All rungs of one replica.
#[derive(Debug, Clone, PartialEq)]
pub struct Ladder {
    rungs: [Rung; 11],
}

impl Ladder {
    /// A ladder of which nothing is known.
    pub fn blank() -> Self {
        Self { rungs: std::array::from_fn(|_| Rung::Unknown(super::Unknown::because("nothing tells"))) }
    }

    /// Sets one rung.
    pub fn set(&mut self, stage: Stage, rung: Rung) {
        if let Some(place) = self.rungs.get_mut(usize::from(stage.number())) {
            *place = rung;
        }
    }

    /// One rung.
    pub fn rung(&self, stage: Stage) -> &Rung {
        // `Stage` has as many members as there are rungs.
        self.rungs.get(usize::from(stage.number())).unwrap_or(&self.rungs[0])
    }

    /// Each stage with its rung, from the lowest.
    pub fn iter(&self) -> impl Iterator<Item = (Stage, &Rung)> {
        Stage::ALL.into_iter().zip(self.rungs.iter())
    }

    /// Whether a stage is reached.
    pub fn has(&self, stage: Stage) -> bool {
        self.rung(stage).is_reached()
    }

    /// The highest reached stage below which none is known to be missing. What nobody knows (an engine that was not asked) holds nothing
    /// back: the rung itself shows that it is not known.
    pub fn stage(&self) -> Stage {
        let mut last = Stage::Requested;
        for (stage, rung) in self.iter() {
            match rung {
                Rung::Reached { .. } => last = stage,
                Rung::NotApplicable(_) | Rung::Unknown(_) => {}
                Rung::NotReached { .. } => break,
            }
        }
        last
    }

    /// The first stage that is known not to be reached, with its rung.
    pub fn stuck_at(&self) -> Option<(Stage, &Rung)> {
        self.iter().find(|(_, rung)| matches!(rung, Rung::NotReached { .. }))
    }

    /// Seconds that a stage took: from the time it was reached to the time the next reached stage was. `None` where either is not known.
    pub fn took(&self, stage: Stage) -> Option<i64> {
        let begin = self.rung(stage).at()?;
        let end = self.iter().filter(|(later, _)| *later > stage).find_map(|(_, rung)| rung.at())?;
        Some(time::seconds_between(begin, end).max(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Place, Subject};

    fn reached(second: i64) -> Rung {
        Rung::Reached {
            at: Ok(Timestamp::from_second(second).unwrap()),
            evidence: Evidence::new(&Subject::pod("s", "a"), Place::Field("x".into()), "1", None),
        }
    }

    #[test]
    fn the_stage_is_the_top_of_an_unbroken_row() {
        let mut ladder = Ladder::blank();
        ladder.set(Stage::Requested, reached(0));
        ladder.set(Stage::Admitted, Rung::NotApplicable("no gate".into()));
        ladder.set(Stage::Scheduled, reached(5));
        ladder.set(Stage::Started, Rung::NotReached { why: "pulling".into(), evidence: None });
        ladder.set(Stage::PodReady, reached(9));
        assert_eq!(ladder.stage(), Stage::Scheduled);
        assert!(ladder.has(Stage::PodReady));
        assert_eq!(ladder.took(Stage::Requested), Some(5));
        assert_eq!(ladder.took(Stage::Scheduled), Some(4));
        assert_eq!(ladder.took(Stage::PodReady), None);
        assert_eq!(ladder.stuck_at().map(|(stage, _)| stage), Some(Stage::Started));
        ladder.set(Stage::Started, Rung::Unknown(crate::model::Unknown::because("not asked")));
        assert_eq!(ladder.stage(), Stage::PodReady);
        assert!(ladder.stuck_at().is_none());
    }

    #[test]
    fn names_read_back() {
        for stage in Stage::ALL {
            assert_eq!(Stage::parse(stage.word()), Some(stage));
        }
        assert_eq!(Stage::parse("Engine-Ready"), Some(Stage::EngineReady));
        assert_eq!(Stage::parse("ready"), None);
    }
}
