//! Patch, in all four kinds.

use serde_json::Value;

use super::super::apply::{Writer, apply, untyped};
use super::super::http::body;
use super::super::kinds::{prepare, text};
use super::super::patch::{json_patch, merge_patch, strategic_patch};
use super::super::state::State;
use super::super::status::{ApiError, ApiResult, Cause};
use super::create::{add, at_home};
use super::decode::{Strictness, check_kind, complete, decode};
use super::update::{check_version, commit, home, track};
use super::{Answer, Call, Served, incoming, outgoing};

/// Serves a PATCH to an object or its `/status`.
///
/// # Errors
/// As Kubernetes gives them.
pub fn patch(state: &mut State, call: &Call, resource: &Served) -> ApiResult<Answer> {
    let kind = call.content_type.split(';').next().unwrap_or_default().trim();
    let strictness = Strictness::parse(call.query.get("fieldValidation"), "PatchOptions")?;
    let dry = call.query.dry_run()?;
    match kind {
        "application/apply-patch+yaml" | "application/apply-patch+cbor" => return applied(state, call, resource, strictness, dry),
        "application/strategic-merge-patch+json" if resource.custom.is_some() => {
            return Err(unsupported(&["application/json-patch+json", "application/merge-patch+json", "application/apply-patch+yaml"]));
        }
        "application/json-patch+json" | "application/merge-patch+json" | "application/strategic-merge-patch+json" => {}
        _ => return Err(ApiError::new(415, "UnsupportedMediaType", "415: Unsupported Media Type").with_details(serde_json::json!({}))),
    }
    if call.query.flag("force") {
        let cause = Cause::forbidden("force", "may not be specified for non-apply patch");
        return Err(ApiError::invalid("meta.k8s.io", "PatchOptions", "", &[cause]));
    }
    let target = &call.target;
    let Some(old) = state.get(&resource.stored(), home(resource, &target.namespace), &target.name) else {
        return Err(ApiError::not_found(&resource.gr, &target.name));
    };
    let shown = outgoing(resource, &old);
    let patched = match kind {
        "application/json-patch+json" => json_patch(&shown, &call.body)?,
        "application/merge-patch+json" => merge_patch(&shown, &call.body)?,
        _ => strategic_patch(&shown, &call.body, resource.node())?,
    };
    let named = text(&patched, &["metadata", "resourceVersion"]) != text(&shown, &["metadata", "resourceVersion"]);
    let decoded = decode(resource, patched.clone(), None).map_err(|error| not_that(&patched, &error.message))?;
    let mut complaints = decoded.complaints;
    if kind != "application/json-patch+json" {
        complaints.extend(super::super::schema::duplicate_fields(&call.body).iter().map(|field| format!("duplicate field {field:?}")));
    }
    let warnings = match strictness {
        Strictness::Ignore => Vec::new(),
        Strictness::Strict if !complaints.is_empty() => {
            let why = format!("strict decoding error: {}", complaints.join(", "));
            return Err(match (kind, serde_json::from_slice::<Value>(&call.body)) {
                ("application/strategic-merge-patch+json", Ok(sent)) => {
                    ApiError::invalid("", "", "", &[Cause::invalid("patch", &as_go(&sent).into(), &why)])
                }
                _ => not_that(&patched, &why),
            });
        }
        _ => complaints,
    };
    let mut new = decoded.object;
    if text(&new, &["metadata", "name"]) != target.name {
        let given = text(&new, &["metadata", "name"]);
        let why = format!("the name of the object ({given}) does not match the name on the URL ({})", target.name);
        return Err(ApiError::bad_request(why));
    }
    at_home(resource, &target.namespace, &mut new)?;
    if named {
        check_version(resource, &old, &new, false)?;
    }
    track(state, call, resource, Some(&old), &mut new);
    let stored = commit(state, &call.user, resource, &old, new, &target.subresource, dry)?;
    Ok(Answer { code: 200, object: outgoing(resource, &stored), warnings })
}

/// The 415 for a kind of patch that is not taken.
pub fn unsupported(known: &[&str]) -> ApiError {
    ApiError::unsupported_media_type(format!(
        "the body of the request was in an unknown format - accepted media types include: {}",
        known.join(", ")
    ))
}

/// A value as Go prints it.
fn as_go(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(items) => format!("[{}]", items.iter().map(as_go).collect::<Vec<_>>().join(" ")),
        Value::Object(members) => {
            format!("map[{}]", members.iter().map(|(name, v)| format!("{name}:{}", as_go(v))).collect::<Vec<_>>().join(" "))
        }
        other => other.to_string(),
    }
}

fn not_that(patched: &Value, why: &str) -> ApiError {
    let shown = Value::from(patched.to_string());
    ApiError::invalid("", "", "", &[Cause::invalid("patch", &shown, why)])
}

fn applied(state: &mut State, call: &Call, resource: &Served, strictness: Strictness, dry: bool) -> ApiResult<Answer> {
    if call.query.get("fieldManager").is_empty() {
        let cause = Cause::required("fieldManager", "is required for apply patch");
        return Err(ApiError::invalid("meta.k8s.io", "PatchOptions", "", &[cause]));
    }
    let mut wishes = body::yaml(&call.body).map_err(|error| ApiError::bad_request(format!("error decoding YAML: {}", error.message)))?;
    if !wishes.is_object() {
        return Err(ApiError::bad_request("error decoding YAML: json: cannot unmarshal into Go value of type map[string]interface {}"));
    }
    if text(&wishes, &["kind"]).is_empty() || text(&wishes, &["apiVersion"]).is_empty() {
        let which = if text(&wishes, &["kind"]).is_empty() { "Kind" } else { "apiVersion" };
        return Err(ApiError::bad_request(format!("error decoding YAML: Object '{which}' is missing in '{wishes}'")));
    }
    check_kind(resource, &mut wishes)?;
    if wishes.pointer("/metadata/managedFields").is_some_and(|m| !m.is_null()) {
        return Err(ApiError::bad_request("metadata.managedFields must be nil"));
    }
    let target = &call.target;
    let given = text(&wishes, &["metadata", "name"]);
    if !given.is_empty() && given != target.name {
        let why = format!("the name of the object ({given}) does not match the name on the URL ({})", target.name);
        return Err(ApiError::bad_request(why));
    }
    if let Some(metadata) = super::super::kinds::metadata_mut(&mut wishes) {
        metadata.insert("name".into(), target.name.clone().into());
    }
    at_home(resource, &target.namespace, &mut wishes)?;
    // Unknown fields of the wishes are told as for any object; the wishes themselves stay as sent.
    let decoded = decode(resource, wishes.clone(), None)?;
    if let Some(field) = decoded.complaints.iter().find_map(|c| c.strip_prefix("unknown field \"")?.strip_suffix('"')) {
        let why = format!(".{field}: field not declared in schema");
        return Err(untyped(&target.name, &resource.api_version(), &resource.kind, &why));
    }
    let warnings = super::decode::judge(resource, strictness, decoded.complaints)?;
    let wishes = incoming(resource, wishes);
    let manager = call.manager();
    let (stamp, api_version) = (state.stamp(), resource.api_version());
    let door = target.subresource.as_str();
    let writer = Writer {
        manager: &manager,
        api_version: &api_version,
        subresource: door,
        now: Some(&stamp),
        reset: match door {
            "status" => prepare::reset_by_status(&resource.kind, resource.custom.is_some()),
            _ => prepare::reset_by_update(resource.has_status()),
        },
    };
    let force = call.query.flag("force");
    let found = state.get(&resource.stored(), home(resource, &target.namespace), &target.name);
    let Some(old) = found else {
        let expects = !text(&wishes, &["metadata", "uid"]).is_empty() || !text(&wishes, &["metadata", "resourceVersion"]).is_empty();
        if !door.is_empty() || expects {
            return Err(ApiError::not_found(&resource.gr, &target.name));
        }
        let fresh = serde_json::json!({"metadata": {"name": target.name}});
        let mut made = apply(resource.stored_node(), &fresh, &wishes, &writer, force)?;
        complete(resource, &mut made);
        let stored = add(state, &call.user, resource, made, dry)?;
        return Ok(Answer { code: 201, object: outgoing(resource, &stored), warnings });
    };
    check_version(resource, &old, &wishes, false)?;
    let mut new = apply(resource.stored_node(), &old, &wishes, &writer, force)?;
    complete(resource, &mut new);
    let stored = commit(state, &call.user, resource, &old, new, door, dry)?;
    Ok(Answer { code: 200, object: outgoing(resource, &stored), warnings })
}
