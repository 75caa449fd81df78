//! The Fleet page: one line for each role of each model service, and for each engine of no service.
//!
//! Only rows in sight are built. What has no place on a narrow screen stands below the table, for the selected row.

use ratatui::layout::Rect;

use super::selected;
use crate::console::app::App;
use crate::console::cells::Canvas;
use crate::console::scene::{RowKey, Scene, Target};
use crate::console::theme::{Role, Theme};
use crate::console::widgets::columns::{Column, share};
use crate::console::words;
use crate::model::Unknown;
use crate::model::funnel::{Funnel, Step};

const fn column(title: &'static str, min: u16, ideal: u16, right: bool, rank: u8) -> Column {
    Column { title, min, ideal, right, rank }
}

/// Columns in the order in which they stand.
const COLUMNS: [Column; 21] = [
    column("", 1, 1, false, 0),
    column("NAMESPACE", 9, 20, false, 7),
    column("MODEL", 14, 40, false, 0),
    column("SYSTEM", 7, 8, false, 9),
    column("ROLE", 9, 9, false, 2),
    column("STATE", 12, 19, false, 0),
    column("WNT", 3, 3, true, 3),
    column("ASK", 3, 3, true, 3),
    column("EXI", 3, 3, true, 3),
    column("SCH", 3, 3, true, 3),
    column("LOD", 3, 3, true, 3),
    column("RDY", 3, 3, true, 3),
    column("LST", 3, 3, true, 3),
    column("RTD", 3, 3, true, 3),
    column("SERV", 5, 9, true, 1),
    column("BOTTLENECK", 20, 28, false, 6),
    column("RUN", 4, 6, true, 4),
    column("WAIT", 4, 6, true, 4),
    column("KV", 4, 4, true, 5),
    column("WORST FINDING", 16, 34, false, 8),
    column("AS OF", 5, 5, true, 10),
];

/// Lines below the table for the selected row, without the rule.
fn detail_height(body: Rect) -> u16 {
    match body.height {
        0..11 => 0,
        11..16 => 2,
        16..30 => 6,
        _ => 10,
    }
}

/// Lines for rows on this body.
pub(crate) fn rows_height(body: Rect) -> u16 {
    let detail = detail_height(body);
    body.height.saturating_sub(1 + detail + u16::from(detail > 0))
}

/// What a filter looks at, in lower case.
pub(crate) fn haystack(scene: &Scene, row: &RowKey) -> String {
    let mut text = name(row);
    if let Some(service) = scene.service(&row.target) {
        text.push_str(&format!(" {} {}", service.claim.id, service.state));
    }
    if let Some(role) = scene.role(row) {
        text.push_str(&format!(" {} {}", role.kind, role.state));
    }
    if let Some(engine) = scene.engine(&row.target) {
        text.push_str(&format!(" engine {}", words::engine_word(&engine.state)));
    }
    for finding in scene.about_row(row) {
        text.push_str(&format!(" {} {}", finding.code, finding.severity));
    }
    text.to_lowercase()
}

/// The name of a row: `namespace/name`, or the engine's subject.
fn name(row: &RowKey) -> String {
    match &row.target {
        Target::Service(id) => format!("{}/{}", id.namespace, id.name),
        Target::Engine(subject) => subject.to_string(),
    }
}

/// The counts of a row; of an engine without a service none is known.
pub(crate) fn counts<'a>(scene: &'a Scene, row: &RowKey, none: &'a Funnel) -> &'a Funnel {
    scene.role(row).map_or(none, |role| &role.funnel)
}

/// The counts of a row that has none.
pub(crate) fn no_counts(row: &RowKey) -> Funnel {
    match row.target {
        Target::Service(_) => Funnel::unknown("no role of this model service is known"),
        Target::Engine(_) => Funnel::unknown("this engine belongs to no model service"),
    }
}

/// Draws the page.
pub(crate) fn draw(app: &App, canvas: &mut Canvas<'_>, body: Rect) {
    let slots = share(body.width.saturating_sub(2), &COLUMNS);
    for slot in &slots {
        let Some(column) = COLUMNS.get(slot.index) else {
            continue;
        };
        put(canvas, body.x + 1 + slot.x, body.y, slot.width, column.right, column.title, Role::Dim);
    }
    let rows = rows_height(body);
    let in_sight = app.fleet.shown.iter().skip(app.fleet.offset).take(usize::from(rows));
    for (at, y) in in_sight.zip(body.y + 1..) {
        let Some(row) = app.scene.rows().get(*at) else {
            continue;
        };
        let cells = build(&app.scene, row, canvas.theme);
        for slot in &slots {
            let (Some((text, role)), Some(column)) = (cells.get(slot.index), COLUMNS.get(slot.index)) else {
                continue;
            };
            put(canvas, body.x + 1 + slot.x, y, slot.width, column.right, text, *role);
        }
        if app.fleet.selected.as_ref() == Some(row) {
            canvas.tint(Rect::new(body.x, y, body.width, 1), Role::Selected);
        }
    }
    if app.fleet.shown.is_empty() {
        let why = match app.fleet.filter.is_empty() {
            true => "no model service and no engine is seen",
            false => "no row contains the filter (esc ends it)",
        };
        canvas.put(body.x + 1, body.y + 1, body.width.saturating_sub(2), why, Role::Dim);
    }
    let detail = detail_height(body);
    if detail > 0 {
        let y = body.y + 1 + rows;
        canvas.rule(Rect::new(body.x, y, body.width, 1));
        if let Some(row) = &app.fleet.selected {
            let document = selected::document(&app.scene, row, usize::from(body.width.saturating_sub(2)), canvas.theme);
            document.paint(canvas, Rect::new(body.x + 1, y + 1, body.width.saturating_sub(2), detail), 0);
        }
    }
}

fn put(canvas: &mut Canvas<'_>, x: u16, y: u16, columns: u16, right: bool, text: &str, role: Role) {
    if right {
        canvas.put_right(x, y, columns, text, role);
    } else {
        canvas.put(x, y, columns, text, role);
    }
}

/// One row in the order of `COLUMNS`.
fn build(scene: &Scene, row: &RowKey, theme: Theme) -> Vec<(String, Role)> {
    let service = scene.service(&row.target);
    let role = scene.role(row);
    let engine = scene.engine(&row.target);
    let none = no_counts(row);
    let funnel = counts(scene, row, &none);
    let worst = scene.worst(row);
    let load = scene.load(row);
    let unknown = || (theme.unknown().to_owned(), Role::Dim);

    let (mark, state, state_role) = match (role.map(|role| role.state).or(service.map(|service| service.state)), engine) {
        (Some(state), _) => (words::workload(state).0, state.shout(), words::workload(state).1),
        (None, Some(engine)) => (words::engine(&engine.state).0, words::engine_word(&engine.state), words::engine(&engine.state).1),
        (None, None) => (crate::console::theme::Mark::Unknown, "UNKNOWN".to_owned(), Role::Dim),
    };
    let mut cells = Vec::with_capacity(COLUMNS.len());
    cells.push(worst.map_or_else(
        || (String::new(), Role::Text),
        |finding| {
            let (mark, role) = words::severity(finding.severity);
            (theme.mark(mark).to_owned(), role)
        },
    ));
    cells.push(service.map_or_else(unknown, |service| (service.claim.id.namespace.clone(), Role::Dim)));
    cells.push(match &row.target {
        Target::Service(id) => (id.name.clone(), Role::Text),
        Target::Engine(subject) => (subject.to_string(), Role::Text),
    });
    cells.push(service.map_or_else(unknown, |service| (service.claim.id.system.to_owned(), Role::Dim)));
    cells.push(match (role, engine) {
        (Some(role), _) => (role.kind.to_string(), Role::Text),
        (None, Some(_)) => ("engine".to_owned(), Role::Dim),
        (None, None) => unknown(),
    });
    cells.push((format!("{} {state}", theme.mark(mark)), state_role));
    let drop = funnel.bottleneck().map(|(step, _)| step);
    for step in Step::ALL {
        let count = funnel.step(step);
        let role = match count {
            Err(_) => Role::Dim,
            Ok(_) if drop == Some(step) => Role::Warn,
            Ok(_) => Role::Text,
        };
        cells.push((words::short_count(count, theme), role));
    }
    cells.push(match engine {
        Some(_) => unknown(),
        None => (words::serving(funnel, theme), words::serving_role(funnel)),
    });
    cells.push(words::bottleneck(funnel).map_or_else(|| (String::new(), Role::Text), |text| (text, Role::Warn)));
    // A sum over some replicas only is a lower bound, and says so.
    let partial = if load.sampled < load.replicas { theme.pick("≥", ">") } else { "" };
    let number = |value: Option<f64>| match value {
        Some(value) => (format!("{partial}{}", words::number(value, theme)), Role::Text),
        None => unknown(),
    };
    cells.push(number(load.running));
    cells.push(number(load.waiting));
    cells.push(load.kv.map_or_else(unknown, |kv| (words::share(kv, theme), Role::Text)));
    cells.push(
        worst.map_or_else(|| (String::new(), Role::Text), |finding| (finding.code.word().to_owned(), words::severity(finding.severity).1)),
    );
    cells.push((words::age(load.oldest, scene.world.now, theme), Role::Dim));
    cells
}

/// Why values of a row are not known, each reason once with what it hides.
pub(crate) fn reasons(scene: &Scene, row: &RowKey) -> Vec<(String, String)> {
    let none = no_counts(row);
    let funnel = counts(scene, row, &none);
    let mut reasons: Vec<(String, Vec<&str>)> = Vec::new();
    let mut add = |name: &'static str, why: &Unknown| match reasons.iter_mut().find(|(known, _)| known == why.why()) {
        Some((_, names)) => names.push(name),
        None => reasons.push((why.why().to_owned(), vec![name])),
    };
    for step in Step::ALL {
        if let Err(why) = funnel.step(step) {
            add(step.word(), why);
        }
    }
    if let Err(why) = &funnel.serving {
        add("serving", why);
    }
    match (scene.role(row), scene.engine(&row.target)) {
        (Some(role), _) => {
            for (_, replica) in scene.replicas(role) {
                match replica.map(|replica| &replica.engine) {
                    Some(Ok(report)) => report.load.as_ref().err().into_iter().for_each(|why| add("load", why)),
                    Some(Err(why)) => add("load", why),
                    None => {}
                }
            }
        }
        (None, Some(engine)) => engine.load.as_ref().err().into_iter().for_each(|why| add("load", why)),
        (None, None) => {}
    }
    reasons
        .into_iter()
        .map(|(why, mut names)| {
            names.dedup();
            (names.join(", "), why)
        })
        .collect()
}
