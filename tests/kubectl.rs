//! An unchanged kubectl with a fresh HOME against the embedded API, and the same transcript against a real one.
//!
//! `tests/data/kubectl/commands.txt` are the commands, `transcript.txt` what they print on a real API server of 1.36, normalised.
//! Recorded by `MODELDECK_RECORD=1 tests/cluster/run --machinery cargo test --test kubectl`.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stderr, missing_docs)]

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use regex::Regex;

fn data(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data/kubectl").join(name)
}

/// Minor versions of kubectl whose words the transcript was held to.
const KNOWN: std::ops::RangeInclusive<u32> = 32..=36;

/// The kubectl of the servers' version if `tests/cluster/run` brings one, else the machine's; `None` for none, and for one of a version
/// that may say things differently.
fn kubectl() -> Option<String> {
    let named = std::env::var("MODELDECK_KUBECTL").unwrap_or_else(|_| "kubectl".to_owned());
    let told = Command::new(&named).args(["version", "--client", "--output=json"]).output().ok()?;
    let version: serde_json::Value = serde_json::from_slice(&told.stdout).ok()?;
    let minor = version.pointer("/clientVersion/minor").and_then(serde_json::Value::as_str).unwrap_or_default();
    let known = minor.trim_end_matches('+').parse().is_ok_and(|minor| KNOWN.contains(&minor));
    if !known {
        eprintln!("kubectl 1.{minor} is none of those that the transcript was held to (1.32 to 1.36)");
    }
    known.then_some(named)
}

/// Times, ages, ids, addresses and versions are any; columns are one space apart.
fn normalise(text: &str) -> String {
    let rules = [
        (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", "TIME"),
        (r"[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d \+0000", "TIME"),
        (r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "UID"),
        (r#"resourceVersion: "\d+""#, "resourceVersion: N"),
        (r"\b10\.(9[6-9]|10\d|11[01])\.\d+\.\d+\b", "ADDRESS"),
        (r"kube-api-access-[a-z0-9]{5}", "kube-api-access-XXXXX"),
        (r"\b\d+[smh](\d+[sm])?\b", "AGE"),
        (r" from \S+ namespace", ""),
        (r"The request is invalid: the server rejected our request due to an error in our request", "The request is invalid"),
        (r"[ \t]+", " "),
        (r" +\n", "\n"),
    ];
    rules.iter().fold(text.to_owned(), |text, (rule, to)| Regex::new(rule).unwrap().replace_all(&text, *to).into_owned())
}

fn transcript(kubectl: &str, kubeconfig: &Path, namespace: &str) -> String {
    let home = tempfile::tempdir().unwrap();
    let own = home.path().join("config");
    std::fs::copy(kubeconfig, &own).unwrap();
    let folder = Path::new(kubectl).parent().filter(|p| !p.as_os_str().is_empty());
    let path = std::env::var("PATH").unwrap();
    let path = folder.map_or(path.clone(), |f| format!("{}:{path}", f.display()));
    let mut out = String::new();
    for line in std::fs::read_to_string(data("commands.txt")).unwrap().lines() {
        let done = Command::new("bash")
            .args(["-c", line])
            .env("HOME", home.path())
            .env("KUBECONFIG", &own)
            .env("PATH", &path)
            .env("NS", namespace)
            .env_remove("KUBECACHEDIR")
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let text = format!("{}{}", String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
        out += &format!("$ {line}\n{}", normalise(&text).replace(namespace, "NS"));
        if !out.ends_with('\n') {
            out.push('\n');
        }
    }
    out
}

fn compare(found: &str, wanted: &str) {
    let blocks = |text: &str| -> Vec<String> { text.split("\n$ ").map(str::to_owned).collect() };
    let wrong: Vec<String> = blocks(wanted)
        .iter()
        .zip(&blocks(found))
        .filter(|(wanted, found)| wanted.trim() != found.trim())
        .map(|(wanted, found)| format!("--- should be\n{wanted}\n--- is\n{found}"))
        .collect();
    assert!(wrong.is_empty(), "{} commands differ:\n{}", wrong.len(), wrong.join("\n"));
    assert_eq!(blocks(wanted).len(), blocks(found).len());
}

struct Served(Child);

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn embedded(folder: &Path) -> (Served, PathBuf) {
    let kubeconfig = folder.join("kubeconfig");
    let child = Command::new(env!("CARGO_BIN_EXE_modeldeck"))
        .args(["cluster", "--kubeconfig"])
        .arg(&kubeconfig)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut served = Served(child);
    let mut line = String::new();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(served.0.stdout.take().unwrap()), &mut line).unwrap();
    assert!(line.starts_with("serving https://127.0.0.1:"), "{line}");
    (served, kubeconfig)
}

#[test]
fn kubectl_works_on_the_embedded_api_as_on_a_real_one() {
    let Some(kubectl) = kubectl() else {
        eprintln!("SKIPPED: there is no kubectl here that is known");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let (_served, kubeconfig) = embedded(folder.path());
    let found = transcript(&kubectl, &kubeconfig, "kubectl-transcript");
    compare(&found, &std::fs::read_to_string(data("transcript.txt")).unwrap());
}

#[test]
fn kubectl_explain_is_refused_politely() {
    let Some(kubectl) = kubectl() else {
        eprintln!("SKIPPED: there is no kubectl here that is known");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let (_served, kubeconfig) = embedded(folder.path());
    let done = Command::new(kubectl).args(["explain", "pods"]).env("HOME", folder.path()).env("KUBECONFIG", kubeconfig).output().unwrap();
    let told = String::from_utf8_lossy(&done.stderr);
    assert!(!done.status.success() && told.contains("not found in OpenAPI schema"), "{told}");
}

#[test]
fn the_real_api_gives_the_transcript() {
    let (Ok(kubeconfig), Some(kubectl), Ok(_)) = (std::env::var("KUBECONFIG"), kubectl(), std::env::var("MODELDECK_CLUSTER_SERVER")) else {
        eprintln!("SKIPPED: no real API server (run this under tests/cluster/run --machinery)");
        return;
    };
    let found = transcript(&kubectl, Path::new(&kubeconfig), "kubectl-transcript");
    if std::env::var_os("MODELDECK_RECORD").is_some() {
        std::fs::write(data("transcript.txt"), &found).unwrap();
        return;
    }
    compare(&found, &std::fs::read_to_string(data("transcript.txt")).unwrap());
}
