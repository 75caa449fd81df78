//! Phrases of vLLM's log, releases 0.5 to 0.33. Read in the released packages; the start and the drain were also run on 0.32.0.

use std::sync::LazyLock;

use super::phrases::{Phase, Phrase, Table, p};

/// Ready for asking.
pub(super) static TABLE: LazyLock<Table<Phase>> = LazyLock::new(|| Table::<Phase>::of(PHRASES));

/// In the order in which they are tried; the first that matches counts.
const PHRASES: &[Phrase] = &[
    p(Phase::Started, &["initializing a v1 llm engine"]),
    p(Phase::Started, &["initializing an llm engine"]),
    p(Phase::Started, &["vllm api server version"]),
    p(Phase::Started, &["non-default args:"]),
    p(Phase::Started, &["waiting for", "core engine proc"]),
    p(Phase::LoadBegin, &["starting to load model"]),
    // Printed after the download, and only when it took more than half a second.
    p(Phase::Downloaded, &["time spent downloading weights"]),
    p(Phase::Loading, &["loading safetensors using"]),
    p(Phase::Loading, &["using runai model streamer"]),
    p(Phase::Warming, &["loading weights took"]),
    p(Phase::Warming, &["model loading took"]),
    p(Phase::Warming, &["loading model weights took"]),
    p(Phase::Warming, &["dynamo bytecode transform time"]),
    p(Phase::Warming, &["compiling a graph for"]),
    // "takes … in total" up to 0.16, "and initial profiling/warmup run together took" from 0.20.
    p(Phase::Warming, &["torch.compile takes"]),
    p(Phase::Warming, &["torch.compile and initial profiling"]),
    p(Phase::Warming, &["directly load", "compil"]),
    p(Phase::Warming, &["available kv cache memory"]),
    // The prefix is "GPU", "GPU + host" in 0.33, "CPU" on a CPU build.
    p(Phase::Warming, &["kv cache size:", "tokens"]),
    p(Phase::Warming, &["# gpu blocks:"]),
    p(Phase::Warming, &["graph capturing finished"]),
    p(Phase::Warming, &["skipping cuda graph capture"]),
    p(Phase::Warming, &["capturing cudagraphs"]),
    p(Phase::Warming, &["capturing the model for cuda graphs"]),
    p(Phase::Warming, &["init engine (profile"]),
    // "Starting vLLM API server 0 on" before 0.20; the port opens a moment later.
    p(Phase::Warming, &["starting vllm", "server", " on "]),
    p(Phase::Serving, &["application startup complete"]),
    p(Phase::Serving, &["uvicorn running on"]),
    p(Phase::Serving, &["avg prompt throughput"]),
    p(Phase::Asleep, &["seconds to fall asleep"]),
    p(Phase::Asleep, &["sleep mode freed"]),
    p(Phase::Awake, &["seconds to wake up"]),
    p(Phase::Draining, &["[shutdown]", "mode=drain"]),
    p(Phase::Draining, &["[shutdown]", "draining in-flight requests"]),
    p(Phase::Stopping, &["[shutdown]", "mode=abort"]),
    p(Phase::Stopping, &["[shutdown]", "request processing complete"]),
    p(Phase::Stopping, &["shutting down fastapi http server"]),
    p(Phase::Stopping, &["waiting for application shutdown"]),
    p(Phase::Stopping, &["application shutdown complete"]),
];

/// The version that a line names: `Initializing a V1 LLM engine (v0.33.0)`, `vLLM API server version 0.10.2`, or the logo's
/// `version 0.32.0` beside block characters.
pub(super) fn version(line: &str, lower: &str) -> Option<String> {
    let after = |mark: &str| lower.find(mark).and_then(|at| lower.get(at + mark.len()..));
    let rest = after("llm engine (v")
        .or_else(|| after("vllm api server version "))
        .or_else(|| line.contains(['█', '▀', '▄']).then(|| after("version ")).flatten())?;
    super::version_word(rest)
}
