use rstest::rstest;

use super::*;
use crate::model::Subject;

const NOW: &str = "2026-11-12T10:00:00Z";

fn log(lines: &str) -> ContainerLog {
    ContainerLog {
        pod: Subject::pod("serving", "a"),
        container: "engine".into(),
        lines: lines.split('\n').map(str::to_owned).collect(),
        previous_at: None,
        exit_code: None,
    }
}

fn reading(kind: Option<EngineKind>, lines: &str) -> LogReading {
    read(&log(lines), kind, NOW.parse().unwrap())
}

#[rstest]
// vLLM, by release.
#[case(
    "(EngineCore pid=28606) INFO 11-30 23:34:25 [core.py:133] Initializing a V1 LLM engine (v0.32.0) with config: model='/m', compilation_config={}",
    Phase::Started
)]
#[case("INFO 11-12 09:50:00 [llm_engine.py:237] Initializing an LLM engine (v0.5.4) with config: model='m'", Phase::Started)]
#[case("INFO 11-12 09:50:00 [api_server.py:1043] vLLM API server version 0.8.5", Phase::Started)]
#[case("INFO 11-12 09:50:00 [utils.py] Waiting for 2 local, 6 remote core engine proc(s) to start.", Phase::Started)]
#[case("INFO 11-12 09:50:00 [gpu_model_runner.py] Starting to load model /models/m...", Phase::LoadBegin)]
#[case("INFO 11-12 09:50:00 [weight_utils.py:281] Time spent downloading weights for org/m: 81.3 seconds", Phase::Downloaded)]
#[case("Loading safetensors checkpoint shards:  43% Completed | 26/60 [03:07<04:05,  7.21s/it]", Phase::Loading)]
#[case("Loading pt checkpoint shards:  43% Completed | 26/60", Phase::Loading)]
#[case("Multi-thread loading shards:  50% Completed | 5/10 [00:05<00:05, 1.0s/it]", Phase::Loading)]
#[case("Loading safetensors using Fastsafetensor loader:  20% Completed | 1/5 [00:01<00:04, 1.0s/it]", Phase::Loading)]
#[case("INFO 11-12 09:50:00 [default_loader.py:501] Loading weights took 0.01 seconds", Phase::Warming)]
#[case("INFO 11-12 09:50:00 [gpu_model_runner.py] Model loading took 14.98 GiB memory and 3.1 seconds", Phase::Warming)]
#[case("INFO 11-12 09:50:00 [gpu_model_runner.py] Model loading took 14.98 GiB and 3.1 seconds", Phase::Warming)]
#[case("INFO 11-12 09:50:00 [backends.py] Dynamo bytecode transform time: 5.21 s", Phase::Warming)]
#[case("INFO 11-12 09:50:00 [backends.py] Compiling a graph for dynamic shape takes 21.3 s", Phase::Warming)]
#[case("INFO 11-12 09:50:00 [monitor.py] torch.compile takes 27.0 s in total", Phase::Warming)]
#[case("INFO 11-12 09:50:00 [monitor.py] torch.compile and initial profiling/warmup run together took 27.0 s", Phase::Warming)]
#[case(
    "INFO 11-12 09:50:00 [backends.py] Directly load the compiled graph(s) for dynamic shape from the cache, took 1.2 s",
    Phase::Warming
)]
#[case("INFO 11-12 09:50:00 [gpu_worker.py] Available KV cache memory: 51.2 GiB", Phase::Warming)]
#[case("INFO 11-12 09:50:00 [kv_cache_utils.py] GPU KV cache size: 419,296 tokens", Phase::Warming)]
#[case(
    "INFO 11-12 09:50:00 [kv_cache_utils.py:2327] GPU + host KV cache size: 524,288 tokens, Maximum concurrency for 1,024 tokens per request: 512.00x",
    Phase::Warming
)]
#[case("Capturing CUDA graphs (mixed prefill-decode, PIECEWISE):  62%|######2   | 42/67 [00:03<00:02, 12.0it/s]", Phase::Warming)]
#[case("Capturing CUDA graph shapes:  50%|#####     | 33/66 [00:10<00:10,  3.1it/s]", Phase::Warming)]
#[case("INFO 11-12 09:50:00 [gpu_model_runner.py] Graph capturing finished in 12 secs, took 0.61 GiB", Phase::Warming)]
#[case("INFO 11-12 09:50:00 [core.py:402] init engine (profile, create kv cache, warmup model) took 0.85 s", Phase::Warming)]
#[case("INFO 11-12 09:50:00 [core.py] init engine (profile, create kv cache, warmup model) took 70.85 seconds", Phase::Warming)]
#[case("INFO 11-12 09:50:00 [api_server.py] Starting vLLM API server 0 on http://0.0.0.0:8000", Phase::Warming)]
#[case("INFO 11-12 09:50:00 [entry.py:140] Starting vLLM server on http://127.0.0.1:18000", Phase::Warming)]
#[case("INFO:     Application startup complete.", Phase::Serving)]
#[case(
    "INFO 11-12 09:59:40 [loggers.py] Engine 000: Avg prompt throughput: 0.0 tokens/s, Running: 0 reqs, GPU KV cache usage: 0.0%",
    Phase::Serving
)]
#[case("INFO 11-12 09:50:00 [x.py] It took 1.23 seconds to fall asleep.", Phase::Asleep)]
#[case("INFO 11-12 09:50:00 [gpu_worker.py] Sleep mode freed 60.1 GiB memory, 1.2 GiB memory is still in use.", Phase::Asleep)]
#[case("INFO 11-12 09:50:00 [x.py] It took 0.5 seconds to wake up tags {'weights', 'kv_cache'}.", Phase::Awake)]
#[case(
    "(EngineCore pid=1) INFO 11-30 23:34:48 [core.py:1655] [shutdown] EngineCore: draining in-flight requests count=3 timeout=20s",
    Phase::Draining
)]
#[case("(EngineCore pid=1) INFO 11-30 23:34:48 [core.py:1635] [shutdown] EngineCore: start mode=abort timeout=0s", Phase::Stopping)]
#[case("(EngineCore pid=1) ERROR 11-30 23:34:48 [core.py:9] EngineCore failed to start.", Phase::Failed)]
#[case(
    "ValueError: Free memory on device (9.41/79.10 GiB) on startup is less than desired GPU memory utilization (0.9, 71.19 GiB).",
    Phase::Failed
)]
#[case("torch.distributed.DistStoreError: Timed out after 181 seconds waiting for clients. 2/3 clients joined.", Phase::Failed)]
fn vllm(#[case] line: &str, #[case] wanted: Phase) {
    assert_eq!(reading(Some(EngineKind::Vllm), line).phase, Some(wanted));
    // Colours, a kubelet stamp and a user's prefix change nothing.
    let dressed = format!("2026-11-12T09:50:00.5Z [pod/x] \u{1b}[36m{line}\u{1b}[0m");
    assert_eq!(reading(Some(EngineKind::Vllm), &dressed).phase, Some(wanted));
}

#[rstest]
#[case("[2026-11-12 09:50:00] server_args=ServerArgs(model_path='m', tokenizer_path='m')", Phase::Started)]
#[case("[2026-11-12 09:50:00 TP0] Init torch distributed begin.", Phase::Started)]
#[case("[2026-11-12 09:50:00 DP0 TP1 PP0 EP0] Load weight begin. avail mem=78.58 GB", Phase::LoadBegin)]
#[case("Loading safetensors checkpoint shards:  50% Completed | 2/4 [00:01<00:01,  1.5it/s]", Phase::Loading)]
#[case(
    "[2026-11-12 09:50:00 TP0] Load weight end. elapsed=3.2 s, type=LlamaForCausalLM, avail mem=63.2 GB, mem usage=15.3 GB.",
    Phase::Warming
)]
#[case("[2026-11-12 09:50:00 TP0] KV Cache is allocated. #tokens: 419296, K size: 25.6 GB, V size: 25.6 GB", Phase::Warming)]
#[case("[2026-11-12 09:50:00 TP0] Memory pool end. avail mem=10.1 GB", Phase::Warming)]
#[case("[2026-11-12 09:50:00 TP0] max_total_num_tokens=419296, chunked_prefill_size=8192", Phase::Warming)]
#[case("[2026-11-12 09:50:00 TP0] Capture cuda graph begin. This can take up to several minutes. avail mem=10.1 GB", Phase::Warming)]
#[case("[2026-11-12 09:50:00 TP0] Capture draft CUDA graph end. Time elapsed: 5.1 s. mem usage=1.2 GB.", Phase::Warming)]
#[case("Capturing batches (bs=64 avail_mem=9.1 GB):  43%|####3     | 10/23 [00:10<00:13,  1.0s/it]", Phase::Warming)]
#[case("INFO:     Uvicorn running on http://0.0.0.0:30000 (Press CTRL+C to quit)", Phase::Warming)]
#[case("INFO:     Application startup complete.", Phase::Warming)]
#[case("[2026-11-12 09:50:00] The server is fired up and ready to roll!", Phase::Serving)]
#[case("[2026-11-12 09:50:00 TP0] Decode batch. #running-req: 3, token usage: 0.02, gen throughput (token/s): 210.1", Phase::Serving)]
#[case("[2026-11-12 09:50:00] Gracefully exiting... Remaining number of requests 3. Remaining requests ['a', 'b']", Phase::Draining)]
#[case("[2026-11-12 09:50:00] SIGTERM received. signum=15 frame=None. Draining requests and shutting down...", Phase::Draining)]
#[case("[2026-11-12 09:50:00] Signal SIGTERM received while health check failed. Force exiting.", Phase::Stopping)]
#[case("[2026-11-12 09:50:00] Initialization failed. warmup error: Traceback", Phase::Failed)]
#[case("[2026-11-12 09:50:00 TP0] Scheduler hit an exception: Traceback (most recent call last):", Phase::Failed)]
fn sglang(#[case] line: &str, #[case] wanted: Phase) {
    assert_eq!(reading(Some(EngineKind::Sglang), line).phase, Some(wanted));
}

#[rstest]
#[case("INFO 11-12 09:50:00 [x.py:1] If you see CUDA out of memory, lower max_num_seqs")]
#[case("WARNING 11-12 09:50:00 [vllm.py:1703] Enforce eager set, disabling torch.compile, CUDAGraphs, and JIT kernel warmup")]
#[case("WARNING 11-12 09:50:00 [x.py:1] flashinfer initialization failed, falling back")]
#[case("INFO 11-12 09:50:00 [x.py:1] Using max model len 1024")]
#[case("")]
fn lines_that_mean_nothing(#[case] line: &str) {
    let reading = reading(Some(EngineKind::Vllm), line);
    assert_eq!((reading.phase, reading.failure), (None, None));
}

#[rstest]
#[case("2026-11-12 09:46:26 INFO Initializing, args: src_uri [hf://org/m] dest_path [/mnt/models]", Phase::Downloading, None)]
#[case("Fetching 41 files:  61%|######1   | 25/41 [13:30<08:38, 32.4s/it]", Phase::Downloading, Some(25.0 / 41.0))]
#[case("Downloading shards:  50%|#####     | 2/4 [01:00<01:00, 30.0s/it]", Phase::Downloading, Some(0.5))]
#[case("INFO downloaded 61%", Phase::Downloading, Some(0.61))]
#[case("Downloading model: 41.5 GiB of 83 GiB", Phase::Downloading, Some(0.5))]
#[case("Completed 41.5 GiB/83.0 GiB (350 MiB/s) with 3 file(s) remaining", Phase::Downloading, Some(0.5))]
#[case("Copying gs://bucket/m/model-1.safetensors to /models", Phase::Downloading, None)]
#[case("2026-11-12 09:46:26 INFO Successfully copied hf://org/m to /mnt/models", Phase::Downloaded, None)]
#[case("Fetching 41 files: 100%|##########| 41/41 [13:30<00:00, 32.4s/it]", Phase::Downloaded, Some(1.0))]
fn downloads(#[case] line: &str, #[case] phase: Phase, #[case] share: Option<f64>) {
    let reading = reading(None, line);
    assert_eq!(reading.phase, Some(phase));
    let found = reading.newest().and_then(|progress| progress.share);
    assert_eq!(found.is_some(), share.is_some());
    assert!((found.unwrap_or(0.0) - share.unwrap_or(0.0)).abs() < 1e-9);
}

#[rstest]
#[case::bar("Fetching 41 files:  61%|##| 25/41 [13:30<08:38, 32.4s/it]\rFetching 41 files:  61%|##| 25/41 [23:30<15:02, 56s/it]", Some(("25/41", 600.0)))]
#[case::stamped("2026-11-12T09:30:00Z downloaded 61%\n2026-11-12T09:50:00Z downloaded 61%\n2026-11-12T09:55:00Z downloaded 61%", Some(("61%", 1500.0)))]
#[case::bytes("2026-11-12T09:30:00Z downloaded 41.2 GiB\n2026-11-12T09:31:00Z downloaded 41.2 GiB", Some(("41.2 GiB", 60.0)))]
#[case::moves("2026-11-12T09:30:00Z downloaded 60%\n2026-11-12T09:50:00Z downloaded 61%", None)]
#[case::moved_on("2026-11-12T09:30:00Z downloaded 60%\n2026-11-12T09:40:00Z downloaded 60%\n2026-11-12T09:50:00Z downloaded 61%", None)]
#[case::one_line("2026-11-12T09:30:00Z downloaded 60%", None)]
#[case::done("2026-11-12T09:30:00Z downloaded 100%\n2026-11-12T09:50:00Z downloaded 100%", None)]
#[case::other_file("a.safetensors:  10%|#| 1G/10G [00:10<01:30, 1GB/s]\nb.safetensors:  10%|#| 1G/10G [00:10<01:30, 1GB/s]", None)]
fn stuck_downloads(#[case] lines: &str, #[case] wanted: Option<(&str, f64)>) {
    let stuck = reading(None, lines).stuck();
    assert_eq!(stuck.as_ref().map(|stuck| (stuck.count.as_str(), stuck.seconds.unwrap())), wanted);
}

#[test]
fn times_of_plain_lines_give_the_rest() {
    let lines = "2026-11-12T09:30:00Z downloaded 20%\n2026-11-12T09:40:00Z downloaded 60%";
    let newest = reading(None, lines).newest().unwrap().clone();
    assert!((newest.left_s.unwrap() - 600.0).abs() < 1e-6 && (newest.elapsed_s.unwrap() - 900.0).abs() < 1e-6);
    assert!((newest.whole_s().unwrap() - 1500.0).abs() < 1e-6);
}

#[test]
fn a_run_that_was_killed_while_it_loaded() {
    let lines = "INFO 11-12 09:55:04 [gpu_model_runner.py] Starting to load model /models/qwen-l...\n\
        Loading safetensors checkpoint shards:   0% Completed | 0/37 [00:00<?, ?it/s]\n\
        Loading safetensors checkpoint shards:  62% Completed | 23/37 [02:31<01:32,  6.59s/it]";
    let mut log = log(lines);
    log.previous_at = Some("2026-11-12T09:58:05Z".parse().unwrap());
    let reading = read(&log, None, NOW.parse().unwrap());
    let newest = reading.newest().unwrap();
    assert_eq!((newest.count.as_str(), newest.elapsed_s, newest.whole_s()), ("23/37", Some(151.0), Some(243.0)));
    assert_eq!((reading.kind, reading.failure.is_none(), reading.previous_at), (Some(EngineKind::Vllm), true, log.previous_at));
    assert_eq!(reading.last_at, Some("2026-11-12T09:55:04Z".parse().unwrap()));
}

/// The log of a live vLLM 0.32.0: start, three streams, SIGTERM with a timeout of 20 s, drain, exit.
fn live() -> String {
    std::fs::read_to_string(format!("{}/tests/data/metrics/vllm-0.32.0-live/startup-serve-drain.log", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

#[rstest]
#[case("Initializing a V1 LLM engine", Phase::Started)]
#[case("Loading weights took", Phase::Warming)]
#[case("Starting vLLM server on", Phase::Warming)]
#[case("Application startup complete", Phase::Serving)]
#[case("draining in-flight requests", Phase::Draining)]
#[case("cannot schedule new futures", Phase::Draining)]
#[case("request processing complete", Phase::Stopping)]
#[case("Application shutdown complete", Phase::Stopping)]
fn a_live_log_up_to_a_line(#[case] until: &str, #[case] wanted: Phase) {
    let all = live();
    let end = all.find(until).unwrap();
    let end = all[end..].find('\n').map_or(all.len(), |line| end + line);
    let now = "2026-12-01T00:00:00Z".parse().unwrap();
    let reading = read(&log(&all[..end]), None, now);
    assert_eq!((reading.kind, reading.phase, reading.failure), (Some(EngineKind::Vllm), Some(wanted), None));
}

#[test]
fn a_live_log_whole() {
    let reading = read(&log(&live()), None, "2026-12-01T00:00:00Z".parse().unwrap());
    assert_eq!(reading.version.as_ref().unwrap().0, "0.32.0");
    let at = |phase| reading.reached[&phase].time().unwrap().to_string();
    assert_eq!(at(Phase::LoadBegin), "2026-11-30T23:34:42Z");
    assert_eq!(at(Phase::Serving), "2026-11-30T23:34:46Z");
    assert_eq!(at(Phase::Draining), "2026-11-30T23:34:48Z");
    // The dead engine's last error belongs to the shutdown.
    assert_eq!(reading.failure, None);
}

#[test]
fn bars_are_kept_within_bounds() {
    let lines: String = (0..5000).map(|i| format!("Fetching 9999 files: 1%|#| {i}/9999 [00:01<00:05, 1it/s]\r")).collect();
    let reading = reading(None, &lines);
    assert!(reading.progress.len() <= KEPT + 1);
    assert_eq!(reading.progress[0].count, "0/9999");
    assert_eq!(reading.newest().unwrap().count, "4999/9999");
}

#[rstest]
#[case(Some(EngineKind::Vllm), "INFO:     127.0.0.1:52722 - \"GET /health HTTP/1.1\" 200 OK", Some(Phase::Serving))]
#[case(Some(EngineKind::Vllm), "INFO:     127.0.0.1:52722 - \"GET /health HTTP/1.1\" 503 Service Unavailable", None)]
#[case(Some(EngineKind::Vllm), "INFO:     127.0.0.1:52722 - \"GET /EngineDeadError HTTP/1.1\" 404 Not Found", None)]
#[case(Some(EngineKind::Sglang), "INFO:     127.0.0.1:52722 - \"GET /v1/models HTTP/1.1\" 200 OK", None)]
#[case(None, "INFO:     127.0.0.1:52722 - \"GET /health HTTP/1.1\" 200 OK", None)]
fn access_lines(#[case] kind: Option<EngineKind>, #[case] line: &str, #[case] wanted: Option<Phase>) {
    let reading = reading(kind, line);
    assert_eq!((reading.phase, reading.kind), (wanted, None));
}

#[test]
fn shared_words_decide_nothing_until_the_engine_is_known() {
    assert_eq!(reading(None, "INFO:     Application startup complete.").phase, None);
    let sglang = "[2026-11-12 09:50:00] Load weight begin. avail mem=78.58 GB\nINFO:     Application startup complete.";
    assert_eq!(reading(None, sglang).phase, Some(Phase::Warming));
}

#[rstest]
#[case::a_logger_before_each(
    "2026-11-12 09:40:00 INFO Fetching 40 files:  50%|#| 20/40 [05:00<05:00, 15s/it]\n2026-11-12 09:50:00 INFO Fetching 40 files:  50%|#| 20/40 [15:00<15:00, 45s/it]",
    true
)]
#[case::bare("Fetching 40 files:  50%|#| 20/40 [05:00<05:00, 15s/it]\nFetching 40 files:  50%|#| 20/40 [15:00<15:00, 45s/it]", true)]
#[case::two_files(
    "downloading model-1.safetensors:  50%|#| 2G/4G [05:00<05:00, 1MB/s]\ndownloading model-2.safetensors:  50%|#| 2G/4G [15:00<15:00, 1MB/s]",
    false
)]
fn one_bar_is_known_again(#[case] lines: &str, #[case] stuck: bool) {
    assert_eq!(reading(None, lines).stuck().is_some(), stuck);
}
