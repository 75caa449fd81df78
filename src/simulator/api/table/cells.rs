//! The cells of built-in kinds.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::super::kinds::labels::LabelSelector;
use super::super::kinds::{at, items, number, text};
use super::super::registry::Resource;
use super::{age, pods};

/// The cells of an object, in the order of its resource's columns.
pub(super) fn of(resource: &Resource, object: &Value, now: Timestamp) -> Vec<Value> {
    let name = text(object, &["metadata", "name"]);
    let age = || age::of(at(object, &["metadata", "creationTimestamp"]).unwrap_or(&Value::Null), now);
    let count = |path: &[&str]| number(object, path).unwrap_or(0);
    let or_none = |text: &str| if text.is_empty() { "<none>".to_owned() } else { text.to_owned() };
    let images = || containers(object, &["spec", "template", "spec", "containers"]);
    let selector = |path: &[&str]| {
        let shown = at(object, path).map(|s| LabelSelector::of_object(s).unwrap_or_default().shown()).unwrap_or_default();
        or_none(&shown)
    };
    match (resource.gr.group.as_str(), resource.kind.as_str()) {
        ("", "Pod") => {
            let (ready, status, restarts) = pods::cells(object, now);
            let nominated = text(object, &["status", "nominatedNodeName"]);
            let (ip, node) = (or_none(text(object, &["status", "podIP"])), or_none(text(object, &["spec", "nodeName"])));
            json_row([&name, &ready, &status, &restarts, &age(), &ip, &node, &or_none(nominated), &pods::gates(object)])
        }
        ("apps", "Deployment") => {
            let (names, images) = images();
            vec![
                name.into(),
                format!("{}/{}", count(&["status", "readyReplicas"]), count(&["spec", "replicas"])).into(),
                count(&["status", "updatedReplicas"]).into(),
                count(&["status", "availableReplicas"]).into(),
                age().into(),
                names.into(),
                images.into(),
                selector(&["spec", "selector"]).into(),
            ]
        }
        ("apps", "ReplicaSet") | ("", "ReplicationController") => {
            let (names, images) = images();
            let selector = match resource.kind.as_str() {
                "ReplicaSet" => selector(&["spec", "selector"]),
                _ => or_none(&LabelSelector::of_map(at(object, &["spec", "selector"]).unwrap_or(&Value::Null)).shown()),
            };
            vec![
                name.into(),
                count(&["spec", "replicas"]).into(),
                count(&["status", "replicas"]).into(),
                count(&["status", "readyReplicas"]).into(),
                age().into(),
                names.into(),
                images.into(),
                selector.into(),
            ]
        }
        ("apps", "StatefulSet") => {
            let (names, images) = images();
            let ready = format!("{}/{}", count(&["status", "readyReplicas"]), count(&["spec", "replicas"]));
            json_row([&name, &ready, &age(), &names, &images])
        }
        ("apps", "DaemonSet") => {
            let (names, images) = images();
            let nodes = LabelSelector::of_map(at(object, &["spec", "template", "spec", "nodeSelector"]).unwrap_or(&Value::Null)).shown();
            let mut cells = vec![name.into()];
            for field in ["desiredNumberScheduled", "currentNumberScheduled", "numberReady", "updatedNumberScheduled", "numberAvailable"] {
                cells.push(count(&["status", field]).into());
            }
            cells.extend([or_none(&nodes), age(), names, images, selector(&["spec", "selector"])].map(Value::from));
            cells
        }
        ("batch", "Job") => job(object, name, &age(), images(), &selector(&["spec", "selector"]), now),
        ("batch", "CronJob") => {
            let (names, images) = containers(object, &["spec", "jobTemplate", "spec", "template", "spec", "containers"]);
            let last = at(object, &["status", "lastScheduleTime"]).map_or_else(|| "<none>".to_owned(), |t| age::of(t, now));
            vec![
                name.into(),
                text(object, &["spec", "schedule"]).into(),
                or_none(text(object, &["spec", "timeZone"])).into(),
                if at(object, &["spec", "suspend"]) == Some(&json!(true)) { "True" } else { "False" }.into(),
                items(object, &["status", "active"]).len().into(),
                last.into(),
                age().into(),
                names.into(),
                images.into(),
                selector(&["spec", "jobTemplate", "spec", "selector"]).into(),
            ]
        }
        ("", "Service") => {
            let ports: Vec<String> = items(object, &["spec", "ports"]).iter().map(service_port).collect();
            let selector = LabelSelector::of_map(at(object, &["spec", "selector"]).unwrap_or(&Value::Null)).shown();
            let kind = text(object, &["spec", "type"]);
            let address = or_none(text(object, &["spec", "clusterIP"]));
            json_row([&name, &kind, &address, &outside(object), &or_none(&ports.join(",")), &age(), &or_none(&selector)])
        }
        ("", "Node") => node(object, name, &age()),
        ("", "Namespace") => json_row([&name, &text(object, &["status", "phase"]), &age()]),
        ("", "ConfigMap") => {
            let size = |field: &str| at(object, &[field]).and_then(Value::as_object).map_or(0, |m| m.len());
            vec![name.into(), (size("data") + size("binaryData")).into(), age().into()]
        }
        ("", "Secret") => {
            let size = at(object, &["data"]).and_then(Value::as_object).map_or(0, |m| m.len());
            vec![name.into(), text(object, &["type"]).into(), size.into(), age().into()]
        }
        ("", "ServiceAccount") => json_row([&name, &age()]),
        ("", "Endpoints") => json_row([&name, &endpoints(object), &age()]),
        (_, "Event") => event(object, name, now),
        ("autoscaling", "HorizontalPodAutoscaler") => hpa(resource, object, name, &age()),
        ("policy", "PodDisruptionBudget") => {
            let shown = |field: &str| {
                at(object, &["spec", field]).map_or_else(|| "N/A".to_owned(), |v| v.as_str().map_or_else(|| v.to_string(), str::to_owned))
            };
            let allowed = count(&["status", "disruptionsAllowed"]);
            vec![name.into(), shown("minAvailable").into(), shown("maxUnavailable").into(), allowed.into(), age().into()]
        }
        ("coordination.k8s.io", "Lease") => json_row([&name, &text(object, &["spec", "holderIdentity"]), &age()]),
        ("discovery.k8s.io", "EndpointSlice") => slice(object, name, &age()),
        ("rbac.authorization.k8s.io", "Role" | "ClusterRole") | ("apiextensions.k8s.io", _) | ("", "LimitRange") => {
            json_row([&name, &text(object, &["metadata", "creationTimestamp"])])
        }
        ("rbac.authorization.k8s.io", _) => {
            let of = |kind: &str| {
                let subjects = items(object, &["subjects"]).iter().filter(|s| text(s, &["kind"]) == kind);
                let names = subjects.map(|s| match kind {
                    "ServiceAccount" => format!("{}/{}", text(s, &["namespace"]), text(s, &["name"])),
                    _ => text(s, &["name"]).to_owned(),
                });
                names.collect::<Vec<_>>().join(", ")
            };
            let role = format!("{}/{}", text(object, &["roleRef", "kind"]), text(object, &["roleRef", "name"]));
            json_row([&name, &role, &age(), &of("User"), &of("Group"), &of("ServiceAccount")])
        }
        ("apps", "ControllerRevision") => {
            let owner = items(object, &["metadata", "ownerReferences"]).iter().find(|o| at(o, &["controller"]) == Some(&json!(true)));
            let owner = owner.map_or_else(
                || "<none>".to_owned(),
                |o| {
                    let group = text(o, &["apiVersion"]).split_once('/').map_or("", |(g, _)| g);
                    let kind = text(o, &["kind"]).to_lowercase();
                    if group.is_empty() {
                        format!("{kind}/{}", text(o, &["name"]))
                    } else {
                        format!("{kind}.{group}/{}", text(o, &["name"]))
                    }
                },
            );
            vec![name.into(), owner.into(), count(&["revision"]).into(), age().into()]
        }
        ("scheduling.k8s.io", "PriorityClass") => vec![
            name.into(),
            count(&["value"]).into(),
            at(object, &["globalDefault"]).cloned().unwrap_or(json!(false)),
            age().into(),
            text(object, &["preemptionPolicy"]).into(),
        ],
        ("", "PersistentVolumeClaim") => {
            let capacity = text(object, &["status", "capacity", "storage"]);
            let class = text(object, &["spec", "storageClassName"]);
            let attributes = "<unset>".to_owned();
            let volume = text(object, &["spec", "volumeName"]);
            let status =
                if at(object, &["metadata", "deletionTimestamp"]).is_some() { "Terminating" } else { text(object, &["status", "phase"]) };
            let modes = if volume.is_empty() { String::new() } else { modes(object, &["status", "accessModes"]) };
            let mode = or_none(text(object, &["spec", "volumeMode"]));
            json_row([&name, &status, &volume, &capacity, &modes, &class, &attributes, &age(), &mode])
        }
        _ => fallback(resource, object, name, &age()),
    }
}

fn json_row<const N: usize>(cells: [&dyn std::fmt::Display; N]) -> Vec<Value> {
    cells.iter().map(|cell| Value::from(cell.to_string())).collect()
}

/// Kinds without cells of their own here: name and age, and what the columns name if it stands in the spec.
fn fallback(resource: &Resource, object: &Value, name: &str, age: &str) -> Vec<Value> {
    super::definitions(resource)
        .iter()
        .map(|column| match column["name"].as_str().unwrap_or_default() {
            "Name" => name.into(),
            "Age" => age.into(),
            "Created At" => text(object, &["metadata", "creationTimestamp"]).into(),
            heading => {
                let field = heading.to_lowercase().replace([' ', '-'], "");
                let found = [at(object, &["spec"]), Some(object)].into_iter().flatten().find_map(|part| {
                    part.as_object()?
                        .iter()
                        .find(|(name, v)| name.to_lowercase() == field && !v.is_object() && !v.is_array())
                        .map(|(_, v)| v)
                });
                match (found, column["type"].as_str()) {
                    (Some(Value::String(text)), _) => text.clone().into(),
                    (Some(value), Some("string")) => value.to_string().into(),
                    (Some(value), _) => value.clone(),
                    (None, Some("integer")) => 0.into(),
                    (None, Some("boolean")) => false.into(),
                    (None, _) => "<none>".into(),
                }
            }
        })
        .collect()
}

fn containers(object: &Value, path: &[&str]) -> (String, String) {
    let list = items(object, path);
    let all = |field: &str| list.iter().map(|c| text(c, &[field])).collect::<Vec<_>>().join(",");
    (all("name"), all("image"))
}

fn service_port(port: &Value) -> String {
    let (number, protocol) = (number(port, &["port"]).unwrap_or(0), text(port, &["protocol"]));
    match self::number(port, &["nodePort"]).filter(|n| *n > 0) {
        Some(node_port) => format!("{number}:{node_port}/{protocol}"),
        None => format!("{number}/{protocol}"),
    }
}

fn outside(service: &Value) -> String {
    let given: Vec<&str> = items(service, &["spec", "externalIPs"]).iter().filter_map(Value::as_str).collect();
    match text(service, &["spec", "type"]) {
        "ExternalName" => text(service, &["spec", "externalName"]).to_owned(),
        "LoadBalancer" => {
            let ingress = items(service, &["status", "loadBalancer", "ingress"]).iter();
            let mut all: Vec<&str> =
                ingress.map(|i| if text(i, &["ip"]).is_empty() { text(i, &["hostname"]) } else { text(i, &["ip"]) }).collect();
            all.extend(&given);
            if all.is_empty() { "<pending>".to_owned() } else { all.join(",") }
        }
        _ if given.is_empty() => "<none>".to_owned(),
        _ => given.join(","),
    }
}

fn modes(object: &Value, path: &[&str]) -> String {
    let short = |mode: &str| match mode {
        "ReadWriteOnce" => "RWO",
        "ReadOnlyMany" => "ROX",
        "ReadWriteMany" => "RWX",
        _ => "RWOP",
    };
    items(object, path).iter().filter_map(Value::as_str).map(short).collect::<Vec<_>>().join(",")
}

fn node(object: &Value, name: &str, age: &str) -> Vec<Value> {
    let ready = items(object, &["status", "conditions"]).iter().find(|c| text(c, &["type"]) == "Ready");
    let mut status = match ready.map(|c| text(c, &["status"])) {
        Some("True") => "Ready".to_owned(),
        Some(_) => "NotReady".to_owned(),
        None => "Unknown".to_owned(),
    };
    if at(object, &["spec", "unschedulable"]) == Some(&json!(true)) {
        status += ",SchedulingDisabled";
    }
    let labels = at(object, &["metadata", "labels"]).and_then(Value::as_object);
    let mut roles: Vec<&str> = labels
        .into_iter()
        .flatten()
        .filter_map(|(key, value)| {
            key.strip_prefix("node-role.kubernetes.io/")
                .filter(|r| !r.is_empty())
                .or_else(|| (key == "kubernetes.io/role").then(|| value.as_str())?)
        })
        .collect();
    roles.sort_unstable();
    let roles = if roles.is_empty() { "<none>".to_owned() } else { roles.join(",") };
    let address = |kind: &str| {
        let found = items(object, &["status", "addresses"]).iter().find(|a| text(a, &["type"]) == kind);
        found.map_or_else(|| "<none>".to_owned(), |a| text(a, &["address"]).to_owned())
    };
    let info = |field: &str| match text(object, &["status", "nodeInfo", field]) {
        "" => "<unknown>".to_owned(),
        text => text.to_owned(),
    };
    let version = text(object, &["status", "nodeInfo", "kubeletVersion"]);
    json_row([
        &name,
        &status,
        &roles,
        &age,
        &version,
        &address("InternalIP"),
        &address("ExternalIP"),
        &info("osImage"),
        &info("kernelVersion"),
        &info("containerRuntimeVersion"),
    ])
}

fn endpoints(object: &Value) -> String {
    let mut all = Vec::new();
    for subset in items(object, &["subsets"]) {
        let ports = items(subset, &["ports"]);
        for address in items(subset, &["addresses"]) {
            let ip = text(address, &["ip"]);
            match ports.is_empty() {
                true => all.push(ip.to_owned()),
                false => all.extend(ports.iter().map(|p| format!("{ip}:{}", number(p, &["port"]).unwrap_or(0)))),
            }
        }
    }
    first_of(all)
}

fn first_of(all: Vec<String>) -> String {
    match all.len() {
        0 => "<none>".to_owned(),
        n if n > 3 => format!("{} + {} more...", all.iter().take(3).cloned().collect::<Vec<_>>().join(","), n - 3),
        _ => all.join(","),
    }
}

fn slice(object: &Value, name: &str, age: &str) -> Vec<Value> {
    let some = |all: Vec<String>| match all.len() {
        0 => "<unset>".to_owned(),
        n if n > 3 => format!("{} + {} more...", all.iter().take(3).cloned().collect::<Vec<_>>().join(","), n - 3),
        _ => all.join(","),
    };
    let ports: Vec<String> =
        items(object, &["ports"]).iter().map(|p| number(p, &["port"]).map_or_else(|| "*".to_owned(), |n| n.to_string())).collect();
    let addresses: Vec<String> =
        items(object, &["endpoints"]).iter().flat_map(|e| items(e, &["addresses"])).filter_map(Value::as_str).map(str::to_owned).collect();
    json_row([&name, &text(object, &["addressType"]), &some(ports), &some(addresses), &age])
}

fn event(object: &Value, name: &str, now: Timestamp) -> Vec<Value> {
    let newer = at(object, &["regarding"]).is_some();
    let pick = |core: &str, new: &str| if newer { text(object, &[new]) } else { text(object, &[core]) }.to_owned();
    let first = pick("firstTimestamp", "deprecatedFirstTimestamp");
    let last = pick("lastTimestamp", "deprecatedLastTimestamp");
    let time = text(object, &["eventTime"]).to_owned();
    let shown = |t: &str| age::of(&Value::from(t), now);
    let first_seen = if first.is_empty() { shown(&time) } else { shown(&first) };
    let series = text(object, &["series", "lastObservedTime"]);
    let last_seen = match (series.is_empty(), last.is_empty()) {
        (false, _) => shown(series),
        (true, false) => shown(&last),
        (true, true) => first_seen.clone(),
    };
    let about = if newer { "regarding" } else { "involvedObject" };
    let target = format!("{}/{}", text(object, &[about, "kind"]).to_lowercase(), text(object, &[about, "name"]));
    let source = if newer { "deprecatedSource" } else { "source" };
    let (component, host) = (text(object, &[source, "component"]), text(object, &[source, "host"]));
    let component = if component.is_empty() { pick("reportingComponent", "reportingController") } else { component.to_owned() };
    let source = if host.is_empty() { component } else { format!("{component}, {host}") };
    let count = number(object, &[if newer { "deprecatedCount" } else { "count" }]).or_else(|| number(object, &["series", "count"]));
    vec![
        last_seen.into(),
        text(object, &["type"]).into(),
        text(object, &["reason"]).into(),
        target.into(),
        text(object, &[about, "fieldPath"]).into(),
        source.into(),
        pick("message", "note").trim().into(),
        first_seen.into(),
        count.unwrap_or(1).into(),
        name.into(),
    ]
}

fn hpa(resource: &Resource, object: &Value, name: &str, age: &str) -> Vec<Value> {
    let target = format!("{}/{}", text(object, &["spec", "scaleTargetRef", "kind"]), text(object, &["spec", "scaleTargetRef", "name"]));
    let least = number(object, &["spec", "minReplicas"]).map_or_else(|| "<unset>".to_owned(), |n| n.to_string());
    let metrics = match resource.version.as_str() {
        "v1" => {
            let shown = |path: &[&str]| number(object, path).map_or_else(|| "<unknown>".to_owned(), |n| format!("{n}%"));
            match number(object, &["spec", "targetCPUUtilizationPercentage"]) {
                Some(_) => format!(
                    "cpu: {}/{}",
                    shown(&["status", "currentCPUUtilizationPercentage"]),
                    shown(&["spec", "targetCPUUtilizationPercentage"])
                ),
                None => "<none>".to_owned(),
            }
        }
        _ => targets(object),
    };
    let most = number(object, &["spec", "maxReplicas"]).unwrap_or(0);
    let now = number(object, &["status", "currentReplicas"]).unwrap_or(0);
    vec![name.into(), target.into(), metrics.into(), least.into(), most.into(), now.into(), age.into()]
}

fn targets(object: &Value) -> String {
    let current = items(object, &["status", "currentMetrics"]);
    let metrics = items(object, &["spec", "metrics"]);
    let mut shown = Vec::new();
    for (n, metric) in metrics.iter().enumerate() {
        let kind = text(metric, &["type"]);
        let part = match kind {
            "Pods" => "pods",
            "Object" => "object",
            "External" => "external",
            "ContainerResource" => "containerResource",
            _ => "resource",
        };
        let now = current.get(n).and_then(|c| at(c, &[part, "current"]));
        let target = at(metric, &[part, "target"]).unwrap_or(&Value::Null);
        let name = match part {
            "resource" | "containerResource" => format!("{}: ", text(metric, &[part, "name"])),
            _ => String::new(),
        };
        let known = |field: &str| now.and_then(|c| at(c, &[field])).filter(|v| !v.is_null());
        let unknown = || "<unknown>".to_owned();
        let plain = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let line = if let Some(wanted) = at(target, &["averageUtilization"]) {
            format!("{name}{}/{}%", known("averageUtilization").map_or_else(unknown, |v| format!("{}%", plain(v))), plain(wanted))
        } else if let Some(wanted) = at(target, &["averageValue"]) {
            let average = if matches!(part, "object" | "external") { " (avg)" } else { "" };
            format!("{name}{}/{}{average}", known("averageValue").map_or_else(unknown, plain), plain(wanted))
        } else {
            let wanted = at(target, &["value"]).map(plain).unwrap_or_else(unknown);
            format!("{name}{}/{wanted}", known("value").map_or_else(unknown, plain))
        };
        shown.push(line);
    }
    let more = shown.len().saturating_sub(2);
    match shown.len() {
        0 => "<none>".to_owned(),
        n if n > 2 => format!("{} + {more} more...", shown.into_iter().take(2).collect::<Vec<_>>().join(", ")),
        _ => shown.join(", "),
    }
}

fn job(object: &Value, name: &str, age: &str, images: (String, String), selector: &str, now: Timestamp) -> Vec<Value> {
    let done = number(object, &["status", "succeeded"]).unwrap_or(0);
    let wanted = number(object, &["spec", "completions"]);
    let completions = match (wanted, number(object, &["spec", "parallelism"]).unwrap_or(0)) {
        (Some(wanted), _) => format!("{done}/{wanted}"),
        (None, p) if p > 1 => format!("{done}/1 of {p}"),
        (None, _) => format!("{done}/1"),
    };
    let has =
        |kind: &str| items(object, &["status", "conditions"]).iter().any(|c| text(c, &["type"]) == kind && text(c, &["status"]) == "True");
    let status = if has("Complete") {
        "Complete"
    } else if has("Failed") {
        "Failed"
    } else if at(object, &["metadata", "deletionTimestamp"]).is_some() {
        "Terminating"
    } else if has("Suspended") {
        "Suspended"
    } else if has("FailureTarget") {
        "FailureTarget"
    } else if has("SuccessCriteriaMet") {
        "SuccessCriteriaMet"
    } else {
        "Running"
    };
    let time = |field: &str| text(object, &["status", field]).parse::<Timestamp>().ok();
    let duration = match (time("startTime"), time("completionTime")) {
        (Some(start), Some(end)) => age::short(end.as_second() - start.as_second()),
        (Some(start), None) => age::short(now.as_second() - start.as_second()),
        _ => String::new(),
    };
    json_row([&name, &status, &completions, &duration, &age, &images.0, &images.1, &selector])
}
