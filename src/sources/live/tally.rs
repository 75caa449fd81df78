//! What we ask: how many requests of which kind, how many bytes came back, how many failed, how long they took.
//!
//! Owns the counts only. It stands in the client, so that nothing is asked that is not counted.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Request, Response};
use http_body::{Body, Frame, SizeHint};
use tokio::time::Instant;
use tower::{BoxError, Layer, Service};

/// Most kinds of request that are counted apart; more are counted as `other`.
const MAX_KINDS: usize = 500;

/// One kind of request.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Count {
    /// Requests that were sent.
    pub requests: u64,
    /// Of these, answered with a status of 400 or more, or not at all.
    pub failed: u64,
    /// Bytes of bodies that came back, before they were cut or thrown away.
    pub bytes: u64,
    /// Time until the answers began, all together.
    pub waited: Duration,
    /// The longest of these.
    pub longest: Duration,
}

/// The counts of one run, shared by all who ask.
#[derive(Debug, Clone, Default)]
pub struct Tally {
    counts: Arc<Mutex<BTreeMap<String, Count>>>,
}

impl Tally {
    /// All counts by kind: `list pods`, `watch pods`, `get pods/log`, `GET engine /metrics`.
    pub fn counts(&self) -> BTreeMap<String, Count> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Changes the count of one kind.
    pub fn count(&self, kind: &str, change: impl FnOnce(&mut Count)) {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let name = if counts.len() >= MAX_KINDS && !counts.contains_key(kind) { "other" } else { kind };
        change(counts.entry(name.to_owned()).or_default());
    }
}

/// The kind of a request to an API server, in the words of its authorizer.
pub fn kind_of(method: &http::Method, uri: &http::Uri) -> String {
    let parts: Vec<&str> = uri.path().trim_matches('/').split('/').collect();
    let inner: &[&str] = match parts.as_slice() {
        ["api", _, inner @ ..] | ["apis", _, _, inner @ ..] => inner,
        _ => return format!("{} {}", method.as_str().to_ascii_lowercase(), "discovery"),
    };
    let inner = match inner {
        ["namespaces", _, rest @ ..] if !rest.is_empty() => rest,
        inner => inner,
    };
    let query = uri.query().unwrap_or_default();
    let watch = query.split('&').any(|part| matches!(part, "watch=true" | "watch=1"));
    match (inner, method.as_str()) {
        ([resource], "GET") => format!("{} {resource}", if watch { "watch" } else { "list" }),
        ([resource, _], verb) => format!("{} {resource}", verb.to_ascii_lowercase()),
        ([resource, _, sub, ..], verb) => format!("{} {resource}/{sub}", verb.to_ascii_lowercase()),
        ([resource], verb) => format!("{} {resource}", verb.to_ascii_lowercase()),
        ([], verb) => format!("{} discovery", verb.to_ascii_lowercase()),
    }
}

/// Counts what passes through a service.
#[derive(Debug, Clone)]
pub struct Counting(pub Tally);

impl<S> Layer<S> for Counting {
    type Service = Counted<S>;

    fn layer(&self, inner: S) -> Counted<S> {
        Counted { inner, tally: self.0.clone() }
    }
}

/// A service whose requests are counted.
#[derive(Debug, Clone)]
pub struct Counted<S> {
    inner: S,
    tally: Tally,
}

impl<S, B, R> Service<Request<B>> for Counted<S>
where
    S: Service<Request<B>, Response = Response<R>>,
    S::Future: Send + 'static,
    S::Error: Into<BoxError>,
{
    type Response = Response<CountedBody<R>>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Self::Response, BoxError>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(context).map_err(Into::into)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let kind = kind_of(request.method(), request.uri());
        let tally = self.tally.clone();
        let begun = Instant::now();
        let answer = self.inner.call(request);
        Box::pin(async move {
            let answer = answer.await.map_err(Into::into);
            let failed = answer.as_ref().map_or(true, |answer| answer.status().as_u16() >= 400);
            let waited = begun.elapsed();
            tally.count(&kind, |count| {
                count.requests += 1;
                count.failed += u64::from(failed);
                count.waited += waited;
                count.longest = count.longest.max(waited);
            });
            Ok(answer?.map(|body| CountedBody { inner: Box::pin(body), kind, tally }))
        })
    }
}

/// A body whose bytes are counted as they come.
#[derive(Debug)]
pub struct CountedBody<B> {
    inner: Pin<Box<B>>,
    kind: String,
    tally: Tally,
}

impl<B: Body<Data = Bytes>> Body for CountedBody<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let frame = self.inner.as_mut().poll_frame(context);
        if let Poll::Ready(Some(Ok(frame))) = &frame
            && let Some(data) = frame.data_ref()
        {
            let length = data.len() as u64;
            self.tally.count(&self.kind, |count| count.bytes += length);
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case("GET", "/api/v1/pods?limit=500", "list pods")]
    #[case("GET", "/api/v1/namespaces/a/pods?watch=true&x=y", "watch pods")]
    #[case("GET", "/api/v1/namespaces/a/pods/b/log", "get pods/log")]
    #[case("GET", "/api/v1/namespaces/a/pods/b:1/proxy/metrics", "get pods/proxy")]
    #[case("GET", "/apis/apps/v1/deployments", "list deployments")]
    #[case("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", "post selfsubjectaccessreviews")]
    #[case("GET", "/api/v1/namespaces", "list namespaces")]
    #[case("GET", "/apis", "get discovery")]
    #[case("GET", "/version", "get discovery")]
    fn kinds(#[case] method: &str, #[case] uri: &str, #[case] wanted: &str) {
        assert_eq!(kind_of(&method.parse().unwrap(), &uri.parse().unwrap()), wanted);
    }

    #[test]
    fn the_counts_are_bounded() {
        let tally = Tally::default();
        for n in 0..2 * MAX_KINDS {
            tally.count(&n.to_string(), |count| count.requests += 1);
        }
        let counts = tally.counts();
        assert_eq!(counts.len(), MAX_KINDS + 1);
        assert_eq!(counts["other"].requests, MAX_KINDS as u64);
    }
}
