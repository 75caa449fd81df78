//! The explain document: what makes one valid.

use super::compare::instant;
use super::strict_json::{self, Json, Members};

/// A valid explain document.
pub(crate) struct Document {
    subjects: Members,
    findings: Vec<Json>,
}

impl Document {
    /// Reads what the program printed. Fails where it is not one JSON object of schema 1 with this `now` and the right shapes.
    pub(crate) fn read(text: &str, now: &str) -> Result<Self, String> {
        if text.trim().is_empty() {
            return Err("no document: nothing on stdout".into());
        }
        let value = strict_json::parse(text).map_err(|error| format!("invalid JSON: {error}"))?;
        let Json::Object(root) = value else {
            return Err("invalid document: not an object".into());
        };
        if root.get("schemaVersion").and_then(Json::text) != Some("1") {
            return Err(format!("schemaVersion is {}, wanted \"1\"", field(&root, "schemaVersion")));
        }
        let found = root.get("now").and_then(Json::text).and_then(instant);
        if found.is_none() || found != instant(now) {
            return Err(format!("now is {}, wanted {now}", field(&root, "now")));
        }
        let Some(Json::Object(subjects)) = root.get("subjects").cloned() else {
            return Err("invalid document: `subjects` is not an object".into());
        };
        let Some(Json::List(findings)) = root.get("findings").cloned() else {
            return Err("invalid document: `findings` is not a list".into());
        };
        for (name, entry) in subjects.iter() {
            entry_shape(entry).map_err(|what| format!("invalid document: subject {name}: {what}"))?;
        }
        for finding in &findings {
            finding_shape(finding).map_err(|what| format!("invalid document: finding {}: {what}", code(finding)))?;
        }
        Ok(Self { subjects, findings })
    }

    /// The entry of a subject, or a message that names subjects with the same last part.
    pub(crate) fn subject(&self, name: &str) -> Result<&Members, String> {
        if let Some(entry) = self.subjects.get(name).and_then(Json::members) {
            return Ok(entry);
        }
        let tail = |name: &str| name.rsplit('/').next().unwrap_or_default().to_owned();
        let near: Vec<_> = self.subjects.iter().map(|(other, _)| other).filter(|other| tail(other) == tail(name)).take(3).collect();
        Err(match near.as_slice() {
            [] => format!("no subject {name}"),
            near => format!("no subject {name} (there is {})", near.join(", ")),
        })
    }

    /// All findings, as the program ordered them.
    pub(crate) fn findings(&self) -> &[Json] {
        &self.findings
    }
}

/// The subjects that a finding names.
pub(crate) fn named(finding: &Json) -> impl Iterator<Item = &str> {
    finding.get("subjects").and_then(Json::list).into_iter().flatten().filter_map(Json::text)
}

/// The code of a finding; empty if it has none.
pub(crate) fn code(finding: &Json) -> &str {
    finding.get("code").and_then(Json::text).unwrap_or_default()
}

fn field(root: &Members, key: &str) -> String {
    root.get(key).map_or("absent".into(), Json::to_string)
}

fn entry_shape(entry: &Json) -> Result<(), String> {
    let entry = entry.members().ok_or("not an object")?;
    for key in ["why", "owners"] {
        is_list(entry, key)?;
    }
    for key in ["values", "actions"] {
        if entry.get(key).is_some_and(|value| value.members().is_none()) {
            return Err(format!("`{key}` is not an object"));
        }
    }
    Ok(())
}

fn finding_shape(finding: &Json) -> Result<(), String> {
    let finding = finding.members().ok_or("not an object")?;
    let text = |key| finding.get(key).and_then(Json::text);
    text("code").ok_or("no code")?;
    if finding.get("subjects").and_then(Json::list).is_none_or(<[Json]>::is_empty) {
        return Err("names no subjects".into());
    }
    if text("summary").is_none_or(|summary| summary.trim().is_empty()) {
        return Err("no summary".into());
    }
    ["evidence", "remedies", "not"].iter().try_for_each(|key| is_list(finding, key))
}

fn is_list(object: &Members, key: &str) -> Result<(), String> {
    if object.get(key).is_some_and(|value| value.list().is_none()) {
        return Err(format!("`{key}` is not a list"));
    }
    Ok(())
}
