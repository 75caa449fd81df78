//! vLLM: every row of its state tables (read in 0.8.5 to 0.33.0, measured on 0.32.0).

use rstest::rstest;

use super::*;
use crate::model::state::EngineState;

const SLEEPING: &str = r#"{"is_sleeping":true}"#;
const AWAKE: &str = r#"{"is_sleeping":false}"#;
const PAUSED: &str = r#"{"is_paused":true}"#;
const MODELS: &str = r#"{"object":"list","data":[{"id":"m","owned_by":"vllm"}]}"#;
const LOADING: &str = "INFO 11-12 09:58:12 [gpu_model_runner.py] Starting to load model /models/m...";

fn gauge(awake: u8, offloaded: u8, dropped: u8) -> String {
    format!(
        "vllm:num_requests_running 0\nvllm:num_requests_waiting 0\nvllm:engine_sleep_state{{engine=\"0\",sleep_state=\"awake\"}} {awake}\n\
         vllm:engine_sleep_state{{engine=\"0\",sleep_state=\"weights_offloaded\"}} {offloaded}\n\
         vllm:engine_sleep_state{{engine=\"0\",sleep_state=\"discard_all\"}} {dropped}\n"
    )
}

fn in_flight(operation: &str) -> String {
    gauge(0, 1, 0) + &format!("vllm:sleep_mode_operations_in_flight{{operation=\"{operation}\"}} 1\n")
}

fn frozen() -> Scene {
    Scene::vllm().healthy().says("/version", 0, 200, r#"{"version":"0.19.0"}"#).load(60, 0, 3, 9).load(0, 0, 3, 9)
}

#[rstest]
// Loading, compiling, capturing: the port is bound but closed; refused is normal and never DEAD.
#[case::refused(Scene::vllm().refused("/health", 0), "STARTING")]
#[case::refused_while_loading(Scene::vllm().refused("/health", 0).log(LOADING), "LOADING")]
#[case::refused_by_proxy(Scene::vllm().says("/health", 0, 503, "error trying to reach service: dial tcp 10.0.0.1:8000: connect: connection refused").log(LOADING), "LOADING")]
#[case::refused_for_long_with_log(Scene::vllm().refused("/health", 0).log(LOADING).running_for(7200, false), "LOADING")]
#[case::log_only(Scene::vllm().log(LOADING), "LOADING")]
// Ready.
#[case::idle(Scene::vllm().healthy().load(0, 0, 0, 5), "READY")]
#[case::health_only(Scene::vllm().healthy(), "READY")]
#[case::awake(Scene::vllm().healthy().says("/is_sleeping", 0, 200, AWAKE), "READY")]
#[case::no_dev_mode(Scene::vllm().healthy().says("/is_sleeping", 0, 404, "{\"detail\":\"Not Found\"}").load(0, 0, 0, 5), "READY")]
#[case::busy_and_moving(Scene::vllm().healthy().load(60, 6, 0, 5).load(0, 6, 0, 900), "READY")]
#[case::busy_one_page(Scene::vllm().healthy().load(0, 6, 0, 5), "READY")]
#[case::ping(Scene::vllm().says("/ping", 0, 200, ""), "READY")]
#[case::completion(Scene::vllm().says("POST /v1/completions", 0, 200, "{}"), "READY")]
#[case::page_alone(Scene::vllm().load(100, 0, 0, 5), "READY")]
#[case::old_page_alone(Scene::vllm().load(130, 0, 0, 5), "UNKNOWN")]
#[case::old_answer(Scene::vllm().says("/health", 700, 200, ""), "UNKNOWN")]
// The list of models is static.
#[case::models_only(Scene::vllm().says("/v1/models", 0, 200, MODELS), "UNKNOWN")]
#[case::models_beside_503(Scene::vllm().says("/v1/models", 0, 200, MODELS).says("/health", 0, 503, ""), "DEAD")]
// Queue full: health is 200.
#[case::queue_full(Scene::vllm().healthy().load(60, 9, 50, 5).load(0, 9, 50, 99), "READY")]
// Paused.
#[case::paused(Scene::vllm().healthy().says("/is_paused", 0, 200, PAUSED).load(0, 0, 0, 5), "PAUSED")]
#[case::resumed(Scene::vllm().healthy().says("/is_paused", 60, 200, PAUSED).says("/is_paused", 0, 200, r#"{"is_paused":false}"#), "READY")]
#[case::paused_by_call(Scene::vllm().healthy().says("POST /pause?mode=keep", 5, 200, "{}"), "PAUSED")]
#[case::resumed_by_call(Scene::vllm().healthy().says("POST /pause", 9, 200, "{}").says("POST /resume", 5, 200, "{}"), "READY")]
#[case::paused_has_waiting(Scene::vllm().healthy().says("/is_paused", 0, 200, PAUSED).load(60, 0, 3, 5).load(0, 0, 4, 5), "PAUSED")]
// From 0.33 on /is_sleeping is true for a plain pause too; the gauge still says awake.
#[case::paused_is_sleeping(Scene::vllm().healthy().says("/is_sleeping", 0, 200, SLEEPING).says("/is_paused", 0, 200, PAUSED).page(0, &gauge(1, 0, 0)), "PAUSED")]
#[case::asleep_is_paused(Scene::vllm().healthy().says("/is_sleeping", 0, 200, SLEEPING).says("/is_paused", 0, 200, PAUSED).page(0, &gauge(0, 1, 0)), "SLEEPING(1)")]
#[case::paused_by_words(Scene::vllm().healthy().says("POST /v1/completions", 0, 503, r#"{"error":{"code":"engine_paused"}}"#), "PAUSED")]
// A request hangs and nothing tells why.
#[case::hangs(Scene::vllm().healthy().silent("POST /v1/completions", 0), "UNKNOWN")]
#[case::hangs_but_moves(Scene::vllm().healthy().silent("POST /v1/completions", 0).load(60, 1, 0, 5).load(0, 1, 0, 50), "READY")]
#[case::answered_after_all(Scene::vllm().healthy().silent("POST /v1/completions", 30).says("POST /v1/completions", 0, 200, "{}"), "READY")]
#[case::no_room(Scene::vllm().healthy().says("POST /v1/completions", 0, 503, "{}"), "READY")]
// Ranks that open no port.
#[case::headless(Scene::vllm().args(&["--headless"]).refused("/health", 0).running_for(9000, true), "UNKNOWN")]
#[case::headless_loads(Scene::vllm().args(&["--headless"]).refused("/health", 0).log(LOADING), "LOADING")]
// Asleep: health 200, running and waiting 0 while requests hang.
#[case::asleep(Scene::vllm().healthy().says("/is_sleeping", 0, 200, SLEEPING), "SLEEPING")]
#[case::asleep_1(Scene::vllm().healthy().says("/is_sleeping", 0, 200, SLEEPING).page(0, &gauge(0, 1, 0)), "SLEEPING(1)")]
#[case::asleep_2(Scene::vllm().healthy().page(0, &gauge(0, 0, 1)), "SLEEPING(2)")]
#[case::asleep_0(Scene::vllm().healthy().says("/is_sleeping", 0, 200, SLEEPING).page(0, &gauge(0, 0, 0)), "SLEEPING(0)")]
#[case::kv_released(Scene::vllm().healthy().page(0, &gauge(0, 0, 0)), "PAUSED")]
#[case::asleep_by_call(Scene::vllm().healthy().says("POST /sleep?level=2", 5, 200, ""), "SLEEPING(2)")]
#[case::woken_by_call(Scene::vllm().healthy().says("POST /sleep", 9, 200, "").says("POST /wake_up", 5, 200, ""), "READY")]
#[case::partly_woken(Scene::vllm().healthy().says("POST /wake_up?tags=weights", 5, 200, r#"{"status":"sleeping","tags":["weights"]}"#), "SLEEPING")]
#[case::asleep_by_log(Scene::vllm().healthy().log("INFO 11-12 09:59:00 [x.py:1] It took 1.2 seconds to fall asleep."), "SLEEPING")]
#[case::woken_by_log(Scene::vllm().healthy().log("INFO 11-12 09:59:00 [x.py:1] It took 1.2 seconds to fall asleep.\nINFO 11-12 09:59:30 [x.py:1] It took 0.5 seconds to wake up tags ['weights']."), "READY")]
// Gauge and answer disagree: the newer one counts; at one instant the answer does.
#[case::gauge_is_newer(Scene::vllm().healthy().says("/is_sleeping", 30, 200, AWAKE).page(0, &gauge(0, 1, 0)), "SLEEPING(1)")]
#[case::answer_is_newer(Scene::vllm().healthy().says("/is_sleeping", 0, 200, AWAKE).page(30, &gauge(0, 1, 0)), "READY")]
#[case::same_time(Scene::vllm().healthy().says("/is_sleeping", 0, 200, SLEEPING).page(0, &gauge(1, 0, 0)), "SLEEPING")]
#[case::tokens_move_since(Scene::vllm().healthy().says("/is_sleeping", 90, 200, SLEEPING).load(60, 1, 0, 5).load(0, 1, 0, 50), "READY")]
// Waking.
#[case::waking(Scene::vllm().healthy().page(0, &in_flight("wake")), "WAKING")]
#[case::waking_answer_asleep(Scene::vllm().healthy().says("/is_sleeping", 0, 200, SLEEPING).page(0, &in_flight("wake")), "WAKING")]
#[case::going_to_sleep(Scene::vllm().healthy().page(0, &in_flight("sleep")), "SLEEPING(1)")]
// Frozen core.
#[case::frozen(frozen(), "STALLED")]
// Dead.
#[case::died_asleep(Scene::vllm().says("/is_sleeping", 60, 200, SLEEPING).says("/health", 0, 503, ""), "DEAD")]
#[case::dead(Scene::vllm().says("/health", 0, 503, ""), "DEAD")]
#[case::dead_before_0_12(Scene::vllm().says("/health", 0, 500, "Internal Server Error"), "DEAD")]
#[case::dead_with_stale_page(Scene::vllm().load(60, 3, 0, 5).load(30, 3, 0, 5).says("/health", 0, 503, ""), "DEAD")]
#[case::gone_after_answer(Scene::vllm().says("/health", 60, 200, "").refused("/health", 0), "DEAD")]
#[case::gone_after_page(Scene::vllm().load(60, 0, 0, 5).refused("/health", 0), "DEAD")]
#[case::gone_by_probe(Scene::vllm().refused("/health", 0).readiness(http_probe()).running_for(60, true), "DEAD")]
#[case::no_probe_says_nothing(Scene::vllm().refused("/health", 0).running_for(60, true), "STARTING")]
#[case::gone_after_hours(Scene::vllm().refused("/health", 0).running_for(9000, true), "DEAD")]
#[case::gone_by_log(Scene::vllm().refused("/health", 0).log("INFO:     Application startup complete.\nINFO 11-12 09:00:00 [loggers.py] Engine 000: Avg prompt throughput: 0.0 tokens/s"), "DEAD")]
#[case::no_answer_after_up(Scene::vllm().says("/health", 60, 200, "").silent("/health", 0), "DEAD")]
#[case::no_answer_at_all(Scene::vllm().silent("/health", 0), "UNKNOWN")]
#[case::restarted_since(Scene::vllm().says("/health", 60, 200, "").refused("/health", 0).running_for(30, false), "STARTING")]
#[case::failed_by_log(Scene::vllm().log("INFO 11-12 09:57:02 [core.py:1] Initializing a V1 LLM engine (v0.33.0)\nERROR 11-12 09:58:00 [core.py:9] EngineCore failed to start.\nRuntimeError: Engine core initialization failed."), "DEAD")]
#[case::out_of_memory(Scene::vllm().refused("/health", 0).log("(EngineCore pid=1) ERROR 11-12 09:58:00 [core.py:9] torch.OutOfMemoryError: CUDA out of memory."), "DEAD")]
#[case::elastic_scaling(Scene::vllm().healthy().says("/metrics", 0, 503, ""), "READY")]
// Health fails, tokens move.
#[case::false_negative(Scene::vllm().load(40, 3, 0, 5).load(0, 3, 0, 500).silent("/health", 0), "READY")]
#[case::false_negative_503(Scene::vllm().load(40, 3, 0, 5).load(0, 3, 0, 500).says("/health", 0, 503, ""), "READY")]
#[case::silent_health_idle_page(Scene::vllm().load(0, 0, 0, 5).silent("/health", 0), "UNKNOWN")]
// Draining.
#[case::drains(Scene::vllm().args(&["--shutdown-timeout", "20"]).healthy().load(0, 3, 0, 5).deleted(5), "DRAINING")]
#[case::drained(Scene::vllm().args(&["--shutdown-timeout", "20"]).healthy().load(0, 0, 0, 5).deleted(5), "READY")]
#[case::cuts(Scene::vllm().args(&[]).healthy().load(0, 3, 0, 5).deleted(5), "READY")]
#[case::drains_by_log(Scene::vllm().healthy().log("(EngineCore pid=1) INFO 11-12 09:59:48 [core.py:1655] [shutdown] EngineCore: draining in-flight requests count=3 timeout=20s"), "DRAINING")]
#[case::port_closed_after_sigterm(Scene::vllm().args(&["--shutdown-timeout", "20"]).load(60, 3, 0, 5).refused("/health", 0).deleted(30), "DEAD")]
#[case::shut_down(Scene::vllm().log("INFO:     Application shutdown complete.\n"), "DEAD")]
fn states(#[case] scene: Scene, #[case] wanted: &str) {
    let report = scene.report();
    assert_eq!(scene.word(), wanted, "{}", report.why);
    assert_eq!(report.kind, Ok(EngineKind::Vllm));
    if !matches!(report.state, EngineState::Unknown(_)) {
        assert!(!report.evidence.is_empty(), "a state without proof: {}", report.why);
    }
}

#[test]
fn a_stall_is_proven_by_counters_not_by_health() {
    let report = frozen().report();
    assert_eq!(report.why, "it answers its health check, but 3 wait and 0 run and no token was produced for 60 s");
    let lines: Vec<String> = report.evidence.iter().map(|e| format!("{}: {}", e.place, e.value)).collect();
    assert_eq!(
        lines,
        [
            "vllm:num_requests_waiting: waiting 3 on both scrapes",
            "vllm:num_requests_running: running 0 on both scrapes",
            "vllm:generation_tokens_total: 9 on both scrapes, 60 s apart",
            "vllm:prompt_tokens_total: 7 on both scrapes, 60 s apart",
            "GET :8000/health: 200",
        ]
    );
    assert_eq!(report.version.unwrap().value, "0.19.0");
}

#[test]
fn disagreement_about_sleep_shows_both() {
    let report = Scene::vllm().healthy().says("/is_sleeping", 30, 200, AWAKE).page(0, &gauge(0, 1, 0)).report();
    let places: Vec<String> = report.evidence.iter().map(|e| e.place.to_string()).collect();
    assert_eq!(places, ["vllm:engine_sleep_state", "GET :8000/is_sleeping", "GET :8000/health"]);
}

#[test]
fn sleep_began_when_the_row_of_words_did() {
    let asleep =
        Scene::vllm().says("/is_sleeping", 90, 200, AWAKE).says("/is_sleeping", 60, 200, SLEEPING).says("/is_sleeping", 0, 200, SLEEPING);
    assert_eq!(asleep.report().since, Some(at(60)));
    let logged = asleep.log("INFO 11-12 09:58:50 [x.py:1] It took 1.2 seconds to fall asleep.");
    assert_eq!(logged.report().since, Some(at(70)));
}

#[rstest]
#[case(Scene::vllm().says("/is_sleeping", 0, 404, ""), Some(false))]
#[case(Scene::vllm().says("POST /sleep", 0, 404, ""), Some(false))]
#[case(Scene::vllm().says("/is_sleeping", 0, 200, AWAKE), Some(true))]
#[case(Scene::vllm().says("/sleep", 0, 405, ""), Some(true))]
#[case(Scene::vllm().says("/is_sleeping", 60, 404, "").says("/is_sleeping", 0, 200, AWAKE), Some(true))]
#[case(Scene::vllm().silent("/is_sleeping", 0), None)]
#[case(Scene::vllm(), None)]
fn sleep_is_offered(#[case] scene: Scene, #[case] wanted: Option<bool>) {
    assert_eq!(scene.report().sleep_routes.ok().map(|offer| offer.offered), wanted);
}

#[rstest]
#[case(&["--served-model-name", "m", "m2", "--port", "8000"], Some(true))]
#[case(&["--served-model-name=m"], Some(true))]
#[case(&["--model", "m"], Some(true))]
#[case(&["serve", "m", "--port", "1"], Some(true))]
#[case(&["--model=other"], Some(false))]
#[case(&["--model", "org/m", "--served-model-name", "other"], Some(false))]
#[case(&["--model", "$(MODEL)"], None)]
#[case(&[], None)]
fn the_model_name(#[case] args: &[&str], #[case] wanted: Option<bool>) {
    let report = Scene::vllm().healthy().says("/v1/models", 0, 200, MODELS).args(args).report();
    assert_eq!(report.model_name.as_ref().map(|check| check.agrees()), wanted);
    assert_eq!(report.why.contains("it lists m, not"), wanted == Some(false));
    assert_eq!(report.state, EngineState::Ready);
}

#[test]
fn ranks_that_stand_still_are_named_whatever_the_state() {
    let text = |moving: u32| {
        format!(
            "vllm:num_requests_running{{engine=\"0\"}} 9\nvllm:num_requests_running{{engine=\"2\"}} 0\nvllm:num_requests_waiting{{engine=\"0\"}} 0\n\
             vllm:num_requests_waiting{{engine=\"2\"}} 6\nvllm:generation_tokens_total{{engine=\"0\"}} {moving}\nvllm:generation_tokens_total{{engine=\"2\"}} 4\n"
        )
    };
    let report = Scene::vllm().healthy().page(60, &text(1)).page(0, &text(99)).report();
    assert_eq!(report.state, EngineState::Ready);
    assert!(report.stall.is_none() && report.stalled_ranks.contains_key("2"));
    assert!(report.evidence.iter().any(|e| e.value == "engine 2 has 6 waiting and does not move for 60 s"), "{:?}", report.evidence);
}
