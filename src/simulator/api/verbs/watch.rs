//! Watch: what changes, as it changes, in the form of a stream of JSON lines.
//!
//! Owns what each watcher still has to be told. Every failure after the start is told in the stream, 410 among them, as the real
//! server does.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::Stream;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::super::cluster::Shared;
use super::super::http::Shape;
use super::super::schema::normalise;
use super::super::state::State;
use super::super::status::{ApiError, ApiResult, Cause};
use super::super::store::{Change, Range, Since};
use super::super::table::{self, Include};
use super::list::Selection;
use super::{Call, Served, outgoing};

/// How often a watcher that wants bookmarks gets one.
const BOOKMARK_EVERY: Duration = Duration::from_secs(60);
/// The most changes that are read at once.
const BATCH: usize = 256;
/// How long a watch lasts when the client does not say, at least; as much again at most.
const SHORTEST: u64 = 1800;

/// One watch.
pub struct Watching {
    shared: Arc<Shared>,
    resource: Served,
    selection: Selection,
    shape: Shape,
    include: Include,
    /// All up to here was told.
    seen: u64,
    initial: VecDeque<Arc<Value>>,
    /// The bookmark that ends the initial events is still to come.
    ends_initial: bool,
    news: tokio::sync::watch::Receiver<u64>,
    bookmarks: bool,
    next_bookmark: Instant,
    deadline: Instant,
    head_told: bool,
    failure: Option<ApiError>,
    over: bool,
}

/// Begins a watch.
///
/// # Errors
/// Only what is wrong with the request itself; what comes later is told in the stream.
pub fn begin(shared: &Arc<Shared>, state: &mut State, call: &Call, resource: &Served) -> ApiResult<Watching> {
    let selection = Selection::of(call, resource)?;
    let query = &call.query;
    let initial = query.get("sendInitialEvents");
    let matching = query.get("resourceVersionMatch");
    let refuse = |cause: Cause| ApiError::invalid("meta.k8s.io", "ListOptions", "", &[cause]);
    if !initial.is_empty() && matching != "NotOlderThan" {
        let why = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan";
        return Err(refuse(Cause::forbidden("resourceVersionMatch", why)));
    }
    if initial.is_empty() && !matching.is_empty() {
        let why = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided";
        return Err(refuse(Cause::forbidden("resourceVersionMatch", why)));
    }
    let version = query.get("resourceVersion");
    let wanted: u64 = match version {
        "" => 0,
        text => text.parse().map_err(|_| {
            ApiError::new(500, "", format!("resourceVersion: Invalid value: {text:?}: strconv.ParseUint: parsing {text:?}: invalid syntax"))
        })?,
    };
    let stored = resource.stored();
    let newest = state.store.revision();
    let sends = initial == "true" || (initial.is_empty() && wanted == 0);
    let mut failure = None;
    let (mut first, mut seen) = (VecDeque::new(), wanted);
    if sends && wanted > newest {
        failure = Some(super::list::too_new(wanted, newest));
    } else if sends {
        let range = Range { namespace: selection.namespace.as_deref(), after: None };
        first = state.store.list(&stored, range).map(|(_, s)| s.object.clone()).filter(|o| selection.matches(resource, o)).collect();
        seen = newest;
    } else if wanted == 0 {
        seen = newest;
    }
    let news = state.store.news(&stored);
    let seconds = match query.number("timeoutSeconds")?.and_then(|s| u64::try_from(s).ok()).filter(|s| *s > 0) {
        Some(seconds) => seconds,
        None => SHORTEST + state.ids.below(SHORTEST),
    };
    let now = Instant::now();
    let include = match call.accept.object() {
        Shape::Table => Include::parse(query.get("includeObject"))?,
        _ => Include::Metadata,
    };
    Ok(Watching {
        shared: shared.clone(),
        resource: resource.clone(),
        selection,
        shape: call.accept.object(),
        include,
        seen,
        initial: first,
        ends_initial: initial == "true" && query.flag("allowWatchBookmarks"),
        news,
        bookmarks: query.flag("allowWatchBookmarks"),
        next_bookmark: now + BOOKMARK_EVERY,
        deadline: now + Duration::from_secs(seconds),
        head_told: false,
        failure,
        over: false,
    })
}

impl Watching {
    fn line(&mut self, kind: &str, object: &Value) -> Bytes {
        let shown = match (self.shape, kind) {
            (_, "ERROR") => object.clone(),
            (Shape::Table, _) => {
                let now = self.shared.clock().now();
                let mut table = if self.head_told { table::bare() } else { table::head(&self.resource) };
                self.head_told = true;
                table["metadata"] = json!({"resourceVersion": object.pointer("/metadata/resourceVersion")});
                table["rows"] = match kind {
                    "BOOKMARK" => json!([]),
                    _ => json!([table::row(&self.resource, object, self.include, now)]),
                };
                table
            }
            (Shape::Metadata, _) => table::metadata_only(object),
            _ => outgoing(&self.resource, object),
        };
        let mut line = json!({"type": kind, "object": shown}).to_string().into_bytes();
        line.push(b'\n');
        line.into()
    }

    fn bookmark(&mut self, ends: bool) -> Bytes {
        let mut object = json!({});
        if let Some(node) = self.resource.stored_node().filter(|_| self.resource.custom.is_none()) {
            normalise(&mut object, node);
        }
        object["metadata"] = json!({"resourceVersion": self.seen.to_string()});
        if ends {
            object["metadata"]["annotations"] = json!({"k8s.io/initial-events-end": "true"});
        }
        self.line("BOOKMARK", &object)
    }

    fn tell(&mut self, change: &Change) -> Option<Bytes> {
        let selects = |object: &Value| self.selection.matches(&self.resource, object);
        let before = change.old.as_deref().is_some_and(selects);
        let after = !change.gone && selects(&change.object);
        let version = change.object.pointer("/metadata/resourceVersion").cloned();
        match (before, after) {
            (true, true) => Some(self.line("MODIFIED", &change.object)),
            (false, true) => Some(self.line("ADDED", &change.object)),
            (true, false) if change.gone => Some(self.line("DELETED", &change.object)),
            (true, false) => {
                // It left the selection: told as it was, with the version of the change.
                let mut old = (**change.old.as_ref()?).clone();
                if let Some(version) = version {
                    old["metadata"]["resourceVersion"] = version;
                }
                Some(self.line("DELETED", &old))
            }
            (false, false) => None,
        }
    }

    /// The next lines; `None` when the watch is over.
    async fn next(&mut self) -> Option<Bytes> {
        if self.over {
            return None;
        }
        if let Some(error) = self.failure.take() {
            self.over = true;
            return Some(self.line("ERROR", &error.to_value()));
        }
        if !self.initial.is_empty() {
            let mut lines = Vec::new();
            while let Some(object) = self.initial.pop_front() {
                lines.extend_from_slice(&self.line("ADDED", &object));
                if lines.len() > 64 * 1024 {
                    break;
                }
            }
            return Some(lines.into());
        }
        if self.ends_initial {
            self.ends_initial = false;
            return Some(self.bookmark(true));
        }
        loop {
            self.news.borrow_and_update();
            let (since, newest) = {
                let state = self.shared.state();
                (state.store.since(&self.resource.stored(), self.seen, BATCH), state.store.revision())
            };
            match since {
                Since::Expired => {
                    self.over = true;
                    let error = ApiError::expired(format!("too old resource version: {} ({newest})", self.seen));
                    return Some(self.line("ERROR", &error.to_value()));
                }
                Since::Changes(changes) => {
                    let whole = changes.len() < BATCH;
                    let mut lines = Vec::new();
                    for change in changes {
                        self.seen = self.seen.max(change.revision);
                        if let Some(line) = self.tell(&change) {
                            lines.extend_from_slice(&line);
                        }
                    }
                    if !lines.is_empty() {
                        return Some(lines.into());
                    }
                    if !whole {
                        continue;
                    }
                    self.seen = self.seen.max(newest);
                }
            }
            let next = self.next_bookmark.min(self.deadline);
            tokio::select! {
                biased;
                changed = self.news.changed() => {
                    if changed.is_err() {
                        return None;
                    }
                }
                () = tokio::time::sleep_until(next) => {
                    let now = Instant::now();
                    if now >= self.deadline {
                        self.over = true;
                        return None;
                    }
                    self.next_bookmark = now + BOOKMARK_EVERY;
                    if self.bookmarks {
                        return Some(self.bookmark(false));
                    }
                }
            }
        }
    }

    /// As a stream of lines.
    pub fn stream(self) -> impl Stream<Item = Bytes> + Send {
        futures::stream::unfold(self, |mut watching| async move { watching.next().await.map(|lines| (lines, watching)) })
    }
}
