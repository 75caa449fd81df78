//! States that do not depend on the engine: containers that do not run, downloads, progress.

use rstest::rstest;

use super::*;
use crate::model::ladder::Stage;
use crate::model::object::pod::Termination;
use crate::model::state::EngineState;

fn ended() -> Termination {
    Termination { exit_code: Some(137), reason: "OOMKilled".into(), started: None, finished: Some(at(30)) }
}

fn waiting(reason: &str) -> ContainerState {
    ContainerState::Waiting { reason: reason.into(), message: String::new() }
}

const FETCHING: &str = "2026-11-12 09:46:26 INFO Initializing, args: src_uri [hf://org/qwen-l] dest_path [/mnt/models]\n\
    Fetching 41 files:  24%|##4       | 10/41 [05:20<16:33, 32.0s/it]\nFetching 41 files:  61%|######1   | 25/41 [13:30<08:38, 32.4s/it]";
const SHARDS: &str = "INFO 11-12 09:58:12 [gpu_model_runner.py] Starting to load model /models/qwen-l...\n\
    Loading safetensors checkpoint shards:  27% Completed | 10/37 [01:01<02:45,  6.12s/it]";

#[rstest]
#[case(ContainerState::Terminated(ended()), "DEAD")]
#[case(waiting("ContainerCreating"), "UNKNOWN")]
#[case(waiting("ImagePullBackOff"), "UNKNOWN")]
#[case(ContainerState::Unknown, "READY")]
fn a_container_that_does_not_run(#[case] state: ContainerState, #[case] wanted: &str) {
    // An answer of a minute ago says nothing of a container that has ended since.
    assert_eq!(Scene::vllm().healthy().state(state, false).word(), wanted);
}

#[test]
fn crash_loops_are_dead() {
    let mut scene = Scene::vllm().state(waiting("CrashLoopBackOff"), false);
    scene.status.as_mut().unwrap().last = Some(ended());
    let report = scene.report();
    assert_eq!((report.state, report.since), (EngineState::Dead, Some(at(30))));
    assert_eq!(report.why, "its container does not run (CrashLoopBackOff): the last run ended with exit 137 (OOMKilled)");
}

#[test]
fn a_download_in_an_init_container() {
    let report = Scene::vllm().state(waiting("PodInitializing"), false).init_log(FETCHING).report();
    assert_eq!(report.state, EngineState::Downloading);
    assert_eq!(report.why, "the model is being fetched: 61 % (25/41)");
    assert!((report.progress.unwrap().value - 25.0 / 41.0).abs() < 1e-9);
    assert_eq!(report.eta_s.unwrap().value, 518.0);
    // It is no stage of the engine.
    assert!(!report.stages.contains_key(&Stage::Loading));
    assert_eq!(Scene::new().init_log(FETCHING).word(), "DOWNLOADING");
}

#[test]
fn shards() {
    let report = Scene::new().refused("/health", 0).log(SHARDS).report();
    assert_eq!((report.kind.unwrap(), report.state), (EngineKind::Vllm, EngineState::Loading));
    assert_eq!(report.why, "it loads the weights: 27 % of the shards");
    assert_eq!((report.eta_s.unwrap().value, report.since), (165.0, Some("2026-11-12T09:58:12Z".parse().unwrap())));
    assert_eq!(report.stages[&Stage::Loading].at, "2026-11-12T09:58:12Z".parse().unwrap());
}

#[test]
fn a_download_after_the_engine_began_to_load_is_a_download() {
    let log = "INFO 11-12 09:58:12 [x.py] Starting to load model org/m...\n\
        model-00001-of-00037.safetensors:  45%|####5     | 2.25G/5.00G [00:30<00:36, 74.9MB/s]";
    let report = Scene::vllm().refused("/health", 0).log(log).report();
    assert_eq!((report.state, report.progress.map(|p| p.value)), (EngineState::Downloading, Some(0.45)));
}

#[test]
fn the_log_of_an_earlier_run_says_nothing_of_this_one() {
    let mut scene = Scene::vllm().refused("/health", 0).log("INFO:     Application startup complete.\nRuntimeError: CUDA out of memory");
    scene.logs[0].previous_at = Some(at(60));
    assert_eq!(scene.word(), "STARTING");
}

#[test]
fn ready_since() {
    let scene = Scene::vllm().refused("/health", 90).says("/health", 60, 200, "").healthy();
    let report = scene.report();
    assert_eq!((report.state, report.since), (EngineState::Ready, Some(at(60))));
    assert_eq!(report.stages[&Stage::EngineReady].at, at(60));
    assert_eq!(Scene::vllm().healthy().report().since, None);
}

#[test]
fn a_port_that_never_answered_says_nothing_beside_one_that_does() {
    let mut scene = Scene::vllm().refused("/health", 0).healthy().refused("/health", 0);
    for answer in &mut scene.answers {
        answer.port = Some(if answer.status().is_some() { 8000 } else { 9000 });
    }
    assert_eq!(scene.word(), "READY");
}

#[rstest]
#[case(Scene::new().says("/version", 0, 200, r#"{"version":"0.19.0"}"#), Some("0.19.0"))]
#[case(Scene::new().log("INFO 11-12 09:56:02 [core.py:101] Initializing a V1 LLM engine (v0.33.0) with config: x"), Some("0.33.0"))]
#[case(Scene::new().args(&[]), None)]
fn versions(#[case] scene: Scene, #[case] wanted: Option<&str>) {
    assert_eq!(scene.report().version.ok().map(|fact| fact.value).as_deref(), wanted);
}

#[test]
fn the_trust_in_what_tells_the_kind() {
    let models = r#"{"data":[{"id":"m","owned_by":"sglang"}]}"#;
    let all = Scene::vllm().page(0, "tgi_queue_size 1\n").says("/v1/models", 0, 200, models);
    assert_eq!(all.report().kind, Ok(EngineKind::Vllm));
    let page = Scene::new().page(0, "tgi_queue_size 1\n").says("/v1/models", 0, 200, models);
    assert_eq!(page.report().kind, Ok(EngineKind::OpenAi));
    let answer = Scene::new().says("/v1/models", 0, 200, models).log("INFO 11-12 09:58:12 [x.py] Starting to load model m");
    assert_eq!(answer.report().kind, Ok(EngineKind::Sglang));
    assert_eq!(Scene::new().report().kind.unwrap_err().why(), "nothing tells which engine it is");
}
