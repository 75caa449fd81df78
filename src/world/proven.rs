//! How many of those that serve were proven by their engine, and not by Kubernetes' word alone.
//!
//! Owns the difference that a person should see beside "3 of 3 serve". Changes no state and no count of the funnel.

use jiff::Timestamp;

use crate::model::engine::EngineReport;
use crate::model::service::Replica;
use crate::model::state::EngineState;
use crate::model::{Known, Unknown, time};

/// Seconds for which an engine's own word counts as proof.
pub const PROOF_S: i64 = 600;

/// Replicas that serve, and of them those that are proven.
#[derive(Debug, Clone, PartialEq)]
pub struct Proof {
    /// Replicas that serve by their state.
    pub serving: Known<u32>,
    /// Of them those whose engine itself says that it is ready.
    pub proven: Known<u32>,
}

impl Proof {
    /// `of 3 that serve by Kubernetes' word 1 was proven by its engine`; `None` where the two agree or are not known.
    pub fn sentence(&self) -> Option<String> {
        let (Ok(serving), Ok(proven)) = (&self.serving, &self.proven) else { return None };
        let (were, their) = if *proven == 1 { ("was", "its") } else { ("were", "their") };
        (proven < serving).then(|| format!("of {serving} that serve by Kubernetes' word {proven} {were} proven by {their} engine"))
    }
}

/// Counts the proven. `lacking` is set when replicas exist that were not read.
pub fn proven(replicas: &[&Replica], lacking: Option<&Unknown>, now: Timestamp) -> Proof {
    if let Some(why) = lacking {
        return Proof { serving: Err(why.clone()), proven: Err(why.clone()) };
    }
    let number = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
    // Pods that run no engine (pickers, ReplicaSets' other pods) have nothing to prove.
    let serving = || replicas.iter().filter(|replica| replica.state.serves() && replica.engine.is_ok());
    Proof { serving: Ok(number(serving().count())), proven: Ok(number(serving().filter(|replica| is_proven(replica, now)).count())) }
}

/// Whether the replica's engine says that it is ready, by an answer or page of the last 10 minutes.
pub fn is_proven(replica: &Replica, now: Timestamp) -> bool {
    let Ok(engine) = &replica.engine else { return false };
    let fresh = |at: Timestamp| time::seconds_between(at, now) <= PROOF_S;
    engine.state == EngineState::Ready && last_word(engine).is_some_and(fresh)
}

/// When the engine last said anything: its newest answer in the evidence of its state, or its newest page.
pub fn last_word(engine: &EngineReport) -> Option<Timestamp> {
    use crate::model::Place;
    let said = engine.evidence.iter().filter(|proof| matches!(proof.place, Place::Http(_) | Place::Metric(_)));
    let page = engine.load.as_ref().ok().map(|load| load.at);
    said.filter_map(|proof| proof.at).chain(page).max()
}
