//! How wide a text is on a terminal, and cutting it to a width.

use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

/// Columns that a text takes.
pub fn display_width(text: &str) -> usize {
    UnicodeWidthStr::width(text)
}

/// The text cut to at most `columns`, at the border of a character as people see it; what is cut ends in `…`.
pub fn fit(text: &str, columns: usize) -> String {
    if display_width(text) <= columns {
        return text.to_owned();
    }
    if columns == 0 {
        return String::new();
    }
    let mut out = String::new();
    let mut used = 0;
    for cluster in text.graphemes(true) {
        let width = display_width(cluster);
        if used + width > columns - 1 {
            break;
        }
        out.push_str(cluster);
        used += width;
    }
    out.push('…');
    out
}

/// The same, filled with blanks to exactly `columns`.
pub fn fit_pad(text: &str, columns: usize) -> String {
    let mut out = fit(text, columns);
    let width = display_width(&out);
    out.extend(std::iter::repeat_n(' ', columns.saturating_sub(width)));
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rstest::rstest;

    #[rstest]
    #[case("abc", 5, "abc  ")]
    #[case("abcdef", 4, "abc…")]
    #[case("日本語", 4, "日… ")]
    #[case("e\u{301}e\u{301}e\u{301}", 2, "e\u{301}…")]
    #[case("abc", 0, "")]
    fn fitting(#[case] text: &str, #[case] columns: usize, #[case] wanted: &str) {
        assert_eq!(fit_pad(text, columns), wanted);
    }

    proptest! {
        #[test]
        fn never_wider_than_asked(text in "\\PC{0,40}", columns in 0usize..30) {
            prop_assert!(display_width(&fit(&text, columns)) <= columns);
        }
    }
}
