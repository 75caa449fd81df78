//! Ended pods that a controller has left behind, and pods that a controller can not make.
//!
//! Owns which pods are no replicas any more: a controller makes another in the place of a pod that failed or was evicted and leaves the
//! old one for the garbage collector. A pod without a controller that was read is nobody's leftover: it stays, as dead.

use std::collections::BTreeMap;

use crate::model::object::{Catalogue, Workload, WorkloadKind};
use crate::model::service::Replica;
use crate::model::{Evidence, Place, Subject};

/// Ended pods beside a workload's replicas.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LeftOver {
    /// The pods.
    pub pods: Vec<Subject>,
    /// How many by reason: `Evicted`, else the phase.
    reasons: BTreeMap<String, usize>,
    /// What shows it, of each.
    pub evidence: Vec<Evidence>,
}

impl LeftOver {
    /// `1 ended pod (Evicted) is left over`; `None` where there is none.
    pub fn sentence(&self) -> Option<String> {
        let count = self.pods.len();
        let words: Vec<String> = match self.reasons.len() {
            1 => self.reasons.keys().cloned().collect(),
            _ => self.reasons.iter().map(|(reason, n)| format!("{n} {reason}")).collect(),
        };
        let (pods, are) = if count == 1 { ("pod", "is") } else { ("pods", "are") };
        (count > 0).then(|| format!("{count} ended {pods} ({}) {are} left over", words.join(", ")))
    }
}

/// Takes the ended pods of controllers out of `replicas`.
pub fn set_apart<'a>(objects: &Catalogue, replicas: Vec<&'a Replica>) -> (Vec<&'a Replica>, LeftOver) {
    let mut left = LeftOver::default();
    let kept = replicas
        .into_iter()
        .filter(|replica| match left_over(objects, replica) {
            Some((reason, proof)) => {
                left.pods.push(replica.subject.clone());
                *left.reasons.entry(reason).or_insert(0) += 1;
                left.evidence.push(proof);
                false
            }
            None => true,
        })
        .collect();
    (kept, left)
}

/// Why a replica is an ended pod that its controller has replaced; `None` where it is a replica.
fn left_over(objects: &Catalogue, replica: &Replica) -> Option<(String, Evidence)> {
    let (object, pod) = objects.pod(&replica.subject)?;
    if !pod.has_ended() {
        return None;
    }
    let owner = object.meta.controller()?.subject(&object.meta.namespace);
    let seen = [Some(&owner), replica.workload.as_ref()].into_iter().flatten().any(|subject| objects.get(subject).is_some());
    let phase = pod.phase.clone().unwrap_or_default();
    let reason = if pod.reason.is_empty() { phase.clone() } else { pod.reason.clone() };
    let proof = Evidence::field(&replica.subject, "status.phase", if phase == reason { phase } else { format!("{phase}: {reason}") });
    seen.then(|| (reason, proof.of_uid(&object.meta.uid)))
}

/// What says that a workload's pods can not be made: its condition ReplicaFailure, or events FailedCreate on it or on what it makes its
/// pods by. Ask only where pods are missing: such events outlive their cause.
pub fn can_not_make(objects: &Catalogue, subject: &Subject, body: &Workload) -> Option<Evidence> {
    let failing = |of: &Subject, body: &Workload| {
        let condition = body.condition("ReplicaFailure").filter(|condition| condition.is_true())?;
        let words = [condition.reason.as_str(), condition.message.as_str()];
        let value = words.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(": ");
        Some(Evidence::new(of, Place::Condition("ReplicaFailure".into()), value, condition.since))
    };
    let makers = || {
        let is_maker = |made: &Subject| matches!(made.kind(), "replicaset" | "statefulset");
        std::iter::once(subject).chain(objects.owned_by(subject).iter().filter(move |made| is_maker(made)))
    };
    // A ReplicaSet that shall have none fails at nothing.
    let asked = |of: &Subject| objects.workload(of).is_some_and(|(_, body)| body.replicas != Ok(0));
    let by_condition = failing(subject, body)
        .or_else(|| makers().filter(|of| asked(of)).find_map(|of| failing(of, objects.workload(of).map(|(_, body)| body)?)));
    by_condition.or_else(|| {
        let events = makers().filter(|of| asked(of)).flat_map(|of| objects.events_about(of).into_iter().map(move |(_, event)| (of, event)));
        let (of, event) = events.filter(|(_, event)| event.reason == "FailedCreate").max_by_key(|(_, event)| event.last)?;
        Some(Evidence::new(of, Place::Event(event.reason.clone()), format!("{}: {}", event.reason, event.message), event.last))
    })
}

/// Whether a rollout of a Deployment-like workload is half done by its status.
pub fn half_rolled(body: &Workload) -> bool {
    matches!(body.kind, WorkloadKind::Deployment | WorkloadKind::CloneSet)
        && matches!((body.status.updated.unwrap_or(0), body.status.replicas), (updated, Some(all)) if updated < all)
}
