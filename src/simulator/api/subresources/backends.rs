//! What stands behind a pod: its logs, its ports. The API asks a backend; without one it says that nothing answers.
//!
//! Owns the interface and the reading of what is asked. Must not know what a backend is.

use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use futures::Stream;
use futures::future::BoxFuture;
use http::{Request, Response};
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};

use super::super::http::Query;
use super::super::kinds::{at, items, text};
use super::super::status::{ApiError, ApiResult};

/// A stream of bytes.
pub type Bodies = Pin<Box<dyn Stream<Item = Bytes> + Send>>;

/// A connection.
pub trait Wire: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Wire for T {}

/// Which lines of a log are wanted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LogOptions {
    /// The container.
    pub container: String,
    /// Go on when more comes.
    pub follow: bool,
    /// Of the container's last life.
    pub previous: bool,
    /// Only the last so many lines.
    pub tail: Option<i64>,
    /// Only what is younger than so many seconds.
    pub since_seconds: Option<i64>,
    /// Only what is younger than this.
    pub since_time: String,
    /// Each line with its time.
    pub timestamps: bool,
    /// At most so many bytes.
    pub limit_bytes: Option<i64>,
}

/// What stands behind pods.
pub trait Backend: Send + Sync {
    /// The log of a container.
    fn log(&self, pod: Arc<Value>, options: LogOptions) -> BoxFuture<'static, ApiResult<Bodies>>;
    /// One HTTP request to a port of a pod.
    fn proxy(&self, pod: Arc<Value>, port: u16, request: Request<Bytes>) -> BoxFuture<'static, ApiResult<Response<Bodies>>>;
    /// A connection to a port of a pod.
    fn connect(&self, pod: Arc<Value>, port: u16) -> BoxFuture<'static, ApiResult<Box<dyn Wire>>>;
}

/// Reads the options of a log request and picks the container.
///
/// # Errors
/// 400 when the container is not named and there are several, or there is none of that name.
pub fn log_options(pod: &Value, query: &Query) -> ApiResult<LogOptions> {
    let name = text(pod, &["metadata", "name"]);
    let all: Vec<&str> = ["containers", "initContainers", "ephemeralContainers"]
        .iter()
        .flat_map(|list| items(pod, &["spec", list]))
        .map(|c| text(c, &["name"]))
        .collect();
    let main: Vec<&str> = items(pod, &["spec", "containers"]).iter().map(|c| text(c, &["name"])).collect();
    let chosen = at(pod, &["metadata", "annotations", "kubectl.kubernetes.io/default-container"]).and_then(Value::as_str);
    let container = match (query.get("container"), main.as_slice()) {
        ("", [one]) => (*one).to_owned(),
        ("", _) if chosen.is_some_and(|c| all.contains(&c)) => chosen.unwrap_or_default().to_owned(),
        ("", _) => {
            let inits: Vec<&str> = items(pod, &["spec", "initContainers"]).iter().map(|c| text(c, &["name"])).collect();
            let mut why = format!("a container name must be specified for pod {name}, choose one of: [{}]", main.join(" "));
            if !inits.is_empty() {
                why += &format!(" or one of the init containers: [{}]", inits.join(" "));
            }
            return Err(ApiError::bad_request(why));
        }
        (given, _) if all.contains(&given) => given.to_owned(),
        (given, _) => return Err(ApiError::bad_request(format!("container {given} is not valid for pod {name}"))),
    };
    Ok(LogOptions {
        container,
        follow: query.flag("follow"),
        previous: query.flag("previous"),
        tail: query.number("tailLines")?,
        since_seconds: query.number("sinceSeconds")?,
        since_time: query.get("sinceTime").to_owned(),
        timestamps: query.flag("timestamps"),
        limit_bytes: query.number("limitBytes")?,
    })
}

/// `http:name:port` as names of proxied pods are written: scheme, name, port.
///
/// # Errors
/// 400 for what is none.
pub fn proxied(text: &str) -> ApiResult<(String, String, Option<u16>)> {
    let parts: Vec<&str> = text.split(':').collect();
    let (scheme, name, port) = match parts.as_slice() {
        [name] => ("http", *name, None),
        [name, port] => ("http", *name, Some(*port)),
        [scheme, name, port] => (*scheme, *name, Some(*port).filter(|p| !p.is_empty())),
        _ => return Err(ApiError::bad_request(format!("invalid pod request {text:?}"))),
    };
    let port = match port {
        Some(port) => Some(port.parse().map_err(|_| ApiError::bad_request(format!("invalid pod request {text:?}")))?),
        None => None,
    };
    Ok((scheme.to_owned(), name.to_owned(), port))
}
