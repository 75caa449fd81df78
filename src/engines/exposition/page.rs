//! A page that was read: families in name order, their samples in page order, and what was not read.
//! Owns the views [`Family`] and [`Sample`] into the store, and no way to change it.
use super::kind::{Kind, Role};
use super::store::{FamilyRecord, SampleRecord, Store};
use super::unread::Unread;
use super::verdict::Verdict;

/// Which of the two text formats a page is in. It is known by what only OpenMetrics has: `# EOF`, `# UNIT`, and types
/// such as `info`. The integer timestamps of the two differ (milliseconds, seconds).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Format {
    /// Prometheus text format 0.0.4 (or 1.0.0, with quoted names).
    #[default]
    Text,
    /// OpenMetrics 1.0.
    OpenMetrics,
}

/// The lines of a page by what they were. `lines` is the sum of the others and of [`Unread::count`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// All lines.
    pub lines: u64,
    /// Samples that were kept.
    pub samples: u64,
    /// TYPE, HELP, UNIT and EOF lines that were read.
    pub metadata: u64,
    /// Lines of families that the filter does not want. Only their names were looked at.
    pub unwanted: u64,
    /// Other lines that begin with `#`.
    pub comments: u64,
    /// Lines with nothing on them.
    pub blank: u64,
    /// Of the samples: those with an exemplar, which is not kept. Not part of the sum.
    pub exemplars: u64,
}

/// A metrics page that was read, by [`read`](super::read()).
#[derive(Debug, Clone)]
pub struct Page {
    pub(super) store: Store,
    pub(super) unread: Unread,
    pub(super) counts: Counts,
    pub(super) format: Format,
    pub(super) verdict: Verdict,
    pub(super) bytes: usize,
    pub(super) bytes_beyond: usize,
    pub(super) whole_last_line: bool,
}

impl Page {
    /// The samples of a family in page order: all of them, also sums, counts and buckets; none if the page has no such
    /// family. Names are those of the text format (see [`Filter`](super::Filter)); `_created` series are not among them.
    pub fn family(&self, name: &str) -> impl Iterator<Item = Sample<'_>> + use<'_> {
        self.describe(name).into_iter().flat_map(Family::samples)
    }

    /// A family, if the page has it: by a TYPE line (then it may have no samples), by a HELP line, or by a sample.
    pub fn describe(&self, name: &str) -> Option<Family<'_>> {
        let found = self.store.index.get_key_value(name).or_else(|| {
            // An OpenMetrics counter or info that has no samples stands there without its ending.
            let (base, kind) = match (name.strip_suffix("_total"), name.strip_suffix("_info")) {
                (Some(base), _) => (base, Kind::Counter),
                (_, Some(base)) => (base, Kind::Info),
                _ => return None,
            };
            let is_it = |id: &u32| self.store.families.get(*id as usize).is_some_and(|f| f.kind == kind && f.len == 0);
            self.store.index.get_key_value(base).filter(|(_, id)| is_it(id))
        });
        found.and_then(|(name, id)| self.view(name, *id))
    }

    /// All families in the order of their names.
    pub fn families(&self) -> impl Iterator<Item = Family<'_>> {
        self.store.index.iter().filter_map(|(name, id)| self.view(name, *id))
    }

    /// All samples in page order.
    pub fn samples(&self) -> impl Iterator<Item = Sample<'_>> {
        self.store.samples.iter().map(|record| Sample { page: self, record })
    }

    fn view<'p>(&'p self, name: &'p str, id: u32) -> Option<Family<'p>> {
        let record = self.store.families.get(id as usize)?;
        Some(Family { page: self, name, record })
    }

    /// The lines that could not be read.
    pub const fn unread(&self) -> &Unread {
        &self.unread
    }

    /// The page's lines by what they were.
    pub const fn counts(&self) -> &Counts {
        &self.counts
    }

    /// The format it turned out to be in.
    pub const fn format(&self) -> Format {
        self.format
    }

    /// Whether it is a metrics page at all.
    pub const fn verdict(&self) -> &Verdict {
        &self.verdict
    }

    /// Bytes that were read.
    pub const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Bytes that were not looked at because the page is longer than
    /// [`Limits::page_bytes`](super::Limits::page_bytes).
    pub const fn bytes_beyond(&self) -> usize {
        self.bytes_beyond
    }

    /// Whether the last line ended with a newline or was `# EOF`. If not, the page may have been cut in the middle of
    /// a number, and the last sample's value may be short of digits. (Some exporters never end the last line.)
    pub const fn whole_last_line(&self) -> bool {
        self.whole_last_line
    }
}

/// One family of a page.
#[derive(Debug, Clone, Copy)]
pub struct Family<'p> {
    page: &'p Page,
    name: &'p str,
    record: &'p FamilyRecord,
}

impl<'p> Family<'p> {
    /// Its name, as the text format has it.
    pub const fn name(self) -> &'p str {
        self.name
    }

    /// Its type.
    pub const fn kind(self) -> Kind {
        self.record.kind
    }

    /// Its HELP text as on the page, escapes resolved. Untrusted.
    pub fn help(self) -> Option<&'p str> {
        self.record.help.map(|span| self.page.store.text(span))
    }

    /// Its UNIT (OpenMetrics). Untrusted.
    pub fn unit(self) -> Option<&'p str> {
        self.record.unit.map(|span| self.page.store.text(span))
    }

    /// Its samples in page order.
    pub fn samples(self) -> impl Iterator<Item = Sample<'p>> + use<'p> {
        let page = self.page;
        let start = self.record.start as usize;
        let range = start..start.saturating_add(self.record.len as usize);
        let numbers = page.store.order.get(range).unwrap_or_default();
        numbers.iter().filter_map(move |number| page.store.samples.get(*number as usize).map(|record| Sample { page, record }))
    }
}

/// One sample of a page.
#[derive(Debug, Clone, Copy)]
pub struct Sample<'p> {
    page: &'p Page,
    record: &'p SampleRecord,
}

impl<'p> Sample<'p> {
    /// Its full name: `foo_bucket`, where the family is `foo`.
    pub fn name(self) -> &'p str {
        self.page.store.text(self.record.name)
    }

    /// What it is in its family.
    pub const fn role(self) -> Role {
        self.record.role
    }

    /// Its value; NaN stands for "no value".
    pub const fn value(self) -> f64 {
        self.record.value
    }

    /// The time the exporter gave it, in Unix milliseconds. Most exporters give none.
    pub fn timestamp_ms(self) -> Option<i64> {
        self.record.stamp.map(|stamp| stamp.millis(self.page.format == Format::OpenMetrics))
    }

    /// The value of a label; an absent label and an empty one mean the same to Prometheus, and are told apart here.
    pub fn label(self, name: &str) -> Option<&'p str> {
        self.labels().find(|(label, _)| *label == name).map(|(_, value)| value)
    }

    /// Its labels, sorted by name. Untrusted.
    pub fn labels(self) -> impl Iterator<Item = (&'p str, &'p str)> + use<'p> {
        let store = &self.page.store;
        store.labels_of(self.record).iter().map(|label| (store.text(label.name), store.text(label.value)))
    }
}
