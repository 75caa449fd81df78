//! Bodies: JSON, YAML and a few protobuf messages, as one JSON value.
//!
//! Owns the reading and its errors. The text of a JSON error is this parser's, not Go's: the one place where words differ.

use serde_json::Value;

use super::super::status::{ApiError, ApiResult};
use super::protobuf;

/// The largest body, as the real server has it.
pub const LARGEST: usize = 3 * 1024 * 1024;

/// The 413 for a larger one.
pub fn too_large() -> ApiError {
    ApiError::too_large(format!("Request entity too large: limit is {LARGEST}")).with_details(serde_json::json!({}))
}

/// What a body is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Media {
    /// JSON.
    Json,
    /// YAML.
    Yaml,
    /// Kubernetes' protobuf envelope.
    Protobuf,
}

/// Reads a `Content-Type`; none is JSON.
///
/// # Errors
/// 415 for others.
pub fn media(content_type: &str) -> ApiResult<Media> {
    match content_type.split(';').next().unwrap_or_default().trim() {
        "" | "application/json" => Ok(Media::Json),
        "application/yaml" => Ok(Media::Yaml),
        "application/vnd.kubernetes.protobuf" => Ok(Media::Protobuf),
        _ => Err(ApiError::unsupported_media_type(
            "the body of the request was in an unknown format - accepted media types include: application/json, application/yaml, application/vnd.kubernetes.protobuf",
        )),
    }
}

/// YAML text as a value.
///
/// # Errors
/// 400 with what is wrong.
pub fn yaml(body: &[u8]) -> ApiResult<Value> {
    let text = std::str::from_utf8(body).map_err(|error| ApiError::bad_request(format!("error converting YAML to JSON: {error}")))?;
    if let Ok(value) = serde_json::from_str(text) {
        return Ok(value);
    }
    serde_saphyr::from_str(text).map_err(|error| {
        let first = error.to_string().lines().next().unwrap_or_default().to_owned();
        ApiError::bad_request(format!("error converting YAML to JSON: yaml: {first}"))
    })
}

/// A body that holds an object with `apiVersion` and `kind`.
///
/// # Errors
/// 400 for what is no such object, which says that it should be a `kind`; 415 for a type that is not read.
pub fn object(content_type: &str, body: &[u8], kind: &str) -> ApiResult<Value> {
    let media = media(content_type)?;
    any(media, body).map_err(|error| match error.code {
        400 => unrecognized(kind, &error.message, body),
        _ => error,
    })
}

/// The 400 for a body of which not even the kind can be read.
pub fn unrecognized(kind: &str, why: &str, body: &[u8]) -> ApiError {
    const SHOWN: usize = 30;
    let more = if body.len() > SHOWN { " ..." } else { "" };
    let head = body.get(..SHOWN).unwrap_or(body);
    let shown = match head.first() {
        None => "<empty>".to_owned(),
        Some(b'{') => format!("{}{more}", String::from_utf8_lossy(head)),
        Some(_) => format!("{}{more}", head.iter().map(|b| format!("{b:02x}")).collect::<String>()),
    };
    ApiError::bad_request(format!("the object provided is unrecognized (must be of type {kind}): {why} ({shown})"))
}

fn any(media: Media, body: &[u8]) -> ApiResult<Value> {
    let value = match media {
        Media::Json => serde_json::from_slice(body)
            .map_err(|error| ApiError::bad_request(format!("couldn't get version/kind; json parse error: {error}")))?,
        Media::Yaml => yaml(body)?,
        Media::Protobuf => protobuf::decode(body)?,
    };
    match value {
        Value::Object(_) => Ok(value),
        Value::Null => Ok(Value::Object(serde_json::Map::new())),
        other => {
            let what = match other {
                Value::Array(_) => "array",
                Value::String(_) => "string",
                Value::Bool(_) => "bool",
                _ => "number",
            };
            Err(ApiError::bad_request(format!(
                "couldn't get version/kind; json parse error: json: cannot unmarshal {what} into Go value of type struct {{ APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \"json:\\\"kind,omitempty\\\"\" }}"
            )))
        }
    }
}
