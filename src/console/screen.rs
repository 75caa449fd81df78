//! Cells to bytes: writes to the terminal what changed since the last frame, and nothing else.
//!
//! Ours instead of a library's for two reasons: without colour not one byte of colour may be written (crossterm 0.29 writes a bare
//! reset for each colour under `NO_COLOR`, which also ends bold and reverse), and a full redraw must not ask the terminal for its
//! cursor (ratatui 0.30 does, and would wait for an answer that the input thread takes).

use std::io::{self, Write};

use crossterm::cursor::MoveTo;
use crossterm::queue;
use crossterm::terminal::{BeginSynchronizedUpdate, Clear, ClearType, EndSynchronizedUpdate};
use ratatui::buffer::{Buffer, Cell};
use ratatui::layout::Rect;
use ratatui::style::Modifier;

use super::theme::sgr;

/// Modifiers that are written, with their parameters.
const MODIFIERS: [(Modifier, &str); 4] =
    [(Modifier::BOLD, "1"), (Modifier::DIM, "2"), (Modifier::UNDERLINED, "4"), (Modifier::REVERSED, "7")];

/// The terminal's screen, with what it shows now.
pub(crate) struct Screen<W: Write> {
    writer: W,
    shown: Option<Buffer>,
}

impl<W: Write> Screen<W> {
    /// A screen of which nothing is known.
    pub(crate) fn new(writer: W) -> Self {
        Self { writer, shown: None }
    }

    /// Forgets what is shown: the next frame is drawn whole.
    pub(crate) fn forget(&mut self) {
        self.shown = None;
    }

    /// Shows a frame, in one go where the terminal can do that.
    pub(crate) fn show(&mut self, frame: Buffer) -> io::Result<()> {
        queue!(self.writer, BeginSynchronizedUpdate)?;
        let known = self.shown.take().filter(|shown| shown.area == frame.area);
        let before = match known {
            Some(before) => before,
            None => {
                self.writer.write_all(b"\x1b[0m")?;
                queue!(self.writer, Clear(ClearType::All))?;
                Buffer::empty(frame.area)
            }
        };
        let mut style = String::new();
        let mut next: Option<(u16, u16)> = None;
        for (x, y, cell) in before.diff(&frame) {
            if next != Some((x, y)) {
                queue!(self.writer, MoveTo(x, y))?;
            }
            let wanted = style_of(cell);
            if wanted != style {
                // Reset and set anew: few bytes more, and no state to get wrong.
                write!(self.writer, "\x1b[0{wanted}m")?;
                style = wanted;
            }
            self.writer.write_all(cell.symbol().as_bytes())?;
            // Only after a narrow cell is it certain where every terminal's cursor stands.
            next = (cell.symbol().len() == 1).then(|| (x.saturating_add(1), y));
        }
        if !style.is_empty() {
            self.writer.write_all(b"\x1b[0m")?;
        }
        queue!(self.writer, EndSynchronizedUpdate)?;
        self.writer.flush()?;
        self.shown = Some(frame);
        Ok(())
    }
}

fn style_of(cell: &Cell) -> String {
    let mut style = String::new();
    for (modifier, code) in MODIFIERS {
        if cell.modifier.contains(modifier) {
            style.push(';');
            style.push_str(code);
        }
    }
    for code in [sgr(cell.fg, false), sgr(cell.bg, true)].into_iter().flatten() {
        style.push(';');
        style.push_str(&code);
    }
    style
}

/// An empty frame of a size; absurd sizes are cut.
pub(crate) fn frame(size: (u16, u16)) -> Buffer {
    Buffer::empty(Rect::new(0, 0, size.0.min(1000), size.1.min(400)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::console::cells::Canvas;
    use crate::console::theme::{Charset, Depth, Role, Theme};

    fn painted(depth: Depth) -> (Buffer, Vec<u8>) {
        let mut buffer = frame((30, 4));
        let mut canvas = Canvas::new(&mut buffer, Theme { depth, charset: Charset::Unicode });
        for (y, role) in [Role::Bad, Role::Dim, Role::Good].into_iter().enumerate() {
            canvas.put(1, u16::try_from(y).unwrap(), 20, "模型 – word", role);
        }
        canvas.tint(Rect::new(0, 1, 30, 1), Role::Selected);
        let mut bytes = Vec::new();
        Screen::new(&mut bytes).show(buffer.clone()).unwrap();
        (buffer, bytes)
    }

    #[test]
    fn what_the_terminal_shows_is_what_was_drawn() {
        for depth in [Depth::None, Depth::Sixteen, Depth::Indexed, Depth::True] {
            let (buffer, bytes) = painted(depth);
            let mut terminal = vt100::Parser::new(4.try_into().unwrap(), 30.try_into().unwrap(), 0);
            terminal.process(&bytes);
            for y in 0..4u16 {
                for x in 0..30u16 {
                    let (seen, drawn) = (terminal.screen().cell(y, x).unwrap(), buffer.cell((x, y)).unwrap());
                    if seen.is_wide_continuation() {
                        continue;
                    }
                    let symbol = if seen.has_contents() { seen.contents() } else { " " };
                    assert_eq!(symbol, drawn.symbol(), "{x},{y}");
                    assert_eq!(seen.bold(), drawn.modifier.contains(Modifier::BOLD), "{x},{y}");
                    assert_eq!(seen.inverse(), drawn.modifier.contains(Modifier::REVERSED), "{x},{y}");
                    assert_eq!(seen.fgcolor() == vt100::Color::Default, sgr(drawn.fg, false).is_none(), "{x},{y}");
                }
            }
        }
    }

    #[test]
    fn without_colour_not_a_byte_of_colour_is_written() {
        let (_, bytes) = painted(Depth::None);
        let text = String::from_utf8(bytes).unwrap();
        for part in text.split("\x1b[").skip(1).filter_map(|rest| rest.split_once('m')).map(|(codes, _)| codes) {
            if part.bytes().all(|b| b.is_ascii_digit() || b == b';') {
                for code in part.split(';') {
                    assert!(matches!(code, "0" | "1" | "2" | "4" | "7"), "{part}");
                }
            }
        }
        assert!(text.contains("\x1b[0;1;4m") && text.contains("\x1b[0;2;7m"), "{text:?}");
        assert!(!text.contains("\x1b[m"));
    }

    #[test]
    fn a_frame_like_the_last_one_writes_next_to_nothing_and_a_forgotten_one_writes_all() {
        let mut bytes = Vec::new();
        let mut screen = Screen::new(&mut bytes);
        let mut buffer = frame((10, 2));
        buffer.set_string(0, 0, "abc", ratatui::style::Style::new());
        screen.show(buffer.clone()).unwrap();
        screen.show(buffer.clone()).unwrap();
        screen.forget();
        screen.show(buffer).unwrap();
        let text = String::from_utf8(bytes).unwrap();
        assert_eq!(text.matches("abc").count(), 2);
        assert_eq!(text.matches("\x1b[2J").count(), 2);
    }
}
