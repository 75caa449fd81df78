//! What belongs to a model service: for `explain MODEL`.

use std::collections::{BTreeMap, BTreeSet};

use crate::model::service::ServiceId;
use crate::model::{Finding, Subject};
use crate::world::World;

/// Every subject of these model services: workloads, what owns them and what they own, replicas and their pods, nodes of these, fronts,
/// routers and autoscalers.
pub(super) fn of(world: &World, services: &BTreeSet<&ServiceId>) -> BTreeSet<Subject> {
    let mut scope = BTreeSet::new();
    for service in services.iter().filter_map(|id| world.services.get(*id)) {
        let claim = &service.claim;
        scope.insert(claim.found_by.object.clone());
        scope.extend(claim.fronts.iter().chain(&claim.autoscalers).chain(&claim.routers).cloned());
        let of_routers = claim.routers.iter().filter_map(|router| world.workloads.get(router)).flat_map(|view| &view.replicas);
        scope.extend(of_routers.cloned());
        for role in &claim.roles {
            for workload in &role.workloads {
                scope.insert(workload.clone());
                scope.extend(world.objects.owner_chain(workload));
                scope.extend(world.objects.owned_by(workload).iter().cloned());
            }
            for replica in &role.replicas {
                scope.insert(replica.subject.clone());
                scope.extend(replica.workload.clone());
                scope.extend(replica.pods.iter().cloned());
            }
        }
    }
    let nodes: Vec<Subject> = scope
        .iter()
        .filter_map(|subject| world.objects.pod(subject))
        .filter(|(_, pod)| !pod.node.is_empty())
        .map(|(_, pod)| Subject::node(&pod.node))
        .collect();
    scope.extend(nodes);
    scope
}

/// Findings by the subjects that they are about.
pub(crate) struct Index<'f> {
    findings: &'f [Finding],
    by_subject: BTreeMap<&'f Subject, Vec<usize>>,
}

impl<'f> Index<'f> {
    /// Sorts findings by subject. A node counts only where it is what a finding is about first: another model's trouble on a shared node
    /// is not this one's.
    pub(crate) fn new(findings: &'f [Finding]) -> Self {
        let mut by_subject: BTreeMap<&Subject, Vec<usize>> = BTreeMap::new();
        for (number, finding) in findings.iter().enumerate() {
            for (place, subject) in finding.subjects.iter().enumerate() {
                if place == 0 || subject.kind() != "node" {
                    by_subject.entry(subject).or_default().push(number);
                }
            }
        }
        Self { findings, by_subject }
    }

    /// The findings about these model services, in their order.
    pub(crate) fn about(&self, world: &World, services: &BTreeSet<&ServiceId>) -> Vec<&'f Finding> {
        self.within(&of(world, services))
    }

    /// The findings that name one of these subjects, in their order.
    pub(super) fn within(&self, scope: &BTreeSet<Subject>) -> Vec<&'f Finding> {
        let numbers: BTreeSet<usize> = scope.iter().filter_map(|subject| self.by_subject.get(subject)).flatten().copied().collect();
        numbers.into_iter().filter_map(|number| self.findings.get(number)).collect()
    }
}
