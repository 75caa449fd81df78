//! How fast metric pages are read, in MB of raw text a second on one core: our reader with the families that a console
//! wants, our reader with all of them, the raw view, the crate `prometheus-parse` as it is, and the same crate on a
//! page whose colons were replaced before (outside the clock), so that it has the same lines to read.
//! All in one run, turn by turn, the median of several rounds; by CPU time of the thread where the system tells it.
//!
//! Run it with `cargo bench --bench metrics`; the table in `docs/performance.md` is made with it.
#![allow(clippy::print_stdout, clippy::panic, reason = "a bench prints its table and may fail loudly")]
use modeldeck::engines::exposition::{Filter, Kind, Page, raw, read};
use std::hint::black_box;
use std::time::{Duration, Instant};

const READERS: usize = 5;
const ROUNDS: usize = 11;
const ROUND: Duration = Duration::from_millis(100);

/// What a console asks a vLLM engine: load, work done, latencies, sleep, cache.
const VLLM: &[&str] = &[
    "process_start_time_seconds",
    "vllm:admission_rejections_total",
    "vllm:cache_config_info",
    "vllm:e2e_request_latency_seconds",
    "vllm:engine_sleep_state",
    "vllm:external_prefix_cache_hits_total",
    "vllm:external_prefix_cache_queries_total",
    "vllm:generation_tokens_total",
    "vllm:gpu_cache_usage_perc",
    "vllm:gpu_prefix_cache_hits_total",
    "vllm:gpu_prefix_cache_queries_total",
    "vllm:inter_token_latency_seconds",
    "vllm:iteration_tokens_total",
    "vllm:kv_cache_usage_perc",
    "vllm:lora_requests_info",
    "vllm:num_preemptions_total",
    "vllm:num_requests_running",
    "vllm:num_requests_swapped",
    "vllm:num_requests_waiting",
    "vllm:num_requests_waiting_by_reason",
    "vllm:prefix_cache_hits_total",
    "vllm:prefix_cache_queries_total",
    "vllm:prompt_tokens_by_source_total",
    "vllm:prompt_tokens_cached_total",
    "vllm:prompt_tokens_total",
    "vllm:request_queue_time_seconds",
    "vllm:request_success_total",
    "vllm:spec_decode_num_accepted_tokens_total",
    "vllm:spec_decode_num_draft_tokens_total",
    "vllm:time_per_output_token_seconds",
    "vllm:time_to_first_token_seconds",
    "http_requests_total",
];

const SGLANG: &[&str] = &[
    "process_start_time_seconds",
    "sglang:cache_hit_rate",
    "sglang:cached_tokens_total",
    "sglang:e2e_request_latency_seconds",
    "sglang:gen_throughput",
    "sglang:generation_tokens_total",
    "sglang:inter_token_latency_seconds",
    "sglang:max_running_requests_under_SLO",
    "sglang:max_total_num_tokens",
    "sglang:num_aborted_requests_total",
    "sglang:num_decode_prealloc_queue_reqs",
    "sglang:num_decode_transfer_queue_reqs",
    "sglang:num_paused_reqs",
    "sglang:num_prefill_bootstrap_queue_reqs",
    "sglang:num_prefill_inflight_queue_reqs",
    "sglang:num_queue_reqs",
    "sglang:num_requests_total",
    "sglang:num_retracted_reqs",
    "sglang:num_running_reqs",
    "sglang:num_used_tokens",
    "sglang:prompt_tokens_total",
    "sglang:queue_time_seconds",
    "sglang:time_to_first_token_seconds",
    "sglang:token_usage",
    "sglang:utilization",
];

const DCGM: &[&str] = &[
    "DCGM_FI_DEV_FB_FREE",
    "DCGM_FI_DEV_FB_USED",
    "DCGM_FI_DEV_GPU_UTIL",
    "DCGM_FI_DEV_POWER_USAGE",
    "DCGM_FI_DEV_XID_ERRORS",
    "DCGM_FI_PROF_DRAM_ACTIVE",
    "DCGM_FI_PROF_GR_ENGINE_ACTIVE",
    "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE",
    "DCGM_FI_PROF_SM_ACTIVE",
];

const EPP: &[&str] = &[
    "leader_election_master_status",
    "llm_d_epp_average_kv_cache_utilization",
    "llm_d_epp_average_queue_size",
    "llm_d_epp_average_running_requests",
    "llm_d_epp_flow_control_pool_saturation",
    "llm_d_epp_flow_control_queue_bytes",
    "llm_d_epp_flow_control_queue_size",
    "llm_d_epp_flow_control_requests_total",
    "llm_d_epp_flow_control_stale_endpoints",
    "llm_d_epp_inflight_requests",
    "llm_d_epp_info",
    "llm_d_epp_per_endpoint_queue_size",
    "llm_d_epp_ready_endpoints",
    "llm_d_epp_request_duration_seconds",
    "llm_d_epp_request_running",
    "llm_d_epp_request_total",
    "llm_d_epp_request_ttft_seconds",
];

const PAGES: &[(&str, &[&str])] = &[
    ("vllm-0.33.0.txt", VLLM),
    ("vllm-0.33.0-dp4.txt", VLLM),
    ("vllm-0.33.0-with-http.txt", VLLM),
    ("vllm-0.32.0-live/busy.txt", VLLM),
    ("sglang-0.5.23.txt", SGLANG),
    ("dcgm-exporter-4.5-h100x8-pods-made.txt", DCGM),
    ("epp-v0.10.0-healthy-3-endpoints.txt", EPP),
];

/// A way to read a page; returns how many of its sample lines it read.
type Reader<'p> = Box<dyn Fn() -> usize + 'p>;

fn main() {
    println!("{:42}{:>8}{:>8}  MB/s (samples read)", "page", "bytes", "samples");
    let heads = ["wanted", "all", "all, raw view", "prometheus-parse", "p.-p., no colons"];
    println!("{:58}{}", "", heads.map(|head| format!("{head:>18}")).concat());
    for (name, names) in PAGES {
        let path = format!("{}/tests/data/metrics/{name}", env!("CARGO_MANIFEST_DIR"));
        let page = std::fs::read(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
        let text = String::from_utf8_lossy(&page).into_owned();
        let no_colons = text.replace("vllm:", "vllm__").replace("sglang:", "sglang__");
        let readers: [Reader<'_>; READERS] = [
            Box::new(|| read(black_box(&page), &Filter::Names(names)).samples().count()),
            Box::new(|| read(black_box(&page), &Filter::All).samples().count()),
            Box::new(|| {
                let view = raw::view(&read(black_box(&page), &Filter::All));
                view.handed - view.lost
            }),
            Box::new(|| prometheus_parse_alone(black_box(&text))),
            Box::new(|| prometheus_parse_alone(black_box(&no_colons))),
        ];
        let speeds = race(&readers, page.len());
        let all = readers[1]();
        print!("{name:42}{:>8}{all:>8}", page.len());
        for (reader, speed) in readers.iter().zip(speeds) {
            print!("{:>18}", format!("{speed:.0} ({})", reader()));
        }
        println!();
        histograms(&read(&page, &Filter::Names(names)), page.len());
    }
}

/// Median MB/s of each reader; they take turns, so that a busy neighbour slows all of them.
fn race(readers: &[Reader<'_>; READERS], bytes: usize) -> [f64; READERS] {
    let mut rounds: [Vec<f64>; READERS] = Default::default();
    for _ in 0..ROUNDS {
        for (reader, speeds) in readers.iter().zip(&mut rounds) {
            let (start, cpu, mut times) = (Instant::now(), cpu_time(), 0_usize);
            while start.elapsed() < ROUND {
                black_box(reader());
                times += 1;
            }
            let wall = start.elapsed();
            let spent = cpu.zip(cpu_time()).map_or(wall, |(before, after)| after.saturating_sub(before));
            speeds.push((bytes * times) as f64 / spent.as_secs_f64().max(1e-9) / 1e6);
        }
    }
    rounds.map(|mut speeds| {
        speeds.sort_by(f64::total_cmp);
        speeds[ROUNDS / 2]
    })
}

/// The CPU time of this thread so far, where Linux tells it: on a busy machine the clock on the wall also counts
/// the time of others. It lags by up to a scheduler tick (some ms).
fn cpu_time() -> Option<Duration> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split(' ').next()?.parse().ok().map(Duration::from_nanos)
}

/// What putting all wanted histograms together adds, told as a time.
fn histograms(page: &Page, bytes: usize) {
    let names: Vec<&str> = page.families().filter(|f| f.kind() == Kind::Histogram).map(|f| f.name()).collect();
    if names.is_empty() || bytes < 100_000 {
        return;
    }
    let (start, mut times) = (Instant::now(), 0_u32);
    while start.elapsed() < ROUND {
        for name in &names {
            black_box(page.histograms(name));
        }
        times += 1;
    }
    println!("    and {} histogram families put together in {:?}", names.len(), start.elapsed() / times);
}

fn prometheus_parse_alone(text: &str) -> usize {
    let lines = text.lines().map(|line| Ok(line.to_owned()));
    let scrape = prometheus_parse::Scrape::parse(lines).unwrap_or_else(|error| panic!("no line is an error: {error}"));
    let lines_of = |sample: &prometheus_parse::Sample| match &sample.value {
        prometheus_parse::Value::Histogram(buckets) => buckets.len(),
        prometheus_parse::Value::Summary(quantiles) => quantiles.len(),
        _ => 1,
    };
    scrape.samples.iter().map(lines_of).sum()
}
