//! `rollout-deadlock-volume`: the new pod waits for a volume that the old pod holds.

use crate::model::finding::{Code, Finding};
use crate::model::object::{Body, Object, Pod};
use crate::model::service::Replica;
use crate::model::state::ReplicaState;
use crate::model::{Evidence, Place, Subject};
use crate::world::World;
use crate::world::revision::{Update, updates};

pub(super) fn check(world: &World, out: &mut Vec<Finding>) {
    for update in updates(world) {
        let found = update.new.iter().find_map(|waits| stuck(world, &update, waits));
        out.extend(found);
    }
}

/// Words of the attach controller, the kubelet and the scheduler for a volume that somebody else holds.
fn held_elsewhere(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    ["multi-attach error", "already used by pod", "already exclusively attached", "readwriteoncepod access mode", "is already attached to"]
        .iter()
        .any(|words| lower.contains(words))
}

fn stuck(world: &World, update: &Update, waits: &Replica) -> Option<Finding> {
    if !matches!(waits.state, ReplicaState::Starting | ReplicaState::PendingGpu | ReplicaState::Pulling) {
        return None;
    }
    let (object, pod) = world.objects.pod(&waits.subject)?;
    let event = world.objects.events_about(&waits.subject).into_iter().rev().find(|(_, event)| {
        matches!(event.reason.as_str(), "FailedAttachVolume" | "FailedMount" | "FailedScheduling") && held_elsewhere(&event.message)
    });
    let said = pod.condition("PodScheduled").filter(|condition| held_elsewhere(&condition.message));
    let proof = match (event, said) {
        (Some((_, event)), _) => Evidence::new(&waits.subject, Place::Event(event.reason.clone()), event.message.clone(), event.last),
        (None, Some(condition)) => {
            Evidence::new(&waits.subject, Place::Condition("PodScheduled".into()), condition.shown(), condition.since)
        }
        (None, None) => return None,
    };
    // The one that holds it: an old pod with the same claim. One that leaves gives it back.
    let holder = |replica: &&Replica| shares(world, pod, replica).is_some();
    if update.leaving.iter().any(&holder) {
        return None;
    }
    let holder = update.old.iter().find(|replica| holder(replica))?;
    let claim = shares(world, pod, holder)?;
    Some(finding(world, update, (object, pod, waits), holder, &claim, proof))
}

/// The claim that both pods mount and that only one node (or pod) can have.
fn shares(world: &World, pod: &Pod, other: &Replica) -> Option<String> {
    let (object, holder) = world.objects.pod(&other.subject)?;
    pod.spec.claims.iter().find(|claim| holder.spec.claims.contains(claim) && exclusive(world, object, claim)).cloned()
}

fn exclusive(world: &World, pod: &Object, claim: &str) -> bool {
    modes(world, pod, claim).is_none_or(|modes| !modes.iter().any(|mode| mode == "ReadWriteMany" || mode == "ReadOnlyMany"))
}

fn claim_subject(pod: &Object, claim: &str) -> Subject {
    Subject::object("persistentvolumeclaim", &pod.meta.namespace, claim)
}

/// Access modes of a claim; `None` where the claim was not read.
fn modes<'a>(world: &'a World, pod: &Object, claim: &str) -> Option<&'a [String]> {
    match &world.objects.get(&claim_subject(pod, claim))?.body {
        Body::Claim(body) => Some(&body.access_modes),
        _ => None,
    }
}

fn finding(
    world: &World,
    update: &Update,
    (object, pod, waits): (&Object, &Pod, &Replica),
    holder: &Replica,
    claim: &str,
    proof: Evidence,
) -> Finding {
    let subject = &update.workload;
    let volume = claim_subject(object, claim);
    let node = world.objects.pod(&holder.subject).map(|(_, pod)| pod.node.clone()).unwrap_or_default();
    let idle = match (pod.node.as_str(), waits.gpus) {
        ("", _) | (_, 0) => String::new(),
        (node, gpus) => format!(
            "; its {gpus} GPU{} on {node} {} bound and idle",
            if gpus == 1 { "" } else { "s" },
            if gpus == 1 { "is" } else { "are" }
        ),
    };
    let mut finding = Finding::new(
        Code::RolloutDeadlockVolume,
        subject,
        format!(
            "the rollout of {} can not go on: {} waits for the volume of claim {claim}, which {} holds{}{idle}",
            subject.name(),
            waits.subject.name(),
            holder.subject.name(),
            if node.is_empty() { String::new() } else { format!(" on {node}") }
        ),
        proof,
    )
    .also(&waits.subject)
    .also(&holder.subject)
    .proof(Evidence::field(&holder.subject, "spec.volumes[].persistentVolumeClaim", format!("{claim}, {}", holder.state)))
    .proof(Evidence::field(&waits.subject, "spec.volumes[].persistentVolumeClaim", claim));
    if let Some(modes) = modes(world, object, claim) {
        finding = finding.proof(Evidence::field(&volume, "spec.accessModes", modes.join(", ")));
    }
    if let Some(condition) = pod.condition("PodReadyToStartContainers").filter(|condition| !condition.is_true()) {
        finding = finding.proof(Evidence::new(
            &waits.subject,
            Place::Condition("PodReadyToStartContainers".into()),
            condition.shown(),
            condition.since,
        ));
    }
    if let Some((_, body)) = update.body
        && let Some((surge, unavailable)) = body.effective_bounds()
    {
        finding =
            finding.proof(Evidence::field(subject, "spec.strategy", format!("in effect maxSurge {surge}, maxUnavailable {unavailable}")));
    }
    let same_node = if node.is_empty() {
        "keep old and new on the same node".to_owned()
    } else {
        format!("keep old and new on the same node ({node}), where a ReadWriteOnce volume can be shared")
    };
    finding
        .remedy("set the strategy Recreate: the old pod lets go first (an outage while the new one loads)")
        .remedy("set maxSurge 0 and maxUnavailable 1, with the same gap")
        .remedy("put the model on a ReadWriteMany volume or a read-only one (ReadOnlyMany), which both can mount")
        .remedy(same_node)
        .not("wait for an image pull: no image is pulled before the volume is attached")
}

#[cfg(test)]
mod tests {
    use crate::diagnose::testkit::Kit;
    use crate::model::finding::Code;
    use rstest::rstest;
    use serde_json::json;

    fn kit(mode: &str, message: &str, claim: &str) -> Kit {
        let mut kit = Kit::new()
            .object(json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "w", "namespace": "s"},
                "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "a"}}}, "status": {"replicas": 2, "updatedReplicas": 1}}))
            .object(json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "models", "namespace": "s"},
                "spec": {"accessModes": [mode]}}))
            .pod_with("w-old-1", |_| ())
            .owned("w-old-1", "ReplicaSet", "w-old")
            .loading_pod("w-new-1")
            .owned("w-new-1", "ReplicaSet", "w-new")
            .event("Pod", "w-new-1", "FailedAttachVolume", message);
        for (name, hash, claim) in [("w-old-1", "old", "models"), ("w-new-1", "new", claim)] {
            kit.change(&format!("pod/s/{name}"), |pod| {
                pod["metadata"]["labels"] = json!({"app": "a", "pod-template-hash": hash});
                pod["spec"]["volumes"] = json!([{"name": "m", "persistentVolumeClaim": {"claimName": claim}}]);
            });
        }
        kit.change("pod/s/w-new-1", |pod| {
            pod["status"]["containerStatuses"][0]["state"] = json!({"waiting": {"reason": "ContainerCreating"}});
            pod["status"]["conditions"][1] = json!({"type": "PodReadyToStartContainers", "status": "False"});
        });
        kit
    }

    const HELD: &str = "Multi-Attach error for volume \"pvc-1\" Volume is already used by pod(s) w-old-1";

    #[rstest]
    #[case::held("ReadWriteOnce", HELD, "models", true)]
    #[case::many_may_mount_it("ReadWriteMany", HELD, "models", false)]
    #[case::another_fault("ReadWriteOnce", "AttachVolume.Attach failed: rpc error: timeout", "models", false)]
    #[case::another_claim("ReadWriteOnce", HELD, "other", false)]
    fn fires_or_not(#[case] mode: &str, #[case] message: &str, #[case] claim: &str, #[case] fires: bool) {
        assert_eq!(kit(mode, message, claim).build().none(Code::RolloutDeadlockVolume), !fires);
    }

    #[test]
    fn a_holder_that_leaves_is_no_deadlock() {
        let mut leaving = kit("ReadWriteOnce", HELD, "models");
        leaving.change("pod/s/w-old-1", |pod| pod["metadata"]["deletionTimestamp"] = "2026-11-12T10:00:20Z".into());
        assert!(leaving.build().none(Code::RolloutDeadlockVolume));
    }
}
