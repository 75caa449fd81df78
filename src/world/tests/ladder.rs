//! Stages, their times and what stands in the way.

use serde_json::json;

use crate::diagnose::testkit::Kit;
use crate::model::Subject;
use crate::model::ladder::{Rung, Stage};
use crate::model::service::Replica;

fn replica(kit: Kit) -> Replica {
    kit.build().world.replicas.get(&Subject::pod("s", "a")).unwrap().clone()
}

fn at(replica: &Replica, stage: Stage) -> String {
    replica.ladder.rung(stage).at().map(|at| at.to_string()).unwrap_or_default()
}

#[test]
fn a_serving_pod_has_climbed_all_of_it() {
    let replica = replica(Kit::new().serving_pod("a", true).answer("a", "/health", Ok((200, ""))));
    for stage in Stage::ALL.into_iter().filter(|stage| *stage < Stage::Routed) {
        assert!(replica.ladder.has(stage), "{stage}: {:?}", replica.ladder.rung(stage));
    }
    assert!(matches!(replica.ladder.rung(Stage::Routed), Rung::NotApplicable(_)));
    assert_eq!(replica.ladder.stage(), Stage::Listed);
    assert_eq!(at(&replica, Stage::Requested), "2026-11-12T07:50:00Z");
    assert_eq!(at(&replica, Stage::Scheduled), "2026-11-12T07:50:00Z");
    assert_eq!(at(&replica, Stage::Started), "2026-11-12T07:51:00Z");
    assert_eq!(at(&replica, Stage::PodReady), "2026-11-12T08:00:00Z");
    assert_eq!(replica.ladder.took(Stage::Scheduled), Some(60));
}

#[test]
fn a_gate_stops_it_at_the_first_rung() {
    let replica = replica(Kit::new().pod_with("a", |pod| {
        pod["spec"]["nodeName"] = serde_json::Value::Null;
        pod["spec"]["schedulingGates"] = json!([{"name": "g"}]);
        pod["status"] = json!({"phase": "Pending"});
    }));
    assert_eq!(replica.ladder.stage(), Stage::Requested);
    assert_eq!(replica.ladder.stuck_at().map(|(stage, _)| stage), Some(Stage::Admitted));
    assert!(!replica.ladder.has(Stage::Scheduled));
}

#[test]
fn without_a_node_it_stands_at_admitted() {
    let replica = replica(Kit::new().pod_with("a", |pod| {
        pod["spec"]["nodeName"] = serde_json::Value::Null;
        pod["status"] = json!({"phase": "Pending"});
    }));
    assert_eq!(replica.ladder.stage(), Stage::Admitted);
    let Some((Stage::Scheduled, Rung::NotReached { why, .. })) = replica.ladder.stuck_at() else { panic!("{:?}", replica.ladder) };
    assert!(why.contains("no node takes it"), "{why}");
    for stage in [Stage::Pulled, Stage::Started, Stage::Loading, Stage::EngineReady] {
        assert!(matches!(replica.ladder.rung(stage), Rung::NotReached { .. }), "{stage}");
    }
}

#[test]
fn a_container_that_waits_stands_before_pulled_and_one_that_ran_before_it_behind() {
    let waiting = |last: serde_json::Value| {
        replica(Kit::new().pod_with("a", |pod| {
            pod["status"]["conditions"] = json!([{"type": "PodScheduled", "status": "True"}, {"type": "Ready", "status": "False"}]);
            pod["status"]["containerStatuses"] =
                json!([{"name": "vllm", "ready": false, "state": {"waiting": {"reason": "CrashLoopBackOff"}}, "lastState": last}]);
        }))
    };
    assert_eq!(waiting(json!({})).ladder.stage(), Stage::Scheduled);
    let ran = waiting(json!({"terminated": {"exitCode": 1, "startedAt": "2026-11-12T09:00:00Z"}}));
    assert_eq!(ran.ladder.stage(), Stage::Pulled);
    assert!(!ran.ladder.has(Stage::Started));
}

#[test]
fn a_pull_event_dates_the_pull() {
    let event = json!({"apiVersion": "v1", "kind": "Event", "metadata": {"name": "e", "namespace": "s"}, "reason": "Pulled", "message": "in 20s",
        "firstTimestamp": "2026-11-12T07:50:30Z", "involvedObject": {"kind": "Pod", "namespace": "s", "name": "a"}});
    assert_eq!(at(&replica(Kit::new().pod_with("a", |_| ()).object(event)), Stage::Pulled), "2026-11-12T07:50:30Z");
}

#[test]
fn an_engine_asleep_is_not_engine_ready_though_its_pod_is_ready() {
    let replica = replica(Kit::new().serving_pod("a", true).answer("a", "/is_sleeping", Ok((200, r#"{"is_sleeping":true}"#))));
    assert!(!replica.ladder.has(Stage::EngineReady));
    assert!(replica.ladder.has(Stage::PodReady));
    assert_eq!(replica.ladder.stage(), Stage::Warming);
}

#[test]
fn an_engine_that_nobody_asked_is_unknown_and_holds_nothing_back() {
    let replica = replica(Kit::new().serving_pod("a", true));
    assert!(matches!(replica.ladder.rung(Stage::EngineReady), Rung::Unknown(_)));
    assert_eq!(replica.ladder.stage(), Stage::Listed);
}

#[test]
fn log_lines_date_loading_and_warming() {
    let replica = replica(Kit::new().loading_pod("a").log(
        "a",
        "vllm",
        &[
            "INFO 11-12 09:59:10 [x.py:1] Starting to load model /m",
            "INFO 11-12 09:59:40 [x.py:2] Model loading took 14.2 GiB and 30.0 seconds",
        ],
    ));
    assert_eq!(at(&replica, Stage::Loading), "2026-11-12T09:59:10Z");
    assert!(replica.ladder.has(Stage::Warming));
    assert!(!replica.ladder.has(Stage::EngineReady));
}

#[test]
fn an_unmet_gate_is_what_stands_before_pod_ready() {
    let replica = replica(Kit::new().pod_with("a", |pod| {
        pod["spec"]["readinessGates"] = json!([{"conditionType": "x/y"}]);
        pod["status"]["conditions"] = json!([{"type": "PodScheduled", "status": "True"}, {"type": "ContainersReady", "status": "True"},
            {"type": "Ready", "status": "False"}]);
    }));
    let Rung::NotReached { why, .. } = replica.ladder.rung(Stage::PodReady) else { panic!() };
    assert!(why.contains("x/y"), "{why}");
}

/// Why a stage is not reached.
fn why(replica: &Replica, stage: Stage) -> String {
    match replica.ladder.rung(stage) {
        Rung::NotReached { why, .. } => why.clone(),
        other => panic!("{stage} is {other:?}"),
    }
}

#[test]
fn a_node_is_proof_enough_of_scheduling_and_so_is_the_condition() {
    let by_node = replica(Kit::new().pod_with("a", |pod| {
        pod["status"]["conditions"] = json!([{"type": "Ready", "status": "True"}]);
    }));
    assert!(by_node.ladder.has(Stage::Scheduled));
    assert_eq!(by_node.ladder.rung(Stage::Scheduled).at(), None);
    let by_condition = replica(Kit::new().pod_with("a", |pod| pod["spec"]["nodeName"] = serde_json::Value::Null));
    assert!(by_condition.ladder.has(Stage::Scheduled));
}

#[test]
fn only_the_first_rung_that_is_missing_says_why() {
    let gated = replica(Kit::new().pod_with("a", |pod| {
        pod["spec"]["nodeName"] = serde_json::Value::Null;
        pod["spec"]["schedulingGates"] = json!([{"name": "g"}]);
        pod["status"] = json!({"phase": "Pending"});
    }));
    assert!(why(&gated, Stage::Admitted).contains("scheduling gate g"));
    for stage in [Stage::Scheduled, Stage::Pulled, Stage::Started, Stage::Loading, Stage::EngineReady] {
        assert_eq!(why(&gated, stage), "", "{stage}");
    }
    let pulling = replica(Kit::new().pod_with("a", |pod| {
        pod["status"]["conditions"] = json!([{"type": "PodScheduled", "status": "True"}, {"type": "Ready", "status": "False"}]);
        pod["status"]["containerStatuses"] = json!([{"name": "vllm", "state": {"waiting": {"reason": "ImagePullBackOff"}}}]);
    }));
    assert!(why(&pulling, Stage::Pulled).contains("ImagePullBackOff"));
    assert_eq!(why(&pulling, Stage::Started), "");
    let unbound = replica(Kit::new().pod_with("a", |pod| {
        pod["spec"]["nodeName"] = serde_json::Value::Null;
        pod["status"] = json!({"phase": "Pending"});
    }));
    assert_eq!(why(&unbound, Stage::Pulled), "");
}

#[test]
fn a_container_that_ended_has_been_pulled_and_runs_no_more() {
    let ended = replica(Kit::new().pod_with("a", |pod| {
        pod["status"]["conditions"] = json!([{"type": "PodScheduled", "status": "True"}, {"type": "Ready", "status": "False"}]);
        pod["status"]["containerStatuses"] =
            json!([{"name": "vllm", "state": {"terminated": {"exitCode": 1, "startedAt": "2026-11-12T09:00:00Z"}}}]);
    }));
    assert!(ended.ladder.has(Stage::Pulled));
    assert!(why(&ended, Stage::Started).contains("exit 1"));
}

#[test]
fn each_engine_state_has_its_height() {
    let asleep = |route: &'static str, body: &'static str| {
        replica(Kit::new().serving_pod("a", true).answer("a", "/health", Ok((200, ""))).answer("a", route, Ok((200, body))))
    };
    for replica in [asleep("/is_sleeping", r#"{"is_sleeping":true}"#), asleep("/is_paused", r#"{"is_paused":true}"#)] {
        assert!(replica.ladder.has(Stage::Warming) && !replica.ladder.has(Stage::EngineReady));
        assert!(!why(&replica, Stage::EngineReady).is_empty());
    }
    let starting = replica(Kit::new().loading_pod("a").answer("a", "/health", Err("connection refused")));
    assert!(starting.ladder.has(Stage::Started) && !starting.ladder.has(Stage::Loading) && !starting.ladder.has(Stage::Warming));
    let loading = replica(Kit::new().loading_pod("a").log("a", "vllm", &["INFO 11-12 09:59:10 [x.py:1] Starting to load model /m"]));
    assert!(loading.ladder.has(Stage::Loading) && !loading.ladder.has(Stage::Warming));
    let ready = replica(Kit::new().loading_pod("a").answer("a", "/health", Ok((200, ""))));
    assert!(ready.ladder.has(Stage::EngineReady) && !ready.ladder.has(Stage::PodReady));
}

#[test]
fn a_pod_without_an_engine_has_no_engine_stages() {
    let web = replica(Kit::new().pod_with("a", |pod| {
        pod["spec"]["containers"] = json!([{"name": "vllm", "image": "nginx"}]);
        pod["spec"]["containers"][0]["name"] = "web".into();
        pod["status"]["containerStatuses"][0]["name"] = "web".into();
    }));
    for stage in [Stage::Loading, Stage::Warming, Stage::EngineReady] {
        assert!(matches!(web.ladder.rung(stage), Rung::NotApplicable(_)), "{stage}");
    }
    assert!(web.ladder.has(Stage::PodReady));
}

#[test]
fn listed_and_routed_are_unknown_missing_or_reached() {
    let unknown = replica(Kit::new().pod_with("a", |_| ()));
    assert!(matches!(unknown.ladder.rung(Stage::Listed), Rung::Unknown(_)));
    let missing = replica(Kit::new().serving_pod("a", false));
    assert!(why(&missing, Stage::Listed).contains("not ready"), "{}", why(&missing, Stage::Listed));
    assert!(replica(Kit::new().serving_pod("a", true)).ladder.has(Stage::Listed));
}

#[test]
fn the_ready_conditions_own_message_says_what_pod_ready_waits_for() {
    let pod = |message: &'static str| {
        replica(Kit::new().pod_with("a", |pod| {
            pod["status"]["conditions"] = json!([{"type": "PodScheduled", "status": "True"},
                {"type": "Ready", "status": "False", "message": message}]);
        }))
    };
    assert_eq!(why(&pod("containers with unready status: [vllm]"), Stage::PodReady), "containers with unready status: [vllm]");
    assert_eq!(why(&pod(""), Stage::PodReady), "");
}

#[test]
fn routed_is_not_applicable_only_where_there_is_no_router() {
    let pool = json!({"apiVersion": "inference.networking.k8s.io/v1", "kind": "InferencePool", "metadata": {"name": "p", "namespace": "s"},
        "spec": {"selector": {"matchLabels": {"app": "a"}}, "targetPorts": [{"number": 8000}], "endpointPickerRef": {"name": "epp"}}});
    let behind_a_pool = replica(Kit::new().pod_with("a", |_| ()).object(pool));
    assert!(matches!(behind_a_pool.ladder.rung(Stage::Routed), Rung::Unknown(_)), "{:?}", behind_a_pool.ladder.rung(Stage::Routed));
    let behind_a_service = replica(Kit::new().serving_pod("a", true));
    assert!(matches!(behind_a_service.ladder.rung(Stage::Routed), Rung::NotApplicable(_)));
}

#[test]
fn an_engine_whose_state_is_unknown_keeps_the_stages_that_its_log_dates() {
    // Loaded long ago by its log; nobody has asked it since.
    let lines = [
        "INFO 11-12 07:52:00 [x.py:1] Starting to load model /m",
        "INFO 11-12 07:53:00 [x.py:2] Model loading took 14.2 GiB and 30.0 seconds",
        "INFO:     Application startup complete.",
    ];
    let quiet = replica(Kit::new().pod_with("a", |_| ()).log("a", "vllm", &lines));
    if matches!(quiet.engine.as_ref().unwrap().state, crate::model::state::EngineState::Unknown(_)) {
        assert_eq!(at(&quiet, Stage::Loading), "2026-11-12T07:52:00Z");
        assert_eq!(at(&quiet, Stage::Warming), "2026-11-12T07:53:00Z");
        assert!(!matches!(quiet.ladder.rung(Stage::EngineReady), Rung::NotReached { .. }), "nothing says that it is missing");
    } else {
        assert!(quiet.ladder.has(Stage::Loading) && quiet.ladder.has(Stage::Warming));
    }
}
