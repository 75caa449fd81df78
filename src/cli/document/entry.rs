//! One subject's entry, and how values, findings and evidence are written.

use std::collections::BTreeMap;

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use crate::model::value::{Scalar, Values};
use crate::model::{Evidence, Fact, Finding, Known, Subject};

/// Entries by subject, in their order.
#[derive(Debug, Clone, Default, Serialize)]
#[serde(transparent)]
pub(super) struct Subjects(BTreeMap<Subject, Entry>);

impl Subjects {
    /// The entry of a subject, made where there is none yet.
    pub(super) fn at(&mut self, subject: &Subject) -> &mut Entry {
        self.0.entry(subject.clone()).or_default()
    }

    /// The entry of a subject, if it has one.
    pub(super) fn get(&self, subject: &Subject) -> Option<&Entry> {
        self.0.get(subject)
    }

    /// Keeps only these.
    pub(super) fn keep(&mut self, wanted: impl Fn(&Subject) -> bool) {
        self.0.retain(|subject, _| wanted(subject));
    }
}

/// What is known of one subject.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Entry {
    /// One word.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) state: Option<&'static str>,
    /// Why, in sentences.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) why: Vec<String>,
    /// Named values.
    #[serde(skip_serializing_if = "Values::is_empty", serialize_with = "values")]
    pub(super) values: Values,
    /// Who decides which field.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) owners: Vec<Ownership>,
}

impl Entry {
    /// The state word, if it has one.
    pub fn state(&self) -> Option<&'static str> {
        self.state
    }

    /// Its values.
    pub fn values(&self) -> &Values {
        &self.values
    }

    /// Who decides which field.
    pub fn owners(&self) -> &[Ownership] {
        &self.owners
    }

    /// Sets the state where none is set yet, with its reasons.
    pub(super) fn judge(&mut self, state: &'static str, why: &[String]) {
        if self.state.is_none() {
            self.state = Some(state);
            self.why.extend(why.iter().filter(|why| !why.is_empty()).cloned());
        }
    }

    /// Sets a count that may be unknown.
    pub(super) fn count(&mut self, name: &'static str, count: &Known<u32>, source: &str, at: jiff::Timestamp) {
        self.values.set(name, count.clone().map(|n| Fact::new(Scalar::from(n), source, at)));
    }

    /// Sets a measure that may be unknown.
    pub(super) fn measure(&mut self, name: &'static str, value: Known<Fact<f64>>) {
        self.values.set(name, value.map(|fact| fact.map(|n| Scalar::Number(*n))));
    }
}

/// Who decides one field.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Ownership {
    /// Path of the field; `spec` is the whole object.
    pub field: String,
    /// The object that decides, or the field manager where no object is known.
    pub writer: String,
    /// How it writes.
    pub via: String,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Number {
    Whole(i64),
    Real(f64),
}

/// Whole numbers are written without a point.
fn number(n: f64) -> Number {
    // Beyond 2^53 an f64 is no longer exact, and within it the cast is.
    if n.fract() == 0.0 && n.abs() < 9_007_199_254_740_992.0 { Number::Whole(n as i64) } else { Number::Real(n) }
}

struct Written<'a>(&'a Known<Fact<Scalar>>);

impl Serialize for Written<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        match self.0 {
            Ok(Fact { value: Scalar::Number(n), .. }) if !n.is_finite() => map.serialize_entry("unknown", "it is not a finite number")?,
            Ok(fact) => {
                match &fact.value {
                    Scalar::Number(n) => map.serialize_entry("value", &number(*n))?,
                    Scalar::Word(word) => map.serialize_entry("value", word)?,
                    Scalar::Instant(at) => map.serialize_entry("value", at)?,
                }
                map.serialize_entry("at", &fact.at)?;
                map.serialize_entry("source", &fact.source)?;
            }
            Err(why) => map.serialize_entry("unknown", why.why())?,
        }
        map.end()
    }
}

fn values<S: Serializer>(values: &Values, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(values.iter().map(|(name, value)| (name, Written(value))))
}

/// A finding as written.
#[derive(Debug, Clone, Serialize)]
pub struct Shown {
    code: &'static str,
    severity: &'static str,
    subjects: Vec<Subject>,
    summary: String,
    evidence: Vec<Proof>,
    remedies: Vec<String>,
    not: Vec<String>,
}

/// A piece of evidence as written.
#[derive(Debug, Clone, Serialize)]
struct Proof {
    object: Subject,
    #[serde(skip_serializing_if = "Option::is_none")]
    uid: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    at: Option<jiff::Timestamp>,
    field: String,
    value: String,
}

impl From<&Finding> for Shown {
    fn from(finding: &Finding) -> Self {
        Self {
            code: finding.code.word(),
            severity: finding.severity.word(),
            subjects: finding.subjects.clone(),
            summary: finding.summary.clone(),
            evidence: finding.evidence.iter().map(Proof::from).collect(),
            remedies: finding.remedies.clone(),
            not: finding.not.clone(),
        }
    }
}

impl From<&Evidence> for Proof {
    fn from(evidence: &Evidence) -> Self {
        Self {
            object: evidence.object.clone(),
            uid: evidence.uid.clone(),
            at: evidence.at,
            field: evidence.place.to_string(),
            value: evidence.value.clone(),
        }
    }
}

/// A piece of evidence in one line, with its time.
pub(crate) fn evidence(evidence: &Evidence) -> String {
    match evidence.at {
        Some(at) => format!("{evidence} ({at})"),
        None => evidence.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn values_say_source_and_time_or_why_not() {
        let at: jiff::Timestamp = "2026-11-12T10:00:00Z".parse().unwrap();
        let mut entry = Entry::default();
        entry.values.know("running", 3.0, "vllm:num_requests_running", at);
        entry.values.know("kv-usage", 0.5, "x", at);
        entry.values.know("ttft-p95", f64::NAN, "x", at);
        entry.values.know("since", at, "x", at);
        entry.values.lack("waiting", "no sample yet");
        let written = serde_json::to_value(&entry).unwrap();
        let stamp = "2026-11-12T10:00:00Z";
        assert_eq!(
            written,
            json!({"values": {
            "running": {"value": 3, "at": stamp, "source": "vllm:num_requests_running"},
            "kv-usage": {"value": 0.5, "at": stamp, "source": "x"},
            "ttft-p95": {"unknown": "it is not a finite number"},
            "since": {"value": stamp, "at": stamp, "source": "x"},
            "waiting": {"unknown": "no sample yet"}}})
        );
        assert_eq!(serde_json::to_string(&written["values"]["running"]["value"]).unwrap(), "3");
    }
}
