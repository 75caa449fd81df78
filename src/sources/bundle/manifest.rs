//! `manifest.yaml`: what each file of a bundle is. One entry that can not be read loses only its own file.

use jiff::Timestamp;
use serde_json::Value;

use super::draft::time_of;
use super::folder::Folder;
use super::{problem, yaml};
use crate::model::Subject;
use crate::model::text;
use crate::world::InputProblem;

/// Its name.
pub(super) const NAME: &str = "manifest.yaml";
/// Most bytes of it that are read.
const MAX_BYTES: u64 = 16 << 20;
/// Most entries that are read.
const MAX_ENTRIES: usize = 100_000;

/// What a file of a bundle is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    /// Kubernetes objects, YAML or JSON.
    Objects,
    /// `responses`: HTTP answers.
    Http,
    /// One HTTP answer as `curl -i` prints it. Only found by name.
    Answer,
    /// `steps`: what an API server sent over time.
    Watch,
    /// A page of `GET /metrics`.
    Metrics,
    /// A page of a GPU exporter.
    Dcgm,
    /// The end of a container's log.
    Log,
    /// A kubeconfig: listed, never opened.
    Kubeconfig,
    /// Output of a login plugin: listed, never opened.
    Stderr,
    /// Learnt stage durations.
    Durations,
}

impl FileKind {
    /// The word of a manifest.
    pub fn word(self) -> &'static str {
        match self {
            Self::Objects => "objects",
            Self::Http => "http",
            Self::Answer => "answer",
            Self::Watch => "watch",
            Self::Metrics => "metrics",
            Self::Dcgm => "dcgm",
            Self::Log => "log",
            Self::Kubeconfig => "kubeconfig",
            Self::Stderr => "stderr",
            Self::Durations => "durations",
        }
    }

    fn parse(word: &str) -> Option<Self> {
        [
            Self::Objects,
            Self::Http,
            Self::Answer,
            Self::Watch,
            Self::Metrics,
            Self::Dcgm,
            Self::Log,
            Self::Kubeconfig,
            Self::Stderr,
            Self::Durations,
        ]
        .into_iter()
        .find(|kind| kind.word() == word)
    }
}

/// One file of a bundle.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    /// Path inside the bundle.
    pub(super) file: String,
    /// What it is.
    pub(super) kind: FileKind,
    /// Whom it is about.
    pub(super) subject: Option<Subject>,
    /// Container of a log.
    pub(super) container: Option<String>,
    /// Port of a page.
    pub(super) port: Option<u16>,
    /// HTTP path of a page.
    pub(super) path: Option<String>,
    /// When it was taken.
    pub(super) at: Option<Timestamp>,
    /// Of a log: when the run ended that wrote it.
    pub(super) previous_at: Option<Timestamp>,
    /// Of a log found by name: it is of the run before the last restart, whose end the pod tells.
    pub(super) previous: bool,
    /// Exit code of that run.
    pub(super) exit_code: Option<i64>,
}

impl Entry {
    /// An entry that says only what a file is.
    pub(super) fn of(file: &str, kind: FileKind) -> Self {
        Self {
            file: file.to_owned(),
            kind,
            subject: None,
            container: None,
            port: None,
            path: None,
            at: None,
            previous_at: None,
            previous: false,
            exit_code: None,
        }
    }
}

/// The entries of the manifest; `None` where there is none, or nothing of it can be read.
pub(super) fn read(folder: &Folder, problems: &mut Vec<InputProblem>) -> Option<Vec<Entry>> {
    if !folder.has(NAME) {
        return None;
    }
    let content = match folder.head(NAME, MAX_BYTES) {
        Ok(content) => content,
        Err(why) => {
            problems.push(problem(NAME, format!("{why}; the files are taken by their names")));
            return None;
        }
    };
    let text = yaml::printable(content.text());
    let mut entries = Vec::new();
    let mut any = false;
    for document in yaml::documents(&text) {
        let reading = yaml::read(&document);
        for (line, why) in reading.troubles {
            problems.push(problem(format!("{NAME}, line {line}"), why));
        }
        let items = match reading.value {
            Some(Value::Array(items)) => items,
            // `files: [...]` reads as well as a bare list.
            Some(Value::Object(mut map)) => match map.remove("files") {
                Some(Value::Array(items)) => items,
                _ => Vec::new(),
            },
            _ => Vec::new(),
        };
        any |= !items.is_empty();
        for (number, item) in items.iter().take(MAX_ENTRIES).enumerate() {
            entries.extend(entry(item, &format!("{NAME}, entry {}", number + 1), problems));
        }
    }
    // An empty list is a manifest that lists nothing; something else is none.
    if !any && !text.trim().is_empty() && text.trim() != "[]" {
        problems.push(problem(NAME, "is no list of files; the files are taken by their names"));
        return None;
    }
    Some(entries)
}

fn entry(item: &Value, place: &str, problems: &mut Vec<InputProblem>) -> Option<Entry> {
    let Some(file) = item.get("file").and_then(Value::as_str) else {
        problems.push(problem(place, "names no file"));
        return None;
    };
    let place = format!("{place} ({})", text::clean_name(file));
    let kind = match item.get("kind").and_then(Value::as_str) {
        Some(word) => FileKind::parse(word),
        None => None,
    };
    let Some(kind) = kind else {
        let said = item.get("kind").map_or_else(|| "no kind".to_owned(), |kind| format!("the kind {kind:.40}"));
        problems.push(problem(
            place,
            format!("has {said}; known are objects, http, watch, metrics, dcgm, log, kubeconfig, stderr and durations"),
        ));
        return None;
    };
    let word = |key: &str| item.get(key).and_then(Value::as_str).filter(|word| !word.is_empty());
    let port = item.get("port").filter(|port| !port.is_null());
    let number = port.and_then(|port| port.as_u64().or_else(|| port.as_str()?.parse().ok())).and_then(|port| u16::try_from(port).ok());
    if port.is_some() && number.is_none() {
        problems.push(problem(place.clone(), "port: is no port number"));
    }
    Some(Entry {
        file: file.to_owned(),
        kind,
        subject: word("subject").map(|subject| Subject::parse(&text::clean_name(subject))),
        container: word("container").map(|name| text::clean_name(name).to_string()),
        port: number,
        path: word("path").map(|path| text::tidy(path).to_string()),
        at: time_of(item.get("at"), &place, "at", problems),
        previous_at: time_of(item.get("previous_at"), &place, "previous_at", problems),
        previous: false,
        exit_code: item.get("exit_code").and_then(Value::as_i64),
    })
}
