//! Delete, of one object and of a collection.

use std::sync::Arc;

use jiff::SignedDuration;
use serde_json::{Value, json};

use super::super::http::body;
use super::super::kinds::{default_propagation, is_returned_when_deleted, items, metadata_mut, number, text};
use super::super::state::State;
use super::super::status::{ApiError, ApiResult, Cause, GroupResource};
use super::update::home;
use super::{Answer, Call, Served, outgoing};
use crate::simulator::clock::seconds;

/// How to delete.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Seconds that a pod gets.
    pub grace: Option<i64>,
    /// `Background`, `Foreground`, `Orphan`, or empty for the kind's own.
    pub propagation: String,
    /// The uid that is expected.
    pub uid: String,
    /// The version that is expected.
    pub version: String,
    /// Nothing is stored.
    pub dry: bool,
}

/// Reads the options of a body or the query.
///
/// # Errors
/// 400 and 422 for what are none.
pub fn options(call: &Call) -> ApiResult<Options> {
    let mut options = Options { dry: call.query.dry_run()?, ..Options::default() };
    if call.body.is_empty() {
        options.grace = call.query.number("gracePeriodSeconds")?;
        call.query.get("propagationPolicy").clone_into(&mut options.propagation);
        if call.query.get("orphanDependents") == "true" {
            options.propagation = "Orphan".into();
        }
    } else {
        let body = body::object(&call.content_type, &call.body, "DeleteOptions")?;
        let kind = text(&body, &["kind"]);
        if !kind.is_empty() && kind != "DeleteOptions" {
            let version = text(&body, &["apiVersion"]);
            return Err(ApiError::bad_request(format!(
                "no kind {kind:?} is registered for version {version:?} in scheme \"pkg/runtime/scheme.go:111\""
            )));
        }
        options.grace = number(&body, &["gracePeriodSeconds"]);
        text(&body, &["propagationPolicy"]).clone_into(&mut options.propagation);
        match body.get("orphanDependents").and_then(Value::as_bool) {
            Some(true) => options.propagation = "Orphan".into(),
            Some(false) if options.propagation.is_empty() => options.propagation = "Background".into(),
            _ => {}
        }
        text(&body, &["preconditions", "uid"]).clone_into(&mut options.uid);
        text(&body, &["preconditions", "resourceVersion"]).clone_into(&mut options.version);
        options.dry |= items(&body, &["dryRun"]).iter().any(|v| v == "All");
    }
    if !["", "Background", "Foreground", "Orphan"].contains(&options.propagation.as_str()) {
        let known = ["Foreground", "Background", "Orphan", "nil"];
        let cause = Cause::unsupported("propagationPolicy", &options.propagation.clone().into(), &known);
        return Err(ApiError::invalid("meta.k8s.io", "DeleteOptions", "", &[cause]));
    }
    if options.grace.is_some_and(|g| g < 0) {
        options.grace = Some(1);
    }
    Ok(options)
}

/// What became of the object.
pub struct Deleted {
    /// It, as it was at its end or as it waits.
    pub object: Arc<Value>,
    /// It is gone.
    pub gone: bool,
}

/// Serves a DELETE of one object.
///
/// # Errors
/// As Kubernetes gives them.
pub fn delete(state: &mut State, call: &Call, resource: &Served) -> ApiResult<Answer> {
    let options = options(call)?;
    let (group, _) = resource.stored_version();
    let mut warnings = Vec::new();
    if resource.kind == "Job" && group == "batch" && options.propagation.is_empty() {
        warnings.push(
            "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or set propagationPolicy=Orphan to suppress this warning".to_owned(),
        );
    }
    let deleted = one(state, resource, home(resource, &call.target.namespace), &call.target.name, &options)?;
    let shown = match deleted.gone && !is_returned_when_deleted(group, &resource.kind) {
        true => success(&resource.gr, &deleted.object),
        false => outgoing(resource, &deleted.object),
    };
    Ok(Answer { code: 200, object: shown, warnings })
}

fn success(gr: &GroupResource, object: &Value) -> Value {
    let mut details = json!({"name": text(object, &["metadata", "name"]), "kind": gr.resource, "uid": text(object, &["metadata", "uid"])});
    if !gr.group.is_empty() {
        details["group"] = gr.group.clone().into();
    }
    json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details})
}

/// Deletes one object, or marks it when something is waited for.
///
/// # Errors
/// 404, and 409 when it is not the expected one.
pub fn one(state: &mut State, resource: &Served, namespace: &str, name: &str, options: &Options) -> ApiResult<Deleted> {
    let stored = resource.stored();
    let Some(old) = state.get(&stored, namespace, name) else {
        return Err(ApiError::not_found(&resource.gr, name));
    };
    let (group, _) = resource.stored_version();
    let (group, kind) = (group.to_owned(), resource.kind.clone());
    expected(resource, &old, options)?;
    let mut object = (*old).clone();
    let marked = object.pointer("/metadata/deletionTimestamp").is_some();
    let grace = grace(&group, &kind, &object, options);
    let given = number(&object, &["metadata", "deletionGracePeriodSeconds"]).unwrap_or(0);
    if marked && grace >= given && given > 0 {
        return Ok(Deleted { object: old, gone: false });
    }
    propagate(&group, &kind, &mut object, options);
    let waits = !items(&object, &["metadata", "finalizers"]).is_empty()
        || ((group.as_str(), kind.as_str()) == ("", "Namespace") && !items(&object, &["spec", "finalizers"]).is_empty());
    if !waits && grace == 0 {
        if let Some(metadata) = metadata_mut(&mut object).filter(|_| marked) {
            metadata.insert("deletionGracePeriodSeconds".into(), 0.into());
        }
        let object = if options.dry { old } else { state.take(&stored, object) };
        return Ok(Deleted { object, gone: true });
    }
    if !marked || grace < given {
        mark(state, &mut object, grace, marked);
    }
    if (group.as_str(), kind.as_str()) == ("", "Namespace") {
        object["status"]["phase"] = "Terminating".into();
        if let Some(metadata) = metadata_mut(&mut object) {
            metadata.remove("deletionGracePeriodSeconds");
        }
    }
    if object == *old {
        return Ok(Deleted { object: old, gone: false });
    }
    let object = if options.dry { Arc::new(object) } else { state.put(&stored, object) };
    Ok(Deleted { object, gone: false })
}

fn expected(resource: &Served, old: &Value, options: &Options) -> ApiResult<()> {
    let name = text(old, &["metadata", "name"]);
    let kind = GroupResource::new(resource.gr.group.clone(), resource.kind.clone());
    let (uid, version) = (text(old, &["metadata", "uid"]), text(old, &["metadata", "resourceVersion"]));
    if !options.uid.is_empty() && options.uid != uid {
        let why = format!(
            "the UID in the precondition ({}) does not match the UID in record ({uid}). The object might have been deleted and then recreated",
            options.uid
        );
        return Err(ApiError::conflict(&kind, name, &why));
    }
    if !options.version.is_empty() && options.version != version {
        let why = format!(
            "the ResourceVersion in the precondition ({}) does not match the ResourceVersion in record ({version}). The object might have been modified",
            options.version
        );
        return Err(ApiError::conflict(&kind, name, &why));
    }
    Ok(())
}

/// The seconds that an object gets: only pods get any, and of those only such as run somewhere.
fn grace(group: &str, kind: &str, object: &Value, options: &Options) -> i64 {
    if (group, kind) != ("", "Pod") {
        return 0;
    }
    let idle = text(object, &["spec", "nodeName"]).is_empty() || matches!(text(object, &["status", "phase"]), "Failed" | "Succeeded");
    match idle {
        true => 0,
        false => options.grace.or_else(|| number(object, &["spec", "terminationGracePeriodSeconds"])).unwrap_or(30),
    }
}

/// Sets the finalizer that makes the garbage collector care for dependents first.
fn propagate(group: &str, kind: &str, object: &mut Value, options: &Options) {
    let finalizers = items(object, &["metadata", "finalizers"]).to_vec();
    let has = |name: &str| finalizers.iter().any(|f| f == name);
    let wanted = match options.propagation.as_str() {
        "" if has("orphan") => "Orphan",
        "" if has("foregroundDeletion") => "Foreground",
        "" => default_propagation(group, kind),
        given => given,
    };
    let mut kept: Vec<Value> = finalizers.iter().filter(|f| *f != "orphan" && *f != "foregroundDeletion").cloned().collect();
    match wanted {
        "Orphan" => kept.push("orphan".into()),
        "Foreground" => kept.push("foregroundDeletion".into()),
        _ => {}
    }
    if let Some(metadata) = metadata_mut(object) {
        match kept.is_empty() {
            true => metadata.remove("finalizers"),
            false => metadata.insert("finalizers".into(), kept.into()),
        };
    }
}

fn mark(state: &State, object: &mut Value, grace: i64, marked: bool) {
    let at = state.now.checked_add(SignedDuration::from_secs(grace)).unwrap_or(state.now);
    let generation = number(object, &["metadata", "generation"]).unwrap_or(0);
    if let Some(metadata) = metadata_mut(object) {
        metadata.insert("deletionTimestamp".into(), seconds(at).into());
        metadata.insert("deletionGracePeriodSeconds".into(), grace.into());
        if generation > 0 && !marked {
            metadata.insert("generation".into(), (generation + 1).into());
        }
    }
}

/// Serves a DELETE of a collection.
///
/// # Errors
/// As Kubernetes gives them.
pub fn collection(state: &mut State, call: &Call, resource: &Served) -> ApiResult<Answer> {
    let options = options(call)?;
    let chosen = super::list::select(state, call, resource)?;
    let mut gone = Vec::new();
    for object in chosen {
        let (namespace, name) = super::super::state::place(&object);
        match one(state, resource, &namespace, &name, &options) {
            Ok(_) => gone.push(outgoing(resource, &object)),
            Err(error) if error.code == 404 => {}
            Err(error) => return Err(error),
        }
    }
    let list = json!({"kind": resource.list_kind, "apiVersion": resource.api_version(),
        "metadata": {"resourceVersion": state.store.revision().to_string()}, "items": gone});
    Ok(Answer::ok(list))
}
