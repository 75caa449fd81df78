//! Errors as the Kubernetes API gives them: a `Status` object with code, reason, message and details.
//!
//! Owns the words: every constructor follows one of `k8s.io/apimachinery/pkg/api/errors` (1.36), because clients match on them.
//! Must not decide when an error is due.

use std::fmt;

use serde_json::{Map, Value, json};

/// A resource's plural name and group: `deployments` in `apps`. Shown as `deployments.apps`, in the core group as `pods`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupResource {
    /// The API group, empty for the core group.
    pub group: String,
    /// The plural name.
    pub resource: String,
}

impl GroupResource {
    /// Of a group and a plural name.
    pub fn new(group: impl Into<String>, resource: impl Into<String>) -> Self {
        Self { group: group.into(), resource: resource.into() }
    }
}

impl fmt::Display for GroupResource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.group.is_empty() {
            true => f.write_str(&self.resource),
            false => write!(f, "{}.{}", self.resource, self.group),
        }
    }
}

/// One thing wrong with one field, as in `details.causes` of an Invalid answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cause {
    /// `FieldValueRequired`, `FieldValueInvalid`, …
    pub reason: &'static str,
    /// What is wrong, without the field: `Required value: name or generateName is required`.
    pub message: String,
    /// The path: `spec.containers[0].image`.
    pub field: String,
}

impl Cause {
    fn of(reason: &'static str, field: impl Into<String>, head: impl fmt::Display, why: &str) -> Self {
        let message = if why.is_empty() { head.to_string() } else { format!("{head}: {why}") };
        Self { reason, message, field: field.into() }
    }

    /// A field that must be there and is not.
    pub fn required(field: impl Into<String>, why: &str) -> Self {
        Self::of("FieldValueRequired", field, "Required value", why)
    }

    /// A value that is not allowed.
    pub fn invalid(field: impl Into<String>, value: &Value, why: &str) -> Self {
        Self::of("FieldValueInvalid", field, format_args!("Invalid value: {value}"), why)
    }

    /// A field that may not be set here.
    pub fn forbidden(field: impl Into<String>, why: &str) -> Self {
        Self::of("FieldValueForbidden", field, "Forbidden", why)
    }

    /// A value outside of a fixed set.
    pub fn unsupported(field: impl Into<String>, value: &Value, supported: &[&str]) -> Self {
        let list = supported.iter().map(|v| format!("{v:?}")).collect::<Vec<_>>().join(", ");
        Self::of("FieldValueNotSupported", field, format_args!("Unsupported value: {value}"), &format!("supported values: {list}"))
    }

    /// A value that stands twice where it may stand once.
    pub fn duplicate(field: impl Into<String>, value: &Value) -> Self {
        Self::of("FieldValueDuplicate", field, format_args!("Duplicate value: {value}"), "")
    }

    /// A reference to something that is not there.
    pub fn missing(field: impl Into<String>, value: &Value) -> Self {
        Self::of("FieldValueNotFound", field, format_args!("Not found: {value}"), "")
    }

    /// More items or bytes than allowed.
    pub fn too_long(field: impl Into<String>, what: &str, why: &str) -> Self {
        Self::of("FieldValueTooLong", field, format_args!("Too long{what}"), why)
    }

    /// A value of the wrong type.
    pub fn type_invalid(field: impl Into<String>, value: &Value, why: &str) -> Self {
        Self::of("FieldValueTypeInvalid", field, format_args!("Invalid value: {value}"), why)
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.message)
    }
}

/// An error answer.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{code} {reason}: {message}")]
pub struct ApiError {
    /// The HTTP code.
    pub code: u16,
    /// The machine-readable reason, empty when there is none.
    pub reason: String,
    /// The sentence for people.
    pub message: String,
    /// `details` of the Status; `None` leaves the member out.
    pub details: Option<Value>,
    /// Seconds for the `Retry-After` header, also in the details.
    pub retry_after: Option<u32>,
    /// The token with which an expired list can go on, in `metadata.continue`.
    pub next: Option<String>,
}

/// What a fallible step of the API gives.
pub type ApiResult<T> = Result<T, ApiError>;

fn details(gr: &GroupResource, name: &str) -> Map<String, Value> {
    let mut map = Map::new();
    if !name.is_empty() {
        map.insert("name".into(), name.into());
    }
    if !gr.group.is_empty() {
        map.insert("group".into(), gr.group.clone().into());
    }
    if !gr.resource.is_empty() {
        map.insert("kind".into(), gr.resource.clone().into());
    }
    map
}

impl ApiError {
    /// Any code and reason; `details` is left out.
    pub fn new(code: u16, reason: impl Into<String>, message: impl Into<String>) -> Self {
        Self { code, reason: reason.into(), message: message.into(), details: None, retry_after: None, next: None }
    }

    /// The same with these details.
    pub fn with_details(mut self, details: Value) -> Self {
        self.details = Some(details);
        self
    }

    /// 404 for one object.
    pub fn not_found(gr: &GroupResource, name: &str) -> Self {
        Self::new(404, "NotFound", format!("{gr} {name:?} not found")).with_details(details(gr, name).into())
    }

    /// 404 for a resource that is not served.
    pub fn no_such_resource() -> Self {
        Self::new(404, "NotFound", "the server could not find the requested resource").with_details(json!({}))
    }

    /// 409 for a name that is taken.
    pub fn already_exists(gr: &GroupResource, name: &str) -> Self {
        Self::new(409, "AlreadyExists", format!("{gr} {name:?} already exists")).with_details(details(gr, name).into())
    }

    /// 409 for a write that lost: stale resourceVersion, wrong uid.
    pub fn conflict(gr: &GroupResource, name: &str, why: &str) -> Self {
        let message = format!("Operation cannot be fulfilled on {gr} {name:?}: {why}");
        Self::new(409, "Conflict", message).with_details(details(gr, name).into())
    }

    /// 409 of server-side apply. `causes` are (field, message) with reason FieldManagerConflict.
    pub fn apply_conflict(message: impl Into<String>, causes: Vec<Value>) -> Self {
        Self::new(409, "Conflict", message).with_details(json!({ "causes": causes }))
    }

    /// 422 for an object whose fields are wrong. `kind` is the kind, not the resource.
    pub fn invalid(group: &str, kind: &str, name: &str, causes: &[Cause]) -> Self {
        let what = if group.is_empty() { kind.to_owned() } else { format!("{kind}.{group}") };
        let mut lines: Vec<String> = Vec::new();
        for line in causes.iter().map(ToString::to_string) {
            if lines.len() < 64 && !lines.contains(&line) {
                lines.push(line);
            }
        }
        let errors = match lines.as_slice() {
            [one] => one.clone(),
            many => format!("[{}]", many.join(", ")),
        };
        let mut map = details(&GroupResource::new(group, kind), name);
        let causes: Vec<Value> = causes.iter().map(|c| json!({ "reason": c.reason, "message": c.message, "field": c.field })).collect();
        if !causes.is_empty() {
            map.insert("causes".into(), causes.into());
        }
        Self::new(422, "Invalid", format!("{what} {name:?} is invalid: {errors}")).with_details(map.into())
    }

    /// 400: the request itself is wrong.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(400, "BadRequest", message)
    }

    /// 401: nobody we know.
    pub fn unauthorized() -> Self {
        Self::new(401, "Unauthorized", "Unauthorized")
    }

    /// 403 on a resource or object.
    pub fn forbidden(gr: &GroupResource, name: &str, why: &str) -> Self {
        let message = match (gr.resource.is_empty(), name.is_empty()) {
            (true, _) => format!("forbidden: {why}"),
            (false, true) => format!("{gr} is forbidden: {why}"),
            (false, false) => format!("{gr} {name:?} is forbidden: {why}"),
        };
        Self::new(403, "Forbidden", message).with_details(details(gr, name).into())
    }

    /// 405: the verb is not served on this resource.
    pub fn method_not_supported(gr: &GroupResource, action: &str) -> Self {
        let message = format!("{action} is not supported on resources of kind \"{gr}\"");
        Self::new(405, "MethodNotAllowed", message).with_details(details(gr, "").into())
    }

    /// 410 for a watch or list whose resourceVersion is no longer kept.
    pub fn expired(message: impl Into<String>) -> Self {
        Self::new(410, "Expired", message)
    }

    /// 413: a body over the limit.
    pub fn too_large(message: impl Into<String>) -> Self {
        Self::new(413, "RequestEntityTooLarge", message)
    }

    /// 415: a body type that is not read here.
    pub fn unsupported_media_type(message: impl Into<String>) -> Self {
        Self::new(415, "UnsupportedMediaType", message)
    }

    /// 429, with the seconds to wait.
    pub fn too_many_requests(message: impl Into<String>, retry_after: u32) -> Self {
        let mut error = Self::new(429, "TooManyRequests", message);
        error.retry_after = Some(retry_after);
        error
    }

    /// 500.
    pub fn internal(why: impl fmt::Display) -> Self {
        let why = why.to_string();
        let cause = json!({ "causes": [{ "message": why }] });
        Self::new(500, "InternalError", format!("Internal error occurred: {why}")).with_details(cause)
    }

    /// The `Status` object.
    pub fn to_value(&self) -> Value {
        let mut status = json!({ "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure" });
        if let Some(next) = &self.next {
            status["metadata"]["continue"] = next.clone().into();
        }
        if let Some(map) = status.as_object_mut() {
            if !self.message.is_empty() {
                map.insert("message".into(), self.message.clone().into());
            }
            if !self.reason.is_empty() {
                map.insert("reason".into(), self.reason.clone().into());
            }
            let mut details = self.details.clone();
            if let Some(seconds) = self.retry_after {
                let seen = details.get_or_insert_with(|| json!({}));
                if let Some(map) = seen.as_object_mut() {
                    map.insert("retryAfterSeconds".into(), seconds.into());
                }
            }
            if let Some(details) = details {
                map.insert("details".into(), details);
            }
            map.insert("code".into(), self.code.into());
        }
        status
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn an_invalid_answer_joins_its_causes_and_names_the_kind() {
        let one = [Cause::required("spec.selector", "")];
        assert_eq!(
            ApiError::invalid("apps", "Deployment", "d", &one).message,
            "Deployment.apps \"d\" is invalid: spec.selector: Required value"
        );
        let two = [Cause::required("a", "x"), Cause::unsupported("b", &json!("c"), &["d", "e"])];
        let error = ApiError::invalid("", "Pod", "p", &two);
        assert_eq!(
            error.message,
            "Pod \"p\" is invalid: [a: Required value: x, b: Unsupported value: \"c\": supported values: \"d\", \"e\"]"
        );
        assert_eq!(error.to_value()["details"]["causes"][1]["field"], "b");
    }

    #[test]
    fn a_retry_after_stands_in_the_details() {
        let status = ApiError::too_many_requests("wait", 3).to_value();
        assert_eq!(status["details"], json!({ "retryAfterSeconds": 3 }));
        assert_eq!(status["code"], 429);
    }
}
