//! The pages, and what can lie on top of them. Each is a pure function from state to cells.

pub(crate) mod engine;
pub(crate) mod findings;
pub(crate) mod fleet;
pub(crate) mod funnel;
pub(crate) mod model;
pub(crate) mod replica;
pub(crate) mod selected;

use ratatui::layout::Rect;

use super::action::{TABLE, Where};
use super::app::{App, Overlay, Page};
use super::cells::Canvas;
use super::theme::{Mark, Role};
use super::widgets::document::{Document, Line};

/// Lines of an overlay's text on this body: all but its two rules.
pub(crate) fn overlay_height(body: Rect) -> u16 {
    body.height.saturating_sub(2)
}

/// The text of an overlay.
pub(crate) fn overlay_document(app: &App, overlay: Overlay, body: Rect) -> Document {
    match overlay {
        Overlay::Help => help(app, body),
        Overlay::Problems => problems(app, body),
    }
}

/// Draws an overlay over the body.
pub(crate) fn draw_overlay(app: &App, overlay: Overlay, top: usize, canvas: &mut Canvas<'_>, body: Rect) {
    let document = overlay_document(app, overlay, body);
    let height = u16::try_from(document.len()).unwrap_or(u16::MAX).min(overlay_height(body)).saturating_add(2).min(body.height);
    let area = Rect { height, ..body };
    canvas.clear(area);
    canvas.rule(Rect { height: 1, ..area });
    let title = match overlay {
        Overlay::Help => " help ",
        Overlay::Problems => " inputs that could not be read whole ",
    };
    canvas.put(2, area.y, area.width.saturating_sub(4), title, Role::Accent);
    let inner = Rect::new(area.x, area.y + 1, area.width, height.saturating_sub(2));
    document.paint(canvas, inner, top);
    let last = Rect::new(area.x, area.bottom().saturating_sub(1), area.width, 1);
    canvas.rule(last);
    let below = document.len().saturating_sub(top + usize::from(inner.height));
    if below > 0 {
        canvas.put(2, last.y, area.width.saturating_sub(4), &format!(" {below} more lines "), Role::Dim);
    }
}

fn help(app: &App, body: Rect) -> Document {
    let theme = app.theme;
    let columns = usize::from(body.width.saturating_sub(1));
    let mut document = Document::default();
    for entry in TABLE {
        let keys = entry.keys.join(" ");
        let on = match entry.on {
            Where::On(Page::Fleet) => " (Fleet)",
            _ => "",
        };
        let lead = Line::indented(1).field(&keys, 16, false, Role::Accent, theme).put(" ", Role::Text, theme);
        document.paragraph(lead, &format!("{}{on}", entry.help), Role::Text, columns, theme);
    }
    document.gap();
    let marks: [(Mark, Role, &str); 8] = [
        (Mark::Good, Role::Good, "serves"),
        (Mark::Progress, Role::Info, "on its way"),
        (Mark::Waiting, Role::Warn, "waits"),
        (Mark::Warn, Role::Warn, "something is lost"),
        (Mark::Bad, Role::Bad, "broken"),
        (Mark::Asleep, Role::Dim, "asleep"),
        (Mark::Leaving, Role::Dim, "leaving"),
        (Mark::Off, Role::Dim, "wanted to be none"),
    ];
    let mut line = Line::indented(1);
    for (mark, role, word) in marks {
        let item = Line::default().put(theme.mark(mark), role, theme).put(&format!(" {word}   "), Role::Text, theme);
        if line.width() + item.width() > columns {
            document.push(std::mem::replace(&mut line, Line::indented(1)));
        }
        line = line.join(item);
    }
    document.push(line);
    let unknown =
        format!("{} is a value that is not known; the lines below the selected row, or below the replica, say why", theme.unknown());
    document.paragraph(Line::indented(1), &unknown, Role::Text, columns, theme);
    let steps = "WNT wanted, ASK asked for, EXI existing, SCH scheduled, LOD loaded, RDY pod Ready, LST listed, RTD routed";
    document.paragraph(Line::indented(1), steps, Role::Text, columns, theme);
    document
}

fn problems(app: &App, body: Rect) -> Document {
    let theme = app.theme;
    let columns = usize::from(body.width.saturating_sub(1));
    let mut document = Document::default();
    for problem in &app.scene.world.problems {
        let lead = Line::indented(1).put(&problem.place, Role::Accent, theme).put(": ", Role::Dim, theme);
        let lead = if lead.width() > columns / 2 {
            document.paragraph(Line::indented(1), &problem.place, Role::Accent, columns, theme);
            Line::indented(3)
        } else {
            lead
        };
        document.paragraph(lead, &problem.what, Role::Text, columns, theme);
        if let Some(about) = &problem.about {
            document.paragraph(Line::indented(3).put("about ", Role::Dim, theme), about.as_str(), Role::Dim, columns, theme);
        }
    }
    document
}
