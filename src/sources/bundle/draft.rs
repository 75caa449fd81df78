//! Facts while they are gathered: what has no time of its own waits until the present is known, because it is when it was seen.

use jiff::Timestamp;
use serde_json::Value;

use super::{logs, problem};
use crate::engines::MetricPage;
use crate::model::engine::{ContainerLog, HttpAnswer};
use crate::model::object::{Body, Object};
use crate::model::{Subject, time};
use crate::world::facts::Change;
use crate::world::{Facts, InputProblem, LearntDuration};

/// Something observed whose time is perhaps not known yet.
pub(super) struct Timed<T> {
    /// When it was observed; `None` for the present.
    pub(super) at: Option<Timestamp>,
    /// What, its own time still open.
    pub(super) what: T,
}

/// Everything gathered so far.
#[derive(Default)]
pub(super) struct Draft {
    pub(super) objects: Vec<Timed<Object>>,
    pub(super) answers: Vec<Timed<HttpAnswer>>,
    pub(super) pages: Vec<Timed<MetricPage>>,
    pub(super) exporters: Vec<Timed<MetricPage>>,
    pub(super) logs: Vec<logs::RawLog>,
    pub(super) durations: Vec<LearntDuration>,
    pub(super) history: Vec<Change>,
    /// Objects as a watch left them.
    pub(super) watched: Vec<Object>,
    /// Times at which something was observed, beyond those above.
    pub(super) times: Vec<Timestamp>,
    pub(super) problems: Vec<InputProblem>,
}

impl Draft {
    /// Whether nothing was read.
    pub(super) fn is_empty(&self) -> bool {
        self.objects.is_empty()
            && self.answers.is_empty()
            && self.pages.is_empty()
            && self.exporters.is_empty()
            && self.logs.is_empty()
            && self.durations.is_empty()
            && self.history.is_empty()
    }

    /// Remembers what could not be read.
    pub(super) fn trouble(&mut self, place: impl Into<String>, what: impl Into<String>) {
        self.problems.push(problem(place, what));
    }

    /// The subject of the one pod with this name in any namespace. `Err` says how many there are.
    pub(super) fn pod_named(&self, name: &str) -> Result<Subject, usize> {
        let mut found: Vec<Subject> = Vec::new();
        for object in self.objects.iter().map(|timed| &timed.what) {
            if matches!(object.body, Body::Pod(_)) && object.meta.name == name && !found.contains(&object.subject()) {
                found.push(object.subject());
            }
        }
        match found.as_slice() {
            [one] => Ok(one.clone()),
            several => Err(several.len()),
        }
    }

    /// The facts, with `now` as the time of whatever has none of its own.
    pub(super) fn finish(self, now: Timestamp) -> Facts {
        let mut objects = self.watched;
        objects.extend(self.objects.into_iter().map(|timed| Object { seen: timed.at.unwrap_or(now), ..timed.what }));
        // Of two versions of one object the one seen last counts; the catalogue keeps the later of two.
        objects.sort_by_key(|object| object.seen);
        let page = |timed: Timed<MetricPage>| MetricPage { at: timed.at.unwrap_or(now), ..timed.what };
        let logs: Vec<ContainerLog> = self.logs.into_iter().map(|raw| raw.finish(&objects)).collect();
        Facts {
            answers: self.answers.into_iter().map(|timed| HttpAnswer { at: timed.at.unwrap_or(now), ..timed.what }).collect(),
            pages: self.pages.into_iter().map(page).collect(),
            exporters: self.exporters.into_iter().map(page).collect(),
            logs,
            durations: self.durations,
            history: self.history,
            objects,
            problems: self.problems,
        }
    }
}

/// Reads a time that a file gives. A wrong one is a problem, and the next best is used.
pub(super) fn time_of(text: Option<&Value>, place: &str, field: &str, problems: &mut Vec<InputProblem>) -> Option<Timestamp> {
    let value = text.filter(|value| !value.is_null())?;
    let read = value.as_str().and_then(time::instant);
    if read.is_none() {
        let shown = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        problems.push(problem(
            place,
            format!("{field}: {shown:.60} is no time (wanted is 2026-11-12T10:00:00Z); the time of the bundle is used"),
        ));
    }
    read
}
