//! The doors beside the object itself: scale, eviction, binding, token, finalize.
//!
//! Owns those that are answered from the state. Log, proxy and port-forward go to a backend: see [`backends`].

pub mod backends;
mod eviction;
pub mod forward;
mod scale;

use serde_json::{Value, json};

use super::auth::tokens::Claim;
use super::http::body;
use super::kinds::{items, map_mut, number, text};
use super::registry::Sub;
use super::state::State;
use super::status::{ApiError, ApiResult};
use super::verbs::update::home;
use super::verbs::{Answer, Call, Served, decode, list, outgoing, patch, update};

/// Serves a subresource.
///
/// # Errors
/// As Kubernetes gives them; 405 for a verb that it does not have.
pub fn serve(state: &mut State, call: &Call, resource: &Served, sub: &Sub) -> ApiResult<Answer> {
    if !sub.verbs.contains(&call.verb) {
        return Err(not_allowed());
    }
    match (call.target.subresource.as_str(), call.verb.as_str()) {
        ("scale", _) => scale::serve(state, call, resource),
        ("eviction", _) => eviction::evict(state, call, resource),
        ("binding", _) => bind(state, call, resource),
        ("token", _) => token(state, call, resource),
        ("finalize", _) => finalize(state, call, resource),
        (_, "get") => list::get(state, call, resource),
        (_, "update") => update::update(state, call, resource),
        (_, "patch") => patch::patch(state, call, resource),
        _ => Err(not_allowed()),
    }
}

/// The 405 of a verb that a resource does not have.
pub fn not_allowed() -> ApiError {
    ApiError::new(405, "MethodNotAllowed", "the server does not allow this method on the requested resource").with_details(json!({}))
}

fn bind(state: &mut State, call: &Call, resource: &Served) -> ApiResult<Answer> {
    let binding = body::object(&call.content_type, &call.body, "Binding")?;
    let (namespace, name) = (&call.target.namespace, &call.target.name);
    let node = text(&binding, &["target", "name"]).to_owned();
    let Some(old) = state.get(&resource.stored(), namespace, name) else {
        return Err(ApiError::not_found(&resource.gr, name));
    };
    let there = text(&old, &["spec", "nodeName"]);
    if !there.is_empty() {
        let why = format!("pod {name} is already assigned to node {there:?}");
        return Err(ApiError::conflict(&super::status::GroupResource::new("", "pods/binding"), name, &why));
    }
    let mut pod = (*old).clone();
    if let Some(spec) = map_mut(&mut pod, &["spec"]) {
        spec.insert("nodeName".into(), node.into());
    }
    let stamp = state.stamp();
    let scheduled = json!({"type": "PodScheduled", "status": "True", "lastProbeTime": null, "lastTransitionTime": stamp});
    if let Some(status) = map_mut(&mut pod, &["status"]) {
        let mut conditions: Vec<Value> = status.get("conditions").and_then(Value::as_array).cloned().unwrap_or_default();
        conditions.retain(|c| text(c, &["type"]) != "PodScheduled");
        conditions.push(scheduled);
        status.insert("conditions".into(), conditions.into());
    }
    if !call.query.dry_run()? {
        state.put(&resource.stored(), pod);
    }
    Ok(Answer {
        code: 201,
        object: json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}),
        warnings: Vec::new(),
    })
}

fn token(state: &mut State, call: &Call, resource: &Served) -> ApiResult<Answer> {
    let mut request = body::object(&call.content_type, &call.body, "TokenRequest")?;
    let (namespace, name) = (&call.target.namespace, &call.target.name);
    let Some(account) = state.get(&resource.stored(), namespace, name) else {
        return Err(ApiError::not_found(&resource.gr, name));
    };
    let seconds = number(&request, &["spec", "expirationSeconds"]).unwrap_or(3600);
    if seconds < 600 {
        let cause =
            super::status::Cause::invalid("spec.expirationSeconds", &seconds.into(), "may not specify a duration less than 10 minutes");
        return Err(ApiError::invalid("authentication.k8s.io", "TokenRequest", "", &[cause]));
    }
    let bound = text(&request, &["spec", "boundObjectRef", "name"]).to_owned();
    let of = |field: &str| text(&request, &["spec", "boundObjectRef", field]).to_owned();
    let claim = Claim {
        namespace,
        name,
        uid: text(&account, &["metadata", "uid"]),
        audiences: items(&request, &["spec", "audiences"]).iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        bound: (!bound.is_empty()).then(|| (of("kind"), bound.clone(), of("uid"))),
        id: state.ids.uid(),
    };
    let token = state.tokens.issue(&claim, state.now, seconds);
    let expires = state.now.checked_add(jiff::SignedDuration::from_secs(seconds)).unwrap_or(state.now);
    let audiences = match claim.audiences.is_empty() {
        true => vec![super::auth::tokens::AUDIENCE.to_owned()],
        false => claim.audiences.clone(),
    };
    request["kind"] = "TokenRequest".into();
    request["apiVersion"] = "authentication.k8s.io/v1".into();
    request["metadata"] = json!({"name": name, "namespace": namespace, "creationTimestamp": state.stamp()});
    request["spec"]["audiences"] = json!(audiences);
    request["spec"]["expirationSeconds"] = seconds.into();
    if bound.is_empty() {
        request["spec"]["boundObjectRef"] = Value::Null;
    }
    request["status"] = json!({"token": token, "expirationTimestamp": crate::simulator::clock::seconds(expires)});
    Ok(Answer { code: 201, object: request, warnings: Vec::new() })
}

fn finalize(state: &mut State, call: &Call, resource: &Served) -> ApiResult<Answer> {
    let object = body::object(&call.content_type, &call.body, &resource.kind)?;
    let decoded = decode::decode(resource, object, None)?;
    let name = &call.target.name;
    let Some(old) = state.get(&resource.stored(), home(resource, ""), name) else {
        return Err(ApiError::not_found(&resource.gr, name));
    };
    update::check_version(resource, &old, &decoded.object, false)?;
    let mut new = (*old).clone();
    new["spec"] = decoded.object.get("spec").cloned().unwrap_or_else(|| json!({}));
    let stored = match update::ends(&resource.kind, "", &new) {
        true => state.take(&resource.stored(), new),
        false => state.put(&resource.stored(), new),
    };
    Ok(Answer::ok(outgoing(resource, &stored)))
}
