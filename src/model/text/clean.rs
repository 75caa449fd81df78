//! Making a text harmless: what is left moves no cursor, turns no writing direction and hides nothing.
//!
//! Must not judge whether a text is secret: that is `redact`.

use std::borrow::Cow;

/// Most characters of a text that is shown.
pub const MAX_TEXT: usize = 4096;
/// Most characters of a name: Kubernetes' limit for names of objects.
pub const MAX_NAME: usize = 253;
/// Most combining marks kept on one character; more are used to paint over neighbouring lines.
const MAX_MARKS: usize = 2;

/// One line of harmless text, at most [`MAX_TEXT`] characters. Terminal sequences are removed whole; tabs and line ends become one
/// blank; control, direction, zero-width, private-use and tag characters are removed. Plain text is borrowed.
pub fn clean(raw: &str) -> Cow<'_, str> {
    clean_to(raw, MAX_TEXT)
}

/// The same for a name: at most [`MAX_NAME`] characters.
pub fn clean_name(raw: &str) -> String {
    clean_to(raw, MAX_NAME).into_owned()
}

/// The same with another limit, in characters; what is cut ends in `…`.
pub fn clean_to(raw: &str, max: usize) -> Cow<'_, str> {
    if raw.len() <= max && raw.bytes().all(|b| (b' '..=b'~').contains(&b)) {
        return Cow::Borrowed(raw);
    }
    let mut out = String::with_capacity(raw.len().min(max.saturating_mul(4)));
    let (mut count, mut marks) = (0usize, 0usize);
    let mut chars = raw.chars();
    while let Some(c) = next_visible(&mut chars) {
        if is_mark(c) {
            marks += 1;
            if marks > MAX_MARKS || out.is_empty() {
                continue;
            }
        } else {
            marks = 0;
        }
        if count == max {
            // The mark of a cut stands within the limit, so that cleaning twice changes nothing.
            out.pop();
            while out.chars().next_back().is_some_and(is_mark) {
                out.pop();
            }
            out.push('…');
            break;
        }
        out.push(c);
        count += 1;
    }
    Cow::Owned(out)
}

/// The next character that may be shown; sequences and hidden characters are passed over.
fn next_visible(chars: &mut std::str::Chars) -> Option<char> {
    loop {
        let c = chars.next()?;
        match c {
            '\u{1b}' => escape(chars),
            // The eight-bit forms of the same sequences.
            '\u{9b}' => control_sequence(chars),
            '\u{90}' | '\u{98}' | '\u{9d}' | '\u{9e}' | '\u{9f}' => string_sequence(chars),
            '\t' | '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{85}' | '\u{2028}' | '\u{2029}' | '\u{a0}' => return Some(' '),
            c if is_hidden(c) => {}
            c => return Some(c),
        }
    }
}

/// After ESC: a control sequence, a string, or two characters.
fn escape(chars: &mut std::str::Chars) {
    let mut ahead = chars.clone();
    match ahead.next() {
        Some('[') => {
            *chars = ahead;
            control_sequence(chars);
        }
        Some(']' | 'P' | 'X' | '^' | '_') => {
            *chars = ahead;
            string_sequence(chars);
        }
        // ESC ( B and the like: intermediates, then a final character.
        Some(' '..='/') => {
            *chars = ahead;
            let mut ahead = chars.clone();
            while let Some(c) = ahead.next() {
                match c {
                    ' '..='/' => *chars = ahead.clone(),
                    '0'..='~' => {
                        *chars = ahead;
                        return;
                    }
                    _ => return,
                }
            }
        }
        Some('0'..='~') => *chars = ahead,
        _ => {}
    }
}

/// After CSI: parameters and intermediates, then one final character. Stops before anything that can not be part of it.
fn control_sequence(chars: &mut std::str::Chars) {
    let mut ahead = chars.clone();
    while let Some(c) = ahead.next() {
        match c {
            ' '..='?' => *chars = ahead.clone(),
            '@'..='~' => {
                *chars = ahead;
                return;
            }
            _ => return,
        }
    }
}

/// After OSC, DCS, SOS, PM or APC: all up to BEL or ST. One that never ends would swallow the rest of the text: then only the
/// introducer is removed.
fn string_sequence(chars: &mut std::str::Chars) {
    let mut ahead = chars.clone();
    while let Some(c) = ahead.next() {
        match c {
            '\u{7}' | '\u{9c}' => {
                *chars = ahead;
                return;
            }
            '\u{1b}' => {
                let mut end = ahead.clone();
                if end.next() == Some('\\') {
                    *chars = end;
                } else {
                    *chars = ahead;
                }
                return;
            }
            _ => {}
        }
    }
}

/// Characters that are not seen, or that change how others are seen.
fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}'
            | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{fdd0}'..='\u{fdef}' | '\u{e000}'..='\u{f8ff}'
            | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}' | '\u{f0000}'..='\u{10ffff}')
        || (u32::from(c) & 0xfffe) == 0xfffe
}

/// Combining marks of the blocks that hold nothing else.
fn is_mark(c: char) -> bool {
    matches!(c, '\u{300}'..='\u{36f}' | '\u{483}'..='\u{489}' | '\u{1ab0}'..='\u{1aff}' | '\u{1dc0}'..='\u{1dff}' | '\u{20d0}'..='\u{20ff}' | '\u{fe20}'..='\u{fe2f}')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rstest::rstest;

    #[rstest]
    #[case("plain", "plain")]
    #[case("größe ✓ 日本", "größe ✓ 日本")]
    #[case("\u{1b}[31mred\u{1b}[0m", "red")]
    #[case("a\u{1b}]0;title\u{7}b", "ab")]
    #[case("a\u{1b}]8;;http://x\u{1b}\\link\u{1b}]8;;\u{1b}\\b", "alinkb")]
    #[case("a\u{9b}2Jb", "ab")]
    #[case("a\u{1b}Pq#0\u{1b}\\b", "ab")]
    #[case("a\u{1b}(Bb", "ab")]
    #[case("a\u{1b}cb", "ab")]
    #[case("a\u{1b}]never ends", "anever ends")]
    #[case("tab\tand\r\nline", "tab and  line")]
    #[case("left\u{202e}thgir", "leftthgir")]
    #[case("a\u{200b}b\u{feff}c\u{2066}d", "abcd")]
    #[case("e\u{301}\u{301}\u{301}\u{301}x", "e\u{301}\u{301}x")]
    #[case("\u{0}\u{8}\u{7f}x", "x")]
    fn texts(#[case] raw: &str, #[case] wanted: &str) {
        assert_eq!(clean(raw), wanted);
    }

    #[test]
    fn limits() {
        assert_eq!(clean_name(&"a".repeat(1000)).chars().count(), MAX_NAME);
        assert!(clean_name(&"é".repeat(1000)).ends_with('…'));
        assert_eq!(clean_name(&"a".repeat(253)), "a".repeat(253));
        assert!(matches!(clean("plain"), Cow::Borrowed(_)));
    }

    proptest! {
        #[test]
        fn nothing_harmful_is_left_and_twice_is_once(raw in any::<String>(), max in 1usize..40) {
            let once = clean_to(&raw, max).into_owned();
            prop_assert!(once.chars().count() <= max);
            prop_assert!(!once.chars().any(is_hidden), "{once:?}");
            prop_assert_eq!(clean_to(&once, max).into_owned(), once.clone());
        }

        #[test]
        fn sequences_in_any_company(parts in proptest::collection::vec(prop_oneof![
            Just("\u{1b}[".to_owned()), Just("\u{1b}]".to_owned()), Just("\u{9d}".to_owned()), Just("\u{7}".to_owned()), Just("\u{1b}".to_owned()),
            Just("\u{1b}\\".to_owned()), "[ -~]{0,4}", Just("\u{202e}".to_owned())], 0..20)) {
            let once = clean(&parts.concat()).into_owned();
            prop_assert!(!once.chars().any(is_hidden));
            prop_assert_eq!(clean(&once).into_owned(), once.clone());
        }
    }
}
