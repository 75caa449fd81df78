//! Which value stands on which subject, and what is unknown.

use std::sync::Arc;

use jiff::Timestamp;
use rstest::rstest;
use serde_json::{Value, json};

use super::*;
use crate::engines::{MetricPage, exposition, wanted};
use crate::model::engine::{HttpAnswer, HttpOutcome};
use crate::model::object::Object;
use crate::model::{Code, Evidence};
use crate::world::Facts;

fn now() -> Timestamp {
    "2026-11-12T10:00:00Z".parse().unwrap()
}

fn facts(objects: &[Value]) -> Facts {
    Facts { objects: objects.iter().map(|object| Object::read(object, now()).unwrap()).collect(), ..Facts::default() }
}

fn document(facts: Facts) -> Value {
    serde_json::to_value(Document::new(&World::build(facts, "bundle", now()), &[])).unwrap()
}

/// The value of that name on that subject; the reason after a `?` where it is unknown.
fn value(document: &Value, subject: &str, name: &str) -> Value {
    let value = &document["subjects"][subject]["values"][name];
    value.get("value").cloned().unwrap_or_else(|| format!("?{}", value["unknown"].as_str().unwrap_or("not there")).into())
}

fn page(subject: &str, running: u32, waiting: u32, usage: f64) -> MetricPage {
    let text = format!("vllm:num_requests_running {running}\nvllm:num_requests_waiting {waiting}\nvllm:kv_cache_usage_perc {usage}\n");
    MetricPage {
        subject: Subject::parse(subject),
        port: None,
        path: "/metrics".into(),
        at: now(),
        page: Arc::new(exposition::read(text.as_bytes(), &wanted())),
    }
}

fn deployment(more: Value) -> Value {
    let mut object = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a", "namespace": "s"},
        "spec": {"replicas": 4, "selector": {"matchLabels": {"app": "a"}}, "progressDeadlineSeconds": 600,
            "template": {"metadata": {"labels": {"app": "a"}}, "spec": {"terminationGracePeriodSeconds": 45,
                "containers": [{"name": "vllm", "image": "vllm/vllm-openai:v0.19.0"}]}}}});
    merge(&mut object, more);
    object
}

fn merge(into: &mut Value, more: Value) {
    match (into, more) {
        (Value::Object(into), Value::Object(more)) => {
            more.into_iter().for_each(|(key, value)| merge(into.entry(key).or_insert(Value::Null), value))
        }
        (into, more) => *into = more,
    }
}

fn pod(name: &str, more: Value) -> Value {
    let mut object = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "s", "creationTimestamp": "2026-11-12T09:50:00Z"},
        "spec": {"containers": [{"name": "vllm", "image": "vllm/vllm-openai:v0.19.0"}]}});
    merge(&mut object, more);
    object
}

fn gpu_pod(name: &str, node: &str, gpus: u32, phase: &str) -> Value {
    pod(
        name,
        json!({"status": {"phase": phase}, "spec": {"nodeName": node,
        "containers": [{"name": "vllm", "image": "vllm/vllm-openai:v0.19.0", "resources": {"limits": {"nvidia.com/gpu": gpus.to_string()}}}]}}),
    )
}

fn node(name: &str, capacity: u32, allocatable: u32) -> Value {
    json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name},
        "status": {"capacity": {"nvidia.com/gpu": capacity.to_string()}, "allocatable": {"nvidia.com/gpu": allocatable.to_string()}}})
}

#[test]
fn the_least_loaded_has_a_sample_and_ties_go_to_the_emptier_cache() {
    let mut facts =
        Facts { pages: vec![page("pod/s/a", 3, 1, 0.1), page("pod/s/b", 2, 0, 0.5), page("pod/s/c", 1, 1, 0.4)], ..Facts::default() };
    facts.answers.push(HttpAnswer {
        target: Subject::pod("s", "d"),
        port: None,
        method: "GET".into(),
        path: "/metrics".into(),
        at: now(),
        latency_ms: None,
        outcome: HttpOutcome::Failed(crate::model::engine::HttpFailure::Timeout),
    });
    let document = document(facts);
    let fleet = |name: &str| value(&document, "fleet", name);
    assert_eq!(fleet("least-loaded"), "pod/s/c");
    assert_eq!((fleet("running"), fleet("waiting"), fleet("sampled"), fleet("unsampled")), (json!(6), json!(2), json!(3), json!(1)));
    assert_eq!(fleet("kv-usage-max"), 0.5);
    assert!((fleet("kv-usage").as_f64().unwrap() - 1.0 / 3.0).abs() < 1e-9);
    assert!((fleet("waiting-mean").as_f64().unwrap() - 2.0 / 3.0).abs() < 1e-9);
    assert!(value(&document, "pod/s/d", "running").as_str().unwrap().starts_with('?'));
}

#[test]
fn nothing_sampled_is_unknown_and_never_zero() {
    let document = document(Facts::default());
    for name in ["running", "waiting", "kv-usage", "least-loaded", "waiting-mean", "gpu-free", "gpu-capacity"] {
        assert!(value(&document, "fleet", name).as_str().is_some_and(|why| why.len() > 5 && why != "?not there"), "{name}");
    }
    assert_eq!(value(&document, "fleet", "sampled"), 0);
}

fn without_gpus() -> Value {
    json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "cpu"}, "status": {"capacity": {"cpu": "8"}, "allocatable": {"cpu": "8"}}})
}

#[test]
fn slots_of_a_node_are_held_until_a_pod_has_ended() {
    let mut going = gpu_pod("going", "n", 2, "Running");
    going["metadata"]["deletionTimestamp"] = "2026-11-12T10:00:30Z".into();
    let objects = [node("n", 8, 7), without_gpus(), gpu_pod("a", "n", 1, "Running"), going, gpu_pod("done", "n", 4, "Succeeded")];
    let document = document(facts(&objects));
    let of = |name: &str| value(&document, "node/n", name);
    assert_eq!((of("gpu-capacity"), of("gpu-allocatable"), of("gpu-unhealthy")), (json!(8), json!(7), json!(1)));
    assert_eq!((of("gpu-requested"), of("gpu-free")), (json!(3), json!(4)));
    assert_eq!(value(&document, "fleet", "gpu-free"), 4);
    assert!(document["subjects"]["node/cpu"].get("values").is_none());
}

#[rstest]
#[case("/api/v1/nodes", "gpu-capacity", true)]
#[case("/api/v1/pods", "gpu-capacity", false)]
#[case("/api/v1/pods", "gpu-free", true)]
fn what_may_not_be_read_is_unknown(#[case] path: &str, #[case] name: &str, #[case] unknown: bool) {
    let mut facts = facts(&[node("n", 8, 8)]);
    facts.answers.push(HttpAnswer {
        target: Subject::parse("apiserver"),
        port: None,
        method: "GET".into(),
        path: path.into(),
        at: now(),
        latency_ms: None,
        outcome: HttpOutcome::Answered { status: 403, content_type: String::new(), body: String::new() },
    });
    let document = document(facts);
    assert_eq!(value(&document, "fleet", name).as_str().is_some_and(|why| why.starts_with("?not allowed")), unknown);
}

#[test]
fn settings_of_a_workload() {
    let document = document(facts(&[deployment(json!({}))]));
    let of = |name: &str| value(&document, "deployment/s/a", name);
    assert_eq!((of("asked"), of("wanted"), of("deadline-s"), of("grace-s")), (json!(4), json!(4), json!(600), json!(45)));
    assert_eq!((of("max-surge"), of("max-unavailable")), (json!(1), json!(1)));
    assert!(of("gpu-requested").as_str().unwrap().starts_with('?'), "no pod was read");
}

fn hpa(name: &str, active: Option<&str>, more: Value) -> Value {
    let mut object = json!({"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": name, "namespace": "s"},
        "spec": {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "a"}, "minReplicas": 1, "maxReplicas": 6,
            "metrics": [{"type": "Pods", "pods": {"metric": {"name": "m"}, "target": {"type": "AverageValue", "averageValue": "5"}}}]},
        "status": {"currentReplicas": 4, "desiredReplicas": 5,
            "currentMetrics": [{"type": "Pods", "pods": {"metric": {"name": "m"}, "current": {"averageValue": "7500m"}}}]}});
    if let Some(active) = active {
        object["status"]["conditions"] = json!([{"type": "ScalingActive", "status": active, "reason": "R", "message": "because"}]);
    }
    merge(&mut object, more);
    object
}

#[rstest]
#[case(&[Some("True")], "on")]
#[case(&[Some("False")], "off")]
#[case(&[Some("False"), Some("False")], "off")]
#[case(&[Some("False"), Some("True")], "on")]
#[case(&[None], "?hpa/s/h0 has no condition ScalingActive")]
fn autoscaling_of_a_target(#[case] actives: &[Option<&str>], #[case] wanted: &str) {
    let mut objects: Vec<Value> = actives.iter().enumerate().map(|(i, active)| hpa(&format!("h{i}"), *active, json!({}))).collect();
    objects.push(deployment(json!({})));
    assert_eq!(value(&document(facts(&objects)), "deployment/s/a", "autoscaling"), wanted);
}

#[test]
fn an_hpa_that_does_not_work_has_no_metric_and_wants_nothing() {
    let document = document(facts(&[hpa("on", Some("True"), json!({})), hpa("off", Some("False"), json!({}))]));
    let of = |name: &str| value(&document, "hpa/s/on", name);
    assert_eq!(
        (of("hpa-desired"), of("hpa-current"), of("hpa-min"), of("hpa-max"), of("hpa-metric")),
        (json!(5), json!(4), json!(1), json!(6), json!(7.5))
    );
    assert!(value(&document, "hpa/s/off", "hpa-metric").as_str().unwrap().contains("because"));
    assert!(value(&document, "hpa/s/off", "hpa-desired").as_str().unwrap().starts_with('?'));
    // What it scales is named, so it is a subject.
    assert!(document["subjects"].get("deployment/s/a").is_some());
}

#[test]
fn what_is_paused_stays_paused_whatever_its_hpa_says() {
    let scaled = json!({"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject", "metadata": {"name": "a", "namespace": "s",
        "annotations": {"autoscaling.keda.sh/paused": "true"}}, "spec": {"scaleTargetRef": {"name": "a"}}});
    let document = document(facts(&[scaled, hpa("keda-hpa-a", Some("True"), json!({}))]));
    assert_eq!(value(&document, "deployment/s/a", "autoscaling"), "paused");
    assert_eq!(value(&document, "scaledobject/s/a", "autoscaling"), "paused");
}

fn writer(manager: &str, operation: &str, subresource: &str, fields: Value) -> Value {
    json!({"manager": manager, "operation": operation, "subresource": subresource, "fieldsV1": {"f:spec": fields}})
}

fn owners(objects: &[Value], subject: &str) -> Vec<(String, String)> {
    let document = document(facts(objects));
    let list = document["subjects"][subject]["owners"].as_array().cloned().unwrap_or_default();
    list.iter().map(|owner| (owner["field"].as_str().unwrap().to_owned(), owner["writer"].as_str().unwrap().to_owned())).collect()
}

#[test]
fn scale_writes_are_those_of_the_autoscaler_that_targets_it() {
    let replicas = || json!({"f:replicas": {}});
    let written = deployment(json!({"metadata": {"managedFields": [writer("kube-controller-manager", "Update", "scale", replicas())]}}));
    let pair = |field: &str, writer: &str| (field.to_owned(), writer.to_owned());
    assert_eq!(owners(std::slice::from_ref(&written), "deployment/s/a"), [pair("spec.replicas", "kube-controller-manager")]);
    assert_eq!(owners(&[written.clone(), hpa("h", None, json!({}))], "deployment/s/a"), [pair("spec.replicas", "hpa/s/h")]);
    let kedas = hpa(
        "h",
        None,
        json!({"metadata": {"ownerReferences": [{"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject", "name": "so", "controller": true}]}}),
    );
    assert_eq!(
        owners(&[written, kedas.clone()], "deployment/s/a"),
        [pair("spec.replicas", "hpa/s/h"), pair("spec.replicas", "scaledobject/s/so")]
    );
    assert_eq!(owners(&[kedas], "hpa/s/h"), [pair("spec", "scaledobject/s/so")]);
}

#[rstest]
#[case("manager", "Update", "inferenceservice/s/a")]
#[case("kubectl-rollout", "Update", "kubectl-rollout")]
#[case("argocd-controller", "Apply", "argocd-controller")]
fn template_writes_of_a_controller_are_its_objects(#[case] manager: &str, #[case] operation: &str, #[case] wanted: &str) {
    let template = json!({"f:template": {"f:spec": {}}});
    let written = deployment(json!({"metadata": {
        "ownerReferences": [{"apiVersion": "serving.kserve.io/v1beta1", "kind": "InferenceService", "name": "a", "controller": true}],
        "managedFields": [writer(manager, operation, "", template), writer("status-writer", "Update", "status", json!({"f:replicas": {}}))]}}));
    let owners = owners(&[written], "deployment/s/a");
    assert!(owners.contains(&("spec.template".into(), wanted.into())), "{owners:?}");
    assert!(owners.contains(&("spec".into(), "inferenceservice/s/a".into())));
    assert!(owners.contains(&("spec.replicas".into(), "inferenceservice/s/a".into())));
    assert_eq!(owners.len(), 3);
}

#[test]
fn what_is_only_named_is_a_subject() {
    let objects = [
        pod("a", json!({"spec": {"nodeName": "n1", "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "weights"}}]}})),
        json!({"apiVersion": "v1", "kind": "Event", "metadata": {"name": "e", "namespace": "s"}, "involvedObject": {"kind": "Pod", "namespace": "s", "name": "gone"}}),
        deployment(
            json!({"status": {"conditions": [{"type": "Progressing", "status": "True", "message": "ReplicaSet \"a-7c9\" is progressing."}]}}),
        ),
    ];
    let document = document(facts(&objects));
    for subject in ["pod/s/a", "node/n1", "persistentvolumeclaim/s/weights", "pod/s/gone", "replicaset/s/a-7c9", "fleet"] {
        assert!(document["subjects"].get(subject).is_some(), "{subject}");
    }
    assert!(document["subjects"].get("event/s/e").is_none());
}

#[test]
fn what_of_an_object_could_not_be_read_is_told() {
    let document = document(facts(&[deployment(json!({"spec": {"replicas": "four"}}))]));
    let why = document["subjects"]["deployment/s/a"]["why"].to_string();
    assert!(why.contains("not read: ") && why.contains("replicas"), "{why}");
    assert!(value(&document, "deployment/s/a", "asked").as_str().unwrap().starts_with('?'));
}

#[test]
fn one_model_has_its_own_objects_and_findings_alone() {
    let other = json!({"metadata": {"name": "b"}, "spec": {"selector": {"matchLabels": {"app": "b"}}, "template": {"metadata": {"labels": {"app": "b"}}}}});
    let world = World::build(facts(&[deployment(json!({})), deployment(other)]), "bundle", now());
    let finding = |name: &str| {
        let subject = Subject::object("Deployment", "s", name);
        Finding::new(Code::ScaleUpLost, &subject, "x", Evidence::field(&subject, "spec", "y"))
    };
    let findings = [finding("a"), finding("b")];
    let id = world.services.keys().find(|id| id.name == "a").unwrap();
    let document = serde_json::to_value(Document::about(&world, &findings, &std::iter::once(id).collect())).unwrap();
    assert_eq!(document["subjects"].as_object().unwrap().keys().collect::<Vec<_>>(), ["deployment/s/a"]);
    assert_eq!(document["findings"].as_array().unwrap().len(), 1);
}
