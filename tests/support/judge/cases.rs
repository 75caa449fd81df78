//! The case bundles on disk: finding them, reading them, and judging one.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::Verdict;
use super::checks::evaluate;
use super::document::Document;

/// One case directory. `content` is an error where its files cannot be read.
pub(crate) struct Case {
    /// The directory's name up to the first dash (`B001`).
    pub(crate) id: String,
    pub(crate) dir: PathBuf,
    pub(crate) content: Result<Content, String>,
}

/// What `expect.yaml` and `checks.yaml` say.
pub(crate) struct Content {
    pub(crate) kind: String,
    /// The clock of the case, RFC 3339.
    pub(crate) now: String,
    pub(crate) checks: Vec<Value>,
}

/// How a case came out.
pub(crate) struct Outcome {
    pub(crate) id: String,
    pub(crate) kind: String,
    /// Why there is no valid document, or no readable case.
    pub(crate) error: Option<String>,
    pub(crate) checks: Vec<Judged>,
    /// How many `client` checks were passed over.
    pub(crate) client: usize,
    /// The statements of `reading` checks.
    pub(crate) reading: Vec<String>,
}

/// One evaluated check.
pub(crate) struct Judged {
    /// Identifies the check and shows when it was edited, see [`line`].
    pub(crate) line: String,
    pub(crate) is_action: bool,
    pub(crate) verdict: Verdict,
}

/// All cases below a directory, by name.
pub(crate) fn find(root: &Path) -> Result<Vec<Case>, String> {
    let entries = fs::read_dir(root).map_err(|error| format!("{}: {error}", root.display()))?;
    let mut dirs = Vec::new();
    for entry in entries {
        let dir = entry.map_err(|error| format!("{}: {error}", root.display()))?.path();
        if ["expect.yaml", "checks.yaml"].iter().any(|file| dir.join(file).exists()) {
            dirs.push(dir);
        }
    }
    dirs.sort();
    Ok(dirs.into_iter().map(|dir| Case { id: id_of(&dir), content: read(&dir), dir }).collect())
}

/// Keeps the cases that a comma-separated list names; fails for an id that no case has.
pub(crate) fn select(cases: Vec<Case>, only: &str) -> Result<Vec<Case>, String> {
    let ids: Vec<_> = only.split(',').map(str::trim).filter(|id| !id.is_empty()).collect();
    let absent: Vec<_> = ids.iter().copied().filter(|id| cases.iter().all(|case| case.id != *id)).collect();
    if ids.is_empty() || !absent.is_empty() {
        return Err(format!("no such case: {}", if ids.is_empty() { only.to_owned() } else { absent.join(", ") }));
    }
    Ok(cases.into_iter().filter(|case| ids.contains(&case.id.as_str())).collect())
}

fn id_of(dir: &Path) -> String {
    let name = dir.file_name().unwrap_or_default().to_string_lossy();
    name.split('-').next().unwrap_or_default().to_owned()
}

fn read(dir: &Path) -> Result<Content, String> {
    let expect = yaml(dir, "expect.yaml")?;
    let text = |key: &str| expect.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
    let now = text("now").ok_or("expect.yaml: no `now`")?.to_owned();
    let kind = text("kind").unwrap_or("?").to_owned();
    match yaml(dir, "checks.yaml")? {
        Value::Array(checks) if !checks.is_empty() => Ok(Content { kind, now, checks }),
        _ => Err("checks.yaml: not a list of checks".into()),
    }
}

fn yaml(dir: &Path, file: &str) -> Result<Value, String> {
    let text = fs::read_to_string(dir.join(file)).map_err(|error| format!("{file}: {error}"))?;
    serde_saphyr::from_str(&text).map_err(|error| format!("{file}: {error}"))
}

/// Judges one case. `explain` gives what the program prints for a directory and a clock.
pub(crate) fn judge(case: &Case, explain: impl FnOnce(&Path, &str) -> Result<String, String>) -> Outcome {
    let mut outcome = Outcome { id: case.id.clone(), kind: "?".into(), error: None, checks: vec![], client: 0, reading: vec![] };
    let content = match &case.content {
        Ok(content) => content,
        Err(error) => {
            outcome.error = Some(error.clone());
            let line = "0 a case that can be read".into();
            outcome.checks.push(Judged { line, is_action: false, verdict: Err(error.clone()) });
            return outcome;
        }
    };
    outcome.kind.clone_from(&content.kind);
    let mut to_evaluate = Vec::new();
    for (index, check) in content.checks.iter().enumerate() {
        match check_type(check) {
            "client" => outcome.client += 1,
            "reading" => outcome.reading.push(text_of(check, "text")),
            _ => to_evaluate.push((index + 1, check)),
        }
    }
    if to_evaluate.is_empty() {
        return outcome;
    }
    let document = explain(&case.dir, &content.now).and_then(|text| Document::read(&text, &content.now));
    outcome.error = document.as_ref().err().cloned();
    for (number, check) in to_evaluate {
        let verdict = document.as_ref().map_err(String::clone).and_then(|document| evaluate(document, check));
        outcome.checks.push(Judged { line: line(number, check), is_action: check_type(check) == "action", verdict });
    }
    outcome
}

fn check_type(check: &Value) -> &str {
    check.get("check").and_then(Value::as_str).unwrap_or_default()
}

fn text_of(check: &Value, key: &str) -> String {
    check.get(key).and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// The identity of a check in one line: its place in `checks.yaml` from 1, a fingerprint of all that it asks for
/// (its prose `text` apart), then for people its type, what it is about, on which subjects, and what is wanted.
pub(crate) fn line(number: usize, check: &Value) -> String {
    let kind = check_type(check);
    let mut words = vec![number.to_string(), fingerprint(check), kind.to_owned()];
    for key in ["name", "code", "codes", "verb", "field"] {
        words.extend(texts(check, key).and_then(first_few));
    }
    let subjects = texts(check, "subject").or_else(|| texts(check, "subjects"));
    words.extend(subjects.and_then(first_few).map(|names| format!("on {names}")));
    for key in ["is", "answer", "equals", "approx", "writer"] {
        words.extend(texts(check, key).map(|wanted| format!("is {}", wanted.join("|"))));
    }
    if kind == "value" {
        words.extend(check.get("unknown").map(|_| "is unknown".to_owned()));
        words.extend(texts(check, "not").map(|unwanted| format!("is not {}", unwanted.join("|"))));
    }
    words.join(" ")
}

fn first_few(names: Vec<String>) -> Option<String> {
    match names.as_slice() {
        [] => None,
        [_] | [_, _] => Some(names.join("|")),
        [first, rest @ ..] => Some(format!("{first} and {} more", rest.len())),
    }
}

fn texts(check: &Value, key: &str) -> Option<Vec<String>> {
    let list = match check.get(key)? {
        Value::Array(list) => list.as_slice(),
        one => std::slice::from_ref(one),
    };
    Some(list.iter().map(|text| text.as_str().map_or(text.to_string(), str::to_owned)).collect())
}

/// FNV-1a over the check with sorted keys, without `text`.
fn fingerprint(check: &Value) -> String {
    let mut asked = check.clone();
    if let Some(fields) = asked.as_object_mut() {
        fields.remove("text");
        fields.sort_keys();
    }
    let hash = asked.to_string().bytes().fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    format!("{hash:08x}")
}
