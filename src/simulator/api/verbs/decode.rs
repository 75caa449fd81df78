//! From a body to an object in the form in which it is stored: types checked, unknown fields told, defaults filled in.

use serde_json::Value;

use super::super::apply::metadata_node;
use super::super::http::body::unrecognized;
use super::super::kinds::{defaults, map_mut, prepare, text};
use super::super::registry::Resource;
use super::super::schema::{builtin, duplicate_fields, normalise};
use super::super::status::{ApiError, ApiResult, Cause};
use super::incoming;

/// What to do with fields that a kind does not have (`fieldValidation`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Strictness {
    /// Nothing.
    Ignore,
    /// Tell in a header.
    Warn,
    /// Refuse.
    Strict,
}

impl Strictness {
    /// Reads the option.
    ///
    /// # Errors
    /// 422 for another word.
    pub fn parse(option: &str, kind: &str) -> ApiResult<Self> {
        match option {
            "" | "Warn" => Ok(Self::Warn),
            "Ignore" => Ok(Self::Ignore),
            "Strict" => Ok(Self::Strict),
            other => {
                let cause = Cause::unsupported("fieldValidation", &other.into(), &["", "Ignore", "Strict", "Warn"]);
                Err(ApiError::invalid("meta.k8s.io", kind, "", &[cause]))
            }
        }
    }
}

/// What strict decoding has to say.
pub struct Decoded {
    /// The object as it is stored, before any rule.
    pub object: Value,
    /// `unknown field "spec.foo"`.
    pub complaints: Vec<String>,
}

/// Checks apiVersion and kind of an object against the resource that it was sent to.
///
/// # Errors
/// 400 in Kubernetes' words.
pub fn check_kind(resource: &Resource, object: &mut Value) -> ApiResult<()> {
    let (given_version, given_kind) = (text(object, &["apiVersion"]).to_owned(), text(object, &["kind"]).to_owned());
    let api_version = resource.api_version();
    if resource.custom.is_some() && given_kind.is_empty() {
        let text = object.to_string();
        return Err(unrecognized(&resource.kind, &format!("Object 'Kind' is missing in '{text}'"), text.as_bytes()));
    }
    let (group, version) = given_version.split_once('/').unwrap_or(("", &given_version));
    if resource.custom.is_none()
        && !given_version.is_empty()
        && !given_kind.is_empty()
        && builtin().kind(group, version, &given_kind).is_none()
    {
        let (kind, version) = (&resource.kind, &resource.version);
        return Err(ApiError::bad_request(format!(
            "{kind} in version {version:?} cannot be handled as a {kind}: no kind {given_kind:?} is registered for version {given_version:?} in scheme \"pkg/runtime/scheme.go:111\""
        )));
    }
    if !given_version.is_empty() && !given_kind.is_empty() && given_version != api_version {
        return Err(ApiError::bad_request(format!(
            "the API version in the data ({given_version}) does not match the expected API version ({api_version})"
        )));
    }
    if resource.custom.is_some() && given_kind != resource.kind {
        let cause = Cause::invalid("kind", &given_kind.as_str().into(), &format!("must be {}", resource.kind));
        return Err(ApiError::invalid(&resource.gr.group, &given_kind, text(object, &["metadata", "name"]), &[cause]));
    }
    if !given_kind.is_empty() && given_kind != resource.kind {
        let (version, kind) = (&resource.version, &resource.kind);
        return Err(ApiError::bad_request(format!(
            "{given_kind} in version {version:?} cannot be handled as a {kind}: converting ({version}.{given_kind}) to ({}.{kind}): unknown conversion",
            if resource.gr.group.is_empty() { "core" } else { resource.gr.group.split('.').next().unwrap_or_default() }
        )));
    }
    if let Some(members) = object.as_object_mut() {
        members.insert("apiVersion".into(), api_version.into());
        members.insert("kind".into(), resource.kind.clone().into());
    }
    Ok(())
}

/// Brings an object of a request into stored form. `body` is its text, for fields that stand in it twice.
///
/// # Errors
/// 400 for values of a wrong type.
pub fn decode(resource: &Resource, mut object: Value, body: Option<&[u8]>) -> ApiResult<Decoded> {
    check_kind(resource, &mut object)?;
    let mut complaints = Vec::new();
    let as_what = |why: &str| {
        let (kind, version) = (&resource.kind, &resource.version);
        ApiError::bad_request(format!("{kind} in version {version:?} cannot be handled as a {kind}: {why}"))
    };
    match (&resource.custom, resource.node()) {
        (None, Some(node)) => {
            let findings = normalise(&mut object, node);
            if let Some(wrong) = findings.wrong {
                return Err(as_what(&wrong));
            }
            complaints.extend(findings.unknown.iter().map(|field| format!("unknown field {field:?}")));
        }
        _ => {
            if let (Some(node), Some(metadata)) = (metadata_node(), object.get_mut("metadata")) {
                let findings = normalise(metadata, node);
                if let Some(wrong) = findings.wrong {
                    return Err(as_what(&wrong));
                }
                complaints.extend(findings.unknown.iter().map(|field| format!("unknown field \"metadata.{field}\"")));
            }
        }
    }
    if let Some(body) = body {
        complaints.extend(duplicate_fields(body).iter().map(|field| format!("duplicate field {field:?}")));
    }
    let mut object = incoming(resource, object);
    complete(resource, &mut object);
    Ok(Decoded { object, complaints })
}

/// Fills in defaults and brings the result into the form that is kept.
pub fn complete(resource: &Resource, object: &mut Value) {
    map_mut(object, &["metadata"]);
    if resource.custom.is_some() {
        whole_numbers(object);
        return;
    }
    let (group, _) = resource.stored_version();
    match (group, resource.kind.as_str()) {
        ("", "Secret") => prepare::string_data(object),
        ("", "Namespace") => {
            let name = text(object, &["metadata", "name"]).to_owned();
            if let Some(labels) = map_mut(object, &["metadata", "labels"]).filter(|_| !name.is_empty()) {
                labels.insert("kubernetes.io/metadata.name".into(), name.into());
            }
        }
        _ => {}
    }
    defaults::fill(group, &resource.kind, object);
    if let Some(node) = resource.stored_node() {
        normalise(object, node);
    }
}

/// Writes 10.0 as 10, as Go does with numbers whose type nobody knows.
fn whole_numbers(value: &mut Value) {
    match value {
        Value::Number(number) => {
            if let Some(float) = number.as_f64().filter(|f| number.is_f64() && f.fract() == 0.0 && f.abs() < 1e15) {
                *value = (float as i64).into();
            }
        }
        Value::Array(items) => items.iter_mut().for_each(whole_numbers),
        Value::Object(members) => members.values_mut().for_each(whole_numbers),
        _ => {}
    }
}

/// Turns complaints into warnings, or into the refusal that strictness asks for.
///
/// # Errors
/// 400 under [`Strictness::Strict`].
pub fn judge(resource: &Resource, strictness: Strictness, complaints: Vec<String>) -> ApiResult<Vec<String>> {
    match strictness {
        Strictness::Ignore => Ok(Vec::new()),
        Strictness::Strict if !complaints.is_empty() => {
            let (kind, version) = (&resource.kind, &resource.version);
            let why = format!("strict decoding error: {}", complaints.join(", "));
            Err(ApiError::bad_request(format!("{kind} in version {version:?} cannot be handled as a {kind}: {why}")))
        }
        _ => Ok(complaints),
    }
}
