//! `exporter-without-pod-labels`: the GPU exporter does not say which pod uses a device.

use crate::diagnose::support::counted;
use crate::model::finding::{Code, Finding};
use crate::model::object::ContainerState;
use crate::model::{Evidence, Place, Subject};
use crate::world::World;

pub(super) fn check(world: &World, out: &mut Vec<Finding>) {
    for (subject, node) in &world.gpu.nodes {
        let devices: Vec<_> = world.gpu.devices_of(subject).collect();
        let Some((_, first)) = devices.first() else { continue };
        if devices.iter().any(|(_, device)| device.held_by.is_ok()) {
            continue;
        }
        // Devices of a node on which no pod runs have no pod to name.
        let users: Vec<&Subject> =
            node.pods
                .iter()
                .filter(|pod| {
                    world.objects.pod(pod).is_some_and(|(_, body)| {
                        body.containers.iter().any(|status| matches!(status.state, ContainerState::Running { .. }))
                    })
                })
                .collect();
        let Some(pod) = users.first() else { continue };
        out.push(
            Finding::new(
                Code::ExporterWithoutPodLabels,
                subject,
                format!(
                    "the GPU exporter of {} names no pod on any of {}, though {} on it use GPUs: which pod uses which card is not known",
                    subject.name(),
                    counted(devices.len(), "device"),
                    counted(users.len(), "pod")
                ),
                Evidence::new(
                    subject,
                    Place::Metric("DCGM_FI_DEV_FB_USED".into()),
                    "labels pod, namespace, container empty",
                    Some(first.at),
                ),
            )
            .proof(Evidence::field(pod, "spec.containers[].resources.requests", "requests GPUs"))
            .remedy("run the exporter with --kubernetes (DCGM_EXPORTER_KUBERNETES=true) and mount the kubelet's pod-resources socket")
            .not("take a card at 0 % for free: what pods request is held, whatever its use"),
        );
    }
}

#[cfg(test)]
mod tests {
    use crate::diagnose::testkit::Kit;
    use crate::model::finding::Code;
    use rstest::rstest;

    #[rstest]
    #[case::none_named(&[(0, 100, ""), (1, 100, "")], true)]
    #[case::one_named(&[(0, 100, "a"), (1, 100, "")], false)]
    fn labels(#[case] cards: &[(u32, u32, &str)], #[case] fires: bool) {
        let world = Kit::new().node("n1", 2, |_| ()).gpu_pod("a", "n1", 1, |_| ()).exporter("n1", cards).build();
        assert_eq!(!world.none(Code::ExporterWithoutPodLabels), fires, "{:?}", world.findings);
    }

    #[test]
    fn silent_where_no_pod_runs() {
        assert!(Kit::new().node("n1", 2, |_| ()).exporter("n1", &[(0, 4, "")]).build().none(Code::ExporterWithoutPodLabels));
    }
}
