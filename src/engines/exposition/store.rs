//! The compact store behind a page: texts in one string, labels and samples in one list each, so that reading a page
//! costs a handful of allocations and keeping it little memory.
use super::kind::{Kind, Role};
use super::number::Stamp;
use std::collections::BTreeMap;

/// A piece of [`Store::texts`].
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Span {
    pub(super) start: u32,
    pub(super) end: u32,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct LabelSpan {
    pub(super) name: Span,
    pub(super) value: Span,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct SampleRecord {
    pub(super) name: Span,
    pub(super) value: f64,
    pub(super) stamp: Option<Stamp>,
    /// Where its labels stand in [`Store::labels`], sorted by name.
    pub(super) labels_start: u32,
    pub(super) labels_len: u32,
    pub(super) family: u32,
    pub(super) role: Role,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct FamilyRecord {
    pub(super) kind: Kind,
    pub(super) help: Option<Span>,
    pub(super) unit: Option<Span>,
    /// Where its samples stand in [`Store::order`].
    pub(super) start: u32,
    pub(super) len: u32,
}

/// All that was kept of a page.
#[derive(Debug, Clone, Default)]
pub(super) struct Store {
    pub(super) texts: String,
    pub(super) labels: Vec<LabelSpan>,
    /// In page order.
    pub(super) samples: Vec<SampleRecord>,
    /// Sample numbers, family after family.
    pub(super) order: Vec<u32>,
    pub(super) families: Vec<FamilyRecord>,
    /// Family numbers by name.
    pub(super) index: BTreeMap<Box<str>, u32>,
}

impl Store {
    pub(super) fn text(&self, span: Span) -> &str {
        self.texts.get(span.start as usize..span.end as usize).unwrap_or_default()
    }

    pub(super) fn labels_of(&self, sample: &SampleRecord) -> &[LabelSpan] {
        let start = sample.labels_start as usize;
        self.labels.get(start..start.saturating_add(sample.labels_len as usize)).unwrap_or_default()
    }
}
