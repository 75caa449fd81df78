//! Rules of pods and pod templates.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::super::super::status::Cause;
use super::super::{at, items, number, text};
use super::names;

/// A pod on its own.
pub(super) fn pod(object: &Value, causes: &mut Vec<Cause>) {
    spec(object, "spec", &[], causes);
}

/// The pod spec below a path (`spec`, `spec.template.spec`). `claims` are volumes that come from elsewhere.
pub(super) fn spec(object: &Value, path: &str, claims: &[Value], causes: &mut Vec<Cause>) {
    let steps: Vec<&str> = path.split('.').collect();
    let null = Value::Null;
    let spec = at(object, &steps).unwrap_or(&null);
    let volumes: BTreeSet<&str> =
        items(spec, &["volumes"]).iter().map(|v| text(v, &["name"])).chain(claims.iter().map(|c| text(c, &["metadata", "name"]))).collect();
    for (n, volume) in items(spec, &["volumes"]).iter().enumerate() {
        let (name, place) = (text(volume, &["name"]), format!("{path}.volumes[{n}].name"));
        match name.is_empty() {
            true => causes.push(Cause::required(place, "")),
            false => causes.extend(names::label(name).iter().map(|why| Cause::invalid(place.clone(), &name.into(), why))),
        }
    }
    let mut seen = BTreeSet::new();
    containers(spec, path, "containers", &volumes, &mut seen, causes);
    containers(spec, path, "initContainers", &volumes, &mut seen, causes);
    let policy = text(spec, &["restartPolicy"]);
    if !["Always", "OnFailure", "Never"].contains(&policy) {
        let place = format!("{path}.restartPolicy");
        causes.push(match policy.is_empty() {
            true => Cause::required(place, ""),
            false => Cause::unsupported(place, &policy.into(), &["Always", "OnFailure", "Never"]),
        });
    }
    if let Some(grace) = number(spec, &["terminationGracePeriodSeconds"]).filter(|g| *g < 0) {
        causes.push(Cause::invalid(format!("{path}.terminationGracePeriodSeconds"), &grace.into(), "must be greater than or equal to 0"));
    }
    names::labels(super::map_at(spec, &["nodeSelector"]), &format!("{path}.nodeSelector"), causes);
}

fn containers<'a>(
    spec: &'a Value,
    path: &str,
    field: &str,
    volumes: &BTreeSet<&str>,
    seen: &mut BTreeSet<&'a str>,
    causes: &mut Vec<Cause>,
) {
    let list = items(spec, &[field]);
    if list.is_empty() && field == "containers" {
        causes.push(Cause::required(format!("{path}.containers"), ""));
    }
    for (n, container) in list.iter().enumerate() {
        let place = format!("{path}.{field}[{n}]");
        let name = text(container, &["name"]);
        match name.is_empty() {
            true => causes.push(Cause::required(format!("{place}.name"), "")),
            false => {
                causes.extend(names::label(name).iter().map(|why| Cause::invalid(format!("{place}.name"), &name.into(), why)));
                if !seen.insert(name) {
                    causes.push(Cause::duplicate(format!("{place}.name"), &name.into()));
                }
            }
        }
        let image = text(container, &["image"]);
        if image.is_empty() {
            causes.push(Cause::required(format!("{place}.image"), ""));
        } else if image.trim() != image {
            causes.push(Cause::invalid(format!("{place}.image"), &image.into(), "must not have leading or trailing whitespace"));
        }
        let policy = text(container, &["imagePullPolicy"]);
        if !["Always", "IfNotPresent", "Never", ""].contains(&policy) {
            causes.push(Cause::unsupported(format!("{place}.imagePullPolicy"), &policy.into(), &["Always", "IfNotPresent", "Never"]));
        }
        for (n, given) in items(container, &["ports"]).iter().enumerate() {
            port(given, "containerPort", &format!("{place}.ports[{n}]"), causes);
        }
        for (n, variable) in items(container, &["env"]).iter().enumerate() {
            if text(variable, &["name"]).is_empty() {
                causes.push(Cause::required(format!("{place}.env[{n}].name"), ""));
            }
        }
        for (n, mount) in items(container, &["volumeMounts"]).iter().enumerate() {
            let volume = text(mount, &["name"]);
            let place = format!("{place}.volumeMounts[{n}]");
            if !volumes.contains(volume) {
                causes.push(Cause::missing(format!("{place}.name"), &volume.into()));
            }
            if text(mount, &["mountPath"]).is_empty() {
                causes.push(Cause::required(format!("{place}.mountPath"), ""));
            }
        }
        resources(container, &place, causes);
        for probe in ["livenessProbe", "readinessProbe", "startupProbe"] {
            if let Some(given) = at(container, &[probe]) {
                self::probe(given, &format!("{place}.{probe}"), causes);
            }
        }
    }
}

fn probe(probe: &Value, place: &str, causes: &mut Vec<Cause>) {
    let handlers = ["exec", "httpGet", "tcpSocket", "grpc"].iter().filter(|h| probe.get(**h).is_some()).count();
    if handlers == 0 {
        causes.push(Cause::required(place, "must specify a handler type"));
    }
}

/// What must be asked for in equal parts, as GPUs are.
fn is_extended(name: &str) -> bool {
    name.contains('/') && !name.starts_with("requests.") && !name.split('/').next().is_some_and(|p| p.ends_with("kubernetes.io"))
}

fn resources(container: &Value, place: &str, causes: &mut Vec<Cause>) {
    let limits = super::map_at(container, &["resources", "limits"]);
    let requests = super::map_at(container, &["resources", "requests"]);
    for (name, request) in requests.into_iter().flatten() {
        let limit = limits.and_then(|l| l.get(name));
        let field = format!("{place}.resources.requests");
        match limit {
            Some(limit) if is_extended(name) && amount(limit) != amount(request) => {
                let why = format!("must be equal to {name} limit of {}", limit.as_str().unwrap_or_default());
                causes.push(Cause::invalid(field, request, &why));
            }
            Some(limit) if amount(limit) < amount(request) => {
                let why = format!("must be less than or equal to {name} limit of {}", limit.as_str().unwrap_or_default());
                causes.push(Cause::invalid(field, request, &why));
            }
            None if is_extended(name) => {
                causes.push(Cause::required(format!("{place}.resources.limits"), "Limit must be set for non overcommitable resources"));
            }
            _ => {}
        }
    }
}

/// A quantity as thousandths; `None` for what is none.
fn amount(quantity: &Value) -> Option<i128> {
    let text = quantity.as_str().map_or_else(|| quantity.to_string(), str::to_owned);
    let end = text.find(|c: char| !c.is_ascii_digit() && !matches!(c, '.' | '-' | '+')).unwrap_or(text.len());
    let (digits, unit) = text.split_at(end);
    let value: f64 = digits.parse().ok()?;
    let factor = match unit {
        "n" => 1e-6,
        "u" => 1e-3,
        "m" => 1.0,
        "" => 1e3,
        "k" => 1e6,
        "M" => 1e9,
        "G" => 1e12,
        "T" => 1e15,
        "P" => 1e18,
        "Ki" => 1024e3,
        "Mi" => 1_048_576e3,
        "Gi" => 1_073_741_824e3,
        "Ti" => 1_099_511_627_776e3,
        _ => return None,
    };
    Some((value * factor) as i128)
}

/// A port number in a field of a port.
pub(super) fn port(port: &Value, field: &str, place: &str, causes: &mut Vec<Cause>) {
    match number(port, &[field]) {
        Some(0) if field == "containerPort" => causes.push(Cause::required(format!("{place}.{field}"), "")),
        None if field == "containerPort" => causes.push(Cause::required(format!("{place}.{field}"), "")),
        None => causes.push(Cause::invalid(format!("{place}.{field}"), &0.into(), "must be between 1 and 65535, inclusive")),
        Some(1..=65535) => {}
        Some(other) => {
            causes.push(Cause::invalid(format!("{place}.{field}"), &other.into(), "must be between 1 and 65535, inclusive"));
        }
    }
    let protocol = text(port, &["protocol"]);
    if !["TCP", "UDP", "SCTP", ""].contains(&protocol) {
        causes.push(Cause::unsupported(format!("{place}.protocol"), &protocol.into(), &["SCTP", "TCP", "UDP"]));
    }
}

/// What a pod's update may change: images, active deadline, tolerations added, scheduling gates removed.
pub(super) fn update(old: &Value, new: &Value, causes: &mut Vec<Cause>) {
    let comparable = |object: &Value| {
        let mut spec = at(object, &["spec"]).cloned().unwrap_or_else(|| json!({}));
        if let Some(map) = spec.as_object_mut() {
            for field in
                ["activeDeadlineSeconds", "tolerations", "terminationGracePeriodSeconds", "schedulingGates", "nodeSelector", "affinity"]
            {
                map.remove(field);
            }
            for field in ["containers", "initContainers"] {
                for container in map.get_mut(field).and_then(Value::as_array_mut).into_iter().flatten() {
                    if let Some(container) = container.as_object_mut() {
                        container.remove("image");
                    }
                }
            }
        }
        spec
    };
    if comparable(old) != comparable(new) {
        let why = "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";
        causes.push(Cause::forbidden("spec", why));
    }
    let kept = items(old, &["spec", "tolerations"]).iter().all(|t| items(new, &["spec", "tolerations"]).contains(t));
    if !kept {
        causes.push(Cause::forbidden("spec.tolerations", "existing toleration can not be modified except its tolerationSeconds"));
    }
}
