//! The whole screen: header, page, footer, and what lies on top. One pure function from state to cells.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::action::{Action, TABLE, Where};
use super::app::{App, Page, Prompt};
use super::cells::{self, Canvas};
use super::pages;
use super::scene::Scene;
use super::theme::{Mark, Role};
use super::words;
use crate::diagnose::headline::Tone;
use crate::model::finding::Severity;

/// Smaller screens show a message only.
pub(crate) const LEAST: (u16, u16) = (40, 10);

/// Lines of the sentence at the top, at most, where the screen is high enough.
const SENTENCE: usize = 2;

/// Where a page is drawn on a screen of this size: below the header and the sentence, above the footer.
pub(crate) fn body(app: &App, size: (u16, u16)) -> Rect {
    let lines = headline(app, size).2.len().max(1);
    let above = 1 + u16::try_from(lines).unwrap_or(1);
    Rect::new(0, above, size.0, size.1.saturating_sub(above + 1))
}

/// Draws the screen. The buffer may have any size; nothing is drawn outside of it.
pub fn draw(app: &App, buffer: &mut Buffer) {
    let area = buffer.area;
    let mut canvas = Canvas::new(buffer, app.theme);
    if area.width < LEAST.0 || area.height < LEAST.1 {
        too_small(&mut canvas, area);
        return;
    }
    header(app, &mut canvas, area);
    draw_headline(app, &mut canvas, area);
    let body = body(app, (area.width, area.height));
    match app.page {
        Page::Fleet => pages::fleet::draw(app, &mut canvas, body),
        Page::Model => pages::model::draw(app, &mut canvas, body),
    }
    if let Some((overlay, top)) = app.overlay {
        pages::draw_overlay(app, overlay, top, &mut canvas, body);
    }
    footer(app, &mut canvas, area);
}

fn too_small(canvas: &mut Canvas<'_>, area: Rect) {
    let size = format!("{}x{}", area.width, area.height);
    let least = format!("{}x{}", LEAST.0, LEAST.1);
    for (text, y) in [format!("too small: {size}"), format!("needs {least}")].iter().zip(area.top()..area.bottom()) {
        canvas.put(area.x, y, area.width, text, Role::Warn);
    }
}

/// Name, pages, source; at the right edge findings by severity, unreadable inputs, and the time of the snapshot.
fn header(app: &App, canvas: &mut Canvas<'_>, area: Rect) {
    let theme = app.theme;
    let mut right: Vec<(String, Role)> = Vec::new();
    for severity in [Severity::Critical, Severity::Warning, Severity::Info] {
        let (mark, role) = words::severity(severity);
        let found = app.scene.count(severity);
        right.push((format!("{} {found}  ", theme.mark(mark)), if found > 0 { role } else { Role::Dim }));
    }
    let problems = app.scene.world.problems.len();
    if problems > 0 {
        right.push((format!("{problems} unread (p)  "), Role::Warn));
    }
    let now = words::instant(app.scene.world.now);
    // A narrow header keeps the time of day.
    let shown = if area.width < 100 { now.split(' ').next_back().unwrap_or(&now) } else { &now };
    right.push((shown.to_owned(), Role::Text));
    let wide: usize = right.iter().map(|(text, _)| cells::width(text)).sum();
    let right_at = area.width.saturating_sub(u16::try_from(wide).unwrap_or(u16::MAX)).saturating_sub(1);

    let mut x = 1;
    let mut left = |text: &str, role: Role, canvas: &mut Canvas<'_>| {
        let room = right_at.saturating_sub(x).saturating_sub(1);
        x = x.saturating_add(canvas.put(x, area.y, room, text, role)).saturating_add(1);
    };
    left("modeldeck", Role::Accent, canvas);
    for (page, name) in [(Page::Fleet, "1 Fleet"), (Page::Model, "2 Model")] {
        let here = app.page == page;
        let text = if here { format!("[{name}]") } else { format!(" {name} ") };
        left(&text, if here { Role::Text } else { Role::Dim }, canvas);
    }
    left(&format!("{}: {}", app.scene.world.source, app.scene.title), Role::Dim, canvas);
    let mut x = right_at;
    for (text, role) in right {
        x = x.saturating_add(canvas.put(x, area.y, area.width.saturating_sub(x), &text, role));
    }
}

/// The single most important true sentence, in lines.
fn headline(app: &App, size: (u16, u16)) -> (Mark, Role, Vec<String>) {
    let (mark, role, text) = sentence(&app.scene);
    let most = if size.1 < 16 { 1 } else { SENTENCE };
    (mark, role, cells::wrap(&text, usize::from(size.0.saturating_sub(4)), most, app.theme))
}

fn draw_headline(app: &App, canvas: &mut Canvas<'_>, area: Rect) {
    let (mark, role, lines) = headline(app, (area.width, area.height));
    canvas.put(1, area.y + 1, area.width, app.theme.mark(mark), role);
    for (line, y) in lines.iter().zip(area.y + 1..) {
        canvas.put(3, y, area.width.saturating_sub(4), line, role);
    }
}

fn sentence(scene: &Scene) -> (Mark, Role, String) {
    let (mark, role) = match scene.headline.tone {
        Tone::Critical => words::severity(Severity::Critical),
        Tone::Warning => words::severity(Severity::Warning),
        Tone::Info => words::severity(Severity::Info),
        Tone::Unproven => (Mark::Unknown, Role::Dim),
        Tone::Good => (Mark::Good, Role::Good),
    };
    (mark, role, scene.headline.text.clone())
}

/// What is being typed, else a notice, else the keys that apply.
fn footer(app: &App, canvas: &mut Canvas<'_>, area: Rect) {
    let y = area.bottom().saturating_sub(1);
    let room = area.width.saturating_sub(2);
    if let Some(prompt) = &app.prompt {
        let (sign, hint) = match prompt {
            Prompt::Filter { .. } => ("/", "enter keep  esc undo"),
            Prompt::Command(_) => (":", "enter do  esc leave"),
        };
        let hint_width = u16::try_from(hint.len() + 2).unwrap_or(room);
        let mut x = 1 + canvas.put(1, y, room, sign, Role::Accent);
        // The end of a long text is what is being typed.
        let typed = cells::harmless(app.typed(), app.theme.charset);
        let fits = usize::from(room.saturating_sub(hint_width + 3));
        let tail: String = typed.chars().skip(typed.chars().count().saturating_sub(fits)).collect();
        x += canvas.put(x, y, room.saturating_sub(hint_width + 1), &tail, Role::Text);
        canvas.put(x, y, 1, app.theme.pick("▏", "_"), Role::Accent);
        canvas.put_right(1, y, room, hint, Role::Dim);
        return;
    }
    if let Some(notice) = &app.notice {
        canvas.put(1, y, room, notice, Role::Warn);
        return;
    }
    let mut x = 1;
    for entry in TABLE {
        let here = match entry.on {
            Where::Everywhere => true,
            Where::On(page) => page == app.page && app.overlay.is_none(),
        };
        let closes = app.overlay.is_some() && entry.action == Action::Back;
        if !(entry.footer && here || closes) {
            continue;
        }
        let Some(key) = entry.keys.first() else {
            continue;
        };
        let title = if closes { "close" } else { entry.title };
        let wide = u16::try_from(key.len() + title.len() + 1).unwrap_or(u16::MAX);
        if x + wide > room {
            break;
        }
        let (key_role, title_role) = if entry.action.available(app).is_ok() { (Role::Accent, Role::Text) } else { (Role::Dim, Role::Dim) };
        x += canvas.put(x, y, room, key, key_role) + 1;
        x += canvas.put(x, y, room, title, title_role) + 2;
    }
    if let (Page::Model, Some(model), None) = (app.page, &app.model, app.overlay) {
        let lines = model.document.len();
        let end = lines.min(model.top + usize::from(body(app, (area.width, area.height)).height));
        canvas.put_right(x, y, room.saturating_sub(x), &format!("lines {}-{end} of {lines}", model.top + 1), Role::Dim);
    }
    if app.page == Page::Fleet && app.overlay.is_none() {
        let shown = app.fleet.shown.len();
        let place = app.place().map_or(0, |place| place + 1);
        let filter = if app.fleet.filter.is_empty() { String::new() } else { format!("/{}  ", app.fleet.filter) };
        let rest = room.saturating_sub(x);
        canvas.put_right(x, y, rest, &format!("{filter}{place} of {shown}"), Role::Dim);
    }
}
