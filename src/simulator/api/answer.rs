//! Answers as HTTP carries them.
//!
//! Owns codes, headers and forms. Must not decide what is answered.

use std::convert::Infallible;

use bytes::Bytes;
use http::{HeaderMap, Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use jiff::Timestamp;
use serde_json::json;

use super::http::{Shape, body};
use super::kinds::text;
use super::registry::Resource;
use super::status::{ApiError, ApiResult};
use super::table;
use super::verbs::{Answer, Call};

/// A body of an answer.
pub type Body = UnsyncBoxBody<Bytes, Infallible>;

/// A header as text; empty when there is none.
pub(super) fn header_of<'a>(headers: &'a HeaderMap, name: &str) -> &'a str {
    headers.get(name).and_then(|v| v.to_str().ok()).unwrap_or_default()
}

/// The whole body.
///
/// # Errors
/// 413 when it is too large, 400 when it breaks off.
pub(super) async fn read<B>(incoming: B) -> ApiResult<Bytes>
where
    B: http_body::Body<Data = Bytes> + Send,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    match Limited::new(incoming, body::LARGEST).collect().await {
        Ok(collected) => Ok(collected.to_bytes()),
        Err(error) if error.downcast_ref::<LengthLimitError>().is_some() => Err(body::too_large()),
        Err(error) => Err(ApiError::bad_request(format!("unable to read the body of the request: {error}"))),
    }
}

/// Sets a header; warnings are added.
pub(super) fn set(response: &mut Response<Body>, name: &'static str, value: &str) {
    if let Ok(value) = http::HeaderValue::from_str(value) {
        match name {
            "warning" => response.headers_mut().append(name, value).then_some(()),
            _ => response.headers_mut().insert(name, value).map(|_| ()),
        };
    }
}

fn bytes_response(code: u16, media: &str, bytes: Bytes) -> Response<Body> {
    let mut response = Response::new(Full::new(bytes).boxed_unsync());
    *response.status_mut() = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    set(&mut response, "content-type", media);
    set(&mut response, "cache-control", "no-cache, private");
    response
}

/// JSON text.
pub(super) fn json_response(code: u16, bytes: Bytes) -> Response<Body> {
    bytes_response(code, "application/json", bytes)
}

/// Plain text.
pub(super) fn text_response(code: u16, text: &'static str) -> Response<Body> {
    bytes_response(code, "text/plain; charset=utf-8", Bytes::from_static(text.as_bytes()))
}

/// A Status.
pub(super) fn failure(error: &ApiError) -> Response<Body> {
    let mut response = json_response(error.code, format!("{}\n", error.to_value()).into());
    if let Some(seconds) = error.retry_after {
        set(&mut response, "retry-after", &seconds.to_string());
    }
    response
}

/// One object in the form that is wanted, with its warnings.
pub(super) fn object_answer(call: &Call, resource: &Resource, answer: Answer, now: Timestamp) -> Response<Body> {
    let is_status = text(&answer.object, &["kind"]) == "Status";
    let own = text(&answer.object, &["kind"]) == resource.kind;
    let shown = match call.accept.object() {
        Shape::Table if own && !is_status => match table::Include::parse(call.query.get("includeObject")) {
            Ok(include) => {
                let mut shown = table::head(resource);
                shown["metadata"] = json!({"resourceVersion": answer.object.pointer("/metadata/resourceVersion")});
                let stored = super::verbs::incoming(resource, answer.object);
                shown["rows"] = json!([table::row(resource, &stored, include, now)]);
                shown
            }
            Err(error) => return failure(&error),
        },
        Shape::Metadata if own && !is_status => table::metadata_only(&answer.object),
        _ => answer.object,
    };
    let mut response = match call.accept.yaml() {
        true => bytes_response(answer.code, "application/yaml", serde_saphyr::to_string(&shown).unwrap_or_default().into()),
        false => json_response(answer.code, format!("{shown}\n").into()),
    };
    for warning in &answer.warnings {
        let text = warning.replace('\\', "\\\\").replace('"', "\\\"");
        set(&mut response, "warning", &format!("299 - \"{text}\""));
    }
    response
}
