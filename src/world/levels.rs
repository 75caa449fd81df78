//! Levels: whether the object above a workload sets its replicas, so that whoever scales the workload is undone.

use crate::model::Subject;
use crate::model::object::{Body, Catalogue, Object};

/// Kinds that a parent makes as handles for scaling: an autoscaler that targets one is at the right level.
const HANDLES: &[&str] = &["DisaggregatedSetRoleScaler", "DynamoGraphDeploymentScalingAdapter", "RoleBasedGroupScalingAdapter"];

/// The controller above an object, if it sets the object's replicas. `None` where nobody is above, where the object is a handle made
/// to be scaled, and where the parent is known to leave the number alone.
///
/// KServe leaves it alone where its object names no number (an LLMInferenceService without `replicas` and `scaling` keeps what is there; an
/// InferenceService of autoscaler class `external` never touches it).
pub fn parent_sets_replicas(objects: &Catalogue, object: &Object) -> Option<Subject> {
    let owner = object.meta.controller()?;
    if HANDLES.contains(&object.kind.as_str()) {
        return None;
    }
    let parent = owner.subject(&object.meta.namespace);
    let group = owner.api_version.split_once('/').map_or("", |(group, _)| group);
    if group == "serving.kserve.io" {
        const CLASS: &str = "serving.kserve.io/autoscalerClass";
        let external = |object: &Object| object.meta.annotation(CLASS) == Some("external");
        let Some(above) = objects.get(&parent) else {
            // Its annotations are copied to what it makes. Of an LLMInferenceService nobody can tell without reading it.
            return (owner.kind == "InferenceService" && !external(object)).then_some(parent);
        };
        let Body::Other(body) = &above.body else { return None };
        let spec = body.get("spec")?;
        let sets = match owner.kind.as_str() {
            "LLMInferenceService" => {
                let role = if object.meta.name.contains("prefill") { spec.get("prefill")? } else { spec };
                ["replicas", "scaling"].iter().any(|key| role.get(key).is_some_and(|value| !value.is_null()))
            }
            _ => !external(above),
        };
        return sets.then_some(parent);
    }
    Some(parent)
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::Timestamp;
    use rstest::rstest;
    use serde_json::{Value, json};
    use std::sync::Arc;

    fn child(kind: &str, owner_api: &str, owner_kind: &str) -> Value {
        json!({"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": "c", "namespace": "s",
            "ownerReferences": [{"apiVersion": owner_api, "kind": owner_kind, "name": "p", "controller": true}]}})
    }

    fn kserve(kind: &str, spec: Value, annotations: Value) -> Value {
        json!({"apiVersion": "serving.kserve.io/v1alpha1", "kind": kind, "metadata": {"name": "p", "namespace": "s", "annotations": annotations}, "spec": spec})
    }

    #[rstest]
    #[case(child("ReplicaSet", "apps/v1", "Deployment"), None, true)]
    #[case(child("StatefulSet", "leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet"), None, true)]
    #[case(child("DisaggregatedSetRoleScaler", "disaggregatedset.x-k8s.io/v1", "DisaggregatedSet"), None, false)]
    #[case(json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "c", "namespace": "s"}}), None, false)]
    #[case(child("Deployment", "serving.kserve.io/v1alpha1", "LLMInferenceService"), None, false)]
    #[case(child("Deployment", "serving.kserve.io/v1beta1", "InferenceService"), None, true)]
    #[case(child("Deployment", "serving.kserve.io/v1alpha1", "LLMInferenceService"), Some(kserve("LLMInferenceService", json!({"replicas": 2}), json!({}))), true)]
    #[case(child("Deployment", "serving.kserve.io/v1alpha1", "LLMInferenceService"), Some(kserve("LLMInferenceService", json!({}), json!({}))), false)]
    #[case(child("Deployment", "serving.kserve.io/v1beta1", "InferenceService"), Some(kserve("InferenceService", json!({}), json!({}))), true)]
    #[case(child("Deployment", "serving.kserve.io/v1beta1", "InferenceService"),
        Some(kserve("InferenceService", json!({}), json!({"serving.kserve.io/autoscalerClass": "external"}))), false)]
    fn who_sets_the_number(#[case] child: Value, #[case] parent: Option<Value>, #[case] sets: bool) {
        let docs = std::iter::once(child).chain(parent).map(|doc| Arc::new(Object::read(&doc, Timestamp::UNIX_EPOCH).unwrap()));
        let objects = Catalogue::new(docs);
        let (_, object) = objects.all().find(|(_, object)| object.meta.name == "c").unwrap();
        assert_eq!(parent_sets_replicas(&objects, object).is_some(), sets);
    }
}
