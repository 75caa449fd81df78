//! A page as people read it: every family with its type and help, histograms and summaries as one row a label set.
//! The console's raw metrics view and the pages of exporters that have no reader of their own go through here.
//!
//! Types, values and grouping come from the crate `prometheus-parse`. On its own it drops every name with a colon,
//! cuts label values at commas, and says nothing about it (`docs/decisions/0002-reading-metrics.md`). So it never
//! sees the page: it is handed clean lines, made from what our scanner read, in which names and label values are numbered
//! words that no exporter chose. What comes back is put into the page's own words again and counted against what went in.
use super::histogram::{Bucket, Histogram, LabelSet};
use super::kind::{Kind, Role};
use super::page::{Family, Page, Sample};
use prometheus_parse::{Scrape, Value};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// A page, grouped.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RawView {
    /// By name.
    pub families: BTreeMap<String, RawFamily>,
    /// Samples that were handed over.
    pub handed: usize,
    /// Samples that were not, because the page has more than anybody looks through: 20,000 samples or 200,000 labels.
    pub beyond: usize,
    /// Samples that did not come back, such as a bucket whose `le` is no number. They are on the page and in no row.
    pub lost: usize,
}

/// A family, grouped.
#[derive(Debug, Clone, PartialEq)]
pub struct RawFamily {
    /// Its type, as the page says.
    pub kind: Kind,
    /// Its HELP text. Untrusted.
    pub help: Option<String>,
    /// Sorted by labels; samples that the page has twice are there twice.
    pub rows: Vec<RawRow>,
}

/// A row of a family.
#[derive(Debug, Clone, PartialEq)]
pub struct RawRow {
    /// Without `le` and `quantile` where these make buckets and quantiles. Untrusted.
    pub labels: LabelSet,
    /// What it says.
    pub value: RawValue,
}

/// What a row says.
#[derive(Debug, Clone, PartialEq)]
pub enum RawValue {
    /// One number.
    Number(f64),
    /// A histogram's buckets, sum and count.
    Histogram(Histogram),
    /// A summary.
    Summary {
        /// Quantile (0 to 1) and value, sorted.
        quantiles: Vec<(f64, f64)>,
        /// Sum of all observations.
        sum: Option<f64>,
        /// Number of all observations.
        count: Option<f64>,
    },
}

const MOST_SAMPLES: usize = 20_000;
const MOST_LABELS: usize = 200_000;

/// Groups a page. Read it with [`Filter::All`](super::Filter::All) to have all of it.
pub fn view(page: &Page) -> RawView {
    let families: Vec<Family<'_>> = page.families().collect();
    let mut words = Words::default();
    let (mut handed, mut labels, mut beyond) = (0_usize, 0_usize, 0_usize);
    let mut lines = Vec::new();
    for (number, family) in families.iter().enumerate() {
        let kind = if grouped(family.kind()) { family.kind() } else { Kind::Gauge };
        lines.push(Ok(format!("# TYPE m{number} {}", kind.word())));
        for sample in family.samples() {
            labels = labels.saturating_add(sample.labels().count());
            if handed >= MOST_SAMPLES || labels > MOST_LABELS {
                beyond = beyond.saturating_add(1);
                continue;
            }
            handed = handed.saturating_add(1);
            lines.push(Ok(words.line(number, kind, sample)));
        }
    }
    // Our lines carry no timestamps, so the time that it asks for is never seen; it must not look at a clock.
    let scrape = Scrape::parse_at(lines.into_iter(), Default::default());
    let mut view = RawView { handed, beyond, ..RawView::default() };
    for family in &families {
        let rows = Vec::new();
        let raw = RawFamily { kind: family.kind(), help: family.help().map(str::to_owned), rows };
        view.families.insert(family.name().to_owned(), raw);
    }
    let samples = scrape.map(|scrape| scrape.samples).unwrap_or_default();
    let back = gather(&mut view, &families, &words, samples);
    view.lost = handed.saturating_sub(back);
    view
}

/// Whether samples of such a family make rows together.
const fn grouped(kind: Kind) -> bool {
    matches!(kind, Kind::Histogram | Kind::Summary)
}

/// The page's label names and values by the numbers that stand for them.
#[derive(Default)]
struct Words<'p> {
    list: Vec<&'p str>,
    numbers: BTreeMap<&'p str, usize>,
}

impl<'p> Words<'p> {
    fn number(&mut self, word: &'p str) -> usize {
        *self.numbers.entry(word).or_insert_with(|| {
            self.list.push(word);
            self.list.len().saturating_sub(1)
        })
    }

    /// The word that `w7` stands for.
    fn word(&self, token: &str) -> Option<&'p str> {
        self.list.get(token.strip_prefix('w')?.parse::<usize>().ok()?).copied()
    }

    /// A clean line for a sample.
    fn line(&mut self, family: usize, kind: Kind, sample: Sample<'p>) -> String {
        let (ending, bound) = match (kind, sample.role()) {
            (Kind::Histogram, Role::Bucket) => ("_bucket", "le"),
            (Kind::Summary, Role::Value) if sample.label("quantile").is_some() => ("", "quantile"),
            (Kind::Histogram | Kind::Summary, Role::Sum) => ("_sum", ""),
            (Kind::Histogram | Kind::Summary, Role::Count) => ("_count", ""),
            (Kind::Histogram | Kind::Summary, _) => ("_bare", ""),
            _ => ("", ""),
        };
        let mut line = format!("m{family}{ending}");
        let mut before = '{';
        for (name, value) in sample.labels() {
            // Writing to a string cannot fail.
            let _ = match value.parse::<f64>() {
                Ok(number) if name == bound && !number.is_nan() => {
                    write!(line, "{before}{name}=\"{number}\"")
                }
                _ if name == bound => write!(line, "{before}{name}=\"?\""),
                _ => write!(line, "{before}w{}=\"w{}\"", self.number(name), self.number(value)),
            };
            before = ',';
        }
        let close = if before == ',' { "}" } else { "" };
        let _ = write!(line, "{close} {}", sample.value());
        line
    }
}

/// Puts what came back into rows; returns how many of the page's samples that were.
fn gather(view: &mut RawView, families: &[Family<'_>], words: &Words<'_>, samples: Vec<prometheus_parse::Sample>) -> usize {
    let mut back = 0_usize;
    let mut groups: BTreeMap<(usize, LabelSet), RawValue> = BTreeMap::new();
    for sample in samples {
        let (number, ending) = sample.metric.split_once('_').unwrap_or((&sample.metric, ""));
        let Some(number) = number.strip_prefix('m').and_then(|digits| digits.parse::<usize>().ok()) else {
            continue;
        };
        let Some(family) = families.get(number) else {
            continue;
        };
        let Some(raw) = view.families.get_mut(family.name()) else {
            continue;
        };
        let labels: Option<LabelSet> =
            sample.labels.iter().map(|(name, value)| Some((words.word(name)?.to_owned(), words.word(value)?.to_owned()))).collect();
        let Some(labels) = labels else { continue };
        if !grouped(family.kind()) || ending == "bare" {
            if let Value::Gauge(value) | Value::Untyped(value) = sample.value {
                raw.rows.push(RawRow { labels, value: RawValue::Number(value) });
                back = back.saturating_add(1);
            }
            continue;
        }
        let row = groups.entry((number, labels)).or_insert_with(|| match family.kind() {
            Kind::Histogram => RawValue::Histogram(Histogram::default()),
            _ => RawValue::Summary { quantiles: Vec::new(), sum: None, count: None },
        });
        back = back.saturating_add(fill(row, ending, sample.value));
    }
    for ((number, labels), value) in groups {
        let name = families.get(number).map(|family| family.name());
        if let Some(raw) = name.and_then(|name| view.families.get_mut(name)) {
            raw.rows.push(RawRow { labels, value });
        }
    }
    for family in view.families.values_mut() {
        family.rows.sort_by(|a, b| a.labels.cmp(&b.labels));
    }
    back
}

/// Adds a part to the row that it belongs to; returns how many samples it was made of.
fn fill(row: &mut RawValue, ending: &str, value: Value) -> usize {
    match (row, value) {
        (RawValue::Histogram(histogram), Value::Histogram(counts)) => {
            let number = counts.len();
            histogram.buckets.extend(counts.iter().map(|c| Bucket { le: c.less_than, count: c.count }));
            histogram.buckets.sort_by(|a, b| a.le.total_cmp(&b.le));
            number
        }
        (RawValue::Summary { quantiles, .. }, Value::Summary(counts)) => {
            let number = counts.len();
            quantiles.extend(counts.iter().map(|c| (c.quantile, c.count)));
            quantiles.sort_by(|a, b| a.0.total_cmp(&b.0));
            number
        }
        (RawValue::Histogram(Histogram { sum, count, .. }) | RawValue::Summary { sum, count, .. }, Value::Untyped(value)) => {
            let slot = match ending {
                "sum" => sum,
                "count" => count,
                _ => return 0,
            };
            // Of a sum that is there twice the first one is shown, and the other one is lost.
            let empty = slot.is_none();
            slot.get_or_insert(value);
            usize::from(empty)
        }
        _ => 0,
    }
}
