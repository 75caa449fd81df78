//! Hostile clients of the embedded API: each gets a Status error as Kubernetes gives it or its connection closed, nobody else is
//! disturbed, and memory stays bounded.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use proptest::prelude::*;
use rstest::rstest;
use serde_json::Value;

struct Served {
    child: Child,
    address: String,
    token: String,
    _folder: tempfile::TempDir,
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Served {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("kubeconfig");
        let mut child = Command::new(env!("CARGO_BIN_EXE_modeldeck"))
            .args(["cluster", "--insecure", "--kubeconfig"])
            .arg(&file)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        std::io::BufRead::read_line(&mut std::io::BufReader::new(child.stdout.take().unwrap()), &mut line).unwrap();
        let config: Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
        let address = config["clusters"][0]["cluster"]["server"].as_str().unwrap().trim_start_matches("http://").to_owned();
        Self { child, address, token: config["users"][0]["user"]["token"].as_str().unwrap().to_owned(), _folder: folder }
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(15))).unwrap();
        stream
    }

    /// Sends bytes and gives code and body; `None` when the connection is closed without an answer.
    fn raw(&self, bytes: &[u8]) -> Option<(u16, Value)> {
        let mut stream = self.connect();
        // The server may close before all is sent.
        let _ = stream.write_all(bytes);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        let text = String::from_utf8_lossy(&answer).into_owned();
        let code = text.strip_prefix("HTTP/1.1 ")?.get(..3)?.parse().ok()?;
        let body = text.split_once("\r\n\r\n").map_or("", |(_, body)| body);
        Some((code, serde_json::from_str(body).unwrap_or(Value::String(body.to_owned()))))
    }

    fn post(&self, content_type: &str, body: &[u8]) -> Option<(u16, Value)> {
        let head = format!(
            "POST /api/v1/namespaces/default/configmaps HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {}\r\nConnection: close\r\nContent-Type: {content_type}\r\nContent-Length: {}\r\n\r\n",
            self.token,
            body.len()
        );
        self.raw(&[head.as_bytes(), body].concat())
    }

    fn is_well(&self) {
        let (code, _) = self.raw(b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").unwrap();
        assert_eq!(code, 200);
    }

    /// Resident memory in KiB.
    fn memory(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find(|l| l.starts_with("VmRSS")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    }
}

fn nested(depth: usize) -> Vec<u8> {
    let mut body = br#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":"#.to_vec();
    body.extend(std::iter::repeat_n(b'[', depth));
    body
}

#[rstest]
#[case::not_json("application/json", b"{".to_vec(), 400, "BadRequest")]
#[case::not_utf8("application/json", b"{\"a\":\"\xff\xfe\"}".to_vec(), 400, "BadRequest")]
#[case::a_list("application/json", b"[1,2]".to_vec(), 400, "BadRequest")]
#[case::deep("application/json", nested(100_000), 400, "BadRequest")]
#[case::deep_yaml("application/yaml", nested(100_000), 400, "BadRequest")]
#[case::billion_laughs("application/yaml", b"a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: &f [*e,*e,*e,*e,*e,*e,*e,*e,*e]\ng: &g [*f,*f,*f,*f,*f,*f,*f,*f,*f]\nh: [*g,*g,*g,*g,*g,*g,*g,*g,*g]\n".to_vec(), 400, "BadRequest")]
#[case::protobuf("application/vnd.kubernetes.protobuf", b"k8s\0\x0a\xff\xff\xff\xff\xff\xff\xff\xff\x7f".to_vec(), 400, "BadRequest")]
#[case::html("text/html", b"<p>".to_vec(), 415, "UnsupportedMediaType")]
#[case::too_large("application/json", vec![b' '; 4 * 1024 * 1024], 413, "RequestEntityTooLarge")]
fn bodies_that_are_none_get_a_status(#[case] content_type: &str, #[case] body: Vec<u8>, #[case] code: u16, #[case] reason: &str) {
    let served = Served::new();
    let (found, status) = served.post(content_type, &body).expect("an answer");
    assert_eq!((found, status["kind"].as_str(), status["reason"].as_str()), (code, Some("Status"), Some(reason)), "{status}");
    served.is_well();
}

#[test]
fn a_body_without_end_is_refused_and_not_kept() {
    let served = Served::new();
    let before = served.memory();
    let mut stream = served.connect();
    let head = format!(
        "POST /api/v1/namespaces/default/configmaps HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {}\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n",
        served.token
    );
    stream.write_all(head.as_bytes()).unwrap();
    let chunk = [b"10000\r\n".as_slice(), &vec![b' '; 65536], b"\r\n"].concat();
    // 64 MB: closed long before, or at least not held.
    for _ in 0..1024 {
        if stream.write_all(&chunk).is_err() {
            break;
        }
    }
    assert!(served.memory() < before + 32 * 1024, "{} KiB, before {before} KiB", served.memory());
    served.is_well();
}

#[test]
fn headers_without_end_are_refused() {
    let served = Served::new();
    let mut stream = served.connect();
    stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: x\r\n").unwrap();
    let line = format!("X-Long: {}\r\n", "y".repeat(1000));
    let mut sent = 0;
    while sent < 10_000 && stream.write_all(line.as_bytes()).is_ok() {
        sent += 1;
    }
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    let text = String::from_utf8_lossy(&answer);
    assert!(text.is_empty() || text.starts_with("HTTP/1.1 4"), "{text}");
    served.is_well();
}

#[test]
fn a_thousand_idle_watches_cost_little_and_all_are_told() {
    let served = Served::new();
    let before = served.memory();
    let mut watches: Vec<TcpStream> = (0..1000)
        .map(|_| {
            let mut stream = served.connect();
            let ask = format!(
                "GET /api/v1/namespaces/default/secrets?watch=true HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {}\r\n\r\n",
                served.token
            );
            stream.write_all(ask.as_bytes()).unwrap();
            stream
        })
        .collect();
    for watch in &mut watches {
        let mut head = [0u8; 15];
        watch.read_exact(&mut head).unwrap();
        assert_eq!(&head, b"HTTP/1.1 200 OK");
    }
    let grown = served.memory().saturating_sub(before);
    assert!(grown < 100 * 1024, "{grown} KiB for 1,000 watches");
    let body = br#"{"apiVersion":"v1","kind":"Secret","metadata":{"name":"told"}}"#;
    let head = format!(
        "POST /api/v1/namespaces/default/secrets HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {}\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        served.token,
        body.len()
    );
    assert_eq!(served.raw(&[head.as_bytes(), body].concat()).unwrap().0, 201);
    for watch in &mut watches {
        let mut seen = String::new();
        while !seen.contains("\"told\"") {
            let mut buffer = [0u8; 4096];
            let read = watch.read(&mut buffer).unwrap();
            assert!(read > 0, "the watch ended");
            seen.push_str(&String::from_utf8_lossy(&buffer[..read]));
        }
    }
    served.is_well();
}

#[test]
fn any_request_is_answered_or_closed() {
    let served = Served::new();
    let mut runner =
        proptest::test_runner::TestRunner::new(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() });
    let bytes = (proptest::collection::vec(any::<u8>(), 0..400), "[A-Z]{1,8}", "/[!-~]{0,60}", "[ -~]{0,80}");
    runner
        .run(&bytes, |(junk, method, path, query)| {
            let head = format!("{method} {path}?{query} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {}\r\nConnection: close\r\nContent-Length: {}\r\n\r\n", served.token, junk.len());
            served.raw(&[head.as_bytes(), &junk].concat());
            served.raw(&junk.iter().copied().chain(*b"\r\n\r\n").collect::<Vec<u8>>());
            served.is_well();
            Ok(())
        })
        .unwrap();
}
