//! The gate through which every text from a cluster, an engine, a log or a file passes before anybody sees it.
//!
//! Owns what is harmless ([`clean()`]), what is secret ([`redact()`], [`is_secret_name`]) and how wide a text is ([`fit`]). Pure.

mod clean;
mod names;
mod redact;
mod width;

pub use clean::{MAX_NAME, MAX_TEXT, clean, clean_name, clean_to};
pub use names::{is_secret_name, redact_args};
pub use redact::{REDACTED, redact};
pub use width::{display_width, fit, fit_pad};

/// A text for people: harmless, without secrets, bounded.
pub fn tidy(raw: &str) -> String {
    let cleaned = clean(raw);
    match redact(&cleaned) {
        std::borrow::Cow::Borrowed(_) => cleaned.into_owned(),
        std::borrow::Cow::Owned(redacted) => redacted,
    }
}

/// The same for a text that is owned already: it is given back as it is when there is nothing to change, as nearly always.
pub fn tidied(raw: String) -> String {
    use std::borrow::Cow;
    match clean(&raw) {
        Cow::Borrowed(cleaned) => match redact(cleaned) {
            Cow::Borrowed(_) => raw,
            Cow::Owned(redacted) => redacted,
        },
        Cow::Owned(cleaned) => redact(&cleaned).into_owned(),
    }
}

/// A text that was put together of harmless ones, without the secrets that it holds.
pub fn redacted(raw: String) -> String {
    match redact(&raw) {
        std::borrow::Cow::Borrowed(_) => raw,
        std::borrow::Cow::Owned(redacted) => redacted,
    }
}

/// A name for people: harmless, without secrets, at most [`MAX_NAME`] characters.
pub fn tidy_name(raw: &str) -> String {
    let cleaned = clean_name(raw);
    match redact(&cleaned) {
        std::borrow::Cow::Borrowed(_) => cleaned,
        std::borrow::Cow::Owned(redacted) => redacted,
    }
}

/// Lines of a block such as a log: parted at line ends and at carriage returns (progress bars overwrite themselves), empty ones left
/// out, the last `max_lines` kept, each made harmless, without secrets and at most `max_chars` long. The lines of a private key become one.
pub fn clean_block(raw: &str, max_lines: usize, max_chars: usize) -> Vec<String> {
    let mut out: std::collections::VecDeque<String> = std::collections::VecDeque::new();
    let mut in_key = false;
    for line in raw.split(['\n', '\r']) {
        if in_key {
            in_key = !line.contains("-----END");
            continue;
        }
        let begins = line.contains("-----BEGIN") && line.contains("PRIVATE KEY");
        in_key = begins && !line.contains("-----END");
        let cleaned = clean_to(line, max_chars);
        let text = redact(&cleaned);
        if text.trim().is_empty() {
            continue;
        }
        if out.len() == max_lines {
            out.pop_front();
        }
        out.push_back(text.into_owned());
    }
    out.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_steps_in_one() {
        assert_eq!(tidy("\u{1b}[1m--api-key\u{1b}[0m abcdefgh"), "--api-key [redacted]");
        assert_eq!(tidy("pass\u{200b}word=abc"), "password=[redacted]");
    }

    #[test]
    fn owned_texts_are_tidied_alike() {
        for raw in ["plain", "token=abcdefgh", "a\u{e000}b", "pass\u{200b}word=abc", "x/token=abc,app=b"] {
            assert_eq!(tidied(raw.to_owned()), tidy(raw));
        }
        assert_eq!(tidy_name("Evicted password=abc"), "Evicted password=[redacted]");
    }

    #[test]
    fn blocks() {
        let key = format!("a\n-----BEGIN {k}-----\nMIIabc\nMIIdef\n-----END {k}-----\nb\r 10%\r 20%\n\n", k = "PRIVATE KEY");
        assert_eq!(clean_block(&key, 10, 80), ["a", "[redacted]", "b", " 10%", " 20%"]);
        assert_eq!(clean_block("1\n2\n3", 2, 80), ["2", "3"]);
        let endless = format!("-----BEGIN {}-----\nabc\n", "PRIVATE KEY");
        assert_eq!(clean_block(&endless, 10, 80), ["[redacted]"]);
    }
}
