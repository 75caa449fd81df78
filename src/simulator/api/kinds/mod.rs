//! What the API server knows of single kinds: defaults, rules, what a write through which door may change.
//!
//! Owns the small tables and functions by kind. Must not know the store, users or HTTP: all is a function of objects and the time.

pub mod convert;
pub mod defaults;
pub mod fields;
pub mod labels;
pub mod prepare;
pub mod validate;

use serde_json::{Map, Value};

/// The member at a path of names.
pub fn at<'a>(value: &'a Value, path: &[&str]) -> Option<&'a Value> {
    path.iter().try_fold(value, |value, name| value.get(name))
}

/// The text at a path; empty when there is none.
pub fn text<'a>(value: &'a Value, path: &[&str]) -> &'a str {
    at(value, path).and_then(Value::as_str).unwrap_or_default()
}

/// The whole number at a path.
pub fn number(value: &Value, path: &[&str]) -> Option<i64> {
    at(value, path).and_then(Value::as_i64)
}

/// The items at a path; none when there is no list.
pub fn items<'a>(value: &'a Value, path: &[&str]) -> &'a [Value] {
    at(value, path).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// The members at a path, made when they are missing; `None` when something else stands there.
pub fn map_mut<'a>(value: &'a mut Value, path: &[&str]) -> Option<&'a mut Map<String, Value>> {
    let mut here = value;
    for name in path {
        here = here.as_object_mut()?.entry(*name).or_insert_with(|| Value::Object(Map::new()));
        if here.is_null() {
            *here = Value::Object(Map::new());
        }
    }
    here.as_object_mut()
}

/// `metadata` of an object, made when it is missing.
pub fn metadata_mut(object: &mut Value) -> Option<&mut Map<String, Value>> {
    map_mut(object, &["metadata"])
}

/// Whether an update without resourceVersion is taken as "whatever is there now". Custom resources refuse it.
pub fn takes_blind_updates(group: &str, kind: &str, custom: bool) -> bool {
    !custom
        && !matches!(
            kind,
            "RuntimeClass"
                | "PodDisruptionBudget"
                | "CSIDriver"
                | "CSIStorageCapacity"
                | "VolumeAttachment"
                | "CSINode"
                | "Lease"
                | "CustomResourceDefinition"
                | "APIService"
        )
        && group != "admissionregistration.k8s.io"
}

/// Whether a PUT on a name that is free creates the object.
pub fn is_created_by_update(group: &str, kind: &str) -> bool {
    matches!(kind, "RuntimeClass" | "Lease" | "LimitRange" | "Event" | "Service" | "Endpoints") || group == "rbac.authorization.k8s.io"
}

/// Whether a DELETE that takes effect at once is answered with the object instead of a Status.
pub fn is_returned_when_deleted(group: &str, kind: &str) -> bool {
    matches!(
        kind,
        "Pod"
            | "Service"
            | "PersistentVolume"
            | "PersistentVolumeClaim"
            | "ServiceAccount"
            | "PodTemplate"
            | "ResourceQuota"
            | "Namespace"
            | "CSIDriver"
            | "StorageClass"
            | "VolumeAttachment"
            | "CSINode"
            | "VolumeAttributesClass"
    ) || group == "resource.k8s.io"
}

/// Whether the object counts the generations of its spec.
pub fn has_generation(group: &str, kind: &str, custom: bool) -> bool {
    custom
        || group == "admissionregistration.k8s.io"
        || matches!(
            kind,
            "DaemonSet"
                | "Deployment"
                | "ReplicaSet"
                | "StatefulSet"
                | "CronJob"
                | "Job"
                | "Pod"
                | "PodTemplate"
                | "ReplicationController"
                | "EndpointSlice"
                | "FlowSchema"
                | "PriorityLevelConfiguration"
                | "Ingress"
                | "IngressClass"
                | "NetworkPolicy"
                | "PodDisruptionBudget"
                | "DeviceClass"
                | "ResourceSlice"
                | "PriorityClass"
                | "CustomResourceDefinition"
        )
}

/// What happens to dependents when a delete does not say.
pub fn default_propagation(group: &str, kind: &str) -> &'static str {
    match (group, kind) {
        ("batch", "Job") | ("", "ReplicationController") => "Orphan",
        _ => "Background",
    }
}
