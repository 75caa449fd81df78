//! YAML and JSON texts as documents, each read for itself: a broken one loses only itself, and of a broken list only the broken items.
//!
//! Owns the limits against YAML bombs. Must not know what a document means.

use serde_json::Value;
use serde_saphyr::options::DuplicateKeyPolicy;
use serde_saphyr::{Options, budget, options};

use super::cut;

/// Deepest nesting that is read.
const MAX_DEPTH: usize = 100;
/// Aliases and anchors of one document. Kubernetes and its tools write none.
const MAX_ALIASES: usize = 1_000;
/// Events that aliases may stand for, all together.
const MAX_REPLAYED: usize = 100_000;
/// Most characters of a parser's message that are shown.
const MAX_MESSAGE: usize = 200;

/// One document of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Document<'t> {
    /// Its number in the file, from 1. Empty ones are counted and not given.
    pub(super) number: usize,
    /// The line of the file on which it begins, from 1.
    pub(super) line: usize,
    /// Its text.
    pub(super) text: &'t str,
}

/// A document as read.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Reading {
    /// The value; `None` where nothing of it could be read.
    pub(super) value: Option<Value>,
    /// What could not be read: line of the file, and why.
    pub(super) troubles: Vec<(usize, String)>,
}

impl Document<'_> {
    /// Where it stands: `objects.yaml, document 3 (line 40)`.
    pub(super) fn place(&self, file: &str) -> String {
        format!("{file}, document {} (line {})", self.number, self.line)
    }
}

/// A text ready to be parsed: characters that YAML forbids become U+FFFD, so that one of them does not cost a document.
pub(super) fn printable(text: String) -> String {
    let bad = |c: char| c.is_control() && c != '\n' && c != '\t';
    if text.contains(bad) { text.replace(bad, "\u{fffd}") } else { text }
}

/// The documents of a text, split at its `---` lines.
pub(super) fn documents(text: &str) -> Vec<Document<'_>> {
    let mut out = Vec::new();
    let (mut number, mut line, mut begin, mut begin_line) = (1, 1, 0, 1);
    let mut at = 0;
    let bare = |text: &str| text.lines().map(str::trim).all(|line| line.is_empty() || line.starts_with('#') || line == "...");
    for piece in text.split_inclusive('\n') {
        let shown = piece.trim_end();
        let mark = shown == "---" || shown.starts_with("--- ") || shown.starts_with("---\t") || shown.starts_with("%YAML");
        if mark {
            let before = text.get(begin..at).unwrap_or_default();
            if !bare(before) {
                out.push(Document { number, line: begin_line, text: before });
            }
            // The very first mark opens the first document and closes none.
            if !(number == 1 && before.trim().is_empty()) {
                number += 1;
            }
            // What follows the mark on its line belongs to the document: `--- {a: 1}`.
            let inline = shown.starts_with("---") && shown.len() > 3;
            (begin, begin_line) = if inline { (at + 3, line) } else { (at + piece.len(), line + 1) };
        }
        at += piece.len();
        line += 1;
    }
    let last = text.get(begin..).unwrap_or_default();
    if !bare(last) {
        out.push(Document { number, line: begin_line, text: last });
    }
    out
}

/// Reads one document. Of a list that breaks, the items that can be read are kept.
pub(super) fn read(document: &Document) -> Reading {
    let text = document.text;
    let json = text.trim_start().starts_with(['{', '[']);
    if json && let Some(value) = whole_json(text) {
        return Reading { value: Some(value), troubles: Vec::new() };
    }
    match parse(text) {
        Ok((value, None)) => Reading { value: Some(value), troubles: Vec::new() },
        Ok((value, Some((line, why)))) => {
            Reading { value: Some(value), troubles: vec![(document.line.saturating_add(line).saturating_sub(1), why)] }
        }
        Err((line, why)) => {
            let salvaged = if json { cut::json_items(text) } else { cut::yaml_items(text) };
            let at = document.line.saturating_add(line).saturating_sub(1);
            match salvaged {
                Some(cut::Salvage { value, lost }) => {
                    let mut troubles: Vec<_> = lost
                        .into_iter()
                        .map(|line| {
                            (document.line.saturating_add(line).saturating_sub(1), "one item could not be read and is left out".to_owned())
                        })
                        .collect();
                    troubles.insert(0, (at, why));
                    Reading { value: Some(value), troubles }
                }
                None => Reading { value: None, troubles: vec![(at, why)] },
            }
        }
    }
}

/// One JSON value, or several in a row as a list of them.
fn whole_json(text: &str) -> Option<Value> {
    let mut values = Vec::new();
    for value in serde_json::Deserializer::from_str(text).into_iter::<Value>() {
        values.push(value.ok()?);
    }
    match values.len() {
        0 => None,
        1 => values.pop(),
        _ => Some(Value::Array(values)),
    }
}

/// Line and message of what is wrong.
pub(super) type Trouble = (usize, String);

/// Parses one YAML document. A key that stands twice is told beside the value; the last one counts.
pub(super) fn parse(text: &str) -> Result<(Value, Option<Trouble>), Trouble> {
    let strict = match serde_saphyr::from_str_with_options::<Value>(text, limits(DuplicateKeyPolicy::Error)) {
        Ok(value) => return Ok((value, None)),
        Err(error) => error,
    };
    if strict.to_string().to_ascii_lowercase().contains("duplicate")
        && let Ok(value) = serde_saphyr::from_str_with_options::<Value>(text, limits(DuplicateKeyPolicy::LastWins))
    {
        let (line, _) = message(&strict);
        return Ok((value, Some((line, "a key stands twice in one place; the last one counts".into()))));
    }
    Err(message(&strict))
}

fn message(error: &serde_saphyr::Error) -> Trouble {
    let line = error.location().and_then(|location| usize::try_from(location.line()).ok()).unwrap_or(1);
    let words = error.without_snippet().to_string();
    let first = words.lines().next().unwrap_or_default();
    (line.max(1), format!("is no YAML that can be read: {}", first.chars().take(MAX_MESSAGE).collect::<String>()))
}

fn limits(duplicate_keys: DuplicateKeyPolicy) -> Options {
    options! {
        budget: budget! {
            max_depth: MAX_DEPTH,
            max_events: 200_000_000,
            max_nodes: 100_000_000,
            max_total_scalar_bytes: 512 << 20,
            max_aliases: MAX_ALIASES,
            max_anchors: MAX_ALIASES,
            max_recorded_anchor_events: MAX_REPLAYED,
        },
        emit_comments: false,
        duplicate_keys: duplicate_keys,
        alias_limits: serde_saphyr::alias_limits! {
            max_total_replayed_events: MAX_REPLAYED,
            max_replay_stack_depth: 16,
            max_alias_expansions_per_anchor: MAX_ALIASES,
        },
        non_finite_float_policy: serde_saphyr::options::NonFiniteFloatPolicy::AsString,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;
    use serde_json::json;

    fn all(text: &str) -> Vec<(usize, usize, Reading)> {
        documents(text).iter().map(|document| (document.number, document.line, read(document))).collect()
    }

    #[test]
    fn a_broken_document_loses_only_itself() {
        let read = all("a: 1\n---\nb: [\n---\n# nothing\n---\nc: 3\n");
        assert_eq!(read.len(), 3);
        assert_eq!(read[0].2.value, Some(json!({"a": 1})));
        assert_eq!((read[1].0, read[1].1, &read[1].2.value), (2, 3, &None));
        assert!(read[1].2.troubles[0].0 >= 3, "{:?}", read[1]);
        assert_eq!((read[2].0, read[2].1, read[2].2.value.clone()), (4, 7, Some(json!({"c": 3}))));
    }

    #[rstest]
    #[case("---\na: 1\n", 1, 2)]
    #[case("# head\n---\na: 1\n...\n", 2, 3)]
    #[case("--- {a: 1}\n", 1, 1)]
    #[case("%YAML 1.2\n---\na: 1", 1, 3)]
    fn numbers_and_lines(#[case] text: &str, #[case] number: usize, #[case] line: usize) {
        let read = all(text);
        assert_eq!(read.len(), 1, "{read:?}");
        assert_eq!((read[0].0, read[0].1, read[0].2.value.clone()), (number, line, Some(json!({"a": 1}))));
    }

    #[test]
    fn a_key_that_stands_twice_is_told_and_the_last_counts() {
        let read = all("x: 1\na: 1\na: 2\n").remove(0).2;
        assert_eq!(read.value, Some(json!({"x": 1, "a": 2})));
        assert_eq!(read.troubles.len(), 1);
        assert_eq!(read.troubles[0].0, 3);
    }

    #[test]
    fn json_may_stand_alone_or_in_a_row() {
        assert_eq!(all("{\"a\": 1}")[0].2.value, Some(json!({"a": 1})));
        assert_eq!(all("{\"a\": 1}\n{\"b\": 2}")[0].2.value, Some(json!([{"a": 1}, {"b": 2}])));
        assert_eq!(all("{a: 1}")[0].2.value, Some(json!({"a": 1})));
    }

    #[test]
    fn bombs_end_early() {
        let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
        for i in 1..12 {
            bomb.push_str(&format!("a{i}: &a{i} [{}]\n", vec![format!("*a{}", i - 1); 10].join(", ")));
        }
        assert!(parse(&bomb).is_err());
        assert!(parse(&"[".repeat(10_000)).is_err());
        assert!(parse(&"- ".repeat(10_000)).is_err());
    }

    #[test]
    fn control_characters_do_not_cost_a_document() {
        let text = printable("a: \"x\u{1b}[31m\"\n".into());
        assert_eq!(all(&text)[0].2.value, Some(json!({"a": "x\u{fffd}[31m"})));
    }

    #[test]
    fn half_a_list_keeps_its_whole_items() {
        let read = all("items:\n- kind: Pod\n  a: 1\n- kind: Pod\n  a: \"half").remove(0).2;
        assert_eq!(read.value, Some(json!({"items": [{"kind": "Pod", "a": 1}]})));
        assert_eq!(read.troubles.len(), 2);
        let read = all("{\"kind\": \"List\", \"items\": [{\"a\": 1}, {\"b\": [2, ").remove(0).2;
        assert_eq!(read.value, Some(json!({"items": [{"a": 1}]})));
        assert!(!read.troubles.is_empty());
    }
}
