//! One word for one pod.

use rstest::rstest;
use serde_json::{Value, json};

use crate::diagnose::testkit::{Kit, vllm_page};
use crate::model::Subject;
use crate::model::service::Replica;
use crate::model::state::ReplicaState;

fn replica(kit: Kit) -> Replica {
    kit.build().world.replicas.get(&Subject::pod("s", "a")).unwrap().clone()
}

fn state_of(change: impl FnOnce(&mut Value)) -> ReplicaState {
    replica(Kit::new().pod_with("a", change)).state
}

/// A pod that no node has yet.
fn unbound(pod: &mut Value) {
    pod["spec"]["nodeName"] = Value::Null;
    pod["status"] = json!({"phase": "Pending"});
}

/// A pod on a node whose container waits with this reason.
fn waiting(reason: &str) -> impl Fn(&mut Value) {
    let reason = reason.to_owned();
    move |pod| {
        pod["status"]["conditions"] = json!([{"type": "PodScheduled", "status": "True", "lastTransitionTime": "2026-11-12T09:50:00Z"},
            {"type": "Ready", "status": "False"}]);
        pod["status"]["containerStatuses"] =
            json!([{"name": "vllm", "ready": false, "restartCount": 3, "state": {"waiting": {"reason": reason}}}]);
    }
}

#[test]
fn not_scheduled() {
    assert_eq!(state_of(unbound), ReplicaState::PendingGpu);
    let gated = |pod: &mut Value| {
        unbound(pod);
        pod["spec"]["schedulingGates"] = json!([{"name": "kueue.x-k8s.io/admission"}]);
    };
    assert_eq!(state_of(gated), ReplicaState::WaitingAdmission);
    let by_condition = |pod: &mut Value| {
        unbound(pod);
        pod["status"]["conditions"] = json!([{"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}]);
    };
    assert_eq!(state_of(by_condition), ReplicaState::WaitingAdmission);
    let unschedulable = |pod: &mut Value| {
        unbound(pod);
        pod["spec"]["containers"][0]["resources"] = json!({"limits": {"nvidia.com/gpu": "8"}});
        pod["status"]["conditions"] =
            json!([{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/2 nodes"}]);
    };
    let replica = replica(Kit::new().pod_with("a", unschedulable));
    assert_eq!(replica.state, ReplicaState::PendingGpu);
    assert_eq!(replica.why[0], "no node takes it: it needs 8 GPUs (0/2 nodes)");
    let no_status = |pod: &mut Value| {
        unbound(pod);
        pod["status"] = Value::Null;
    };
    assert_eq!(state_of(no_status), ReplicaState::Unknown);
}

#[rstest]
#[case("ErrImagePull", ReplicaState::Pulling)]
#[case("ImagePullBackOff", ReplicaState::Pulling)]
#[case("CrashLoopBackOff", ReplicaState::Crashing)]
#[case("CreateContainerError", ReplicaState::Crashing)]
#[case("ContainerCreating", ReplicaState::Starting)]
fn waiting_containers(#[case] reason: &str, #[case] wanted: ReplicaState) {
    assert_eq!(state_of(waiting(reason)), wanted);
}

#[rstest]
#[case::sandbox_not_ready("False", ReplicaState::Starting)]
#[case::sandbox_ready("True", ReplicaState::Pulling)]
fn creating_containers(#[case] sandbox: &str, #[case] wanted: ReplicaState) {
    let state = state_of(|pod| {
        waiting("ContainerCreating")(pod);
        pod["status"]["conditions"].as_array_mut().unwrap().push(json!({"type": "PodReadyToStartContainers", "status": sandbox}));
    });
    assert_eq!(state, wanted);
}

fn event(name: &str, reason: &str, last: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Event", "metadata": {"name": name, "namespace": "s"}, "reason": reason, "message": "image x",
        "firstTimestamp": last, "lastTimestamp": last, "involvedObject": {"kind": "Pod", "namespace": "s", "name": "a"}})
}

#[test]
fn a_pull_is_told_by_its_event_until_it_is_done() {
    let pulling = || Kit::new().pod_with("a", waiting("ContainerCreating")).object(event("1", "Pulling", "2026-11-12T09:55:00Z"));
    let replica_ = replica(pulling());
    assert_eq!(replica_.state, ReplicaState::Pulling);
    assert_eq!(replica_.since.unwrap().to_string(), "2026-11-12T09:55:00Z");
    assert!(replica_.why[0].contains("5 min"), "{:?}", replica_.why);
    let done = pulling().object(event("2", "Pulled", "2026-11-12T09:56:00Z"));
    assert_eq!(replica(done).state, ReplicaState::Starting);
}

#[rstest]
#[case::fetcher("storage-initializer", json!({"running": {"startedAt": "2026-11-12T09:50:00Z"}}), ReplicaState::Downloading)]
#[case::other("wait-for-db", json!({"running": {"startedAt": "2026-11-12T09:50:00Z"}}), ReplicaState::Starting)]
#[case::failed("storage-initializer", json!({"terminated": {"exitCode": 1, "reason": "Error"}}), ReplicaState::Crashing)]
#[case::back_off("storage-initializer", json!({"waiting": {"reason": "CrashLoopBackOff"}}), ReplicaState::Crashing)]
#[case::image("storage-initializer", json!({"waiting": {"reason": "ImagePullBackOff"}}), ReplicaState::Pulling)]
#[case::done("storage-initializer", json!({"terminated": {"exitCode": 0}}), ReplicaState::Starting)]
fn init_containers(#[case] name: &str, #[case] state: Value, #[case] wanted: ReplicaState) {
    let found = state_of(|pod| {
        waiting("PodInitializing")(pod);
        pod["spec"]["initContainers"] = json!([{"name": name, "image": "x"}]);
        pod["status"]["initContainerStatuses"] = json!([{"name": name, "state": state}]);
    });
    assert_eq!(found, wanted);
}

#[test]
fn a_sidecar_that_runs_holds_nothing_up() {
    let found = state_of(|pod| {
        pod["spec"]["initContainers"] = json!([{"name": "routing-proxy", "image": "x", "restartPolicy": "Always"}]);
        pod["status"]["initContainerStatuses"] = json!([{"name": "routing-proxy", "started": true, "state": {"running": {}}}]);
    });
    assert_eq!(found, ReplicaState::Ready);
}

#[rstest]
#[case::failed("Failed", ReplicaState::Dead)]
#[case::succeeded("Succeeded", ReplicaState::Dead)]
#[case::running("Running", ReplicaState::Ready)]
fn phases(#[case] phase: &str, #[case] wanted: ReplicaState) {
    assert_eq!(state_of(|pod| pod["status"]["phase"] = phase.into()), wanted);
}

#[test]
fn a_terminated_container_is_a_crash() {
    let found = state_of(|pod| {
        pod["status"]["conditions"] = json!([{"type": "PodScheduled", "status": "True"}, {"type": "Ready", "status": "False"}]);
        pod["status"]["containerStatuses"][0] = json!({"name": "vllm", "ready": false, "restartCount": 1,
            "state": {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}});
    });
    assert_eq!(found, ReplicaState::Crashing);
}

/// A pod being deleted, with so many seconds left.
fn deleted(left: i64, args: &[&str], pre_stop: bool) -> Replica {
    let until = crate::diagnose::testkit::now() + jiff::SignedDuration::from_secs(left);
    replica(Kit::new().pod_with("a", |pod| {
        pod["metadata"]["deletionTimestamp"] = until.to_string().into();
        pod["metadata"]["deletionGracePeriodSeconds"] = 60.into();
        pod["spec"]["containers"][0]["args"] = json!(args);
        if pre_stop {
            pod["spec"]["containers"][0]["lifecycle"] = json!({"preStop": {"sleep": {"seconds": 15}}});
        }
    }))
}

#[rstest]
#[case::the_default_cuts(30, &[], false, ReplicaState::Terminating)]
#[case::its_own_timeout_finishes(30, &["--shutdown-timeout", "40"], false, ReplicaState::Draining)]
#[case::a_timeout_of_zero_cuts(30, &["--shutdown-timeout", "0"], false, ReplicaState::Terminating)]
#[case::pre_stop_gives_time(30, &[], true, ReplicaState::Draining)]
#[case::past_the_deadline_nothing_drains(-20, &["--shutdown-timeout", "40"], true, ReplicaState::Terminating)]
fn deletion(#[case] left: i64, #[case] args: &[&str], #[case] pre_stop: bool, #[case] wanted: ReplicaState) {
    let replica = deleted(left, args, pre_stop);
    assert_eq!(replica.state, wanted, "{:?}", replica.why);
    // A pod being deleted is not Ready, whatever its condition says.
    assert_eq!(replica.pod_ready, Ok(false));
    assert_eq!(replica.since.unwrap(), crate::diagnose::testkit::now() + jiff::SignedDuration::from_secs(left - 60));
}

#[rstest]
#[case::ready_and_healthy(true, Ok((200, "")), ReplicaState::Serving)]
#[case::ready_but_not_listed(false, Ok((200, "")), ReplicaState::NotRouted)]
fn ready_pods(#[case] listed: bool, #[case] health: Result<(u16, &'static str), &'static str>, #[case] wanted: ReplicaState) {
    assert_eq!(replica(Kit::new().serving_pod("a", listed).answer("a", "/health", health)).state, wanted);
}

#[rstest]
#[case(r#"{"is_sleeping":true}"#, "/is_sleeping", ReplicaState::Sleeping)]
#[case(r#"{"is_paused":true}"#, "/is_paused", ReplicaState::Paused)]
fn the_engines_word_decides(#[case] body: &str, #[case] route: &str, #[case] wanted: ReplicaState) {
    let kit = Kit::new().serving_pod("a", true).answer("a", "/health", Ok((200, ""))).answer("a", route, Ok((200, body)));
    assert_eq!(replica(kit).state, wanted);
}

#[test]
fn stalled_and_serving_by_two_pages() {
    let kit =
        |after: f64| Kit::new().serving_pod("a", true).page("a", -30, &vllm_page(2.0, 1.0, 5.0)).page("a", 0, &vllm_page(2.0, 1.0, after));
    assert_eq!(replica(kit(5.0)).state, ReplicaState::Stalled);
    assert_eq!(replica(kit(9.0)).state, ReplicaState::Serving);
}

#[test]
fn the_engine_serves_and_the_pod_is_not_ready() {
    let replica = replica(Kit::new().loading_pod("a").answer("a", "/health", Ok((200, ""))));
    assert_eq!(replica.state, ReplicaState::EngineReady);
    assert_eq!(replica.pod_ready, Ok(false));
}

#[rstest]
#[case::startup_probe_open(json!(false), "2026-11-12T09:58:30Z", ReplicaState::Starting)]
#[case::never_ready_in_this_run(json!(true), "2026-11-12T09:58:30Z", ReplicaState::Starting)]
#[case::lost_readiness(json!(true), "2026-11-12T09:59:30Z", ReplicaState::Unknown)]
fn not_ready_and_nobody_asked(#[case] started: Value, #[case] not_ready_since: &str, #[case] wanted: ReplicaState) {
    let mut kit = Kit::new().loading_pod("a");
    kit.change("pod/s/a", |pod| {
        pod["status"]["containerStatuses"][0]["started"] = started.clone();
        pod["status"]["conditions"][3]["lastTransitionTime"] = not_ready_since.into();
    });
    assert_eq!(replica(kit).state, wanted);
}

#[test]
fn a_pod_without_a_ready_condition_is_unknown() {
    let replica =
        replica(Kit::new().pod_with("a", |pod| pod["status"]["conditions"] = json!([{"type": "PodScheduled", "status": "True"}])));
    assert_eq!(replica.state, ReplicaState::Unknown);
    assert!(replica.pod_ready.is_err());
}

#[test]
fn pods_that_no_object_shows_are_judged_by_their_engine_alone() {
    let replica = replica(Kit::new().answer("a", "/health", Ok((200, ""))).page("a", 0, &vllm_page(0.0, 0.0, 5.0)));
    assert_eq!(replica.state, ReplicaState::EngineReady);
    assert!(replica.pod_ready.is_err() && replica.listing.listed.is_err());
}
