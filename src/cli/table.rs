//! Tables of text: columns aligned by the width at which terminals draw them.

use crate::model::text::{display_width, fit, fit_pad};

/// Narrowest width to which a table is cut.
const NARROWEST: usize = 20;

/// Lines of a table under its headings, two blanks between columns. With a width each line is cut to it; without, nothing is.
pub(super) fn lines(headings: &[&str], rows: &[Vec<String>], columns: Option<usize>) -> Vec<String> {
    let mut widths: Vec<usize> = headings.iter().map(|heading| display_width(heading)).collect();
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(display_width(cell));
        }
    }
    let line = |cells: &mut dyn Iterator<Item = &str>| {
        let mut text = String::new();
        for (cell, width) in cells.zip(&widths) {
            text.push_str(&fit_pad(cell, *width));
            text.push_str("  ");
        }
        let text = text.trim_end();
        match columns {
            Some(columns) => fit(text, columns.max(NARROWEST)),
            None => text.to_owned(),
        }
    };
    let mut out = vec![line(&mut headings.iter().copied())];
    out.extend(rows.iter().map(|row| line(&mut row.iter().map(String::as_str))));
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_stand_below_each_other_whatever_the_letters() {
        let rows = vec![vec!["模型".to_owned(), "1".to_owned()], vec!["a".to_owned(), "2→2".to_owned()]];
        assert_eq!(lines(&["M", "N"], &rows, None), ["M     N", "模型  1", "a     2→2"]);
    }

    #[test]
    fn only_a_terminal_cuts() {
        let rows = vec![vec!["x".repeat(100), "y".into()]];
        assert!(lines(&["A", "B"], &rows, None)[1].ends_with("  y"));
        let cut = &lines(&["A", "B"], &rows, Some(40))[1];
        assert_eq!((display_width(cut), cut.ends_with('…')), (40, true));
    }
}
