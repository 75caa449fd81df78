//! Funnels, workloads, groups, services.

use rstest::rstest;
use serde_json::{Value, json};

use crate::diagnose::testkit::{Judged, Kit};
use crate::model::Subject;
use crate::model::funnel::Step;
use crate::model::state::{ReplicaState, WorkloadState};
use crate::world::WorkloadView;

fn set(replicas: u32, status: Value) -> Value {
    json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "w", "namespace": "s", "generation": 2},
        "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": "a"}}}, "status": status})
}

fn view(world: &Judged, subject: &str) -> WorkloadView {
    world.world.workloads.get(&Subject::parse(subject)).unwrap().clone()
}

fn of(replicas: u32, kit: Kit) -> WorkloadView {
    view(&kit.object(set(replicas, json!({}))).build(), "statefulset/s/w")
}

fn two(kit: Kit) -> Kit {
    kit.owned("a", "StatefulSet", "w").owned("b", "StatefulSet", "w")
}

#[test]
fn the_funnel_and_its_first_drop() {
    let view = of(3, two(Kit::new().serving_pod("a", true).loading_pod("b")));
    let funnel = &view.funnel;
    assert_eq!(funnel.wanted, Ok(3));
    assert_eq!((funnel.existing.clone(), funnel.scheduled.clone(), funnel.started.clone()), (Ok(2), Ok(2), Ok(2)));
    assert_eq!((funnel.pod_ready.clone(), funnel.serving.clone()), (Ok(1), Ok(1)));
    assert_eq!(funnel.bottleneck(), Some((Step::Existing, 1)));
    assert_eq!(view.state, WorkloadState::Degraded);
    assert!(view.why.contains(&"1 of 3 serves".to_owned()), "{:?}", view.why);
}

#[rstest]
#[case::all_serve(2, true, WorkloadState::Serving)]
#[case::none_wanted_and_none_there(0, false, WorkloadState::ScaledToZero)]
fn words(#[case] replicas: u32, #[case] pods: bool, #[case] wanted: WorkloadState) {
    let kit = if pods { two(Kit::new().serving_pod("a", true).serving_pod("b", true)) } else { Kit::new() };
    assert_eq!(of(replicas, kit).state, wanted);
}

#[test]
fn none_serves() {
    let view = of(2, two(Kit::new().loading_pod("a").loading_pod("b")));
    assert_eq!(view.state, WorkloadState::Down);
    assert_eq!(view.funnel.pod_ready, Ok(0));
}

#[test]
fn a_pod_being_deleted_is_counted_apart() {
    let mut kit = two(Kit::new().serving_pod("a", true).serving_pod("b", true));
    kit.change("pod/s/b", |pod| pod["metadata"]["deletionTimestamp"] = "2026-11-12T10:00:20Z".into());
    let view = of(1, kit);
    assert_eq!((view.funnel.existing, view.funnel.draining), (Ok(1), Ok(1)));
}

#[test]
fn what_was_not_read_is_not_zero() {
    let view = view(&Kit::new().object(set(2, json!({"replicas": 2, "readyReplicas": 2}))).build(), "statefulset/s/w");
    assert!(view.funnel.existing.is_err() && view.funnel.pod_ready.is_err());
    assert_eq!(view.state, WorkloadState::Serving);
    assert!(view.why.iter().any(|why| why.contains("none of its pods was read")), "{:?}", view.why);
}

fn hpa(name: &str, desired: u32, active: &str) -> Value {
    json!({"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": name, "namespace": "s"},
        "spec": {"scaleTargetRef": {"kind": "StatefulSet", "name": "w"}, "maxReplicas": 9},
        "status": {"desiredReplicas": desired, "conditions": [{"type": "ScalingActive", "status": active}]}})
}

#[rstest]
#[case::it_computes(vec![hpa("h", 5, "True")], Ok(5), "hpa/s/h")]
#[case::it_computes_nothing(vec![hpa("h", 0, "False")], Ok(2), "spec.replicas")]
#[case::two_that_compute(vec![hpa("h", 5, "True"), hpa("i", 7, "True")], Err(()), "hpa/s/h wants 5, hpa/s/i wants 7")]
fn whose_number_is_wanted(#[case] hpas: Vec<Value>, #[case] wanted: Result<u32, ()>, #[case] by: &str) {
    let kit = hpas.into_iter().fold(two(Kit::new().serving_pod("a", true).serving_pod("b", true)), Kit::object);
    let view = of(2, kit);
    assert_eq!(view.funnel.wanted.clone().map_err(|_| ()), wanted);
    assert_eq!(view.funnel.wanted_by, by);
    assert_eq!(view.funnel.asked, Ok(2));
}

fn deployment(status: Value) -> Value {
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "w", "namespace": "s", "generation": 2},
        "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "a"}}}, "status": status})
}

#[rstest]
#[case::done(json!({"observedGeneration": 2, "replicas": 1, "updatedReplicas": 1}), false, WorkloadState::Serving)]
#[case::new_one_loads(json!({"observedGeneration": 2, "replicas": 2, "updatedReplicas": 1}), true, WorkloadState::RollingOut)]
#[case::status_is_old(json!({"observedGeneration": 1, "replicas": 1, "updatedReplicas": 1}), false, WorkloadState::RollingOut)]
fn rollouts(#[case] status: Value, #[case] surge: bool, #[case] wanted: WorkloadState) {
    let mut kit = Kit::new().serving_pod("a", true).owned("a", "Deployment", "w");
    if surge {
        kit = kit.loading_pod("b").owned("b", "Deployment", "w");
    }
    assert_eq!(view(&kit.object(deployment(status)).build(), "deployment/s/w").state, wanted);
}

#[test]
fn a_surge_that_no_node_takes_blocks_the_rollout() {
    let kit = Kit::new().serving_pod("a", true).owned("a", "Deployment", "w").pod_with("b", |pod| {
        pod["spec"]["nodeName"] = Value::Null;
        pod["status"] = json!({"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]});
    });
    let kit = kit.owned("b", "Deployment", "w").object(deployment(json!({"observedGeneration": 2, "replicas": 2, "updatedReplicas": 1})));
    let view = view(&kit.build(), "deployment/s/w");
    assert_eq!(view.state, WorkloadState::Blocked);
    assert_eq!(view.funnel.unschedulable, Ok(1));
}

fn member(index: u32) -> impl FnOnce(&mut Value) {
    move |pod: &mut Value| {
        pod["metadata"]["labels"] = json!({"leaderworkerset.sigs.k8s.io/name": "m", "leaderworkerset.sigs.k8s.io/group-index": "0",
            "leaderworkerset.sigs.k8s.io/worker-index": index.to_string()});
    }
}

fn lws(size: u32) -> Value {
    json!({"apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": "LeaderWorkerSet", "metadata": {"name": "m", "namespace": "s"},
        "spec": {"replicas": 1, "leaderWorkerTemplate": {"size": size}}})
}

fn group(world: &Judged) -> (ReplicaState, Result<bool, ()>) {
    let group = world.world.replicas.get(&Subject::parse("leaderworkerset/s/m/group/0")).unwrap();
    (group.state, group.pod_ready.clone().map_err(|_| ()))
}

#[test]
fn the_leader_speaks_for_its_group() {
    let world =
        Kit::new().pod_with("m-0", member(0)).pod_with("m-0-1", member(1)).object(lws(2)).answer("m-0", "/health", Ok((200, ""))).build();
    assert_eq!(group(&world), (ReplicaState::Ready, Ok(true)));
    assert_eq!(view(&world, "leaderworkerset/s/m").funnel.existing, Ok(1));
}

#[test]
fn a_member_holds_its_group_back() {
    let not_ready = |pod: &mut Value| {
        member(1)(pod);
        pod["status"]["conditions"][3]["status"] = "False".into();
    };
    let world = Kit::new().pod_with("m-0", member(0)).pod_with("m-0-1", not_ready).object(lws(2)).build();
    assert_eq!(group(&world), (ReplicaState::EngineReady, Ok(false)));
    let pending = |pod: &mut Value| {
        member(1)(pod);
        pod["spec"]["nodeName"] = Value::Null;
        pod["status"] = json!({"phase": "Pending"});
    };
    let world = Kit::new().pod_with("m-0", member(0)).pod_with("m-0-1", pending).object(lws(2)).build();
    assert_eq!(group(&world).0, ReplicaState::PendingGpu);
    let world = Kit::new().pod_with("m-0", member(0)).object(lws(2)).build();
    assert_eq!(group(&world).0, ReplicaState::Starting, "one of two members exists");
    let world = Kit::new().pod_with("m-0-1", member(1)).object(lws(2)).build();
    assert_eq!(group(&world), (ReplicaState::Starting, Ok(false)), "there is no leader");
}

#[test]
fn sentences_name_the_group_and_a_member_once() {
    let crashes = |pod: &mut Value| {
        member(1)(pod);
        pod["status"]["containerStatuses"] =
            json!([{"name": "vllm", "ready": false, "restartCount": 7, "state": {"waiting": {"reason": "CrashLoopBackOff"}}}]);
    };
    let world = Kit::new().pod_with("m-0", member(0)).pod_with("m-0-1", crashes).object(lws(2)).build();
    let group = world.world.replicas.get(&Subject::parse("leaderworkerset/s/m/group/0")).unwrap();
    assert_eq!(group.why, ["m-0-1: its container vllm waits with CrashLoopBackOff", "7 restarts"]);
    let world = Kit::new().pod_with("m-0", member(0)).pod_with("m-0-1", member(1)).object(lws(2)).build();
    let funnel = view(&world, "leaderworkerset/s/m").funnel;
    assert!(funnel.listed.unwrap_err().why().starts_with("m group 0: "));
}

#[test]
fn a_model_service_is_down_when_a_role_is() {
    let role = |kit: Kit, pod: &'static str, role: &'static str, name: &'static str| {
        let labels = json!({"app": "a", "llm-d.ai/model": "m", "llm-d.ai/role": role});
        kit.object(json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": name, "namespace": "s"},
            "spec": {"replicas": 1, "template": {"metadata": {"labels": labels}}}}))
            .owned(pod, "StatefulSet", name)
            .relabelled(pod, labels.clone())
    };
    let kit = Kit::new().pod_with("a", |_| ()).loading_pod("b");
    let world = role(role(kit, "a", "decode", "d"), "b", "prefill", "p").build();
    let service = world.world.services.values().next().unwrap();
    assert_eq!(service.roles.iter().map(|role| role.state).collect::<Vec<_>>(), [WorkloadState::Down, WorkloadState::Serving]);
    assert_eq!(service.state, WorkloadState::Down);
}

#[test]
fn a_peer_that_made_it_tells_how_long_the_others_need() {
    let world = two(Kit::new().serving_pod("a", true).loading_pod("b")).object(set(2, json!({}))).build();
    // The peer took 9 min from container start to Ready; this one started a minute ago.
    let eta = world.world.replicas.get(&Subject::pod("s", "b")).unwrap().eta_s.clone();
    assert_eq!(eta, Ok(480.0));
    let mut late = two(Kit::new().serving_pod("a", true).loading_pod("b"));
    late.change("pod/s/b", |pod| {
        pod["status"]["containerStatuses"][0]["state"]["running"]["startedAt"] = "2026-11-12T09:40:00Z".into();
    });
    let world = late.object(set(2, json!({}))).build();
    let replica = world.world.replicas.get(&Subject::pod("s", "b")).unwrap();
    assert!(replica.eta_s.is_err());
    assert!(replica.slower_than_usual.as_ref().unwrap().contains("20 min"), "{:?}", replica.slower_than_usual);
}

#[test]
fn two_workloads_of_a_role_are_summed_before_they_are_told_apart() {
    let labels = json!({"app": "a", "llm-d.ai/model": "m"});
    let set = |name: &str| {
        json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": name, "namespace": "s"},
            "spec": {"replicas": 1, "template": {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "vllm", "image": "vllm"}]}}}})
    };
    let kit = Kit::new().pod_with("a", |_| ()).loading_pod("b").owned("a", "StatefulSet", "old").owned("b", "StatefulSet", "new");
    let kit = kit.relabelled("a", labels.clone()).relabelled("b", labels.clone());
    let world = kit.object(set("old")).object(set("new")).build();
    let role = &world.world.services.values().next().unwrap().roles[0];
    assert_eq!(
        role.why,
        [
            "1 of 2 serves",
            "1 starting (about 8 min left)",
            "of 1 that serve by Kubernetes' word 0 were proven by their engine",
            "new: none of 1 serves"
        ]
    );
    assert_eq!(role.funnel.wanted_by, "spec.replicas");
    assert_eq!(role.state, WorkloadState::Degraded);
}
