//! Evidence: what proves a statement. One type for the ladder, findings, gates and answers.

use std::fmt;

use jiff::Timestamp;

use super::{Subject, text};

/// A value with where it came from and when it was observed.
#[derive(Debug, Clone, PartialEq)]
pub struct Fact<T> {
    /// The value.
    pub value: T,
    /// Where it was read: a metric name, a field path, `GET /health`.
    pub source: String,
    /// When it was observed. Age is `now - at`.
    pub at: Timestamp,
}

impl<T> Fact<T> {
    /// A fact.
    pub fn new(value: T, source: impl Into<String>, at: Timestamp) -> Self {
        Self { value, source: source.into(), at }
    }

    /// The same source and time with another value.
    pub fn map<U>(&self, change: impl FnOnce(&T) -> U) -> Fact<U> {
        Fact { value: change(&self.value), source: self.source.clone(), at: self.at }
    }
}

/// Where in an object, or in what it answers, a piece of evidence stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// A field path of the object: `spec.replicas`.
    Field(String),
    /// A condition of its status, by type.
    Condition(String),
    /// An event about it, by reason.
    Event(String),
    /// A line of a container's log.
    Log(String),
    /// A metric series it exports.
    Metric(String),
    /// An HTTP answer: `GET :8000/health`.
    Http(String),
}

impl Place {
    /// The same, harmless and without secrets: queries of requests and types of conditions are other people's words.
    fn tidied(self) -> Self {
        match self {
            Self::Field(words) => Self::Field(text::tidied(words)),
            Self::Condition(words) => Self::Condition(text::tidied(words)),
            Self::Event(words) => Self::Event(text::tidied(words)),
            Self::Log(words) => Self::Log(text::tidied(words)),
            Self::Metric(words) => Self::Metric(text::tidied(words)),
            Self::Http(words) => Self::Http(text::tidied(words)),
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Field(path) => f.write_str(path),
            Self::Condition(kind) => write!(f, "condition {kind}"),
            Self::Event(reason) => write!(f, "event {reason}"),
            Self::Log(container) => write!(f, "log of {container}"),
            Self::Metric(name) => f.write_str(name),
            Self::Http(request) => f.write_str(request),
        }
    }
}

/// One piece of proof: the object, where in it, the value, and when it was observed.
#[derive(Debug, Clone, PartialEq)]
pub struct Evidence {
    /// The object that shows it.
    pub object: Subject,
    /// The object's uid, where known: two objects of one name are told apart by it.
    pub uid: Option<String>,
    /// Where in the object.
    pub place: Place,
    /// What stands there, already harmless text.
    pub value: String,
    /// When it was observed, or when what it says happened; absent where nobody knows.
    pub at: Option<Timestamp>,
}

impl Evidence {
    /// Evidence without uid. Place and value are made harmless, and secrets are taken out: whatever proves something is shown.
    pub fn new(object: &Subject, place: Place, value: impl Into<String>, at: Option<Timestamp>) -> Self {
        Self { object: object.clone(), uid: None, place: place.tidied(), value: text::tidied(value.into()), at }
    }

    /// A field of an object.
    pub fn field(object: &Subject, path: &str, value: impl Into<String>) -> Self {
        Self::new(object, Place::Field(path.into()), value, None)
    }

    /// The same with the object's uid.
    #[must_use]
    pub fn of_uid(mut self, uid: &str) -> Self {
        self.uid = (!uid.is_empty()).then(|| uid.to_owned());
        self
    }

    /// The same with a time.
    #[must_use]
    pub fn seen_at(mut self, at: Option<Timestamp>) -> Self {
        self.at = at;
        self
    }
}

impl fmt::Display for Evidence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}: {}", self.object, self.place, self.value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_and_harmful_characters_do_not_get_in() {
        let pod = Subject::pod("s", "a");
        let labels = Evidence::field(&pod, "metadata.labels", "app=a,token=s3cr3t,extra=hf_AbCdEfGhIjKlMnOpQrStUvWxYz012345\u{e000}");
        assert_eq!(labels.value, "app=a,token=[redacted],extra=[redacted]");
        let asked = Evidence::new(&pod, Place::Http("GET :8000/is_sleeping?api_key=s3cr3t&level=1".into()), "200", None);
        assert_eq!(asked.place.to_string(), "GET :8000/is_sleeping?api_key=[redacted]&level=1");
        let gate = Evidence::new(&pod, Place::Condition("x.io/token=s3cr3t".into()), "not set", None);
        assert_eq!(gate.to_string(), "pod/s/a condition x.io/token=[redacted]: not set");
    }
}
