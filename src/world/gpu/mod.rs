//! GPU occupancy: slots that nodes have and pods hold, cards as exporters show them, and where a waiting pod could go.
//!
//! Four truths that never merge: what is allocated (requests against allocatable), memory, compute, and what the engines do with it.
//! Slots are counted by requests alone, never by utilisation: a card at 0 % that a pod holds is not free. Devices held by DRA claims are
//! not counted, as no request names them.

pub mod devices;
pub mod fit;
pub mod slots;

use std::collections::BTreeMap;

use jiff::Timestamp;

pub use devices::Device;
pub use fit::Waiting;
pub use slots::{NodeGpus, Sharing};

use super::View;
use crate::engines::MetricPage;
use crate::model::object::Catalogue;
use crate::model::service::Replica;
use crate::model::state::{EngineState, ReplicaState, ViewState};
use crate::model::{Evidence, Fact, Known, Place, Subject, Unknown, time};

/// Seconds without a request from which on a holder is called idle.
pub const IDLE_S: i64 = 30 * 60;

/// What is known of all GPUs.
#[derive(Debug, Clone, Default)]
pub struct Gpus {
    /// Nodes that have GPUs, or should have some by their labels.
    pub nodes: BTreeMap<Subject, NodeGpus>,
    /// Cards and MIG slices, as the newest page of each node's exporter shows them.
    pub devices: BTreeMap<Subject, Device>,
    /// Devices by the pod that the exporter names on them.
    pub by_pod: BTreeMap<Subject, Vec<Subject>>,
    /// Pods that no node has taken yet, and where they could go.
    pub waiting: BTreeMap<Subject, Waiting>,
    /// Pods that hold GPUs and have served nothing for [`IDLE_S`] or more: since when, and what shows it.
    pub idle: BTreeMap<Subject, Idle>,
    /// Why nodes were not read, where a view says so.
    pub hidden: Option<Unknown>,
}

/// A holder that serves nothing.
#[derive(Debug, Clone, PartialEq)]
pub struct Idle {
    /// Slots that it holds.
    pub gpus: u32,
    /// Since when nothing was served, at the least.
    pub since: Timestamp,
    /// What shows it.
    pub evidence: Vec<Evidence>,
}

impl Gpus {
    /// Reads nodes, pods and exporter pages.
    pub fn read(
        objects: &Catalogue,
        exporters: &BTreeMap<Subject, Vec<MetricPage>>,
        replicas: &BTreeMap<Subject, Replica>,
        views: &BTreeMap<Subject, View>,
        now: Timestamp,
    ) -> Self {
        let hidden = unread(views, "nodes");
        let pods_hidden = unread(views, "pods");
        let mut devices = BTreeMap::new();
        for (node, pages) in exporters {
            if let Some(page) = pages.last() {
                devices.extend(devices::read(objects, node, page));
            }
        }
        let mut by_pod: BTreeMap<Subject, Vec<Subject>> = BTreeMap::new();
        for (subject, device) in &devices {
            for pod in device.held_by.iter().flatten() {
                by_pod.entry(pod.clone()).or_default().push(subject.clone());
            }
        }
        let nodes = slots::nodes(objects, &devices, pods_hidden.as_ref());
        let waiting = fit::waiting(objects, replicas, &nodes, hidden.as_ref());
        Self { nodes, devices, by_pod, waiting, idle: idle(objects, replicas, now), hidden }
    }

    /// A sum over all nodes; unknown where nodes or the pods on them were not read.
    pub fn total(&self, one: impl Fn(&NodeGpus) -> Known<u32>) -> Known<u32> {
        if let Some(why) = &self.hidden {
            return Err(why.clone());
        }
        if self.nodes.is_empty() {
            return Err(Unknown::because("no node with GPUs was read"));
        }
        self.nodes.values().try_fold(0u32, |sum, node| Ok(sum.saturating_add(one(node)?)))
    }

    /// The devices of one node.
    pub fn devices_of(&self, node: &Subject) -> impl Iterator<Item = (&Subject, &Device)> {
        let first = node.part("gpu/");
        self.devices.range(first.clone()..).take_while(move |(device, _)| device.as_str().starts_with(first.as_str()))
    }

    /// Compute use of the devices of one pod, 0..1: known only where each of them is its alone.
    pub fn util_of(&self, pod: &Subject) -> Option<Known<f64>> {
        let own: Vec<&Device> = self.by_pod.get(pod).into_iter().flatten().filter_map(|device| self.devices.get(device)).collect();
        if own.is_empty() {
            return None;
        }
        if let Some(shared) = own.iter().find(|device| device.mirrored()) {
            let count = shared.held_by.as_ref().map_or(0, Vec::len);
            return Some(Err(Unknown::because(format!(
                "{count} pods share the card {}, and its value is mirrored to each of them",
                shared.uuid
            ))));
        }
        let known: Known<Vec<f64>> = own
            .iter()
            .map(|device| match device.own.get(pod) {
                Some(own) => Ok(*own),
                None => device.util.as_ref().map(|fact| fact.value).map_err(Clone::clone),
            })
            .collect();
        Some(known.map(|list| list.iter().sum::<f64>() / list.len().max(1) as f64))
    }
}

/// Why objects of a resource were not all read, if a view says so.
pub fn unread(views: &BTreeMap<Subject, View>, resource: &str) -> Option<Unknown> {
    views.iter().find_map(|(subject, view)| {
        let of = subject.as_str().strip_prefix("view/")?.split('/').next()?;
        let cut = matches!(view.state, ViewState::NoPermission | ViewState::LoginNeeded | ViewState::Unreachable);
        (of == resource && cut).then(|| Unknown::because(view.why.first().cloned().unwrap_or_else(|| format!("{resource} were not read"))))
    })
}

/// A value that is known to be 0.
fn zero(fact: &Known<Fact<f64>>) -> Option<&Fact<f64>> {
    fact.as_ref().ok().filter(|fact| fact.value == 0.0)
}

/// Engines that hold GPUs and have served nothing since their process started, long ago: one page is enough to say that, as counters
/// begin at 0. An engine that once served says nothing of when it stopped.
fn idle(objects: &Catalogue, replicas: &BTreeMap<Subject, Replica>, now: Timestamp) -> BTreeMap<Subject, Idle> {
    let mut out = BTreeMap::new();
    for (subject, replica) in replicas.iter().filter(|(subject, replica)| subject.kind() == "pod" && replica.gpus > 0) {
        if !matches!(replica.state, ReplicaState::Serving | ReplicaState::Ready | ReplicaState::NotRouted | ReplicaState::EngineReady) {
            continue;
        }
        let Ok(engine) = &replica.engine else { continue };
        let Ok(load) = &engine.load else { continue };
        let (Some(running), Some(waiting), Some(tokens)) = (zero(&load.running), zero(&load.waiting), zero(&load.generation_tokens)) else {
            continue;
        };
        // A prefill engine generates nothing and is busy all the same.
        let Some(prompt) = zero(&load.prompt_tokens) else { continue };
        if load.finished.values().any(|n| *n > 0.0) || engine.state != EngineState::Ready {
            continue;
        }
        let Some(since) = objects.pod(subject).and_then(|(_, pod)| pod.condition("Ready")?.since) else { continue };
        if time::seconds_between(since, load.at) < IDLE_S || time::seconds_between(load.at, now) > IDLE_S {
            continue;
        }
        let proof =
            |fact: &Fact<f64>, value: &str| Evidence::new(subject, Place::Metric(fact.source.clone()), value.to_owned(), Some(fact.at));
        out.insert(
            subject.clone(),
            Idle {
                gpus: replica.gpus,
                since,
                evidence: vec![
                    proof(tokens, "0 tokens since it started"),
                    proof(prompt, "0 tokens since it started"),
                    proof(running, "0"),
                    proof(waiting, "0"),
                ],
            },
        );
    }
    out
}
