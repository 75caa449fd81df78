//! A document: lines of styled text that can be longer than the screen, and the part of it that is seen.

use ratatui::layout::Rect;

use crate::console::cells::{self, Canvas};
use crate::console::theme::{Role, Theme};

/// Lines that one wrapped paragraph may take.
const MAX_PARAGRAPH: usize = 24;

/// A line of spans, each harmless text in one role.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Line {
    spans: Vec<(String, Role)>,
    width: usize,
}

impl Line {
    /// A line that begins after `indent` blanks.
    pub(crate) fn indented(indent: usize) -> Self {
        Self { spans: vec![(" ".repeat(indent), Role::Text)], width: indent }
    }

    /// The same with more text.
    #[must_use]
    pub(crate) fn put(mut self, text: &str, role: Role, theme: Theme) -> Self {
        let text = cells::harmless(text, theme.charset);
        self.width += cells::width(&text);
        self.spans.push((text, role));
        self
    }

    /// The same with text cut or filled up to exactly `columns`.
    #[must_use]
    pub(crate) fn field(self, text: &str, columns: usize, right: bool, role: Role, theme: Theme) -> Self {
        let text = cells::fit(text, columns, theme);
        let blanks = " ".repeat(columns.saturating_sub(cells::width(&text)));
        let (before, after) = if right { (blanks, String::new()) } else { (String::new(), blanks) };
        self.put(&before, Role::Text, theme).put(&text, role, theme).put(&after, Role::Text, theme)
    }

    /// The same filled with blanks up to a column.
    #[must_use]
    pub(crate) fn pad_to(self, column: usize, theme: Theme) -> Self {
        let blanks = " ".repeat(column.saturating_sub(self.width));
        self.put(&blanks, Role::Text, theme)
    }

    /// The same followed by another line.
    #[must_use]
    pub(crate) fn join(mut self, other: Self) -> Self {
        self.width += other.width;
        self.spans.extend(other.spans);
        self
    }

    /// Columns so far.
    pub(crate) fn width(&self) -> usize {
        self.width
    }

    /// Draws the line, cut at `columns`.
    pub(crate) fn paint(&self, canvas: &mut Canvas<'_>, x: u16, y: u16, columns: u16) {
        let mut used: u16 = 0;
        for (text, role) in &self.spans {
            let Some(room) = columns.checked_sub(used).filter(|room| *room > 0) else {
                return;
            };
            used = used.saturating_add(canvas.put(x.saturating_add(used), y, room, text, *role));
            if cells::width(text) > usize::from(room) {
                return;
            }
        }
    }
}

/// Lines from top to bottom.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Document {
    lines: Vec<Line>,
}

impl Document {
    /// Adds a line.
    pub(crate) fn push(&mut self, line: Line) {
        self.lines.push(line);
    }

    /// Adds an empty line.
    pub(crate) fn gap(&mut self) {
        self.lines.push(Line::default());
    }

    /// Adds a heading.
    pub(crate) fn heading(&mut self, text: &str, theme: Theme) {
        self.push(Line::default().put(text, Role::Accent, theme));
    }

    /// Adds text wrapped to `columns`: `lead` stands before its first line, and the others begin below its end.
    pub(crate) fn paragraph(&mut self, lead: Line, text: &str, role: Role, columns: usize, theme: Theme) {
        let indent = lead.width().min(columns / 2);
        let mut lead = Some(lead);
        for part in cells::wrap(text, columns.saturating_sub(indent).max(8), MAX_PARAGRAPH, theme) {
            let line = lead.take().unwrap_or_else(|| Line::indented(indent));
            self.push(line.put(&part, role, theme));
        }
        if let Some(lead) = lead.filter(|lead| lead.width() > 0) {
            self.push(lead);
        }
    }

    /// How many lines there are.
    pub(crate) fn len(&self) -> usize {
        self.lines.len()
    }

    /// The last line at which a screen of `height` may begin.
    pub(crate) fn last_top(&self, height: u16) -> usize {
        self.lines.len().saturating_sub(usize::from(height))
    }

    /// Draws the lines from `top` on; lines out of sight cost nothing.
    pub(crate) fn paint(&self, canvas: &mut Canvas<'_>, area: Rect, top: usize) {
        for (line, y) in self.lines.iter().skip(top).zip(area.top()..area.bottom()) {
            line.paint(canvas, area.x, y, area.width);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::console::theme::{Charset, Depth};
    use ratatui::buffer::Buffer;

    const THEME: Theme = Theme { depth: Depth::None, charset: Charset::Unicode };

    #[test]
    fn a_paragraph_hangs_below_its_lead_and_only_the_part_in_sight_is_drawn() {
        let mut document = Document::default();
        document.heading("HEAD", THEME);
        document.paragraph(Line::indented(1).put("do: ", Role::Dim, THEME), "restart the pod now", Role::Text, 16, THEME);
        assert_eq!((document.len(), document.last_top(2)), (3, 1));
        let mut buffer = Buffer::empty(Rect::new(0, 0, 16, 2));
        document.paint(&mut Canvas::new(&mut buffer, THEME), Rect::new(0, 0, 16, 2), 1);
        assert_eq!(buffer, Buffer::with_lines([" do: restart the", "     pod now    "]).tap_dim(1, 4));
    }

    trait TapDim {
        fn tap_dim(self, from: u16, columns: u16) -> Self;
    }

    impl TapDim for Buffer {
        fn tap_dim(mut self, from: u16, columns: u16) -> Self {
            self.set_style(Rect::new(from, 0, columns, 1), THEME.style(Role::Dim));
            self
        }
    }

    #[test]
    fn a_lead_without_text_still_stands() {
        let mut document = Document::default();
        document.paragraph(Line::default(), "", Role::Text, 10, THEME);
        assert_eq!(document.len(), 0);
        document.paragraph(Line::indented(2), "", Role::Text, 10, THEME);
        assert_eq!(document.len(), 1);
    }

    #[test]
    fn fields_are_as_wide_as_asked() {
        let line = Line::default().field("模型", 3, false, Role::Text, THEME).field("7", 4, true, Role::Text, THEME);
        assert_eq!(line.width(), 7);
    }
}
