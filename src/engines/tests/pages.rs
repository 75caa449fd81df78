//! The recorded pages of every release, and what the engine does on each.
#![allow(clippy::too_many_arguments)]

use rstest::rstest;

use super::*;
use crate::model::engine::{EngineLoad, SleepReading};
use crate::model::state::EngineState;

fn load(name: &str) -> EngineLoad {
    Scene::new().page(0, &recorded(name)).report().load.unwrap()
}

fn value(fact: &Known<crate::model::Fact<f64>>) -> Option<f64> {
    fact.as_ref().ok().map(|fact| fact.value)
}

#[rstest]
#[case("vllm-0.33.0.txt", EngineKind::Vllm, 12.0, 3.0, Some(0.6321428571428571), 148_233.0, 90_112.0, "vllm:kv_cache_usage_perc")]
#[case("vllm-0.33.0-with-http.txt", EngineKind::Vllm, 12.0, 3.0, Some(0.6321428571428571), 148_233.0, 90_112.0, "vllm:kv_cache_usage_perc")]
#[case(
    "vllm-0.33.0-lora-specdecode.txt",
    EngineKind::Vllm,
    12.0,
    3.0,
    Some(0.6321428571428571),
    148_233.0,
    90_112.0,
    "vllm:kv_cache_usage_perc"
)]
#[case("vllm-0.20.2.txt", EngineKind::Vllm, 12.0, 3.0, Some(0.6321428571428571), 148_233.0, 90_112.0, "vllm:kv_cache_usage_perc")]
#[case("vllm-0.12.0.txt", EngineKind::Vllm, 12.0, 3.0, Some(0.6321428571428571), 148_233.0, 90_112.0, "vllm:kv_cache_usage_perc")]
#[case("vllm-0.10.2.txt", EngineKind::Vllm, 12.0, 3.0, Some(0.6321428571428571), 148_233.0, 90_112.0, "vllm:kv_cache_usage_perc")]
#[case("vllm-0.8.5.txt", EngineKind::Vllm, 12.0, 3.0, Some(0.6321428571428571), 148_233.0, 90_112.0, "vllm:gpu_cache_usage_perc")]
#[case::two_models_no_engine_label(
    "vllm-0.5.4-v0engine-captured.txt",
    EngineKind::Vllm,
    3.0,
    5.0,
    Some(0.0026235242675994863),
    90.0,
    2546.0,
    "vllm:gpu_cache_usage_perc"
)]
#[case::four_ranks("vllm-0.33.0-dp4.txt", EngineKind::Vllm, 12.0, 3.0, Some(0.6321428571428571 / 4.0), 4.0 * 148_233.0, 4.0 * 90_112.0, "vllm:kv_cache_usage_perc")]
#[case("vllm-0.32.0-live/busy.txt", EngineKind::Vllm, 6.0, 0.0, Some(0.00293040293040292), 38.0, 1013.0, "vllm:kv_cache_usage_perc")]
#[case("sglang-0.5.23.txt", EngineKind::Sglang, 18.0, 4.0, Some(0.487), 120_345.0, 90_321.0, "sglang:token_usage")]
#[case("sglang-0.5.23-pd-prefill.txt", EngineKind::Sglang, 18.0, 4.0, Some(0.487), 120_345.0, 90_321.0, "sglang:token_usage")]
#[case("sglang-0.5.23-pd-decode.txt", EngineKind::Sglang, 18.0, 4.0, Some(0.487), 120_345.0, 90_321.0, "sglang:token_usage")]
#[case("sglang-0.5.12.txt", EngineKind::Sglang, 18.0, 4.0, Some(0.487), 120_345.0, 90_321.0, "sglang:token_usage")]
#[case("sglang-0.5.10.post1-captured.txt", EngineKind::Sglang, 0.0, 0.0, Some(0.25), 5.0, 32.0, "sglang:token_usage")]
fn loads(
    #[case] name: &str,
    #[case] kind: EngineKind,
    #[case] running: f64,
    #[case] waiting: f64,
    #[case] kv: Option<f64>,
    #[case] prompt: f64,
    #[case] generated: f64,
    #[case] kv_name: &str,
) {
    let report = Scene::new().page(0, &recorded(name)).report();
    assert_eq!(report.kind, Ok(kind));
    let load = report.load.unwrap();
    assert_eq!((value(&load.running), value(&load.waiting), value(&load.kv_usage)), (Some(running), Some(waiting), kv));
    assert_eq!((value(&load.prompt_tokens), value(&load.generation_tokens)), (Some(prompt), Some(generated)));
    assert_eq!(load.kv_usage.unwrap().source, kv_name);
    assert_eq!(load.unread, 0);
}

#[test]
fn ray_puts_its_own_prefix_before() {
    let report = Scene::new().page(0, &recorded("vllm-on-ray-2.32-captured-part.txt")).report();
    assert_eq!(report.kind, Ok(EngineKind::Vllm));
    assert_eq!(report.load.unwrap().running.unwrap().source, "ray_vllm:num_requests_running");
}

#[test]
fn ranks_are_kept_apart() {
    let load = load("vllm-0.33.0-dp4.txt");
    assert_eq!(load.ranks.keys().collect::<Vec<_>>(), ["0", "1", "2", "3"]);
    assert_eq!((load.ranks["0"].running, load.ranks["3"].running), (Some(12.0), Some(0.0)));
    assert_eq!(value(&load.kv_usage_max), Some(0.6321428571428571));
    assert_eq!(load.finished["stop"], 4.0 * 41.0);
}

#[test]
fn the_newest_set_of_adapters_counts() {
    let lora = load("vllm-0.33.0-lora-specdecode.txt").lora.unwrap();
    assert_eq!((lora.running.len(), lora.waiting, lora.max), (0, vec!["pol\\isci".to_owned()], Some(4.0)));
    let older = "vllm:lora_requests_info{max_lora=\"4\",running_lora_adapters=\"a, b\",waiting_lora_adapters=\"\"} 2\n\
                 vllm:lora_requests_info{max_lora=\"4\",running_lora_adapters=\"\",waiting_lora_adapters=\"c\"} 1\n\
                 vllm:num_requests_running 1\n";
    let lora = Scene::new().page(0, older).report().load.unwrap().lora.unwrap();
    assert_eq!((lora.running, lora.waiting), (vec!["a".to_owned(), "b".to_owned()], Vec::new()));
}

#[rstest]
#[case("vllm-0.12.0.txt", Some(SleepReading::Awake))]
#[case("vllm-0.10.2.txt", None)]
#[case("vllm-0.33.0-sleeping-level1.txt", Some(SleepReading::Asleep(1)))]
#[case("vllm-0.33.0-sleeping-level2.txt", Some(SleepReading::Asleep(2)))]
#[case("vllm-0.33.0-sleep-level0-or-kv-released.txt", Some(SleepReading::Asleep(0)))]
fn the_sleep_gauge(#[case] name: &str, #[case] wanted: Option<SleepReading>) {
    assert_eq!(load(name).sleep.map(|fact| fact.value), wanted);
}

#[rstest]
#[case("vllm-0.33.0-sleeping-level1.txt", EngineState::Sleeping(Some(1)))]
#[case("vllm-0.33.0-sleeping-level2.txt", EngineState::Sleeping(Some(2)))]
#[case("vllm-0.33.0-sleep-level0-or-kv-released.txt", EngineState::Paused)]
#[case("vllm-0.32.0-live/idle.txt", EngineState::Ready)]
#[case("vllm-0.32.0-live/busy.txt", EngineState::Ready)]
#[case("vllm-0.32.0-live/sleeping.txt", EngineState::Sleeping(Some(1)))]
#[case("sglang-0.5.23.txt", EngineState::Ready)]
fn the_page_alone(#[case] name: &str, #[case] wanted: EngineState) {
    assert_eq!(Scene::new().page(0, &recorded(name)).report().state, wanted);
    // The health check says 200 in all of these (measured on 0.32.0).
    assert_eq!(Scene::new().healthy().page(0, &recorded(name)).report().state, wanted);
}

#[test]
fn a_frozen_core_answers_health_and_makes_no_token() {
    let report = Scene::new()
        .healthy()
        .page(60, &recorded("vllm-0.32.0-live/frozen-a.txt"))
        .page(0, &recorded("vllm-0.32.0-live/frozen-b.txt"))
        .report();
    assert_eq!(report.state, EngineState::Stalled);
    assert_eq!(report.since, Some(at(60)));
    let stall = report.stall.unwrap();
    assert_eq!((stall.seconds(), stall.running, stall.waiting), (60, (2.0, 2.0), (0.0, 0.0)));
    assert_eq!(stall.counters[0], ("vllm:generation_tokens_total".to_owned(), 5727.0));
    let proof: Vec<String> = report.evidence.iter().map(ToString::to_string).collect();
    assert!(proof.iter().any(|line| line.contains("vllm:generation_tokens_total: 5727 on both scrapes, 60 s apart")), "{proof:?}");
    // As they were taken, two seconds apart, nothing can be judged.
    let close = Scene::new()
        .healthy()
        .page(2, &recorded("vllm-0.32.0-live/frozen-a.txt"))
        .page(0, &recorded("vllm-0.32.0-live/frozen-b.txt"))
        .report();
    assert_eq!((close.state, close.movement), (EngineState::Ready, Ok(false)));
}

#[test]
fn from_idle_to_busy_it_moves_and_has_percentiles() {
    let report =
        Scene::new().healthy().page(30, &recorded("vllm-0.32.0-live/idle.txt")).page(0, &recorded("vllm-0.32.0-live/busy.txt")).report();
    assert_eq!((report.state, report.movement), (EngineState::Ready, Ok(true)));
    let load = report.load.unwrap();
    assert_eq!(load.rates["generation-tokens"], Ok((1013.0 - 8.0) / 30.0));
    let ttft = load.ttft.unwrap();
    assert!(ttft.count >= 1.0 && ttft.p50.is_some_and(|p50| p50 > 0.0) && ttft.p99 >= ttft.p50, "{ttft:?}");
    assert!(load.inter_token.unwrap().p95.is_some());
}

#[rstest]
#[case::never_asked(Scene::new(), "no sample yet")]
#[case::timeout(Scene::new().silent("/metrics", 0), "no sample: GET :8000/metrics timed out")]
#[case::refused(Scene::new().refused("/metrics", 0), "no sample: GET :8000/metrics was refused")]
#[case::not_found(Scene::sglang().says("/metrics", 0, 404, "{}"), "no sample: GET :8000/metrics gave 404")]
#[case::html(Scene::new().page(0, "<html><body>Bad Gateway</body></html>"), "no sample: the page is no metrics page: it is an HTML or XML page")]
#[case::empty(Scene::new().page(0, ""), "no sample: the page is empty")]
#[case::no_engine(Scene::new().page(0, "python_info 1\n"), "no sample: no metric of an engine is on the page")]
#[case::failed_since(Scene::new().load(60, 1, 1, 1).silent("/metrics", 0), "no sample: GET :8000/metrics timed out (the last sample is of 2026-11-12T09:59:00Z)")]
#[case::other_run(Scene::new().load(60, 1, 1, 1).running_for(10, false), "no sample of this run of its container yet")]
fn without_a_sample_the_reason_is_told(#[case] scene: Scene, #[case] why: &str) {
    assert_eq!(scene.report().load.unwrap_err().why(), why);
}

#[test]
fn what_a_page_lacks_is_unknown_not_zero() {
    let load = Scene::new().page(0, "vllm:num_requests_running 2\nvllm:num_requests_waiting NaN\n").report().load.unwrap();
    assert_eq!(load.kv_usage.unwrap_err().why(), "none of vllm:kv_cache_usage_perc, vllm:gpu_cache_usage_perc is on the page");
    assert_eq!(load.waiting.unwrap_err().why(), "vllm:num_requests_waiting is on the page without a value");
    assert!(load.rates.is_empty() && load.swapped.is_none() && load.ttft.is_none());
}

#[test]
fn openmetrics_pages_are_read_alike() {
    let load = Scene::new()
        .page(
            0,
            "# TYPE vllm:num_requests_running gauge\nvllm:num_requests_running{engine=\"0\"} 7\n# TYPE vllm:prompt_tokens counter\n\
             # UNIT vllm:prompt_tokens tokens\nvllm:prompt_tokens_total{engine=\"0\"} 34567503\nvllm:prompt_tokens_created{engine=\"0\"} 1794473000.5\n\
             # TYPE vllm:generation_tokens counter\nvllm:generation_tokens_total{engine=\"0\"} 998877 # {trace_id=\"abc\"} 12.0 1794477600.1\n\
             # TYPE vllm:time_to_first_token_seconds histogram\nvllm:time_to_first_token_seconds_bucket{engine=\"0\",le=\"0.1\"} 10\n\
             vllm:time_to_first_token_seconds_bucket{engine=\"0\",le=\"+Inf\"} 42\nvllm:time_to_first_token_seconds_sum{engine=\"0\"} 13.5\n\
             vllm:time_to_first_token_seconds_count{engine=\"0\"} 42\n# EOF\n",
        )
        .report()
        .load
        .unwrap();
    assert_eq!((value(&load.prompt_tokens), value(&load.generation_tokens)), (Some(34_567_503.0), Some(998_877.0)));
    let ttft = load.ttft.unwrap();
    assert_eq!((ttft.count, ttft.sum, ttft.p50, load.unread), (42.0, 13.5, None, 0));
}

#[rstest]
#[case("trtllm_num_requests_running 2\ntrtllm_num_requests_waiting 1\ntrtllm_kv_cache_utilization 0.5\n", 2.0, 1.0, Some(0.5))]
#[case("tgi_batch_current_size 2\ntgi_queue_size 1\n", 2.0, 1.0, None)]
#[case("llamacpp:requests_processing 2\nllamacpp:requests_deferred 1\n", 2.0, 1.0, None)]
#[case(
    "nv_trt_llm_request_metrics{request_type=\"scheduled\"} 2\nnv_trt_llm_request_metrics{request_type=\"waiting\"} 1\nnv_trt_llm_request_metrics{request_type=\"max\"} 64\nnv_trt_llm_kv_cache_block_metrics{kv_cache_block_type=\"fraction\"} 0.25\n",
    2.0,
    1.0,
    Some(0.25)
)]
fn other_servers(#[case] page: &str, #[case] running: f64, #[case] waiting: f64, #[case] kv: Option<f64>) {
    let report = Scene::new().page(0, page).report();
    assert_eq!(report.kind, Ok(EngineKind::OpenAi));
    let load = report.load.unwrap();
    assert_eq!((value(&load.running), value(&load.waiting), value(&load.kv_usage)), (Some(running), Some(waiting), kv));
}
