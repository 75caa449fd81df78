//! Faults between a client and an API, embedded or real: scripted, and seeded so that a run can be repeated.
//!
//! Owns a `tower` service that stands before another. Must not know what is behind it: it sees requests, answers and lines.

mod lines;

use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Request, Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};
use tower::Service;

use super::api::status::ApiError;
use super::ids::Ids;

/// What can go wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// The answer comes later.
    Delay(Duration),
    /// The request never arrives; the answer is this code. 409, 410, 429 and 5xx come as Kubernetes words them.
    Refuse(u16),
    /// The request takes effect; its answer is lost.
    LoseAnswer,
    /// The connection ends after so many lines of a watch.
    Cut(u32),
    /// Each line of a watch comes so much later.
    Slow(Duration),
    /// A watch tells 410 in its stream after so many lines.
    Expire(u32),
    /// Every so many lines of a watch one is left out.
    Drop(u32),
    /// Of two changes of the same object that come together only the last is told.
    Merge,
    /// Every so many lines of a watch one comes twice.
    Repeat(u32),
    /// Every so many lines of a watch an old one comes again.
    Stale(u32),
}

/// When a fault strikes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// Only such methods; empty for all.
    pub method: String,
    /// Only paths with queries that contain this; empty for all.
    pub contains: String,
    /// Of a thousand such requests.
    pub per_mille: u64,
    /// At most so often; `None` without bound.
    pub times: Option<u32>,
    /// What happens.
    pub fault: Fault,
}

impl Rule {
    /// A rule for requests whose path and query contain a text, always.
    pub fn on(contains: impl Into<String>, fault: Fault) -> Self {
        Self { method: String::new(), contains: contains.into(), per_mille: 1000, times: None, fault }
    }

    /// The same for so many of a thousand.
    #[must_use]
    pub fn chance(self, per_mille: u64) -> Self {
        Self { per_mille, ..self }
    }

    /// The same at most so often.
    #[must_use]
    pub fn times(self, times: u32) -> Self {
        Self { times: Some(times), ..self }
    }

    /// The same for one method.
    #[must_use]
    pub fn method(self, method: impl Into<String>) -> Self {
        Self { method: method.into(), ..self }
    }
}

/// What was done to whom, for tests that want to know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Struck {
    /// Method, path and query.
    pub request: String,
    /// What happened.
    pub fault: Fault,
}

#[derive(Debug)]
struct Script {
    rules: Vec<Rule>,
    dice: Ids,
    struck: Vec<Struck>,
}

/// The most strikes that are remembered.
const REMEMBERED: usize = 10_000;

/// The faults before one API; clones share script, dice and memory.
#[derive(Debug, Clone)]
pub struct Faults {
    script: Arc<Mutex<Script>>,
}

impl Faults {
    /// From a seed and rules; the rules are asked in order, and all that strike do.
    pub fn new(seed: u64, rules: Vec<Rule>) -> Self {
        Self { script: Arc::new(Mutex::new(Script { rules, dice: Ids::new(seed), struck: Vec::new() })) }
    }

    fn script(&self) -> std::sync::MutexGuard<'_, Script> {
        self.script.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Other rules from now on; none heals everything.
    pub fn set(&self, rules: Vec<Rule>) {
        self.script().rules = rules;
    }

    /// What was done so far.
    pub fn struck(&self) -> Vec<Struck> {
        self.script().struck.clone()
    }

    /// Stands before a service.
    pub fn before<S>(&self, service: S) -> Faulty<S> {
        Faulty { faults: self.clone(), service }
    }

    fn strike(&self, method: &str, path: &str) -> Vec<Fault> {
        let mut script = self.script();
        let script = &mut *script;
        let mut chosen = Vec::new();
        for rule in &mut script.rules {
            let meant = (rule.method.is_empty() || rule.method == method) && path.contains(&rule.contains) && rule.times != Some(0);
            if meant && script.dice.below(1000) < rule.per_mille {
                rule.times = rule.times.map(|t| t - 1);
                chosen.push(rule.fault.clone());
            }
        }
        for fault in &chosen {
            if script.struck.len() < REMEMBERED {
                script.struck.push(Struck { request: format!("{method} {path}"), fault: fault.clone() });
            }
        }
        chosen
    }
}

/// Why a request failed on its way.
#[derive(Debug, thiserror::Error)]
pub enum FaultError {
    /// The connection broke.
    #[error("the connection was cut before the answer came")]
    Lost,
    /// What stands behind failed.
    #[error("{0}")]
    Behind(String),
}

/// A service with faults before it.
#[derive(Debug, Clone)]
pub struct Faulty<S> {
    faults: Faults,
    service: S,
}

/// What it answers with.
pub type Body = UnsyncBoxBody<Bytes, FaultError>;

impl<S, B, A> Service<Request<B>> for Faulty<S>
where
    S: Service<Request<B>, Response = Response<A>> + Clone + Send + 'static,
    S::Future: Send,
    S::Error: std::fmt::Display,
    B: Send + 'static,
    A: http_body::Body<Data = Bytes> + Send + 'static,
    A::Error: std::fmt::Display,
{
    type Response = Response<Body>;
    type Error = FaultError;
    type Future = BoxFuture<'static, Result<Response<Body>, FaultError>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), FaultError>> {
        self.service.poll_ready(context).map_err(|error| FaultError::Behind(error.to_string()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let path = request.uri().path_and_query().map(ToString::to_string).unwrap_or_default();
        let struck = self.faults.strike(request.method().as_str(), &path);
        // The service that is ready is the one to call.
        let fresh = self.service.clone();
        let mut service = std::mem::replace(&mut self.service, fresh);
        Box::pin(async move {
            for fault in &struck {
                match fault {
                    Fault::Delay(time) => tokio::time::sleep(*time).await,
                    Fault::Refuse(code) => return Ok(refusal(*code)),
                    _ => {}
                }
            }
            let answer = service.call(request).await.map_err(|error| FaultError::Behind(error.to_string()))?;
            if struck.contains(&Fault::LoseAnswer) {
                return Err(FaultError::Lost);
            }
            let watches = path.contains("watch=");
            Ok(answer.map(|body| {
                let body = body.map_err(|error| FaultError::Behind(error.to_string())).boxed_unsync();
                let faults: Vec<Fault> =
                    struck.into_iter().filter(|f| !matches!(f, Fault::Delay(_) | Fault::Refuse(_) | Fault::LoseAnswer)).collect();
                if watches && !faults.is_empty() { lines::disturb(body, faults) } else { body }
            }))
        })
    }
}

fn refusal(code: u16) -> Response<Body> {
    let error = match code {
        409 => ApiError::new(
            409,
            "Conflict",
            "Operation cannot be fulfilled: the object has been modified; please apply your changes to the latest version and try again",
        ),
        410 => ApiError::expired("The provided continue parameter is too old to display a consistent list result."),
        429 => ApiError::too_many_requests("the server has received too many requests and has asked us to try again later", 1),
        503 => ApiError::new(503, "ServiceUnavailable", "the server is currently unable to handle the request"),
        504 => ApiError::new(504, "Timeout", "the server was unable to return a response in the time allotted"),
        code => ApiError::new(code, "InternalError", "an error on the server has prevented the request from succeeding"),
    };
    let text = error.to_value().to_string();
    let body = Full::new(Bytes::from(text)).map_err(|never| match never {}).boxed_unsync();
    let mut response = Response::new(body);
    *response.status_mut() = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    if let Ok(value) = http::HeaderValue::from_str("application/json") {
        response.headers_mut().insert("content-type", value);
    }
    if let Some(seconds) = error.retry_after.and_then(|s| http::HeaderValue::from_str(&s.to_string()).ok()) {
        response.headers_mut().insert("retry-after", seconds);
    }
    response
}
