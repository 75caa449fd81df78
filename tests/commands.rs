//! The binary as scripts use it: documents that hold to their schema, exit codes, pipes that close, names of models.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

const NOW: &str = "2026-11-12T10:00:00Z";

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn cases() -> Vec<PathBuf> {
    let mut cases: Vec<_> =
        fs::read_dir(root().join("tests/data/cases")).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_dir()).collect();
    cases.sort();
    cases
}

fn case(id: &str) -> PathBuf {
    cases().into_iter().find(|path| path.file_name().unwrap().to_string_lossy().starts_with(id)).unwrap()
}

fn modeldeck(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_modeldeck")).args(arguments).stdin(Stdio::null()).output().unwrap()
}

fn on(command: &[&str], dir: &Path, more: &[&str]) -> Output {
    let dir = dir.to_string_lossy();
    modeldeck(&[command, &["--from", &dir, "--now", NOW], more].concat())
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[test]
fn explain_holds_to_its_schema_on_every_case() {
    let schema: Value = serde_json::from_str(&fs::read_to_string(root().join("docs/schema/explain-v1.json")).unwrap()).unwrap();
    jsonschema::meta::validate(&schema).unwrap();
    let schema = jsonschema::validator_for(&schema).unwrap();
    for dir in cases() {
        let output = on(&["explain"], &dir, &["-o", "json"]);
        assert_eq!(output.status.code(), Some(0), "{}", dir.display());
        let document: Value = serde_json::from_slice(&output.stdout).unwrap();
        let errors: Vec<String> = schema.iter_errors(&document).map(|error| format!("{} at {}", error, error.instance_path())).collect();
        assert!(errors.is_empty(), "{}: {errors:#?}", dir.display());
        // The subjects of a finding and of its evidence are subjects of the document.
        for finding in document["findings"].as_array().unwrap() {
            for subject in finding["subjects"].as_array().unwrap() {
                assert!(document["subjects"].get(subject.as_str().unwrap()).is_some(), "{}: {subject}", dir.display());
            }
        }
    }
}

#[test]
fn the_schema_refuses_what_is_no_document() {
    let schema: Value = serde_json::from_str(&fs::read_to_string(root().join("docs/schema/explain-v1.json")).unwrap()).unwrap();
    let schema = jsonschema::validator_for(&schema).unwrap();
    let good = || serde_json::from_slice::<Value>(&on(&["explain"], &case("B001"), &["-o", "json"]).stdout).unwrap();
    assert!(schema.is_valid(&good()));
    let pod = "/subjects/pod~1serving~1qwen-a-7c9d5b6f44-2xkqv";
    for (path, bad) in [
        (format!("{pod}/state"), Value::from("fine")),
        (format!("{pod}/values/running"), serde_json::json!({"value": 0, "unknown": "both"})),
        (format!("{pod}/values/running"), serde_json::json!({"unknown": ""})),
        ("/findings/0/evidence".into(), serde_json::json!([])),
        ("/findings/0/severity".into(), Value::from("bad")),
        ("/now".into(), Value::from("today")),
        ("/schemaVersion".into(), Value::from("2")),
    ] {
        let mut document = good();
        *document.pointer_mut(&path).unwrap() = bad;
        assert!(!schema.is_valid(&document), "{path}");
    }
}

#[test]
fn yaml_is_the_same_document() {
    for id in ["B001", "B133", "L003", "B161"] {
        let json: Value = serde_json::from_slice(&on(&["explain"], &case(id), &["-o", "json"]).stdout).unwrap();
        let yaml: Value = serde_saphyr::from_str(&text(&on(&["explain"], &case(id), &["-o", "yaml"]).stdout)).unwrap();
        assert_eq!(json, yaml, "{id}");
    }
}

#[test]
fn every_reading_command_ends_well_on_every_case() {
    for dir in cases() {
        for command in ["status", "explain", "findings"] {
            for format in ["table", "wide", "json", "yaml"] {
                let output = on(&[command], &dir, &["-o", format]);
                assert_eq!(output.status.code(), Some(0), "{command} -o {format} on {}: {}", dir.display(), text(&output.stderr));
                assert!(!output.stdout.is_empty());
                assert_eq!(text(&output.stderr), "", "{command} on {}", dir.display());
            }
        }
    }
}

#[test]
fn exit_codes() {
    let b001 = case("B001");
    let code = |output: Output| output.status.code().unwrap();
    assert_eq!(code(on(&["findings"], &b001, &[])), 0);
    assert_eq!(code(on(&["findings"], &b001, &["--fail-on", "critical"])), 1);
    assert_eq!(code(on(&["findings"], &b001, &["--fail-on", "info"])), 1);
    assert_eq!(code(on(&["findings"], &b001, &["--fail-on", "critical", "-n", "elsewhere"])), 0);
    assert_eq!(code(modeldeck(&[])), 2);
    assert_eq!(code(modeldeck(&["status", "--colour"])), 2);
    assert_eq!(code(modeldeck(&["--help"])), 0);
    assert_eq!(code(modeldeck(&["--version"])), 0);
    assert_eq!(code(modeldeck(&["explain", "--from", "/nonexistent"])), 3);
    assert_eq!(code(on(&["explain", "qwen-z"], &b001, &[])), 4);
    assert_eq!(code(on(&["explain", "qwen-a"], &b001, &[])), 0);
}

#[test]
fn errors_say_what_to_do_next() {
    let said = |output: Output| text(&output.stderr);
    assert!(said(modeldeck(&["status"])).starts_with("error: no bundle given: use --from DIR"));
    assert_eq!(modeldeck(&["status"]).status.code(), Some(2));
    assert!(said(on(&["explain", "qwen-b"], &case("B001"), &[])).contains("there is serving/qwen-a"));
    let empty = tempfile::tempdir().unwrap();
    assert!(said(on(&["status"], empty.path(), &[])).contains("holds nothing that can be read as a bundle"));
}

fn two_models(dir: &Path) {
    let one = |namespace: &str, name: &str| {
        format!(
            "---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: {name}, namespace: {namespace}}}\nspec:\n  replicas: 0\n  selector: {{matchLabels: {{app: a}}}}\n  \
             template:\n    metadata: {{labels: {{app: a}}}}\n    spec: {{containers: [{{name: vllm, image: vllm/vllm-openai:v0.19.0, args: [--model, m]}}]}}\n"
        )
    };
    fs::write(dir.join("objects.yaml"), format!("{}{}{}", one("a", "chat"), one("b", "chat"), one("b", "other"))).unwrap();
}

#[test]
fn a_name_of_several_models_lists_them() {
    let dir = tempfile::tempdir().unwrap();
    two_models(dir.path());
    let output = on(&["explain", "chat"], dir.path(), &[]);
    assert_eq!(output.status.code(), Some(4));
    assert!(text(&output.stderr).contains("a/chat, b/chat"), "{}", text(&output.stderr));
    for name in ["a/chat", "plain/b/chat", "other"] {
        assert_eq!(on(&["explain", name], dir.path(), &[]).status.code(), Some(0), "{name}");
    }
    assert_eq!(on(&["explain", "chat"], dir.path(), &["-n", "a"]).status.code(), Some(0));
    let document: Value = serde_json::from_slice(&on(&["explain", "a/chat"], dir.path(), &["-o", "json"]).stdout).unwrap();
    let subjects: Vec<&String> = document["subjects"].as_object().unwrap().keys().collect();
    assert_eq!(subjects, ["deployment/a/chat"]);
}

#[test]
fn a_closed_pipe_ends_quietly() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_modeldeck"))
        .args(["explain", "-o", "json", "--now", NOW, "--from"])
        .arg(case("L002"))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let status = child.wait().unwrap();
    let mut said = String::new();
    child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert_eq!((status.code(), said.as_str()), (Some(0), ""));
}

#[test]
fn a_full_disk_is_an_error() {
    let full = fs::OpenOptions::new().write(true).open("/dev/full");
    let Ok(full) = full else { return };
    let output = Command::new(env!("CARGO_BIN_EXE_modeldeck"))
        .args(["status", "--now", NOW, "--from"])
        .arg(case("B001"))
        .stdout(full)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(5));
    assert!(text(&output.stderr).contains("can not be written"));
}

#[test]
fn what_is_broken_is_told_and_the_rest_is_shown() {
    let dir = tempfile::tempdir().unwrap();
    two_models(dir.path());
    fs::write(dir.path().join("broken.yaml"), "kind: [\n").unwrap();
    let output = on(&["explain"], dir.path(), &["-o", "json"]);
    assert_eq!(output.status.code(), Some(0));
    assert!(text(&output.stderr).starts_with("warning: broken.yaml, document 1, line "));
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["problems"].as_array().unwrap().len(), 1);
    assert!(document["subjects"].get("deployment/b/other").is_some());
}
