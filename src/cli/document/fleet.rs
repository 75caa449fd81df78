//! The whole: sums over engines and nodes, and who is least loaded.

use super::entry::{Entry, Subjects};
use crate::model::engine::EngineLoad;
use crate::model::{Fact, Known, Subject, Unknown};
use crate::world::World;
use crate::world::gpu::NodeGpus;

/// Adds the fleet.
pub(super) fn add(world: &World, subjects: &mut Subjects) {
    let fleet = Subject::fleet();
    if let Some(why) = &world.gpu.hidden {
        subjects.at(&fleet).why.push(format!("nodes were not read: {why}"));
    }
    load(world, subjects.at(&fleet));
    gpus(world, subjects.at(&fleet));
}

fn load(world: &World, entry: &mut Entry) {
    let now = world.now;
    let sampled: Vec<(&Subject, &EngineLoad)> =
        world.engines.iter().filter_map(|(subject, report)| Some((subject, report.load.as_ref().ok()?))).collect();
    let all = |value: fn(&EngineLoad) -> &Known<Fact<f64>>| -> Vec<f64> {
        sampled.iter().filter_map(|(_, load)| Some(value(load).as_ref().ok()?.value)).filter(|n| n.is_finite()).collect()
    };
    let (running, waiting) = (all(|load| &load.running), all(|load| &load.waiting));
    let (usage, usage_max) = (all(|load| &load.kv_usage), all(|load| &load.kv_usage_max));
    let mean = |list: &[f64]| (!list.is_empty()).then(|| list.iter().sum::<f64>() / list.len() as f64);
    let sum = |list: &[f64]| (!list.is_empty()).then(|| list.iter().sum::<f64>());
    let source = format!("{} of {} engines, those with a sample", sampled.len(), world.engines.len());
    let known = |value: Option<f64>| {
        value.map(|value| Fact::new(value, source.clone(), now)).ok_or_else(|| Unknown::because("no engine has a sample"))
    };
    entry.measure("running", known(sum(&running)));
    entry.measure("waiting", known(sum(&waiting)));
    entry.measure("waiting-mean", known(mean(&waiting)));
    entry.measure("kv-usage", known(mean(&usage)));
    entry.measure("kv-usage-max", known(usage_max.iter().copied().reduce(f64::max)));
    entry.values.know("sampled", sampled.len() as f64, "engines with a readable metrics page", now);
    entry.values.know("unsampled", world.engines.len().saturating_sub(sampled.len()) as f64, "engines without one", now);
    match least_loaded(&sampled) {
        Some(subject) => {
            entry.values.know("least-loaded", subject, "running and waiting requests, then KV cache use, of engines with a sample", now)
        }
        None => entry.values.lack("least-loaded", "no engine has a sample"),
    }
}

/// The engine with the fewest requests; of two the one that uses less of its KV cache. What has no sample is never it.
fn least_loaded<'a>(sampled: &[(&'a Subject, &EngineLoad)]) -> Option<&'a Subject> {
    let value = |fact: &Known<Fact<f64>>| fact.as_ref().ok().map(|fact| fact.value);
    sampled
        .iter()
        .filter_map(|(subject, load)| {
            let requests = value(&load.running)? + value(&load.waiting)?;
            Some((requests, value(&load.kv_usage).unwrap_or(f64::INFINITY), *subject))
        })
        .min_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)).then(a.2.cmp(b.2)))
        .map(|(_, _, subject)| subject)
}

fn gpus(world: &World, entry: &mut Entry) {
    let source = "sum over nodes";
    let gpu = &world.gpu;
    entry.count("gpu-capacity", &gpu.total(|node| Ok(node.capacity())), source, world.now);
    entry.count("gpu-allocatable", &gpu.total(|node| Ok(node.allocatable())), source, world.now);
    entry.count("gpu-unhealthy", &gpu.total(|node| Ok(node.unhealthy())), source, world.now);
    entry.count("gpu-requested", &gpu.total(NodeGpus::requested), source, world.now);
    entry.count("gpu-free", &gpu.total(NodeGpus::free), source, world.now);
    entry.count(
        "gpu-physical",
        &gpu.total(|node| node.physical.as_ref().map(|(cards, _)| *cards).map_err(Clone::clone)),
        source,
        world.now,
    );
}
