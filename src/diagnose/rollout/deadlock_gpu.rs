//! `rollout-deadlock-no-spare-gpu`: the surge pod can not be scheduled for want of GPUs, and the old one may not go first.

use crate::diagnose::support::counted;
use crate::model::finding::{Code, Finding};
use crate::model::object::WorkloadKind;
use crate::model::object::devices::is_gpu_resource;
use crate::model::service::Replica;
use crate::model::state::ReplicaState;
use crate::model::{Evidence, Place, Subject, time};
use crate::world::World;
use crate::world::revision::{Update, updates};
use crate::world::sets::{RoleSet, SetRole};

pub(super) fn check(world: &World, out: &mut Vec<Finding>) {
    for update in updates(world) {
        if let Some((waits, bounds)) = deadlock(world, &update) {
            out.push(finding(world, &update, waits, bounds));
        }
    }
    for (subject, set) in &world.sets {
        for role in &set.roles {
            out.extend(in_set(world, subject, set, role));
        }
    }
}

/// Whether a pod waits for GPUs of which there are none, by the scheduler's own words.
fn wants_gpu(world: &World, replica: &Replica) -> bool {
    let Some((_, pod)) = world.objects.pod(&replica.subject) else { return false };
    if replica.state != ReplicaState::PendingGpu || replica.gpus == 0 {
        return false;
    }
    let said = pod.condition("PodScheduled").map_or("", |condition| condition.message.as_str());
    said.split("Insufficient ").skip(1).any(|rest| {
        let name: &str = rest.split(|c: char| c.is_whitespace() || matches!(c, ',' | ';')).next().unwrap_or_default();
        is_gpu_resource(name.trim_end_matches('.'))
    }) || said.contains("cannot allocate all claims")
}

/// The pod that waits, and the effective bounds, where the controller can take no further step by itself.
fn deadlock<'a>(world: &World, update: &Update<'a>) -> Option<(&'a Replica, (u32, u32))> {
    let (_, body) = update.body?;
    // A StatefulSet deletes first: its waiting pod has lost its GPUs to somebody else. Not this deadlock.
    let bounds = body.effective_bounds()?;
    let waits = update.new.iter().find(|replica| wants_gpu(world, replica))?;
    let asked = usize::try_from(body.replicas.clone().ok()?).ok()?;
    let floor = asked.saturating_sub(usize::try_from(bounds.1).ok()?);
    // In an LWS a replica is a group: its leader is Ready only with the group.
    let ready = match body.kind {
        WorkloadKind::LeaderWorkerSet => usize::try_from(world.workloads.get(&update.workload)?.funnel.pod_ready.clone().ok()?).ok()?,
        _ => update.ready(),
    };
    let held = update.old.iter().any(|replica| replica.gpus > 0 && replica.pod_ready == Ok(true));
    // One that leaves will give its GPUs back; one more Ready than the floor lets the controller take the next old one.
    (held && update.leaving.is_empty() && ready <= floor).then_some((*waits, bounds))
}

fn holders<'a>(update: &Update<'a>) -> Vec<&'a Replica> {
    update.old.iter().copied().filter(|replica| replica.gpus > 0).collect()
}

fn names(replicas: &[&Replica]) -> String {
    let shown: Vec<&str> = replicas.iter().take(4).map(|replica| replica.subject.name()).collect();
    let more = replicas.len().saturating_sub(shown.len());
    if more > 0 { format!("{} and {more} more", shown.join(", ")) } else { shown.join(", ") }
}

fn waiting_proof(waits: &Replica) -> Evidence {
    waits
        .evidence
        .first()
        .cloned()
        .unwrap_or_else(|| Evidence::new(&waits.subject, Place::Condition("PodScheduled".into()), "False", waits.since))
}

fn since(world: &World, waits: &Replica) -> String {
    waits.since.map(|at| format!(" since {}", time::span(time::seconds_between(at, world.now)))).unwrap_or_default()
}

fn finding(world: &World, update: &Update, waits: &Replica, (surge, unavailable): (u32, u32)) -> Finding {
    let subject = &update.workload;
    let held = holders(update);
    let serving: Vec<&Replica> = update.old.iter().copied().filter(|replica| replica.state.serves()).collect();
    let need = waits.gpus;
    let mut finding = Finding::new(
        Code::RolloutDeadlockNoSpareGpu,
        subject,
        format!(
            "the rollout of {} can not go on: {} needs {} and no node that it may use has them free{}; {} holds its GPUs and may not go first (effective maxSurge {surge}, maxUnavailable {unavailable})",
            subject.name(), waits.subject.name(), counted(need as usize, "GPU"), since(world, waits), names(&held)
        ),
        waiting_proof(waits),
    )
    .also(&waits.subject);
    for holder in held.iter().take(4) {
        finding = finding.also(&holder.subject).proof(Evidence::field(
            &holder.subject,
            "spec.containers[].resources.requests",
            format!("{} held, {}", counted(holder.gpus as usize, "GPU"), holder.state),
        ));
    }
    if let Some((object, body)) = update.body {
        let written = |bound: &Option<String>| bound.clone().unwrap_or_else(|| "not set".into());
        finding = finding.proof(
            Evidence::field(
                subject,
                "spec.strategy",
                format!(
                    "maxSurge {}, maxUnavailable {} of {} replicas: in effect {surge} and {unavailable}",
                    written(&body.strategy.max_surge),
                    written(&body.strategy.max_unavailable),
                    body.replicas.clone().unwrap_or(0)
                ),
            )
            .of_uid(&object.meta.uid),
        );
        if let Some(condition) = body.condition("Progressing").filter(|condition| condition.reason == "ProgressDeadlineExceeded") {
            finding = finding
                .proof(Evidence::new(subject, Place::Condition("Progressing".into()), condition.shown(), condition.since))
                .not("wait for ProgressDeadlineExceeded to undo it: it only marks the rollout, nothing rolls back by itself");
        }
    }
    let gap = if serving.len() <= 1 { "an outage while the new one loads" } else { "one replica less while the new one loads" };
    finding
        .remedy(format!("free or add {} on one node that the pod may use", counted(need as usize, "GPU")))
        .remedy(format!("set maxSurge 0 and maxUnavailable 1: the old one goes first ({gap})"))
        .remedy("set the strategy Recreate: all old ones go first (an outage while the new ones load)")
        .remedy("take the change back (roll back): the old revision still serves")
        .not(if serving.is_empty() {
            "delete the old pod without a plan: its GPUs may go to somebody else".to_owned()
        } else {
            format!("delete {}: it serves, and its GPUs may go to somebody else", names(&serving))
        })
}

/// The same in a set of roles: the surge group of one role waits, and the set may not take an old group of that role first.
fn in_set(world: &World, subject: &Subject, set: &RoleSet, role: &SetRole) -> Option<Finding> {
    let (surge, unavailable) = role.bounds?;
    let of = |newest: bool| set.parts.iter().filter(move |part| part.role == role.name && (part.revision == set.newest) == newest);
    let pods = |newest: bool| -> Vec<&Replica> {
        world
            .replicas
            .values()
            .filter(|replica| replica.subject.kind() == "pod")
            .filter(|replica| replica.workload.as_ref().is_some_and(|workload| of(newest).any(|part| part.workload == *workload)))
            .collect()
    };
    let (new, old) = (pods(true), pods(false));
    let waits = new.iter().find(|replica| wants_gpu(world, replica))?;
    let leaves = |replica: &&&Replica| matches!(replica.state, ReplicaState::Terminating | ReplicaState::Draining);
    if old.iter().any(|replica| leaves(&replica)) {
        return None;
    }
    let held: Vec<&Replica> = old.iter().copied().filter(|replica| replica.gpus > 0).collect();
    let ready = set
        .parts
        .iter()
        .filter(|part| part.role == role.name)
        .try_fold(0u32, |sum, part| Some(sum.saturating_add(part.ready.clone().ok()?)))?;
    let wanted = role.replicas.or_else(|| of(false).filter_map(|part| part.existing.clone().ok()).max())?;
    if held.is_empty() || ready > wanted.saturating_sub(unavailable) {
        return None;
    }
    let mut finding = Finding::new(
        Code::RolloutDeadlockNoSpareGpu,
        subject,
        format!(
            "the rollout of {} to revision {} can not go on: its new {} pod {} needs {} on one node and no node that it may use has them free{}; no old {} may go first (maxUnavailable {unavailable}, maxSurge {surge}), {} hold{} their GPUs",
            subject.name(), set.newest, role.name, waits.subject.name(), counted(waits.gpus as usize, "GPU"), since(world, waits), role.name,
            names(&held), if held.len() == 1 { "s" } else { "" }
        ),
        waiting_proof(waits),
    )
    .also(&waits.subject)
    .proof(Evidence::field(
        subject,
        &format!("spec.roles[{}].spec.rolloutStrategy.rollingUpdateConfiguration", role.name),
        format!("maxSurge {surge}, maxUnavailable {unavailable}"),
    ));
    for holder in held.iter().take(4) {
        finding = finding.proof(Evidence::field(
            &holder.subject,
            "spec.containers[].resources.requests",
            format!("{} held, {}", counted(holder.gpus as usize, "GPU"), holder.state),
        ));
    }
    Some(
        finding
            .remedy(format!("free or add {} on one node that the pod may use", counted(waits.gpus as usize, "GPU")))
            .remedy(format!("set maxUnavailable 1 for the role {} on the DisaggregatedSet: one old {} goes first", role.name, role.name))
            .remedy("take the change back on the DisaggregatedSet: it rolls back to the revision that is a whole path")
            .not("scale or delete its LeaderWorkerSets by hand: the set writes them back"),
    )
}

#[cfg(test)]
mod tests {
    use crate::diagnose::testkit::Kit;
    use crate::model::finding::Code;
    use rstest::rstest;
    use serde_json::{Value, json};

    const FULL: &str = "0/2 nodes are available: 1 Insufficient nvidia.com/gpu, 1 node(s) had untolerated taint {a: }.";

    fn gpu(pod: &mut Value, hash: &str, created: &str) {
        pod["metadata"]["labels"] = json!({"app": "a", "pod-template-hash": hash});
        pod["metadata"]["creationTimestamp"] = created.into();
        pod["spec"]["containers"][0]["resources"] = json!({"limits": {"nvidia.com/gpu": 8}});
    }

    fn kit(message: &str, strategy: Value, more: impl FnOnce(Kit) -> Kit) -> Kit {
        let kit = Kit::new()
            .object(json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "w", "namespace": "s"},
                "spec": {"replicas": 1, "strategy": strategy, "selector": {"matchLabels": {"app": "a"}}}, "status": {"replicas": 2, "updatedReplicas": 1}}))
            .pod_with("w-old-1", |pod| gpu(pod, "old", "2026-11-10T00:00:00Z"))
            .owned("w-old-1", "ReplicaSet", "w-old")
            .pod_with("w-new-1", |pod| {
                gpu(pod, "new", "2026-11-12T09:35:00Z");
                pod["spec"]["nodeName"] = Value::Null;
                pod["status"] = json!({"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable",
                    "message": message, "lastTransitionTime": "2026-11-12T09:35:00Z"}]});
            })
            .owned("w-new-1", "ReplicaSet", "w-new");
        more(kit)
    }

    #[rstest]
    #[case::the_default(FULL, json!({}), true)]
    #[case::a_device_by_claim("0/2 nodes are available: 2 cannot allocate all claims.", json!({}), true)]
    #[case::the_old_one_may_go(FULL, json!({"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}), false)]
    #[case::another_reason("0/2 nodes are available: 2 node(s) didn't match Pod's node affinity/selector.", json!({}), false)]
    #[case::another_resource("0/2 nodes are available: 2 Insufficient cpu.", json!({}), false)]
    fn by_strategy_and_reason(#[case] message: &str, #[case] strategy: Value, #[case] fires: bool) {
        let world = kit(message, strategy, |kit| kit).build();
        assert_eq!(world.none(Code::RolloutDeadlockNoSpareGpu), !fires, "{:?}", world.findings);
    }

    #[test]
    fn names_who_waits_and_who_holds() {
        let finding = kit(FULL, json!({}), |kit| kit).build().only(Code::RolloutDeadlockNoSpareGpu);
        let subjects: Vec<&str> = finding.subjects.iter().map(|subject| subject.as_str()).collect();
        assert_eq!(subjects, ["deployment/s/w", "pod/s/w-new-1", "pod/s/w-old-1"]);
    }

    #[test]
    fn an_old_pod_that_leaves_gives_its_gpus_back() {
        let mut leaving = kit(FULL, json!({}), |kit| kit);
        leaving.change("pod/s/w-old-1", |pod| pod["metadata"]["deletionTimestamp"] = "2026-11-12T10:00:20Z".into());
        assert!(leaving.build().none(Code::RolloutDeadlockNoSpareGpu));
    }
}
