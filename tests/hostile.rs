//! A bundle from somebody who means harm, or who was careless: what commands print is harmless and holds no secret.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::Path;
use std::process::Command;

const SECRETS: &[&str] = &[
    "hunter2secret",
    "hf_AbCdEfGhIjKlMnOpQrStUvWxYz012345",
    "sk-live-0123456789abcdefABCDEF0123",
    "c3VwZXJzZWNyZXR2YWx1ZQ",
    "MIIEvQIBADANBgkq",
];

fn write(dir: &Path) {
    let long = "n".repeat(1_000);
    let objects = format!(
        r#"
apiVersion: apps/v1
kind: Deployment
metadata:
  name: "qwen\u001b[2J\u202Ea"
  namespace: "s\u001b]0;owned\u0007"
  annotations:
    kubectl.kubernetes.io/last-applied-configuration: '{{"token":"hunter2secret"}}'
    example.com/api-key: hunter2secret
    note: "Bearer sk-live-0123456789abcdefABCDEF0123"
spec:
  replicas: 2
  selector: {{matchLabels: {{app: a}}}}
  template:
    metadata: {{labels: {{app: a}}}}
    spec: {{containers: [{{name: vllm, image: "vllm/vllm-openai:v0.19.0", args: [--api-key, hunter2secret, --hf-token=hf_AbCdEfGhIjKlMnOpQrStUvWxYz012345]}}]}}
---
apiVersion: v1
kind: Pod
metadata: {{name: "{long}", namespace: s, labels: {{app: a, x: "\u2066x\u200b"}}}}
spec:
  nodeName: "n\u001b[31m"
  containers:
  - name: "vllm\u0000\u009b5n"
    image: vllm/vllm-openai:v0.19.0
    args: ["--api-key=hunter2secret"]
    env: [{{name: HF_TOKEN, value: hf_AbCdEfGhIjKlMnOpQrStUvWxYz012345}}, {{name: PASSWORD, value: hunter2secret}}]
status:
  phase: Pending
  conditions: [{{type: PodScheduled, status: "False", reason: Unschedulable, message: "no\r\nroom \u001b[31m password=hunter2secret \u202Etxt"}}]
---
apiVersion: v1
kind: Secret
metadata: {{name: keys, namespace: s}}
data: {{key: c3VwZXJzZWNyZXR2YWx1ZQ==}}
stringData: {{key: hunter2secret}}
---
apiVersion: example.com/v1
kind: Model
metadata: {{name: m, namespace: s}}
spec: {{token: hunter2secret, url: "https://user:hunter2secret@host/x"}}
---
apiVersion: v1
kind: Config
clusters: []
users: [{{name: a, user: {{token: hunter2secret}}}}]
---
broken: [ hunter2secret
"#
    );
    fs::write(dir.join("objects.yaml"), objects).unwrap();
    fs::write(dir.join("kubeconfig.yaml"), "users: [{user: {token: hunter2secret}}]").unwrap();
    let log = "\u{1b}[1;31mAuthorization: Bearer sk-live-0123456789abcdefABCDEF0123\u{1b}[0m\n--api-key hunter2secret\n\
               -----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkq\n-----END PRIVATE KEY-----\nEngine core died \u{202e}\u{9b}2J\n";
    fs::write(dir.join("log-s_other_vllm@20261112T100000Z.txt"), log).unwrap();
    let answer = "HTTP/1.1 500 x\ncontent-type: text/plain\n\npassword=hunter2secret \u{1b}]52;c;aGk=\u{7}";
    fs::write(dir.join("http-s_other_8000_health@20261112T100000Z.txt"), answer).unwrap();
    let page = "vllm:num_requests_running{model_name=\"\u{1b}[2Jhunter2secret=x\"} 1\nnot a line \u{1b}[2J\n";
    fs::write(dir.join("metrics-s_other_8000@20261112T100000Z.txt"), page).unwrap();
    let http = "responses:\n- {target: \"apiserver\\e[2J\", method: GET, path: \"/api/v1/nodes?token=hunter2secret\", status: 403,\n   \
                body: '{\"message\":\"nodes is forbidden: token=hunter2secret\"}', at: '2026-11-12T10:00:00Z'}\n\
                - {target: apiserver, path: /api/v1/nodes, status: 403, body: '{\"message\":\"forbidden\\u001b[2J: api_key=hunter2secret\"}'}\n";
    fs::write(dir.join("http.yaml"), http).unwrap();
    fs::write(dir.join("durations\u{202e}.yaml"), "- {stage: loading, engine: \"\\e[2J\", seconds: [1]}\n").unwrap();
    fs::write(dir.join("x\u{1b}[31m.txt"), "what is this").unwrap();
}

/// What must not reach a terminal: control characters, and characters that change direction or are not drawn.
fn harmful(c: char) -> bool {
    (c.is_control() && c != '\n') || matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

#[test]
fn nothing_harmful_and_no_secret_is_printed() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path());
    for command in ["status", "explain", "findings"] {
        for format in ["table", "wide", "json", "yaml"] {
            let output =
                Command::new(env!("CARGO_BIN_EXE_modeldeck")).args([command, "-o", format, "--from"]).arg(dir.path()).output().unwrap();
            assert_eq!(output.status.code(), Some(0));
            let (answer, said) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
            assert!(!answer.is_empty() && !said.is_empty());
            // JSON may write a character as an escape: what a reader makes of it counts.
            let decoded = if format == "json" {
                serde_json::from_str::<serde_json::Value>(&answer).map(|json| flat(&json)).unwrap()
            } else {
                String::new()
            };
            for text in [&answer, &said, &decoded] {
                let bad: Vec<char> = text.chars().filter(|c| harmful(*c)).collect();
                assert!(bad.is_empty(), "{command} -o {format}: {bad:?}");
                for secret in SECRETS {
                    let at = text.find(secret).map(|at| text[at.saturating_sub(80)..].chars().take(140).collect::<String>());
                    assert_eq!(at, None, "{command} -o {format}");
                }
            }
        }
    }
}

/// All texts of a document, keys too.
fn flat(value: &serde_json::Value) -> String {
    match value {
        serde_json::Value::String(text) => format!("{text}\n"),
        serde_json::Value::Array(list) => list.iter().map(flat).collect(),
        serde_json::Value::Object(map) => map.iter().map(|(key, inner)| format!("{key}\n{}", flat(inner))).collect(),
        other => format!("{other}\n"),
    }
}
