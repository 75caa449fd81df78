//! Bundles on disk: the handed-out cases, hand-made directories, and what must never be read.

use std::fs;
use std::path::{Path, PathBuf};

use jiff::Timestamp;

use super::*;
use crate::model::Subject;
use crate::model::engine::{HttpFailure, HttpOutcome};
use crate::world::Facts;

fn case(id: &str) -> PathBuf {
    let cases = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/cases");
    fs::read_dir(cases)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .find(|path| path.file_name().unwrap().to_string_lossy().starts_with(id))
        .unwrap()
}

fn ten() -> Timestamp {
    "2026-11-12T10:00:00Z".parse().unwrap()
}

pub(super) fn bundle(files: &[(&str, &str)]) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for (name, text) in files {
        fs::write(dir.path().join(name), text).unwrap();
    }
    dir
}

fn facts(files: &[(&str, &str)]) -> Facts {
    read(bundle(files).path(), Some(ten())).unwrap().facts
}

fn subjects(facts: &Facts) -> Vec<String> {
    facts.objects.iter().map(|object| object.subject().to_string()).collect()
}

const POD: &str = "apiVersion: v1\nkind: Pod\nmetadata:\n  name: a\n  namespace: s\n";
const PAGE: &str = "# TYPE vllm:num_requests_running gauge\nvllm:num_requests_running{engine=\"0\"} 3\n";

#[test]
fn no_handed_out_case_has_a_problem() {
    let cases = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/cases");
    let mut read_ones = 0;
    for path in fs::read_dir(cases).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_dir()) {
        let bundle = read(&path, Some(ten())).unwrap();
        assert_eq!(bundle.facts.problems, [], "{}", path.display());
        let listed = serde_saphyr::from_str::<Vec<serde_json::Value>>(&fs::read_to_string(path.join("manifest.yaml")).unwrap()).unwrap();
        assert_eq!(bundle.files.len(), listed.len(), "{}", path.display());
        read_ones += 1;
    }
    assert!(read_ones > 40);
}

#[test]
fn a_case_with_answers_pages_and_a_log() {
    let bundle = read(&case("B001"), None).unwrap();
    assert_eq!((bundle.now, bundle.now_from), (ten(), NowFrom::Newest));
    let facts = bundle.facts;
    assert_eq!((facts.pages.len(), facts.logs.len(), facts.answers.len()), (4, 1, 4));
    assert_eq!(facts.pages[0].at, "2026-11-12T09:59:00Z".parse().unwrap());
    assert_eq!(facts.pages[0].subject.as_str(), "pod/serving/qwen-a-7c9d5b6f44-2xkqv");
    assert_eq!(facts.logs[0].container, "vllm");
    assert!(!facts.logs[0].lines.is_empty());
}

#[test]
fn a_page_behind_an_answer_is_a_page_once() {
    let facts = read(&case("B133"), Some(ten())).unwrap().facts;
    assert_eq!((facts.answers.len(), facts.pages.len()), (1, 1));
    assert!(facts.pages[0].page.family("vllm:num_requests_running").count() > 0);
}

#[test]
fn exporters_are_told_apart_and_failures_are_answers() {
    let facts = read(&case("B114"), Some(ten())).unwrap().facts;
    assert_eq!((facts.exporters.len(), facts.exporters[0].subject.as_str()), (1, "node/gpu-node-1"));
    let facts = read(&case("B138"), Some(ten())).unwrap().facts;
    assert!(facts.answers.iter().any(|answer| answer.outcome == HttpOutcome::Failed(HttpFailure::Timeout)));
    let facts = read(&case("B161"), Some(ten())).unwrap().facts;
    assert_eq!(facts.answers.iter().filter_map(|answer| answer.status()).collect::<Vec<_>>(), [403]);
}

#[test]
fn a_watch_leaves_what_its_last_list_has() {
    let facts = read(&case("B150"), Some(ten())).unwrap().facts;
    let mut left = subjects(&facts);
    left.sort();
    assert_eq!(left, ["pod/serving/qwen-a-0", "pod/serving/qwen-a-2"]);
    let deleted: Vec<_> = facts.history.iter().filter(|change| change.event == "DELETED").collect();
    assert_eq!((deleted.len(), deleted[0].object.subject().as_str()), (1, "pod/serving/qwen-a-1"));
    let facts = read(&case("B053"), Some(ten())).unwrap().facts;
    assert!(facts.history.iter().filter(|change| change.event == "MODIFIED").count() >= 2);
}

#[test]
fn nothing_of_the_clients_own_files_is_opened() {
    let facts = read(&case("B153"), Some(ten())).unwrap().facts;
    assert!(facts.objects.is_empty() && facts.logs.is_empty());
    let facts = facts_of_kubeconfig();
    assert!(facts.objects.is_empty());
    assert!(!format!("{facts:?}").contains("hunter2"));
}

fn facts_of_kubeconfig() -> Facts {
    facts(&[
        ("cluster.yaml", "apiVersion: v1\nkind: Config\nclusters: []\nusers: [{name: a, user: {token: hunter2}}]\n"),
        ("p.yaml", "null\n"),
        ("durations.yaml", "- {stage: loading, seconds: [60]}\n"),
    ])
}

#[test]
fn a_bundle_made_by_hand_needs_no_manifest() {
    let dir = bundle(&[
        ("pods.yaml", &format!("apiVersion: v1\nkind: List\nitems:\n- {}", POD.replace('\n', "\n  ").trim_end())),
        ("raw.json", r#"{"kind":"NodeList","apiVersion":"v1","items":[{"metadata":{"name":"n1"}}]}"#),
        ("array.json", r#"[{"apiVersion":"v1","kind":"Service","metadata":{"name":"svc","namespace":"s"}}]"#),
        ("metrics-s_a_8000@20261112T095900Z.txt", PAGE),
        ("metrics-a@20261112T100000Z.txt", PAGE),
        ("metrics-other.txt", PAGE),
        ("log-s_a_vllm@20261112T100000Z.txt", "one\ntwo\n"),
        ("http-s_a_8000_health@20261112T100000Z.txt", "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n\r\nok"),
        ("notes.txt", "call me"),
        ("README.md", "an incident"),
    ]);
    let facts = read(dir.path(), Some(ten())).unwrap().facts;
    let mut found = subjects(&facts);
    found.sort();
    assert_eq!(found, ["node/n1", "pod/s/a", "service/s/svc"]);
    let mut pages: Vec<_> = facts.pages.iter().map(|page| (page.subject.as_str(), page.port)).collect();
    pages.sort();
    assert_eq!(pages, [("engine/other", None), ("pod/s/a", None), ("pod/s/a", Some(8000))]);
    assert_eq!(facts.answers[0].body(), "ok");
    assert_eq!(facts.answers[0].at, ten());
    assert_eq!(facts.logs[0].lines, ["one", "two"]);
    assert_eq!(facts.problems.iter().map(|problem| problem.place.as_str()).collect::<Vec<_>>(), ["notes.txt"]);
}

#[test]
fn a_short_name_that_two_pods_have_is_a_problem() {
    let facts = facts(&[("a.yaml", POD), ("b.yaml", &POD.replace("namespace: s", "namespace: t")), ("metrics-a.txt", PAGE)]);
    assert!(facts.pages.is_empty());
    assert!(facts.problems[0].what.contains("2 pods are named a"), "{:?}", facts.problems);
}

#[test]
fn paths_that_lead_out_are_left_alone() {
    let secret = bundle(&[("secret.txt", PAGE)]);
    let outside = secret.path().join("secret.txt");
    let manifest = format!(
        "- {{file: ../secret.txt, kind: metrics, subject: pod/s/a}}\n- {{file: {}, kind: metrics, subject: pod/s/a}}\n\
         - {{file: link.txt, kind: metrics, subject: pod/s/a}}\n- {{file: sub/link/secret.txt, kind: metrics, subject: pod/s/a}}\n\
         - {{file: ., kind: log, subject: pod/s/a}}\n- {{file: pod.yaml, kind: objects}}\n\
         - {{file: http.yaml, kind: http}}\n",
        outside.display()
    );
    let http = format!("responses:\n- {{target: pod/s/a, path: /metrics, status: 200, body_file: {}}}\n", outside.display());
    let dir = bundle(&[("manifest.yaml", &manifest), ("pod.yaml", POD), ("http.yaml", &http)]);
    std::os::unix::fs::symlink(&outside, dir.path().join("link.txt")).unwrap();
    fs::create_dir(dir.path().join("sub")).unwrap();
    std::os::unix::fs::symlink(secret.path(), dir.path().join("sub/link")).unwrap();
    let facts = read(dir.path(), Some(ten())).unwrap().facts;
    assert!(facts.pages.is_empty() && facts.logs.is_empty());
    assert_eq!(subjects(&facts), ["pod/s/a"]);
    assert_eq!(facts.problems.len(), 6, "{:#?}", facts.problems);
    assert_eq!(facts.answers[0].body(), "");
}

#[test]
fn what_is_missing_or_unclear_costs_no_neighbour() {
    let manifest = "- {file: gone.yaml, kind: objects}\n- {file: a.yaml, kind: sculpture}\n- {kind: objects}\n- 3\n\
                    - {file: pod.yaml, kind: objects, at: yesterday}\n- {file: m.txt, kind: metrics}\n- {file: l.txt, kind: log, subject: node/n}\n";
    let facts = facts(&[("manifest.yaml", manifest), ("pod.yaml", POD), ("m.txt", PAGE), ("l.txt", "x")]);
    assert_eq!(subjects(&facts), ["pod/s/a"]);
    assert_eq!(facts.objects[0].seen, ten());
    assert_eq!(facts.problems.len(), 7, "{:#?}", facts.problems);
}

#[test]
fn answers_that_say_too_little_are_told() {
    let http = "responses:\n- {target: pod/s/a, path: /health, status: 200, at: noon}\n- {path: /health, status: 200}\n- {target: pod/s/a}\n\
                - {target: pod/s/a, path: /health}\n- {target: pod/s/a, path: /health, status: 70000}\n\
                - {target: pod/s/a, path: /v1/models, status: '200', body: {data: []}}\n";
    let facts = facts(&[("http.yaml", http)]);
    assert_eq!(facts.answers.len(), 2);
    assert_eq!(facts.answers[0].at, ten());
    assert_eq!(facts.answers[1].body(), r#"{"data":[]}"#);
    assert_eq!(facts.problems.len(), 5, "{:#?}", facts.problems);
}

#[test]
fn the_newest_version_of_an_object_counts() {
    let manifest =
        "- {file: new.yaml, kind: objects, at: '2026-11-12T09:59:00Z'}\n- {file: old.yaml, kind: objects, at: '2026-11-12T09:00:00Z'}\n";
    let pod = |phase: &str| format!("{POD}status: {{phase: {phase}}}\n");
    let facts = facts(&[("manifest.yaml", manifest), ("new.yaml", &pod("Running")), ("old.yaml", &pod("Pending"))]);
    let crate::model::object::Body::Pod(last) = &facts.objects.last().unwrap().body else { panic!("no pod") };
    assert_eq!(last.phase.as_deref(), Ok("Running"));
}

#[test]
fn the_log_of_an_earlier_run_is_dated_by_its_pod() {
    let pod = format!(
        "{POD}status:\n  containerStatuses:\n  - name: vllm\n    lastState: {{terminated: {{exitCode: 137, finishedAt: '2026-11-12T09:58:05Z'}}}}\n"
    );
    let facts = facts(&[("pod.yaml", &pod), ("log-s_a_vllm_previous@20261112T100000Z.txt", "x")]);
    assert_eq!((facts.logs[0].previous_at, facts.logs[0].exit_code), ("2026-11-12T09:58:05Z".parse().ok(), Some(137)));
}

#[test]
fn marks_ends_and_tabs_of_other_systems() {
    let facts = facts(&[
        ("pod.yaml", &format!("\u{feff}{}", POD.replace('\n', "\r\n"))),
        ("tabs.yaml", "kind: Pod\n\tmetadata: x\n"),
        ("bytes.yaml", "apiVersion: v1\nkind: Pod\nmetadata: {name: b, namespace: s, labels: {x: \"\u{1b}[2J\"}}\n"),
    ]);
    let mut found = subjects(&facts);
    found.sort();
    assert_eq!(found, ["pod/s/a", "pod/s/b"]);
    assert_eq!(facts.problems.len(), 1);
}

#[test]
fn nothing_at_all_is_an_error_that_says_what_is_missing() {
    let dir = bundle(&[]);
    assert!(matches!(read(dir.path(), None), Err(BundleError::Nothing { .. })));
    assert!(matches!(read(&dir.path().join("gone"), None), Err(BundleError::Unreadable { .. })));
    let dir = bundle(&[("a.yaml", POD)]);
    assert!(matches!(read(&dir.path().join("a.yaml"), None), Err(BundleError::NotADirectory { .. })));
    assert_eq!(read(dir.path(), None).unwrap().now_from, NowFrom::FileTime);
}

#[test]
fn pods_of_a_page_are_found_by_their_subject() {
    let facts =
        facts(&[("manifest.yaml", "- {file: m.txt, kind: metrics, subject: engine/old, at: '2026-11-12T09:00:00Z'}\n"), ("m.txt", PAGE)]);
    assert_eq!(facts.pages[0].subject, Subject::engine("old"));
}

#[test]
fn the_end_of_a_long_log_is_kept() {
    let long: String = (0..400_000).map(|n| format!("{n}\n")).collect();
    let facts = facts(&[
        ("log-s_a_vllm.txt", &long),
        ("log-s_b_vllm.txt", "a\rb\r\n\nc\n-----BEGIN PRIVATE KEY-----\nMIIhunter2\n-----END PRIVATE KEY-----\n"),
    ]);
    assert_eq!((facts.logs[0].lines.len(), facts.logs[0].lines[0].as_str()), (5_000, "395000"));
    assert_eq!(facts.logs[1].lines, ["a", "b", "c", "[redacted]"]);
}
