//! Every recorded page against what Python's own reader says of it (`tests/data/metrics/goldens.py`).
#![allow(clippy::unwrap_used, reason = "a test may fail loudly")]
use modeldeck::engines::exposition::{Filter, Kind, Page, Reason, Verdict, raw, read};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;

#[derive(serde::Deserialize)]
struct Golden {
    /// Which of Python's readers took the page; absent if none did.
    accepted_by: Option<Vec<String>>,
    samples: Option<u64>,
    sha256: Option<String>,
    timestamps_ms: Option<Vec<i64>>,
    unread: Option<u64>,
    unread_lines: Option<Vec<u64>>,
}

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data/metrics")
}

fn goldens() -> BTreeMap<String, Golden> {
    let text = std::fs::read(folder().join("goldens.json")).unwrap();
    serde_json::from_slice(&text).unwrap()
}

fn page(name: &str) -> Page {
    let bytes = std::fs::read(folder().join(name)).unwrap();
    let page = read(&bytes, &Filter::All);
    let counts = page.counts();
    let parts = counts.samples + counts.metadata + counts.unwanted + counts.comments + counts.blank;
    assert_eq!(counts.lines, parts + page.unread().count, "{name}: a line is neither read nor counted as unread");
    assert_eq!((page.bytes(), page.bytes_beyond()), (bytes.len(), 0));
    page
}

/// As `goldens.py` has it: names, labels and bits of the value, in an order that no reader can choose.
fn digest(page: &Page) -> String {
    let mut lines: Vec<String> = page
        .samples()
        .map(|sample| {
            let mut line = sample.name().to_owned();
            for (name, value) in sample.labels() {
                let _ = write!(line, "\u{1f}{name}\u{1f}{value}");
            }
            let value = sample.value();
            let bits = if value.is_nan() { "nan".to_owned() } else { format!("{:016x}", value.to_bits()) };
            line + "\u{1f}" + &bits
        })
        .collect();
    lines.sort();
    let hash = Sha256::digest(lines.join("\u{1e}"));
    hash.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn every_page_in_the_folder_has_a_golden() {
    let mut names = Vec::new();
    let mut folders = vec![folder()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|ending| ending == "txt") {
                names.push(path);
            }
        }
    }
    let root = folder();
    let mut names: Vec<_> = names.iter().map(|path| path.strip_prefix(&root).unwrap().to_string_lossy().replace('\\', "/")).collect();
    names.sort();
    assert_eq!(names, goldens().into_keys().collect::<Vec<_>>());
    assert!(names.len() > 50);
}

#[test]
fn accepted_pages_are_read_as_python_reads_them() {
    for (name, golden) in goldens().iter().filter(|(_, golden)| golden.accepted_by.is_some()) {
        let page = page(name);
        assert_eq!(page.unread().lines, [], "{name}");
        assert_eq!(Some(page.counts().samples), golden.samples, "{name}");
        assert_eq!(Some(digest(&page)), golden.sha256, "{name}");
        if let Some(stamps) = &golden.timestamps_ms {
            let ours: Vec<i64> = page.samples().filter_map(|sample| sample.timestamp_ms()).collect();
            assert_eq!(ours, *stamps, "{name}");
        }
        let wanted = if golden.samples == Some(0) { Verdict::Empty } else { Verdict::Metrics };
        assert_eq!(*page.verdict(), wanted, "{name}");
    }
}

#[test]
fn of_refused_pages_the_same_lines_are_unread() {
    let mut pages = 0;
    for (name, golden) in goldens().iter().filter(|(_, golden)| golden.accepted_by.is_none()) {
        pages += 1;
        let page = page(name);
        assert_eq!(Some(page.unread().count), golden.unread, "{name}: {:#?}", page.unread());
        let numbers: Vec<u64> = page.unread().lines.iter().map(|line| line.number).collect();
        let theirs = golden.unread_lines.as_deref().unwrap();
        assert_eq!(numbers, theirs[..numbers.len()], "{name}");
        assert_eq!(numbers.len(), theirs.len().min(20), "{name}");
    }
    assert!(pages >= 4);
}

#[test]
fn broken_lines_are_listed_with_the_reason() {
    let page = page("made/broken-lines.txt");
    let got: Vec<(u64, Reason)> = page.unread().lines.iter().map(|line| (line.number, line.reason)).collect();
    let wanted = [
        (3, Reason::Value),
        (4, Reason::Labels),
        (5, Reason::OpenQuote),
        (6, Reason::Labels),
        (7, Reason::DuplicateLabel),
        (8, Reason::NoValue),
        (9, Reason::Name),
        (10, Reason::Name),
        (11, Reason::NoName),
        (13, Reason::Labels),
        (14, Reason::Metadata),
        (15, Reason::Metadata),
        (18, Reason::Value),
        (19, Reason::Value),
        (21, Reason::NoValue),
        (22, Reason::Timestamp),
    ];
    assert_eq!(got, wanted);
    assert!(!page.whole_last_line());
}

/// What the raw view hands to `prometheus-parse` comes back in full, whatever the page.
#[test]
fn the_raw_view_loses_nothing_of_any_page() {
    for name in goldens().keys() {
        let page = page(name);
        let view = raw::view(&page);
        // These fixtures are several answers joined: one histogram has its sum and its count twice.
        let twice = if name == "epp-v0.10.0-unit-test-fixtures.txt" { 2 } else { 0 };
        assert_eq!((view.handed as u64, view.lost), (page.counts().samples, twice), "{name}");
        for family in page.families() {
            let raw = &view.families[family.name()];
            assert_eq!((raw.kind, raw.help.as_deref()), (family.kind(), family.help()), "{name}");
            let grouped = matches!(family.kind(), Kind::Histogram | Kind::Summary);
            assert!(grouped || raw.rows.len() == family.samples().count(), "{name}: {}", family.name());
        }
    }
}

/// Two ways to the same histograms: our own, and the one through `prometheus-parse`.
#[test]
fn histograms_are_the_same_by_both_ways() {
    let mut compared = 0;
    for name in goldens().keys() {
        let page = page(name);
        let view = raw::view(&page);
        for family in page.families().filter(|family| family.kind() == Kind::Histogram) {
            let ours = page.histograms(family.name());
            // The unit-test fixtures have series twice; which of the two holds is no matter of this test.
            if ours.left_out > 0 {
                continue;
            }
            let rows = &view.families[family.name()].rows;
            assert_eq!(rows.len(), ours.by_labels.len(), "{name}: {}", family.name());
            for (row, (labels, histogram)) in rows.iter().zip(&ours.by_labels) {
                assert_eq!(row.labels, *labels);
                assert_eq!(row.value, raw::RawValue::Histogram(histogram.clone()));
                compared += 1;
            }
        }
    }
    assert!(compared > 200, "{compared}");
}
