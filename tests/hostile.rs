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

/// Values that nobody would know for secrets by their shape alone, each with the place where it was planted.
struct Planted(Vec<(&'static str, String)>);

impl Planted {
    fn at(&mut self, place: &'static str) -> String {
        let value = format!("zQ{}vB7nX4kT9mR2wLp6", self.0.len() + 10);
        self.0.push((place, value.clone()));
        value
    }
}

/// A cluster whose people write secrets wherever there is room for text.
fn write_careless(dir: &Path) -> Planted {
    let mut s = Planted(Vec::new());
    let pod = |name: &str, labels: &str, more: &str, status: &str| {
        format!(
            "---\napiVersion: v1\nkind: Pod\nmetadata: {{name: {name}, namespace: s, uid: u-{name}, labels: {{{labels}}}}}\n\
             spec: {{nodeName: n1, {more} containers: [{{name: vllm, image: 'vllm/vllm-openai:v0.19.0', ports: [{{name: http, containerPort: 8000}}]}}]}}\n\
             status: {{{status}}}\n"
        )
    };
    let ready = "phase: Running, conditions: [{type: ContainersReady, status: 'True'}, {type: Ready, status: 'True'}], \
                 containerStatuses: [{name: vllm, ready: true, state: {running: {startedAt: '2026-11-12T08:00:00Z'}}}]";
    let mut out = String::new();
    let labels = format!("app: odd, token: {}, extra: hf_{}AbCdEfGhIjKlMn", s.at("label"), s.at("label by shape"));
    out += &pod("a", &labels, "", ready);
    let failed =
        format!("phase: Failed, reason: 'Evicted password={}', message: 'x-api-key: {}'", s.at("status.reason"), s.at("status.message"));
    out += &pod("b", "app: x", "", &failed);
    let gate = s.at("readiness gate");
    let gated = "phase: Running, conditions: [{type: ContainersReady, status: 'True'}, {type: Ready, status: 'False'}]";
    out += &pod("c", "app: x", &format!("readinessGates: [{{conditionType: 'x.io/token={gate}'}}],"), gated);
    let waiting = format!(
        "phase: Pending, conditions: [{{type: Ready, status: 'False', reason: 'token={}'}}], containerStatuses: [{{name: vllm, state: \
         {{waiting: {{reason: 'ImagePullBackOff token={}', message: 'secret \"{}\" is wrong'}}}}, lastState: {{terminated: {{exitCode: 1, \
         reason: 'Error api_key={}'}}}}}}]",
        s.at("condition reason"),
        s.at("waiting reason"),
        s.at("waiting message"),
        s.at("termination reason")
    );
    out += &pod("d", "app: x", "", &waiting);
    out += &format!(
        "---\napiVersion: v1\nkind: Service\nmetadata: {{name: x, namespace: s}}\nspec: {{selector: {{app: odd, api-key: {}}}, ports: [{{port: 8000}}]}}\n\
         ---\napiVersion: v1\nkind: Event\nmetadata: {{name: e, namespace: s}}\ninvolvedObject: {{kind: Pod, name: d, namespace: s}}\n\
         reason: 'Failed token={}'\nmessage: 'accountKey \"{}\"'\ntype: Warning\nlastTimestamp: '2026-11-12T09:59:00Z'\n",
        s.at("selector"),
        s.at("event reason"),
        s.at("event message")
    );
    out += &format!(
        "---\napiVersion: inference.networking.k8s.io/v1\nkind: InferencePool\nmetadata: {{name: p, namespace: s}}\n\
         spec: {{selector: {{matchLabels: {{app: odd, x/token: {}}}}}, targetPorts: [{{number: 8000}}]}}\n",
        s.at("pool selector")
    );
    fs::write(dir.join("objects.yaml"), out).unwrap();
    let http = format!(
        "responses:\n\
         - {{target: pod/s/a, port: 8000, method: GET, path: '/is_sleeping?api_key={}', status: 200, body: '{{\"is_sleeping\":true}}', at: '2026-11-12T10:00:00Z'}}\n\
         - {{target: pod/s/a, port: 8000, method: GET, path: /version, status: 200, body: '{{\"version\":\"0.19.0 token={}\"}}', at: '2026-11-12T10:00:00Z'}}\n\
         - {{target: pod/s/a, port: 8000, method: GET, path: /health, status: 503, body: '{{\"detail\":\"password {}; no\"}}', at: '2026-11-12T10:00:00Z'}}\n\
         - {{target: pod/s/a, port: 8000, method: GET, path: '/v1/models?token={}', error: 'reset api_key={}', at: '2026-11-12T10:00:00Z'}}\n",
        s.at("query"),
        s.at("version"),
        s.at("body"),
        s.at("query of a failure"),
        s.at("failure")
    );
    fs::write(dir.join("http.yaml"), http).unwrap();
    let page = format!(
        "vllm:num_requests_running{{engine=\"0\"}} 1\nvllm:num_requests_waiting{{engine=\"0\"}} 0\n\
         vllm:kv_cache_usage_perc{{engine=\"0\"}} 0\n\
         vllm:num_requests_running{{engine=\"1\",api_key=\"{}\",a=\"\u{e000}a\u{301}\u{301}\u{301}\u{301}\"}} garbage\n",
        s.at("metrics line")
    );
    fs::write(dir.join("metrics-s_a@20261112T100000Z.txt"), page).unwrap();
    s
}

#[test]
fn secrets_planted_in_labels_reasons_queries_and_bodies_are_not_printed() {
    let dir = tempfile::tempdir().unwrap();
    let planted = write_careless(dir.path());
    let mut leaked = Vec::new();
    let mut all = String::new();
    for command in ["status", "explain", "findings"] {
        for format in ["table", "wide", "json", "yaml"] {
            let output =
                Command::new(env!("CARGO_BIN_EXE_modeldeck")).args([command, "-o", format, "--from"]).arg(dir.path()).output().unwrap();
            assert_eq!(output.status.code(), Some(0));
            let said = format!("{}{}", String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
            for (place, secret) in &planted.0 {
                if let Some(at) = said.find(secret.as_str()) {
                    let around: String = said[..at].chars().rev().take(60).collect::<Vec<_>>().into_iter().rev().collect();
                    leaked.push(format!("{command} -o {format}: {place}: …{around}"));
                }
            }
            assert!(!said.contains('\u{e000}') && !said.contains("\u{301}\u{301}\u{301}"), "{command} -o {format}");
            all.push_str(&said);
        }
    }
    assert!(leaked.is_empty(), "{leaked:#?}");
    // The places are shown: else the test proves nothing.
    for shown in ["[redacted]", "is_sleeping", "x.io/token", "Evicted", "ImagePullBackOff", "0.19.0", "garbage"] {
        assert!(all.contains(shown), "{shown} is not shown");
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
