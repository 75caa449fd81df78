//! Slots of nodes: what pods can request, what they do request, and how many cards are behind it.
//!
//! From node status (`capacity`, `allocatable`) and the requests of all bound pods that have not ended; a pod being deleted holds its
//! slots until it is gone. Labels of GPU feature discovery tell cards and sharing; they stay behind when a device plugin dies, so they
//! never tell health by themselves.

use std::collections::{BTreeMap, BTreeSet};

use super::devices::Device;
use crate::model::object::devices::is_gpu_resource;
use crate::model::object::{Catalogue, Node, Object};
use crate::model::{Evidence, Known, Subject, Unknown};

/// Slots of one resource on one node.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Slots {
    /// Of the machine.
    pub capacity: u32,
    /// That pods may have.
    pub allocatable: u32,
    /// That bound pods request.
    pub requested: u32,
}

impl Slots {
    /// That no pod requests.
    pub fn free(&self) -> u32 {
        self.allocatable.saturating_sub(self.requested)
    }
}

/// How cards are cut into slots.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sharing {
    /// Several pods take turns on a card, without a bound on memory.
    TimeSlicing {
        /// Slots a card.
        per_card: u32,
    },
    /// Several pods share a card at the same time.
    Mps {
        /// Slots a card.
        per_card: u32,
    },
    /// Cards are cut into slices of their own memory.
    Mig,
}

/// The GPUs of one node.
#[derive(Debug, Clone, PartialEq)]
pub struct NodeGpus {
    /// By resource name: `nvidia.com/gpu`, `nvidia.com/mig-1g.10gb`.
    pub resources: BTreeMap<String, Slots>,
    /// Cards, and what shows it.
    pub physical: Known<(u32, String)>,
    /// How cards are cut, where something shows it.
    pub sharing: Option<(Sharing, Evidence)>,
    /// Slots that there should be by the node's labels, where they tell.
    pub promised: Option<(u32, Evidence)>,
    /// Pods that hold slots.
    pub pods: Vec<Subject>,
    /// Why requests are not known, where pods were not read.
    pub pods_hidden: Option<Unknown>,
    /// Pods on it whose devices come from claims (DRA), which no request counts.
    pub by_claim: Vec<Subject>,
}

impl NodeGpus {
    /// Slots of the machine.
    pub fn capacity(&self) -> u32 {
        self.resources.values().map(|slots| slots.capacity).fold(0, u32::saturating_add)
    }

    /// Slots that pods may have.
    pub fn allocatable(&self) -> u32 {
        self.resources.values().map(|slots| slots.allocatable).fold(0, u32::saturating_add)
    }

    /// Slots that are there and that no pod may have.
    pub fn unhealthy(&self) -> u32 {
        self.resources.values().map(|slots| slots.capacity.saturating_sub(slots.allocatable)).fold(0, u32::saturating_add)
    }

    /// Slots that bound pods request.
    pub fn requested(&self) -> Known<u32> {
        match &self.pods_hidden {
            Some(why) => Err(why.clone()),
            None => Ok(self.resources.values().map(|slots| slots.requested).fold(0, u32::saturating_add)),
        }
    }

    /// Slots that no pod requests: allocatable less requested, by resource.
    pub fn free(&self) -> Known<u32> {
        match &self.pods_hidden {
            Some(why) => Err(why.clone()),
            None => Ok(self.resources.values().map(Slots::free).fold(0, u32::saturating_add)),
        }
    }

    /// Free slots of one resource.
    pub fn free_of(&self, resource: &str) -> Known<u32> {
        match &self.pods_hidden {
            Some(why) => Err(why.clone()),
            None => Ok(self.resources.get(resource).map_or(0, Slots::free)),
        }
    }

    /// How its cards are cut and whether all are there, in sentences.
    pub fn why(&self) -> Vec<String> {
        let mut out = Vec::new();
        let cards = self.physical.as_ref().ok().map(|(cards, _)| *cards);
        let plural = |n: u32, word: &str| if n == 1 { format!("1 {word}") } else { format!("{n} {word}s") };
        match &self.sharing {
            Some((Sharing::TimeSlicing { per_card }, _)) => {
                let of = cards.map(|cards| format!(": {} x {per_card}", plural(cards, "card"))).unwrap_or_default();
                out.push(format!(
                    "time slicing{of}, {}; pods on one card share its memory without a bound",
                    plural(self.allocatable(), "slot")
                ));
            }
            Some((Sharing::Mps { per_card }, _)) => out.push(format!("cards are shared (MPS), {per_card} slots each")),
            Some((Sharing::Mig, _)) => out.push(format!("cards are cut by MIG into {}", plural(self.allocatable(), "slice"))),
            None => {}
        }
        if self.unhealthy() > 0 {
            out.push(format!("{} not healthy: {} of {} allocatable", plural(self.unhealthy(), "GPU"), self.allocatable(), self.capacity()));
        }
        if !self.by_claim.is_empty() {
            out.push(format!(
                "{} on it hold devices by resource claims (DRA), which are not counted",
                plural(self.by_claim.len() as u32, "pod")
            ));
        }
        out
    }
}

/// All nodes that have GPUs, or should have.
pub fn nodes(objects: &Catalogue, devices: &BTreeMap<Subject, Device>, pods_hidden: Option<&Unknown>) -> BTreeMap<Subject, NodeGpus> {
    let mut cards: BTreeMap<&Subject, BTreeSet<&str>> = BTreeMap::new();
    for device in devices.values().filter(|device| !device.uuid.is_empty()) {
        cards.entry(&device.node).or_default().insert(&device.uuid);
    }
    let mut nodes: BTreeMap<Subject, NodeGpus> = objects
        .nodes()
        .filter(|(object, node)| {
            node.capacity.keys().any(|name| is_gpu_resource(name)) || label_count(object, "nvidia.com/gpu.count").is_some()
        })
        .map(|(object, node)| {
            let subject = object.subject();
            let seen = cards.get(&subject).map(BTreeSet::len);
            let gpus = node_gpus(object, node, seen, pods_hidden);
            (subject, gpus)
        })
        .collect();
    for (object, pod) in objects.pods().filter(|(_, pod)| !pod.node.is_empty() && !pod.has_ended()) {
        let Some(node) = nodes.get_mut(&Subject::node(&pod.node)) else { continue };
        let requests = pod.spec.gpu_requests();
        if !requests.is_empty() {
            node.pods.push(object.subject());
        }
        if !pod.spec.device_claims.is_empty() {
            node.by_claim.push(object.subject());
        }
        for (resource, count) in requests {
            let slots = node.resources.entry(resource).or_default();
            slots.requested = slots.requested.saturating_add(count);
        }
    }
    nodes
}

fn label_count(object: &Object, key: &str) -> Option<u32> {
    object.meta.label(key)?.parse().ok()
}

fn node_gpus(object: &Object, node: &Node, seen: Option<usize>, pods_hidden: Option<&Unknown>) -> NodeGpus {
    let subject = object.subject();
    let mut resources: BTreeMap<String, Slots> = BTreeMap::new();
    for (name, count) in node.capacity.iter().filter(|(name, _)| is_gpu_resource(name)) {
        resources.entry(name.clone()).or_default().capacity = *count;
    }
    for (name, count) in node.allocatable.iter().filter(|(name, _)| is_gpu_resource(name)) {
        resources.entry(name.clone()).or_default().allocatable = *count;
    }
    let label = |key: &str| {
        object.meta.label(key).map(|value| Evidence::field(&subject, &format!("metadata.labels[{key}]"), value).of_uid(&object.meta.uid))
    };
    let count = label_count(object, "nvidia.com/gpu.count");
    let replicas = label_count(object, "nvidia.com/gpu.replicas").filter(|n| *n > 1);
    let mig_single = object.meta.label("nvidia.com/gpu.product").is_some_and(|product| product.contains("-MIG-"));
    let mig = mig_single || resources.keys().any(|name| name.starts_with("nvidia.com/mig-"));
    let strategy = object.meta.label("nvidia.com/gpu.sharing-strategy").unwrap_or_default();
    let shared_name = resources.contains_key("nvidia.com/gpu.shared")
        || object.meta.label("nvidia.com/gpu.product").is_some_and(|product| product.ends_with("-SHARED"));
    let sharing = match (replicas, mig) {
        (Some(per_card), _) => {
            let cut = if strategy == "mps" { Sharing::Mps { per_card } } else { Sharing::TimeSlicing { per_card } };
            label("nvidia.com/gpu.replicas").map(|proof| (cut, proof))
        }
        (None, true) => label("nvidia.com/gpu.product")
            .or_else(|| label("nvidia.com/mig.strategy"))
            .or_else(|| {
                let name = resources.keys().find(|name| name.starts_with("nvidia.com/mig-"))?;
                Some(Evidence::field(&subject, &format!("status.capacity[{name}]"), "there"))
            })
            .map(|proof| (Sharing::Mig, proof)),
        (None, false) => None,
    };
    let whole = resources.values().map(|slots| slots.capacity).fold(0, u32::saturating_add);
    let physical = match (count, seen) {
        // With one MIG strategy the label counts slices, not cards.
        (Some(count), _) if !mig_single => Ok((count, "label nvidia.com/gpu.count".to_owned())),
        (_, Some(seen)) => Ok((u32::try_from(seen).unwrap_or(u32::MAX), "cards on the exporter's page".to_owned())),
        (None, None) if !mig && replicas.is_none() && !shared_name => {
            Ok((whole, "status.capacity, as nothing shows that cards are shared".to_owned()))
        }
        _ => Err(Unknown::because("its cards are cut into slots, and nothing tells how many cards there are")),
    };
    let promised =
        count.filter(|_| !mig).and_then(|count| Some((count.saturating_mul(replicas.unwrap_or(1)), label("nvidia.com/gpu.count")?)));
    NodeGpus { resources, physical, sharing, promised, pods: Vec::new(), pods_hidden: pods_hidden.cloned(), by_claim: Vec::new() }
}
