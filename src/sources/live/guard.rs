//! The read-only boundary: which requests may leave, by their shape alone.
//!
//! It stands in the client itself, before credentials are added, so that nothing above can get around it. Read-only means *no effect*, not
//! *no POST*: asking what one may do and dry runs are POSTs, and some engines change their state on a GET.

use std::task::{Context, Poll};

use futures::future::{Either, Ready, err};
use http::{HeaderMap, Method, Request, Uri};
use tower::{BoxError, Layer, Service};

/// A request that would have had an effect.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("refused here, read-only: {request}: {why}")]
pub struct Refused {
    /// The request in short.
    pub request: String,
    /// Which rule it breaks.
    pub why: &'static str,
}

/// What may be asked of engines, routers and Prometheus, wherever they are reached. Not every GET of an engine is harmless: SGLang takes
/// `/flush_cache`, `/start_profile` and others as GET (0.5, `http_server.py`), and `/health_generate` makes it work.
const READS: &[&str] = &[
    "/metrics",
    "/health",
    "/healthz",
    "/livez",
    "/readyz",
    "/ready",
    "/ping",
    "/v1/models",
    "/v2/health/ready",
    "/version",
    "/get_model_info",
    "/model_info",
    "/get_server_info",
    "/server_info",
    "/is_sleeping",
    "/is_paused",
    "/props",
    "/load",
    "/get_load",
    "/-/healthy",
    "/-/ready",
    "/api/v1/query",
    "/api/v1/status/buildinfo",
];

/// Whether a GET of this path has no effect on an engine, a router or a Prometheus. A prefix before a known path is no known path.
pub fn reads(path: &str) -> bool {
    let path = path.split('?').next().unwrap_or_default();
    READS.contains(&path)
}

/// Checks one request to an API server.
///
/// # Errors
/// When its shape is not one of those that have no effect.
pub fn check(method: &Method, uri: &Uri, headers: &HeaderMap) -> Result<(), Refused> {
    let refuse = |why| Err(Refused { request: crate::model::text::tidied(format!("{method} {}", uri.path())), why });
    if headers.keys().any(|name| name.as_str().contains("method-override") || name == "x-http-method") {
        return refuse("it asks to be taken for another method");
    }
    let Some(segments) = segments(uri.path()) else { return refuse("its path has parts that servers read in different ways") };
    let parts: Vec<&str> = segments.iter().map(String::as_str).collect();
    let target = Target::of(&parts);
    let upgrade = headers.contains_key(http::header::UPGRADE);
    match (method, target) {
        (_, Target { resource: "pods", sub: Some("exec" | "attach"), .. }) => refuse("it runs something in a container"),
        (_, Target { resource: "nodes", sub: Some("proxy"), .. }) => refuse("a node's proxy can run things, also by GET"),
        (&Method::GET | &Method::POST, Target { resource: "pods", sub: Some("portforward"), .. }) => Ok(()),
        (&Method::GET, Target { resource: "pods" | "services", sub: Some("proxy"), rest }) => {
            let inner = format!("/{}", rest.join("/"));
            if upgrade {
                refuse("a connection through a proxy could carry anything")
            } else if reads(&inner) {
                Ok(())
            } else {
                refuse("not known to be without effect on what answers there")
            }
        }
        (_, Target { sub: Some("proxy"), .. } | Target { resource: "proxy", .. }) => {
            refuse("it is passed on to somebody who may act on it")
        }
        (&Method::GET | &Method::HEAD, _) if upgrade => refuse("a connection of its own could carry anything"),
        (&Method::GET | &Method::HEAD, _) => Ok(()),
        (&Method::POST, Target { resource: "selfsubjectaccessreviews" | "selfsubjectrulesreviews", sub: None, rest: [] })
            if parts.starts_with(&["apis", "authorization.k8s.io"]) =>
        {
            Ok(())
        }
        (&Method::POST, Target { resource: "selfsubjectreviews", sub: None, rest: [] })
            if parts.starts_with(&["apis", "authentication.k8s.io"]) =>
        {
            Ok(())
        }
        (&Method::POST | &Method::PUT | &Method::PATCH | &Method::DELETE, Target { sub, rest: [], .. })
            if is_dry_run(uri) && matches!(sub, None | Some("status" | "scale" | "eviction")) =>
        {
            Ok(())
        }
        _ => refuse("it has an effect"),
    }
}

/// What a path is about.
#[derive(Debug, PartialEq, Eq)]
struct Target<'a> {
    resource: &'a str,
    sub: Option<&'a str>,
    /// What follows the subresource.
    rest: &'a [&'a str],
}

impl<'a> Target<'a> {
    fn of(parts: &'a [&'a str]) -> Self {
        let inner = match parts {
            ["api", _, inner @ ..] | ["apis", _, _, inner @ ..] => inner,
            _ => &[],
        };
        // A namespace's own subresources (`status`, `finalize`) look like a resource in it.
        let inner = match inner {
            ["namespaces", _, "status" | "finalize", ..] => inner,
            ["namespaces", _, inner @ ..] if !inner.is_empty() => inner,
            inner => inner,
        };
        match inner {
            [] => Self { resource: "", sub: None, rest: &[] },
            [resource] | [resource, _] => Self { resource, sub: None, rest: &[] },
            [resource, _, sub, rest @ ..] => Self { resource, sub: Some(sub), rest },
        }
    }
}

/// The parts of a path, decoded; `None` where a server between us and the API server may read it otherwise than we do.
fn segments(path: &str) -> Option<Vec<String>> {
    let mut out = Vec::new();
    for raw in path.strip_prefix('/')?.trim_end_matches('/').split('/') {
        let decoded = decode(raw)?;
        if decoded.is_empty() && !path.trim_matches('/').is_empty() {
            return None;
        }
        if matches!(decoded.as_str(), "." | "..") || decoded.contains(['/', '\\', '%', '\0', '?', '#', ';']) {
            return None;
        }
        out.push(decoded);
    }
    Some(out)
}

fn decode(raw: &str) -> Option<String> {
    let mut out = Vec::with_capacity(raw.len());
    let mut bytes = raw.bytes();
    while let Some(byte) = bytes.next() {
        if byte != b'%' {
            out.push(byte);
            continue;
        }
        let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
        let (high, low) = (digit(bytes.next())?, digit(bytes.next())?);
        out.push(u8::try_from(high * 16 + low).ok()?);
    }
    String::from_utf8(out).ok()
}

/// Whether the query asks for a dry run, and for nothing else beside it.
fn is_dry_run(uri: &Uri) -> bool {
    let mut given = form_urlencoded::parse(uri.query().unwrap_or_default().as_bytes()).filter(|(key, _)| key == "dryRun").peekable();
    given.peek().is_some() && given.all(|(_, value)| value == "All")
}

/// Puts the boundary before a service.
#[derive(Debug, Clone, Copy, Default)]
pub struct ReadOnly;

impl<S> Layer<S> for ReadOnly {
    type Service = Guarded<S>;

    fn layer(&self, inner: S) -> Guarded<S> {
        Guarded { inner }
    }
}

/// A service behind the boundary.
#[derive(Debug, Clone)]
pub struct Guarded<S> {
    inner: S,
}

impl<S, B> Service<Request<B>> for Guarded<S>
where
    S: Service<Request<B>>,
    S::Error: Into<BoxError>,
{
    type Response = S::Response;
    type Error = BoxError;
    type Future = Either<Ready<Result<S::Response, BoxError>>, futures::future::ErrInto<S::Future, BoxError>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(context).map_err(Into::into)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        match check(request.method(), request.uri(), request.headers()) {
            Ok(()) => Either::Right(futures::TryFutureExt::err_into(self.inner.call(request))),
            Err(refused) => Either::Left(err(refused.into())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rstest::rstest;

    fn allowed(method: &str, uri: &str) -> bool {
        check(&method.parse().unwrap(), &uri.parse().unwrap(), &HeaderMap::new()).is_ok()
    }

    #[rstest]
    #[case("GET", "/api/v1/pods?watch=true")]
    #[case("GET", "/")]
    #[case("GET", "/version")]
    #[case("GET", "/apis/apps/v1/namespaces/a/deployments/b/scale")]
    #[case("GET", "/api/v1/namespaces/a/pods/b/log?container=c")]
    #[case("GET", "/api/v1/namespaces/a/pods/b:8000/proxy/metrics")]
    #[case("GET", "/api/v1/namespaces/a/pods/https:b:8000/proxy/v1/models")]
    #[case("GET", "/api/v1/namespaces/a/services/prometheus:web/proxy/api/v1/query?query=up")]
    #[case("GET", "/api/v1/namespaces/a/pods/b/portforward?ports=8000")]
    #[case("POST", "/api/v1/namespaces/a/pods/b/portforward")]
    #[case("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews")]
    #[case("POST", "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews")]
    #[case("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews")]
    #[case("PATCH", "/apis/apps/v1/namespaces/a/deployments/b?dryRun=All&fieldManager=modeldeck")]
    #[case("DELETE", "/api/v1/namespaces/a/pods/b?dryRun=All")]
    #[case("POST", "/api/v1/namespaces/a/pods/b/eviction?dryRun=All")]
    fn without_effect(#[case] method: &str, #[case] uri: &str) {
        assert!(allowed(method, uri), "{method} {uri}");
    }

    #[rstest]
    #[case("POST", "/api/v1/namespaces/a/pods")]
    #[case("PUT", "/api/v1/namespaces/a/pods/b")]
    #[case("PATCH", "/apis/apps/v1/namespaces/a/deployments/b")]
    #[case("PATCH", "/apis/apps/v1/namespaces/a/deployments/b?dryRun=")]
    #[case("PATCH", "/apis/apps/v1/namespaces/a/deployments/b?dryRun=None")]
    #[case("PATCH", "/apis/apps/v1/namespaces/a/deployments/b?dryRun=All&dryRun=None")]
    #[case("PATCH", "/apis/apps/v1/namespaces/a/deployments/b?dryrun=All")]
    #[case("DELETE", "/api/v1/namespaces/a/pods/b")]
    #[case("DELETE", "/api/v1/namespaces/a/pods")]
    #[case("GET", "/api/v1/namespaces/a/pods/b/exec?command=rm")]
    #[case("POST", "/api/v1/namespaces/a/pods/b/exec?command=rm&dryRun=All")]
    #[case("GET", "/api/v1/namespaces/a/pods/b/attach")]
    #[case("GET", "/api/v1/namespaces/a/pods/b/%65xec?command=rm")]
    #[case("GET", "/api/v1/namespaces/a/pods/b/log/../exec")]
    #[case("GET", "/api/v1/namespaces/a/pods/b/log/%2e%2e/exec")]
    #[case("GET", "/api/v1/namespaces/a/pods//exec")]
    #[case("GET", "/api/v1/namespaces/a/pods/b/proxy/flush_cache")]
    #[case("GET", "/api/v1/namespaces/a/pods/b/proxy/metrics/../flush_cache")]
    #[case("GET", "/api/v1/namespaces/a/pods/b/proxy/metrics%2f..%2fflush_cache")]
    #[case("GET", "/api/v1/namespaces/a/pods/b/proxy/health_generate")]
    #[case("GET", "/api/v1/proxy/namespaces/a/pods/b/exec")]
    #[case("POST", "/api/v1/namespaces/a/pods/b/proxy/sleep?level=1&dryRun=All")]
    #[case("POST", "/api/v1/namespaces/a/pods/b/proxy/metrics")]
    #[case("HEAD", "/api/v1/namespaces/a/pods/b/proxy/metrics")]
    #[case("GET", "/api/v1/nodes/n/proxy/metrics")]
    #[case("POST", "/api/v1/namespaces/a/serviceaccounts/b/token?dryRun=All")]
    #[case("POST", "/apis/x.io/v1/selfsubjectaccessreviews")]
    #[case("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews")]
    #[case("PUT", "/api/v1/namespaces/a/finalize")]
    #[case("OPTIONS", "/api/v1/pods")]
    #[case("CONNECT", "/api/v1/namespaces/a/pods/b/proxy/metrics")]
    fn with_effect(#[case] method: &str, #[case] uri: &str) {
        assert!(!allowed(method, uri), "{method} {uri}");
    }

    #[test]
    fn headers_do_not_get_around_it() {
        for (name, value) in [("x-http-method-override", "DELETE"), ("x-method-override", "POST"), ("x-http-method", "POST")] {
            let headers = HeaderMap::from_iter([(name.parse().unwrap(), value.parse().unwrap())]);
            assert!(check(&Method::GET, &"/api/v1/namespaces/a/pods/b/proxy/metrics".parse().unwrap(), &headers).is_err());
        }
        let headers = HeaderMap::from_iter([(http::header::UPGRADE, "websocket".parse().unwrap())]);
        assert!(check(&Method::GET, &"/api/v1/namespaces/a/pods/b/proxy/metrics".parse().unwrap(), &headers).is_err());
        assert!(check(&Method::GET, &"/api/v1/namespaces/a/pods/b/portforward".parse().unwrap(), &headers).is_ok());
    }

    proptest! {
        /// Whatever the path, what is no GET, no review, no port-forward and no dry run does not pass.
        #[test]
        fn nothing_else_passes(method in "POST|PUT|PATCH|DELETE|TRACE|OPTIONS", path in "(/[a-z0-9.%:-]{0,12}){1,8}") {
            if let Ok(uri) = path.parse::<Uri>()
                && check(&method.parse().unwrap(), &uri, &HeaderMap::new()).is_ok()
            {
                let path = uri.path();
                prop_assert!(path.contains("selfsubject") || path.contains("/portforward"), "{method} {path}");
            }
        }
    }
}
