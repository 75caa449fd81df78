//! Standbys of endpoint pickers: never Ready by design, and well all the same.
//!
//! Puts right the states of picker pods and of their workload, which readiness alone tells wrong. Who leads is found in `epp`.

use std::collections::BTreeMap;

use super::WorkloadView;
use super::epp::Picker;
use crate::model::object::Catalogue;
use crate::model::service::Replica;
use crate::model::state::{ReplicaState, WorkloadState};
use crate::model::{Evidence, Subject};

/// Puts right what readiness alone says wrong of pickers that elect a leader: standbys are well, and the workload serves by its leader.
pub fn correct(
    objects: &Catalogue,
    pickers: &BTreeMap<Subject, Picker>,
    replicas: &mut BTreeMap<Subject, Replica>,
    workloads: &mut BTreeMap<Subject, WorkloadView>,
) {
    for picker in pickers.values().filter(|picker| picker.election.is_some()) {
        let Ok((leader, proof)) = &picker.leader else { continue };
        let mut well: Vec<Subject> = Vec::new();
        for standby in picker.standbys() {
            let Some(replica) = replicas.get_mut(standby) else { continue };
            let runs = objects
                .pod(standby)
                .is_some_and(|(_, pod)| !pod.containers.is_empty() && pod.containers.iter().all(|status| status.running_since().is_some()));
            if !runs || replica.pod_ready != Ok(false) || objects.get(standby).is_some_and(|object| object.meta.deletion.is_some()) {
                continue;
            }
            replica.state = ReplicaState::EngineReady;
            replica.why = vec![format!("a standby: {} leads, and only the leader is ever Ready, so this is no fault", leader.name())];
            replica.evidence.extend(proof.iter().cloned());
            well.push(standby.clone());
        }
        if let Some(replica) = replicas.get_mut(leader) {
            replica.why.insert(0, format!("it leads the pickers of {}", picker.service.name()));
            replica.evidence.extend(proof.iter().cloned());
        }
        for workload in &picker.workloads {
            let Some(view) = workloads.get_mut(workload) else { continue };
            settle(objects, workload, view, replicas, (leader, proof), &well);
        }
    }
}

/// The state of a workload of pickers, whose counts of Ready pods mean nothing beyond the leader.
fn settle(
    objects: &Catalogue,
    subject: &Subject,
    view: &mut WorkloadView,
    replicas: &BTreeMap<Subject, Replica>,
    (leader, proof): (&Subject, &[Evidence]),
    well: &[Subject],
) {
    if !view.replicas.contains(leader) || replicas.get(leader).is_none_or(|replica| replica.pod_ready != Ok(true)) {
        return;
    }
    let own: Vec<&Subject> = view.replicas.iter().filter(|pod| *pod == leader || well.contains(pod)).collect();
    let Some((object, workload)) = objects.workload(subject) else { return };
    let moving = workload.status.updated.zip(workload.status.replicas).is_some_and(|(updated, all)| updated < all)
        || matches!((object.meta.generation, workload.status.observed_generation), (Some(now), Some(seen)) if seen < now);
    let standbys = own.len().saturating_sub(1);
    let words = match standbys {
        0 => "no standby".to_owned(),
        1 => "1 standby".to_owned(),
        n => format!("{n} standbys"),
    };
    let wanted = view.funnel.wanted.as_ref().map_or(own.len(), |wanted| usize::try_from(*wanted).unwrap_or(usize::MAX));
    view.state = match (own.len() >= wanted, moving) {
        (_, true) => WorkloadState::RollingOut,
        (true, _) => WorkloadState::Serving,
        (false, _) => WorkloadState::Degraded,
    };
    let mut why = vec![format!("1 leader and {words}: {} leads", leader.name())];
    why.extend(proof.iter().map(|proof| format!("{}: {}", proof.object, proof.value)));
    let blamed: Vec<String> = ["Available", "Progressing"]
        .into_iter()
        .filter_map(|kind| workload.condition(kind).filter(|condition| condition.is_false()))
        .map(|condition| format!("{} False ({})", condition.kind, condition.reason))
        .collect();
    if standbys > 0 {
        let besides =
            if blamed.is_empty() { String::new() } else { format!(", so {} is its usual state and no fault", blamed.join(" with ")) };
        why.push(format!("a standby (follower) is never Ready by design{besides}"));
    }
    if own.len() < wanted {
        why.push(format!("{} of {wanted} are there and well", own.len()));
    }
    view.why = why;
    view.evidence.extend(proof.iter().cloned());
}
