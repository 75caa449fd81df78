//! `idle-gpu-holder`: GPUs are requested, and no request was served for a long time.

use crate::diagnose::support::counted;
use crate::model::finding::{Code, Finding};
use crate::model::{Evidence, time};
use crate::world::World;

pub(super) fn check(world: &World, out: &mut Vec<Finding>) {
    for (subject, idle) in &world.gpu.idle {
        let Some(first) = idle.evidence.first() else { continue };
        let held = time::span(time::seconds_between(idle.since, world.now));
        let mut finding = Finding::new(
            Code::IdleGpuHolder,
            subject,
            format!("{} holds {} and has served no request for {held}", subject.name(), counted(idle.gpus as usize, "GPU")),
            first.clone().seen_at(first.at),
        )
        .proofs(idle.evidence.iter().cloned())
        .proof(Evidence::field(subject, "spec.containers[].resources.requests", counted(idle.gpus as usize, "GPU")));
        if let Some(workload) = world.replicas.get(subject).and_then(|replica| replica.workload.as_ref()) {
            finding = finding.also(workload);
        }
        out.push(finding.remedy("scale it in, let it sleep, or let it scale to zero, if nobody needs it ready at once"));
    }
}

#[cfg(test)]
mod tests {
    use crate::diagnose::testkit::{Kit, vllm_page};
    use crate::model::finding::Code;
    use rstest::rstest;

    #[rstest]
    #[case::never_served(0.0, 0.0, 1, true)]
    #[case::has_served(0.0, 50.0, 1, false)]
    #[case::is_busy(1.0, 0.0, 1, false)]
    #[case::holds_none(0.0, 0.0, 0, false)]
    fn by_counters_since_the_start(#[case] running: f64, #[case] tokens: f64, #[case] gpus: u32, #[case] fires: bool) {
        let page = vllm_page(running, 0.0, tokens)
            .replace("prompt_tokens_total{engine=\"0\",model_name=\"m\"} 100", "prompt_tokens_total{engine=\"0\",model_name=\"m\"} 0");
        let world = Kit::new()
            .node("n1", 8, |_| ())
            .gpu_pod("a", "n1", gpus, |_| ())
            .page("a", 0, &page)
            .answer("a", "/health", Ok((200, "")))
            .build();
        assert_eq!(!world.none(Code::IdleGpuHolder), fires, "{:?} {:?}", world.findings, world.world.replicas);
    }

    #[test]
    fn a_replica_that_has_just_come_up_is_not_idle() {
        let page = vllm_page(0.0, 0.0, 0.0).replace("} 100", "} 0");
        let world = Kit::new()
            .node("n1", 8, |_| ())
            .gpu_pod("a", "n1", 1, |pod| pod["status"]["conditions"][3]["lastTransitionTime"] = "2026-11-12T09:55:00Z".into())
            .page("a", 0, &page)
            .build();
        assert!(world.none(Code::IdleGpuHolder));
    }
}
