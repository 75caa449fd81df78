//! Series that were renamed or removed, for whoever still asks for the old name.
//!
//! Read in vLLM 0.8.5 to 0.33.0 and SGLang 0.4.10 to 0.5.23. Families only: a histogram's `_bucket`, `_sum` and `_count` go with it.

/// One rename.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rename {
    /// The old name.
    pub old: &'static str,
    /// What stands in its place; empty where nothing does.
    pub new: &'static [&'static str],
    /// Since which release the old one is gone, in words.
    pub when: &'static str,
}

const fn rename(old: &'static str, new: &'static [&'static str], when: &'static str) -> Rename {
    Rename { old, new, when }
}

static RENAMES: &[Rename] = &[
    rename("vllm:gpu_cache_usage_perc", &["vllm:kv_cache_usage_perc"], "renamed in vLLM 0.10, gone by 0.12"),
    rename("vllm:gpu_prefix_cache_queries_total", &["vllm:prefix_cache_queries_total"], "renamed in vLLM 0.10, gone by 0.12"),
    rename("vllm:gpu_prefix_cache_hits_total", &["vllm:prefix_cache_hits_total"], "renamed in vLLM 0.10, gone by 0.12"),
    rename("vllm:gpu_prefix_cache_queries", &["vllm:prefix_cache_queries_total"], "renamed in vLLM 0.10, gone by 0.12"),
    rename("vllm:gpu_prefix_cache_hits", &["vllm:prefix_cache_hits_total"], "renamed in vLLM 0.10, gone by 0.12"),
    rename("vllm:time_per_output_token_seconds", &["vllm:inter_token_latency_seconds"], "renamed in vLLM 0.10, gone by 0.16"),
    rename("vllm:time_per_output_token_seconds_bucket", &["vllm:inter_token_latency_seconds"], "renamed in vLLM 0.10, gone by 0.16"),
    rename("vllm:time_per_output_token_seconds_sum", &["vllm:inter_token_latency_seconds"], "renamed in vLLM 0.10, gone by 0.16"),
    rename("vllm:time_per_output_token_seconds_count", &["vllm:inter_token_latency_seconds"], "renamed in vLLM 0.10, gone by 0.16"),
    rename("vllm:cpu_cache_usage_perc", &[], "gone with vLLM's V0 engine, by 0.10.2"),
    rename("vllm:num_requests_swapped", &[], "gone with vLLM's V0 engine, by 0.10.2"),
    rename("vllm:gpu_prefix_cache_hit_rate", &[], "gone with vLLM's V0 engine, by 0.10.2"),
    rename("vllm:avg_prompt_throughput_toks_per_s", &[], "gone with vLLM's V0 engine, by 0.10.2"),
    rename("vllm:avg_generation_throughput_toks_per_s", &[], "gone with vLLM's V0 engine, by 0.10.2"),
    rename("sglang:num_prefill_infight_queue_reqs", &["sglang:num_prefill_inflight_queue_reqs"], "renamed after SGLang 0.4.10"),
    rename("sglang:num_prefill_prealloc_queue_reqs", &["sglang:num_prefill_bootstrap_queue_reqs"], "renamed by SGLang 0.5.12"),
    rename("sglang:num_aborted_requests", &["sglang:num_aborted_requests_total"], "renamed after SGLang 0.4.10"),
    rename("sglang:num_bootstrap_failed_reqs", &["sglang:num_bootstrap_failed_reqs_total"], "renamed after SGLang 0.4.10"),
    rename("sglang:num_transfer_failed_reqs", &["sglang:num_transfer_failed_reqs_total"], "renamed after SGLang 0.4.10"),
    rename("sglang:avg_request_queue_latency", &["sglang:queue_time_seconds"], "renamed after SGLang 0.4.10"),
];

/// All renames.
pub fn renames() -> &'static [Rename] {
    RENAMES
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn no_name_is_renamed_twice_or_to_itself() {
        let olds: BTreeSet<_> = RENAMES.iter().map(|rename| rename.old).collect();
        assert_eq!(olds.len(), RENAMES.len());
        assert!(RENAMES.iter().all(|rename| rename.new.iter().all(|new| !olds.contains(new))));
    }
}
