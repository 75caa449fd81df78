//! Finding cases on disk, judging one, and the line that identifies a check.

use std::cell::Cell;
use std::fs;
use std::path::Path;

use rstest::rstest;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::judge::cases::{Outcome, find, judge, line, select};
use crate::judge::deferred::place;
use crate::{NOW, POD, sample};

const EXPECT: &str = "id: T1\nkind: lab\nnow: '2026-03-01T12:00:00Z'\n";
const CHECKS: &str = "
- {text: it loads, check: state, subject: pod/lab/m-0, is: [loading]}
- {text: played, check: client, script: watch.yaml}
- {text: it serves, check: state, subject: pod/lab/m-0, is: [serving]}
- {text: nicely said, check: reading}
- {text: it may be woken, check: action, subject: pod/lab/m-0, verb: wake, answer: [allow]}
";

fn write(root: &TempDir, name: &str, files: &[(&str, &str)]) {
    let dir = root.path().join(name);
    fs::create_dir(&dir).unwrap();
    for (file, text) in files {
        fs::write(dir.join(file), text).unwrap();
    }
}

fn judged(files: &[(&str, &str)], explain: impl FnOnce(&Path, &str) -> Result<String, String>) -> Outcome {
    let root = tempfile::tempdir().unwrap();
    write(&root, "T1-made-up", files);
    let cases = find(root.path()).unwrap();
    assert_eq!(cases.len(), 1);
    judge(&cases[0], explain)
}

fn good(outcome: &Outcome) -> Vec<bool> {
    outcome.checks.iter().map(|check| check.verdict.is_ok()).collect()
}

#[test]
fn cases_are_directories_with_a_header_or_checks_in_order() {
    let root = tempfile::tempdir().unwrap();
    write(&root, "T2-b", &[("checks.yaml", CHECKS)]);
    write(&root, "T1-a", &[("expect.yaml", EXPECT)]);
    write(&root, "other", &[("objects.yaml", "")]);
    fs::write(root.path().join("README.md"), "").unwrap();
    let ids: Vec<_> = find(root.path()).unwrap().into_iter().map(|case| case.id).collect();
    assert_eq!(ids, ["T1", "T2"]);
    assert!(find(&root.path().join("nowhere")).is_err());
}

#[rstest]
#[case::one("T2", &["T2"])]
#[case::several(" T3, T1,", &["T1", "T3"])]
#[case::absent("T1,T9", &[])]
#[case::start_of_an_id("T", &[])]
#[case::empty("", &[])]
fn selection(#[case] only: &str, #[case] wanted: &[&str]) {
    let root = tempfile::tempdir().unwrap();
    for name in ["T1-a", "T2-b", "T3-c"] {
        write(&root, name, &[("expect.yaml", EXPECT)]);
    }
    let selected = select(find(root.path()).unwrap(), only);
    let ids: Vec<_> = selected.into_iter().flatten().map(|case| case.id).collect();
    assert_eq!(ids, wanted);
}

#[test]
fn a_case_is_judged_at_its_own_clock() {
    let outcome = judged(&[("expect.yaml", EXPECT), ("checks.yaml", CHECKS)], |dir, now| {
        assert!(dir.ends_with("T1-made-up"));
        assert_eq!(now, NOW);
        Ok(sample().to_string())
    });
    assert_eq!((outcome.id.as_str(), outcome.kind.as_str(), &outcome.error), ("T1", "lab", &None));
    assert_eq!(good(&outcome), [true, false, false]);
    let places = outcome.checks.iter().map(|check| place(&check.line));
    assert_eq!(places.collect::<Vec<_>>(), [1, 3, 5]);
    assert_eq!(outcome.checks.iter().map(|check| check.is_action).collect::<Vec<_>>(), [false, false, true]);
    assert_eq!((outcome.client, outcome.reading), (1, vec!["nicely said".to_owned()]));
}

#[rstest]
#[case::did_not_end_well(Err("no document: killed".to_owned()))]
#[case::no_document(Ok("hello".to_owned()))]
fn without_a_document_no_check_holds(#[case] printed: Result<String, String>) {
    let outcome = judged(&[("expect.yaml", EXPECT), ("checks.yaml", CHECKS)], |_, _| printed);
    assert!(outcome.error.is_some());
    assert_eq!(good(&outcome), [false, false, false]);
}

#[rstest]
#[case::no_checks(&[("expect.yaml", EXPECT)])]
#[case::empty_checks(&[("expect.yaml", EXPECT), ("checks.yaml", "[]")])]
#[case::checks_of_wrong_shape(&[("expect.yaml", EXPECT), ("checks.yaml", "check: state")])]
#[case::not_yaml(&[("expect.yaml", EXPECT), ("checks.yaml", "[")])]
#[case::no_header(&[("checks.yaml", CHECKS)])]
#[case::no_clock(&[("expect.yaml", "id: T1\nkind: lab\n"), ("checks.yaml", CHECKS)])]
fn a_case_that_cannot_be_read_fails(#[case] files: &[(&str, &str)]) {
    let outcome = judged(files, |_, _| Ok(sample().to_string()));
    assert!(outcome.error.is_some());
    assert_eq!(good(&outcome), [false]);
}

#[test]
fn where_nothing_is_to_evaluate_nothing_is_run() {
    let ran = Cell::new(false);
    let checks = "- {text: played, check: client, script: watch.yaml}";
    let outcome = judged(&[("expect.yaml", EXPECT), ("checks.yaml", checks)], |_, _| {
        ran.set(true);
        Ok(String::new())
    });
    assert!(!ran.get() && outcome.error.is_none() && outcome.checks.is_empty());
    assert_eq!(outcome.client, 1);
}

#[rstest]
#[case::state(
    json!({"check": "state", "subject": POD, "is": ["ready", "serving"], "not": ["dead"]}),
    "state on pod/lab/m-0 is ready|serving"
)]
#[case::value(json!({"check": "value", "subject": "fleet", "name": "running", "equals": 0}), "value running on fleet is 0")]
#[case::unknown(
    json!({"check": "value", "subject": "fleet", "name": "running", "unknown": true}),
    "value running on fleet is unknown"
)]
#[case::not(
    json!({"check": "value", "subject": "fleet", "name": "running", "not": 0}),
    "value running on fleet is not 0"
)]
#[case::finding(
    json!({"check": "finding", "code": "a", "subjects": [POD, "fleet"], "not": ["x"]}),
    "finding a on pod/lab/m-0|fleet"
)]
#[case::many(
    json!({"check": "no-finding", "codes": ["a", "b", "c"], "subjects": [POD, "fleet", "node/n", "node/o"]}),
    "no-finding a and 2 more on pod/lab/m-0 and 3 more"
)]
#[case::action(
    json!({"check": "action", "subject": POD, "verb": "drain", "answer": ["warn", "refuse"]}),
    "action drain on pod/lab/m-0 is warn|refuse"
)]
#[case::owner(
    json!({"check": "owner", "subject": POD, "field": "spec", "writer": "helm"}),
    "owner spec on pod/lab/m-0 is helm"
)]
#[case::no_mapping(json!("text"), "")]
fn a_line_says_what_is_checked(#[case] check: Value, #[case] wanted: &str) {
    let line = line(7, &check);
    let mut words = line.splitn(3, ' ');
    assert_eq!(words.next(), Some("7"));
    assert!(words.next().is_some_and(|mark| mark.len() == 8 && mark.chars().all(|c| c.is_ascii_hexdigit())));
    assert_eq!(words.next(), Some(wanted));
}

#[rstest]
#[case::place(8, r#"{"check": "value", "subject": "fleet", "name": "awake", "equals": 1}"#, false)]
#[case::wanted_value(7, r#"{"check": "value", "subject": "fleet", "name": "awake", "equals": 2}"#, false)]
#[case::subject(7, r#"{"check": "value", "subject": "node/n", "name": "awake", "equals": 1}"#, false)]
#[case::prose(7, r#"{"check": "value", "subject": "fleet", "name": "awake", "equals": 1, "text": "x"}"#, true)]
#[case::order(7, r#"{"equals": 1, "name": "awake", "subject": "fleet", "check": "value"}"#, true)]
fn a_line_changes_with_what_is_asked(#[case] number: usize, #[case] check: &str, #[case] same: bool) {
    let before = json!({"check": "value", "subject": "fleet", "name": "awake", "equals": 1});
    let after: Value = serde_json::from_str(check).unwrap();
    assert_eq!(line(7, &before) == line(number, &after), same);
}
