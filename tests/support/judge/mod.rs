//! Judges explain documents by the checks of the case bundles.
//!
//! Owns: what makes a document valid, when each type of check holds, which failures are deferred.
//! Must not: know any case or use the product's own types. It sees the program as a script would.

pub(crate) mod cases;
pub(crate) mod checks;
pub(crate) mod compare;
pub(crate) mod deferred;
pub(crate) mod document;
pub(crate) mod run;
pub(crate) mod settle;
pub(crate) mod strict_json;
pub(crate) mod text;
pub(crate) mod words;

/// Whether a check holds; if not, what was found instead.
pub(crate) type Verdict = Result<(), String>;

/// A text in one line for a message, cut at 160 characters.
pub(crate) fn show(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.chars().count() <= 160 {
        return line;
    }
    line.chars().take(159).chain(['…']).collect()
}
