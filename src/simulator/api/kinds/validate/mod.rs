//! What an object must be to be written: the rules that clients of a console meet, listed in docs/simulator.md.
//!
//! Owns the rules and their words, which are those of the real server (1.36). Must not change objects.

pub mod names;
mod pods;
mod scaling;
mod workloads;

use serde_json::{Map, Value};

use super::super::status::Cause;
use super::{at, items, text};

/// The rules of a create. `create` is false for the new object of an update.
pub fn object(group: &str, kind: &str, object: &Value, namespaced: bool) -> Vec<Cause> {
    let mut causes = Vec::new();
    metadata(group, kind, object, namespaced, &mut causes);
    match (group, kind) {
        ("", "Pod") => pods::pod(object, &mut causes),
        ("apps", "Deployment" | "ReplicaSet" | "StatefulSet" | "DaemonSet") => workloads::workload(kind, object, &mut causes),
        ("batch", "Job") => workloads::job(object, &mut causes),
        ("autoscaling", "HorizontalPodAutoscaler") => scaling::hpa(object, &mut causes),
        ("policy", "PodDisruptionBudget") => scaling::budget(object, &mut causes),
        ("", "Service") => service(object, &mut causes),
        ("", "ConfigMap" | "Secret") => keys(object, &mut causes),
        ("rbac.authorization.k8s.io", "Role" | "ClusterRole") => role(kind, object, &mut causes),
        ("rbac.authorization.k8s.io", "RoleBinding" | "ClusterRoleBinding") => binding(object, &mut causes),
        ("coordination.k8s.io", "Lease") => lease(object, &mut causes),
        _ => {}
    }
    causes
}

/// The rules of an update: what may not change.
pub fn update(group: &str, kind: &str, old: &Value, new: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    // The real server asks its strategies and itself, and tells both answers.
    metadata_update(old, new, &mut causes);
    metadata_update(old, new, &mut causes);
    match (group, kind) {
        ("", "Pod") => pods::update(old, new, &mut causes),
        ("apps", _) | ("batch", "Job") => workloads::update(kind, old, new, &mut causes),
        ("", "Service") => {
            let (before, after) = (at(old, &["spec", "clusterIP"]), at(new, &["spec", "clusterIP"]));
            let kept = [text(old, &["spec", "type"]), text(new, &["spec", "type"])].iter().all(|t| *t != "ExternalName");
            if kept && before.is_some() && before != after && before != Some(&"".into()) {
                causes.push(Cause::invalid("spec.clusterIPs[0]", &shown_list(after), "may not change once set"));
            }
        }
        ("", "ConfigMap" | "Secret") if at(old, &["immutable"]) == Some(&true.into()) => {
            for field in ["data", "binaryData", "immutable"] {
                if at(old, &[field]) != at(new, &[field]) {
                    causes.push(Cause::forbidden(field, "field is immutable when `immutable` is set"));
                }
            }
        }
        ("", "Secret") if at(old, &["type"]) != at(new, &["type"]) => {
            causes.push(Cause::invalid("type", at(new, &["type"]).unwrap_or(&Value::Null), IMMUTABLE));
        }
        ("rbac.authorization.k8s.io", "RoleBinding" | "ClusterRoleBinding") if at(old, &["roleRef"]) != at(new, &["roleRef"]) => {
            let of = |field: &str| text(new, &["roleRef", field]);
            let shown = serde_json::json!({"APIGroup": of("apiGroup"), "Kind": of("kind"), "Name": of("name")});
            causes.push(Cause::invalid("roleRef", &shown, "cannot change roleRef"));
        }
        _ => {}
    }
    causes
}

/// What Kubernetes says of most fields that may not change.
pub(super) const IMMUTABLE: &str = "field is immutable";

fn shown_list(value: Option<&Value>) -> Value {
    Value::Array(value.into_iter().cloned().collect())
}

/// What is wrong with the name of an object.
pub fn name(group: &str, kind: &str, name: &str) -> Vec<String> {
    match (group, kind) {
        ("", "Namespace") => names::label(name),
        ("", "Service") => names::label(name),
        ("rbac.authorization.k8s.io", _) | ("apiregistration.k8s.io", _) => names::path_segment(name),
        _ => names::subdomain(name),
    }
}

fn metadata(group: &str, kind: &str, object: &Value, namespaced: bool, causes: &mut Vec<Cause>) {
    let given = text(object, &["metadata", "name"]);
    match given.is_empty() {
        true => causes.push(Cause::required("metadata.name", "name or generateName is required")),
        false => causes.extend(name(group, kind, given).iter().map(|why| Cause::invalid("metadata.name", &given.into(), why))),
    }
    let namespace = text(object, &["metadata", "namespace"]);
    match (namespaced, namespace.is_empty()) {
        (true, true) => causes.push(Cause::required("metadata.namespace", "")),
        (false, false) => causes.push(Cause::forbidden("metadata.namespace", "not allowed on this type")),
        (true, false) => {
            causes.extend(names::label(namespace).iter().map(|why| Cause::invalid("metadata.namespace", &namespace.into(), why)));
        }
        _ => {}
    }
    let map = |name: &str| at(object, &["metadata", name]).and_then(Value::as_object);
    names::labels(map("labels"), "metadata.labels", causes);
    names::annotations(map("annotations"), "metadata.annotations", causes);
    owners(object, causes);
    let builtin = !group.contains('.') || group.ends_with(".k8s.io");
    finalizers(object, builtin, causes);
}

fn owners(object: &Value, causes: &mut Vec<Cause>) {
    let mut controller = "";
    for owner in items(object, &["metadata", "ownerReferences"]) {
        for field in ["apiVersion", "kind", "name", "uid"] {
            if text(owner, &[field]).is_empty() {
                let why = if matches!(field, "apiVersion") { "version must not be empty" } else { "must not be empty" };
                causes.push(Cause::invalid(format!("metadata.ownerReferences.{field}"), &"".into(), why));
            }
        }
        if at(owner, &["controller"]) == Some(&true.into()) {
            if !controller.is_empty() {
                let (first, second) = (controller, text(owner, &["name"]));
                let why =
                    format!("Only one reference can have Controller set to true. Found \"true\" in references for {first} and {second}");
                causes.push(Cause::invalid("metadata.ownerReferences", &Value::Null, &why));
            }
            controller = text(owner, &["name"]);
        }
    }
}

fn finalizers(object: &Value, builtin: bool, causes: &mut Vec<Cause>) {
    for (n, finalizer) in items(object, &["metadata", "finalizers"]).iter().enumerate().filter_map(|(n, f)| Some((n, f.as_str()?))) {
        let wrong = names::qualified_name(finalizer);
        causes.extend(wrong.iter().map(|why| Cause::invalid("metadata.finalizers", &finalizer.into(), why)));
        let standard = matches!(finalizer, "orphan" | "foregroundDeletion" | "kubernetes");
        if builtin && wrong.is_empty() && !finalizer.contains('/') && !standard {
            let why = "name is neither a standard finalizer name nor is it fully qualified";
            causes.push(Cause::invalid(format!("metadata.finalizers[{n}]"), &finalizer.into(), why));
        }
    }
}

fn metadata_update(old: &Value, new: &Value, causes: &mut Vec<Cause>) {
    for field in ["name", "namespace", "uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"] {
        let (before, after) = (at(old, &["metadata", field]), at(new, &["metadata", field]));
        if before != after {
            causes.push(Cause::invalid(format!("metadata.{field}"), after.unwrap_or(&Value::Null), IMMUTABLE));
        }
    }
    let finalizers = |object: &Value| -> Vec<Value> { items(object, &["metadata", "finalizers"]).to_vec() };
    if at(old, &["metadata", "deletionTimestamp"]).is_some() {
        let before = finalizers(old);
        let added: Vec<Value> = finalizers(new).into_iter().filter(|f| !before.contains(f)).collect();
        if !added.is_empty() {
            let shown = added.iter().filter_map(Value::as_str).map(|f| format!("{f:?}")).collect::<Vec<_>>().join(", ");
            let why = format!("no new finalizers can be added if the object is being deleted, found new finalizers []string{{{shown}}}");
            causes.push(Cause::forbidden("metadata.finalizers", &why));
        }
    }
}

fn keys(object: &Value, causes: &mut Vec<Cause>) {
    let mut size = 0usize;
    for field in ["data", "binaryData"] {
        for (key, value) in at(object, &[field]).and_then(Value::as_object).into_iter().flatten() {
            size += value.as_str().map_or(0, str::len);
            let fits = !key.is_empty() && key.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'));
            if !fits {
                let why = "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')";
                causes.push(Cause::invalid(format!("{field}[{key}]"), &key.as_str().into(), why));
            }
        }
    }
    if size > 1024 * 1024 {
        causes.push(Cause::too_long("", "", "may not be more than 1048576 bytes"));
    }
}

fn service(object: &Value, causes: &mut Vec<Cause>) {
    let ports = items(object, &["spec", "ports"]);
    let kind = text(object, &["spec", "type"]);
    let headless = text(object, &["spec", "clusterIP"]) == "None";
    if ports.is_empty() && !headless && kind != "ExternalName" {
        causes.push(Cause::required("spec.ports", ""));
    }
    let mut seen = std::collections::BTreeSet::new();
    for (n, port) in ports.iter().enumerate() {
        let path = format!("spec.ports[{n}]");
        let name = text(port, &["name"]);
        if ports.len() > 1 && name.is_empty() {
            causes.push(Cause::required(format!("{path}.name"), ""));
        } else if !name.is_empty() && !seen.insert(name) {
            causes.push(Cause::duplicate(format!("{path}.name"), &name.into()));
        }
        pods::port(port, "port", &path, causes);
        if let Some(number) = at(port, &["targetPort"]).and_then(Value::as_i64).filter(|n| !(1..=65535).contains(n)) {
            let why = "must be between 1 and 65535, inclusive";
            causes.push(Cause::invalid(format!("{path}.targetPort"), &number.into(), why));
        }
    }
    if !["ClusterIP", "NodePort", "LoadBalancer", "ExternalName"].contains(&kind) {
        let known = ["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"];
        causes.push(Cause::unsupported("spec.type", &kind.into(), &known));
    }
    let selector = at(object, &["spec", "selector"]).and_then(Value::as_object);
    names::labels(selector, "spec.selector", causes);
}

fn role(kind: &str, object: &Value, causes: &mut Vec<Cause>) {
    for (n, rule) in items(object, &["rules"]).iter().enumerate() {
        let none = |field: &str| items(rule, &[field]).is_empty();
        let path = format!("rules[{n}]");
        if none("verbs") {
            causes.push(Cause::required(format!("{path}.verbs"), "verbs must contain at least one value"));
        }
        if !none("nonResourceURLs") {
            if kind == "Role" {
                let urls = at(rule, &["nonResourceURLs"]).unwrap_or(&Value::Null);
                causes.push(Cause::invalid(format!("{path}.nonResourceURLs"), urls, "namespaced rules cannot apply to non-resource URLs"));
            }
            continue;
        }
        if none("apiGroups") {
            causes.push(Cause::required(format!("{path}.apiGroups"), "resource rules must supply at least one api group"));
        }
        if none("resources") {
            causes.push(Cause::required(format!("{path}.resources"), "resource rules must supply at least one resource"));
        }
    }
}

fn binding(object: &Value, causes: &mut Vec<Cause>) {
    let whole = text(object, &["metadata", "namespace"]).is_empty();
    let role = |field: &str| text(object, &["roleRef", field]);
    if role("apiGroup") != "rbac.authorization.k8s.io" {
        causes.push(Cause::unsupported("roleRef.apiGroup", &role("apiGroup").into(), &["rbac.authorization.k8s.io"]));
    }
    if !["Role", "ClusterRole"].contains(&role("kind")) {
        causes.push(Cause::unsupported("roleRef.kind", &role("kind").into(), &["Role", "ClusterRole"]));
    }
    if role("name").is_empty() {
        causes.push(Cause::required("roleRef.name", ""));
    }
    for (n, subject) in items(object, &["subjects"]).iter().enumerate() {
        let path = format!("subjects[{n}]");
        if text(subject, &["name"]).is_empty() {
            causes.push(Cause::required(format!("{path}.name"), ""));
        }
        match text(subject, &["kind"]) {
            "ServiceAccount" if text(subject, &["namespace"]).is_empty() && whole => {
                causes.push(Cause::required(format!("{path}.namespace"), ""))
            }
            "ServiceAccount" | "User" | "Group" => {}
            other => causes.push(Cause::unsupported(format!("{path}.kind"), &other.into(), &["ServiceAccount", "User", "Group"])),
        }
    }
}

fn lease(object: &Value, causes: &mut Vec<Cause>) {
    if let Some(seconds) = at(object, &["spec", "leaseDurationSeconds"]).filter(|s| s.as_i64().is_some_and(|s| s <= 0)) {
        causes.push(Cause::invalid("spec.leaseDurationSeconds", seconds, "must be greater than 0"));
    }
    if let Some(count) = at(object, &["spec", "leaseTransitions"]).filter(|s| s.as_i64().is_some_and(|s| s < 0)) {
        causes.push(Cause::invalid("spec.leaseTransitions", count, "must be greater than or equal to 0"));
    }
}

/// A selector's labels as the map that a template's labels must contain.
pub(super) fn map_at<'a>(object: &'a Value, path: &[&str]) -> Option<&'a Map<String, Value>> {
    at(object, path).and_then(Value::as_object)
}
