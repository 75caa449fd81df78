//! The lines below the fleet table: all of the selected row that has no column on a narrow screen, and why values are unknown.

use super::fleet::{counts, no_counts, reasons};
use crate::console::scene::{RowKey, Scene, Target};
use crate::console::theme::{Role, Theme};
use crate::console::widgets::document::{Document, Line};
use crate::console::words;
use crate::model::funnel::Funnel;

/// The lines of a row, most important first: a low screen shows only the first of them.
pub(crate) fn document(scene: &Scene, row: &RowKey, columns: usize, theme: Theme) -> Document {
    let mut document = Document::default();
    document.push(title(scene, row, theme));
    why(scene, row, columns, &mut document, theme);
    let mut findings = scene.about_row(row);
    if let Some(worst) = findings.next() {
        let (mark, role) = words::severity(worst.severity);
        let more = findings.count();
        let more = if more > 0 { format!(" (+{more} more)") } else { String::new() };
        let lead = Line::default().put(&format!("{} {}: ", theme.mark(mark), worst.code), role, theme);
        document.paragraph(lead, &format!("{}{more}", worst.summary), Role::Text, columns, theme);
    }
    document.push(load(scene, row, theme));
    for (names, why) in reasons(scene, row) {
        let lead = Line::default().put(theme.unknown(), Role::Dim, theme).put(" ", Role::Dim, theme);
        document.paragraph(lead, &format!("{names}: {why}"), Role::Dim, columns, theme);
    }
    document
}

fn title(scene: &Scene, row: &RowKey, theme: Theme) -> Line {
    let none = no_counts(row);
    let funnel = counts(scene, row, &none);
    let dot = format!(" {} ", theme.dot());
    match &row.target {
        Target::Engine(subject) => {
            let line = Line::default().put(subject.as_str(), Role::Accent, theme);
            match scene.engine(&row.target).map(|engine| &engine.kind) {
                Some(Ok(kind)) => line.put(&dot, Role::Dim, theme).put(&kind.to_string(), Role::Text, theme),
                _ => line,
            }
        }
        Target::Service(id) => {
            let line = Line::default().put(&id.to_string(), Role::Accent, theme);
            let Some(role) = scene.role(row) else {
                return line;
            };
            let (mark, state_role) = words::workload(role.state);
            line.put(&format!("{dot}{}{dot}", role.kind), Role::Dim, theme)
                .put(&format!("{} {}", theme.mark(mark), role.state.shout()), state_role, theme)
                .put(&format!("{dot}{} serving", words::serving(funnel, theme)), words::serving_role(funnel), theme)
                .put(&wanted_by(funnel), Role::Dim, theme)
        }
    }
}

fn wanted_by(funnel: &Funnel) -> String {
    if funnel.wanted_by.is_empty() { String::new() } else { format!(", wanted by {}", funnel.wanted_by) }
}

fn why(scene: &Scene, row: &RowKey, columns: usize, document: &mut Document, theme: Theme) {
    match (scene.role(row), scene.engine(&row.target)) {
        (Some(role), _) => {
            let said = role.why.first().cloned().or_else(|| words::bottleneck(&role.funnel));
            if let Some(text) = said {
                document.paragraph(Line::default(), &text, Role::Text, columns, theme);
            }
        }
        (None, Some(engine)) => document.paragraph(Line::default(), &engine.why, Role::Text, columns, theme),
        (None, None) => {}
    }
}

fn load(scene: &Scene, row: &RowKey, theme: Theme) -> Line {
    let load = scene.load(row);
    let line = Line::default().put("load: ", Role::Dim, theme);
    let Some(oldest) = load.oldest else {
        return line.put("no sample", Role::Dim, theme);
    };
    let number = |value: Option<f64>| value.map_or_else(|| theme.unknown().to_owned(), |value| words::number(value, theme));
    let share = |value: Option<f64>| value.map_or_else(|| theme.unknown().to_owned(), |value| words::share(value, theme));
    let text = format!(
        "running {}, waiting {}, KV {} (highest {})",
        number(load.running),
        number(load.waiting),
        share(load.kv),
        share(load.kv_max)
    );
    let sampled = format!("; {} of {} sampled, as of {}", load.sampled, load.replicas, words::since(oldest, scene.world.now));
    line.put(&text, Role::Text, theme).put(&sampled, Role::Dim, theme)
}
