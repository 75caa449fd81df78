//! The plain system: Deployments, StatefulSets, LeaderWorkerSets and lone pods that run an engine, with no system above them.
//!
//! What belongs together is found by, in this order: an InferencePool that selects it, the label `llm-d.ai/model`, the label
//! `serving.modeldeck.dev/model`, a Service that selects its pods, the workload alone.

use std::collections::{BTreeMap, BTreeSet};

use super::units::{Unit, autoscalers, roles, routers};
use super::{Seen, System};
use crate::model::object::Catalogue;
use crate::model::service::{Claim, ServiceId};
use crate::model::{Evidence, Subject};

/// llm-d's label for the served model.
pub const MODEL_LABEL: &str = "llm-d.ai/model";
/// Our own label for the served model.
pub const OWN_MODEL_LABEL: &str = "serving.modeldeck.dev/model";

/// See the module.
pub struct Plain;

/// Kinds above a pod that are no system of their own.
pub(super) const PLAIN_KINDS: &[&str] = &[
    "pod",
    "deployment",
    "replicaset",
    "statefulset",
    "daemonset",
    "leaderworkerset",
    "rollout",
    "cloneset",
    "disaggregatedset",
    "job",
    "replicationcontroller",
];

impl System for Plain {
    fn name(&self) -> &'static str {
        "plain"
    }

    fn kinds(&self) -> &'static [(&'static str, &'static str)] {
        &[
            ("", "Pod"),
            ("", "Service"),
            ("", "Event"),
            ("", "Node"),
            ("apps", "Deployment"),
            ("apps", "ReplicaSet"),
            ("apps", "StatefulSet"),
            ("leaderworkerset.x-k8s.io", "LeaderWorkerSet"),
            ("disaggregatedset.x-k8s.io", "DisaggregatedSet"),
            ("discovery.k8s.io", "EndpointSlice"),
            ("inference.networking.k8s.io", "InferencePool"),
            ("gateway.networking.k8s.io", "HTTPRoute"),
            ("autoscaling", "HorizontalPodAutoscaler"),
            ("keda.sh", "ScaledObject"),
            ("policy", "PodDisruptionBudget"),
            ("coordination.k8s.io", "Lease"),
        ]
    }

    fn claim(&self, seen: &Seen, taken: &BTreeSet<Subject>) -> Vec<Claim> {
        let free = seen.units.iter().filter(|unit| !taken.contains(&unit.subject) && PLAIN_KINDS.contains(&unit.top.kind()));
        let mut groups: BTreeMap<(String, String), (Evidence, Vec<&Unit>)> = BTreeMap::new();
        for unit in free {
            let (name, evidence) = identity(seen.objects, unit);
            groups.entry((unit.namespace.clone(), name)).or_insert_with(|| (evidence, Vec::new())).1.push(unit);
        }
        groups
            .into_iter()
            .map(|((namespace, name), (found_by, units))| claim(seen, ServiceId { namespace, name, system: "plain" }, found_by, &units))
            .collect()
    }
}

/// Puts a claim together from its units.
pub(super) fn claim(seen: &Seen, id: ServiceId, found_by: Evidence, units: &[&Unit]) -> Claim {
    let fronts: BTreeSet<Subject> = units.iter().flat_map(|unit| unit.fronts.iter().cloned()).collect();
    let fronts: Vec<Subject> = fronts.into_iter().collect();
    Claim { roles: roles(units), autoscalers: autoscalers(seen, units), routers: routers(seen.objects, &fronts), id, found_by, fronts }
}

/// The name under which a unit's model is known, and what says so.
fn identity(objects: &Catalogue, unit: &Unit) -> (String, Evidence) {
    let selector = |front: &Subject| {
        let (pool, service) = (objects.pool(front), objects.service(front));
        let selector = pool.and_then(|(_, p)| p.selector.as_ref()).or_else(|| service.and_then(|(_, s)| s.selector.as_ref()));
        Evidence::field(front, "spec.selector", selector.map(ToString::to_string).unwrap_or_default())
    };
    if let Some(pool) = unit.fronts.iter().find(|front| front.kind() == "inferencepool") {
        return (pool.name().to_owned(), selector(pool));
    }
    for key in [MODEL_LABEL, OWN_MODEL_LABEL] {
        if let Some(value) = unit.labels.get(key).filter(|value| !value.is_empty()) {
            return (value.clone(), Evidence::field(&unit.subject, &format!("metadata.labels[{key}]"), value.clone()));
        }
    }
    // Headless Services are there for the members of a group to find each other; they name a model only where no other does.
    let services = unit.fronts.iter().filter_map(|front| objects.service(front).map(|(_, service)| (front, service)));
    if let Some((front, _)) = services.min_by_key(|(front, service)| (service.headless, (*front).clone())) {
        return (front.name().to_owned(), selector(front));
    }
    (workload_name(unit), Evidence::field(&unit.subject, "metadata.name", unit.subject.name()))
}

/// The workload's name; of a ReplicaSet whose Deployment was not read the name without the template's hash.
fn workload_name(unit: &Unit) -> String {
    let name = unit.top.name();
    let hash = unit.labels.get("pod-template-hash").filter(|_| unit.top.kind() == "replicaset");
    hash.and_then(|hash| name.strip_suffix(hash.as_str())?.strip_suffix('-')).unwrap_or(name).to_owned()
}

#[cfg(test)]
#[path = "plain_tests.rs"]
mod tests;
