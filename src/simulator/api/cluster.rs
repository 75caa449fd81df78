//! The embedded cluster as a service: one value that answers requests, in process or behind a socket.
//!
//! Owns the way of a request: who asks, whether they may, which verb serves it, how the answer is written. Must not know sockets.

use std::convert::Infallible;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt;
use futures::future::BoxFuture;
use http::{HeaderMap, Request, Response, header};
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::answer::{Body, failure, header_of, json_response, object_answer, read, set, text_response};
use super::auth::tokens::Known;
use super::auth::{Attributes, User, authorize, forbidden, reviews};
use super::house::House;
use super::http::{Accept, Asked, Query, asked, body};
use super::kinds::text;
use super::registry::Resource;
use super::state::State;
use super::status::{ApiError, ApiResult, GroupResource};
use super::subresources::{self, backends};
use super::verbs::{Answer, Call, Served, create, delete, list, patch, update, watch};
use super::{discovery, furniture};
use crate::simulator::clock::{Clock, seconds};

/// How long the past is kept for watches and snapshots, as etcd's compaction keeps it.
const PAST: SignedDuration = SignedDuration::from_mins(5);

/// How long the house waits after a change, so that it sees several at once.
const HOUSE_DELAY: Duration = Duration::from_millis(20);

/// What a cluster is made with.
#[derive(Clone)]
pub struct Options {
    /// The seed of all uids and names.
    pub seed: u64,
    /// How many changes of each resource are kept for watches and snapshots.
    pub keep: usize,
    /// The time at which it starts.
    pub start: Timestamp,
    /// Who somebody without credentials is; `None` is nobody.
    pub default_user: Option<User>,
    /// With roles, namespaces and the rest that every cluster has; without them only members of `system:masters` may do anything.
    pub furnished: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { seed: 1, keep: 10_000, start: Timestamp::UNIX_EPOCH, default_user: None, furnished: true }
    }
}

/// Who a connection proved to be, as an extension of its requests.
#[derive(Debug, Clone)]
pub struct Peer(pub User);

/// What all handles share.
pub struct Shared {
    state: Mutex<State>,
    clock: Clock,
    default_user: Option<User>,
    stir: tokio::sync::Notify,
    backend: Mutex<Option<Arc<dyn backends::Backend>>>,
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").field("clock", &self.clock).finish_non_exhaustive()
    }
}

impl Shared {
    /// The state, at the time that it is now. Nothing may wait while it is held.
    pub fn state(&self) -> MutexGuard<'_, State> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.now = self.clock.now();
        state
    }

    /// The clock.
    pub fn clock(&self) -> Clock {
        self.clock
    }
}

/// A handle to a cluster; clones are the same cluster.
#[derive(Debug, Clone)]
pub struct Cluster {
    shared: Arc<Shared>,
    user: Option<User>,
}

impl Cluster {
    /// Opens a cluster and starts its house. Must be called on a tokio runtime; the house ends with the last handle.
    pub fn open(options: Options) -> Self {
        let clock = Clock::starting_at(options.start);
        let mut state = State::new(options.seed, options.keep, clock.now());
        if options.furnished {
            furniture::put_in(&mut state);
        }
        let shared = Arc::new(Shared {
            state: Mutex::new(state),
            clock,
            default_user: options.default_user,
            stir: tokio::sync::Notify::new(),
            backend: Mutex::new(None),
        });
        let mut house = House::default();
        while house.pass(&mut shared.state()) {}
        let weak = Arc::downgrade(&shared);
        tokio::spawn(async move {
            loop {
                let Some(shared) = weak.upgrade() else { return };
                // A second is the longest that a dropped cluster is kept by its house.
                let stirred = tokio::time::timeout(Duration::from_secs(1), shared.stir.notified()).await.is_ok();
                {
                    let mut state = shared.state();
                    if let Ok(then) = state.now.checked_sub(PAST) {
                        state.store.compact_before(then);
                    }
                }
                if !stirred {
                    continue;
                }
                tokio::time::sleep(HOUSE_DELAY).await;
                while house.pass(&mut shared.state()) {}
            }
        });
        Self { shared, user: None }
    }

    /// The same cluster for somebody who needs no credentials.
    pub fn as_user(&self, user: User) -> Self {
        Self { shared: self.shared.clone(), user: Some(user) }
    }

    /// From now on `token` is `user`.
    pub fn add_token(&self, token: impl Into<String>, user: User) {
        self.shared.state().tokens.add(token, user);
    }

    /// What answers behind pods.
    pub fn set_backend(&self, backend: Arc<dyn backends::Backend>) {
        *self.shared.backend.lock().unwrap_or_else(PoisonError::into_inner) = Some(backend);
    }

    /// Changes the state directly, as a controller inside of the cluster does.
    pub fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let result = change(&mut self.shared.state());
        self.shared.stir.notify_one();
        result
    }

    /// What all handles share.
    pub fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// Answers one request.
    pub async fn answer<B>(self, request: Request<B>) -> Response<Body>
    where
        B: http_body::Body<Data = Bytes> + Send,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        match self.serve(request).await {
            Ok(response) => response,
            Err(error) => failure(&error),
        }
    }

    async fn serve<B>(&self, request: Request<B>) -> ApiResult<Response<Body>>
    where
        B: http_body::Body<Data = Bytes> + Send,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let (parts, incoming) = request.into_parts();
        let query = Query::parse(parts.uri.query().unwrap_or_default());
        let mut asked = asked(parts.method.as_str(), parts.uri.path(), &query);
        let user = self.who(&parts.headers, parts.extensions.get::<Peer>())?;
        let user = self.impersonated(user, &parts.headers, &asked)?;
        self.may(&user, &asked)?;
        let accept = Accept::parse(header_of(&parts.headers, header::ACCEPT.as_str()))?;
        let Some(target) = asked.target.take() else {
            return self.plain(parts.method.as_str(), &asked, &accept, header_of(&parts.headers, "host"));
        };
        let found = {
            let state = self.shared.state();
            if !state.registry.versions().iter().any(|v| v.group == target.group) {
                return Ok(text_response(404, "404 page not found\n"));
            }
            state.registry.resource(&target.group, &target.version, &target.resource).cloned()
        };
        let resource = found.ok_or_else(ApiError::no_such_resource)?;
        if resource.namespaced && target.namespace.is_empty() && !target.name.is_empty() && query.get("fieldSelector").is_empty() {
            return Err(ApiError::no_such_resource());
        }
        let body = match asked.verb.as_str() {
            "get" | "list" | "watch" => Bytes::new(),
            _ => read(incoming).await?,
        };
        let call = Call {
            user,
            verb: asked.verb.clone(),
            target,
            query,
            accept,
            content_type: header_of(&parts.headers, header::CONTENT_TYPE.as_str()).to_owned(),
            body,
            agent: header_of(&parts.headers, header::USER_AGENT.as_str()).to_owned(),
        };
        self.dispatch(call, &resource, &parts).await
    }

    async fn dispatch(&self, call: Call, resource: &Served, parts: &http::request::Parts) -> ApiResult<Response<Body>> {
        if !call.target.subresource.is_empty() {
            let sub = resource.subresources.get(&call.target.subresource).cloned().ok_or_else(ApiError::no_such_resource)?;
            return match call.target.subresource.as_str() {
                "log" => self.log(&call, resource).await,
                "proxy" => self.proxy(&call, resource, parts).await,
                "portforward" => {
                    let (pod, backend) = self.behind(&call, &call.target.name)?;
                    let upgrade = parts.extensions.get::<hyper::upgrade::OnUpgrade>().cloned();
                    subresources::forward::begin(upgrade, &parts.headers, &call.query, pod, backend)
                }
                "exec" | "attach" => Err(ApiError::bad_request("unable to upgrade: no stream protocol is served here; ask over WebSocket")),
                _ => self.written(&call, resource, |state| subresources::serve(state, &call, resource, &sub)),
            };
        }
        if let Some(answer) = self.review(&call, resource)? {
            return Ok(object_answer(&call, resource, answer, self.shared.clock.now()));
        }
        if !resource.verbs.contains(&call.verb) {
            return Err(subresources::not_allowed());
        }
        match call.verb.as_str() {
            "get" => {
                let answer = list::get(&self.shared.state(), &call, resource)?;
                Ok(object_answer(&call, resource, answer, self.shared.clock.now()))
            }
            "list" => {
                let bytes = list::list(&self.shared.state(), &call, resource)?;
                Ok(json_response(200, bytes.into()))
            }
            "watch" => {
                let watching = watch::begin(&self.shared, &mut self.shared.state(), &call, resource)?;
                let frames = watching.stream().map(|lines| Ok::<_, Infallible>(Frame::data(lines)));
                let mut response = Response::new(StreamBody::new(frames).boxed_unsync());
                set(&mut response, "content-type", "application/json");
                Ok(response)
            }
            "create" if call.target.name.is_empty() => self.written(&call, resource, |state| create::create(state, &call, resource)),
            "update" | "patch" if call.target.name.is_empty() => Err(subresources::not_allowed()),
            "update" => self.written(&call, resource, |state| update::update(state, &call, resource)),
            "patch" => self.written(&call, resource, |state| patch::patch(state, &call, resource)),
            "delete" => self.written(&call, resource, |state| delete::delete(state, &call, resource)),
            "deletecollection" => self.written(&call, resource, |state| delete::collection(state, &call, resource)),
            _ => Err(subresources::not_allowed()),
        }
    }

    fn written(&self, call: &Call, resource: &Served, write: impl FnOnce(&mut State) -> ApiResult<Answer>) -> ApiResult<Response<Body>> {
        let answer = write(&mut self.shared.state());
        self.shared.stir.notify_one();
        Ok(object_answer(call, resource, answer?, self.shared.clock.now()))
    }

    fn who(&self, headers: &HeaderMap, peer: Option<&Peer>) -> ApiResult<User> {
        let given = header_of(headers, header::AUTHORIZATION.as_str());
        let token = given.split_once(' ').filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer")).map(|(_, token)| token.trim());
        if let Some(token) = token {
            let state = self.shared.state();
            return match state.tokens.look_up(token, state.now) {
                Some(Known::User(user)) => Ok(user),
                Some(Known::Account(account)) => {
                    let (namespace, name, uid) = &account.account;
                    let found = state.get(&GroupResource::new("", "serviceaccounts"), namespace, name);
                    let same = found.is_some_and(|a| text(&a, &["metadata", "uid"]) == uid);
                    let for_us = account.audiences.iter().any(|a| a == super::auth::tokens::AUDIENCE);
                    if same && for_us { Ok(account.user) } else { Err(ApiError::unauthorized()) }
                }
                None => Err(ApiError::unauthorized()),
            };
        }
        if !given.is_empty() {
            return Err(ApiError::unauthorized());
        }
        let known = peer.map(|p| p.0.clone()).or_else(|| self.user.clone()).or_else(|| self.shared.default_user.clone());
        Ok(known.unwrap_or_else(User::anonymous))
    }

    fn impersonated(&self, user: User, headers: &HeaderMap, what: &Asked) -> ApiResult<User> {
        let name = header_of(headers, "impersonate-user");
        let groups: Vec<&str> = headers.get_all("impersonate-group").iter().filter_map(|v| v.to_str().ok()).collect();
        let uid = header_of(headers, "impersonate-uid");
        if name.is_empty() {
            return match groups.is_empty() && uid.is_empty() {
                true => Ok(user),
                false => {
                    let groups = groups.iter().map(|g| format!("{g:?}")).collect::<Vec<_>>().join(", ");
                    Err(ApiError::bad_request(format!(
                        "requested &user.DefaultInfo{{Name:\"\", UID:{uid:?}, Groups:[]string{{{groups}}}, Extra:map[string][]string(nil)}} without impersonating a user name"
                    )))
                }
            };
        }
        let account = name.strip_prefix("system:serviceaccount:").and_then(|a| a.split_once(':'));
        let mut wanted = vec![match account {
            Some((namespace, name)) => ("serviceaccounts", namespace, name, ""),
            None => ("users", "", name, ""),
        }];
        wanted.extend(groups.iter().map(|g| ("groups", "", *g, "")));
        if !uid.is_empty() {
            wanted.push(("uids", "", uid, "authentication.k8s.io"));
        }
        let state = self.shared.state();
        for (resource, namespace, name, group) in wanted {
            let asked = Attributes {
                verb: "impersonate".into(),
                group: group.into(),
                resource: resource.into(),
                namespace: namespace.into(),
                name: name.into(),
                ..Attributes::default()
            };
            if authorize(&state.store, &user, &asked).is_err() {
                // Since 1.36 the refusal names the right to do this one thing in another's name.
                let mode = if account.is_some() { "serviceaccount" } else { "user-info" };
                let mut wanted = attributes(what);
                wanted.verb = format!("impersonate-on:{mode}:{}", wanted.verb);
                return Err(forbidden(&user, &wanted, ""));
            }
        }
        let mut new = User { name: name.to_owned(), uid: uid.to_owned(), ..User::default() };
        new.groups = groups.iter().map(|g| (*g).to_owned()).collect();
        if let Some((namespace, _)) = account.filter(|_| groups.is_empty()) {
            new.groups.extend(["system:serviceaccounts".to_owned(), format!("system:serviceaccounts:{namespace}")]);
        }
        let implied = if name == "system:anonymous" { "system:unauthenticated" } else { "system:authenticated" };
        if !new.groups.iter().any(|g| g == implied) {
            new.groups.push(implied.to_owned());
        }
        Ok(new)
    }

    fn may(&self, user: &User, asked: &Asked) -> ApiResult<()> {
        let attributes = attributes(asked);
        let state = self.shared.state();
        authorize(&state.store, user, &attributes).map_err(|reason| forbidden(user, &attributes, &reason))
    }

    /// Answers what is asked of nobody's objects: reviews.
    fn review(&self, call: &Call, resource: &Resource) -> ApiResult<Option<Answer>> {
        let group = resource.gr.group.as_str();
        if !matches!(group, "authorization.k8s.io" | "authentication.k8s.io") {
            return Ok(None);
        }
        if call.verb != "create" {
            return Err(subresources::not_allowed());
        }
        let mut review = body::object(&call.content_type, &call.body, &resource.kind)?;
        super::verbs::decode::check_kind(resource, &mut review)?;
        if review.get("metadata").is_none() {
            review["metadata"] = json!({});
        }
        let state = self.shared.state();
        let object = match resource.gr.resource.as_str() {
            "selfsubjectaccessreviews" => reviews::access(&state.store, &call.user, review, true),
            "subjectaccessreviews" | "localsubjectaccessreviews" => reviews::access(&state.store, &call.user, review, false),
            "selfsubjectrulesreviews" => reviews::rules(&state.store, &call.user, review),
            "selfsubjectreviews" => reviews::myself(&call.user, review, &seconds(state.now)),
            "tokenreviews" => {
                let token = text(&review, &["spec", "token"]).to_owned();
                let known = state.tokens.look_up(&token, state.now);
                review["status"] = match known {
                    Some(Known::User(user)) => {
                        json!({"authenticated": true, "user": user.to_value(), "audiences": [super::auth::tokens::AUDIENCE]})
                    }
                    Some(Known::Account(a)) => json!({"authenticated": true, "user": a.user.to_value(), "audiences": a.audiences}),
                    None => json!({"user": {}, "error": "[invalid bearer token]"}),
                };
                review
            }
            _ => return Ok(None),
        };
        Ok(Some(Answer { code: 201, object, warnings: Vec::new() }))
    }

    fn plain(&self, method: &str, asked: &Asked, accept: &Accept, host: &str) -> ApiResult<Response<Body>> {
        if !matches!(method, "GET" | "HEAD") {
            return Err(subresources::not_allowed());
        }
        let parts: Vec<&str> = asked.path.trim_matches('/').split('/').collect();
        let state = self.shared.state();
        let registry = &state.registry;
        let found = match (parts.as_slice(), accept.discovery()) {
            (["api" | "apis"], Some(version)) => {
                let document = discovery::aggregated(registry, parts == ["api"], version);
                let mut response = json_response(200, document.to_string().into());
                let media = format!("application/json;g=apidiscovery.k8s.io;v={version};as=APIGroupDiscoveryList");
                set(&mut response, "content-type", &media);
                return Ok(response);
            }
            (["api"], None) => Some(discovery::api(host)),
            (["apis"], None) => Some(discovery::apis(registry)),
            (["api", version], _) => discovery::resources(registry, "", version),
            (["apis", group], _) => discovery::one_group(registry, group),
            (["apis", group, version], _) => discovery::resources(registry, group, version),
            (["version"], _) => Some(discovery::version()),
            (["openapi", "v3"], _) => Some(discovery::openapi_index(registry)),
            (["openapi", "v3", "api", version], _) => discovery::openapi(registry, "", version),
            (["openapi", "v3", "apis", group, version], _) => discovery::openapi(registry, group, version),
            (["healthz" | "livez" | "readyz", ..], _) => return Ok(text_response(200, "ok")),
            ([""], _) => {
                let mut paths = vec!["/api".to_owned(), "/api/v1".to_owned(), "/apis".to_owned()];
                paths
                    .extend(registry.versions().iter().filter(|v| !v.group.is_empty()).map(|v| format!("/apis/{}/{}", v.group, v.version)));
                paths.extend(["/healthz", "/livez", "/openapi/v3", "/readyz", "/version"].map(str::to_owned));
                Some(json!({ "paths": paths }))
            }
            _ => None,
        };
        match found {
            Some(document) => Ok(json_response(200, document.to_string().into())),
            None if matches!(parts.as_slice(), ["apis", group, _] if registry.versions().iter().any(|v| v.group == *group)) => {
                Err(ApiError::no_such_resource())
            }
            None => Ok(text_response(404, "404 page not found\n")),
        }
    }

    fn behind(&self, call: &Call, name: &str) -> ApiResult<(Arc<Value>, Arc<dyn backends::Backend>)> {
        let pods = GroupResource::new("", "pods");
        let Some(pod) = self.shared.state().get(&pods, &call.target.namespace, name) else {
            return Err(ApiError::not_found(&pods, name));
        };
        if text(&pod, &["spec", "nodeName"]).is_empty() {
            return Err(ApiError::bad_request(format!("pod {name} does not have a host assigned")));
        }
        let backend = self.shared.backend.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let nobody = || ApiError::internal(format!("dial tcp: nothing answers on the node of pod {name:?}"));
        Ok((pod, backend.ok_or_else(nobody)?))
    }

    async fn log(&self, call: &Call, _resource: &Served) -> ApiResult<Response<Body>> {
        let pods = GroupResource::new("", "pods");
        let Some(pod) = self.shared.state().get(&pods, &call.target.namespace, &call.target.name) else {
            return Err(ApiError::not_found(&pods, &call.target.name));
        };
        let options = backends::log_options(&pod, &call.query)?;
        if text(&pod, &["spec", "nodeName"]).is_empty() {
            // The real server answers a log of a pod without a node with nothing.
            return Ok(text_response(200, ""));
        }
        let (pod, backend) = self.behind(call, &call.target.name)?;
        let stream = backend.log(pod, options).await?;
        let mut response = Response::new(StreamBody::new(stream.map(|b| Ok::<_, Infallible>(Frame::data(b)))).boxed_unsync());
        set(&mut response, "content-type", "text/plain");
        Ok(response)
    }

    async fn proxy(&self, call: &Call, resource: &Served, parts: &http::request::Parts) -> ApiResult<Response<Body>> {
        if resource.gr.resource != "pods" {
            return Err(ApiError::new(
                503,
                "ServiceUnavailable",
                format!("no endpoints available for {} {:?}", resource.singular, call.target.name),
            ));
        }
        let (_, name, port) = backends::proxied(&call.target.name)?;
        let (pod, backend) = self.behind(call, &name)?;
        let port = port.or_else(|| {
            let ports = super::kinds::items(&pod, &["spec", "containers"]).iter().flat_map(|c| super::kinds::items(c, &["ports"]));
            ports.filter_map(|p| p.get("containerPort")?.as_u64()).next().and_then(|p| u16::try_from(p).ok())
        });
        let query = parts.uri.query().map(|q| format!("?{q}")).unwrap_or_default();
        let path = if call.target.tail.is_empty() { "/" } else { &call.target.tail };
        let mut request = Request::builder().method(parts.method.clone()).uri(format!("{path}{query}"));
        for (name, value) in &parts.headers {
            if !matches!(name.as_str(), "authorization" | "host" | "connection") {
                request = request.header(name, value);
            }
        }
        let request = request.body(call.body.clone()).map_err(ApiError::internal)?;
        let answer = backend.proxy(pod, port.unwrap_or(80), request).await?;
        Ok(answer.map(|stream| StreamBody::new(stream.map(|b| Ok::<_, Infallible>(Frame::data(b)))).boxed_unsync()))
    }
}

impl<B> tower::Service<Request<B>> for Cluster
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Response<Body>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let cluster = self.clone();
        Box::pin(async move { Ok(cluster.answer(request).await) })
    }
}

/// What the authorizer is asked.
fn attributes(asked: &Asked) -> Attributes {
    match &asked.target {
        Some(t) => Attributes {
            verb: asked.verb.clone(),
            group: t.group.clone(),
            resource: t.resource.clone(),
            subresource: t.subresource.clone(),
            namespace: t.namespace.clone(),
            name: t.name.clone(),
            path: String::new(),
        },
        None => Attributes { verb: asked.verb.clone(), path: asked.path.clone(), ..Attributes::default() },
    }
}
