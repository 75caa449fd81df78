//! What a write may change through which door: status only through `/status`, spec only through the object, generations counted.
//!
//! Owns the strategies of `k8s.io/kubernetes/pkg/registry/*/strategy.go` (1.36) that clients see. Must not validate.

use serde_json::{Map, Value, json};

use super::{at, has_generation, items, map_mut, metadata_mut, text};

/// Brings a new object into the state in which a create starts: no status, first generation.
pub fn create(group: &str, kind: &str, object: &mut Value, has_status: bool, custom: bool, now: &str) {
    if has_generation(group, kind, custom)
        && let Some(metadata) = metadata_mut(object)
    {
        metadata.insert("generation".into(), json!(1));
    }
    if has_status && !matches!(kind, "Node" | "APIService") {
        let Some(members) = object.as_object_mut() else { return };
        members.remove("status");
        let fresh = match (group, kind) {
            ("", "Namespace") => json!({"phase": "Active"}),
            ("", "PersistentVolume" | "PersistentVolumeClaim") => json!({"phase": "Pending"}),
            ("", "Pod") => {
                let mut status = json!({"phase": "Pending", "qosClass": quality(object)});
                if !items(object, &["spec", "schedulingGates"]).is_empty() {
                    let message = "Scheduling is blocked due to non-empty scheduling gates";
                    status["conditions"] = json!([{"type": "PodScheduled", "status": "False", "reason": "SchedulingGated",
                        "message": message, "lastProbeTime": null, "lastTransitionTime": now}]);
                }
                status
            }
            ("flowcontrol.apiserver.k8s.io", _) => json!({}),
            _ => Value::Null,
        };
        if let (false, Some(members)) = (fresh.is_null(), object.as_object_mut()) {
            members.insert("status".into(), fresh);
        }
    }
    if let ("", "Secret") = (group, kind) {
        string_data(object);
    }
    if let ("", "Namespace") = (group, kind) {
        let name = text(object, &["metadata", "name"]).to_owned();
        if let Some(labels) = map_mut(object, &["metadata", "labels"]) {
            labels.insert("kubernetes.io/metadata.name".into(), name.into());
        }
        if let Some(spec) = map_mut(object, &["spec"]) {
            spec.insert("finalizers".into(), json!(["kubernetes"]));
        }
    }
}

/// `stringData` of a Secret goes into `data`.
pub fn string_data(object: &mut Value) {
    use base64::Engine;
    let Some(plain) = object.as_object_mut().and_then(|o| o.remove("stringData")) else { return };
    let Some(data) = map_mut(object, &["data"]) else { return };
    for (key, value) in plain.as_object().into_iter().flatten() {
        let encoded = base64::engine::general_purpose::STANDARD.encode(value.as_str().unwrap_or_default());
        data.insert(key.clone(), encoded.into());
    }
}

/// The quality-of-service class of a pod.
fn quality(pod: &Value) -> &'static str {
    let (mut any, mut all) = (false, true);
    let containers = items(pod, &["spec", "containers"]).iter().chain(items(pod, &["spec", "initContainers"]));
    for container in containers {
        for name in ["cpu", "memory"] {
            let (limit, request) = (at(container, &["resources", "limits", name]), at(container, &["resources", "requests", name]));
            any |= limit.is_some() || request.is_some();
            all &= limit.is_some() && (request.is_none() || request == limit);
        }
    }
    match (any, all) {
        (false, _) => "BestEffort",
        (true, true) => "Guaranteed",
        (true, false) => "Burstable",
    }
}

/// Fields that a write to the object cannot change, as paths of fields.
pub fn reset_by_update(has_status: bool) -> &'static [&'static [&'static str]] {
    if has_status { &[&["f:status"]] } else { &[] }
}

/// Fields that a write to `/status` cannot change.
pub fn reset_by_status(kind: &str, custom: bool) -> &'static [&'static [&'static str]] {
    match custom {
        false if kind == "Deployment" => &[&["f:spec"], &["f:metadata", "f:labels"]],
        false if kind == "Pod" => &[&["f:spec"], &["f:metadata", "f:ownerReferences"]],
        true => &[
            &["f:spec"],
            &["f:metadata", "f:labels"],
            &["f:metadata", "f:annotations"],
            &["f:metadata", "f:finalizers"],
            &["f:metadata", "f:ownerReferences"],
        ],
        false => &[&["f:spec"]],
    }
}

/// Brings the new object of an update in line with the old one. `door` is empty for the object itself, else the subresource.
pub fn update(group: &str, kind: &str, old: &Value, new: &mut Value, door: &str, has_status: bool, custom: bool) {
    match door {
        "status" => status(group, kind, old, new, custom),
        _ => {
            if has_status && !matches!(kind, "APIService") {
                keep(old, new, "status");
            }
        }
    }
    if let (Some(before), Some(metadata)) = (at(old, &["metadata"]).and_then(Value::as_object), metadata_mut(new)) {
        for field in ["creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation", "selfLink"] {
            restore(before, metadata, field);
        }
        for field in ["uid", "generateName"] {
            if metadata.get(field).is_none_or(|v| v.as_str() == Some("")) {
                restore(before, metadata, field);
            }
        }
    }
    if let ("", "Secret") = (group, kind) {
        string_data(new);
    }
    if let ("", "Service") = (group, kind) {
        addresses(old, new);
    }
    if door != "status" && has_generation(group, kind, custom) && differs(group, kind, old, new) {
        let next = super::number(old, &["metadata", "generation"]).unwrap_or(0) + 1;
        if let Some(metadata) = metadata_mut(new) {
            metadata.insert("generation".into(), json!(next));
        }
    }
}

fn status(group: &str, kind: &str, old: &Value, new: &mut Value, custom: bool) {
    let mut wanted = old.clone();
    let given = new.get("status").cloned();
    if let Some(members) = wanted.as_object_mut() {
        match given {
            Some(status) => members.insert("status".into(), status),
            None => members.remove("status"),
        };
    }
    if !custom && let (Some(given), Some(metadata)) = (at(new, &["metadata"]).and_then(Value::as_object), metadata_mut(&mut wanted)) {
        // Built-in kinds take metadata through /status too, but for what their strategies put back.
        let fixed: &[&str] = match (group, kind) {
            ("apps", "Deployment") => &["labels"],
            ("", "Pod") => &["ownerReferences", "deletionTimestamp"],
            _ => &[],
        };
        for field in ["labels", "annotations", "finalizers", "ownerReferences", "managedFields"] {
            if !fixed.contains(&field) {
                restore(given, metadata, field);
            }
        }
    } else if let (Some(given), Some(metadata)) = (at(new, &["metadata"]).and_then(Value::as_object), metadata_mut(&mut wanted)) {
        restore(given, metadata, "managedFields");
    }
    *new = wanted;
}

fn restore(from: &Map<String, Value>, into: &mut Map<String, Value>, field: &str) {
    match from.get(field) {
        Some(value) => into.insert(field.to_owned(), value.clone()),
        None => into.remove(field),
    };
}

fn keep(old: &Value, new: &mut Value, field: &str) {
    if let (Some(from), Some(into)) = (old.as_object(), new.as_object_mut()) {
        restore(from, into, field);
    }
}

/// A Service keeps the addresses and node ports that it was given.
fn addresses(old: &Value, new: &mut Value) {
    if text(new, &["spec", "type"]) == "ExternalName" || text(old, &["spec", "type"]) == "ExternalName" {
        return;
    }
    for field in ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy", "healthCheckNodePort"] {
        let before = at(old, &["spec", field]).cloned();
        if let (Some(before), Some(spec)) = (before, map_mut(new, &["spec"]))
            && spec.get(field).is_none_or(|v| v.is_null() || v.as_str() == Some("") || v.as_array().is_some_and(Vec::is_empty))
        {
            spec.insert(field.into(), before);
        }
    }
    if !matches!(text(new, &["spec", "type"]), "NodePort" | "LoadBalancer") {
        return;
    }
    let before = items(old, &["spec", "ports"]).to_vec();
    let ports = map_mut(new, &["spec"]).and_then(|s| s.get_mut("ports")).and_then(Value::as_array_mut);
    for port in ports.into_iter().flatten() {
        let same = before.iter().find(|b| b.get("port") == port.get("port") && b.get("protocol") == port.get("protocol"));
        if let (Some(node_port), Some(port)) = (same.and_then(|s| s.get("nodePort")).cloned(), port.as_object_mut())
            && port.get("nodePort").is_none_or(|n| n == &json!(0))
        {
            port.insert("nodePort".into(), node_port);
        }
    }
}

/// Whether an update counts as a new generation.
fn differs(group: &str, kind: &str, old: &Value, new: &Value) -> bool {
    let spec = |object: &Value| at(object, &["spec"]).cloned();
    match (group, kind) {
        ("apps", "Deployment") => spec(old) != spec(new) || at(old, &["metadata", "annotations"]) != at(new, &["metadata", "annotations"]),
        ("", "PodTemplate") => old.get("template") != new.get("template"),
        ("discovery.k8s.io", "EndpointSlice") => {
            body(old) != body(new) || at(old, &["metadata", "labels"]) != at(new, &["metadata", "labels"])
        }
        _ => body(old) != body(new),
    }
}

/// All of an object but its metadata and status.
fn body(object: &Value) -> Map<String, Value> {
    let members = object.as_object().into_iter().flatten();
    members
        .filter(|(name, _)| !matches!(name.as_str(), "metadata" | "status" | "apiVersion" | "kind"))
        .map(|(k, v)| (k.clone(), v.clone()))
        .collect()
}

/// What admission adds to a new pod: its account's token, tolerations of failing nodes, a priority.
pub fn admit_pod(pod: &mut Value, suffix: &str, mounts_token: bool) {
    let Some(spec) = map_mut(pod, &["spec"]) else { return };
    for (field, value) in [("serviceAccountName", json!("default")), ("serviceAccount", json!("default"))] {
        if spec.get(field).is_none_or(|v| v.as_str() == Some("")) {
            let other = if field == "serviceAccount" { spec.get("serviceAccountName").cloned() } else { None };
            spec.insert(field.into(), other.unwrap_or(value));
        }
    }
    spec.entry("priority").or_insert(json!(0));
    spec.entry("preemptionPolicy").or_insert(json!("PreemptLowerPriority"));
    let tolerations = spec.entry("tolerations").or_insert_with(|| json!([]));
    if let Some(list) = tolerations.as_array_mut() {
        for key in ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"] {
            let there = list.iter().any(|t| {
                let (given, effect) = (text(t, &["key"]), text(t, &["effect"]));
                (given == key || given.is_empty()) && (effect == "NoExecute" || effect.is_empty())
            });
            if !there {
                list.push(json!({"effect": "NoExecute", "key": key, "operator": "Exists", "tolerationSeconds": 300}));
            }
        }
    }
    let mounts = spec.get("automountServiceAccountToken").and_then(Value::as_bool).unwrap_or(mounts_token);
    let mirrored = at(pod, &["metadata", "annotations", "kubernetes.io/config.mirror"]).is_some();
    if mounts && !mirrored {
        token_volume(pod, suffix);
    }
}

fn token_volume(pod: &mut Value, suffix: &str) {
    const PATH: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
    let name = format!("kube-api-access-{suffix}");
    let Some(spec) = map_mut(pod, &["spec"]) else { return };
    let mut used = false;
    for list in ["containers", "initContainers"] {
        for container in spec.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
            if items(container, &["volumeMounts"]).iter().any(|m| text(m, &["mountPath"]) == PATH) {
                continue;
            }
            let Some(map) = container.as_object_mut() else { continue };
            if let Some(mounts) = map.entry("volumeMounts").or_insert_with(|| json!([])).as_array_mut() {
                mounts.push(json!({"mountPath": PATH, "name": name, "readOnly": true}));
                used = true;
            }
        }
    }
    if !used {
        return;
    }
    let volume = json!({"name": name, "projected": {"defaultMode": 420, "sources": [
        {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
        {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
        {"downwardAPI": {"items": [{"path": "namespace", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}}]}}]}});
    if let Some(volumes) = spec.entry("volumes").or_insert_with(|| json!([])).as_array_mut() {
        volumes.push(volume);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spec_change_is_a_generation_and_a_status_change_is_none() {
        let old = json!({"metadata":{"generation":3,"uid":"u"},"spec":{"replicas":1},"status":{"replicas":1}});
        let mut new = json!({"metadata":{},"spec":{"replicas":2},"status":{"replicas":9}});
        update("apps", "Deployment", &old, &mut new, "", true, false);
        assert_eq!(new, json!({"metadata":{"generation":4,"uid":"u"},"spec":{"replicas":2},"status":{"replicas":1}}));
        let mut new = json!({"metadata":{},"spec":{"replicas":2},"status":{"replicas":9}});
        update("apps", "Deployment", &old, &mut new, "status", true, false);
        assert_eq!(new, json!({"metadata":{"generation":3,"uid":"u"},"spec":{"replicas":1},"status":{"replicas":9}}));
    }

    #[test]
    fn a_pods_quality_follows_its_resources() {
        let pod = |resources: Value| json!({"spec":{"containers":[{"resources":resources}]}});
        assert_eq!(quality(&pod(json!({}))), "BestEffort");
        let both = json!({"cpu":"1","memory":"1Gi"});
        assert_eq!(quality(&pod(json!({"limits":both,"requests":both}))), "Guaranteed");
        assert_eq!(quality(&pod(json!({"requests":{"cpu":"1"}}))), "Burstable");
    }
}
