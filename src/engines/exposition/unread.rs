//! What could not be read of a page, counted in full and listed in part. Owns the reasons and the made-safe excerpts.
use std::collections::BTreeMap;

/// Why a line was not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, thiserror::Error)]
pub enum Reason {
    /// It begins with something that is no metric name.
    #[error("does not begin with a metric name")]
    Name,
    /// `{…}` without a name before it or a quoted one in it.
    #[error("has labels but no metric name")]
    NoName,
    /// The label block breaks the grammar.
    #[error("its labels cannot be read")]
    Labels,
    /// A label's name needs quotes, or is missing.
    #[error("a label's name cannot be read")]
    LabelName,
    /// A quoted string does not end on this line.
    #[error("a quote is not closed")]
    OpenQuote,
    /// One label name stands there twice.
    #[error("has the same label twice")]
    DuplicateLabel,
    /// There is nothing where the value should be.
    #[error("has no value")]
    NoValue,
    /// The value is no number.
    #[error("its value is no number")]
    Value,
    /// What follows the value is no timestamp.
    #[error("what follows its value is no timestamp")]
    Timestamp,
    /// Something follows the timestamp.
    #[error("has something after its timestamp")]
    Trailing,
    /// A TYPE, HELP or UNIT line without a readable name or type.
    #[error("its TYPE, HELP or UNIT cannot be read")]
    Metadata,
    /// A second TYPE line of a family, of another kind; the first one holds.
    #[error("gives a family a second, different type")]
    TypeAgain,
    /// Longer than [`Limits::line_bytes`](super::Limits::line_bytes).
    #[error("is too long")]
    LineTooLong,
    /// More labels than [`Limits::labels`](super::Limits::labels).
    #[error("has too many labels")]
    TooManyLabels,
    /// Beyond [`Limits::samples`](super::Limits::samples).
    #[error("comes after the most samples that are kept of a page")]
    TooManySamples,
    /// Beyond [`Limits::families`](super::Limits::families).
    #[error("comes after the most families that are kept of a page")]
    TooManyFamilies,
}

/// One line that was not read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnreadLine {
    /// Its number on the page, from 1.
    pub number: u64,
    /// Why.
    pub reason: Reason,
    /// The beginning of the line, safe to draw: control and direction characters are replaced, and it is cut at
    /// 120 characters (with `…`).
    pub text: String,
}

/// The lines of a page that were not read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Unread {
    /// How many.
    pub count: u64,
    /// How many for each reason.
    pub by_reason: BTreeMap<Reason, u64>,
    /// The first of them.
    pub lines: Vec<UnreadLine>,
}

impl Unread {
    /// Counts a line, and lists it if fewer than `listed` are listed.
    pub(super) fn add(&mut self, number: u64, reason: Reason, line: &[u8], listed: usize) {
        self.count = self.count.saturating_add(1);
        let count = self.by_reason.entry(reason).or_default();
        *count = count.saturating_add(1);
        if self.lines.len() < listed {
            self.lines.push(UnreadLine { number, reason, text: excerpt(line) });
        }
    }
}

const EXCERPT_CHARS: usize = 120;

/// The beginning of untrusted bytes as one line of text that no terminal takes for a command.
pub(super) fn excerpt(line: &[u8]) -> String {
    // A character has at most four bytes, so this much always holds all that is shown and one more.
    let head = line.get(..EXCERPT_CHARS * 4 + 4).unwrap_or(line);
    let text = String::from_utf8_lossy(head);
    let mut out: String = text.chars().take(EXCERPT_CHARS).map(|c| if is_unsafe(c) { '\u{fffd}' } else { c }).collect();
    if text.chars().nth(EXCERPT_CHARS).is_some() {
        out.push('…');
    }
    out
}

/// Control characters, line separators, and characters that are unseen or turn the direction of text.
fn is_unsafe(c: char) -> bool {
    let unseen = matches!(c, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}');
    unseen || c.is_control()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn excerpts_are_safe_and_short() {
        assert_eq!(excerpt(b"a\x1b[31mb\tc\xff"), "a\u{fffd}[31mb\u{fffd}c\u{fffd}");
        assert_eq!(excerpt("x\u{202e}y\u{200b}".as_bytes()), "x\u{fffd}y\u{fffd}");
        let long = "é".repeat(500);
        let text = excerpt(long.as_bytes());
        assert_eq!(text.chars().count(), EXCERPT_CHARS + 1);
        assert!(text.ends_with("é…"));
        assert_eq!(excerpt("é".repeat(EXCERPT_CHARS).as_bytes()), "é".repeat(EXCERPT_CHARS));
    }

    #[test]
    fn all_are_counted_and_the_first_are_listed() {
        let mut unread = Unread::default();
        for number in 1..=5 {
            unread.add(number, if number == 2 { Reason::Value } else { Reason::Name }, b"?", 3);
        }
        assert_eq!(unread.count, 5);
        assert_eq!(unread.by_reason, BTreeMap::from([(Reason::Name, 4), (Reason::Value, 1)]));
        assert_eq!(unread.lines.iter().map(|l| l.number).collect::<Vec<_>>(), [1, 2, 3]);
    }
}
