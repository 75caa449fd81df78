//! `stuck-terminating`: a pod is Terminating long past its grace period.

use crate::diagnose::support::counted;
use crate::model::finding::{Code, Finding};
use crate::model::object::{Node, Object, Pod};
use crate::model::{Evidence, Place, Subject, time};
use crate::world::World;

/// Seconds past the deadline before it is a finding: the kubelet needs a moment to clean up.
const PAST_S: i64 = 60;

pub(super) fn check(world: &World, out: &mut Vec<Finding>) {
    for (object, pod) in world.objects.pods() {
        let Some(until) = object.meta.deletion else { continue };
        let past = time::seconds_between(until, world.now);
        if past >= PAST_S {
            out.push(finding(world, object, pod, past));
        }
    }
}

fn finding(world: &World, object: &Object, pod: &Pod, past: i64) -> Finding {
    let subject = object.subject();
    let until = object.meta.deletion.map(|at| at.to_string()).unwrap_or_default();
    let node = Subject::node(&pod.node);
    let seen = world.objects.node(&node);
    let node_down = seen.is_some_and(|(_, body)| !body.is_ready());
    // Nodes were read and this one is not among them: it is gone.
    let node_gone = !pod.node.is_empty() && seen.is_none() && world.objects.nodes().next().is_some();
    let finalizers = object.meta.finalizers.join(", ");
    let gpus = pod.spec.gpus();
    let held = if gpus > 0 { format!("; it still holds {}", counted(gpus as usize, "GPU")) } else { String::new() };
    let cause = match (node_down, node_gone, finalizers.is_empty()) {
        (true, ..) => format!("its node {} is not Ready, so no kubelet ends it", pod.node),
        (_, true, _) => format!("its node {} does not exist any more", pod.node),
        (_, _, false) => format!("finalizers hold it: {finalizers}"),
        _ => "its node is Ready and no finalizer holds it, so the kubelet or the container runtime does not get it ended".into(),
    };
    let grace = object.meta.deletion_grace_s.unwrap_or(0);
    let mut finding = Finding::new(
        Code::StuckTerminating,
        &subject,
        format!("{} should have been gone {} ago (grace period {grace} s): {cause}{held}", subject.name(), time::span(past)),
        Evidence::field(&subject, "metadata.deletionTimestamp", until).seen_at(object.meta.deleted_at()).of_uid(&object.meta.uid),
    );
    if !finalizers.is_empty() {
        finding = finding.proof(Evidence::field(&subject, "metadata.finalizers", finalizers.clone()));
    }
    if let Some((node_object, body)) = seen {
        finding = finding.proof(ready(node_object, body));
        if node_down {
            finding = finding.also(&node);
        }
    }
    finding = match (node_down || node_gone, finalizers.is_empty()) {
        (true, _) => finding
            .remedy(format!("make sure that {} is really off or cut from the network; then delete the node, or taint it node.kubernetes.io/out-of-service, which lets its pods go", pod.node))
            .not("force the deletion while the node may still run: the engine may go on, and hold its GPUs and volumes, unseen"),
        (false, false) => finding
            .remedy(format!("look at the controller that should take the finalizer away: {finalizers}"))
            .not("take the finalizer away by hand before you know what it waits for"),
        (false, true) => finding
            .remedy(format!("look at the kubelet and container runtime on {}: a process that waits for its GPU driver can not be killed", pod.node))
            .not("force the deletion first: it frees the name, not the GPUs"),
    };
    finding
}

fn ready(object: &Object, node: &Node) -> Evidence {
    let subject = object.subject();
    match crate::model::object::meta::condition(&node.conditions, "Ready") {
        Some(condition) => Evidence::new(&subject, Place::Condition("Ready".into()), condition.shown(), condition.since),
        None => Evidence::field(&subject, "status.conditions", "no Ready condition"),
    }
}

#[cfg(test)]
mod tests {
    use crate::diagnose::testkit::Kit;
    use crate::model::finding::Code;
    use rstest::rstest;
    use serde_json::{Value, json};

    fn kit(deletion: &str, finalizers: Value, node_ready: &str) -> Kit {
        Kit::new()
            .object(json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}, "status": {"conditions": [{"type": "Ready", "status": node_ready}]}}))
            .pod_with("a", |pod| {
                pod["metadata"]["deletionTimestamp"] = deletion.into();
                pod["metadata"]["deletionGracePeriodSeconds"] = 30.into();
                pod["metadata"]["finalizers"] = finalizers;
            })
    }

    #[rstest]
    #[case::node_down("2026-11-12T09:30:00Z", json!([]), "Unknown", Some("not Ready"))]
    #[case::finalizer("2026-11-12T09:30:00Z", json!(["x.io/wait"]), "True", Some("x.io/wait"))]
    #[case::neither("2026-11-12T09:30:00Z", json!([]), "True", Some("kubelet"))]
    #[case::within_its_grace("2026-11-12T10:00:20Z", json!([]), "True", None)]
    #[case::a_moment_past("2026-11-12T09:59:30Z", json!([]), "True", None)]
    fn causes(#[case] deletion: &str, #[case] finalizers: Value, #[case] ready: &str, #[case] words: Option<&str>) {
        let world = kit(deletion, finalizers, ready).build();
        match words {
            None => assert!(world.none(Code::StuckTerminating)),
            Some(words) => {
                let finding = world.only(Code::StuckTerminating);
                assert!(finding.summary.contains(words), "{}", finding.summary);
            }
        }
    }
}
