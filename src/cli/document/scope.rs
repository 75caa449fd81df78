//! What belongs to a model service: for `explain MODEL`.

use std::collections::BTreeSet;

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

/// The findings that name one of these subjects, nodes alone aside: another model's trouble on a shared node is not this one's.
pub(super) fn findings(findings: &[Finding], scope: &BTreeSet<Subject>) -> Vec<Finding> {
    let mine = |finding: &&Finding| {
        let first = finding.subjects.first().is_some_and(|subject| subject.kind() == "node");
        finding.subjects.iter().any(|subject| scope.contains(subject) && (first || subject.kind() != "node"))
    };
    findings.iter().filter(mine).cloned().collect()
}
