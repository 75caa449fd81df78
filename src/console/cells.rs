//! The one gate between text and cells: whatever a cluster wrote, what reaches a cell is harmless and as wide as it says.
//!
//! Names and messages are cleaned where they enter the program; this gate stands behind that one and trusts nobody. It also owns
//! cutting and wrapping, because only here the width of text is known. Must not know what the text means.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use unicode_segmentation::UnicodeSegmentation;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::theme::{Charset, Role, Theme};

/// Combining marks that one character may carry; more is vandalism.
const MAX_MARKS: usize = 2;

/// What the gate does with a character.
enum Fate {
    Keep,
    Mark,
    Drop,
    Blank,
    Strange,
}

fn fate(c: char) -> Fate {
    match c {
        ' '..='~' => Fate::Keep,
        '\t' | '\n' | '\r' | '\u{2028}' | '\u{2029}' | '\u{a0}' | '\u{2000}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}' => {
            Fate::Blank
        }
        // Directions, joiners, variation selectors, tags, soft hyphen: they move or change what stands beside them.
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' => Fate::Drop,
        '\u{2060}'..='\u{206f}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{fff0}'..='\u{fffb}' => Fate::Drop,
        '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}' | '\u{1f3fb}'..='\u{1f3ff}' => Fate::Drop,
        // Their width differs from terminal to terminal, or they swallow what follows.
        '\u{600}'..='\u{605}' | '\u{6dd}' | '\u{70f}' | '\u{890}' | '\u{891}' | '\u{8e2}' | '\u{110bd}' | '\u{110cd}' => Fate::Strange,
        '\u{1f1e6}'..='\u{1f1ff}' | '\u{115f}' | '\u{1160}' | '\u{3164}' | '\u{ff9e}'..='\u{ffa0}' => Fate::Strange,
        _ if c.is_control() => Fate::Strange,
        _ => match c.width() {
            Some(0) => Fate::Mark,
            Some(1 | 2) => Fate::Keep,
            _ => Fate::Strange,
        },
    }
}

/// Punctuation that the house itself writes, in ASCII.
fn ascii(c: char) -> Option<&'static str> {
    Some(match c {
        '–' | '—' | '−' => "-",
        '…' => "...",
        '→' => "->",
        '←' => "<-",
        '↔' => "<->",
        '≥' => ">=",
        '≤' => "<=",
        '×' => "x",
        '·' | '•' => "|",
        '“' | '”' | '„' => "\"",
        '‘' | '’' => "'",
        _ => return None,
    })
}

/// The text as it may stand in cells: one line, no control, no direction mark, nothing of unclear width.
pub(crate) fn harmless(text: &str, charset: Charset) -> String {
    if text.bytes().all(|b| (b' '..=b'~').contains(&b)) {
        return text.to_owned();
    }
    let mut out = String::with_capacity(text.len());
    let mut marks = MAX_MARKS;
    for c in text.chars() {
        match fate(c) {
            Fate::Drop => {}
            Fate::Mark if marks < MAX_MARKS && charset == Charset::Unicode => {
                marks += 1;
                out.push(c);
            }
            Fate::Mark => {}
            Fate::Blank => {
                marks = MAX_MARKS;
                out.push(' ');
            }
            Fate::Strange => {
                marks = MAX_MARKS;
                out.push(if charset == Charset::Ascii { '?' } else { '\u{fffd}' });
            }
            Fate::Keep if charset == Charset::Ascii && !c.is_ascii() => match ascii(c) {
                Some(text) => out.push_str(text),
                None => (0..c.width().unwrap_or(1)).for_each(|_| out.push('?')),
            },
            Fate::Keep => {
                marks = if c == ' ' { MAX_MARKS } else { 0 };
                out.push(c);
            }
        }
    }
    untangle(&out, charset)
}

/// Takes clusters apart that are wider than two columns or longer than a character and its marks: no terminal agrees on them.
fn untangle(text: &str, charset: Charset) -> String {
    if text.is_ascii() {
        return text.to_owned();
    }
    let mut out = String::with_capacity(text.len());
    for cluster in text.graphemes(true) {
        if cluster.width() <= 2 && cluster.chars().count() <= 1 + MAX_MARKS {
            out.push_str(cluster);
        } else {
            out.extend(cluster.chars().next());
            out.push(if charset == Charset::Ascii { '?' } else { '\u{fffd}' });
        }
    }
    out
}

/// Columns that harmless text takes, counted as the buffer counts them.
pub(crate) fn width(text: &str) -> usize {
    if text.is_ascii() { text.len() } else { text.graphemes(true).map(UnicodeWidthStr::width).sum() }
}

/// The longest beginning of harmless text that fits into `columns`, and its width.
fn beginning(text: &str, columns: usize) -> (&str, usize) {
    let mut used = 0;
    for (at, grapheme) in text.grapheme_indices(true) {
        let wide = grapheme.width();
        if used + wide > columns {
            return (text.get(..at).unwrap_or_default(), used);
        }
        used += wide;
    }
    (text, used)
}

/// Harmless text cut to `columns`, with the theme's ellipsis where something was cut.
pub(crate) fn fit(text: &str, columns: usize, theme: Theme) -> String {
    let text = harmless(text, theme.charset);
    if width(&text) <= columns {
        return text;
    }
    match columns.checked_sub(1) {
        None => String::new(),
        Some(room) => format!("{}{}", beginning(&text, room).0, theme.ellipsis()),
    }
}

/// The same cut at the front: names of pods differ at their end.
pub(crate) fn fit_end(text: &str, columns: usize, theme: Theme) -> String {
    let text = harmless(text, theme.charset);
    let Some(room) = columns.checked_sub(1) else { return String::new() };
    let mut left = width(&text);
    if left <= columns {
        return text;
    }
    for (at, grapheme) in text.grapheme_indices(true) {
        if left <= room {
            return format!("{}{}", theme.ellipsis(), text.get(at..).unwrap_or_default());
        }
        left -= grapheme.width();
    }
    theme.ellipsis().to_owned()
}

/// Harmless text in lines of at most `columns`, broken at spaces, and inside a word only where it is longer than a line. At most
/// `most` lines; the last one then ends in an ellipsis.
pub(crate) fn wrap(text: &str, columns: usize, most: usize, theme: Theme) -> Vec<String> {
    let text = harmless(text, theme.charset);
    let mut lines: Vec<String> = Vec::new();
    let (mut line, mut used) = (String::new(), 0);
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        let wide = width(word);
        if used > 0 && used + 1 + wide <= columns {
            line.push(' ');
            line.push_str(word);
            used += 1 + wide;
            continue;
        }
        if used > 0 {
            lines.push(std::mem::take(&mut line));
        }
        let mut rest = word;
        loop {
            let (head, wide) = beginning(rest, columns.max(2));
            let tail = rest.get(head.len()..).unwrap_or_default();
            if tail.is_empty() || head.is_empty() || lines.len() > most {
                (line, used) = (head.to_owned(), wide);
                break;
            }
            lines.push(head.to_owned());
            rest = tail;
        }
    }
    if used > 0 {
        lines.push(line);
    }
    if lines.len() > most {
        lines.truncate(most);
        if let Some(last) = lines.last_mut() {
            *last = format!("{}{}", beginning(last, columns.saturating_sub(1)).0, theme.ellipsis());
        }
    }
    lines
}

/// Where views draw: a buffer with a theme. Nothing that is asked of it can leave the buffer or fail.
pub(crate) struct Canvas<'a> {
    buffer: &'a mut Buffer,
    /// Looks.
    pub(crate) theme: Theme,
}

impl<'a> Canvas<'a> {
    /// A canvas on this buffer.
    pub(crate) fn new(buffer: &'a mut Buffer, theme: Theme) -> Self {
        Self { buffer, theme }
    }

    /// Writes text from `x` on in at most `columns`, cut with an ellipsis. Returns the columns used.
    pub(crate) fn put(&mut self, x: u16, y: u16, columns: u16, text: &str, role: Role) -> u16 {
        let style = self.theme.style(role);
        let area = self.buffer.area;
        if x < area.left() || x >= area.right() || y < area.top() || y >= area.bottom() {
            return 0;
        }
        let columns = columns.min(area.right() - x);
        let text = fit(text, usize::from(columns), self.theme);
        let (end, _) = self.buffer.set_stringn(x, y, text, usize::from(columns), style);
        end.saturating_sub(x)
    }

    /// Writes text so that it ends at the right edge of `columns`.
    pub(crate) fn put_right(&mut self, x: u16, y: u16, columns: u16, text: &str, role: Role) {
        let text = fit(text, usize::from(columns), self.theme);
        let room = columns.saturating_sub(u16::try_from(width(&text)).unwrap_or(columns));
        self.put(x.saturating_add(room), y, columns - room, &text, role);
    }

    /// A horizontal line.
    pub(crate) fn rule(&mut self, area: Rect) {
        let line = self.theme.rule().repeat(usize::from(area.width));
        self.put(area.x, area.y, area.width, &line, Role::Dim);
    }

    /// Lays a role's style over what stands in an area.
    pub(crate) fn tint(&mut self, area: Rect, role: Role) {
        let style: Style = self.theme.style(role);
        let area = area.intersection(self.buffer.area);
        // A row keeps the colours of its words; only the ground (or the reversal) and plain text change.
        for y in area.top()..area.bottom() {
            for x in area.left()..area.right() {
                if let Some(cell) = self.buffer.cell_mut((x, y)) {
                    let fg = (cell.style().fg == Style::reset().fg).then_some(style.fg).flatten();
                    cell.set_style(Style { fg, ..style });
                }
            }
        }
    }

    /// Empties an area.
    pub(crate) fn clear(&mut self, area: Rect) {
        let area = area.intersection(self.buffer.area);
        for y in area.top()..area.bottom() {
            for x in area.left()..area.right() {
                if let Some(cell) = self.buffer.cell_mut((x, y)) {
                    cell.reset();
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::console::theme::Depth;
    use proptest::prelude::*;
    use rstest::rstest;

    const THEME: Theme = Theme { depth: Depth::None, charset: Charset::Unicode };
    const PLAIN: Theme = Theme { depth: Depth::None, charset: Charset::Ascii };

    #[rstest]
    #[case("plain", "plain")]
    #[case("a\u{1b}[31mb\u{7}", "a\u{fffd}[31mb\u{fffd}")]
    #[case("a\u{202e}b\u{2066}c\u{200f}d", "abcd")]
    #[case("a\nb\tc", "a b c")]
    #[case("e\u{301}e\u{301}\u{301}\u{301}\u{301}", "e\u{301}e\u{301}\u{301}")]
    #[case("\u{301}a", "a")]
    #[case("👍🏽👩\u{200d}🚒❤\u{fe0f}", "👍👩🚒❤")]
    #[case("模型", "模型")]
    #[case("\u{9b}2J\u{90}x", "\u{fffd}2J\u{fffd}x")]
    #[case("🇩🇪", "\u{fffd}\u{fffd}")]
    #[case("कि", "कि")]
    #[case("𛅐ೳ", "𛅐\u{fffd}")]
    fn gate(#[case] text: &str, #[case] expected: &str) {
        assert_eq!(harmless(text, Charset::Unicode), expected);
    }

    #[rstest]
    #[case("wait – 5 s → 2…", "wait - 5 s -> 2...")]
    #[case("模é\u{301}", "???")]
    #[case("\u{1b}", "?")]
    fn gate_to_ascii(#[case] text: &str, #[case] expected: &str) {
        assert_eq!(harmless(text, Charset::Ascii), expected);
    }

    #[rstest]
    #[case("abcdef", 6, "abcdef")]
    #[case("abcdef", 5, "abcd…")]
    #[case("模型服务", 5, "模型…")]
    #[case("模型服务", 4, "模…")]
    #[case("abc", 1, "…")]
    #[case("abc", 0, "")]
    fn cut(#[case] text: &str, #[case] columns: usize, #[case] expected: &str) {
        assert_eq!(fit(text, columns, THEME), expected);
    }

    #[rstest]
    #[case("abcdef", 6, "abcdef")]
    #[case("abcdef", 4, "…def")]
    #[case("模型服务", 4, "…务")]
    #[case("abc", 1, "…")]
    #[case("abc", 0, "")]
    fn cut_at_the_front(#[case] text: &str, #[case] columns: usize, #[case] expected: &str) {
        assert_eq!(fit_end(text, columns, THEME), expected);
    }

    #[rstest]
    #[case("one two three", 7, 9, &["one two", "three"])]
    #[case("abcdefghij kl", 4, 9, &["abcd", "efgh", "ij", "kl"])]
    #[case("one two three four", 5, 2, &["one", "two…"])]
    #[case("   ", 5, 2, &[])]
    #[case("a b c", 0, 9, &["a", "b", "c"])]
    fn wrapping(#[case] text: &str, #[case] columns: usize, #[case] most: usize, #[case] expected: &[&str]) {
        assert_eq!(wrap(text, columns, most, THEME), expected);
    }

    proptest! {
        #[test]
        fn cut_text_never_is_wider_than_asked(text in any::<String>(), columns in 0usize..40) {
            for theme in [THEME, PLAIN] {
                prop_assert!(width(&fit(&text, columns, theme)) <= columns);
                prop_assert!(width(&fit_end(&text, columns, theme)) <= columns);
                for line in wrap(&text, columns.max(2), 50, theme) {
                    prop_assert!(width(&line) <= columns.max(2), "{line:?}");
                }
            }
        }

        #[test]
        fn the_gate_is_stable_and_ascii_is_ascii(text in any::<String>()) {
            let once = harmless(&text, Charset::Unicode);
            prop_assert_eq!(&harmless(&once, Charset::Unicode), &once);
            prop_assert!(!once.chars().any(char::is_control));
            prop_assert!(harmless(&text, Charset::Ascii).is_ascii());
        }

        #[test]
        fn writing_anywhere_is_safe(text in any::<String>(), x in 0u16..30, y in 0u16..5, columns in any::<u16>()) {
            let mut buffer = Buffer::empty(Rect::new(0, 0, 20, 3));
            let mut canvas = Canvas::new(&mut buffer, THEME);
            let used = canvas.put(x, y, columns, &text, Role::Bad);
            prop_assert!(used <= 20u16.saturating_sub(x));
            canvas.put_right(x, y, columns, &text, Role::Good);
            canvas.tint(Rect::new(x, y, columns, 9), Role::Selected);
        }
    }
}
