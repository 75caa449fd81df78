//! Facts while they are gathered: objects wait as JSON until the present is known, because it is when they were seen.

use jiff::Timestamp;
use serde_json::Value;

use super::{logs, problem};
use crate::engines::MetricPage;
use crate::model::engine::{ContainerLog, HttpAnswer};
use crate::model::object::Object;
use crate::model::{Subject, time};
use crate::world::facts::Change;
use crate::world::{Facts, InputProblem, LearntDuration};

/// An object that waits.
pub(super) struct RawObject {
    /// Its JSON.
    pub(super) value: Value,
    /// When it was seen; `None` for the present.
    pub(super) seen: Option<Timestamp>,
    /// Where it stands: `objects.yaml, document 3 (line 40)`.
    pub(super) place: String,
}

/// An answer, page or log whose time is perhaps not known yet: `None` for the present.
pub(super) struct Timed<T> {
    /// When it was observed.
    pub(super) at: Option<Timestamp>,
    /// What, its own time still open.
    pub(super) what: T,
}

/// Everything gathered so far.
#[derive(Default)]
pub(super) struct Draft {
    pub(super) objects: Vec<RawObject>,
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
        for raw in &self.objects {
            let text = |path: &str| raw.value.pointer(path).and_then(Value::as_str).unwrap_or_default();
            if text("/kind") == "Pod" && text("/metadata/name") == name {
                let subject = Subject::pod(text("/metadata/namespace"), name);
                if !found.contains(&subject) {
                    found.push(subject);
                }
            }
        }
        match found.as_slice() {
            [one] => Ok(one.clone()),
            several => Err(several.len()),
        }
    }

    /// The facts, with `now` as the time of whatever has none of its own.
    pub(super) fn finish(self, now: Timestamp) -> Facts {
        let mut problems = self.problems;
        let mut objects = self.watched;
        for raw in self.objects {
            match Object::read(&raw.value, raw.seen.unwrap_or(now)) {
                Ok(object) => objects.push(object),
                Err(why) => problems.push(problem(raw.place, format!("is no Kubernetes object: {why}"))),
            }
        }
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
            problems,
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
