//! HTTP answers: `responses` of a file, or one answer as `curl -i` prints it.

use jiff::Timestamp;
use serde_json::Value;

use super::draft::{Draft, Timed, time_of};
use super::folder::Folder;
use super::manifest::{Entry, FileKind};
use super::{objects, pages, yaml};
use crate::model::engine::{HttpAnswer, HttpFailure, HttpOutcome};
use crate::model::{Subject, text};

/// Most bytes of a body that are kept.
const MAX_BODY: usize = 64 << 10;
/// Most bytes of a file of answers that are read.
const MAX_BYTES: u64 = 256 << 20;

/// Reads a file of answers. `all` are the files of the manifest: a page that it lists is not read twice.
pub(super) fn take(folder: &Folder, entry: &Entry, all: &[Entry], draft: &mut Draft) {
    let Some(text) = objects::text_of(folder, &entry.file, MAX_BYTES, draft) else { return };
    for document in yaml::documents(&text) {
        let reading = yaml::read(&document);
        for (line, why) in reading.troubles {
            draft.trouble(format!("{}, line {line}", entry.file), why);
        }
        if let Some(value) = reading.value {
            responses(folder, &value, entry, all, draft);
        }
    }
}

/// Takes the answers of one document: a list, or a list under `responses`.
pub(super) fn responses(folder: &Folder, value: &Value, entry: &Entry, all: &[Entry], draft: &mut Draft) {
    let Some(items) = value.get("responses").unwrap_or(value).as_array() else {
        draft.trouble(&entry.file, "holds no list of responses");
        return;
    };
    for (number, item) in items.iter().enumerate() {
        let place = format!("{}, response {}", entry.file, number + 1);
        if let Err(why) = response(folder, item, entry, all, &place, draft) {
            draft.trouble(place, why);
        }
    }
}

fn response(folder: &Folder, item: &Value, entry: &Entry, all: &[Entry], place: &str, draft: &mut Draft) -> Result<(), String> {
    let word = |key: &str| item.get(key).and_then(Value::as_str);
    let target = word("target").filter(|target| !target.is_empty()).ok_or("names no target")?;
    let target = Subject::parse(&text::clean_name(target));
    let path = text::tidy(word("path").ok_or("names no path")?).to_string();
    let method = text::clean_name(word("method").unwrap_or("GET")).to_ascii_uppercase();
    let whole = |key: &str| item.get(key).and_then(|value| value.as_u64().or_else(|| value.as_str()?.trim().parse().ok()));
    let at = time_of(item.get("at"), place, "at", &mut draft.problems).or(entry.at);
    let mut answer = HttpAnswer {
        port: whole("port").and_then(|port| u16::try_from(port).ok()),
        method,
        path,
        at: Timestamp::UNIX_EPOCH,
        latency_ms: item.get("latency_ms").and_then(Value::as_f64).filter(|ms| ms.is_finite() && *ms >= 0.0),
        outcome: HttpOutcome::Failed(HttpFailure::Other(String::new())),
        target,
    };
    if let Some(error) = item.get("error").filter(|error| !error.is_null()) {
        answer.outcome = HttpOutcome::Failed(failure(error.as_str().unwrap_or("an error that is no text")));
        draft.answers.push(Timed { at, what: answer });
        return Ok(());
    }
    let status = whole("status").and_then(|status| u16::try_from(status).ok()).filter(|status| (100..1000).contains(status));
    let status = status.ok_or("has neither a status nor an error")?;
    let is_page = status == 200 && answer.method == "GET" && answer.route() == "/metrics";
    let body = match word("body_file") {
        Some(file) => {
            // An answer without its body still says that there was one.
            let most = if is_page { pages::MAX_BYTES } else { MAX_BODY as u64 };
            folder.head(file, most).map(|content| content.bytes).unwrap_or_else(|why| {
                draft.trouble(place, format!("body_file {}: {why}", text::clean_name(file)));
                Vec::new()
            })
        }
        None => match item.get("body") {
            None | Some(Value::Null) => Vec::new(),
            Some(Value::String(text)) => text.clone().into_bytes(),
            Some(other) => other.to_string().into_bytes(),
        },
    };
    let pages_too = is_page && matches!(answer.target.kind(), "pod" | "engine") && !body.is_empty();
    if pages_too && !is_listed(&answer, at, word("body_file"), all) {
        draft.pages.push(Timed { at, what: pages::page(&answer.target, answer.port, "/metrics", &body) });
    }
    answer.outcome = HttpOutcome::Answered {
        status,
        content_type: text::clean_name(word("content_type").unwrap_or_default()).to_string(),
        body: cut(&body),
    };
    draft.answers.push(Timed { at, what: answer });
    Ok(())
}

/// Whether the manifest lists this page as a file of its own.
fn is_listed(answer: &HttpAnswer, at: Option<Timestamp>, file: Option<&str>, all: &[Entry]) -> bool {
    all.iter().filter(|entry| entry.kind == FileKind::Metrics).any(|entry| {
        let same_page =
            entry.subject.as_ref() == Some(&answer.target) && entry.at == at && (entry.port.is_none() || entry.port == answer.port);
        same_page || file == Some(entry.file.as_str())
    })
}

fn failure(words: &str) -> HttpFailure {
    let lower = words.to_ascii_lowercase();
    if lower.contains("refused") {
        HttpFailure::Refused
    } else if lower.contains("timeout") || lower.contains("timed out") || lower.contains("deadline exceeded") {
        HttpFailure::Timeout
    } else {
        HttpFailure::Other(text::tidy(words).to_string())
    }
}

/// A body as text, at most [`MAX_BODY`] bytes of it.
fn cut(body: &[u8]) -> String {
    let part = body.get(..MAX_BODY.min(body.len())).unwrap_or(body);
    String::from_utf8_lossy(part).into_owned()
}

/// Reads one answer as `curl -sSi` prints it, errors included.
pub(super) fn take_curl(folder: &Folder, entry: &Entry, draft: &mut Draft) {
    let (Some(target), Some(path)) = (entry.subject.clone(), entry.path.clone()) else {
        draft.trouble(&entry.file, "an answer needs a subject and a path");
        return;
    };
    let content = match folder.head(&entry.file, pages::MAX_BYTES) {
        Ok(content) => content,
        Err(why) => return draft.trouble(&entry.file, why),
    };
    let text = content.text();
    let outcome = match curl(&text) {
        Ok(outcome) => outcome,
        Err(why) => return draft.trouble(&entry.file, why),
    };
    let is_page = path == "/metrics";
    if is_page && let Outcome::Answer { status: 200, body, .. } = &outcome {
        draft.pages.push(Timed { at: entry.at, what: pages::page(&target, entry.port, "/metrics", body.as_bytes()) });
    }
    let outcome = match outcome {
        Outcome::Answer { status, content_type, body } => HttpOutcome::Answered { status, content_type, body: cut(body.as_bytes()) },
        Outcome::Failed(failure) => HttpOutcome::Failed(failure),
    };
    let answer = HttpAnswer { target, port: entry.port, method: "GET".into(), path, at: Timestamp::UNIX_EPOCH, latency_ms: None, outcome };
    draft.answers.push(Timed { at: entry.at, what: answer });
}

#[derive(Debug, PartialEq)]
enum Outcome<'t> {
    Answer { status: u16, content_type: String, body: &'t str },
    Failed(HttpFailure),
}

/// What `curl -i` printed: status line, headers, an empty line, the body. `100 Continue` and proxies' lines before it are passed over.
fn curl(text: &str) -> Result<Outcome<'_>, String> {
    let mut rest = text.trim_start();
    if let Some(error) = rest.strip_prefix("curl: ") {
        return Ok(Outcome::Failed(failure(error.lines().next().unwrap_or_default())));
    }
    loop {
        let (head, body) = rest.split_once("\n\n").unwrap_or((rest, ""));
        let status = head
            .strip_prefix("HTTP/")
            .and_then(|line| line.split_whitespace().nth(1))
            .and_then(|status| status.parse::<u16>().ok())
            .ok_or("does not begin with a status line: take it with curl -sSi")?;
        if (100..200).contains(&status) || (body.starts_with("HTTP/") && head.to_ascii_lowercase().contains("connection established")) {
            rest = body;
            continue;
        }
        let content_type = head
            .lines()
            .filter_map(|line| line.split_once(':'))
            .find(|(name, _)| name.eq_ignore_ascii_case("content-type"))
            .map(|(_, value)| text::clean_name(value.trim()).to_string())
            .unwrap_or_default();
        return Ok(Outcome::Answer { status, content_type, body });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[test]
    fn what_curl_prints() {
        let page = "HTTP/1.1 100 Continue\n\nHTTP/1.1 200 OK\nContent-Type: application/json\nX: y\n\n{\"a\":\n\n1}";
        assert_eq!(curl(page), Ok(Outcome::Answer { status: 200, content_type: "application/json".into(), body: "{\"a\":\n\n1}" }));
        assert_eq!(
            curl("HTTP/1.1 503 Service Unavailable\n\n"),
            Ok(Outcome::Answer { status: 503, content_type: String::new(), body: "" })
        );
        assert!(curl("{\"a\": 1}").is_err());
        assert!(curl("HTTP/1.1").is_err());
        assert!(curl("").is_err());
    }

    #[rstest]
    #[case("curl: (7) Failed to connect to localhost port 8000: Connection refused", HttpFailure::Refused)]
    #[case("curl: (28) Operation timed out after 5001 ms", HttpFailure::Timeout)]
    #[case("curl: (52) Empty reply from server", HttpFailure::Other("(52) Empty reply from server".into()))]
    fn what_curl_says_when_it_fails(#[case] text: &str, #[case] wanted: HttpFailure) {
        assert_eq!(curl(text), Ok(Outcome::Failed(wanted)));
    }

    #[test]
    fn bodies_are_cut_without_breaking() {
        let body = "é".repeat(MAX_BODY);
        let kept = cut(body.as_bytes());
        assert_eq!(kept.len(), MAX_BODY);
    }
}
