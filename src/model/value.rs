//! Named values of a subject: a number, a word or an instant, with source and age, or the reason why it is unknown.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::{Fact, Known, Subject, Unknown};

/// What a named value can be.
#[derive(Debug, Clone, PartialEq)]
pub enum Scalar {
    /// A count or a measure. Fractions are 0..1, memory MiB, times seconds.
    Number(f64),
    /// A word, or the name of a subject.
    Word(String),
    /// An instant.
    Instant(Timestamp),
}

impl From<f64> for Scalar {
    fn from(value: f64) -> Self {
        Self::Number(value)
    }
}

impl From<u32> for Scalar {
    fn from(value: u32) -> Self {
        Self::Number(f64::from(value))
    }
}

impl From<&str> for Scalar {
    fn from(value: &str) -> Self {
        Self::Word(value.to_owned())
    }
}

impl From<&Subject> for Scalar {
    fn from(value: &Subject) -> Self {
        Self::Word(value.to_string())
    }
}

impl From<Timestamp> for Scalar {
    fn from(value: Timestamp) -> Self {
        Self::Instant(value)
    }
}

/// The named values of one subject, in the order of their names. Names are those of the public document.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Values(BTreeMap<&'static str, Known<Fact<Scalar>>>);

impl Values {
    /// Sets a value; one that is there already is replaced.
    pub fn set(&mut self, name: &'static str, value: Known<Fact<Scalar>>) {
        self.0.insert(name, value);
    }

    /// Sets a known value with its source and time.
    pub fn know(&mut self, name: &'static str, value: impl Into<Scalar>, source: &str, at: Timestamp) {
        self.set(name, Ok(Fact::new(value.into(), source, at)));
    }

    /// Sets a value as unknown.
    pub fn lack(&mut self, name: &'static str, why: impl Into<String>) {
        self.set(name, Err(Unknown::because(why)));
    }

    /// Looks a value up.
    pub fn get(&self, name: &str) -> Option<&Known<Fact<Scalar>>> {
        self.0.get(name)
    }

    /// The number of that name, if it is known and a number.
    pub fn number(&self, name: &str) -> Option<f64> {
        match self.0.get(name) {
            Some(Ok(Fact { value: Scalar::Number(n), .. })) => Some(*n),
            _ => None,
        }
    }

    /// All, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, &Known<Fact<Scalar>>)> {
        self.0.iter().map(|(name, value)| (*name, value))
    }

    /// Takes over all of `other`.
    pub fn extend(&mut self, other: Values) {
        self.0.extend(other.0);
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
