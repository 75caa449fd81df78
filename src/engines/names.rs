//! Names of series, by engine and meaning, newest name first.
//!
//! Owns the names and their order. vLLM's were read in releases 0.8.5 to 0.33.0 and on captured pages of its V0 engine, SGLang's in
//! 0.4.10 to 0.5.23, the others from their projects' documentation. Must not read pages.

use std::sync::LazyLock;

use super::exposition::Filter;
use crate::model::engine::EngineKind;

/// One name a series can have, without prefix, and the label that picks one meaning of many.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Name {
    pub(super) base: &'static str,
    pub(super) only: Option<(&'static str, &'static str)>,
}

const fn n(base: &'static str) -> Name {
    Name { base, only: None }
}

const fn only(base: &'static str, label: &'static str, value: &'static str) -> Name {
    Name { base, only: Some((label, value)) }
}

/// How finished requests are told apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reason {
    /// By the value of a label.
    Label(&'static str),
    /// The whole series has one meaning.
    Fixed(&'static str),
}

/// All that is read of one engine's page.
#[derive(Debug)]
pub(super) struct Names {
    /// Prefixes of its families, the usual one first. Ray Serve puts `ray_` before them, and newer ones replace the colon.
    pub(super) prefixes: &'static [&'static str],
    pub(super) running: &'static [Name],
    pub(super) waiting: &'static [Name],
    pub(super) swapped: &'static [Name],
    pub(super) kv_usage: &'static [Name],
    pub(super) prompt_tokens: &'static [Name],
    pub(super) generation_tokens: &'static [Name],
    pub(super) finished: &'static [(&'static [&'static str], Reason)],
    pub(super) ttft: &'static [&'static str],
    pub(super) inter_token: &'static [&'static str],
    pub(super) e2e: &'static [&'static str],
    /// Histograms whose count shows life where the token counters move only when a request ends.
    pub(super) signs: &'static [&'static str],
    /// Gauges whose change shows the same.
    pub(super) sign_gauges: &'static [&'static str],
    /// Read for other reasons.
    pub(super) others: &'static [&'static str],
}

/// vLLM.
pub(super) static VLLM: Names = Names {
    prefixes: &["vllm:", "ray_vllm:", "ray_vllm_"],
    running: &[n("num_requests_running")],
    waiting: &[n("num_requests_waiting")],
    // Gone with the V0 engine (by 0.10.2).
    swapped: &[n("num_requests_swapped")],
    // Both in 0.10.2; the old one gone by 0.12.0.
    kv_usage: &[n("kv_cache_usage_perc"), n("gpu_cache_usage_perc")],
    prompt_tokens: &[n("prompt_tokens_total")],
    generation_tokens: &[n("generation_tokens_total")],
    finished: &[(&["request_success_total"], Reason::Label("finished_reason"))],
    ttft: &["time_to_first_token_seconds"],
    // Both in 0.10.2; the old one hidden in 0.12, gone by 0.16.
    inter_token: &["inter_token_latency_seconds", "time_per_output_token_seconds"],
    e2e: &["e2e_request_latency_seconds"],
    signs: &[],
    sign_gauges: &[],
    others: &[
        "engine_sleep_state",
        "sleep_mode_operations_in_flight",
        "lora_requests_info",
        "num_requests_waiting_by_reason",
        "cache_config_info",
        "num_preemptions_total",
        "admission_rejections_total",
        "cpu_cache_usage_perc",
        "prefix_cache_queries_total",
        "prefix_cache_hits_total",
        "gpu_prefix_cache_queries_total",
        "gpu_prefix_cache_hits_total",
        "prompt_tokens_by_source_total",
        "request_queue_time_seconds",
    ],
};

/// SGLang. Its token counters grow only when a request ends (`observe_one_finished_request`); while one runs, the counts of the
/// latency histograms and the used tokens show that it moves.
pub(super) static SGLANG: Names = Names {
    // The underscore names come from /v1/loads?format=prometheus.
    prefixes: &["sglang:", "sglang_"],
    running: &[n("num_running_reqs")],
    waiting: &[n("num_queue_reqs")],
    swapped: &[],
    kv_usage: &[n("token_usage")],
    prompt_tokens: &[n("prompt_tokens_total")],
    generation_tokens: &[n("generation_tokens_total")],
    finished: &[
        (&["num_requests_total"], Reason::Fixed("finished")),
        // Without `_total` up to 0.4.10.
        (&["num_aborted_requests_total", "num_aborted_requests"], Reason::Fixed("abort")),
    ],
    ttft: &["time_to_first_token_seconds"],
    inter_token: &["inter_token_latency_seconds", "time_per_output_token_seconds"],
    e2e: &["e2e_request_latency_seconds"],
    signs: &["time_to_first_token_seconds", "inter_token_latency_seconds", "time_per_output_token_seconds"],
    sign_gauges: &["num_used_tokens", "token_usage"],
    others: &[
        "num_paused_reqs",
        "num_prefill_bootstrap_queue_reqs",
        "num_prefill_prealloc_queue_reqs",
        "num_prefill_inflight_queue_reqs",
        "num_prefill_infight_queue_reqs",
        "num_decode_prealloc_queue_reqs",
        "num_decode_transfer_queue_reqs",
        "gen_throughput",
        "cache_hit_rate",
        "max_total_num_tokens",
        "queue_time_seconds",
    ],
};

/// Other servers: TensorRT-LLM, Triton's TensorRT-LLM backend, TGI, llama.cpp. Their prefixes are parts of the names.
pub(super) static OTHERS: Names = Names {
    prefixes: &[""],
    running: &[
        n("trtllm_num_requests_running"),
        only("nv_trt_llm_request_metrics", "request_type", "scheduled"),
        only("nv_trt_llm_request_metrics", "request_type", "active"),
        n("tgi_batch_current_size"),
        n("llamacpp:requests_processing"),
    ],
    waiting: &[
        n("trtllm_num_requests_waiting"),
        only("nv_trt_llm_request_metrics", "request_type", "waiting"),
        n("tgi_queue_size"),
        n("llamacpp:requests_deferred"),
    ],
    swapped: &[],
    kv_usage: &[
        n("trtllm_kv_cache_utilization"),
        only("nv_trt_llm_kv_cache_block_metrics", "kv_cache_block_type", "fraction"),
        // Removed in newer builds of llama.cpp.
        n("llamacpp:kv_cache_usage_ratio"),
    ],
    prompt_tokens: &[n("llamacpp:prompt_tokens_total")],
    generation_tokens: &[n("llamacpp:tokens_predicted_total")],
    finished: &[(&["trtllm_request_success_total"], Reason::Label("finished_reason"))],
    ttft: &["trtllm_time_to_first_token_seconds"],
    inter_token: &["trtllm_time_per_output_token_seconds"],
    e2e: &["trtllm_e2e_request_latency_seconds", "tgi_request_duration"],
    signs: &[],
    sign_gauges: &[],
    others: &[],
};

impl Names {
    /// The names of one engine.
    pub(super) fn of(kind: EngineKind) -> &'static Self {
        match kind {
            EngineKind::Vllm => &VLLM,
            EngineKind::Sglang => &SGLANG,
            EngineKind::OpenAi => &OTHERS,
        }
    }

    fn bases(&self) -> impl Iterator<Item = &'static str> {
        let named = [self.running, self.waiting, self.swapped, self.kv_usage, self.prompt_tokens, self.generation_tokens];
        let plain = [self.ttft, self.inter_token, self.e2e, self.signs, self.sign_gauges, self.others];
        named
            .into_iter()
            .flatten()
            .map(|name| name.base)
            .chain(plain.into_iter().flatten().copied())
            .chain(self.finished.iter().flat_map(|(names, _)| names.iter().copied()))
    }

    /// Full names to try for a base: the base with each prefix.
    pub(super) fn full(&self, base: &str) -> impl Iterator<Item = String> {
        self.prefixes.iter().map(move |prefix| format!("{prefix}{base}"))
    }
}

static FULL: LazyLock<Vec<String>> = LazyLock::new(|| {
    let mut names: Vec<String> = [&VLLM, &SGLANG, &OTHERS]
        .into_iter()
        .flat_map(|names| names.bases().flat_map(|base| names.full(base)).collect::<Vec<_>>())
        .collect();
    names.sort_unstable();
    names.dedup();
    names
});

static WANTED: LazyLock<Vec<&'static str>> = LazyLock::new(|| FULL.iter().map(String::as_str).collect());

/// Every family that is read of any engine's page.
pub fn wanted() -> Filter<'static> {
    Filter::Names(&WANTED)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_names_are_wanted_once() {
        let Filter::Names(names) = wanted() else { panic!("not by name") };
        for name in ["vllm:kv_cache_usage_perc", "ray_vllm:gpu_cache_usage_perc", "sglang_num_running_reqs", "tgi_queue_size"] {
            assert_eq!(names.iter().filter(|other| **other == name).count(), 1, "{name}");
        }
        assert!(names.iter().all(|name| !name.ends_with("_created")));
    }
}
