//! Real CRDs and real objects on the embedded API: every CRD installs, and every object that a real API server takes is taken and read
//! back the same in every field that its schema knows.
//!
//! `tests/data/samples/crds.jsonl.gz` are 95 CRDs of serving systems (without descriptions), `objects.jsonl.gz` objects of clusters,
//! `golden.jsonl.gz` what a real server of 1.36 made of them; recorded by `MODELDECK_RECORD=1 tests/cluster/run --machinery cargo test
//! --test samples`.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stderr, missing_docs)]

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Write};
use std::path::PathBuf;
use std::time::Duration;

use http::Request;
use http_body_util::BodyExt;
use kube::Client;
use kube::client::{Body, ConfigExt};
use modeldeck::simulator::api::auth::User;
use modeldeck::simulator::api::cluster::{Cluster, Options};
use serde_json::{Value, json};

fn path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data/samples").join(name)
}

fn lines(name: &str) -> Vec<Value> {
    let mut text = String::new();
    flate2::read::GzDecoder::new(std::fs::File::open(path(name)).unwrap()).read_to_string(&mut text).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

struct Api(Client);

impl Api {
    fn embedded() -> Self {
        let cluster = Cluster::open(Options::default()).as_user(User::known("admin", &["system:masters"]));
        Self(Client::new(cluster, "default"))
    }

    fn real() -> Option<Self> {
        let mut config = kube::Config::new(std::env::var("MODELDECK_CLUSTER_SERVER").ok()?.parse().unwrap());
        config.accept_invalid_certs = true;
        let https = config.rustls_https_connector().unwrap();
        let hyper = hyper_util::client::legacy::Client::builder(hyper_util::rt::TokioExecutor::new()).build(https);
        Some(Self(Client::new(tower::ServiceBuilder::new().layer(config.base_uri_layer()).service(hyper), "default")))
    }

    async fn ask(&self, method: &str, path: &str, body: &Value) -> (u16, Value) {
        let bytes = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
        let mut request = Request::builder().method(method).uri(path).header("content-type", "application/json");
        if std::env::var_os("MODELDECK_CLUSTER_SERVER").is_some() {
            request = request.header("authorization", "Bearer admin-token");
        }
        let answer = self.0.send(request.body(Body::from(bytes)).unwrap()).await.unwrap();
        let code = answer.status().as_u16();
        let bytes = answer.into_body().collect().await.unwrap().to_bytes();
        (code, serde_json::from_slice(&bytes).unwrap_or(Value::Null))
    }

    async fn until(&self, path: &str, ready: impl Fn(u16, &Value) -> bool) -> bool {
        for _ in 0..400 {
            let (code, object) = self.ask("GET", path, &Value::Null).await;
            if ready(code, &object) {
                return true;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        false
    }

    /// Installs all CRDs; gives the plural names and scopes by apiVersion and kind.
    async fn install(&self) -> usize {
        let all = lines("crds.jsonl.gz");
        let home = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        for crd in &all {
            let (code, answer) = self.ask("POST", home, crd).await;
            assert!(code == 201 || code == 409, "{}: {answer}", crd["metadata"]["name"]);
        }
        for crd in &all {
            let name = crd["metadata"]["name"].as_str().unwrap();
            let ready = |_: u16, crd: &Value| {
                let conditions = crd.pointer("/status/conditions").and_then(Value::as_array).cloned().unwrap_or_default();
                conditions.iter().any(|c| c["type"] == "Established" && c["status"] == "True")
            };
            assert!(self.until(&format!("{home}/{name}"), ready).await, "{name} is not established");
        }
        all.len()
    }

    /// Where objects of a kind are.
    async fn resource(&self, known: &mut BTreeMap<String, Value>, api_version: &str, kind: &str) -> Option<(String, bool)> {
        let base = if api_version.contains('/') { format!("/apis/{api_version}") } else { format!("/api/{api_version}") };
        if !known.contains_key(&base) {
            let list = self.ask("GET", &base, &Value::Null).await.1;
            known.insert(base.clone(), list);
        }
        let found =
            known[&base]["resources"].as_array()?.iter().find(|r| r["kind"] == kind && !r["name"].as_str().unwrap().contains('/'))?;
        Some((format!("{base} {}", found["name"].as_str()?), found["namespaced"] == true))
    }

    async fn namespace(&self, name: &str) {
        self.ask("POST", "/api/v1/namespaces", &json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})).await;
        self.until(&format!("/api/v1/namespaces/{name}/serviceaccounts/default"), |code, _| code == 200).await;
    }

    /// Creates every object, reads it back and deletes it.
    async fn objects(&self) -> Vec<Value> {
        let (mut known, mut homes) = (BTreeMap::new(), BTreeSet::new());
        let mut told = Vec::new();
        for sample in lines("objects.jsonl.gz") {
            let (file, object) = (&sample["file"], &sample["object"]);
            let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
            let found = self.resource(&mut known, &text("/apiVersion"), &text("/kind")).await;
            let Some((place, namespaced)) = found else {
                told.push(json!({"file": file, "code": 404}));
                continue;
            };
            let (base, plural) = place.split_once(' ').unwrap();
            let mut object = object.clone();
            let mut home = base.to_owned();
            if namespaced {
                let namespace = Some(text("/metadata/namespace")).filter(|n| !n.is_empty()).unwrap_or_else(|| "samples".into());
                if homes.insert(namespace.clone()) {
                    self.namespace(&namespace).await;
                }
                object["metadata"]["namespace"] = namespace.clone().into();
                home = format!("{base}/namespaces/{namespace}");
                for pointer in ["/spec/serviceAccountName", "/spec/serviceAccount"] {
                    if let Some(account) = object.pointer(pointer).and_then(Value::as_str).filter(|_| text("/kind") == "Pod") {
                        let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": account}});
                        self.ask("POST", &format!("/api/v1/namespaces/{namespace}/serviceaccounts"), &account).await;
                    }
                }
            } else if let Some(metadata) = object["metadata"].as_object_mut() {
                metadata.remove("namespace");
            }
            let (code, answer) = self.ask("POST", &format!("{home}/{plural}?fieldValidation=Ignore"), &object).await;
            let mut entry = json!({"file": file, "code": code});
            if code == 201 {
                let name = answer["metadata"]["name"].as_str().unwrap();
                let mut read = self.ask("GET", &format!("{home}/{plural}/{name}"), &Value::Null).await.1;
                clean(&mut read);
                entry["object"] = read;
                self.ask("DELETE", &format!("{home}/{plural}/{name}?gracePeriodSeconds=0"), &Value::Null).await;
            } else {
                entry["why"] = answer["message"].clone();
            }
            told.push(entry);
        }
        told
    }
}

/// Without what no two servers give alike, or one server at two times: the aggregator writes an APIService's status a moment later.
fn clean(object: &mut Value) {
    if object["kind"] == "APIService"
        && let Some(fields) = object.as_object_mut()
    {
        fields.remove("status");
    }
    if let Some(metadata) = object["metadata"].as_object_mut() {
        for field in ["uid", "resourceVersion", "creationTimestamp", "managedFields", "generation"] {
            metadata.remove(field);
        }
    }
    for pointer in ["/spec/clusterIP", "/spec/clusterIPs/0"] {
        if let Some(address) = object.pointer_mut(pointer).filter(|a| *a != "None") {
            *address = "<address>".into();
        }
    }
    for condition in object.pointer_mut("/status/conditions").and_then(Value::as_array_mut).into_iter().flatten() {
        condition["lastTransitionTime"] = "<time>".into();
    }
    let text = object.to_string();
    let names = regex::Regex::new("kube-api-access-[a-z0-9]{5}").unwrap();
    *object = serde_json::from_str(&names.replace_all(&text, "kube-api-access")).unwrap();
}

/// What of `wanted` that was also sent is not in `found`.
fn lacking(path: &str, sent: &Value, wanted: &Value, found: &Value, lines: &mut Vec<String>) {
    match (sent, wanted, found) {
        (Value::Object(sent), Value::Object(wanted), Value::Object(found)) => {
            for (name, value) in sent {
                if let Some(kept) = wanted.get(name) {
                    lacking(&format!("{path}.{name}"), value, kept, found.get(name).unwrap_or(&Value::Null), lines);
                }
            }
        }
        (Value::Array(sent), Value::Array(wanted), Value::Array(found)) if sent.len() == wanted.len() && wanted.len() == found.len() => {
            for (n, value) in sent.iter().enumerate() {
                lacking(&format!("{path}[{n}]"), value, &wanted[n], &found[n], lines);
            }
        }
        (_, wanted, found) if wanted != found => lines.push(format!("{path}: should be {wanted}, is {found}")),
        _ => {}
    }
}

fn differences(path: &str, wanted: &Value, found: &Value, lines: &mut Vec<String>) {
    match (wanted, found) {
        (Value::Object(a), Value::Object(b)) => {
            let names: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
            for name in names {
                let of = |map: &serde_json::Map<String, Value>| map.get(name).cloned().unwrap_or(Value::Null);
                differences(&format!("{path}.{name}"), &of(a), &of(b), lines);
            }
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            for (n, (x, y)) in a.iter().zip(b).enumerate() {
                differences(&format!("{path}[{n}]"), x, y, lines);
            }
        }
        (a, b) if a != b => lines.push(format!("{path}: should be {a}, is {b}")),
        _ => {}
    }
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

fn compare(told: &[Value]) {
    let golden = lines("golden.jsonl.gz");
    let sent = lines("objects.jsonl.gz");
    assert_eq!(golden.len(), told.len());
    let (mut wrong, mut taken) = (Vec::new(), 0);
    for ((wanted, found), sent) in golden.iter().zip(told).zip(&sent) {
        let file = wanted["file"].as_str().unwrap();
        if wanted["code"] != 201 {
            continue;
        }
        taken += 1;
        if found["code"] != 201 {
            wrong.push(format!("{file}: {} {}", found["code"], found["why"]));
            continue;
        }
        let group = sent.pointer("/object/apiVersion").and_then(Value::as_str).unwrap();
        let builtin = !group.contains('.') || group.split('/').next().unwrap().ends_with(".k8s.io") && !group.contains("x-k8s.io");
        let mut lines = Vec::new();
        let (mut wanted, mut found) = (wanted.clone(), found.clone());
        clean(&mut wanted["object"]);
        clean(&mut found["object"]);
        if builtin && !group.starts_with("gateway") && !group.starts_with("inference") && !group.starts_with("metrics") {
            differences("", &wanted["object"], &found["object"], &mut lines);
        } else {
            lacking("", &sent["object"], &wanted["object"], &found["object"], &mut lines);
        }
        wrong.extend(lines.into_iter().map(|line| format!("{file}: {line}")));
    }
    assert!(taken >= 150, "the real server took only {taken}");
    assert!(wrong.is_empty(), "{} of {taken} objects differ:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn real_crds_and_objects_are_taken_and_read_back() {
    if std::env::var_os("MODELDECK_CLUSTER_SERVER").is_some() {
        return; // The other test's turn: the environment is the real server's.
    }
    let told = runtime().block_on(async {
        let api = Api::embedded();
        assert_eq!(api.install().await, 95);
        api.objects().await
    });
    compare(&told);
}

#[test]
fn the_real_api_gives_the_samples() {
    runtime().block_on(async {
        let Some(api) = Api::real() else {
            eprintln!("SKIPPED: no real API server (run this under tests/cluster/run --machinery)");
            return;
        };
        assert_eq!(api.install().await, 95);
        let told = api.objects().await;
        if std::env::var_os("MODELDECK_RECORD").is_some() {
            let file = std::fs::File::create(path("golden.jsonl.gz")).unwrap();
            let mut out = flate2::GzBuilder::new().mtime(0).write(file, flate2::Compression::best());
            let text: Vec<String> = told.iter().map(ToString::to_string).collect();
            out.write_all(text.join("\n").as_bytes()).unwrap();
            out.finish().unwrap();
            return;
        }
        compare(&told);
    });
}
