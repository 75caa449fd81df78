//! What holds for every page: any bytes, any cut, any sample that can be written, and what `prometheus-parse` reads too.
use super::*;
use prometheus_parse::Value;
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// A sample as a test writes it.
#[derive(Debug, Clone, PartialEq)]
struct Made {
    name: String,
    labels: BTreeMap<String, String>,
    value: f64,
    stamp: Option<i64>,
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n"))
}

fn is_bare(name: &str, colons: bool) -> bool {
    let mut chars = name.chars();
    let may = |c: char| c.is_ascii_alphanumeric() || c == '_' || (colons && c == ':');
    chars.next().is_some_and(|c| may(c) && !c.is_ascii_digit()) && chars.all(may)
}

/// Writes a sample as the format has it; `gap` is any blanks that may stand between two parts.
fn render(made: &Made, gap: &str) -> String {
    let mut parts = Vec::new();
    let bare = is_bare(&made.name, true);
    if !bare {
        parts.push(quoted(&made.name));
    }
    for (name, value) in &made.labels {
        let name = if is_bare(name, false) { name.clone() } else { quoted(name) };
        parts.push(format!("{name}{gap}={gap}{}", quoted(value)));
    }
    let mut out = String::from(gap);
    if bare {
        out += &made.name;
    }
    if !parts.is_empty() {
        let _ = write!(out, "{gap}{{{gap}{}{gap}}}", parts.join(&format!("{gap},{gap}")));
    }
    let _ = write!(out, " {gap}{}", made.value);
    if let Some(stamp) = made.stamp {
        let _ = write!(out, " {gap}{stamp}");
    }
    out + gap + "\n"
}

fn any_name() -> impl Strategy<Value = String> {
    prop_oneof![
        3 => "[a-zA-Z_:][a-zA-Z0-9_:]{0,12}",
        1 => "[a-c]{1,2}_(bucket|sum|count|total|info|created|gsum|gcount)",
        1 => any::<String>().prop_filter("a name is not empty", |name| !name.is_empty()),
    ]
}

fn any_value() -> impl Strategy<Value = f64> {
    prop_oneof![
        4 => any::<f64>().prop_filter("NaN is no equal of itself", |value| !value.is_nan()),
        2 => (0_u32..5000).prop_map(f64::from),
    ]
}

fn any_sample() -> impl Strategy<Value = Made> {
    let label_name = prop_oneof!["[a-z_][a-z0-9_]{0,5}", "[a-z.:]{1,6}", any::<String>()]
        .prop_filter("a label name is not empty", |name| !name.is_empty());
    let label_value = prop_oneof!["[a-z0-9]{0,5}", "[\\PC]{0,8}", any::<String>(), "[\"\\\\n\n{},= #]{0,9}"];
    (any_name(), btree_map(label_name, label_value, 0..5), any_value(), any::<Option<i64>>())
        .prop_map(|(name, labels, value, stamp)| Made { name, labels, value, stamp })
}

fn back(page: &Page) -> Vec<Made> {
    let owned = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
    page.samples()
        .map(|sample| Made {
            name: sample.name().to_owned(),
            labels: sample.labels().map(owned).collect(),
            value: sample.value(),
            stamp: sample.timestamp_ms(),
        })
        .collect()
}

/// Bytes that look like a page, so that deep places are reached.
fn any_page() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        any_sample().prop_map(|made| render(&made, "").into_bytes()),
        vec(any::<u8>(), 0..12),
        proptest::sample::select(vec![
            "# TYPE a histogram\n",
            "# TYPE a_total counter\n",
            "# HELP a x\\n\n",
            "# UNIT a_s s\n",
            "# EOF\n",
            "a_bucket{le=\"1\"} 2\n",
            "a_bucket{le=\"+Inf\"} 2\n",
            "a_sum 1\n",
            "a_created 1\n",
            "{",
            "}",
            "\"",
            "\\",
            "=",
            ",",
            "#",
            " ",
            "\t",
            "\r\n",
            "\n",
            "le",
            "1e400",
            "NaN",
            "\u{e9}",
            "# {a=\"b\"} 1",
            "# TYPE ",
        ])
        .prop_map(|text| text.as_bytes().to_vec()),
    ];
    vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

fn check_sum(page: &Page) -> Result<(), TestCaseError> {
    let counts = page.counts();
    let parts = counts.samples + counts.metadata + counts.unwanted + counts.comments + counts.blank;
    prop_assert_eq!(counts.lines, parts + page.unread().count);
    prop_assert_eq!(page.unread().by_reason.values().sum::<u64>(), page.unread().count);
    prop_assert_eq!(page.samples().count() as u64, counts.samples);
    let in_families: usize = page.families().map(|family| family.samples().count()).sum();
    prop_assert_eq!(in_families as u64, counts.samples);
    Ok(())
}

proptest! {
    #[test]
    fn any_bytes_are_counted_in_full(page in any_page()) {
        let lines = page.split(|byte| *byte == b'\n').count() - usize::from(page.is_empty() || page.ends_with(b"\n"));
        let tight = Limits { page_bytes: 200, line_bytes: 30, samples: 3, families: 2, labels: 1, listed: 2 };
        for filter in [Filter::All, Filter::Names(&["a", "a_total", "b_info"]), Filter::Prefixes(&["a"])] {
            let whole = read(&page, &filter);
            check_sum(&whole)?;
            prop_assert_eq!(whole.counts().lines, lines as u64);
            prop_assert_eq!(raw::view(&whole).handed as u64, whole.counts().samples);
            for family in whole.families() {
                for histogram in whole.histograms(family.name()).by_labels.values() {
                    let _ = (histogram.quantile(0.9), histogram.delta(histogram), histogram.merge(histogram));
                }
            }
            check_sum(&read_with(&page, &filter, &tight))?;
        }
    }

    #[test]
    fn what_is_written_is_read_back(samples in vec(any_sample(), 0..12), gap in "[ \t]{0,2}") {
        let text: String = samples.iter().map(|made| render(made, &gap)).collect();
        let page = read(text.as_bytes(), &Filter::All);
        prop_assert_eq!(&page.unread().lines, &[]);
        prop_assert_eq!(back(&page), samples);
    }

    #[test]
    fn a_cut_costs_no_more_than_the_last_line(samples in vec(any_sample(), 1..8), share in 0.0_f64..1.0) {
        let text: String = samples.iter().map(|made| render(made, "")).collect();
        let cut = (text.len() as f64 * share) as usize;
        let whole = text.as_bytes()[..cut].iter().filter(|byte| **byte == b'\n').count();
        let got = back(&read(&text.as_bytes()[..cut], &Filter::All));
        prop_assert!(got.len() == whole || got.len() == whole + 1);
        prop_assert_eq!(&got[..whole], &samples[..whole]);
    }

    #[test]
    fn a_filter_is_reading_all_and_looking_away(page in any_page(), wanted in proptest::sample::select(vec!["a", "a_total", "a_created", "b_info"])) {
        let of = |page: &Page| -> Vec<String> {
            page.family(wanted).map(|s| format!("{} {:?} {}", s.name(), s.labels().collect::<Vec<_>>(), s.value())).collect()
        };
        prop_assert_eq!(of(&read(&page, &Filter::Names(&[wanted]))), of(&read(&page, &Filter::All)));
    }

    /// On lines for which both are defined, `prometheus-parse` reads what we read.
    #[test]
    fn prometheus_parse_agrees_where_it_can(
        lines in vec(("[a-z_][a-z0-9_]{0,9}", btree_map("[a-z_][a-z0-9_]{0,5}", "[a-zA-Z0-9 /._-]{0,9}", 0..4), any_value(), 0_i64..4_000_000_000_000), 0..12),
        kinds in vec(proptest::sample::select(vec!["counter", "gauge", "untyped"]), 12),
    ) {
        let mut text = String::new();
        for ((name, labels, value, stamp), kind) in lines.iter().zip(&kinds) {
            let made = Made { name: name.clone(), labels: labels.clone(), value: *value, stamp: Some(*stamp) };
            let _ = write!(text, "# TYPE {name} {kind}\n{}", render(&made, ""));
        }
        let theirs = prometheus_parse::Scrape::parse(text.lines().map(|line| Ok(line.to_owned()))).unwrap();
        let mut theirs: Vec<String> = theirs.samples.iter().map(|sample| {
            let labels: BTreeMap<&String, &String> = sample.labels.iter().collect();
            let (Value::Counter(value) | Value::Gauge(value) | Value::Untyped(value)) = sample.value else {
                return format!("{sample:?}");
            };
            format!("{} {labels:?} {:x} {:?}", sample.metric, value.to_bits(), Some(sample.timestamp.timestamp_millis()))
        }).collect();
        let mut ours: Vec<String> = read(text.as_bytes(), &Filter::All).samples().map(|sample| {
            let labels: BTreeMap<&str, &str> = sample.labels().collect();
            format!("{} {labels:?} {:x} {:?}", sample.name(), sample.value().to_bits(), sample.timestamp_ms())
        }).collect();
        theirs.sort();
        ours.sort();
        prop_assert_eq!(ours, theirs);
    }

    #[test]
    fn quantiles_lie_between_the_bounds_and_grow(counts in vec(0_u32..50, 2..9), a in 0.0_f64..=1.0, b in 0.0_f64..=1.0) {
        let last = counts.len() - 1;
        let mut sum = 0.0;
        let buckets = counts.iter().enumerate().map(|(i, count)| {
            sum += f64::from(*count);
            Bucket { le: if i == last { f64::INFINITY } else { 0.5 * (i + 1) as f64 }, count: sum }
        });
        let histogram = Histogram { buckets: buckets.collect(), sum: None, count: None };
        let (low, high) = (histogram.quantile(a.min(b)), histogram.quantile(a.max(b)));
        prop_assert_eq!(low.is_some(), sum > 0.0);
        if let (Some(low), Some(high)) = (low, high) {
            prop_assert!(0.0 <= low && low <= high && high <= 0.5 * last as f64);
        }
    }
}
