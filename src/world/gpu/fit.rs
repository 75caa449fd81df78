//! Where a waiting pod could go: for each node, how much is free and what keeps the pod off it.
//!
//! Looks at what decides for GPU pods: resource, taints, selector, required node affinity, cordon, readiness. CPU, memory, pod affinity
//! and spread are left to the scheduler: its own message stands beside.

use std::collections::BTreeMap;

use super::slots::NodeGpus;
use crate::model::object::cluster::Taint;
use crate::model::object::meta::condition;
use crate::model::object::pod::Toleration;
use crate::model::object::{Catalogue, Node, Object, PodSpec};
use crate::model::service::Replica;
use crate::model::state::ReplicaState;
use crate::model::{Known, Subject, Unknown};

/// A pod that no node has taken.
#[derive(Debug, Clone, PartialEq)]
pub struct Waiting {
    /// Slots that it needs, all resources together.
    pub needed: u32,
    /// The resource of which it needs most.
    pub resource: String,
    /// Free slots that it could take: those of allowed nodes on which it fits whole. 0 where it fits nowhere.
    pub usable: Known<u32>,
    /// Most free slots on one allowed node.
    pub largest_block: Known<u32>,
    /// Nodes with that resource.
    pub nodes: Vec<Offer>,
}

/// One node as seen by a waiting pod.
#[derive(Debug, Clone, PartialEq)]
pub struct Offer {
    /// The node.
    pub node: Subject,
    /// Free slots of the resource.
    pub free: Known<u32>,
    /// What keeps the pod off it whatever is free; `None` where it is allowed.
    pub refused: Option<Refusal>,
}

/// Why a node does not take a pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// A taint that the pod does not tolerate, as `key=value:effect`.
    Taint(String),
    /// It is cordoned.
    Cordoned,
    /// It is not Ready.
    NotReady,
    /// The pod's node selector or affinity asks for something else.
    Selector(String),
}

impl Refusal {
    /// In words, with the node as subject.
    pub fn words(&self) -> String {
        match self {
            Self::Taint(taint) => format!("has the taint {taint}, which the pod does not tolerate"),
            Self::Cordoned => "is cordoned".into(),
            Self::NotReady => "is not Ready".into(),
            Self::Selector(what) => format!("does not match the pod's node selector or affinity ({what})"),
        }
    }
}

impl Waiting {
    /// Free slots by node in words: `gpu-node-1 2, gpu-node-3 8 (has the taint …)`.
    pub fn words(&self) -> Vec<String> {
        let mut out = Vec::new();
        let known = |count: &Known<u32>| count.as_ref().map_or_else(|why| format!("unknown ({why})"), u32::to_string);
        out.push(format!(
            "needs {} {}; free on nodes that take it whole: {}, largest block on an allowed node: {}",
            self.needed,
            self.resource,
            known(&self.usable),
            known(&self.largest_block)
        ));
        let refused = self.nodes.iter().filter(|offer| offer.free != Ok(0));
        out.extend(refused.filter_map(|offer| {
            let why = offer.refused.as_ref()?;
            Some(format!("{} has {} free but {}", offer.node.name(), known(&offer.free), why.words()))
        }));
        out
    }

    /// Free slots on all nodes that have the resource, allowed or not.
    pub fn free_anywhere(&self) -> Known<u32> {
        self.nodes.iter().try_fold(0u32, |sum, offer| Ok(sum.saturating_add(offer.free.clone()?)))
    }

    /// Nodes that may take it.
    pub fn allowed(&self) -> impl Iterator<Item = &Offer> {
        self.nodes.iter().filter(|offer| offer.refused.is_none())
    }
}

/// All pods that need GPUs and that no node has taken.
pub fn waiting(
    objects: &Catalogue,
    replicas: &BTreeMap<Subject, Replica>,
    nodes: &BTreeMap<Subject, NodeGpus>,
    hidden: Option<&Unknown>,
) -> BTreeMap<Subject, Waiting> {
    replicas
        .iter()
        .filter(|(subject, replica)| subject.kind() == "pod" && replica.state == ReplicaState::PendingGpu)
        .filter_map(|(subject, _)| Some((subject.clone(), fit(objects, &objects.pod(subject)?.1.spec, nodes, hidden)?)))
        .collect()
}

fn fit(objects: &Catalogue, spec: &PodSpec, nodes: &BTreeMap<Subject, NodeGpus>, hidden: Option<&Unknown>) -> Option<Waiting> {
    let requests = spec.gpu_requests();
    let (resource, most) = requests.iter().max_by_key(|(_, count)| **count)?;
    let needed = requests.values().copied().fold(0, u32::saturating_add);
    let offers: Vec<Offer> = nodes
        .iter()
        .filter(|(_, gpus)| gpus.resources.contains_key(resource))
        .filter_map(|(subject, gpus)| {
            let (object, node) = objects.node(subject)?;
            Some(Offer { node: subject.clone(), free: gpus.free_of(resource), refused: refusal(spec, object, node) })
        })
        .collect();
    let lacking = match hidden {
        Some(why) => Some(why.clone()),
        None if nodes.is_empty() => Some(Unknown::because("no node with GPUs was read")),
        None => None,
    };
    let allowed: Known<Vec<u32>> = match lacking {
        Some(why) => Err(why),
        None => offers.iter().filter(|offer| offer.refused.is_none()).map(|offer| offer.free.clone()).collect(),
    };
    Some(Waiting {
        needed,
        resource: resource.clone(),
        usable: allowed
            .as_ref()
            .map(|free| free.iter().filter(|free| *free >= most).copied().fold(0, u32::saturating_add))
            .map_err(Clone::clone),
        largest_block: allowed.map(|free| free.into_iter().max().unwrap_or(0)),
        nodes: offers,
    })
}

/// What keeps a pod off a node whatever is free there.
pub fn refusal(spec: &PodSpec, object: &Object, node: &Node) -> Option<Refusal> {
    let cordon = Taint { key: "node.kubernetes.io/unschedulable".into(), value: String::new(), effect: "NoSchedule".into() };
    if node.unschedulable && !spec.tolerations.iter().any(|toleration| tolerates(toleration, &cordon)) {
        return Some(Refusal::Cordoned);
    }
    if condition(&node.conditions, "Ready").is_some_and(|ready| !ready.is_true()) {
        return Some(Refusal::NotReady);
    }
    let untolerated = node
        .taints
        .iter()
        .filter(|taint| taint.effect != "PreferNoSchedule")
        .find(|taint| !spec.tolerations.iter().any(|toleration| tolerates(toleration, taint)));
    if let Some(taint) = untolerated {
        return Some(Refusal::Taint(shown(taint)));
    }
    let missing: Vec<String> = spec
        .node_selector
        .iter()
        .filter(|(key, value)| object.meta.labels.get(*key) != Some(*value))
        .map(|(key, value)| format!("{key}={value}"))
        .collect();
    if !missing.is_empty() {
        return Some(Refusal::Selector(missing.join(", ")));
    }
    let terms = &spec.required_nodes;
    if !terms.is_empty() && !terms.iter().any(|term| term.matches(&object.meta.labels)) {
        return Some(Refusal::Selector(terms.iter().map(ToString::to_string).collect::<Vec<_>>().join(" or ")));
    }
    None
}

/// `key=value:effect`, as kubectl writes taints.
pub fn shown(taint: &Taint) -> String {
    if taint.value.is_empty() {
        format!("{}:{}", taint.key, taint.effect)
    } else {
        format!("{}={}:{}", taint.key, taint.value, taint.effect)
    }
}

/// Whether a toleration covers a taint, as the API documents it.
pub fn tolerates(toleration: &Toleration, taint: &Taint) -> bool {
    if !toleration.effect.is_empty() && toleration.effect != taint.effect {
        return false;
    }
    let exists = toleration.operator == "Exists";
    if toleration.key.is_empty() {
        return exists;
    }
    toleration.key == taint.key && (exists || toleration.value == taint.value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    fn toleration(key: &str, operator: &str, value: &str, effect: &str) -> Toleration {
        Toleration { key: key.into(), operator: operator.into(), value: value.into(), effect: effect.into() }
    }

    #[rstest]
    #[case(toleration("dedicated", "Equal", "batch", "NoSchedule"), true)]
    #[case(toleration("dedicated", "", "batch", ""), true)]
    #[case(toleration("dedicated", "Equal", "web", ""), false)]
    #[case(toleration("dedicated", "Exists", "", ""), true)]
    #[case(toleration("dedicated", "Exists", "", "NoExecute"), false)]
    #[case(toleration("", "Exists", "", ""), true)]
    #[case(toleration("", "Equal", "", ""), false)]
    fn tolerations(#[case] toleration: Toleration, #[case] wanted: bool) {
        let taint = Taint { key: "dedicated".into(), value: "batch".into(), effect: "NoSchedule".into() };
        assert_eq!(tolerates(&toleration, &taint), wanted);
    }
}
