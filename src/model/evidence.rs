//! Evidence: what proves a statement. One type for the ladder, findings, gates and answers.

use std::fmt;

use jiff::Timestamp;

use super::Subject;

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
    /// Evidence without uid.
    pub fn new(object: &Subject, place: Place, value: impl Into<String>, at: Option<Timestamp>) -> Self {
        Self { object: object.clone(), uid: None, place, value: value.into(), at }
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
