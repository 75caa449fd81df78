use super::*;
use crate::world::Facts;
use crate::world::facts::Change;
use rstest::rstest;
use serde_json::{Value, json};

fn object(doc: &Value, at: &str) -> Object {
    Object::read(doc, at.parse().unwrap()).unwrap()
}

fn deployment(replicas: u32, managers: Value) -> Value {
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a", "namespace": "s", "managedFields": managers},
        "spec": {"replicas": replicas}})
}

fn manager(name: &str, operation: &str, subresource: &str) -> Value {
    json!({"manager": name, "operation": operation, "subresource": subresource, "fieldsV1": {"f:spec": {"f:replicas": {}}}})
}

fn hpa() -> Value {
    json!({"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "h", "namespace": "s"},
        "spec": {"scaleTargetRef": {"kind": "Deployment", "name": "a"}, "maxReplicas": 4},
        "status": {"conditions": [{"type": "ScalingActive", "status": "True"}]}})
}

fn scaled() -> Value {
    json!({"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject", "metadata": {"name": "so", "namespace": "s"}, "spec": {"scaleTargetRef": {"name": "a"}}})
}

fn owners(docs: &[Value], history: Vec<Change>) -> Vec<(String, String)> {
    let now = "2026-11-12T10:00:00Z";
    let objects = docs.iter().map(|doc| object(doc, now)).collect();
    let world = World::build(Facts { objects, history, ..Facts::default() }, "bundle", now.parse().unwrap());
    world.owners_of(&Subject::parse("deployment/s/a")).into_iter().map(|owned| (owned.field.to_owned(), owned.writer.to_string())).collect()
}

#[rstest]
#[case::hpa(vec![deployment(2, json!([manager("kube-controller-manager", "Update", "scale")])), hpa()], &["hpa/s/h"])]
#[case::an_hpa_that_is_gone(vec![deployment(2, json!([manager("kube-controller-manager", "Update", "scale")]))], &["kube-controller-manager"])]
#[case::keda(vec![deployment(2, json!([manager("keda", "Update", "scale")])), scaled()], &["scaledobject/s/so"])]
#[case::git(vec![deployment(2, json!([manager("argocd-controller", "Apply", "")])), hpa()], &["hpa/s/h", "argocd-controller"])]
#[case::a_person(vec![deployment(2, json!([manager("kubectl", "Update", "scale")]))], &["kubectl"])]
#[case::nobody(vec![deployment(2, json!([]))], &[])]
#[case::only_its_status(vec![deployment(2, json!([manager("kube-controller-manager", "Update", "status")]))], &[])]
fn who_decides_replicas(#[case] docs: Vec<Value>, #[case] wanted: &[&str]) {
    let found = owners(&docs, Vec::new());
    let names: Vec<&str> = found.iter().filter(|(field, _)| field == "spec.replicas").map(|(_, writer)| writer.as_str()).collect();
    assert_eq!(names, wanted);
}

#[test]
fn the_one_who_lost_the_field_is_known_from_before() {
    let change = |at: &str, replicas, manager: Value| Change {
        at: at.parse().unwrap(),
        event: "MODIFIED".into(),
        object: object(&deployment(replicas, json!([manager])), at),
    };
    let scale = manager("kube-controller-manager", "Update", "scale");
    let history = vec![
        change("2026-11-12T09:50:00Z", 4, scale.clone()),
        change("2026-11-12T09:51:00Z", 2, manager("argocd-controller", "Apply", "")),
        change("2026-11-12T09:52:00Z", 4, scale.clone()),
    ];
    let found = owners(&[deployment(4, json!([scale])), hpa()], history);
    assert_eq!(found, [("spec.replicas".into(), "hpa/s/h".into()), ("spec.replicas".into(), "argocd-controller".to_owned())]);
}

#[test]
fn a_child_belongs_to_its_parent_and_an_applied_file_states_its_number() {
    let mut doc = deployment(2, json!([]));
    doc["metadata"]["ownerReferences"] = json!([{"apiVersion": "x.io/v1", "kind": "Model", "name": "m", "controller": true}]);
    let found = owners(&[doc], Vec::new());
    assert!(
        found.contains(&("spec".into(), "model/s/m".into())) && found.contains(&("spec.replicas".into(), "model/s/m".into())),
        "{found:?}"
    );
    let mut doc = deployment(2, json!([]));
    doc["metadata"]["annotations"] = json!({"kubectl.kubernetes.io/last-applied-configuration": "{\"spec\":{\"replicas\":2}}",
        "argocd.argoproj.io/tracking-id": "models:apps/Deployment:s/a"});
    let found = owners(&[doc], Vec::new());
    assert!(found.contains(&("spec.replicas".into(), "kubectl-client-side-apply".into())), "{found:?}");
    assert!(found.contains(&("spec".into(), "argocd application models".into())), "{found:?}");
}

#[rstest]
#[case("kubectl", "Update", true, false)]
#[case("kubectl-edit", "Update", true, false)]
#[case("kubectl-client-side-apply", "Update", false, true)]
#[case("kubectl", "Apply", false, true)]
#[case("helm", "Update", false, true)]
#[case("octopus", "Update", false, false)]
#[case("manager", "Update", false, false)]
fn people_and_files(#[case] name: &str, #[case] operation: &str, #[case] person: bool, #[case] states: bool) {
    let writer = Writer::read(&manager(name, operation, "")).unwrap();
    assert_eq!((is_person(&writer), states_fields(&writer)), (person, states));
}
