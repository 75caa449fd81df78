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
        other => Err(ApiError::unsupported_media_type(format!(
            "the body of the request was in an unknown format - accepted media types include: application/json, application/yaml, application/vnd.kubernetes.protobuf (got {other:?})"
        ))),
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
/// 400 for what is no such object; 415 for a type that is not read.
pub fn object(content_type: &str, body: &[u8]) -> ApiResult<Value> {
    let value = match media(content_type)? {
        Media::Json => serde_json::from_slice(body)
            .map_err(|error| ApiError::bad_request(format!("couldn't get version/kind; json parse error: {error}")))?,
        Media::Yaml => yaml(body)?,
        Media::Protobuf => protobuf::decode(body)?,
    };
    match value {
        Value::Object(_) => Ok(value),
        Value::Null => Err(ApiError::bad_request("Object 'Kind' is missing in 'null'")),
        _ => Err(ApiError::bad_request(
            "couldn't get version/kind; json parse error: json: cannot unmarshal into Go value of type struct { APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \"json:\\\"kind,omitempty\\\"\" }",
        )),
    }
}
