//! `/scale`: the number of replicas alone, of built-in workloads and of custom resources that declare one.

use std::sync::Arc;

use serde_json::{Value, json};

use super::super::apply::{Writer, apply, track_update};
use super::super::http::body;
use super::super::kinds::labels::LabelSelector;
use super::super::kinds::{at, metadata_mut, text};
use super::super::patch::{json_patch, merge_patch, strategic_patch};
use super::super::registry::Resource;
use super::super::schema::builtin;
use super::super::state::State;
use super::super::status::{ApiError, ApiResult, Cause};
use super::super::verbs::update::{check_version, commit, home};
use super::super::verbs::{Answer, Call, Served};

/// Where the numbers are.
struct Paths {
    spec: Vec<String>,
    status: Vec<String>,
    selector: Option<Vec<String>>,
}

fn steps(path: &str) -> Vec<String> {
    path.trim_start_matches('.').split('.').map(str::to_owned).collect()
}

fn paths(resource: &Resource) -> Paths {
    match resource.custom.as_ref().and_then(|c| c.scale.as_ref()) {
        Some(scale) => Paths {
            spec: steps(&scale.spec),
            status: steps(&scale.status),
            selector: (!scale.selector.is_empty()).then(|| steps(&scale.selector)),
        },
        None => Paths { spec: steps("spec.replicas"), status: steps("status.replicas"), selector: None },
    }
}

fn value_at<'a>(object: &'a Value, path: &[String]) -> Option<&'a Value> {
    path.iter().try_fold(object, |value, name| value.get(name))
}

fn set_at(object: &mut Value, path: &[String], value: Value) {
    let mut here = object;
    for name in path {
        if !here.is_object() {
            *here = json!({});
        }
        here = &mut here[name.as_str()];
    }
    *here = value;
}

fn take_at(object: &mut Value, path: &[String]) {
    let Some((last, parents)) = path.split_last() else { return };
    let parent = parents.iter().try_fold(object, |value, name| value.get_mut(name.as_str()));
    if let Some(members) = parent.and_then(Value::as_object_mut) {
        members.remove(last);
    }
}

/// The Scale of an object.
fn scale_of(resource: &Resource, object: &Value) -> ApiResult<Value> {
    let paths = paths(resource);
    let name = text(object, &["metadata", "name"]);
    let wanted = value_at(object, &paths.spec).and_then(Value::as_i64);
    if wanted.is_none() && resource.custom.is_some() && value_at(object, &paths.spec).is_none() {
        let path = format!(".{}", paths.spec.join("."));
        return Err(ApiError::internal(format!("the spec replicas field {path:?} does not exist")));
    }
    let mut scale = json!({"kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": {"name": name}, "spec": {}, "status": {}});
    for field in ["namespace", "uid", "resourceVersion", "creationTimestamp"] {
        if let Some(value) = at(object, &["metadata", field]) {
            scale["metadata"][field] = value.clone();
        }
    }
    if let Some(wanted) = wanted.filter(|n| *n != 0) {
        scale["spec"]["replicas"] = wanted.into();
    }
    scale["status"]["replicas"] = value_at(object, &paths.status).and_then(Value::as_i64).unwrap_or(0).into();
    let selector = match (&paths.selector, resource.kind.as_str()) {
        (Some(path), _) => value_at(object, path).and_then(Value::as_str).unwrap_or_default().to_owned(),
        (None, "ReplicationController") => LabelSelector::of_map(at(object, &["spec", "selector"]).unwrap_or(&Value::Null)).shown(),
        (None, _) => at(object, &["spec", "selector"]).and_then(LabelSelector::of_object).unwrap_or_default().shown(),
    };
    if !selector.is_empty() {
        scale["status"]["selector"] = selector.into();
    }
    Ok(scale)
}

/// Serves GET, PUT and PATCH.
///
/// # Errors
/// As Kubernetes gives them.
pub(super) fn serve(state: &mut State, call: &Call, resource: &Served) -> ApiResult<Answer> {
    let target = &call.target;
    let Some(old) = state.get(&resource.stored(), home(resource, &target.namespace), &target.name) else {
        return Err(ApiError::not_found(&resource.gr, &target.name));
    };
    if call.verb == "get" {
        return Ok(Answer::ok(scale_of(resource, &old)?));
    }
    let dry = call.query.dry_run()?;
    let kind = call.content_type.split(';').next().unwrap_or_default().trim().to_owned();
    if call.verb == "patch" && kind == "application/apply-patch+yaml" {
        return applied(state, call, resource, &old, dry);
    }
    let shown = scale_of(resource, &old)?;
    let node = builtin().kind("autoscaling", "v1", "Scale");
    let wanted = match (call.verb.as_str(), kind.as_str()) {
        ("update", _) => body::object(&call.content_type, &call.body, "Scale")?,
        (_, "application/json-patch+json") => json_patch(&shown, &call.body)?,
        (_, "application/merge-patch+json") => merge_patch(&shown, &call.body)?,
        (_, "application/strategic-merge-patch+json") => strategic_patch(&shown, &call.body, node)?,
        _ => return Err(super::super::verbs::patch::unsupported(&["application/json-patch+json", "application/merge-patch+json"])),
    };
    let given_kind = text(&wanted, &["kind"]);
    if !given_kind.is_empty() && given_kind != "Scale" {
        return Err(ApiError::bad_request(format!("expected input object type to be Scale, but {given_kind}")));
    }
    let named = text(&wanted, &["metadata", "resourceVersion"]) != text(&shown, &["metadata", "resourceVersion"]);
    if call.verb == "update" || named {
        check_version(resource, &old, &json!({"metadata": wanted.get("metadata")}), false)?;
    }
    let number = match at(&wanted, &["spec", "replicas"]) {
        None | Some(Value::Null) => 0,
        Some(value) => value.as_i64().ok_or_else(|| {
            let why = "json: cannot unmarshal into Go struct field ScaleSpec.spec.replicas of type int32";
            match call.verb.as_str() {
                "patch" => ApiError::invalid("", "", "", &[Cause::invalid("patch", &wanted.to_string().into(), why)]),
                _ => ApiError::bad_request(format!("Scale in version \"v1\" cannot be handled as a Scale: {why}")),
            }
        })?,
    };
    check(&target.name, number)?;
    let mut new = (*old).clone();
    set_at(&mut new, &paths(resource).spec, number.into());
    let (manager, api_version) = (call.manager(), resource.api_version());
    let writer = Writer { manager: &manager, api_version: &api_version, subresource: "scale", now: None, reset: &[&["f:status"]] };
    // The Scale has the entries that own its number; without any it is an object that nobody manages.
    let steps: Vec<String> = paths(resource).spec.iter().map(|step| format!("f:{step}")).collect();
    if super::super::apply::owns(&old, &steps) {
        // A Scale leaves a zero out: who writes one owns nothing, and whoever owned the number has lost it.
        let mut tracked = new.clone();
        if number == 0 {
            take_at(&mut tracked, &paths(resource).spec);
        }
        track_update(resource.stored_node(), Some(&old), &mut tracked, &writer);
        let managed = tracked.pointer("/metadata/managedFields").cloned();
        if let Some(metadata) = metadata_mut(&mut new) {
            match managed {
                Some(managed) => metadata.insert("managedFields".into(), managed),
                None => metadata.remove("managedFields"),
            };
        }
    }
    finish(state, call, resource, &old, new, dry)
}

fn check(name: &str, number: i64) -> ApiResult<()> {
    match number {
        ..0 => {
            let cause = Cause::invalid("spec.replicas", &number.into(), "must be greater than or equal to 0");
            Err(ApiError::invalid("autoscaling", "Scale", name, &[cause]))
        }
        _ => Ok(()),
    }
}

fn applied(state: &mut State, call: &Call, resource: &Served, old: &Arc<Value>, dry: bool) -> ApiResult<Answer> {
    let wishes = body::yaml(&call.body)?;
    let mut mapped = json!({"metadata": {"name": call.target.name}});
    if resource.namespaced {
        mapped["metadata"]["namespace"] = call.target.namespace.clone().into();
    }
    if let Some(number) = at(&wishes, &["spec", "replicas"]) {
        check(&call.target.name, number.as_i64().unwrap_or(0))?;
        set_at(&mut mapped, &paths(resource).spec, number.clone());
    }
    let (manager, api_version) = (call.manager(), resource.api_version());
    let writer = Writer { manager: &manager, api_version: &api_version, subresource: "scale", now: None, reset: &[&["f:status"]] };
    let applied = apply(resource.stored_node(), old, &mapped, &writer, call.query.flag("force"));
    let new = applied.map_err(|error| in_its_own_version(error, &api_version))?;
    finish(state, call, resource, old, new, dry)
}

/// A conflict on a Scale tells the other writers as such of autoscaling/v1.
fn in_its_own_version(mut error: ApiError, api_version: &str) -> ApiError {
    let (from, to) = (format!(" using {api_version}"), " using autoscaling/v1");
    error.message = error.message.replace(&from, to);
    error.details = error.details.and_then(|details| serde_json::from_str(&details.to_string().replace(&from, to)).ok());
    error
}

fn finish(state: &mut State, call: &Call, resource: &Served, old: &Arc<Value>, mut new: Value, dry: bool) -> ApiResult<Answer> {
    if let Some(metadata) = metadata_mut(&mut new) {
        metadata.insert("resourceVersion".into(), text(old, &["metadata", "resourceVersion"]).into());
    }
    let stored = commit(state, &call.user, resource, old, new, "scale", dry)?;
    Ok(Answer::ok(scale_of(resource, &stored)?))
}
