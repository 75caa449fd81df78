//! Findings in full: the sentence, what proves it, what may be done, and what would be wrong to do.

use jiff::Timestamp;

use crate::console::theme::{Role, Theme};
use crate::console::widgets::document::{Document, Line};
use crate::console::words;
use crate::model::finding::Finding;

/// Pieces of evidence of one finding that are shown.
const MAX_PROOFS: usize = 8;
/// Subjects of one finding that are named.
const MAX_SUBJECTS: usize = 6;

/// Adds a finding.
pub(crate) fn draw(finding: &Finding, now: Timestamp, columns: usize, document: &mut Document, theme: Theme) {
    let (mark, role) = words::severity(finding.severity);
    let head = format!("{} {} {}", theme.mark(mark), finding.severity, finding.code);
    document.push(Line::indented(1).put(&head, role, theme));
    document.paragraph(Line::indented(3), &finding.summary, Role::Text, columns, theme);
    let mut subjects: Vec<&str> = finding.subjects.iter().take(MAX_SUBJECTS).map(|subject| subject.as_str()).collect();
    let more = format!("and {} more", finding.subjects.len().saturating_sub(MAX_SUBJECTS));
    if finding.subjects.len() > MAX_SUBJECTS {
        subjects.push(&more);
    }
    labelled("about", &subjects.join(", "), Role::Dim, columns, document, theme);
    for evidence in finding.evidence.iter().take(MAX_PROOFS) {
        labelled("proof", &words::proof(evidence, now), Role::Dim, columns, document, theme);
    }
    let hidden = finding.evidence.len().saturating_sub(MAX_PROOFS);
    if hidden > 0 {
        labelled("proof", &format!("and {hidden} more"), Role::Dim, columns, document, theme);
    }
    for remedy in &finding.remedies {
        labelled("do", remedy, Role::Text, columns, document, theme);
    }
    for wrong in &finding.not {
        labelled("not", wrong, Role::Warn, columns, document, theme);
    }
}

/// Adds a paragraph behind a label: `proof  …`.
pub(crate) fn labelled(label: &str, text: &str, role: Role, columns: usize, document: &mut Document, theme: Theme) {
    let lead = Line::indented(3).field(label, 7, false, Role::Dim, theme).put(" ", Role::Text, theme);
    document.paragraph(lead, text, role, columns, theme);
}
