//! Objects: YAML documents or JSON, alone, as a list, or as what `kubectl get -o yaml` and a raw list call give.

use jiff::Timestamp;
use serde_json::Value;

use super::draft::{Draft, Timed};
use super::folder::Folder;
use super::manifest::{Entry, FileKind};
use super::{clock, durations, http, watch, yaml};
use crate::model::object::Object;

/// Most bytes of a file of objects that are read.
pub(super) const MAX_BYTES: u64 = 256 << 20;
/// How deep lists may stand in lists.
const MAX_NESTING: usize = 4;

/// Reads a file of objects. One that was found by its ending may hold answers, watch steps or durations too.
pub(super) fn take(folder: &Folder, entry: &Entry, draft: &mut Draft) {
    let Some(text) = text_of(folder, &entry.file, MAX_BYTES, draft) else { return };
    for document in yaml::documents(&text) {
        let reading = yaml::read(&document);
        let place = document.place(&entry.file);
        for (line, why) in reading.troubles {
            draft.trouble(format!("{}, document {}, line {line}", entry.file, document.number), why);
        }
        match reading.value {
            None | Some(Value::Null) => {}
            Some(value) if value.get("responses").is_some_and(Value::is_array) => http::responses(folder, &value, entry, &[], draft),
            Some(value) if value.get("steps").is_some_and(Value::is_array) => watch::steps(&value, entry, draft),
            Some(value) if durations::are(&value) => durations::entries(&value, &place, draft),
            Some(value) => gather(value, None, entry, &place, 0, draft),
        }
    }
}

/// The text of a file that holds YAML or JSON; what is wrong with it becomes a problem.
pub(super) fn text_of(folder: &Folder, file: &str, most: u64, draft: &mut Draft) -> Option<String> {
    match folder.head(file, most) {
        Ok(content) => {
            if content.left_out > 0 {
                draft.trouble(file, format!("only the first {} MiB were read, {} bytes were left out", most >> 20, content.left_out));
            }
            Some(yaml::printable(content.text()))
        }
        Err(why) => {
            draft.trouble(file, why);
            None
        }
    }
}

/// What a typed list says of its items, which carry no kind of their own.
struct Inherited {
    api_version: String,
    kind: String,
}

fn gather(value: Value, inherited: Option<&Inherited>, entry: &Entry, place: &str, depth: usize, draft: &mut Draft) {
    match value {
        Value::Null => {}
        Value::Array(items) if depth < MAX_NESTING => {
            for (number, item) in items.into_iter().enumerate() {
                gather(item, inherited, entry, &format!("{place}, item {}", number + 1), depth + 1, draft);
            }
        }
        Value::Object(mut map) => {
            let text = |key: &str| map.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
            let (kind, api_version) = (text("kind"), text("apiVersion"));
            let listed = kind.is_empty() || kind.ends_with("List");
            if listed && map.get("items").is_some_and(Value::is_array) && depth < MAX_NESTING {
                let of = kind.strip_suffix("List").filter(|of| !of.is_empty()).map(|of| Inherited { api_version, kind: of.into() });
                if let Some(items) = map.remove("items") {
                    gather(items, of.as_ref(), entry, place, depth + 1, draft);
                }
                return;
            }
            if kind == "Config" && map.contains_key("clusters") {
                draft.trouble(place, "is a kubeconfig: left out, nothing of it is kept");
                return;
            }
            if kind == "Status" && map.contains_key("status") && map.contains_key("code") {
                let message = map.get("message").and_then(Value::as_str).unwrap_or("no message").to_owned();
                draft.trouble(place, format!("is an answer of the API server, not an object: {message}"));
                return;
            }
            if let Some(of) = inherited {
                map.entry("kind").or_insert_with(|| of.kind.clone().into());
                map.entry("apiVersion").or_insert_with(|| of.api_version.clone().into());
            }
            let value = Value::Object(map);
            match Object::read(&value, entry.at.unwrap_or(Timestamp::UNIX_EPOCH)) {
                Ok(object) => {
                    draft.times.extend(clock::newest_in(&value));
                    draft.objects.push(Timed { at: entry.at, what: object });
                }
                Err(why) => draft.trouble(place, format!("is no Kubernetes object: {why}")),
            }
        }
        other => {
            let what = match other {
                Value::Array(_) => "a list too deep in lists",
                Value::String(_) => "a text",
                Value::Bool(_) => "true or false",
                _ => "a number",
            };
            let hint = if entry.kind == FileKind::Objects { "" } else { " of a watch" };
            draft.trouble(place, format!("holds {what} where an object{hint} should be"));
        }
    }
}
