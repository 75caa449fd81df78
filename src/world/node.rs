//! What a node that is not Ready means for the pods on it.
//!
//! Owns for how long a pod's last known status holds when its node is silent. Kubernetes itself marks the node after 40 s without a
//! heartbeat (`node-monitor-grace-period`) and leaves the pods' Ready condition for a while after that.

use jiff::Timestamp;

use super::judge::{PodCase, Verdict};
use super::proven::last_word;
use crate::model::object::meta::{Condition, condition};
use crate::model::state::ReplicaState;
use crate::model::{Evidence, Place, Subject, time};

/// Seconds without a Ready node after which a pod's Ready proves nothing.
pub const GRACE_S: i64 = 40;

/// The verdict with what its node's state makes of it.
pub(super) fn weigh(case: &PodCase, mut verdict: Verdict) -> Verdict {
    let subject = Subject::node(&case.pod.node);
    let Some((_, node)) = case.objects.node(&subject).filter(|_| !case.pod.has_ended()) else { return verdict };
    let Some(ready) = condition(&node.conditions, "Ready").filter(|ready| !ready.is_true()) else { return verdict };
    let proof = Evidence::new(&subject, Place::Condition("Ready".into()), ready.shown(), ready.since);
    let state = if ready.is_false() { "not Ready" } else { "silent (its Ready is Unknown)" };
    let ago = ready.since.map(|since| format!(" for {}", time::span(time::seconds_between(since, case.now)))).unwrap_or_default();
    let words = format!("its node {} is {state}{ago}", case.pod.node);
    let long = ready.since.is_none_or(|since| time::seconds_between(since, case.now) > GRACE_S);
    let by_ready = matches!(verdict.state, ReplicaState::Serving | ReplicaState::Ready | ReplicaState::NotRouted);
    if long && by_ready && !heard_since(case, ready) {
        verdict.state = ReplicaState::Unknown;
        verdict.since = ready.since;
        verdict.why.insert(0, format!("{words}, and its engine was not heard since: that the pod is Ready is old news"));
        verdict.evidence.insert(0, proof);
    } else {
        verdict.why.push(words);
        verdict.evidence.push(proof);
    }
    verdict
}

/// Whether the engine answered after its node changed.
fn heard_since(case: &PodCase, ready: &Condition) -> bool {
    let said: Option<Timestamp> = case.engine.and_then(last_word);
    matches!((said, ready.since), (Some(said), Some(since)) if said > since)
}
