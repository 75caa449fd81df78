//! When a check holds. A check that asks for nothing, or is of an unforeseen shape, never holds.

use serde_json::{Map, Value};

use super::compare::{number, same};
use super::document::{Document, code, named};
use super::strict_json::Json;
use super::text::{entry_text, finding_text, joined};
use super::words::{has_word, missing, word_text};
use super::{Verdict, show};

/// Evaluates one check of a `checks.yaml` on a document.
pub(crate) fn evaluate(doc: &Document, check: &Value) -> Verdict {
    let check = Check(check.as_object().ok_or("the check is not a mapping")?);
    match check.text("check")? {
        "state" => state(doc, check),
        "value" => value(doc, check),
        "finding" => finding(doc, check),
        "no-finding" => no_finding(doc, check),
        "action" => action(doc, check),
        "owner" => owner(doc, check),
        "words" => words(doc, check),
        other => Err(format!("unknown check type {other:?}")),
    }
}

/// The fields of a check.
#[derive(Clone, Copy)]
struct Check<'a>(&'a Map<String, Value>);

impl<'a> Check<'a> {
    fn text(self, key: &str) -> Result<&'a str, String> {
        self.0.get(key).and_then(Value::as_str).ok_or_else(|| format!("the check has no text `{key}`"))
    }

    /// A list that may be absent, which is like empty.
    fn optional(self, key: &str) -> Result<&'a [Value], String> {
        match self.0.get(key) {
            None => Ok(&[]),
            Some(Value::Array(list)) => Ok(list),
            Some(_) => Err(format!("`{key}` of the check is not a list")),
        }
    }

    fn list(self, key: &str) -> Result<&'a [Value], String> {
        if !self.0.contains_key(key) {
            return Err(format!("the check lacks `{key}`"));
        }
        self.optional(key)
    }

    fn filled(self, key: &str) -> Result<&'a [Value], String> {
        let list = self.list(key)?;
        if list.is_empty() { Err(format!("`{key}` of the check is empty")) } else { Ok(list) }
    }

    fn subjects(self) -> Result<Vec<&'a str>, String> {
        let texts = self.filled("subjects")?.iter().map(Value::as_str).collect::<Option<Vec<_>>>();
        texts.ok_or("a subject of the check is not a text".into())
    }

    fn codes(self) -> Result<Vec<&'a str>, String> {
        let one_or_more = self.0.get("code").map(one_or_list).unwrap_or_default();
        let codes = one_or_more.iter().chain(self.optional("codes")?).map(Value::as_str);
        let codes: Vec<_> = codes.collect::<Option<_>>().ok_or("a code of the check is not a text")?;
        if codes.is_empty() { Err("the check has no code".into()) } else { Ok(codes) }
    }
}

fn one_or_list(value: &Value) -> &[Value] {
    match value {
        Value::Array(list) => list,
        one => std::slice::from_ref(one),
    }
}

fn state(doc: &Document, check: Check<'_>) -> Verdict {
    let state = doc.subject(check.text("subject")?)?.get("state").map_or(Value::Null, Json::to_value);
    if check.filled("is")?.contains(&state) && !check.optional("not")?.contains(&state) {
        return Ok(());
    }
    Err(format!("state {state}"))
}

fn value(doc: &Document, check: Check<'_>) -> Verdict {
    let values = doc.subject(check.text("subject")?)?.get("values");
    let name = check.text("name")?;
    let entry = values.and_then(|values| values.get(name)).filter(|entry| **entry != Json::Null).ok_or("no such value")?;
    let modes: Vec<_> = ["equals", "approx", "unknown", "not"].into_iter().filter(|mode| check.0.contains_key(*mode)).collect();
    let &[mode] = modes.as_slice() else {
        return Err("the check needs one of equals, approx, unknown, not".into());
    };
    let asked = &check.0[mode];
    let (known, found) = match (entry.get("value"), entry.get("unknown")) {
        (Some(Json::Null), None) => return Err("value null".into()),
        (Some(known), None) => (Some(known), format!("value {}", show(&known.to_string()))),
        (None, Some(Json::Text(reason))) if !reason.trim().is_empty() => (None, format!("unknown ({})", show(reason))),
        (None, Some(_)) => return Err("unknown without a reason".into()),
        _ => {
            return Err(format!("neither value nor unknown, or both: {}", show(&entry.to_string())));
        }
    };
    let holds = match (mode, known) {
        ("unknown", known) if asked == &Value::Bool(true) => known.is_none(),
        ("unknown", _) => return Err("`unknown` of the check must be true".into()),
        ("not", known) => known.is_none_or(|known| !same(known, asked)),
        (_, None) => false,
        ("equals", Some(known)) => same(known, asked),
        (_, Some(known)) => {
            let within = check.0.get("within").and_then(Value::as_f64);
            let (Some(middle), Some(within)) = (asked.as_f64(), within) else {
                return Err("the check needs numbers in approx and within".into());
            };
            number(known).is_some_and(|known| (known - middle).abs() <= within * (1.0 + 1e-9))
        }
    };
    if holds { Ok(()) } else { Err(found) }
}

fn finding(doc: &Document, check: Check<'_>) -> Verdict {
    let (codes, subjects) = (check.codes()?, check.subjects()?);
    let of_code: Vec<_> = doc.findings().iter().filter(|finding| codes.contains(&code(finding))).collect();
    if of_code.is_empty() {
        return Err("no such finding".into());
    }
    let mut best: Option<Vec<String>> = None;
    for finding in &of_code {
        if !subjects.iter().all(|subject| named(finding).any(|name| name == *subject)) {
            continue;
        }
        let mut lacks = Vec::new();
        for (key, text) in
            [("words", finding_text(finding)), ("remedies", joined([finding.get("remedies")])), ("not", joined([finding.get("not")]))]
        {
            let missing = missing(check.optional(key)?, &text)?;
            lacks.extend(missing.into_iter().map(|word| format!("{word:?} in {key}")));
        }
        if lacks.is_empty() {
            return Ok(());
        }
        if best.as_ref().is_none_or(|best| lacks.len() < best.len()) {
            best = Some(lacks);
        }
    }
    Err(match best {
        Some(lacks) => format!("the finding is there and does not say {}", lacks.join(", ")),
        None => format!(
            "only on {}",
            of_code.iter().map(|finding| named(finding).collect::<Vec<_>>().join(", ")).collect::<Vec<_>>().join("; ")
        ),
    })
}

fn no_finding(doc: &Document, check: Check<'_>) -> Verdict {
    let (codes, subjects) = (check.codes()?, check.subjects()?);
    for subject in &subjects {
        doc.subject(subject)?;
    }
    for finding in doc.findings().iter().filter(|finding| codes.contains(&code(finding))) {
        if let Some(on) = named(finding).find(|name| subjects.contains(name)) {
            let summary = finding.get("summary").and_then(Json::text).unwrap_or_default();
            return Err(format!("{} on {on}: {}", code(finding), show(summary)));
        }
    }
    Ok(())
}

fn action(doc: &Document, check: Check<'_>) -> Verdict {
    let actions = doc.subject(check.text("subject")?)?.get("actions");
    let action = actions.and_then(|actions| actions.get(check.text("verb").ok()?)).and_then(Json::members);
    let action = action.ok_or("no such action")?;
    let answers = check.0.get("answer").map(one_or_list).unwrap_or_default();
    if answers.is_empty() {
        return Err("the check has no answer".into());
    }
    let answer = action.get("answer").map_or(Value::Null, Json::to_value);
    if !answers.contains(&answer) {
        return Err(format!("answer {answer}"));
    }
    let text = joined(["because", "instead"].map(|key| action.get(key)));
    match missing(check.optional("words")?, &text)? {
        lacks if lacks.is_empty() => Ok(()),
        lacks => Err(format!("the answer is right and does not say {lacks:?}")),
    }
}

fn owner(doc: &Document, check: Check<'_>) -> Verdict {
    let entry = doc.subject(check.text("subject")?)?;
    let (field, writer) = (check.text("field")?, check.text("writer")?);
    if writer.is_empty() {
        return Err("the check has no writer".into());
    }
    let owners = entry.get("owners").and_then(Json::list).into_iter().flatten();
    let of_field = owners.filter(|owner| owner.get("field").and_then(Json::text) == Some(field));
    let writers: Vec<_> = of_field.map(|owner| owner.get("writer").and_then(Json::text).unwrap_or_default()).collect();
    if writers.iter().any(|found| found.starts_with(writer)) {
        return Ok(());
    }
    Err(if writers.is_empty() { "no owner of this field".into() } else { format!("writers {writers:?}") })
}

fn words(doc: &Document, check: Check<'_>) -> Verdict {
    let subject = check.text("subject")?;
    let entry = doc.subject(subject)?;
    let (all, none) = (check.list("all")?, check.optional("none")?);
    if all.is_empty() && none.is_empty() {
        return Err("the check has no words".into());
    }
    let mut text = entry_text(entry);
    for finding in doc.findings().iter().filter(|finding| named(finding).any(|name| name == subject)) {
        text.push('\n');
        text.push_str(&finding_text(finding));
    }
    let lacks = missing(all, &text)?;
    let mut stand = Vec::new();
    for word in none {
        let word = word_text(word)?;
        if has_word(&word, &text) {
            stand.push(word);
        }
    }
    match (lacks.is_empty(), stand.is_empty()) {
        (true, true) => Ok(()),
        (false, true) => Err(format!("does not say {lacks:?}")),
        (true, false) => Err(format!("says {stand:?}")),
        (false, false) => Err(format!("does not say {lacks:?}, says {stand:?}")),
    }
}
