//! Engines: what they say of their load.

use super::entry::{Entry, Subjects};
use crate::model::engine::{EngineLoad, EngineReport, Latency};
use crate::model::state::{EngineState, ReplicaState};
use crate::model::{Fact, Known, Subject, Unknown};
use crate::world::World;

/// Adds the load of every engine to its pod, to the group that it leads, or to its own page.
pub(super) fn add(world: &World, subjects: &mut Subjects) {
    for (subject, report) in &world.engines {
        let entry = subjects.at(subject);
        if subject.kind() == "engine" {
            entry.judge(word(&report.state), std::slice::from_ref(&report.why));
        }
        says(world, subject, report, entry);
    }
    for (subject, replica) in &world.replicas {
        if let Ok(report) = &replica.engine
            && !world.engines.contains_key(subject)
        {
            says(world, subject, report, subjects.at(subject));
        }
    }
}

/// The word of an engine that has no pod: only its own word counts.
fn word(state: &EngineState) -> &'static str {
    let state = match state {
        EngineState::Starting => ReplicaState::Starting,
        EngineState::Downloading => ReplicaState::Downloading,
        EngineState::Loading => ReplicaState::Loading,
        EngineState::Warming => ReplicaState::Warming,
        EngineState::Ready => ReplicaState::EngineReady,
        EngineState::Paused => ReplicaState::Paused,
        EngineState::Stalled => ReplicaState::Stalled,
        EngineState::Draining => ReplicaState::Draining,
        EngineState::Sleeping(_) => ReplicaState::Sleeping,
        EngineState::Waking => ReplicaState::Waking,
        EngineState::Dead => ReplicaState::Dead,
        EngineState::Unknown(_) => ReplicaState::Unknown,
    };
    state.word()
}

fn says(world: &World, subject: &Subject, report: &EngineReport, entry: &mut Entry) {
    match &report.kind {
        Ok(kind) => entry.values.know("engine", kind.word(), "what it runs and answers", world.now),
        Err(why) => entry.values.lack("engine", why.why()),
    }
    if let Ok(version) = &report.version {
        entry.values.know("engine-version", version.value.as_str(), &version.source, version.at);
    }
    match &report.load {
        Ok(load) => loaded(load, entry),
        Err(why) => {
            for name in ["running", "waiting", "kv-usage"] {
                entry.values.lack(name, why.why());
            }
            // The engine was not asked: its router knows its ranks as endpoints.
            if let Some((ranks, reading)) = world.routers.values().find_map(|reading| {
                let known = reading.endpoints.as_ref()?.get(subject.name()).filter(|_| reading.pod.namespace() == subject.namespace())?;
                Some((known.len(), reading))
            }) {
                entry.values.know("engines", ranks as f64, &format!("endpoints that the router {} counts", reading.pod.name()), reading.at);
            }
        }
    }
    if let Some(page) = world.pages.get(subject).and_then(|pages| pages.last()) {
        entry.values.know("readers-unparsed", page.page.unread().count as f64, "lines of the page that could not be read", page.at);
    }
}

fn loaded(load: &EngineLoad, entry: &mut Entry) {
    let known: [(&'static str, &Known<Fact<f64>>); 6] = [
        ("running", &load.running),
        ("waiting", &load.waiting),
        ("kv-usage", &load.kv_usage),
        ("kv-usage-max", &load.kv_usage_max),
        ("prompt-tokens", &load.prompt_tokens),
        ("generation-tokens", &load.generation_tokens),
    ];
    for (name, value) in known {
        entry.measure(name, value.clone());
    }
    if let Some(swapped) = &load.swapped {
        entry.measure("swapped", Ok(swapped.clone()));
    }
    match (load.ranks.len(), &load.running) {
        (0, Err(why)) => entry.values.lack("engines", why.why()),
        (ranks, _) => entry.values.know("engines", ranks as f64, "ranks on the metrics page", load.at),
    }
    if let Some(ttft) = &load.ttft {
        let source = "histogram of the time to first token";
        entry.values.know("ttft-count", ttft.count, source, load.at);
        entry.values.know("ttft-sum", ttft.sum, source, load.at);
        entry.measure("ttft-p95", percentile(ttft, ttft.p95, source, load));
    }
    if let Some(whole) = &load.e2e {
        entry.measure("e2e-p99", percentile(whole, whole.p99, "histogram of whole requests", load));
    }
    if let Some(lora) = &load.lora {
        let source = "LoRA state on the metrics page";
        entry.values.know("lora-running", lora.running.len() as f64, source, load.at);
        entry.values.know("lora-waiting", lora.waiting.len() as f64, source, load.at);
        match lora.max {
            Some(max) => entry.values.know("lora-max", max, source, load.at),
            None => entry.values.lack("lora-max", "the page does not say it"),
        }
    }
}

fn percentile(latency: &Latency, value: Option<f64>, source: &str, load: &EngineLoad) -> Known<Fact<f64>> {
    let why = if latency.count > 0.0 { "it needs two pages with requests finished between them" } else { "no request was observed yet" };
    value.map(|value| Fact::new(value, source, load.at)).ok_or_else(|| Unknown::because(why))
}
