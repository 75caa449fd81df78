//! `node-rejects-all-gpu-pods`: a node takes GPU pods and fails each of them, or offers no GPU although it has some.

use jiff::Timestamp;

use crate::diagnose::support::counted;
use crate::model::finding::{Code, Finding};
use crate::model::object::{ContainerState, Object, Pod};
use crate::model::{Evidence, Subject};
use crate::world::World;
use crate::world::gpu::NodeGpus;

/// Reasons with which a kubelet fails a pod that it could not give its devices.
const REJECTED: &[&str] = &["UnexpectedAdmissionError", "OutOfnvidia.com/gpu", "OutOfamd.com/gpu"];

pub(super) fn check(world: &World, out: &mut Vec<Finding>) {
    for (subject, node) in &world.gpu.nodes {
        if let Some(finding) = offers_none(subject, node).or_else(|| fails_each(world, subject)) {
            out.push(plugin(world, subject, finding));
        }
    }
}

fn offers_none(subject: &Subject, node: &NodeGpus) -> Option<Finding> {
    if node.allocatable() > 0 {
        return None;
    }
    let (has, proof) = match (node.capacity(), &node.promised) {
        (0, Some((promised, proof))) if *promised > 0 => (*promised, proof.clone()),
        (0, _) => {
            // "0" with the key there: the plugin registered once and is gone, or every device is unhealthy.
            let name = node.resources.keys().next()?;
            (0, Evidence::field(subject, &format!("status.capacity[{name}]"), "0"))
        }
        (capacity, _) => (capacity, Evidence::field(subject, "status.capacity", capacity.to_string())),
    };
    let words = match has {
        0 => format!("{} offers no GPU: its device plugin is gone, or all its devices are unhealthy", subject.name()),
        n => format!(
            "{} has {} and offers none: its device plugin is down, or all are unhealthy",
            subject.name(),
            counted(n as usize, "GPU")
        ),
    };
    Some(Finding::new(Code::NodeRejectsAllGpuPods, subject, words, proof).proof(Evidence::field(subject, "status.allocatable", "0")))
}

/// At least two pods were failed at admission, and none has come up on the node since the first of them.
fn fails_each(world: &World, subject: &Subject) -> Option<Finding> {
    let on_node = || world.objects.pods().filter(|(_, pod)| pod.node == subject.name() && pod.spec.gpus() > 0);
    let failed: Vec<(&Object, &Pod)> = on_node().filter(|(_, pod)| REJECTED.contains(&pod.reason.as_str())).collect();
    let (first, _) = failed.iter().min_by_key(|(object, _)| object.meta.created)?;
    let since: Option<Timestamp> = first.meta.created;
    let came_up = on_node().any(|(_, pod)| {
        pod.containers.iter().any(|status| matches!(status.state, ContainerState::Running { since: started } if started >= since))
    });
    if failed.len() < 2 || came_up {
        return None;
    }
    let (newest, body) = failed.iter().max_by_key(|(object, _)| object.meta.created)?;
    let message = if body.message.is_empty() { String::new() } else { format!(": {}", body.message) };
    let words = format!(
        "{} took {} since {} and failed each of them ({}{message})",
        subject.name(),
        counted(failed.len(), "GPU pod"),
        since.map_or_else(|| "an unknown time".into(), |at| at.to_string()),
        body.reason
    );
    let proof = |object: &Object, body: &Pod| {
        let value = if body.message.is_empty() { body.reason.clone() } else { format!("{}: {}", body.reason, body.message) };
        Evidence::field(&object.subject(), "status.reason", value).of_uid(&object.meta.uid).seen_at(object.meta.created)
    };
    let mut finding = Finding::new(Code::NodeRejectsAllGpuPods, subject, words, proof(newest, body));
    for (object, body) in failed.iter().take(5) {
        finding = finding.also(&object.subject()).proof(proof(object, body));
    }
    Some(finding)
}

/// Adds what is seen of the device plugin on the node, and what to do.
fn plugin(world: &World, subject: &Subject, finding: Finding) -> Finding {
    let pod = world.objects.pods().find(|(_, pod)| {
        pod.node == subject.name()
            && pod
                .spec
                .containers
                .iter()
                .any(|container| container.image.contains("device-plugin") || container.name.contains("device-plugin"))
    });
    let finding = match pod {
        Some((object, body)) => finding.also(&object.subject()).proof(crate::diagnose::support::ready_proof(object, body)),
        None => finding,
    };
    finding
        .remedy(format!("cordon {}, so that no further pod is sent there", subject.name()))
        .remedy("look at the device plugin on the node and restart its pod; then at the driver (nvidia-smi, dmesg)")
        .remedy("delete the failed pods: their workload makes new ones elsewhere")
}

#[cfg(test)]
mod tests {
    use crate::diagnose::testkit::Kit;
    use crate::model::finding::Code;
    use rstest::rstest;
    use serde_json::{Value, json};

    fn failed(pod: &mut Value) {
        pod["status"] = json!({"phase": "Failed", "reason": "UnexpectedAdmissionError",
            "message": "Allocate failed due to no healthy devices present; cannot allocate unhealthy devices nvidia.com/gpu"});
    }

    fn count(gpus: &'static str) -> impl FnOnce(&mut Value) {
        move |node| node["status"]["allocatable"]["nvidia.com/gpu"] = gpus.into()
    }

    #[rstest]
    #[case::two(2, false, true)]
    #[case::one(1, false, false)]
    #[case::and_one_came_up(2, true, false)]
    fn pods_that_fail_at_admission(#[case] failures: usize, #[case] up: bool, #[case] fires: bool) {
        let mut kit = Kit::new().node("n1", 8, |_| ());
        for name in ["a", "b"].into_iter().take(failures) {
            kit = kit.gpu_pod(name, "n1", 1, failed);
        }
        if up {
            kit = kit.gpu_pod("c", "n1", 1, |_| ());
        }
        let world = kit.build();
        assert_eq!(!world.none(Code::NodeRejectsAllGpuPods), fires, "{:?}", world.findings);
    }

    #[test]
    fn a_node_that_offers_none() {
        let world = Kit::new().node("n1", 8, count("0")).build();
        assert!(world.only(Code::NodeRejectsAllGpuPods).summary.contains("has 8 GPUs and offers none"));
        let never = Kit::new().node("n1", 0, |node| {
            node["status"] = json!({"capacity": {}, "allocatable": {}});
            node["metadata"]["labels"]["nvidia.com/gpu.count"] = "8".into();
        });
        assert!(!never.build().none(Code::NodeRejectsAllGpuPods));
        assert!(Kit::new().node("n1", 8, count("1")).build().none(Code::NodeRejectsAllGpuPods));
    }
}
