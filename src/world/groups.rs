//! Replicas of several pods: one group of a LeaderWorkerSet is one engine, and its leader speaks for it.

use std::collections::BTreeMap;

use crate::model::Subject;
use crate::model::object::Catalogue;
use crate::model::service::{Replica, ReplicaClaim};
use crate::model::state::{EngineState, ReplicaState};
use crate::systems::owners::group_of;

/// States of a member that hold the whole group back, the most basic first.
const HOLDING: &[ReplicaState] = &[
    ReplicaState::WaitingAdmission,
    ReplicaState::PendingGpu,
    ReplicaState::Pulling,
    ReplicaState::Crashing,
    ReplicaState::Dead,
    ReplicaState::Terminating,
    ReplicaState::Draining,
];

/// Puts a group together from its judged pods. `None` where none of them was seen.
pub fn group(objects: &Catalogue, claim: &ReplicaClaim, pods: &BTreeMap<Subject, Replica>) -> Option<Replica> {
    let members: Vec<&Replica> = claim.pods.iter().filter_map(|pod| pods.get(pod)).collect();
    let first = members.first()?;
    let has_leader = objects.get(&first.subject).and_then(group_of).is_some_and(|(_, index)| index == 0);
    let size = objects
        .workload(claim.workload.as_ref()?)
        .map_or(members.len(), |(_, workload)| usize::try_from(workload.group_size).unwrap_or(usize::MAX));
    let mut group = Replica { subject: claim.subject.clone(), pods: claim.pods.clone(), ..(*first).clone() };
    group.gpus = members.iter().map(|member| member.gpus).fold(0, u32::saturating_add);
    let held = HOLDING
        .iter()
        .find_map(|state| members.iter().find(|member| member.state == *state))
        // Workers open no port; one whose container does not run yet holds the group back too.
        .or_else(|| members.iter().skip(1).find(|member| member.state == ReplicaState::Starting && !runs(member)));
    if !has_leader {
        group.state = ReplicaState::Starting;
        group.why = vec!["its leader does not exist".into()];
        group.pod_ready = Ok(false);
    }
    if let Some(member) = held.filter(|member| has_leader && member.subject != first.subject) {
        group.state = member.state;
        group.why = member.why.clone();
        if let Some(first) = group.why.first_mut() {
            *first = format!("{}: {first}", member.subject.name());
        }
        group.evidence = member.evidence.clone();
        group.since = member.since;
        group.ladder = member.ladder.clone();
    } else if members.len() < size && has_leader {
        group.why.push(format!("{} of its {size} pods exist", members.len()));
        if group.state.serves() {
            group.state = ReplicaState::Starting;
        }
    }
    // A member whose Ready proves nothing (its node is silent): only the engine's own word could speak for the whole.
    let unproven = |member: &&&Replica| member.state == ReplicaState::Unknown && member.pod_ready == Ok(true);
    let proven = group.engine.as_ref().is_ok_and(|engine| engine.state == EngineState::Ready);
    if let Some(member) = members.iter().find(unproven).filter(|_| group.state.serves() && !proven) {
        group.state = ReplicaState::Unknown;
        group.why.splice(0..0, member.why.first().map(|why| format!("{}: {why}", member.subject.name())));
        group.evidence.splice(0..0, member.evidence.iter().cloned());
    }
    // A group is Ready when all its pods are.
    let not_ready = members.iter().find(|member| member.pod_ready == Ok(false));
    if let Some(member) = not_ready {
        group.pod_ready = Ok(false);
        if group.state.serves() {
            group.state = ReplicaState::EngineReady;
            group.why.insert(0, format!("its pod {} is not Ready", member.subject.name()));
        }
    } else if let Some(unknown) = members.iter().find_map(|member| member.pod_ready.as_ref().err()) {
        group.pod_ready = Err(unknown.clone());
    }
    Some(group)
}

fn runs(member: &Replica) -> bool {
    member.ladder.has(crate::model::ladder::Stage::Started)
}
