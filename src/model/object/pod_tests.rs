//! Pods read from JSON.

use super::*;
use rstest::rstest;
use serde_json::json;
use std::cell::RefCell;

fn container(doc: serde_json::Value) -> Container {
    let problems = RefCell::new(Vec::new());
    Container::read(&Field::root(&doc, &problems))
}

#[test]
fn requests_win_over_limits_and_slices_count_as_gpus() {
    let c = container(json!({"name": "vllm", "resources": {"limits": {"nvidia.com/gpu": "8", "cpu": "4"},
        "requests": {"nvidia.com/gpu": 4, "nvidia.com/mig-1g.10gb": "2"}}}));
    assert_eq!(c.gpus(), 6);
    assert_eq!(c.devices.get("cpu"), None);
}

#[rstest]
#[case(json!({"args": ["--shutdown-timeout", "20"]}), Some("20"))]
#[case(json!({"args": ["--shutdown-timeout=20"]}), Some("20"))]
#[case(json!({"command": ["sh", "-c", "vllm serve m --shutdown-timeout 20 --port 8000"]}), Some("20"))]
#[case(json!({"args": ["--shutdown-timeout", "--port=1"]}), Some(""))]
#[case(json!({"args": ["--shutdown-timeout-x=20"]}), None)]
fn flags(#[case] doc: serde_json::Value, #[case] wanted: Option<&str>) {
    assert_eq!(container(doc).flag("--shutdown-timeout"), wanted);
}

#[test]
fn values_of_variables_are_dropped_unless_they_decide_something() {
    let c = container(json!({"env": [{"name": "HF_TOKEN", "value": "hf_secret"}, {"name": "VLLM_SERVER_DEV_MODE", "value": "1"}]}));
    assert_eq!(c.env.get("HF_TOKEN"), Some(&None));
    assert_eq!(c.env.get("VLLM_SERVER_DEV_MODE"), Some(&Some("1".into())));
}

#[rstest]
#[case("sh -c sleep 15", Some(15))]
#[case("/bin/sleep 20s", Some(20))]
#[case("curl localhost", None)]
fn pre_stop(#[case] line: &str, #[case] wanted: Option<i64>) {
    assert_eq!(sleep_in(line), wanted);
}

#[test]
fn probe_budget() {
    let c = container(json!({"livenessProbe": {"httpGet": {"path": "/health", "port": "http"}, "initialDelaySeconds": 120,
        "periodSeconds": 10, "failureThreshold": 5}}));
    let probe = c.liveness.unwrap();
    assert_eq!((probe.budget_s(), probe.shown().as_str()), (170, "GET :http/health"));
}
