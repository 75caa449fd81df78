//! What several rules of this family say or look up in the same words.

use crate::model::object::{Condition, Hpa, Object};
use crate::model::{Evidence, Place, Subject};
use crate::world::World;

/// A condition as evidence.
pub(super) fn condition_proof(object: &Object, condition: &Condition) -> Evidence {
    Evidence::new(&object.subject(), Place::Condition(condition.kind.clone()), condition.shown(), condition.since).of_uid(&object.meta.uid)
}

/// What a scaled object is left at, in words: "replicas stay at 3".
pub(super) fn stays(world: &World, target: &Subject) -> String {
    match world.asked_of(target) {
        Some(replicas) => format!("replicas stay at {replicas}"),
        None => "replicas stay as they are".to_owned(),
    }
}

/// Names of an HPA's metrics in words.
pub(super) fn metric_names(hpa: &Hpa) -> String {
    let names: Vec<&str> = hpa.metrics.iter().map(|metric| metric.name.as_str()).filter(|name| !name.is_empty()).collect();
    if names.is_empty() { "cpu (the default)".to_owned() } else { names.join(", ") }
}

/// Names of metrics in a query: words that hold a colon or an underscore, as Prometheus metrics of engines and routers do.
pub(super) fn metrics_in(query: &str) -> Vec<&str> {
    let mut out: Vec<&str> = Vec::new();
    let mut in_braces = 0usize;
    let mut start: Option<usize> = None;
    let mut quoted = false;
    let mut push = |from: Option<usize>, to: usize| {
        if let Some(word) = from.and_then(|from| query.get(from..to))
            && word.contains([':', '_'])
            && !word.ends_with("_over_time")
            && !matches!(
                word,
                "histogram_quantile"
                    | "label_replace"
                    | "label_join"
                    | "count_values"
                    | "group_left"
                    | "group_right"
                    | "quantile_over_time"
                    | "sort_desc"
            )
            && !out.contains(&word)
        {
            out.push(word);
        }
    };
    for (at, c) in query.char_indices() {
        if c == '"' {
            quoted = !quoted;
        }
        match c {
            _ if quoted => {}
            '{' => in_braces += 1,
            '}' => in_braces = in_braces.saturating_sub(1),
            _ => {}
        }
        let part = !quoted && in_braces == 0 && (c.is_ascii_alphanumeric() || c == '_' || c == ':');
        match (part, start) {
            (true, None) if !c.is_ascii_digit() => start = Some(at),
            (false, Some(_)) => push(start.take(), at),
            _ => {}
        }
    }
    push(start, query.len());
    out
}

/// Prefixes of metrics that engines, their GPUs and containers export.
const ENGINE: &[&str] = &[
    "vllm:",
    "vllm_",
    "ray_vllm",
    "sglang:",
    "sglang_",
    "trtllm_",
    "nv_trt_llm",
    "tgi_",
    "llamacpp:",
    "lmdeploy:",
    "DCGM_FI_",
    "container_",
    "nv_inference_",
];

/// Whether only a running engine exports a metric: its name is of an engine, not of a router, proxy or queue in front of it. Adapters write
/// `_` for the colon.
pub(super) fn only_while_running(metric: &str) -> bool {
    ENGINE.iter().any(|prefix| metric.starts_with(prefix))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case(r#"sum(vllm:num_requests_waiting{model_name="qwen_a"})"#, &["vllm:num_requests_waiting"])]
    #[case("sum(rate(a_total[1m])) + max_over_time(b:c[5m]) or vector(0)", &["a_total", "b:c"])]
    #[case("histogram_quantile(0.9, sum by (le) (x_bucket))", &["x_bucket"])]
    #[case("", &[])]
    fn names(#[case] query: &str, #[case] wanted: &[&str]) {
        assert_eq!(metrics_in(query), wanted);
    }

    #[rstest]
    #[case("vllm:num_requests_waiting", true)]
    #[case("vllm_num_requests_waiting", true)]
    #[case("sglang:num_queue_reqs", true)]
    #[case("llm_d_epp_flow_control_queue_size", false)]
    #[case("my_queue", false)]
    fn metrics_of_engines(#[case] metric: &str, #[case] engine: bool) {
        assert_eq!(only_while_running(metric), engine);
    }
}
