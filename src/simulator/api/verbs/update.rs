//! Update, and the last part of every change of an object.

use std::sync::Arc;

use serde_json::Value;

use super::super::apply::{Writer, same_but_times, track_update};
use super::super::auth;
use super::super::http::body;
use super::super::kinds::{is_created_by_update, items, metadata_mut, number, prepare, takes_blind_updates, text, validate};
use super::super::registry::Resource;
use super::super::state::State;
use super::super::status::{ApiError, ApiResult, Cause};
use super::create::{add, at_home};
use super::decode::{Strictness, decode, judge};
use super::{Answer, Call, Served, outgoing};

/// Serves a PUT to an object or its `/status`.
///
/// # Errors
/// As Kubernetes gives them.
pub fn update(state: &mut State, call: &Call, resource: &Served) -> ApiResult<Answer> {
    let strictness = Strictness::parse(call.query.get("fieldValidation"), "UpdateOptions")?;
    let dry = call.query.dry_run()?;
    let object = body::object(&call.content_type, &call.body, &resource.kind)?;
    let decoded = decode(resource, object, Some(&call.body))?;
    let warnings = judge(resource, strictness, decoded.complaints)?;
    let mut new = decoded.object;
    let target = &call.target;
    same_name(&target.name, &mut new)?;
    at_home(resource, &target.namespace, &mut new)?;
    let (group, _) = resource.stored_version();
    let Some(old) = state.get(&resource.stored(), home(resource, &target.namespace), &target.name) else {
        let creates = target.subresource.is_empty() && is_created_by_update(group, &resource.kind);
        if !creates || !text(&new, &["metadata", "uid"]).is_empty() {
            return Err(ApiError::not_found(&resource.gr, &target.name));
        }
        track(state, call, resource, None, &mut new);
        if let Some(metadata) = metadata_mut(&mut new) {
            metadata.remove("resourceVersion");
        }
        let stored = add(state, &call.user, resource, new, dry)?;
        return Ok(Answer { code: 201, object: outgoing(resource, &stored), warnings });
    };
    check_version(resource, &old, &new, true)?;
    track(state, call, resource, Some(&old), &mut new);
    let stored = commit(state, &call.user, resource, &old, new, &target.subresource, dry)?;
    Ok(Answer { code: 200, object: outgoing(resource, &stored), warnings })
}

/// The namespace under which objects of a resource are stored.
pub fn home<'a>(resource: &Resource, namespace: &'a str) -> &'a str {
    if resource.namespaced { namespace } else { "" }
}

fn same_name(name: &str, object: &mut Value) -> ApiResult<()> {
    let given = text(object, &["metadata", "name"]);
    if given.is_empty() {
        return Err(ApiError::bad_request(format!(
            "the name of the object ({given} based on URL) was undeterminable: name must be provided"
        )));
    }
    if given != name {
        return Err(ApiError::bad_request(format!("the name of the object ({given}) does not match the name on the URL ({name})")));
    }
    Ok(())
}

/// Records who changed what, as a plain write through the door of the request.
pub fn track(state: &State, call: &Call, resource: &Resource, old: Option<&Value>, new: &mut Value) {
    let (manager, stamp, api_version) = (call.manager(), state.stamp(), resource.api_version());
    let door = call.target.subresource.as_str();
    let reset = match door {
        "status" => prepare::reset_by_status(&resource.kind, resource.custom.is_some()),
        _ => prepare::reset_by_update(resource.has_status()),
    };
    let writer = Writer { manager: &manager, api_version: &api_version, subresource: door, now: Some(&stamp), reset };
    track_update(resource.stored_node(), old, new, &writer);
}

/// The key under which the real server stores an object, as its errors show it.
fn key(resource: &Resource, object: &Value) -> String {
    let group = if resource.custom.is_some() { format!("/{}", resource.gr.group) } else { String::new() };
    let place = super::super::state::place(object);
    let home = if place.0.is_empty() { String::new() } else { format!("/{}", place.0) };
    format!("/registry{group}/{}{home}/{}", resource.gr.resource, place.1)
}

/// Checks the version and uid that a write expects. `needs` is whether a write must name a version where its kind wants that.
///
/// # Errors
/// 409 when it is another, 422 when it must be named and is not.
pub fn check_version(resource: &Resource, old: &Value, new: &Value, needs: bool) -> ApiResult<()> {
    let (group, _) = resource.stored_version();
    let (name, given) = (text(old, &["metadata", "name"]), text(new, &["metadata", "resourceVersion"]));
    let uid = text(new, &["metadata", "uid"]);
    if !uid.is_empty() && uid != text(old, &["metadata", "uid"]) {
        let why = format!(
            "StorageError: invalid object, Code: 4, Key: {}, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: {uid}, UID in object meta: {}",
            key(resource, old),
            text(old, &["metadata", "uid"])
        );
        return Err(ApiError::conflict(&resource.gr, name, &why));
    }
    if given.is_empty() || given == "0" {
        if needs && !takes_blind_updates(group, &resource.kind, resource.custom.is_some()) {
            let shown = Value::from(0);
            let cause = Cause::invalid("metadata.resourceVersion", &shown, "must be specified for an update");
            return Err(ApiError::invalid(&resource.gr.group, &resource.gr.resource, name, &[cause]));
        }
        return Ok(());
    }
    if given != text(old, &["metadata", "resourceVersion"]) {
        let why = "the object has been modified; please apply your changes to the latest version and try again";
        return Err(ApiError::conflict(&resource.gr, name, why));
    }
    Ok(())
}

/// Brings the change of an object to its end: what its door may not change is put back, rules are checked, it is written, or
/// taken away when it was only waiting for its last finalizer.
///
/// # Errors
/// 422 when a rule is broken, 403 when it would give more than its writer has.
pub fn commit(
    state: &mut State,
    user: &auth::User,
    resource: &Served,
    old: &Arc<Value>,
    mut new: Value,
    door: &str,
    dry: bool,
) -> ApiResult<Value> {
    let (group, _) = resource.stored_version();
    let (group, kind, custom) = (group.to_owned(), resource.kind.clone(), resource.custom.is_some());
    if let Some(metadata) = metadata_mut(&mut new) {
        metadata.insert("resourceVersion".into(), text(old, &["metadata", "resourceVersion"]).into());
    }
    prepare::update(&group, &kind, old, &mut new, door, resource.has_status(), custom);
    if (group.as_str(), kind.as_str()) == ("", "Service") && door.is_empty() {
        super::create::addresses(state, &mut new);
    }
    super::decode::complete(resource, &mut new);
    let name = text(old, &["metadata", "name"]).to_owned();
    let mut causes = validate::object(&group, &kind, &new, resource.namespaced);
    if door == "status" {
        causes.clear();
    }
    causes.extend(validate::update(&group, &kind, old, &new));
    if !causes.is_empty() {
        return Err(ApiError::invalid(&resource.gr.group, &kind, &name, &causes));
    }
    if old.get("rules") != new.get("rules") || old.get("roleRef") != new.get("roleRef") {
        auth::refuse_escalation(&state.store, user, &resource.gr, &new)?;
    }
    let stored = resource.stored();
    if ends(&kind, &group, &new) {
        return Ok(if dry { new } else { (*state.take(&stored, new)).clone() });
    }
    if same_but_times(old, &new) {
        return Ok((**old).clone());
    }
    if dry {
        return Ok(new);
    }
    Ok((*state.put(&stored, new)).clone())
}

/// Whether an object that is being deleted has nothing left to wait for.
pub fn ends(kind: &str, group: &str, object: &Value) -> bool {
    let waits = !items(object, &["metadata", "finalizers"]).is_empty()
        || number(object, &["metadata", "deletionGracePeriodSeconds"]).unwrap_or(0) > 0
        || ((group, kind) == ("", "Namespace") && !items(object, &["spec", "finalizers"]).is_empty());
    object.pointer("/metadata/deletionTimestamp").is_some() && !waits
}
