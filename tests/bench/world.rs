//! Time and memory of a snapshot and of all findings on a generated fleet: 1,000 model services, 10,000 pods, 2,000 nodes.
//!
//! Run with `cargo bench --bench world`; `MODELDECK_BENCH_MODELS=100` makes it smaller. Memory is the process's peak (VmHWM).

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout, missing_docs)]

use std::hint::black_box;
use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};
use modeldeck::diagnose::diagnose;
use modeldeck::engines::exposition::read;
use modeldeck::engines::{MetricPage, wanted};
use modeldeck::model::object::Object;
use modeldeck::world::{Facts, World};
use serde_json::{Value, json};

const PODS_A_MODEL: usize = 10;

fn main() {
    let models: usize = std::env::var("MODELDECK_BENCH_MODELS").ok().and_then(|text| text.parse().ok()).unwrap_or(1000);
    let now: Timestamp = "2026-11-12T10:00:00Z".parse().expect("a time");
    let raw = std::fs::read("tests/data/metrics/vllm-0.33.0.txt").expect("the recorded page; run this in the project's folder");

    let before = peak_kib();
    let docs: Vec<Value> = objects(models);
    let bytes: usize = docs.iter().map(|doc| doc.to_string().len()).sum();
    let read_objects = time(3, || {
        for doc in &docs {
            black_box(Object::read(doc, now).expect("an object"));
        }
    });
    let objects: Vec<Object> = docs.iter().map(|doc| Object::read(doc, now).expect("an object")).collect();
    drop(docs);
    let filter = wanted();
    let one_page = time(20, || {
        black_box(read(&raw, &filter));
    });
    // One engine of ten makes no token between its two pages.
    let text = String::from_utf8_lossy(&raw);
    let lines: Vec<String> = text
        .lines()
        .map(|line| match line.starts_with("vllm:generation_tokens_total") {
            true => format!("{} 1e9", line.rsplit_once(' ').map_or(line, |(series, _)| series)),
            false => line.to_owned(),
        })
        .collect();
    let after = lines.join("\n") + "\n";
    // Each page is read for itself, as a scrape would be: what they take in memory is part of the measurement.
    let pages: Vec<MetricPage> = objects
        .iter()
        .filter(|object| object.kind == "Pod")
        .flat_map(|pod| {
            [-60, 0].map(|offset| MetricPage {
                subject: pod.subject(),
                port: Some(8000),
                path: "/metrics".into(),
                at: now + SignedDuration::from_secs(offset),
                page: read(if offset == 0 && !pod.meta.name.ends_with("00003") { after.as_bytes() } else { &raw }, &filter).into(),
            })
        })
        .collect();
    let facts = Facts { objects, pages, ..Facts::default() };
    let with_facts = peak_kib();

    let mut world = None;
    let build = time(3, || world = Some(World::build(facts.clone(), "bundle", now)));
    let world = world.expect("a world");
    let mut found = 0;
    let rules = time(5, || found = black_box(diagnose(&world)).len());
    let after = peak_kib();

    println!("{models} models, {} pods, {} objects, {:.1} MB of JSON", models * PODS_A_MODEL, world.objects.len(), bytes as f64 / 1e6);
    println!("{:<44}{:>12}", "objects from JSON values to slim form", show(read_objects));
    println!("{:<44}{:>12}", "one vLLM page, wanted families", show(one_page));
    println!("{:<44}{:>12}", "snapshot (two pages a pod)", show(build));
    println!("{:<44}{:>12}   {found} findings   budget 100 ms", "all findings", show(rules));
    println!("{:<44}{:>12}", "engines judged", world.engines.len());
    println!("{:<44}{:>9} MiB", "peak memory before", before / 1024);
    println!("{:<44}{:>9} MiB", "peak memory with all facts", with_facts / 1024);
    println!("{:<44}{:>9} MiB", "peak memory at the end", after / 1024);
}

fn time(rounds: usize, mut work: impl FnMut()) -> Duration {
    let mut times: Vec<Duration> = (0..rounds)
        .map(|_| {
            let start = Instant::now();
            work();
            start.elapsed()
        })
        .collect();
    times.sort();
    times[times.len() / 2]
}

fn show(duration: Duration) -> String {
    format!("{:.2} ms", duration.as_secs_f64() * 1e3)
}

/// Peak resident memory of this process so far, KiB; 0 where the system does not tell.
fn peak_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix("kB")?.trim().parse().ok()).unwrap_or(0)
}

/// A fleet: each model a Deployment with a Service, a slice, an HPA and ten pods; every third behind an InferencePool as well; some
/// pods wait for GPUs, some load, and their labels, images and nodes vary.
fn objects(models: usize) -> Vec<Value> {
    let mut out = Vec::new();
    for n in 0..models * 2 {
        out.push(json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": format!("gpu-{n}"), "labels": {"nvidia.com/gpu.product": "H100"}},
            "status": {"capacity": {"nvidia.com/gpu": "8"}, "allocatable": {"nvidia.com/gpu": "8"},
                "conditions": [{"type": "Ready", "status": "True"}]}}));
    }
    for m in 0..models {
        let (ns, name) = (format!("team-{}", m % 50), format!("model-{m}"));
        let labels = json!({"app": name, "llm-d.ai/inference-serving": "true"});
        let container = json!({"name": "vllm", "image": format!("registry.local/engines/vllm-openai:v0.{}.0", 19 + m % 14),
            "args": ["--model", format!("/models/{name}"), "--port", "8000"], "ports": [{"name": "http", "containerPort": 8000}],
            "resources": {"limits": {"nvidia.com/gpu": "1"}},
            "readinessProbe": {"httpGet": {"path": "/health", "port": "http"}}});
        out.push(json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": ns, "uid": format!("d{m}"), "generation": 1},
            "spec": {"replicas": PODS_A_MODEL, "selector": {"matchLabels": {"app": name}},
                "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}}},
            "status": {"observedGeneration": 1, "replicas": PODS_A_MODEL, "readyReplicas": PODS_A_MODEL - 2, "updatedReplicas": PODS_A_MODEL}}));
        out.push(json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name, "namespace": ns},
            "spec": {"selector": {"app": name}, "ports": [{"port": 80, "targetPort": "http"}]}}));
        out.push(json!({"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": name, "namespace": ns},
            "spec": {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}, "minReplicas": 1, "maxReplicas": 20},
            "status": {"desiredReplicas": PODS_A_MODEL, "currentReplicas": PODS_A_MODEL}}));
        if m % 3 == 0 {
            out.push(json!({"apiVersion": "inference.networking.k8s.io/v1", "kind": "InferencePool", "metadata": {"name": name, "namespace": ns},
                "spec": {"selector": {"matchLabels": {"app": name}}, "targetPorts": [{"number": 8000}], "endpointPickerRef": {"name": format!("{name}-epp")}}}));
        }
        let mut endpoints = Vec::new();
        for p in 0..PODS_A_MODEL {
            let pod = format!("{name}-5d8f7c6b9-{p:05}");
            let (scheduled, ready) = (p != 9, p < 8);
            let condition = |kind: &str, status: bool| json!({"type": kind, "status": if status { "True" } else { "False" }, "lastTransitionTime": "2026-11-12T09:50:00Z"});
            let mut labels = labels.clone();
            labels["pod-template-hash"] = "5d8f7c6b9".into();
            out.push(json!({"apiVersion": "v1", "kind": "Pod",
                "metadata": {"name": pod, "namespace": ns, "uid": format!("p{m}-{p}"), "creationTimestamp": "2026-11-12T09:40:00Z", "labels": labels,
                    "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": format!("{name}-5d8f7c6b9"), "controller": true}]},
                "spec": {"nodeName": if scheduled { format!("gpu-{}", (m * PODS_A_MODEL + p) % (models * 2)) } else { String::new() }, "containers": [container]},
                "status": {"phase": if scheduled { "Running" } else { "Pending" }, "podIP": format!("10.{}.{}.{p}", m / 250, m % 250),
                    "conditions": [condition("PodScheduled", scheduled), condition("ContainersReady", ready), condition("Ready", ready)],
                    "containerStatuses": if scheduled { json!([{"name": "vllm", "ready": ready, "started": ready, "restartCount": 0,
                        "state": {"running": {"startedAt": "2026-11-12T09:41:00Z"}}}]) } else { json!([]) }}}));
            endpoints.push(json!({"addresses": [format!("10.{}.{}.{p}", m / 250, m % 250)], "conditions": {"ready": ready},
                "targetRef": {"kind": "Pod", "name": pod, "uid": format!("p{m}-{p}")}}));
        }
        out.push(json!({"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
            "metadata": {"name": format!("{name}-x"), "namespace": ns, "labels": {"kubernetes.io/service-name": name}},
            "endpoints": endpoints, "ports": [{"name": "http", "port": 8000}]}));
    }
    out
}
