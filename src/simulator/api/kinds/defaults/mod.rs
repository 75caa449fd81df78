//! What the API server fills in where a manifest says nothing, for the kinds that a console and kubectl meet.
//!
//! Owns the defaults of `k8s.io/kubernetes/pkg/apis/*/v1/defaults.go` (1.36) for the kinds listed in docs/simulator.md. Must not
//! depend on anything but the object.

mod pods;
mod workloads;

use serde_json::{Map, Value, json};

use super::{items, map_mut, text};

/// Fills in the defaults of an object.
pub fn fill(group: &str, kind: &str, object: &mut Value) {
    match (group, kind) {
        ("", "Pod") => {
            if let Some(spec) = map_mut(object, &["spec"]) {
                pods::spec(spec);
                pods::requests(spec);
                default(spec, "enableServiceLinks", json!(true));
            }
        }
        ("", "ReplicationController") | ("apps", _) => workloads::fill(kind, object),
        ("batch", "Job") => workloads::job(object, &["spec"]),
        ("batch", "CronJob") => workloads::cron_job(object),
        ("", "Service") => service(object),
        ("", "Secret") => text_default(object, &[], "type", "Opaque"),
        ("", "ConfigMap" | "ServiceAccount") => {}
        ("", "Namespace") => text_default(object, &["status"], "phase", "Active"),
        ("", "PersistentVolumeClaim") => {
            text_default(object, &["spec"], "volumeMode", "Filesystem");
            text_default(object, &["status"], "phase", "Pending");
        }
        ("", "PersistentVolume") => {
            text_default(object, &["spec"], "volumeMode", "Filesystem");
            text_default(object, &["spec"], "persistentVolumeReclaimPolicy", "Retain");
            text_default(object, &["status"], "phase", "Pending");
        }
        ("", "Node") => node(object),
        ("", "Endpoints") => ports(object, "subsets"),
        ("discovery.k8s.io", "EndpointSlice") => slice(object),
        ("autoscaling", "HorizontalPodAutoscaler") => hpa(object),
        ("rbac.authorization.k8s.io", "RoleBinding" | "ClusterRoleBinding") => binding(object),
        ("scheduling.k8s.io", "PriorityClass") => text_default(object, &[], "preemptionPolicy", "PreemptLowerPriority"),
        ("storage.k8s.io", "StorageClass") => {
            text_default(object, &[], "reclaimPolicy", "Delete");
            text_default(object, &[], "volumeBindingMode", "Immediate");
        }
        ("networking.k8s.io", "NetworkPolicy") => network_policy(object),
        ("apiextensions.k8s.io", "CustomResourceDefinition") => crd(object),
        ("apiregistration.k8s.io", "APIService") => {
            if let Some(service) = map_mut(object, &["spec"]).and_then(|s| s.get_mut("service")).and_then(Value::as_object_mut) {
                default(service, "port", json!(443));
            }
        }
        ("admissionregistration.k8s.io", "MutatingWebhookConfiguration" | "ValidatingWebhookConfiguration") => webhooks(kind, object),
        _ => {}
    }
}

/// Sets a member that is not there.
pub(super) fn default(map: &mut Map<String, Value>, name: &str, value: Value) {
    if map.get(name).is_none_or(Value::is_null) {
        map.insert(name.to_owned(), value);
    }
}

/// Sets a text that is not there or empty, in a map that is made when it is missing.
pub(super) fn text_default(object: &mut Value, path: &[&str], name: &str, value: &str) {
    if let Some(map) = map_mut(object, path)
        && map.get(name).is_none_or(|v| v.as_str() == Some(""))
    {
        map.insert(name.to_owned(), value.into());
    }
}

/// The members of each item of a list in a map.
pub(super) fn each<'a>(map: &'a mut Map<String, Value>, list: &str) -> impl Iterator<Item = &'a mut Map<String, Value>> {
    map.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten().filter_map(Value::as_object_mut)
}

fn service(object: &mut Value) {
    text_default(object, &["spec"], "type", "ClusterIP");
    text_default(object, &["spec"], "sessionAffinity", "None");
    let outward = matches!(text(object, &["spec", "type"]), "NodePort" | "LoadBalancer");
    let balancer = text(object, &["spec", "type"]) == "LoadBalancer";
    let inward = text(object, &["spec", "type"]) != "ExternalName";
    let Some(spec) = map_mut(object, &["spec"]) else { return };
    for port in each(spec, "ports") {
        default(port, "protocol", json!("TCP"));
        let number = port.get("port").cloned().unwrap_or(json!(0));
        if port.get("targetPort").is_none_or(|t| t == &json!(0) || t == &json!("")) {
            port.insert("targetPort".into(), number);
        }
    }
    if spec.get("sessionAffinity") == Some(&json!("ClientIP")) {
        default(spec, "sessionAffinityConfig", json!({"clientIP": {"timeoutSeconds": 10800}}));
    }
    if inward {
        default(spec, "internalTrafficPolicy", json!("Cluster"));
    }
    if outward {
        default(spec, "externalTrafficPolicy", json!("Cluster"));
    }
    if balancer {
        default(spec, "allocateLoadBalancerNodePorts", json!(true));
    }
}

fn node(object: &mut Value) {
    let Some(status) = map_mut(object, &["status"]) else { return };
    if let Some(capacity) = status.get("capacity").cloned() {
        default(status, "allocatable", capacity);
    }
}

fn ports(object: &mut Value, list: &str) {
    let Some(map) = object.as_object_mut() else { return };
    for subset in each(map, list) {
        for port in each(subset, "ports") {
            default(port, "protocol", json!("TCP"));
        }
    }
}

fn slice(object: &mut Value) {
    let Some(map) = object.as_object_mut() else { return };
    default(map, "ports", Value::Null);
    for port in each(map, "ports") {
        default(port, "name", json!(""));
        default(port, "protocol", json!("TCP"));
    }
}

fn hpa(object: &mut Value) {
    let Some(spec) = map_mut(object, &["spec"]) else { return };
    default(spec, "minReplicas", json!(1));
    if items(&Value::Object(spec.clone()), &["metrics"]).is_empty() {
        let cpu = json!([{"type":"Resource","resource":{"name":"cpu","target":{"type":"Utilization","averageUtilization":80}}}]);
        spec.insert("metrics".into(), cpu);
    }
    let Some(behavior) = spec.get_mut("behavior").and_then(Value::as_object_mut) else { return };
    let named = behavior.contains_key("scaleUp") || behavior.contains_key("scaleDown");
    if !named {
        return;
    }
    let policy = |kind: &str, value: u64, period: u64| json!({"type": kind, "value": value, "periodSeconds": period});
    for (direction, policies) in
        [("scaleUp", json!([policy("Pods", 4, 15), policy("Percent", 100, 15)])), ("scaleDown", json!([policy("Percent", 100, 15)]))]
    {
        let rules = behavior.entry(direction).or_insert_with(|| json!({}));
        if let Some(rules) = rules.as_object_mut() {
            default(rules, "selectPolicy", json!("Max"));
            default(rules, "policies", policies);
            if direction == "scaleUp" {
                default(rules, "stabilizationWindowSeconds", json!(0));
            }
        }
    }
}

fn binding(object: &mut Value) {
    text_default(object, &["roleRef"], "apiGroup", "rbac.authorization.k8s.io");
    let Some(map) = object.as_object_mut() else { return };
    for subject in each(map, "subjects") {
        if matches!(subject.get("kind").and_then(Value::as_str), Some("User" | "Group")) {
            default(subject, "apiGroup", json!("rbac.authorization.k8s.io"));
        }
    }
}

fn network_policy(object: &mut Value) {
    let outward = object.pointer("/spec/egress").and_then(Value::as_array).is_some_and(|e| !e.is_empty());
    let Some(spec) = map_mut(object, &["spec"]) else { return };
    let types = if outward { json!(["Ingress", "Egress"]) } else { json!(["Ingress"]) };
    default(spec, "policyTypes", types);
    for list in ["ingress", "egress"] {
        for rule in each(spec, list) {
            for port in each(rule, "ports") {
                default(port, "protocol", json!("TCP"));
            }
        }
    }
}

fn crd(object: &mut Value) {
    let Some(spec) = map_mut(object, &["spec"]) else { return };
    default(spec, "conversion", json!({"strategy": "None"}));
    if let Some(names) = spec.get_mut("names").and_then(Value::as_object_mut) {
        let kind = names.get("kind").and_then(Value::as_str).unwrap_or_default().to_owned();
        default(names, "singular", json!(kind.to_lowercase()));
        default(names, "listKind", json!(format!("{kind}List")));
    }
}

fn webhooks(kind: &str, object: &mut Value) {
    let Some(map) = object.as_object_mut() else { return };
    for webhook in each(map, "webhooks") {
        default(webhook, "failurePolicy", json!("Fail"));
        default(webhook, "matchPolicy", json!("Equivalent"));
        default(webhook, "namespaceSelector", json!({}));
        default(webhook, "objectSelector", json!({}));
        default(webhook, "timeoutSeconds", json!(10));
        if kind == "MutatingWebhookConfiguration" {
            default(webhook, "reinvocationPolicy", json!("Never"));
        }
        for rule in each(webhook, "rules") {
            default(rule, "scope", json!("*"));
        }
        if let Some(service) = webhook.get_mut("clientConfig").and_then(|c| c.get_mut("service")).and_then(Value::as_object_mut) {
            default(service, "port", json!(443));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hold_on_scale_in_brings_the_other_defaults_of_behavior() {
        let mut hpa = json!({"spec":{"maxReplicas":3,"behavior":{"scaleDown":{"selectPolicy":"Disabled"}}}});
        fill("autoscaling", "HorizontalPodAutoscaler", &mut hpa);
        assert_eq!(hpa["spec"]["minReplicas"], 1);
        assert_eq!(hpa["spec"]["behavior"]["scaleDown"]["selectPolicy"], "Disabled");
        assert_eq!(hpa["spec"]["behavior"]["scaleUp"]["stabilizationWindowSeconds"], 0);
    }

    #[test]
    fn a_deployments_template_is_filled_in() {
        let mut deployment =
            json!({"spec":{"template":{"spec":{"containers":[{"name":"a","image":"x:latest","readinessProbe":{"httpGet":{"port":1}}}]}}}});
        fill("apps", "Deployment", &mut deployment);
        let spec = &deployment["spec"]["template"]["spec"];
        assert_eq!(spec["restartPolicy"], "Always");
        assert_eq!(spec["containers"][0]["imagePullPolicy"], "Always");
        assert_eq!(spec["containers"][0]["readinessProbe"]["httpGet"]["path"], "/");
        assert_eq!(deployment["spec"]["strategy"]["rollingUpdate"]["maxSurge"], "25%");
    }
}
