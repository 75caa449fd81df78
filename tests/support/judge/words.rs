//! Looks for words in texts: which numbers stand alone, and what counts as the same word.
//!
//! A number inside a name, a date, a time of day or an address says nothing about the matter,
//! so a case that asks for "14" must not be satisfied by `qwen-14-x` or `10:14:02`.

use serde_json::Value;

use super::text::number_repr;

/// What may follow a number without a gap and leave it a number (`30s`, `14x`, `80GiB`), in lower case.
const UNITS: &[&str] = &[
    "ms", "s", "sec", "secs", "second", "seconds", "m", "min", "mins", "minute", "minutes", "h", "hr", "hrs", "hour", "hours", "d", "day",
    "days", "th", "st", "nd", "rd", "x", "k", "m", "g", "ki", "mi", "gi", "kb", "mb", "gb", "kib", "mib", "gib", "gpu", "gpus", "pod",
    "pods", "replica", "replicas", "request", "requests", "token", "tokens",
];

/// The numbers that stand alone in a text, in the order of the text.
pub(crate) fn numbers(text: &str) -> Vec<f64> {
    let chars: Vec<char> = text.chars().collect();
    let mut found = Vec::new();
    let mut at = 0;
    while at < chars.len() {
        if !chars[at].is_ascii_digit() {
            at += 1;
            continue;
        }
        let end = number_end(&chars, at);
        if stands_alone(&chars[..at], &chars[end..]) {
            let digits: String = chars[at..end].iter().collect();
            found.extend(digits.parse::<f64>());
        }
        at = end;
    }
    found
}

/// The end of the number that starts at `start`: digits, then perhaps a point and more digits.
fn number_end(chars: &[char], start: usize) -> usize {
    let whole = start + digits(&chars[start..]);
    if chars.get(whole) == Some(&'.') {
        let fraction = digits(&chars[whole + 1..]);
        if fraction > 0 {
            return whole + 1 + fraction;
        }
    }
    whole
}

fn digits(chars: &[char]) -> usize {
    chars.iter().take_while(|c| c.is_ascii_digit()).count()
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

fn stands_alone(before: &[char], after: &[char]) -> bool {
    let second_of_range = ends_range(before) && !starts_with(after, '-');
    if attached(before) && !second_of_range {
        return false;
    }
    !continues(after) && (!starts_with_letter(after) || has_unit(after))
}

/// True where what precedes makes the number a part of something longer: `a7`, `a-7`, `1.7`, `10:7`, `gpu/7`.
fn attached(before: &[char]) -> bool {
    let Some((&last, rest)) = before.split_last() else {
        return false;
    };
    let previous = rest.last().copied().unwrap_or(' ');
    is_word(last)
        || (matches!(last, '-' | '.') && is_word(previous))
        || (last == ':' && previous.is_ascii_digit())
        || (last == '/' && (previous.is_ascii_alphabetic() || previous == '_'))
}

/// True where a number of its own and a dash precede: the second half of `170-180`.
fn ends_range(before: &[char]) -> bool {
    let Some((&'-', rest)) = before.split_last() else {
        return false;
    };
    let trailing = |chars: &[char]| chars.iter().rev().take_while(|c| c.is_ascii_digit()).count();
    let mut count = trailing(rest);
    if count == 0 {
        return false;
    }
    let rest = &rest[..rest.len() - count];
    let mut head = rest;
    if let Some((&'.', whole)) = rest.split_last() {
        count = trailing(whole);
        if count == 0 {
            return false;
        }
        head = &whole[..whole.len() - count];
    }
    head.last().is_none_or(|&c| !(matches!(c, '-' | '.' | ':' | '_') || c.is_alphanumeric()))
}

/// True where `mark` and a digit follow.
fn starts_with(after: &[char], mark: char) -> bool {
    matches!(after, [first, second, ..] if *first == mark && second.is_ascii_digit())
}

/// True where the number goes on as an address, a time or a date: `.3`, `:02`, `-11-12`.
fn continues(after: &[char]) -> bool {
    if starts_with(after, '.') || starts_with(after, ':') {
        return true;
    }
    starts_with(after, '-') && starts_with(&after[1 + digits(&after[1..])..], '-')
}

fn starts_with_letter(after: &[char]) -> bool {
    after.first().is_some_and(|c| c.is_ascii_alphabetic() || *c == '_')
}

/// True where the letters that follow are a unit and nothing else.
fn has_unit(after: &[char]) -> bool {
    let run: String = after.iter().take_while(|c| c.is_ascii_alphanumeric()).collect();
    UNITS.contains(&run.to_ascii_lowercase().as_str())
}

/// A text in lower case with plain dashes and single spaces.
fn fold(text: &str) -> String {
    let plain: String = text
        .chars()
        .map(|c| match c {
            '\u{2013}' | '\u{2212}' => '-',
            c if c.is_whitespace() => ' ',
            c => c,
        })
        .collect();
    plain.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase()
}

/// Whether a word stands in a text. Digits must stand as a number of its own, anything else is looked for as it is.
pub(crate) fn has_word(word: &str, text: &str) -> bool {
    if let Some(wanted) = as_number(word) {
        return numbers(text).iter().any(|n| (n - wanted).abs() < 1e-9);
    }
    let (word_folded, text) = (fold(word), fold(text));
    let starts = word.starts_with(|c: char| c.is_ascii_digit());
    let ends = word.ends_with(|c: char| c.is_ascii_digit());
    text.char_indices().map(|(at, _)| at).chain([text.len()]).any(|at| {
        text[at..].strip_prefix(word_folded.as_str()).is_some_and(|after| {
            let cut_before = starts && text[..at].ends_with(|c: char| c.is_numeric() || c == '.');
            let cut_after = ends && after.starts_with(|c: char| c.is_numeric());
            !cut_before && !cut_after
        })
    })
}

fn as_number(word: &str) -> Option<f64> {
    let chars: Vec<char> = word.chars().collect();
    let is_number = chars.first().is_some_and(char::is_ascii_digit) && number_end(&chars, 0) == chars.len();
    if is_number { word.parse().ok() } else { None }
}

/// The words that do not stand in the text, as messages; each entry is a word, or a list of which one is enough.
pub(crate) fn missing(words: &[Value], text: &str) -> Result<Vec<String>, String> {
    let mut lacks = Vec::new();
    for entry in words {
        let any = match entry {
            Value::Array(any) => any.as_slice(),
            one => std::slice::from_ref(one),
        };
        let any = any.iter().map(word_text).collect::<Result<Vec<_>, _>>()?;
        if !any.iter().any(|word| has_word(word, text)) {
            lacks.push(any.join(" | "));
        }
    }
    Ok(lacks)
}

/// A word of a check as text; YAML may have read it as a number.
pub(crate) fn word_text(word: &Value) -> Result<String, String> {
    match word {
        Value::String(text) => Ok(text.clone()),
        Value::Number(number) => Ok(number_repr(number)),
        other => Err(format!("the check is no good: {other} is no word")),
    }
}
