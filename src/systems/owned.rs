//! Model services whose topmost object is a custom resource of a serving system: named by that object, so that its children are never
//! shown as plain workloads. What the system's own status says is read by its own adapter where there is one.

use std::collections::{BTreeMap, BTreeSet};

use super::plain::{PLAIN_KINDS, claim};
use super::units::Unit;
use super::{Seen, System};
use crate::model::object::Catalogue;
use crate::model::service::{Claim, ServiceId};
use crate::model::{Evidence, Subject};

/// See the module.
pub struct Owned;

/// Systems by the API group of the object on top.
const GROUPS: &[(&str, &str)] = &[
    ("serving.kserve.io", "kserve"),
    ("serving.knative.dev", "knative"),
    ("kubeai.org", "kubeai"),
    ("ome.io", "ome"),
    ("nvidia.com", "dynamo"),
    ("grove.io", "grove"),
    ("orchestration.aibrix.ai", "aibrix"),
    ("model.aibrix.ai", "aibrix"),
    ("workload.serving.volcano.sh", "kthena"),
    ("workloads.x-k8s.io", "rbg"),
    ("serving.modeldeck.dev", "modeldeck"),
];

impl System for Owned {
    fn name(&self) -> &'static str {
        "owned"
    }

    fn kinds(&self) -> &'static [(&'static str, &'static str)] {
        &[]
    }

    fn claim(&self, seen: &Seen, taken: &BTreeSet<Subject>) -> Vec<Claim> {
        let mut groups: BTreeMap<Subject, Vec<&Unit>> = BTreeMap::new();
        for unit in &seen.units {
            if !taken.contains(&unit.subject) && !PLAIN_KINDS.contains(&unit.top.kind()) {
                groups.entry(unit.top.clone()).or_default().push(unit);
            }
        }
        groups
            .into_iter()
            .map(|(top, units)| {
                let id = ServiceId {
                    namespace: top.namespace().to_owned(),
                    name: top.name().to_owned(),
                    system: system_of(seen.objects, &top, &units),
                };
                let child = units.first().map_or(&top, |unit| &unit.subject);
                let found_by = Evidence::field(child, "metadata.ownerReferences", top.to_string());
                claim(seen, id, found_by, &units)
            })
            .collect()
    }
}

/// The system by the group of the object on top; of one that was only named, by the owner reference that names it.
fn system_of(objects: &Catalogue, top: &Subject, units: &[&Unit]) -> &'static str {
    let group_word = |api_version: &str| {
        let group = api_version.split_once('/').map_or("", |(group, _)| group);
        GROUPS.iter().find(|(known, _)| *known == group).map(|(_, system)| *system)
    };
    let seen = objects.get(top).map(|object| object.api_version.clone());
    let named = units.iter().find_map(|unit| {
        std::iter::once(unit.subject.clone()).chain(objects.owner_chain(&unit.subject)).find_map(|link| {
            objects.get(&link)?.meta.controller().filter(|owner| owner.name == top.name()).map(|owner| owner.api_version.clone())
        })
    });
    seen.or(named).and_then(|api_version| group_word(&api_version)).unwrap_or("other")
}
