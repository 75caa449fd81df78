//! Phrases of SGLang's log, releases 0.4.10 to 0.5.23. Read in the released packages.

use std::sync::LazyLock;

use super::phrases::{Phase, Phrase, Table, p};

/// Ready for asking.
pub(super) static TABLE: LazyLock<Table<Phase>> = LazyLock::new(|| Table::<Phase>::of(PHRASES));

/// In the order in which they are tried; the first that matches counts.
const PHRASES: &[Phrase] = &[
    p(Phase::Started, &["server_args="]),
    p(Phase::Started, &["init torch distributed"]),
    p(Phase::LoadBegin, &["load weight begin"]),
    p(Phase::Warming, &["load weight end"]),
    p(Phase::Warming, &["kv cache is allocated"]),
    p(Phase::Warming, &["memory pool end"]),
    p(Phase::Warming, &["max_total_num_tokens="]),
    // "cuda graph", "CUDA graph", "draft cuda graph", "piecewise CUDA graph": begin and end.
    p(Phase::Warming, &["capture", "graph"]),
    p(Phase::Warming, &["capturing batches"]),
    // The port opens here, but the warm-up request is still to come and /health answers 503 until it is done.
    p(Phase::Warming, &["uvicorn running on"]),
    p(Phase::Warming, &["application startup complete"]),
    p(Phase::Warming, &["disaggregation warmup"]),
    p(Phase::Serving, &["the server is fired up and ready to roll"]),
    // Only after forty decode steps; the warm-up request has eight.
    p(Phase::Serving, &["decode batch"]),
    p(Phase::Draining, &["draining requests and shutting down"]),
    p(Phase::Draining, &["gracefully exiting"]),
    p(Phase::Stopping, &["force exiting"]),
    p(Phase::Stopping, &["waiting for application shutdown"]),
    p(Phase::Stopping, &["application shutdown complete"]),
];

/// `Gracefully exiting... Remaining number of requests 3.` → 3.
pub(super) fn remaining(lower: &str) -> Option<f64> {
    let mark = "remaining number of requests";
    let rest = lower.get(lower.find(mark)? + mark.len()..)?.trim_start_matches([' ', ':', '=']);
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().ok()
}
