//! Create.

use serde_json::{Value, json};

use super::super::apply::{Writer, track_update};
use super::super::auth;
use super::super::http::body;
use super::super::kinds::{items, map_mut, metadata_mut, prepare, text, validate};
use super::super::registry::Resource;
use super::super::state::State;
use super::super::status::{ApiError, ApiResult, GroupResource};
use super::super::store::Range;
use super::decode::{Strictness, decode, judge};
use super::{Answer, Call, Served, outgoing};

/// The longest base of a generated name.
const LONGEST_BASE: usize = 58;

/// Serves a create.
///
/// # Errors
/// As Kubernetes gives them.
pub fn create(state: &mut State, call: &Call, resource: &Served) -> ApiResult<Answer> {
    let strictness = Strictness::parse(call.query.get("fieldValidation"), "CreateOptions")?;
    let dry = call.query.dry_run()?;
    let object = body::object(&call.content_type, &call.body, &resource.kind)?;
    let decoded = decode(resource, object, Some(&call.body))?;
    let warnings = judge(resource, strictness, decoded.complaints)?;
    let mut object = decoded.object;
    at_home(resource, &call.target.namespace, &mut object)?;
    let manager = call.manager();
    let stamp = state.stamp();
    let api_version = resource.api_version();
    let writer = Writer {
        manager: &manager,
        api_version: &api_version,
        subresource: "",
        now: Some(&stamp),
        reset: prepare::reset_by_update(resource.has_status()),
    };
    track_update(resource.stored_node(), None, &mut object, &writer);
    let stored = add(state, &call.user, resource, object, dry)?;
    Ok(Answer { code: 201, object: outgoing(resource, &stored), warnings })
}

/// Puts a namespaced object into the namespace of the request.
///
/// # Errors
/// 400 when it says to live elsewhere.
pub fn at_home(resource: &Resource, namespace: &str, object: &mut Value) -> ApiResult<()> {
    if !resource.namespaced {
        return Ok(());
    }
    let given = text(object, &["metadata", "namespace"]);
    if !given.is_empty() && given != namespace {
        return Err(ApiError::bad_request("the namespace of the provided object does not match the namespace sent on the request"));
    }
    if let Some(metadata) = metadata_mut(object) {
        metadata.insert("namespace".into(), namespace.into());
    }
    Ok(())
}

/// The last part of every creation, also of one by update or apply: name, admission, rules, writing.
///
/// # Errors
/// As Kubernetes gives them.
pub fn add(state: &mut State, user: &auth::User, resource: &Served, mut object: Value, dry: bool) -> ApiResult<Value> {
    let stored = resource.stored();
    let (group, _) = resource.stored_version();
    let (group, kind) = (group.to_owned(), resource.kind.clone());
    let namespace = text(&object, &["metadata", "namespace"]).to_owned();
    let generates = text(&object, &["metadata", "name"]).is_empty() && !text(&object, &["metadata", "generateName"]).is_empty();
    if generates {
        let base: String = text(&object, &["metadata", "generateName"]).chars().take(LONGEST_BASE).collect();
        let mut name = format!("{base}{}", state.ids.suffix(5));
        for _ in 0..7 {
            if state.store.get(&stored, &namespace, &name).is_none() {
                break;
            }
            name = format!("{base}{}", state.ids.suffix(5));
        }
        if let Some(metadata) = metadata_mut(&mut object) {
            metadata.insert("name".into(), name.into());
        }
    }
    let name = text(&object, &["metadata", "name"]).to_owned();
    admit_namespace(state, resource, &namespace, &name)?;
    auth::refuse_escalation(&state.store, user, &resource.gr, &object)?;
    if (group.as_str(), kind.as_str()) == ("", "Pod") {
        admit_pod(state, &mut object, &namespace, &name)?;
    }
    if !text(&object, &["metadata", "resourceVersion"]).is_empty() {
        return Err(ApiError::new(500, "", "resourceVersion should not be set on objects to be created"));
    }
    let uid = state.ids.uid();
    let stamp = state.stamp();
    if let Some(metadata) = metadata_mut(&mut object) {
        for field in ["selfLink", "deletionTimestamp", "deletionGracePeriodSeconds"] {
            metadata.remove(field);
        }
        metadata.insert("uid".into(), uid.clone().into());
        metadata.insert("creationTimestamp".into(), stamp.clone().into());
    }
    prepare::create(&group, &kind, &mut object, resource.has_status(), resource.custom.is_some(), &stamp);
    begin(state, &group, &kind, &mut object, &uid);
    super::decode::complete(resource, &mut object);
    let causes = validate::object(&group, &kind, &object, resource.namespaced);
    if !causes.is_empty() {
        return Err(ApiError::invalid(&resource.gr.group, &kind, &name, &causes));
    }
    if state.store.get(&stored, &namespace, &name).is_some() {
        return Err(ApiError::already_exists(&resource.gr, &name));
    }
    if dry {
        return Ok(object);
    }
    Ok((*state.put(&stored, object)).clone())
}

fn admit_namespace(state: &State, resource: &Resource, namespace: &str, name: &str) -> ApiResult<()> {
    if !resource.namespaced {
        return Ok(());
    }
    let namespaces = GroupResource::new("", "namespaces");
    let Some(home) = state.get(&namespaces, "", namespace) else {
        return Err(ApiError::not_found(&namespaces, namespace));
    };
    if home.pointer("/metadata/deletionTimestamp").is_some() {
        let why = format!("unable to create new content in namespace {namespace} because it is being terminated");
        let mut error = ApiError::forbidden(&resource.gr, name, &why);
        if let Some(details) = error.details.as_mut() {
            details["causes"] = json!([{"reason": "NamespaceTerminating", "message": format!("namespace {namespace} is being terminated"), "field": "metadata.namespace"}]);
        }
        return Err(error);
    }
    Ok(())
}

fn admit_pod(state: &mut State, pod: &mut Value, namespace: &str, name: &str) -> ApiResult<()> {
    let pods = GroupResource::new("", "pods");
    let account = Some(text(pod, &["spec", "serviceAccountName"])).filter(|a| !a.is_empty()).unwrap_or("default").to_owned();
    let Some(found) = state.get(&GroupResource::new("", "serviceaccounts"), namespace, &account) else {
        let why = format!("error looking up service account {namespace}/{account}: serviceaccount {account:?} not found");
        return Err(ApiError::forbidden(&pods, name, &why));
    };
    let mounts = found.get("automountServiceAccountToken").and_then(Value::as_bool).unwrap_or(true);
    let class = text(pod, &["spec", "priorityClassName"]).to_owned();
    if !class.is_empty() {
        let classes = GroupResource::new("scheduling.k8s.io", "priorityclasses");
        let Some(class) = state.get(&classes, "", &class) else {
            return Err(ApiError::forbidden(&pods, name, &format!("no PriorityClass with name {class} was found")));
        };
        if let Some(spec) = map_mut(pod, &["spec"]) {
            spec.insert("priority".into(), class.get("value").cloned().unwrap_or(json!(0)));
            spec.insert("preemptionPolicy".into(), class.get("preemptionPolicy").cloned().unwrap_or(json!("PreemptLowerPriority")));
        }
    }
    let secrets = items(&found, &["imagePullSecrets"]).to_vec();
    if !secrets.is_empty()
        && let Some(spec) = map_mut(pod, &["spec"])
    {
        spec.entry("imagePullSecrets").or_insert(secrets.into());
    }
    let suffix = state.ids.suffix(5);
    prepare::admit_pod(pod, &suffix, mounts);
    Ok(())
}

/// What the registry of a kind sets on a new object.
fn begin(state: &mut State, group: &str, kind: &str, object: &mut Value, uid: &str) {
    match (group, kind) {
        ("", "Service") => addresses(state, object),
        ("batch", "Job") => own_labels(object, uid),
        ("", "PersistentVolumeClaim" | "PersistentVolume") => {
            let finalizer = if kind == "PersistentVolume" { "kubernetes.io/pv-protection" } else { "kubernetes.io/pvc-protection" };
            if let Some(metadata) = metadata_mut(object) {
                let list = metadata.entry("finalizers").or_insert_with(|| json!([]));
                if let Some(list) = list.as_array_mut().filter(|list| !list.contains(&finalizer.into())) {
                    list.push(finalizer.into());
                }
            }
        }
        ("apiextensions.k8s.io", "CustomResourceDefinition") => {
            let stored: Vec<Value> = items(object, &["spec", "versions"])
                .iter()
                .filter(|v| v.get("storage") == Some(&json!(true)))
                .filter_map(|v| v.get("name").cloned())
                .collect();
            object["status"] = json!({"conditions": null, "acceptedNames": {"plural": "", "kind": ""}, "storedVersions": stored});
        }
        _ => {}
    }
}

/// Addresses and node ports of a Service.
pub fn addresses(state: &mut State, service: &mut Value) {
    let kind = text(service, &["spec", "type"]).to_owned();
    if kind == "ExternalName" {
        return;
    }
    let services = GroupResource::new("", "services");
    let list: Vec<Value> = state.store.list(&services, Range::default()).map(|(_, s)| (*s.object).clone()).collect();
    let given = text(service, &["spec", "clusterIP"]).to_owned();
    let address = match given.as_str() {
        "" => {
            let used: Vec<&str> = list.iter().map(|s| text(s, &["spec", "clusterIP"])).collect();
            let mut address = String::new();
            for _ in 0..1000 {
                let n = 256 + state.ids.below((1 << 20) - 512);
                address = format!("10.{}.{}.{}", 96 + (n >> 16), (n >> 8) & 255, n & 255);
                if !used.contains(&address.as_str()) && n & 255 != 0 && n & 255 != 255 {
                    break;
                }
            }
            address
        }
        given => given.to_owned(),
    };
    let used: Vec<i64> = list.iter().flat_map(|s| items(s, &["spec", "ports"])).filter_map(|p| p.get("nodePort")?.as_i64()).collect();
    let Some(spec) = map_mut(service, &["spec"]) else { return };
    spec.insert("clusterIP".into(), address.clone().into());
    spec.insert("clusterIPs".into(), json!([address]));
    spec.entry("ipFamilies").or_insert(json!(["IPv4"]));
    spec.entry("ipFamilyPolicy").or_insert(json!("SingleStack"));
    if matches!(kind.as_str(), "NodePort" | "LoadBalancer") {
        for port in spec.get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten().filter_map(Value::as_object_mut) {
            if port.get("nodePort").is_none_or(|n| n == &json!(0)) {
                let mut number = 30000 + state.ids.below(2768) as i64;
                while used.contains(&number) {
                    number = 30000 + state.ids.below(2768) as i64;
                }
                port.insert("nodePort".into(), number.into());
            }
        }
    }
}

fn own_labels(job: &mut Value, uid: &str) {
    if job.pointer("/spec/manualSelector") == Some(&json!(true)) {
        return;
    }
    let name = text(job, &["metadata", "name"]).to_owned();
    if let Some(selector) = map_mut(job, &["spec", "selector", "matchLabels"]) {
        selector.insert("batch.kubernetes.io/controller-uid".into(), uid.into());
    }
    if let Some(labels) = map_mut(job, &["spec", "template", "metadata", "labels"]) {
        for key in ["batch.kubernetes.io/controller-uid", "controller-uid"] {
            labels.insert(key.into(), uid.into());
        }
        for key in ["batch.kubernetes.io/job-name", "job-name"] {
            labels.insert(key.into(), name.clone().into());
        }
    }
    let labels = job.pointer("/spec/template/metadata/labels").cloned();
    if let (Some(labels), Some(metadata)) = (labels, metadata_mut(job)) {
        metadata.entry("labels").or_insert(labels);
    }
}
