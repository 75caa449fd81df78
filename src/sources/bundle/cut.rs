//! What is left of a list that breaks: its items are read one by one. For files that were cut while they were written or copied.

use serde_json::{Map, Value};

use super::yaml::parse;

/// Most broken items that are told apart.
const MAX_LOST: usize = 20;

/// Items that could be read.
#[derive(Debug, PartialEq)]
pub(super) struct Salvage {
    /// The list, under its key where it has one.
    pub(super) value: Value,
    /// Lines of the document, from 1, at which items begin that could not be read.
    pub(super) lost: Vec<usize>,
}

/// Keys under which lists stand whose items mean something alone.
const KEYS: &[&str] = &["items", "responses", "steps"];

/// Reads the items of a YAML list one by one: a list that is the document, or one under `items`, `responses` or `steps` at its top.
pub(super) fn yaml_items(text: &str) -> Option<Salvage> {
    let mut key: Option<&str> = None;
    let mut indent: Option<usize> = None;
    let mut chunks: Vec<(usize, usize)> = Vec::new();
    let mut at = 0;
    let mut end = text.len();
    for (number, piece) in text.split_inclusive('\n').enumerate() {
        let spaces = piece.len() - piece.trim_start_matches(' ').len();
        let item = piece.get(spaces..).is_some_and(|rest| rest == "-" || rest.starts_with("- ") || rest.trim_end() == "-");
        match indent {
            None if item && chunks.is_empty() => {
                // Only below one of the keys, or where the document itself is the list.
                if key.is_none() && spaces > 0 {
                    return None;
                }
                indent = Some(spaces);
                chunks.push((at, number + 1));
            }
            None => {
                let top = piece.trim_end();
                match top.strip_suffix(':') {
                    Some(name) if spaces == 0 && KEYS.contains(&name) => key = Some(name),
                    _ if spaces == 0 && !top.is_empty() && !top.starts_with('#') && key.is_some() => return None,
                    _ => {}
                }
            }
            Some(depth) if item && spaces == depth => chunks.push((at, number + 1)),
            Some(depth) => {
                // A key after the list: `kind: List` of kubectl.
                let bare = piece.trim_end();
                if spaces == 0 && !item && !bare.is_empty() && !bare.starts_with('#') && (depth > 0 || key.is_some()) {
                    end = at;
                    break;
                }
            }
        }
        at += piece.len();
    }
    let mut items = Vec::new();
    let mut lost = Vec::new();
    for (i, (begin, line)) in chunks.iter().enumerate() {
        let until = chunks.get(i + 1).map_or(end, |(next, _)| *next);
        match text.get(*begin..until).map(parse) {
            Some(Ok((Value::Array(mut one), _))) => items.append(&mut one),
            _ if lost.len() < MAX_LOST => lost.push(*line),
            _ => {}
        }
    }
    salvage(items, lost, key)
}

/// Reads the items of a JSON list one by one: the list that is the text, or the first under `items`, `responses` or `steps`.
pub(super) fn json_items(text: &str) -> Option<Salvage> {
    let trimmed = text.trim_start();
    let (key, mut rest) = match trimmed.strip_prefix('[') {
        Some(rest) => (None, rest),
        None => KEYS.iter().find_map(|key| {
            let after = trimmed.split_once(&format!("\"{key}\""))?.1.trim_start().strip_prefix(':')?.trim_start();
            Some((Some(*key), after.strip_prefix('[')?))
        })?,
    };
    let mut items = Vec::new();
    let mut lost = Vec::new();
    loop {
        rest = rest.trim_start_matches(|c: char| c.is_whitespace() || c == ',');
        if rest.is_empty() || rest.starts_with(']') {
            break;
        }
        let mut stream = serde_json::Deserializer::from_str(rest).into_iter::<Value>();
        match stream.next() {
            Some(Ok(value)) => items.push(value),
            _ => {
                let line =
                    text.len().checked_sub(rest.len()).and_then(|read| text.get(..read)).map_or(1, |read| read.matches('\n').count() + 1);
                lost.push(line);
                break;
            }
        }
        rest = rest.get(stream.byte_offset()..).unwrap_or_default();
    }
    salvage(items, lost, key)
}

fn salvage(items: Vec<Value>, lost: Vec<usize>, key: Option<&str>) -> Option<Salvage> {
    if items.is_empty() {
        return None;
    }
    let value = match key {
        None => Value::Array(items),
        Some(key) => Value::Object(Map::from_iter([(key.to_owned(), Value::Array(items))])),
    };
    Some(Salvage { value, lost })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn items_in_the_middle_may_break_too() {
        let text = "apiVersion: v1\nitems:\n- a: 1\n- b: [\n- c:\n  - 3\nkind: List\n";
        let salvage = yaml_items(text).unwrap();
        assert_eq!(salvage.value, json!({"items": [{"a": 1}, {"c": [3]}]}));
        assert_eq!(salvage.lost, [4]);
    }

    #[test]
    fn lists_that_mean_nothing_alone_are_left() {
        assert_eq!(yaml_items("spec:\n  ports:\n  - port: 1\n  x: ["), None);
        assert_eq!(yaml_items("a: ["), None);
        assert_eq!(json_items("{\"spec\": [1, 2"), None);
        assert_eq!(yaml_items("- a: 1\n- b: [").unwrap().value, json!([{"a": 1}]));
        assert_eq!(json_items("[{\"a\": 1}, {").unwrap(), Salvage { value: json!([{"a": 1}]), lost: vec![1] });
    }
}
