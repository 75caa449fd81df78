//! Watches: what an API server sent over time, folded into a history and the objects that are left at its end.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::Value;

use super::draft::{Draft, time_of};
use super::folder::Folder;
use super::manifest::Entry;
use super::{objects, yaml};
use crate::model::object::Object;
use crate::model::{Subject, kind_of_resource};
use crate::world::facts::Change;

/// Most bytes of a file of steps that are read.
const MAX_BYTES: u64 = 256 << 20;
/// Most changes that are kept.
const MAX_CHANGES: usize = 200_000;

/// Reads a file of steps.
pub(super) fn take(folder: &Folder, entry: &Entry, draft: &mut Draft) {
    let Some(text) = objects::text_of(folder, &entry.file, MAX_BYTES, draft) else { return };
    for document in yaml::documents(&text) {
        let reading = yaml::read(&document);
        for (line, why) in reading.troubles {
            draft.trouble(format!("{}, line {line}", entry.file), why);
        }
        if let Some(value) = reading.value {
            steps(&value, entry, draft);
        }
    }
}

/// Folds the steps of one document: a list, or a list under `steps`.
pub(super) fn steps(value: &Value, entry: &Entry, draft: &mut Draft) {
    let Some(items) = value.get("steps").unwrap_or(value).as_array() else {
        return draft.trouble(&entry.file, "holds no list of steps");
    };
    let mut fold = Fold { live: BTreeMap::new(), last: entry.at };
    for (number, item) in items.iter().enumerate() {
        fold.step(item, &format!("{}, step {}", entry.file, number + 1), draft);
    }
    draft.watched.extend(fold.live.into_values());
}

struct Fold {
    /// Objects that are there after the steps so far.
    live: BTreeMap<Subject, Object>,
    /// Time of the last step.
    last: Option<Timestamp>,
}

impl Fold {
    fn step(&mut self, item: &Value, place: &str, draft: &mut Draft) {
        self.last = time_of(item.get("at"), place, "at", &mut draft.problems).or(self.last);
        let Some(at) = self.last else {
            return draft.trouble(place, "has no time, and no step before it has one");
        };
        draft.times.push(at);
        let send = item.get("send").and_then(Value::as_str).unwrap_or_default();
        if let Some(list) = item.get("items").and_then(Value::as_array) {
            let asked = item.get("client").and_then(Value::as_str).unwrap_or_default();
            return self.list(list, [send, asked], at, place, draft);
        }
        let event = send.split_whitespace().next().unwrap_or_default().to_ascii_uppercase();
        if !matches!(event.as_str(), "ADDED" | "MODIFIED" | "DELETED") {
            return;
        }
        let Some(object) = item.get("object") else {
            return draft.trouble(place, format!("{event} without an object"));
        };
        match Object::read(object, at) {
            Ok(object) => {
                let subject = object.subject();
                if event == "DELETED" {
                    self.live.remove(&subject);
                } else {
                    self.live.insert(subject, object.clone());
                }
                note(draft, at, &event, object);
            }
            Err(why) => draft.trouble(place, format!("is no Kubernetes object: {why}")),
        }
    }

    /// A list call's answer: what was there of that kind and is not in it is gone, whether or not anybody said so.
    fn list(&mut self, items: &[Value], said: [&str; 2], at: Timestamp, place: &str, draft: &mut Draft) {
        let mut seen = BTreeMap::new();
        for (number, item) in items.iter().enumerate() {
            match Object::read(item, at) {
                Ok(object) => {
                    seen.insert(object.subject(), object);
                }
                Err(why) => draft.trouble(format!("{place}, item {}", number + 1), format!("is no Kubernetes object: {why}")),
            }
        }
        let named = said.iter().find_map(|text| Some(kind_of_resource(text.strip_prefix("LIST ")?.split_whitespace().next()?)));
        let kind = seen.keys().next().map(|subject| subject.kind().to_owned()).or(named).unwrap_or_default();
        let gone: Vec<Subject> =
            self.live.keys().filter(|subject| subject.kind() == kind && !seen.contains_key(*subject)).cloned().collect();
        for subject in gone {
            if let Some(object) = self.live.remove(&subject) {
                note(draft, at, "DELETED", object);
            }
        }
        for (subject, object) in seen {
            note(draft, at, "LIST", object.clone());
            self.live.insert(subject, object);
        }
    }
}

fn note(draft: &mut Draft, at: Timestamp, event: &str, object: Object) {
    if draft.history.len() < MAX_CHANGES {
        draft.history.push(Change { at, event: event.to_owned(), object });
    }
}
