use std::sync::Arc;

use jiff::Timestamp;
use rstest::rstest;
use serde_json::{Value, json};

use crate::model::Subject;
use crate::model::object::{Catalogue, Object};
use crate::model::service::RoleKind;
use crate::systems::claims;

fn catalogue(docs: &[Value]) -> Catalogue {
    Catalogue::new(docs.iter().map(|doc| Arc::new(Object::read(doc, Timestamp::UNIX_EPOCH).unwrap())))
}

fn deployment(name: &str, labels: Value) -> Value {
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": "s"},
        "spec": {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels},
            "spec": {"containers": [{"name": "vllm", "image": "x/vllm-openai:v0.19.0"}]}}}})
}

fn pod(name: &str, deployment: &str, labels: Value) -> Value {
    let mut labels = labels;
    labels["pod-template-hash"] = "1".into();
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "s", "labels": labels,
        "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": format!("{deployment}-1"), "controller": true}]},
        "spec": {"containers": [{"name": "vllm", "image": "x/vllm-openai:v0.19.0"}]}})
}

fn pool(name: &str, labels: Value) -> Value {
    json!({"apiVersion": "inference.networking.k8s.io/v1", "kind": "InferencePool", "metadata": {"name": name, "namespace": "s"},
        "spec": {"selector": {"matchLabels": labels}, "targetPorts": [{"number": 8000}], "endpointPickerRef": {"name": "epp"}}})
}

fn service(name: &str, labels: Value, headless: bool) -> Value {
    json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name, "namespace": "s"},
        "spec": {"selector": labels, "clusterIP": if headless { "None" } else { "10.0.0.1" }, "ports": [{"port": 80, "targetPort": 8000}]}})
}

fn names(docs: &[Value]) -> Vec<String> {
    claims(&catalogue(docs)).iter().map(|claim| claim.id.to_string()).collect()
}

#[rstest]
#[case::pool_first(vec![pool("the-pool", json!({"app": "a"})), service("svc", json!({"app": "a"}), false)], json!({"app": "a", "llm-d.ai/model": "m"}), "plain/s/the-pool")]
#[case::then_llm_d_label(vec![service("svc", json!({"app": "a"}), false)], json!({"app": "a", "llm-d.ai/model": "m", "serving.modeldeck.dev/model": "n"}), "plain/s/m")]
#[case::then_our_label(vec![service("svc", json!({"app": "a"}), false)], json!({"app": "a", "serving.modeldeck.dev/model": "n"}), "plain/s/n")]
#[case::then_a_service(vec![service("a-headless", json!({"app": "a"}), true), service("svc", json!({"app": "a"}), false)], json!({"app": "a"}), "plain/s/svc")]
#[case::then_even_a_headless_one(vec![service("a-headless", json!({"app": "a"}), true)], json!({"app": "a"}), "plain/s/a-headless")]
#[case::then_the_workload(vec![service("svc", json!({"app": "other"}), false)], json!({"app": "a"}), "plain/s/dep")]
fn identity(#[case] mut docs: Vec<Value>, #[case] labels: Value, #[case] wanted: &str) {
    docs.push(deployment("dep", labels.clone()));
    docs.push(pod("dep-1-x", "dep", labels));
    assert_eq!(names(&docs), [wanted]);
}

#[test]
fn all_workloads_of_a_pool_are_its_roles_and_decode_alone_is_aggregate() {
    let role = |role: &str| json!({"app": "a", "llm-d.ai/role": role});
    let pool = pool("a", json!({"app": "a"}));
    let found = claims(&catalogue(&[pool.clone(), deployment("p", role("prefill")), deployment("d", role("decode"))]));
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].roles.iter().map(|r| r.kind.clone()).collect::<Vec<_>>(), [RoleKind::Prefill, RoleKind::Decode]);
    let alone = claims(&catalogue(&[pool, deployment("d", role("decode"))]));
    assert_eq!(alone[0].roles[0].kind, RoleKind::Aggregate);
}

#[test]
fn a_pod_that_lost_its_label_still_belongs_to_its_workload() {
    let labels = json!({"app": "a", "in": "yes"});
    let found = claims(&catalogue(&[
        pool("a", json!({"in": "yes"})),
        deployment("dep", json!({"app": "a"})),
        pod("dep-1-x", "dep", labels),
        pod("dep-1-y", "dep", json!({"app": "a"})),
    ]));
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].roles[0].replicas.len(), 2);
    assert_eq!(found[0].roles[0].workloads, [Subject::parse("deployment/s/dep")]);
}

#[test]
fn a_child_of_a_systems_object_is_not_plain() {
    let mut dep = deployment("a-predictor", json!({"app": "a"}));
    dep["metadata"]["ownerReferences"] =
        json!([{"apiVersion": "serving.kserve.io/v1beta1", "kind": "InferenceService", "name": "a", "controller": true}]);
    assert_eq!(names(&[dep, service("svc", json!({"app": "a"}), false)]), ["kserve/s/a"]);
}

#[test]
fn groups_of_an_lws_are_replicas_with_the_leader_first() {
    let member = |name: &str, group: u32, index: u32| {
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "s", "labels": {
            "leaderworkerset.sigs.k8s.io/name": "m", "leaderworkerset.sigs.k8s.io/group-index": group.to_string(),
            "leaderworkerset.sigs.k8s.io/worker-index": index.to_string()}},
            "spec": {"containers": [{"name": "vllm", "image": "x/vllm-openai"}]}})
    };
    let found = claims(&catalogue(&[member("m-0-1", 0, 1), member("m-0", 0, 0), member("m-1", 1, 0)]));
    let replicas = &found[0].roles[0].replicas;
    assert_eq!(
        replicas.iter().map(|r| r.subject.as_str()).collect::<Vec<_>>(),
        ["leaderworkerset/s/m/group/0", "leaderworkerset/s/m/group/1"]
    );
    assert_eq!(replicas[0].pods.iter().map(Subject::as_str).collect::<Vec<_>>(), ["pod/s/m-0", "pod/s/m-0-1"]);
}

#[test]
fn what_runs_no_engine_is_no_model_service() {
    let mut dep = deployment("web", json!({"app": "web"}));
    dep["spec"]["template"]["spec"]["containers"] = json!([{"name": "nginx", "image": "nginx"}]);
    assert!(names(&[dep]).is_empty());
}

#[test]
fn autoscalers_and_routers_are_found() {
    let hpa = json!({"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "h", "namespace": "s"},
        "spec": {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "dep"}, "maxReplicas": 3}});
    let mut epp = pod("epp-1-x", "epp", json!({"app": "epp"}));
    epp["spec"]["containers"] = json!([{"name": "epp", "image": "x/epp"}]);
    let found = claims(&catalogue(&[
        hpa,
        epp,
        deployment("dep", json!({"app": "a"})),
        pool("a", json!({"app": "a"})),
        service("epp", json!({"app": "epp"}), false),
    ]));
    assert_eq!(found[0].autoscalers, [Subject::parse("hpa/s/h")]);
    assert_eq!(found[0].routers, [Subject::parse("replicaset/s/epp-1")]);
}
