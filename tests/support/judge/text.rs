//! What a document says in words: the texts of a finding, a subject's entry, an action.

use serde_json::Number;

use super::strict_json::{Json, Members};

/// All texts and numbers in these values, keys left out, one a line.
pub(crate) fn joined<'a>(values: impl IntoIterator<Item = Option<&'a Json>>) -> String {
    let mut lines = Vec::new();
    for value in values.into_iter().flatten() {
        collect(value, &mut lines);
    }
    lines.join("\n")
}

fn collect(value: &Json, lines: &mut Vec<String>) {
    match value {
        Json::Null => {}
        Json::Bool(flag) => lines.push(flag.to_string()),
        Json::Number(number) => lines.push(number_text(number)),
        Json::Text(text) => lines.push(text.clone()),
        Json::List(parts) => parts.iter().for_each(|part| collect(part, lines)),
        Json::Object(parts) => parts.values().for_each(|part| collect(part, lines)),
    }
}

/// A number as a reader would write it: whole ones without a fraction.
fn number_text(number: &Number) -> String {
    match number.as_f64() {
        // adding 0 turns a negative zero into zero
        Some(float) if number.is_f64() && float.fract() == 0.0 => format!("{:.0}", float + 0.0),
        _ => number_repr(number),
    }
}

/// A number with its fraction, small ones with an exponent of two digits.
pub(crate) fn number_repr(number: &Number) -> String {
    let Some(float) = number.as_f64().filter(|_| number.is_f64()) else {
        return number.to_string();
    };
    if float == 0.0 || float.abs() >= 1e-4 {
        return format!("{float:?}");
    }
    match format!("{float:e}").split_once("e-") {
        Some((digits, exponent)) => format!("{digits}e-{exponent:0>2}"),
        None => float.to_string(),
    }
}

/// What a finding says, its subjects included.
pub(crate) fn finding_text(finding: &Json) -> String {
    joined(["subjects", "summary", "evidence", "remedies", "not"].map(|key| finding.get(key)))
}

/// What a subject's entry says. Bare numbers of values are left out: `value` checks are for them.
pub(crate) fn entry_text(entry: &Members) -> String {
    let mut parts: Vec<Option<&Json>> = ["state", "why", "owners"].map(|key| entry.get(key)).into();
    for value in objects_in(entry, "values") {
        parts.extend([value.get("unknown"), value.get("source")]);
        parts.push(value.get("value").filter(|value| !matches!(value, Json::Number(_))));
    }
    for action in objects_in(entry, "actions") {
        parts.extend(["because", "instead"].map(|key| action.get(key)));
    }
    joined(parts)
}

fn objects_in<'a>(entry: &'a Members, key: &str) -> impl Iterator<Item = &'a Members> {
    entry.get(key).and_then(Json::members).into_iter().flat_map(Members::values).filter_map(Json::members)
}
