//! An engine that belongs to no model service: what it says, its load, and what proves it.

use super::findings::labelled;
use crate::console::theme::{Role, Theme};
use crate::console::widgets::document::{Document, Line};
use crate::console::words;
use crate::model::engine::EngineReport;
use crate::model::state::EngineState;
use crate::model::{Subject, Unknown};
use jiff::Timestamp;

/// Pieces of evidence that are shown.
const MAX_PROOFS: usize = 6;

/// Adds the engine.
pub(crate) fn draw(subject: &Subject, report: &EngineReport, now: Timestamp, columns: usize, document: &mut Document, theme: Theme) {
    let (mark, role) = words::engine(&report.state);
    let state = format!("{} {}", theme.mark(mark), words::engine_word(&report.state));
    document.push(Line::indented(1).put(subject.as_str(), Role::Accent, theme).put("  ", Role::Text, theme).put(&state, role, theme));
    document.paragraph(Line::indented(3), &report.why, Role::Text, columns, theme);
    if let EngineState::Unknown(why) = &report.state {
        unknown("state", why, columns, document, theme);
    }
    if let Some(since) = report.since {
        labelled("since", &words::since(since, now), Role::Text, columns, document, theme);
    }
    match &report.kind {
        Ok(kind) => labelled("server", &kind.to_string(), Role::Text, columns, document, theme),
        Err(why) => unknown("server", why, columns, document, theme),
    }
    match &report.version {
        Ok(version) => labelled("version", &format!("{} ({})", version.value, version.source), Role::Text, columns, document, theme),
        Err(why) => unknown("version", why, columns, document, theme),
    }
    match &report.load {
        Err(why) => unknown("load", why, columns, document, theme),
        Ok(load) => {
            for (name, value, write) in [
                ("running", &load.running, words::number as fn(f64, Theme) -> String),
                ("waiting", &load.waiting, words::number),
                ("KV", &load.kv_usage, words::share),
                ("KV max", &load.kv_usage_max, words::share),
            ] {
                match value {
                    Ok(fact) => {
                        let text = format!("{} ({}, {})", write(fact.value, theme), fact.source, words::since(fact.at, now));
                        labelled(name, &text, Role::Text, columns, document, theme);
                    }
                    Err(why) => unknown(name, why, columns, document, theme),
                }
            }
            if let Some(spread) = words::spread(load, theme) {
                labelled("ranks", &spread, Role::Text, columns, document, theme);
            }
            if load.unread > 0 {
                labelled("page", &format!("{} lines could not be read", load.unread), Role::Warn, columns, document, theme);
            }
        }
    }
    for evidence in report.evidence.iter().take(MAX_PROOFS) {
        labelled("proof", &words::proof(evidence, now), Role::Dim, columns, document, theme);
    }
}

fn unknown(name: &str, why: &Unknown, columns: usize, document: &mut Document, theme: Theme) {
    labelled(name, &format!("{} {}", theme.unknown(), why.why()), Role::Dim, columns, document, theme);
}
