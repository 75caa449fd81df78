//! Unknown as a value: what could not be learnt carries its reason and is never shown as 0.

use std::fmt;

/// A value that is known, or the reason for which it is not.
pub type Known<T> = Result<T, Unknown>;

/// Why a value is not known, in words for the screen: "no sample yet", "spec.replicas is text, not a number".
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Unknown(String);

impl Unknown {
    /// A reason. An empty one becomes "no reason given", because a reason is never left out.
    pub fn because(why: impl Into<String>) -> Self {
        let why = super::text::redacted(why.into());
        if why.trim().is_empty() { Self("no reason given".into()) } else { Self(why) }
    }

    /// The reason.
    pub fn why(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Unknown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Unknown {}

/// Short for `Err(Unknown::because(why))`.
pub fn unknown<T>(why: impl Into<String>) -> Known<T> {
    Err(Unknown::because(why))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_never_empty() {
        assert_eq!(Unknown::because("  ").why(), "no reason given");
        assert_eq!(Unknown::because("no sample yet").to_string(), "no sample yet");
        assert_eq!(unknown::<u8>("x"), Err(Unknown::because("x")));
    }
}
