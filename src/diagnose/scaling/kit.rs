//! Objects for the tests of this family: Deployment `a` in namespace `s`, its HPA `h`, its ScaledObject `so`.

use serde_json::{Value, json};

pub(super) fn deployment(replicas: u32) -> Value {
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a", "namespace": "s"},
        "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": "a"}}},
        "status": {"replicas": replicas, "updatedReplicas": replicas, "readyReplicas": replicas}})
}

/// The same, with `spec.replicas` owned by this manager.
pub(super) fn written(replicas: u32, manager: &str, operation: &str, subresource: &str) -> Value {
    let mut doc = deployment(replicas);
    doc["metadata"]["managedFields"] =
        json!([{"manager": manager, "operation": operation, "subresource": subresource, "fieldsV1": {"f:spec": {"f:replicas": {}}}}]);
    doc
}

/// An HPA of `a` from 1 to 6 with this ScalingActive condition, that wants and has so many.
pub(super) fn hpa(name: &str, active: &str, reason: &str, desired: u32) -> Value {
    json!({"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": name, "namespace": "s"},
        "spec": {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "a"}, "minReplicas": 1, "maxReplicas": 6,
            "metrics": [{"type": "Pods", "pods": {"metric": {"name": "vllm_num_requests_waiting"}, "target": {"averageValue": "4"}}}]},
        "status": {"desiredReplicas": desired, "currentReplicas": desired,
            "currentMetrics": [{"type": "Pods", "pods": {"metric": {"name": "vllm_num_requests_waiting"}, "current": {"averageValue": "19"}}}],
            "conditions": [{"type": "AbleToScale", "status": "True"}, {"type": "ScalingActive", "status": active, "reason": reason}]}})
}

/// The HPA that `so` made.
pub(super) fn kedas(active: &str, reason: &str, desired: u32) -> Value {
    let mut doc = hpa("keda-hpa-so", active, reason, desired);
    doc["metadata"]["ownerReferences"] =
        json!([{"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject", "name": "so", "controller": true}]);
    doc
}

/// A ScaledObject of `a` with one Prometheus trigger.
pub(super) fn scaled(query: &str) -> Value {
    json!({"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject", "metadata": {"name": "so", "namespace": "s"},
        "spec": {"scaleTargetRef": {"name": "a"}, "minReplicaCount": 0, "maxReplicaCount": 6,
            "triggers": [{"type": "prometheus", "metadata": {"query": query, "threshold": "4"}}]},
        "status": {"hpaName": "keda-hpa-so", "conditions": [{"type": "Ready", "status": "True"}, {"type": "Active", "status": "False", "reason": "ScalerNotActive"}]}})
}
