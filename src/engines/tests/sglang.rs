//! SGLang: every row of its state tables (read in 0.4.10 to 0.5.23), and servers that are neither.

use rstest::rstest;

use super::*;
use crate::model::ladder::Stage;

const MODELS: &str = r#"{"object":"list","data":[{"id":"qwen-b","object":"model","owned_by":"sglang"}]}"#;
const WARM_LOG: &str = "[2026-11-12 09:58:51] Load weight end. type=X, dtype=torch.bfloat16, avail mem=21.30 GB, mem usage=54.10 GB.\n\
    [2026-11-12 09:59:20] Capture cuda graph begin. This can take up to several minutes.\n\
    INFO:     Uvicorn running on http://0.0.0.0:30000 (Press CTRL+C to quit)\n[2026-11-12 09:59:55] Capturing batches (bs=64)\n";
const UP_LOG: &str = "[2026-11-12 09:00:00] The server is fired up and ready to roll!\n";

fn page(running: u32, total: u32) -> String {
    format!(
        "sglang:num_running_reqs{{tp_rank=\"0\"}} {running}\nsglang:num_queue_reqs{{tp_rank=\"0\"}} 0\nsglang:num_requests_total {total}\n\
         sglang:prompt_tokens_total 10\nsglang:generation_tokens_total 10\nsglang:token_usage{{tp_rank=\"0\"}} 0.1\n"
    )
}

#[rstest]
// Loading weights, KV, graphs: the port is closed.
#[case::loading(Scene::sglang().refused("/health", 0).log("[2026-11-12 09:58:51] Load weight begin. avail mem=78.00 GB"), "LOADING")]
#[case::starting(Scene::sglang().refused("/health", 0).log("[2026-11-12 09:58:51] server_args=ServerArgs(model_path='m')"), "STARTING")]
// The warm-up request runs: the port is open, health 503 is normal.
#[case::warming(Scene::sglang().says("/health", 0, 503, ""), "WARMING")]
#[case::warming_with_models(Scene::sglang().says("/v1/models", 0, 200, MODELS).says("/health", 0, 503, "").silent("/get_server_info", 0), "WARMING")]
#[case::warming_kind_by_answer(Scene::new().says("/v1/models", 0, 200, MODELS).says("/health", 0, 503, "").log(WARM_LOG), "WARMING")]
#[case::warming_with_page(Scene::sglang().says("/health", 0, 503, "").page(0, &page(0, 0)), "WARMING")]
#[case::warming_by_log_and_page(Scene::sglang().page(0, &page(0, 0)).log(WARM_LOG), "WARMING")]
#[case::models_only(Scene::sglang().says("/v1/models", 0, 200, MODELS), "UNKNOWN")]
#[case::not_ready_yet(Scene::sglang().says("/ready", 0, 503, "").says("/health", 0, 503, ""), "WARMING")]
// Ready.
#[case::ready(Scene::sglang().says("/ready", 0, 200, ""), "READY")]
#[case::health(Scene::sglang().healthy(), "READY")]
#[case::old_without_ready(Scene::sglang().healthy().says("/ready", 0, 404, "{}"), "READY")]
#[case::page_alone(Scene::sglang().page(0, &page(2, 9)), "READY")]
#[case::follower(Scene::sglang().args(&["--node-rank", "1"]).healthy(), "UNKNOWN")]
#[case::leader(Scene::sglang().args(&["--node-rank=0"]).healthy(), "READY")]
// Paused.
#[case::paused(Scene::sglang().says("/ready", 0, 503, "").healthy().log(UP_LOG), "PAUSED")]
#[case::paused_by_call(Scene::sglang().healthy().says("POST /pause_generation", 5, 200, r#"{"status":"ok"}"#), "PAUSED")]
#[case::continued(Scene::sglang().healthy().says("POST /pause_generation", 9, 200, "{}").says("POST /continue_generation", 5, 200, "{}"), "READY")]
// Memory released: only the call tells.
#[case::released(Scene::sglang().healthy().says("POST /release_memory_occupation", 5, 200, "null"), "SLEEPING")]
#[case::resumed(Scene::sglang().healthy().says("POST /release_memory_occupation", 9, 200, "null").says("POST /resume_memory_occupation", 5, 200, "null"), "READY")]
#[case::idle_is_not_asleep(Scene::sglang().healthy().page(0, &page(0, 9)), "READY")]
// SIGTERM: health 503 at once, it drains until the grace period ends.
#[case::draining(Scene::sglang().args(&[]).says("/health", 0, 503, "").log(UP_LOG).deleted(5), "DRAINING")]
#[case::draining_by_log(Scene::sglang().says("/health", 0, 503, "").log("[2026-11-12 09:59:50] Gracefully exiting... Remaining number of requests 3. Remaining requests ['a']"), "DRAINING")]
// Hung or dead: 503 or silence after it had been up.
#[case::hung(Scene::sglang().says("/health", 60, 200, "").says("/health", 0, 503, ""), "DEAD")]
#[case::hung_by_log(Scene::sglang().says("/health", 0, 503, "").log(UP_LOG), "DEAD")]
#[case::hung_after_work(Scene::sglang().page(60, &page(2, 9)).says("/health", 0, 503, ""), "DEAD")]
#[case::stalled(Scene::sglang().page(60, &page(2, 9)).page(0, &page(2, 9)), "STALLED")]
// /health runs a request through the loop: 503 while its work stands still is a loop that hangs, not a process that is gone.
#[case::hangs(Scene::sglang().page(60, &page(2, 9)).page(0, &page(2, 9)).says("/health_generate", 0, 503, ""), "STALLED")]
#[case::hangs_by_health(Scene::sglang().page(30, &page(2, 9)).page(0, &page(2, 9)).says("/health", 0, 503, ""), "STALLED")]
#[case::idle_and_unwell(Scene::sglang().page(60, &page(0, 9)).page(0, &page(0, 9)).says("/health", 0, 503, ""), "DEAD")]
#[case::gone(Scene::sglang().refused("/health", 0).log(UP_LOG), "DEAD")]
#[case::crashed(Scene::sglang().refused("/health", 0).log("[2026-11-12 09:59:50] Scheduler hit an exception: Traceback"), "DEAD")]
#[case::sigquit(Scene::sglang().log("[2026-11-12 09:59:50] SIGQUIT received. signum=None, frame=None. It usually means one child failed."), "DEAD")]
fn states(#[case] scene: Scene, #[case] wanted: &str) {
    assert_eq!(scene.word(), wanted, "{}", scene.report().why);
    assert_eq!(scene.report().kind, Ok(EngineKind::Sglang));
}

#[test]
fn the_log_gives_the_times_of_the_stages() {
    let report = Scene::sglang().says("/health", 0, 503, "").log(WARM_LOG).report();
    assert_eq!(report.stages[&Stage::Warming].at, "2026-11-12T09:58:51Z".parse().unwrap());
    assert_eq!(report.since, Some("2026-11-12T09:58:51Z".parse().unwrap()));
    assert!(!report.stages.contains_key(&Stage::EngineReady));
}

#[rstest]
#[case::healthy(Scene::of(EngineKind::OpenAi).healthy(), "READY")]
#[case::models_only(Scene::new().says("/v1/models", 0, 200, r#"{"data":[{"id":"m"}]}"#), "UNKNOWN")]
#[case::llamacpp_loads(Scene::of(EngineKind::OpenAi).says("/health", 0, 503, r#"{"error":{"code":503,"message":"Loading model","type":"unavailable_error"}}"#), "LOADING")]
#[case::llamacpp_asleep(Scene::of(EngineKind::OpenAi).healthy().says("/props", 0, 200, r#"{"total_slots":1,"is_sleeping":true}"#), "SLEEPING")]
#[case::unhealthy_after_up(Scene::of(EngineKind::OpenAi).says("/health", 60, 200, "").says("/health", 0, 503, r#"{"error":"unhealthy"}"#), "DEAD")]
#[case::unhealthy_at_first(Scene::of(EngineKind::OpenAi).says("/health", 0, 503, r#"{"error":"unhealthy"}"#), "STARTING")]
#[case::triton(Scene::of(EngineKind::OpenAi).says("/v2/health/ready", 0, 200, ""), "READY")]
#[case::nothing(Scene::new(), "UNKNOWN")]
fn other_servers(#[case] scene: Scene, #[case] wanted: &str) {
    assert_eq!(scene.word(), wanted, "{}", scene.report().why);
}
