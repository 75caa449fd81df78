//! Defaults of pod specs.

use serde_json::{Map, Value, json};

use super::{default, each};

/// Fills in a pod spec.
pub(super) fn spec(spec: &mut Map<String, Value>) {
    default(spec, "dnsPolicy", json!("ClusterFirst"));
    default(spec, "restartPolicy", json!("Always"));
    default(spec, "terminationGracePeriodSeconds", json!(30));
    default(spec, "securityContext", json!({}));
    default(spec, "schedulerName", json!("default-scheduler"));
    let hosted = spec.get("hostNetwork") == Some(&json!(true));
    for list in ["containers", "initContainers", "ephemeralContainers"] {
        for container in each(spec, list) {
            self::container(container, hosted);
        }
    }
    for volume in each(spec, "volumes") {
        self::volume(volume);
    }
    for constraint in each(spec, "topologySpreadConstraints") {
        default(constraint, "nodeAffinityPolicy", Value::Null);
        constraint.remove("nodeAffinityPolicy").filter(|v| !v.is_null()).map(|v| constraint.insert("nodeAffinityPolicy".into(), v));
    }
    if let Some(account) = spec.get("serviceAccountName").cloned() {
        default(spec, "serviceAccount", account);
    } else if let Some(account) = spec.get("serviceAccount").cloned() {
        default(spec, "serviceAccountName", account);
    }
}

fn container(container: &mut Map<String, Value>, hosted: bool) {
    let image = container.get("image").and_then(Value::as_str).unwrap_or_default();
    let tag = image.split('@').next().and_then(|name| name.rsplit('/').next()).and_then(|name| name.split_once(':')).map(|(_, tag)| tag);
    let newest = !image.contains('@') && tag.is_none_or(|tag| tag == "latest");
    default(container, "imagePullPolicy", json!(if newest { "Always" } else { "IfNotPresent" }));
    default(container, "terminationMessagePath", json!("/dev/termination-log"));
    default(container, "terminationMessagePolicy", json!("File"));
    for port in each(container, "ports") {
        default(port, "protocol", json!("TCP"));
        if hosted && let Some(number) = port.get("containerPort").cloned() {
            default(port, "hostPort", number);
        }
    }
    for variable in each(container, "env") {
        let reference = variable.get_mut("valueFrom").and_then(|v| v.get_mut("fieldRef")).and_then(Value::as_object_mut);
        if let Some(field) = reference {
            default(field, "apiVersion", json!("v1"));
        }
    }
    for name in ["livenessProbe", "readinessProbe", "startupProbe"] {
        if let Some(probe) = container.get_mut(name).and_then(Value::as_object_mut) {
            self::probe(probe);
        }
    }
    for hook in ["postStart", "preStop"] {
        let get = container.get_mut("lifecycle").and_then(|l| l.get_mut(hook)).and_then(|h| h.get_mut("httpGet"));
        if let Some(get) = get.and_then(Value::as_object_mut) {
            default(get, "path", json!("/"));
            default(get, "scheme", json!("HTTP"));
        }
    }
}

/// What a pod asks for when it only says its limits.
pub(super) fn requests(spec: &mut Map<String, Value>) {
    for list in ["containers", "initContainers"] {
        for container in each(spec, list) {
            let Some(resources) = container.get_mut("resources").and_then(Value::as_object_mut) else { continue };
            let Some(limits) = resources.get("limits").and_then(Value::as_object).cloned() else { continue };
            let requests = resources.entry("requests").or_insert_with(|| json!({}));
            if let Some(requests) = requests.as_object_mut() {
                for (name, limit) in limits {
                    requests.entry(name).or_insert(limit);
                }
            }
        }
    }
}

fn probe(probe: &mut Map<String, Value>) {
    default(probe, "timeoutSeconds", json!(1));
    default(probe, "periodSeconds", json!(10));
    default(probe, "successThreshold", json!(1));
    default(probe, "failureThreshold", json!(3));
    if let Some(get) = probe.get_mut("httpGet").and_then(Value::as_object_mut) {
        default(get, "path", json!("/"));
        default(get, "scheme", json!("HTTP"));
    }
    if let Some(grpc) = probe.get_mut("grpc").and_then(Value::as_object_mut) {
        default(grpc, "service", json!(""));
    }
}

fn volume(volume: &mut Map<String, Value>) {
    if volume.len() == 1 {
        volume.insert("emptyDir".into(), json!({}));
    }
    for (source, mode) in [("secret", 420), ("configMap", 420), ("downwardAPI", 420), ("projected", 420)] {
        if let Some(source) = volume.get_mut(source).and_then(Value::as_object_mut) {
            default(source, "defaultMode", json!(mode));
        }
    }
    if let Some(path) = volume.get_mut("hostPath").and_then(Value::as_object_mut) {
        default(path, "type", json!(""));
    }
    if let Some(projected) = volume.get_mut("projected").and_then(Value::as_object_mut) {
        for source in each(projected, "sources") {
            if let Some(token) = source.get_mut("serviceAccountToken").and_then(Value::as_object_mut) {
                default(token, "expirationSeconds", json!(3600));
            }
            if let Some(downward) = source.get_mut("downwardAPI").and_then(Value::as_object_mut) {
                for item in each(downward, "items") {
                    if let Some(field) = item.get_mut("fieldRef").and_then(Value::as_object_mut) {
                        default(field, "apiVersion", json!("v1"));
                    }
                }
            }
        }
    }
}
