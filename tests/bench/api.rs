//! The API with 10,000 pods and 2,000 nodes: memory, the time of a paged LIST, and the fan-out of a watch to 20 watchers at 500 changes
//! a second.
//!
//!   cargo bench --bench api                                   the embedded API
//!   tests/cluster/run --machinery cargo bench --bench api     both, one after the other, in one run
//!
//! `MODELDECK_BENCH_PODS` and `MODELDECK_BENCH_SECONDS` make it smaller.

#![allow(clippy::unwrap_used, clippy::print_stdout, missing_docs)]

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use futures::StreamExt;
use http::Request;
use http_body_util::BodyExt;
use kube::Client;
use kube::client::{Body, ConfigExt};
use serde_json::{Value, json};

const WATCHERS: usize = 20;
const CHANGES: u64 = 500;

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|v| v.parse().ok()).unwrap_or(default)
}

fn pod(n: u64) -> Value {
    let env: Vec<Value> =
        (0..20).map(|e| json!({"name": format!("SETTING_{e}"), "value": format!("value-{e}-of-a-serving-engine")})).collect();
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": format!("engine-{n:05}"), "namespace": "bench",
        "labels": {"app": format!("model-{}", n % 200), "role": "decode"}},
        "spec": {"nodeName": format!("node-{:04}", n % 2000), "containers": [{"name": "engine", "image": "vllm/vllm-openai:v0.11.0", "env": env,
            "args": ["--model", "meta-llama/Llama-3.3-70B-Instruct", "--tensor-parallel-size", "8", "--max-model-len", "131072"],
            "ports": [{"containerPort": 8000}], "resources": {"limits": {"nvidia.com/gpu": "8"}}}]}})
}

fn node(n: u64) -> Value {
    json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": format!("node-{n:04}"), "labels": {"kubernetes.io/hostname": format!("node-{n:04}")}},
        "status": {"capacity": {"cpu": "128", "memory": "2Ti", "nvidia.com/gpu": "8", "pods": "110"}}})
}

/// The objects as a file of JSON lines, as both sides load them.
fn file(pods: u64) -> PathBuf {
    let path = std::env::temp_dir().join(format!("modeldeck-bench-{}.jsonl", std::process::id()));
    let mut out = std::io::BufWriter::new(std::fs::File::create(&path).unwrap());
    for object in (0..2000.min(pods)).map(node).chain((0..pods).map(pod)) {
        writeln!(out, "{object}").unwrap();
    }
    path
}

struct Side {
    name: &'static str,
    client: Client,
    pid: u32,
    _child: Option<Child>,
}

impl Side {
    fn of(name: &'static str, url: &str, token: &str, pid: u32, child: Option<Child>) -> Self {
        let mut config = kube::Config::new(url.parse().unwrap());
        config.accept_invalid_certs = true;
        let https = config.rustls_https_connector().unwrap();
        let hyper = hyper_util::client::legacy::Client::builder(hyper_util::rt::TokioExecutor::new()).build(https);
        let header = http::HeaderValue::from_str(&format!("Bearer {token}")).unwrap();
        let stack = tower::ServiceBuilder::new()
            .layer(config.base_uri_layer())
            .map_request(move |mut request: Request<Body>| {
                request.headers_mut().insert("authorization", header.clone());
                request
            })
            .service(hyper);
        Self { name, client: Client::new(stack, "bench"), pid, _child: child }
    }

    fn embedded() -> Self {
        let path = std::env::temp_dir().join(format!("modeldeck-bench-{}.kubeconfig", std::process::id()));
        let mut child = Command::new(env!("CARGO_BIN_EXE_modeldeck"))
            .args(["cluster", "--insecure", "--kubeconfig"])
            .arg(&path)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        std::io::BufRead::read_line(&mut std::io::BufReader::new(child.stdout.take().unwrap()), &mut line).unwrap();
        let config: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
        let url = config["clusters"][0]["cluster"]["server"].as_str().unwrap().to_owned();
        let token = config["users"][0]["user"]["token"].as_str().unwrap().to_owned();
        let pid = child.id();
        Self::of("embedded", &url, &token, pid, Some(child))
    }

    fn real() -> Option<Self> {
        let url = std::env::var("MODELDECK_CLUSTER_SERVER").ok()?;
        let found = Command::new("pgrep").args(["-o", "kube-apiserver"]).output().ok()?;
        let pid = String::from_utf8(found.stdout).ok()?.trim().parse().ok()?;
        Some(Self::of("kube-apiserver", &url, "admin-token", pid, None))
    }

    fn memory(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid)).unwrap();
        let line = status.lines().find(|l| l.starts_with("VmRSS")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() / 1024
    }

    async fn ask(&self, method: &str, path: &str, kind: &str, body: Vec<u8>) -> Vec<u8> {
        let request = Request::builder().method(method).uri(path).header("content-type", kind).body(Body::from(body)).unwrap();
        self.client.send(request).await.unwrap().into_body().collect().await.unwrap().to_bytes().to_vec()
    }

    async fn load(&self, file: &Path) -> f64 {
        let begun = Instant::now();
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "bench"}});
        self.ask("POST", "/api/v1/namespaces", "application/json", namespace.to_string().into_bytes()).await;
        loop {
            let found = self.ask("GET", "/api/v1/namespaces/bench/serviceaccounts/default", "application/json", Vec::new()).await;
            if found.starts_with(b"{\"apiVersion\":\"v1\",\"kind\":\"ServiceAccount\"")
                || found.windows(16).any(|w| w == b"\"ServiceAccount\"")
            {
                break;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        let text = std::fs::read_to_string(file).unwrap();
        futures::stream::iter(text.lines())
            .for_each_concurrent(32, |line| async move {
                let path = if line.contains("\"kind\":\"Node\"") { "/api/v1/nodes" } else { "/api/v1/namespaces/bench/pods" };
                self.ask("POST", path, "application/json", line.as_bytes().to_vec()).await;
            })
            .await;
        begun.elapsed().as_secs_f64()
    }

    async fn list(&self, pods: u64) -> (f64, usize) {
        let begun = Instant::now();
        let (mut next, mut bytes, mut items) = (String::new(), 0, 0);
        loop {
            let path = format!("/api/v1/namespaces/bench/pods?limit=500&continue={next}");
            let page = self.ask("GET", &path, "application/json", Vec::new()).await;
            bytes += page.len();
            let page: Value = serde_json::from_slice(&page).unwrap();
            items += page["items"].as_array().unwrap().len();
            match page.pointer("/metadata/continue").and_then(Value::as_str) {
                Some(token) if !token.is_empty() => token.clone_into(&mut next),
                _ => break,
            }
        }
        assert_eq!(items as u64, pods);
        (begun.elapsed().as_secs_f64(), bytes)
    }

    /// Changes at a steady rate; gives how many events all watchers got and the longest that one waited for a change.
    async fn fan_out(&self, pods: u64, seconds: u64) -> (u64, u64, f64) {
        let told = Arc::new(AtomicU64::new(0));
        let longest = Arc::new(AtomicU64::new(0));
        let again = Arc::new(AtomicU64::new(0));
        let begun = Instant::now();
        let mut watchers = Vec::new();
        for _ in 0..WATCHERS {
            let newest: Value =
                serde_json::from_slice(&self.ask("GET", "/api/v1/namespaces/bench/pods?limit=1", "application/json", Vec::new()).await)
                    .unwrap();
            let version = newest["metadata"]["resourceVersion"].as_str().unwrap().to_owned();
            let (told, longest, again, client) = (told.clone(), longest.clone(), again.clone(), self.client.clone());
            watchers.push(tokio::spawn(async move {
                let mut version = version;
                // A server may end a watch whose client reads too slowly: the client goes on from what it saw.
                loop {
                    let path = format!("/api/v1/namespaces/bench/pods?watch=true&resourceVersion={version}");
                    let request = Request::builder().uri(path).body(Body::empty()).unwrap();
                    let mut body = client.send(request).await.unwrap().into_body();
                    let mut buffer: Vec<u8> = Vec::new();
                    while let Some(Ok(frame)) = body.frame().await {
                        buffer.extend_from_slice(frame.data_ref().unwrap());
                        let mut from = 0;
                        while let Some(end) = buffer[from..].iter().position(|b| *b == b'\n').map(|n| n + from) {
                            let text = String::from_utf8_lossy(&buffer[from..end]);
                            from = end + 1;
                            let between = |mark: &str| text.split(mark).nth(1).and_then(|t| t.split('"').next()).map(str::to_owned);
                            let Some(sent) = between("\"bench-at\":\"").and_then(|t| t.parse::<u64>().ok()) else { continue };
                            if let Some(seen) = between("\"resourceVersion\":\"") {
                                version = seen;
                            }
                            told.fetch_add(1, Ordering::Relaxed);
                            longest.fetch_max(begun.elapsed().as_micros() as u64 - sent, Ordering::Relaxed);
                        }
                        buffer.drain(..from);
                    }
                    again.fetch_add(1, Ordering::Relaxed);
                }
            }));
        }
        let total = CHANGES * seconds;
        let mut tick = tokio::time::interval(Duration::from_micros(1_000_000 / CHANGES));
        let mut open = futures::stream::FuturesUnordered::new();
        let start = Instant::now();
        for n in 0..total {
            tick.tick().await;
            let patch = json!({"metadata": {"annotations": {"bench-at": begun.elapsed().as_micros().to_string()}}});
            let path = format!("/api/v1/namespaces/bench/pods/engine-{:05}", n % pods);
            open.push(async move { self.ask("PATCH", &path, "application/merge-patch+json", patch.to_string().into_bytes()).await });
            while open.len() > 64 {
                open.next().await;
            }
        }
        while open.next().await.is_some() {}
        let rate = total as f64 / start.elapsed().as_secs_f64();
        for _ in 0..600 {
            if told.load(Ordering::Relaxed) >= total * WATCHERS as u64 {
                break;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        if again.load(Ordering::Relaxed) > 0 {
            println!("{}: {} watches were ended by the server and taken up again", self.name, again.load(Ordering::Relaxed));
        }
        watchers.iter().for_each(tokio::task::JoinHandle::abort);
        assert_eq!(told.load(Ordering::Relaxed), total * WATCHERS as u64, "events were lost");
        (rate as u64, told.load(Ordering::Relaxed), longest.load(Ordering::Relaxed) as f64 / 1000.0)
    }
}

impl Drop for Side {
    fn drop(&mut self) {
        if let Some(child) = &mut self._child {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn main() {
    let (pods, seconds) = (setting("MODELDECK_BENCH_PODS", 10_000), setting("MODELDECK_BENCH_SECONDS", 10));
    let file = file(pods);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    println!("{pods} pods, 2,000 nodes, {WATCHERS} watchers, {CHANGES} changes a second for {seconds} s");
    println!("| | load | memory | after the changes | LIST in pages of 500 | bytes | changes a second | events | longest wait |");
    runtime.block_on(async {
        for side in [Some(Side::embedded()), Side::real()].into_iter().flatten() {
            let load = side.load(&file).await;
            let memory = side.memory();
            let (first, bytes) = side.list(pods).await;
            let (second, _) = side.list(pods).await;
            let list = first.min(second);
            let (rate, events, longest) = side.fan_out(pods, seconds).await;
            println!(
                "| {} | {load:.1} s | {memory} MiB | {} MiB | {list:.2} s | {:.1} MB | {rate} | {events} | {longest:.0} ms |",
                side.name,
                side.memory(),
                bytes as f64 / 1e6
            );
        }
    });
    let _ = std::fs::remove_file(file);
}
