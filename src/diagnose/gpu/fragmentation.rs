//! `fragmentation`: enough GPUs are free, and no allowed node has enough of them.

use crate::model::finding::{Code, Finding};
use crate::model::{Evidence, Place, Subject};
use crate::world::World;
use crate::world::gpu::Waiting;
use crate::world::gpu::fit::{Offer, Refusal};

pub(super) fn check(world: &World, out: &mut Vec<Finding>) {
    for (subject, waiting) in &world.gpu.waiting {
        let (Ok(largest), Ok(free)) = (&waiting.largest_block, waiting.free_anywhere()) else { continue };
        if *largest >= waiting.needed || free < waiting.needed {
            continue;
        }
        out.push(finding(world, subject, waiting, free, *largest));
    }
}

fn finding(world: &World, subject: &Subject, waiting: &Waiting, free: u32, largest: u32) -> Finding {
    let with_free = || waiting.nodes.iter().filter(|offer| offer.free.as_ref().is_ok_and(|free| *free > 0));
    let blocks: Vec<String> =
        with_free().filter(|offer| offer.refused.is_none()).map(|offer| format!("{} {}", offer.node.name(), free_of(offer))).collect();
    let refused: Vec<String> = with_free()
        .filter_map(|offer| Some(format!("{} ({} free) {}", offer.node.name(), free_of(offer), offer.refused.as_ref()?.words())))
        .collect();
    let mut words = format!("{} needs {} GPUs on one node; {free} are free", subject.name(), waiting.needed);
    words = match blocks.as_slice() {
        [] => format!("{words}, none of them on a node that takes it"),
        _ => format!("{words}, on nodes that take it at most {largest} together ({})", blocks.join(", ")),
    };
    if !refused.is_empty() {
        words = format!("{words}; {}", refused.join("; "));
    }
    let condition = world.objects.pod(subject).and_then(|(object, pod)| {
        let scheduled = pod.condition("PodScheduled")?;
        Some(Evidence::new(subject, Place::Condition("PodScheduled".into()), scheduled.shown(), scheduled.since).of_uid(&object.meta.uid))
    });
    let needs =
        Evidence::field(subject, &format!("spec.containers[].resources.requests[{}]", waiting.resource), waiting.needed.to_string());
    let mut finding = Finding::new(Code::Fragmentation, subject, words, condition.unwrap_or_else(|| needs.clone())).proof(needs);
    for offer in with_free().take(20) {
        let path = format!("status.allocatable[{}]", waiting.resource);
        finding = finding.proof(Evidence::field(&offer.node, &path, format!("{} free", free_of(offer))));
        if let Some(Refusal::Taint(taint)) = &offer.refused {
            finding = finding.proof(Evidence::field(&offer.node, "spec.taints", taint.clone()));
        }
        if offer.refused == Some(Refusal::Cordoned) {
            finding = finding.proof(Evidence::field(&offer.node, "spec.unschedulable", "true"));
        }
    }
    ways_out(world, subject, waiting, largest, finding)
}

fn free_of(offer: &Offer) -> u32 {
    offer.free.clone().unwrap_or(0)
}

fn ways_out(world: &World, subject: &Subject, waiting: &Waiting, largest: u32, mut finding: Finding) -> Finding {
    let fits = |offer: &&Offer| offer.free.as_ref().is_ok_and(|free| *free >= waiting.needed);
    for offer in waiting.nodes.iter().filter(fits) {
        match &offer.refused {
            Some(Refusal::Taint(taint)) => {
                finding = finding.remedy(format!(
                    "let it tolerate {taint}, if it may run on {} ({} free there)",
                    offer.node.name(),
                    free_of(offer)
                ));
            }
            Some(Refusal::Cordoned) => {
                finding = finding.remedy(format!("uncordon {} ({} free), if its maintenance is over", offer.node.name(), free_of(offer)))
            }
            Some(Refusal::Selector(what)) => {
                finding = finding.remedy(format!(
                    "widen its node selector or affinity ({what}) to {} ({} free)",
                    offer.node.name(),
                    free_of(offer)
                ));
            }
            Some(Refusal::NotReady) | None => {}
        }
    }
    // One pod whose leaving makes the block large enough; the smallest of them.
    let movable = waiting
        .allowed()
        .filter_map(|offer| Some((offer, world.gpu.nodes.get(&offer.node)?)))
        .flat_map(|(offer, node)| node.pods.iter().map(move |pod| (offer, pod)))
        .filter_map(|(offer, pod)| {
            let held = world.objects.pod(pod)?.1.spec.gpu_requests().get(&waiting.resource).copied()?;
            (free_of(offer).saturating_add(held) >= waiting.needed).then_some((held, pod, &offer.node))
        })
        .min();
    finding = match movable {
        Some((held, pod, node)) if held < waiting.needed => {
            finding.remedy(format!("move a smaller pod away: without {} ({held} GPUs) {} would have enough", pod.name(), node.name()))
        }
        Some((held, pod, node)) => finding.remedy(format!(
            "no smaller pod stands in the way: to move {} ({held} GPUs) off {} would do, and needs {held} elsewhere",
            pod.name(),
            node.name()
        )),
        None => finding.remedy("move small pods together, so that one allowed node gets enough free GPUs"),
    };
    if largest > 0 {
        let resource = if largest == 1 { "GPU".to_owned() } else { "GPUs".to_owned() };
        finding = finding.remedy(format!(
            "run {} with a smaller tensor-parallel size: {largest} {resource} fit now, if the model fits into their memory",
            subject.name()
        ));
    }
    finding
}

#[cfg(test)]
mod tests {
    use crate::diagnose::testkit::Kit;
    use crate::model::finding::Code;
    use rstest::rstest;
    use serde_json::json;

    fn kit() -> Kit {
        Kit::new().node("n1", 8, |_| ()).node("n2", 8, |_| ()).gpu_pod("a", "n1", 6, |_| ()).gpu_pod("b", "n2", 6, |_| ())
    }

    #[rstest]
    #[case::enough_in_pieces(4, true)]
    #[case::fits(2, false)]
    #[case::not_enough_at_all(5, false)]
    fn by_need(#[case] needed: u32, #[case] fires: bool) {
        let world = kit().waiting_pod("w", needed, |_| ()).build();
        assert_eq!(!world.none(Code::Fragmentation), fires, "{:?}", world.findings);
    }

    #[rstest]
    #[case::tainted(json!({"taints": [{"key": "dedicated", "value": "batch", "effect": "NoSchedule"}]}), "dedicated=batch:NoSchedule")]
    #[case::cordoned(json!({"unschedulable": true}), "uncordon n3")]
    fn a_node_that_refuses_it_is_named_with_the_way_in(#[case] spec: serde_json::Value, #[case] word: &str) {
        let finding = kit().node("n3", 8, |node| node["spec"] = spec).waiting_pod("w", 4, |_| ()).build().only(Code::Fragmentation);
        assert!(finding.remedies.iter().any(|remedy| remedy.contains(word)), "{:?}", finding.remedies);
        assert!(finding.remedies.iter().any(|remedy| remedy.contains("to move a (6 GPUs) off n1")), "{:?}", finding.remedies);
        assert!(finding.remedies.iter().any(|remedy| remedy.contains("tensor-parallel")), "{:?}", finding.remedies);
    }

    #[rstest]
    #[case::tolerated(json!({"tolerations": [{"key": "dedicated", "operator": "Exists"}]}), true)]
    #[case::by_affinity(json!({"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
        {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "NotIn", "values": ["n3"]}]}]}}}}), false)]
    fn what_the_pod_says_decides(#[case] spec: serde_json::Value, #[case] silent: bool) {
        let world = kit()
            .node("n3", 8, |node| node["spec"]["taints"] = json!([{"key": "dedicated", "value": "batch", "effect": "NoSchedule"}]))
            .waiting_pod("w", 4, |pod| {
                for (key, value) in spec.as_object().unwrap() {
                    pod["spec"][key] = value.clone();
                }
            })
            .build();
        assert_eq!(world.none(Code::Fragmentation), silent);
    }

    #[test]
    fn slots_of_a_pod_that_is_being_deleted_are_not_free() {
        let world = kit()
            .node("n3", 4, |_| ())
            .gpu_pod("c", "n3", 4, |pod| {
                pod["metadata"]["deletionTimestamp"] = "2026-11-12T10:01:00Z".into();
            })
            .waiting_pod("w", 4, |_| ())
            .build();
        assert_eq!(world.world.gpu.nodes[&crate::model::Subject::node("n3")].free(), Ok(0));
    }
}
