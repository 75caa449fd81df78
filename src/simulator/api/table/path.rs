//! The cells of printer columns: simple JSON paths into custom resources.

use jiff::Timestamp;
use serde_json::Value;

use super::super::registry::custom::Column;
use super::age;

/// The value of a column; null when there is none.
pub(super) fn cell(object: &Value, column: &Column, now: Timestamp) -> Value {
    let found = find(object, &column.path);
    let Some(first) = found.first() else { return Value::Null };
    match column.kind.as_str() {
        "integer" => first.as_i64().or_else(|| first.as_f64().map(|f| f as i64)).map_or(Value::Null, Into::into),
        "number" => first.as_f64().map_or(Value::Null, Into::into),
        "boolean" => first.as_bool().map_or(Value::Null, Into::into),
        "date" => age::of(first, now).into(),
        _ => {
            let shown: Vec<String> = found.iter().map(|v| v.as_str().map_or_else(|| v.to_string(), str::to_owned)).collect();
            shown.join(",").into()
        }
    }
}

/// All values at a path: `.a.b`, `.a[0].b`, `.a[*].b`, `.a[?(@.type=="Ready")].b`, `.a['b\.c']`.
fn find<'a>(object: &'a Value, path: &str) -> Vec<&'a Value> {
    let mut here = vec![object];
    let mut rest = path.trim().trim_start_matches('{').trim_end_matches('}').trim_start_matches('$');
    while !rest.is_empty() {
        if let Some(after) = rest.strip_prefix('.') {
            let mut name = String::new();
            let mut end = after.len();
            let mut escaped = false;
            for (at, c) in after.char_indices() {
                match c {
                    '\\' if !escaped => {
                        escaped = true;
                        continue;
                    }
                    '.' | '[' if !escaped => {
                        end = at;
                        break;
                    }
                    c => name.push(c),
                }
                escaped = false;
            }
            rest = after.get(end..).unwrap_or_default();
            if !name.is_empty() {
                here = here.into_iter().filter_map(|v| v.get(&name)).collect();
            }
        } else if let Some((inside, after)) = rest.strip_prefix('[').and_then(|r| split_bracket(r)) {
            rest = after;
            here = here.into_iter().flat_map(|v| index(v, inside)).collect();
        } else {
            return Vec::new();
        }
    }
    here
}

fn split_bracket(text: &str) -> Option<(&str, &str)> {
    let mut quoted = None;
    for (at, c) in text.char_indices() {
        match (quoted, c) {
            (None, ']') => return Some((text.get(..at)?, text.get(at + 1..)?)),
            (None, '"' | '\'') => quoted = Some(c),
            (Some(q), c) if q == c => quoted = None,
            _ => {}
        }
    }
    None
}

fn index<'a>(value: &'a Value, inside: &str) -> Vec<&'a Value> {
    let inside = inside.trim();
    if let Some(condition) = inside.strip_prefix("?(").and_then(|c| c.strip_suffix(')')) {
        let Some((left, right)) = condition.split_once("==") else { return Vec::new() };
        let wanted = right.trim().trim_matches(['"', '\'']);
        let path = left.trim().trim_start_matches('@');
        let fits =
            |item: &Value| find(item, path).first().is_some_and(|v| v.as_str().map_or_else(|| v.to_string(), str::to_owned) == wanted);
        return value.as_array().into_iter().flatten().filter(|item| fits(item)).collect();
    }
    if inside == "*" {
        return match value {
            Value::Array(items) => items.iter().collect(),
            Value::Object(members) => members.values().collect(),
            _ => Vec::new(),
        };
    }
    if let Ok(at) = inside.parse::<i64>() {
        let items = value.as_array().map_or(&[][..], Vec::as_slice);
        let at = if at < 0 { at + items.len() as i64 } else { at };
        return usize::try_from(at).ok().and_then(|at| items.get(at)).into_iter().collect();
    }
    value.get(inside.trim_matches(['"', '\'']).replace("\\.", ".")).into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn paths_find_what_they_name() {
        let object = json!({"status":{"conditions":[{"type":"Ready","status":"True"},{"type":"X","status":"False"}]},"a":{"b.c":1}});
        assert_eq!(find(&object, ".status.conditions[?(@.type==\"Ready\")].status"), [&json!("True")]);
        assert_eq!(find(&object, ".status.conditions[*].type").len(), 2);
        assert_eq!(find(&object, ".status.conditions[1].type"), [&json!("X")]);
        assert_eq!(find(&object, ".a.b\\.c"), [&json!(1)]);
        assert!(find(&object, ".nothing.here").is_empty());
    }
}
