//! `gpu-unhealthy`: a node has fewer allocatable GPUs than it should.

use crate::diagnose::support::{counted, number};
use crate::model::finding::{Code, Finding};
use crate::model::{Evidence, Place};
use crate::world::World;

pub(super) fn check(world: &World, out: &mut Vec<Finding>) {
    for (subject, node) in &world.gpu.nodes {
        let (capacity, allocatable) = (node.capacity(), node.allocatable());
        let lacking = node.unhealthy();
        // A plugin that came back without a card counts it out of the capacity as well: the label of the machine remembers it.
        let gone = node.promised.as_ref().filter(|(promised, _)| lacking == 0 && capacity > 0 && *promised > capacity);
        let (lacking, words, proof) = match (lacking, gone) {
            (0, None) => continue,
            (0, Some((promised, proof))) => {
                let lacking = promised.saturating_sub(capacity);
                let words = format!("{} of {promised} GPUs of {} are missing: its plugin offers {capacity}", lacking, subject.name());
                (lacking, words, proof.clone())
            }
            (lacking, _) => {
                let words = format!(
                    "{} of {} {} not healthy: {allocatable} of {capacity} can be requested",
                    counted(lacking as usize, "GPU"),
                    subject.name(),
                    if lacking == 1 { "is" } else { "are" }
                );
                (lacking, words, Evidence::field(subject, "status.capacity", capacity.to_string()))
            }
        };
        let mut finding = Finding::new(Code::GpuUnhealthy, subject, words, proof).proof(Evidence::field(
            subject,
            "status.allocatable",
            format!("{allocatable} ({lacking} fewer than there should be)"),
        ));
        if let Ok(requested) = node.requested() {
            let free = node.free().unwrap_or(0);
            finding = finding.proof(Evidence::field(subject, "requests of its pods", format!("{requested} requested, {free} free")));
            if requested > allocatable {
                finding.summary = format!("{}; pods hold {requested}, so one of them has a card that is gone", finding.summary);
            }
        }
        for (device, seen) in world.gpu.devices_of(subject) {
            if let Some(xid) = seen.xid.filter(|xid| *xid != 0.0) {
                let place = Place::Metric("DCGM_FI_DEV_XID_ERRORS".into());
                finding = finding.also(device).proof(Evidence::new(
                    device,
                    place,
                    format!("XID {} on {}", number(xid), seen.uuid),
                    Some(seen.at),
                ));
            }
        }
        out.push(
            finding
                .remedy("find the device: health in the device plugin's log and in dmesg (XID), allocatedResourcesStatus of its pods")
                .remedy("drain the node's GPU pods and reset the device or reboot the node; the plugin offers it again when it is healthy")
                .not("count free GPUs from capacity: what is not allocatable can not be requested"),
        );
    }
}

#[cfg(test)]
mod tests {
    use crate::diagnose::testkit::Kit;
    use crate::model::finding::Code;
    use rstest::rstest;

    #[rstest]
    #[case::well("8", "8", None, false)]
    #[case::one_lost("8", "7", None, true)]
    #[case::counted_out("7", "7", Some(("8", "1")), true)]
    #[case::sliced("32", "32", Some(("8", "4")), false)]
    #[case::slice_lost("32", "28", Some(("8", "4")), true)]
    fn allocatable_beside_what_should_be(
        #[case] capacity: &str,
        #[case] allocatable: &str,
        #[case] labels: Option<(&str, &str)>,
        #[case] fires: bool,
    ) {
        let world = Kit::new()
            .node("n1", 8, |node| {
                node["status"]["capacity"]["nvidia.com/gpu"] = capacity.into();
                node["status"]["allocatable"]["nvidia.com/gpu"] = allocatable.into();
                if let Some((count, replicas)) = labels {
                    node["metadata"]["labels"]["nvidia.com/gpu.count"] = count.into();
                    node["metadata"]["labels"]["nvidia.com/gpu.replicas"] = replicas.into();
                }
            })
            .build();
        assert_eq!(!world.none(Code::GpuUnhealthy), fires, "{:?}", world.findings);
    }
}
