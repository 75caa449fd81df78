//! Pods on nodes that are not Ready, containers that were never made, and predictions that have run out.

use rstest::rstest;
use serde_json::{Value, json};

use crate::diagnose::testkit::{Kit, vllm_page};
use crate::model::Subject;
use crate::model::service::Replica;
use crate::model::state::ReplicaState;

fn replica(kit: Kit) -> Replica {
    kit.build().world.replicas.get(&Subject::pod("s", "a")).unwrap().clone()
}

fn on_node(status: &str, since: &str) -> Kit {
    let ready = json!([{"type": "Ready", "status": status, "reason": "NodeStatusUnknown", "lastTransitionTime": since}]);
    Kit::new().serving_pod("a", true).node("n1", 8, |node| node["status"]["conditions"] = ready)
}

#[rstest]
#[case::silent("Unknown", "2026-11-12T09:00:00Z", false, ReplicaState::Unknown)]
#[case::not_ready("False", "2026-11-12T09:00:00Z", false, ReplicaState::Unknown)]
#[case::just_now("Unknown", "2026-11-12T09:59:30Z", false, ReplicaState::Serving)]
#[case::heard_since("Unknown", "2026-11-12T09:00:00Z", true, ReplicaState::Serving)]
#[case::well("True", "2026-11-12T09:00:00Z", false, ReplicaState::Serving)]
fn a_silent_node_takes_the_proof_away(#[case] status: &str, #[case] since: &str, #[case] heard: bool, #[case] wanted: ReplicaState) {
    let kit = on_node(status, since);
    let replica = replica(if heard { kit.page("a", 0, &vllm_page(0.0, 0.0, 5.0)) } else { kit });
    assert_eq!(replica.state, wanted, "{:?}", replica.why);
    let said = replica.why.iter().any(|why| why.contains("its node n1 is"));
    let proven = replica.evidence.iter().any(|proof| proof.object == Subject::node("n1"));
    assert_eq!((said, proven), (status != "True", status != "True"), "{:?}", replica.why);
}

fn not_made(reason: &str, restarts: u32, last: Value) -> impl Fn(&mut Value) {
    let state = json!({"waiting": {"reason": reason, "message": "secret \"hf-token\" not found"}});
    move |pod| {
        pod["status"]["conditions"] = json!([{"type": "PodScheduled", "status": "True"}, {"type": "Ready", "status": "False"}]);
        pod["status"]["containerStatuses"] =
            json!([{"name": "vllm", "ready": false, "restartCount": restarts, "state": state, "lastState": last}]);
    }
}

#[rstest]
#[case::config("CreateContainerConfigError", 0, ReplicaState::Starting)]
#[case::create("CreateContainerError", 0, ReplicaState::Starting)]
#[case::after_a_run("CreateContainerError", 2, ReplicaState::Crashing)]
#[case::back_off("CrashLoopBackOff", 1, ReplicaState::Crashing)]
fn a_container_that_never_ran_does_not_crash(#[case] reason: &str, #[case] restarts: u32, #[case] wanted: ReplicaState) {
    let replica = replica(Kit::new().pod_with("a", not_made(reason, restarts, json!({}))));
    assert_eq!(replica.state, wanted);
    if wanted == ReplicaState::Starting {
        assert_eq!(replica.why[0], format!("its container vllm can not be made: {reason}: secret \"hf-token\" not found"));
    }
}

#[rstest]
#[case::runs(20, Some(40.0))]
#[case::just_over(61, None)]
#[case::long_over(7200, None)]
fn a_prediction_that_has_run_out_is_no_zero(#[case] ago: i64, #[case] wanted: Option<f64>) {
    let at = crate::diagnose::testkit::now() - jiff::SignedDuration::from_secs(ago);
    let line = format!(
        "INFO 11-12 {} [x.py:1] Loading safetensors checkpoint shards:  50% Completed | 2/4 [01:00<01:00, 30.00s/it]",
        crate::model::time::clock(at)
    );
    let replica = replica(Kit::new().loading_pod("a").log("a", "vllm", &[&line]));
    match wanted {
        Some(seconds) => assert_eq!(replica.eta_s, Ok(seconds)),
        None => assert!(replica.eta_s.clone().unwrap_err().why().starts_with("overdue: "), "{:?}", replica.eta_s),
    }
}
