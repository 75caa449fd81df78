//! The Model page: one model service from the sentence down to each replica and each finding, as one document that scrolls.

use ratatui::layout::Rect;

use super::{engine, findings, funnel, replica};
use crate::console::app::App;
use crate::console::cells::Canvas;
use crate::console::scene::{Scene, Target};
use crate::console::theme::{Role, Theme};
use crate::console::widgets::document::{Document, Line};
use crate::console::words;
use crate::model::Subject;
use crate::model::finding::Finding;
use crate::model::service::{self, ModelService};

/// Findings that are shown in full.
const MAX_FINDINGS: usize = 200;
/// Subjects that one line names.
const MAX_NAMED: usize = 8;

/// Draws the page.
pub(crate) fn draw(app: &App, canvas: &mut Canvas<'_>, body: Rect) {
    let Some(model) = &app.model else {
        canvas.put(body.x + 1, body.y, body.width, "no model service is open", Role::Dim);
        return;
    };
    model.document.paint(canvas, body, model.top);
}

/// The page's lines.
pub(crate) fn document(scene: &Scene, target: &Target, columns: usize, theme: Theme) -> Document {
    let mut document = Document::default();
    let found: Vec<&Finding> = scene.about(target).collect();
    match (scene.service(target), target) {
        (Some(service), _) => draw_service(scene, service, &found, columns, &mut document, theme),
        (None, Target::Engine(subject)) => match scene.engine(target) {
            Some(report) => engine::draw(subject, report, scene.world.now, columns, &mut document, theme),
            None => gone(subject.as_str(), &mut document, theme),
        },
        (None, Target::Service(id)) => gone(&id.to_string(), &mut document, theme),
    }
    document.gap();
    if found.is_empty() {
        document.heading("NO FINDING", theme);
        return document;
    }
    document.heading(&format!("FINDINGS {}", found.len()), theme);
    for finding in found.iter().take(MAX_FINDINGS) {
        findings::draw(finding, scene.world.now, columns, &mut document, theme);
    }
    if found.len() > MAX_FINDINGS {
        document.push(Line::indented(1).put(&format!("and {} more", found.len() - MAX_FINDINGS), Role::Dim, theme));
    }
    document
}

fn gone(name: &str, document: &mut Document, theme: Theme) {
    document.push(Line::indented(1).put(name, Role::Accent, theme).put("  is not there any more", Role::Warn, theme));
}

fn draw_service(scene: &Scene, service: &ModelService, found: &[&Finding], columns: usize, document: &mut Document, theme: Theme) {
    let claim = &service.claim;
    let (mark, role) = words::workload(service.state);
    document.push(Line::indented(1).put(&claim.id.to_string(), Role::Accent, theme).put("  ", Role::Text, theme).put(
        &format!("{} {}", theme.mark(mark), service.state.shout()),
        role,
        theme,
    ));
    // Where the worst finding of all is about this service, it stands above the page already.
    let above = scene.findings.first();
    if let Some(worst) = found.first().filter(|worst| above.is_none_or(|above| !std::ptr::eq(above, **worst))) {
        document.paragraph(Line::indented(3), &worst.summary, words::severity(worst.severity).1, columns, theme);
    }
    for role in &service.roles {
        sentences(role, columns, document, theme);
    }
    for (label, subjects) in [("fronts", &claim.fronts), ("router", &claim.routers), ("scaler", &claim.autoscalers)] {
        if !subjects.is_empty() {
            findings::labelled(label, &named(subjects), Role::Dim, columns, document, theme);
        }
    }
    findings::labelled("found", &words::proof(&claim.found_by, scene.world.now), Role::Dim, columns, document, theme);
    document.gap();
    document.heading("FUNNEL", theme);
    funnel::draw(&service.roles, columns, document, theme);
    for role in &service.roles {
        document.gap();
        draw_role(scene, role, columns, document, theme);
    }
}

fn sentences(role: &service::Role, columns: usize, document: &mut Document, theme: Theme) {
    let lead = || Line::indented(3).put(&format!("{}: ", role.kind), Role::Dim, theme);
    if role.why.is_empty() {
        let text = words::bottleneck(&role.funnel).unwrap_or_else(|| format!("{} serving", words::serving(&role.funnel, theme)));
        document.paragraph(lead(), &text, Role::Text, columns, theme);
    }
    for why in &role.why {
        document.paragraph(lead(), why, Role::Text, columns, theme);
    }
}

fn draw_role(scene: &Scene, role: &service::Role, columns: usize, document: &mut Document, theme: Theme) {
    let (mark, state_role) = words::workload(role.state);
    let kind = role.kind.to_string().to_uppercase();
    let line = Line::default()
        .put(&kind, Role::Accent, theme)
        .put(&format!("  {} {}", theme.mark(mark), role.state.shout()), state_role, theme)
        .put(&format!("  {} serving", words::serving(&role.funnel, theme)), words::serving_role(&role.funnel), theme)
        .put(&format!("  {}", named(&role.workloads)), Role::Dim, theme);
    document.push(line);
    if role.replicas.is_empty() {
        document.push(Line::indented(1).put("no replica exists", Role::Dim, theme));
        return;
    }
    replica::head(columns, document, theme);
    for (subject, seen) in scene.replicas(role) {
        match seen {
            Some(seen) => replica::draw(&scene.world, seen, columns, document, theme),
            None => replica::draw_unseen(subject, document, theme),
        }
    }
}

/// Subjects on one line, at most a few.
fn named(subjects: &[Subject]) -> String {
    let mut names: Vec<&str> = subjects.iter().take(MAX_NAMED).map(Subject::as_str).collect();
    let more = format!("and {} more", subjects.len().saturating_sub(MAX_NAMED));
    if subjects.len() > MAX_NAMED {
        names.push(&more);
    }
    names.join(", ")
}
