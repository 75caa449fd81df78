//! `failed-canary-holds-gpu`: an update failed or was aborted, and its pods still hold GPUs.

use crate::diagnose::support::counted;
use crate::model::finding::{Code, Finding};
use crate::model::object::meta::Condition;
use crate::model::service::Replica;
use crate::model::state::ReplicaState;
use crate::model::{Evidence, Place, time};
use crate::world::World;
use crate::world::promotion::failed;
use crate::world::revision::{Update, updates};

pub(super) fn check(world: &World, out: &mut Vec<Finding>) {
    for update in updates(world) {
        let Some((why, proofs, all)) = failure(&update) else { continue };
        // Only what is bound to a node holds a GPU. Of an update that nobody aborted, pods that still move are not given up.
        let holders: Vec<&Replica> = update
            .new
            .iter()
            .copied()
            .filter(|replica| replica.gpus > 0 && world.objects.pod(&replica.subject).is_some_and(|(_, pod)| !pod.node.is_empty()))
            .filter(|replica| all || matches!(replica.state, ReplicaState::Crashing | ReplicaState::Dead | ReplicaState::Stalled))
            .collect();
        if !holders.is_empty() {
            out.push(finding(world, &update, &why, proofs, &holders));
        }
    }
}

/// Why the update is taken for failed, and whether all its pods are left over (aborted) or only those that fail.
fn failure(update: &Update) -> Option<(String, Vec<Evidence>, bool)> {
    let (_, body) = update.body?;
    if let Some(failed) = failed(&update.workload, body) {
        let since = failed.since.map(|at| format!(" at {at}")).unwrap_or_default();
        return Some((format!("{}{since}", failed.why), failed.evidence, true));
    }
    // Without an older revision it is a first start, not an update.
    if update.old.is_empty() {
        return None;
    }
    let condition = body.condition("Progressing").filter(|condition| Condition::is_false(condition))?;
    let words = format!("the update has failed ({})", condition.reason);
    let proof = Evidence::new(&update.workload, Place::Condition("Progressing".into()), condition.shown(), condition.since);
    Some((words, vec![proof], false))
}

fn finding(world: &World, update: &Update, why: &str, proofs: Vec<Evidence>, holders: &[&Replica]) -> Finding {
    let subject = &update.workload;
    let gpus = holders.iter().map(|replica| replica.gpus).fold(0, u32::saturating_add);
    let shown: Vec<String> = holders.iter().take(4).map(|replica| format!("{} ({})", replica.subject.name(), replica.state)).collect();
    let mut proofs = proofs.into_iter();
    let first = proofs.next().unwrap_or_else(|| Evidence::field(subject, "status", why));
    let mut finding = Finding::new(
        Code::FailedCanaryHoldsGpu,
        subject,
        format!(
            "{}: {why}, and {} of its newest revision ({}) still hold{} {}: {}",
            subject.name(),
            counted(holders.len(), "pod"),
            update.newest,
            if holders.len() == 1 { "s" } else { "" },
            counted(gpus as usize, "GPU"),
            shown.join(", ")
        ),
        first,
    )
    .proofs(proofs);
    for replica in holders.iter().take(4) {
        let made = world.objects.get(&replica.subject).and_then(|object| object.meta.created);
        let age = made.map(|made| format!(", {} old", time::span(time::seconds_between(made, world.now)))).unwrap_or_default();
        let value = format!("{}, {}{age}", counted(replica.gpus as usize, "GPU"), replica.state);
        finding = finding.also(&replica.subject).proof(Evidence::field(&replica.subject, "spec.containers[].resources.requests", value));
    }
    let canary = update.body.is_some_and(|(_, body)| body.canary.is_some());
    let finding = if canary {
        finding
            .remedy("set the template back to the stable revision: the rollout is then healthy, and its failed pods go")
            .remedy("or correct the template and try again: that replaces the failed pods")
            .remedy("scale the canary down at once with abortScaleDownDelaySeconds, where a failed canary need not be looked at")
    } else {
        finding.remedy("roll back, or correct the template: either replaces the failed pods")
    };
    finding.remedy("keep a log of the failed pods first: it goes with them").not("delete its pods by hand: their ReplicaSet makes them again")
}

#[cfg(test)]
mod tests {
    use crate::diagnose::testkit::Kit;
    use crate::model::finding::Code;
    use rstest::rstest;
    use serde_json::{Value, json};

    fn pods(kit: Kit, label: &str, gpus: u32) -> Kit {
        let change = |hash: &'static str, name: &str, owner: &str, kit: Kit| {
            kit.pod_with(name, |pod| {
                pod["metadata"]["labels"] = json!({"app": "a", label: hash});
                pod["spec"]["containers"][0]["resources"] = json!({"limits": {"nvidia.com/gpu": gpus}});
            })
            .owned(name, "ReplicaSet", owner)
        };
        let kit = change("old", "w-old-1", "w-old", kit);
        change("new", "w-new-1", "w-new", kit)
    }

    fn rollout(status: Value, gpus: u32) -> Kit {
        let mut status = status;
        status["stableRS"] = "old".into();
        status["currentPodHash"] = "new".into();
        pods(
            Kit::new().object(json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout", "metadata": {"name": "w", "namespace": "s"},
                "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "a"}}, "strategy": {"canary": {"steps": []}}}, "status": status})),
            "rollouts-pod-template-hash",
            gpus,
        )
    }

    #[rstest]
    #[case::aborted(json!({"abort": true, "phase": "Degraded"}), 1, true)]
    #[case::degraded(json!({"phase": "Degraded", "message": "ProgressDeadlineExceeded"}), 1, true)]
    #[case::moving(json!({"phase": "Progressing"}), 1, false)]
    #[case::no_gpu(json!({"abort": true}), 0, false)]
    fn rollouts(#[case] status: Value, #[case] gpus: u32, #[case] fires: bool) {
        let world = rollout(status, gpus).build();
        assert_eq!(world.none(Code::FailedCanaryHoldsGpu), !fires, "{:?}", world.findings);
    }

    #[rstest]
    #[case::crashing("CrashLoopBackOff", true)]
    #[case::still_starting("ContainerCreating", false)]
    fn a_deployment_past_its_deadline(#[case] reason: &str, #[case] fires: bool) {
        let mut kit = pods(
            Kit::new().object(json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "w", "namespace": "s"},
                "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "a"}}}, "status": {"replicas": 2, "updatedReplicas": 1,
                    "conditions": [{"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded"}]}})),
            "pod-template-hash",
            1,
        );
        kit.change("pod/s/w-new-1", |pod| {
            pod["metadata"]["creationTimestamp"] = "2026-11-12T09:00:00Z".into();
            pod["status"]["conditions"] = json!([{"type": "Ready", "status": "False"}]);
            pod["status"]["containerStatuses"][0]["ready"] = false.into();
            pod["status"]["containerStatuses"][0]["state"] = json!({"waiting": {"reason": reason}});
        });
        assert_eq!(kit.build().none(Code::FailedCanaryHoldsGpu), !fires);
    }
}
