//! The one way in which anybody here asks the API server: with a client that logs in again when it must, and in a time that ends.
//!
//! Owns sessions: a credential that ended, a file that changed or a 401 make a new one, once, for all who ask, and no more often than
//! [`COOLDOWN`] allows. Must not repeat a request on its own: who asks knows whether that makes sense.

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use http::{Request, Response, StatusCode};
use http_body_util::BodyExt;
use kube::client::Body;
use serde_json::Value;
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::clock::Clock;
use super::guard::Refused;
use super::login::{LoginError, Session};
use super::tally::Tally;
use crate::model::text;

/// Least time between two logins that failed, and between two that a 401 asked for.
pub const COOLDOWN: Duration = Duration::from_secs(10);
/// How long before its end a credential is renewed.
const EARLY_S: i64 = 30;
/// How often the files of a kubeconfig are looked at.
const LOOK: Duration = Duration::from_secs(10);
/// How long an answer may take to begin.
pub const PATIENCE: Duration = Duration::from_secs(60);
/// Most bytes of an answer that is taken whole.
const MAX_WHOLE: usize = 16 << 20;

/// How to log in; called again for every new session.
pub type Login = Arc<dyn Fn() -> BoxFuture<'static, Result<Session, LoginError>> + Send + Sync>;

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AskError {
    /// There is no session, and there will be none before somebody logs in or the plugin works again.
    #[error("login needed: {0}")]
    Login(String),
    /// The request would have had an effect.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// The connection failed.
    #[error("the API server cannot be reached: {0}")]
    Unreachable(String),
    /// No answer began in time.
    #[error("the API server did not answer within {0} s")]
    Silent(u64),
    /// It answered that it can not or will not.
    #[error("{}", status_words(*.code, .message))]
    Status {
        /// HTTP status.
        code: u16,
        /// `message` of the Status object, or the body's beginning.
        message: String,
        /// `Retry-After`, seconds.
        retry_after: Option<u64>,
    },
    /// The answer is not what was asked for.
    #[error("the API server's answer cannot be read: {0}")]
    Unreadable(String),
}

fn status_words(code: u16, message: &str) -> String {
    if message.is_empty() { format!("the API server answered {code}") } else { format!("the API server answered {code}: {message}") }
}

impl AskError {
    /// The HTTP status, where the server answered with one.
    pub fn code(&self) -> Option<u16> {
        match self {
            Self::Status { code, .. } => Some(*code),
            _ => None,
        }
    }
}

struct State {
    session: Option<Session>,
    /// Grows with every session.
    number: u64,
    /// When a login was last tried.
    tried: Option<Instant>,
    looked: Instant,
    /// Why the last login failed.
    failure: Option<String>,
}

struct Inner {
    login: Login,
    state: Mutex<State>,
    clock: Clock,
    tally: Tally,
}

/// Asks the API server. Clones share everything.
#[derive(Clone)]
pub struct Access {
    inner: Arc<Inner>,
}

impl Access {
    /// A way in that logs in when it is first asked.
    pub fn new(login: Login, clock: Clock, tally: Tally) -> Self {
        let state = State { session: None, number: 0, tried: None, looked: Instant::now(), failure: None };
        Self { inner: Arc::new(Inner { login, state: Mutex::new(state), clock, tally }) }
    }

    /// A way in over one session that never changes.
    pub fn over(session: Session, clock: Clock, tally: Tally) -> Self {
        Self::new(Arc::new(move || Box::pin(std::future::ready(Ok(session.clone())))), clock, tally)
    }

    /// The clock.
    pub fn clock(&self) -> &Clock {
        &self.inner.clock
    }

    /// What was asked so far.
    pub fn tally(&self) -> &Tally {
        &self.inner.tally
    }

    /// The session that is asked with now; logs in where there is none.
    ///
    /// # Errors
    /// [`AskError::Login`] with the words of what failed.
    pub async fn session(&self) -> Result<Session, AskError> {
        self.current().await.map(|(session, _)| session)
    }

    async fn current(&self) -> Result<(Session, u64), AskError> {
        let mut state = self.inner.state.lock().await;
        if let Some(session) = &state.session {
            let ends = session.valid_until.is_some_and(|end| end.duration_since(self.inner.clock.now()).as_secs() < EARLY_S);
            let look = state.looked.elapsed() >= LOOK;
            let outdated = look && session.is_outdated();
            if look {
                state.looked = Instant::now();
            }
            if outdated || ends {
                state.session = None;
            }
        }
        if let Some(session) = &state.session {
            return Ok((session.clone(), state.number));
        }
        if let Some(failure) = state.failure.clone().filter(|_| state.tried.is_some_and(|tried| tried.elapsed() < COOLDOWN)) {
            return Err(AskError::Login(failure));
        }
        state.tried = Some(Instant::now());
        match (self.inner.login)().await {
            Ok(session) => {
                state.failure = None;
                state.looked = Instant::now();
                state.number += 1;
                state.session = Some(session.clone());
                Ok((session, state.number))
            }
            Err(error) => {
                let words = text::tidy(&error.to_string());
                state.failure = Some(words.clone());
                Err(AskError::Login(words))
            }
        }
    }

    /// The server does not know us: the next who asks logs in again, unless somebody did meanwhile or just now.
    async fn refused(&self, number: u64, message: &str) {
        let mut state = self.inner.state.lock().await;
        if state.number != number {
            return;
        }
        state.session = None;
        if state.tried.is_some_and(|tried| tried.elapsed() < COOLDOWN) {
            state.failure = Some(format!("the API server does not know who asks ({message}); log in again, it is tried every 10 s"));
        }
    }

    /// Sends a request and gives the answer as soon as it begins. Statuses of 400 and more are errors.
    ///
    /// # Errors
    /// See [`AskError`].
    pub async fn open(&self, request: Request<Vec<u8>>, patience: Duration) -> Result<Response<Body>, AskError> {
        let (session, number) = self.current().await?;
        let request = request.map(Body::from);
        let answer = match tokio::time::timeout(patience, session.client.send(request)).await {
            Err(_) => return Err(AskError::Silent(patience.as_secs())),
            Ok(Err(error)) => return Err(unreachable(&error)),
            Ok(Ok(answer)) => answer,
        };
        if let Some(date) = answer.headers().get(http::header::DATE).and_then(|date| date.to_str().ok()) {
            self.inner.clock.heard(date);
        }
        let status = answer.status();
        if status.as_u16() < 400 {
            return Ok(answer);
        }
        let retry_after = answer.headers().get(http::header::RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse().ok());
        let body = tokio::time::timeout(patience, whole(answer.into_body(), 1 << 20)).await.ok().and_then(Result::ok).unwrap_or_default();
        let message = match serde_json::from_slice::<Value>(&body) {
            Ok(body) => body.get("message").and_then(Value::as_str).unwrap_or_default().to_owned(),
            Err(_) => String::from_utf8_lossy(&body).chars().take(200).collect(),
        };
        let message = text::tidy(message.trim());
        if status == StatusCode::UNAUTHORIZED {
            self.refused(number, &message).await;
        }
        Err(AskError::Status { code: status.as_u16(), message, retry_after })
    }

    /// Sends a GET and takes its whole answer.
    ///
    /// # Errors
    /// See [`AskError`].
    pub async fn get(&self, path: &str) -> Result<Vec<u8>, AskError> {
        let request = Request::get(path).header(http::header::ACCEPT, "application/json").body(Vec::new());
        self.ask(request.map_err(|error| AskError::Unreadable(error.to_string()))?).await
    }

    /// Sends a request and takes its whole answer.
    ///
    /// # Errors
    /// See [`AskError`].
    pub async fn ask(&self, request: Request<Vec<u8>>) -> Result<Vec<u8>, AskError> {
        let answer = self.open(request, PATIENCE).await?;
        match tokio::time::timeout(PATIENCE, whole(answer.into_body(), MAX_WHOLE)).await {
            Err(_) => Err(AskError::Silent(PATIENCE.as_secs())),
            Ok(taken) => taken.map_err(AskError::Unreachable),
        }
    }

    /// Sends a GET and reads its answer as JSON.
    ///
    /// # Errors
    /// See [`AskError`].
    pub async fn json(&self, path: &str) -> Result<Value, AskError> {
        let bytes = self.get(path).await?;
        serde_json::from_slice(&bytes).map_err(|error| AskError::Unreadable(error.to_string()))
    }
}

/// A body as a whole, up to a number of bytes.
async fn whole(mut body: Body, most: usize) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(|error| words(&error))?.into_data() else { continue };
        if bytes.len() + data.len() > most {
            return Err(format!("the answer has more than {most} bytes"));
        }
        bytes.extend_from_slice(&data);
    }
    Ok(bytes)
}

/// The words of an error and of what is below it.
pub(super) fn words(error: &(dyn std::error::Error + 'static)) -> String {
    let mut deepest = error;
    let mut all = vec![error.to_string()];
    while let Some(inner) = deepest.source() {
        deepest = inner;
        let more = inner.to_string();
        if !all.iter().any(|said| said.contains(&more)) {
            all.push(more);
        }
    }
    text::tidy(&all.join(": "))
}

fn unreachable(error: &kube::Error) -> AskError {
    let mut at: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(inner) = at {
        if let Some(refused) = inner.downcast_ref::<Refused>() {
            return AskError::Refused(refused.clone());
        }
        at = inner.source();
    }
    // kube's own errors wrap: what went wrong stands at the bottom.
    AskError::Unreachable(words(error))
}
