//! `kv-transfer-pending`: a prefill engine without a request of its own still holds KV that decode has not fetched: it is not drained.
//!
//! vLLM frees the blocks of a finished prefill when decode has read them, or after `VLLM_NIXL_ABORT_REQUEST_TIMEOUT` (480 s). Blocks
//! of the prefix cache do not count as used, so use above 0 without a request is KV that somebody still has to fetch.

use crate::diagnose::support::number;
use crate::engines::MetricPage;
use crate::model::engine::EngineKind;
use crate::model::finding::{Code, Finding};
use crate::model::service::{ModelService, Replica, RoleKind};
use crate::model::{Evidence, Place};
use crate::world::World;

/// Use below this is rounding, not KV.
const HELD: f64 = 0.001;

pub(super) fn check(world: &World, out: &mut Vec<Finding>) {
    for service in world.services.values() {
        for role in service.roles.iter().filter(|role| role.kind == RoleKind::Prefill) {
            let pods = role.replicas.iter().filter_map(|replica| world.replicas.get(replica)).filter_map(|replica| {
                replica.pods.first().and_then(|pod| world.replicas.get(pod))
            });
            out.extend(pods.filter_map(|replica| pending(world, service, replica)));
        }
    }
}

fn pending(world: &World, service: &ModelService, replica: &Replica) -> Option<Finding> {
    let engine = replica.engine.as_ref().ok().filter(|engine| engine.kind == Ok(EngineKind::Vllm))?;
    let load = engine.load.as_ref().ok()?;
    let (running, waiting) = (load.running.as_ref().ok()?, load.waiting.as_ref().ok()?);
    let usage = load.kv_usage.as_ref().ok()?;
    if running.value > 0.0 || waiting.value > 0.0 || usage.value <= HELD {
        return None;
    }
    let subject = &replica.subject;
    // Its counters must have stood still since the page before: a request may have come and gone in between.
    if engine.movement == Ok(true) {
        return None;
    }
    let deferred = deferred(world, service);
    let leaving = world.objects.get(subject).is_some_and(|object| object.meta.deletion.is_some());
    let waits = deferred.as_ref().map(|(n, _)| format!("; {} requests wait on decode for KV", number(*n))).unwrap_or_default();
    let end = if leaving { ": it is being deleted, and what it holds is lost with it" } else { ": it is not drained yet" };
    let mut finding = Finding::new(
        Code::KvTransferPending,
        subject,
        format!(
            "{} has no request of its own (0 running, 0 waiting) and still holds {:.1} % of its KV cache, which decode has not fetched{waits}{end}",
            subject.name(), usage.value * 100.0
        ),
        Evidence::new(subject, Place::Metric(usage.source.clone()), number(usage.value), Some(usage.at)),
    );
    for fact in [running, waiting] {
        finding = finding.proof(Evidence::new(subject, Place::Metric(fact.source.clone()), number(fact.value), Some(fact.at)));
    }
    finding = finding.proofs(deferred.map(|(_, proof)| proof));
    Some(
        finding
            .remedy("wait until its KV use is 0, not only until nothing runs")
            .remedy("see why decode does not fetch it: decode down, full, or not able to reach this pod; the engine gives it up after VLLM_NIXL_ABORT_REQUEST_TIMEOUT (480 s)")
            .not("take 0 running and 0 waiting for drained: to stop it now fails the requests whose KV it holds"),
    )
}

/// Requests that wait on decode for KV, over all its engines, with one that shows it.
fn deferred(world: &World, service: &ModelService) -> Option<(f64, Evidence)> {
    let pods = service.roles.iter().filter(|role| role.kind == RoleKind::Decode).flat_map(|role| &role.replicas);
    let mut sum = 0.0;
    let mut proof = None;
    for replica in pods.filter_map(|replica| world.replicas.get(replica)) {
        let Some(pod) = replica.pods.first() else { continue };
        let Some(page) = world.pages.get(pod).and_then(|pages| pages.last()) else { continue };
        let Some(n) = waiting_for_kv(page).filter(|n| *n > 0.0) else { continue };
        sum += n;
        let place = Place::Metric("vllm:num_requests_waiting_by_reason{reason=\"deferred\"}".into());
        proof.get_or_insert(Evidence::new(pod, place, number(n), Some(page.at)));
    }
    proof.map(|proof| (sum, proof))
}

fn waiting_for_kv(page: &MetricPage) -> Option<f64> {
    let family = page.page.family("vllm:num_requests_waiting_by_reason");
    let values: Vec<f64> = family.filter(|sample| sample.label("reason") == Some("deferred")).map(|sample| sample.value()).collect();
    (!values.is_empty()).then(|| values.iter().sum())
}

#[cfg(test)]
mod tests {
    use crate::diagnose::testkit::Kit;
    use crate::model::finding::Code;
    use rstest::rstest;
    use serde_json::json;

    fn page(running: f64, usage: f64, tokens: f64) -> String {
        let labels = r#"{engine="0",model_name="m"}"#;
        format!(
            "# TYPE vllm:num_requests_running gauge\nvllm:num_requests_running{labels} {running}\n\
             # TYPE vllm:num_requests_waiting gauge\nvllm:num_requests_waiting{labels} 0\n\
             # TYPE vllm:kv_cache_usage_perc gauge\nvllm:kv_cache_usage_perc{labels} {usage}\n\
             # TYPE vllm:prompt_tokens_total counter\nvllm:prompt_tokens_total{labels} {tokens}\n"
        )
    }

    fn kit(role: &str, running: f64, usage: f64, tokens: f64) -> Kit {
        Kit::new()
            .pod_with("a", |pod| pod["metadata"]["labels"] = json!({"llm-d.ai/model": "m", "llm-d.ai/role": role}))
            .pod_with("b", |pod| pod["metadata"]["labels"] = json!({"llm-d.ai/model": "m", "llm-d.ai/role": "decode"}))
            .page("a", -30, &page(running, usage, 100.0))
            .page("a", 0, &page(running, usage, tokens))
            .page("b", 0, "# TYPE vllm:num_requests_waiting_by_reason gauge\nvllm:num_requests_waiting_by_reason{reason=\"deferred\"} 3\n")
    }

    #[rstest]
    #[case::held("prefill", 0.0, 0.2, 100.0, true)]
    #[case::still_busy("prefill", 1.0, 0.2, 100.0, false)]
    #[case::empty("prefill", 0.0, 0.0, 100.0, false)]
    #[case::requests_pass("prefill", 0.0, 0.2, 900.0, false)]
    #[case::not_a_prefill("aggregate", 0.0, 0.2, 100.0, false)]
    fn fires_or_not(#[case] role: &str, #[case] running: f64, #[case] usage: f64, #[case] tokens: f64, #[case] fires: bool) {
        let world = kit(role, running, usage, tokens).build();
        assert_eq!(world.none(Code::KvTransferPending), !fires, "{:?}", world.findings);
        if fires {
            let finding = world.only(Code::KvTransferPending);
            assert!(finding.summary.contains("3 requests wait on decode"), "{}", finding.summary);
        }
    }
}
