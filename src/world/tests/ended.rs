//! Ended pods, pods that can not be made, and what was proven of those that serve.

use rstest::rstest;
use serde_json::{Value, json};

use crate::diagnose::testkit::{Kit, vllm_page};
use crate::model::Subject;
use crate::model::state::{ReplicaState, WorkloadState};
use crate::world::WorkloadView;

fn deployment(replicas: u32, status: Value) -> Value {
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "w", "namespace": "s", "generation": 1},
        "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": "a"}},
            "template": {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [{"name": "vllm", "image": "x/vllm-openai:v0.19.0"}]}}},
        "status": status})
}

fn replica_set(replicas: u32) -> Value {
    json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": "w-1", "namespace": "s",
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "Deployment", "name": "w", "controller": true}]},
        "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": "a"}}}})
}

fn ended(phase: &str, reason: &str) -> impl Fn(&mut Value) {
    let status = json!({"phase": phase, "reason": reason, "message": "The node was low on resource: memory."});
    move |pod| pod["status"] = status.clone()
}

fn view(kit: Kit) -> WorkloadView {
    kit.build().world.workloads.get(&Subject::parse("deployment/s/w")).unwrap().clone()
}

fn running() -> Value {
    json!({"observedGeneration": 1, "replicas": 1, "updatedReplicas": 1, "readyReplicas": 1, "availableReplicas": 1})
}

#[rstest]
#[case("Failed", "Evicted", "1 ended pod (Evicted) is left over")]
#[case("Succeeded", "", "1 ended pod (Succeeded) is left over")]
fn an_ended_pod_of_a_controller_is_no_replica(#[case] phase: &str, #[case] reason: &str, #[case] wanted: &str) {
    let kit = Kit::new().serving_pod("a", true).pod_with("b", ended(phase, reason)).owned("a", "ReplicaSet", "w-1").owned(
        "b",
        "ReplicaSet",
        "w-1",
    );
    let world = kit.object(replica_set(1)).object(deployment(1, running())).build().world;
    let view = world.workloads.get(&Subject::parse("deployment/s/w")).unwrap();
    assert_eq!(view.state, WorkloadState::Serving, "{:?}", view.why);
    assert_eq!((view.funnel.existing.clone(), view.funnel.scheduled.clone()), (Ok(1), Ok(1)));
    assert_eq!((view.replicas.len(), view.left_over.as_slice()), (1, [Subject::pod("s", "b")].as_slice()));
    assert!(view.why.iter().any(|why| why == wanted), "{:?}", view.why);
    let role = &world.services.values().next().unwrap().roles[0];
    assert_eq!((role.funnel.existing.clone(), role.state, role.left_over.len()), (Ok(1), WorkloadState::Serving, 1));
    // The pod itself is still there to see.
    assert_eq!(world.replicas.get(&Subject::pod("s", "b")).unwrap().state, ReplicaState::Dead);
}

#[test]
fn an_ended_pod_whose_owner_is_absent_stays() {
    let world = Kit::new().pod_with("b", ended("Failed", "Evicted")).build().world;
    let role = &world.services.values().next().unwrap().roles[0];
    assert_eq!((role.replicas.len(), role.left_over.len(), role.state), (1, 0, WorkloadState::Down));
}

#[rstest]
#[case::nothing_but_ended(json!({"observedGeneration": 1}), Ok(0))]
#[case::never_observed(json!({}), Err(()))]
#[case::counts_of_ready_only(json!({"observedGeneration": 1, "readyReplicas": 2}), Err(()))]
fn an_observed_status_without_a_count_means_none(#[case] status: Value, #[case] wanted: Result<u32, ()>) {
    assert_eq!(view(Kit::new().object(deployment(3, status))).funnel.existing.map_err(|_| ()), wanted);
}

fn failing() -> Value {
    json!({"observedGeneration": 1, "conditions": [{"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate",
        "message": "pods \"x\" is forbidden: exceeded quota", "lastTransitionTime": "2026-11-12T09:00:00Z"}]})
}

#[test]
fn pods_that_can_not_be_made_are_the_reason() {
    let view = view(Kit::new().object(deployment(3, failing())));
    assert_eq!(view.state, WorkloadState::Down);
    assert_eq!(view.why[0], "its pods can not be made: FailedCreate: pods \"x\" is forbidden: exceeded quota");
    assert!(view.evidence.iter().any(|proof| proof.place.to_string() == "condition ReplicaFailure"));
}

#[rstest]
#[case::missing(3, true)]
#[case::all_there(1, false)]
fn events_of_its_replica_set_tell_while_pods_are_missing(#[case] replicas: u32, #[case] told: bool) {
    let kit = Kit::new()
        .serving_pod("a", true)
        .owned("a", "ReplicaSet", "w-1")
        .object(replica_set(replicas))
        .object(deployment(replicas, running()));
    let view = view(kit.event("ReplicaSet", "w-1", "FailedCreate", "exceeded quota: gpu"));
    assert_eq!(view.why[0] == "its pods can not be made: FailedCreate: exceeded quota: gpu", told, "{:?}", view.why);
    assert_eq!(view.state, if told { WorkloadState::Degraded } else { WorkloadState::Serving });
}

#[test]
fn what_the_engine_did_not_say_is_not_proven() {
    let kit = |page: bool| {
        let kit = Kit::new().serving_pod("a", true).serving_pod("b", true).owned("a", "ReplicaSet", "w-1").owned("b", "ReplicaSet", "w-1");
        let kit = if page { kit.page("a", 0, &vllm_page(0.0, 0.0, 5.0)) } else { kit };
        kit.object(replica_set(2))
            .object(deployment(2, json!({"observedGeneration": 1, "replicas": 2, "updatedReplicas": 2, "readyReplicas": 2})))
    };
    let half = view(kit(true));
    assert_eq!((half.funnel.serving.clone(), half.proven.clone()), (Ok(2), Ok(1)));
    assert!(half.why.contains(&"of 2 that serve by Kubernetes' word 1 was proven by its engine".to_owned()), "{:?}", half.why);
    assert_eq!(view(kit(false)).proven, Ok(0));
    assert_eq!(view(kit(true).page("b", 0, &vllm_page(0.0, 0.0, 5.0))).why, ["2 of 2 serve"]);
}
