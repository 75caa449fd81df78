//! `pdb-blocks-drain`: a PodDisruptionBudget lets no pod go, and eviction will not pass by itself.

use crate::diagnose::support::counted;
use crate::model::engine::HttpAnswer;
use crate::model::finding::{Code, Finding, Severity};
use crate::model::object::{Budget, Node, Object, Pod};
use crate::model::{Evidence, Place, Subject};
use crate::world::World;

/// Taints of those who empty a node: kubectl, the cluster autoscaler, Karpenter.
const EMPTYING: &[&str] = &["ToBeDeletedByClusterAutoscaler", "karpenter.sh/disrupted", "karpenter.sh/disruption", "node.kubernetes.io/unschedulable"];

pub(super) fn check(world: &World, out: &mut Vec<Finding>) {
    for (object, budget) in world.objects.budgets() {
        if budget.allowed != Ok(0) || budget.expected == Ok(0) {
            continue;
        }
        let Some(selector) = &budget.selector else { continue };
        let pods: Vec<(&Object, &Pod)> = world
            .objects
            .pods_matching(&object.meta.namespace, selector)
            .filter(|(object, pod)| object.meta.deletion.is_none() && !pod.has_ended())
            .collect();
        let nodes: Vec<(&Object, &Node)> =
            world.objects.nodes().filter(|(node, body)| emptied(body) && pods.iter().any(|(_, pod)| pod.node == node.meta.name)).collect();
        let refused: Vec<&HttpAnswer> = refusals(world, &pods);
        let by_design = by_design(budget);
        // A budget short of healthy pods only for now passes by itself, unless somebody waits for it.
        if by_design || !nodes.is_empty() || !refused.is_empty() {
            out.push(finding(world, object, budget, by_design, &pods, &nodes, &refused));
        }
    }
}

fn emptied(node: &Node) -> bool {
    node.unschedulable || node.taints.iter().any(|taint| EMPTYING.contains(&taint.key.as_str()))
}

/// Whether no pod may go even when all are healthy.
fn by_design(budget: &Budget) -> bool {
    let all = match (&budget.desired_healthy, &budget.expected) {
        (Ok(desired), Ok(expected)) => *expected > 0 && desired >= expected,
        _ => matches!(budget.max_unavailable.as_deref(), Some("0" | "0%")) || budget.min_available.as_deref() == Some("100%"),
    };
    all && budget.healthy.as_ref().is_ok_and(|healthy| budget.desired_healthy.as_ref().is_ok_and(|desired| healthy >= desired))
}

/// Evictions of these pods that were answered with 429.
fn refusals<'a>(world: &'a World, pods: &[(&Object, &Pod)]) -> Vec<&'a HttpAnswer> {
    let of_pod = |answer: &HttpAnswer, object: &Object| {
        answer.route().ends_with(&format!("/namespaces/{}/pods/{}/eviction", object.meta.namespace, object.meta.name))
    };
    world.answers.values().flatten().filter(|answer| answer.status() == Some(429) && pods.iter().any(|(object, _)| of_pod(answer, object))).collect()
}

fn finding(
    world: &World,
    object: &Object,
    budget: &Budget,
    by_design: bool,
    pods: &[(&Object, &Pod)],
    nodes: &[(&Object, &Node)],
    refused: &[&HttpAnswer],
) -> Finding {
    let subject = object.subject();
    let left: Vec<&str> = pods
        .iter()
        .filter(|(_, pod)| nodes.is_empty() || nodes.iter().any(|(node, _)| node.meta.name == pod.node))
        .map(|(object, _)| object.meta.name.as_str())
        .collect();
    let number = |known: &crate::model::Known<u32>| known.as_ref().map_or_else(|_| "?".to_owned(), u32::to_string);
    let (bound, value) = match (&budget.min_available, &budget.max_unavailable) {
        (Some(min), _) => ("minAvailable", min.as_str()),
        (None, Some(max)) => ("maxUnavailable", max.as_str()),
        (None, None) => ("minAvailable", "not set"),
    };
    let counts = format!("{bound} {value}, {} of {} pods healthy, {} needed, disruptionsAllowed 0", number(&budget.healthy), number(&budget.expected), number(&budget.desired_healthy));
    let whose = match nodes {
        [] => String::new(),
        several => {
            let names: Vec<&str> = several.iter().map(|(node, _)| node.meta.name.as_str()).collect();
            format!(" and holds the drain of {}", names.join(", "))
        }
    };
    let shown = if left.is_empty() { "none of its pods was read".to_owned() } else { left.iter().take(6).copied().collect::<Vec<_>>().join(", ") };
    let outlook = if by_design {
        "all pods are healthy and none may go, so it will not pass by itself"
    } else {
        "it passes only once more pods are healthy; a pod that does not come up by itself holds it for ever"
    };
    let answers = if refused.is_empty() { "" } else { "; the 429 that evictions get is the budget's answer and no fault of the API server" };
    let mut finding = Finding::new(
        Code::PdbBlocksDrain,
        &subject,
        format!("the budget {} lets no pod go{whose} ({counts}): left are {shown}; {outlook}{answers}", subject.name()),
        Evidence::field(&subject, "status.disruptionsAllowed", "0").of_uid(&object.meta.uid),
    )
    .proof(Evidence::field(&subject, &format!("spec.{bound}"), value))
    .proof(Evidence::field(&subject, "status", counts.clone()));
    for (node, body) in nodes {
        let how = if body.unschedulable { "true".to_owned() } else { body.taints.iter().map(|taint| taint.key.as_str()).collect::<Vec<_>>().join(", ") };
        finding = finding.also(&node.subject()).proof(Evidence::field(&node.subject(), "spec.unschedulable", how));
    }
    for (pod, body) in pods.iter().filter(|(object, _)| left.contains(&object.meta.name.as_str())).take(6) {
        finding = finding.also(&pod.subject()).proof(Evidence::field(&pod.subject(), "spec.nodeName", body.node.clone()));
    }
    for answer in refused.iter().take(3) {
        finding = finding.proof(Evidence::new(&subject, Place::Http(answer.request()), answer.outcome_word(), Some(answer.at)));
    }
    if nodes.is_empty() && refused.is_empty() {
        finding = finding.severe(Severity::Warning);
    }
    let owner = owner(world, pods).map(|owner| format!(" through {owner}")).unwrap_or_default();
    if !by_design {
        finding = finding.remedy("bring up the pods that are not healthy, or set unhealthyPodEvictionPolicy AlwaysAllow, so that those may go");
    }
    let lower = if bound == "minAvailable" {
        "set a smaller minAvailable, below the number of replicas, or maxUnavailable 1 in its place"
    } else {
        "set maxUnavailable 1"
    };
    let spare = pods.len().saturating_add(1);
    finding
        .remedy(format!("add one replica elsewhere{owner} ({} in all) and let it become Ready; then minAvailable leaves room for one to go", counted(spare, "replica")))
        .remedy(lower)
        .not("delete the pod past the budget without a replica that takes its requests")
}

/// What a person would scale.
fn owner(world: &World, pods: &[(&Object, &Pod)]) -> Option<Subject> {
    let (first, _) = pods.first()?;
    let workload = world.replicas.get(&first.subject())?.workload.clone()?;
    Some(crate::systems::owners::top_of(&world.objects, &workload))
}

#[cfg(test)]
mod tests {
    use crate::diagnose::testkit::Kit;
    use crate::model::finding::{Code, Severity};
    use rstest::rstest;
    use serde_json::{Value, json};

    fn kit(spec: Value, status: Value, cordoned: bool) -> Kit {
        let mut spec = spec;
        spec["selector"] = json!({"matchLabels": {"app": "a"}});
        Kit::new()
            .object(json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "b", "namespace": "s"}, "spec": spec, "status": status}))
            .object(json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}, "spec": {"unschedulable": cordoned}}))
            .pod_with("a", |_| ())
            .pod_with("b", |_| ())
    }

    fn status(healthy: u32, desired: u32, expected: u32, allowed: u32) -> Value {
        json!({"currentHealthy": healthy, "desiredHealthy": desired, "expectedPods": expected, "disruptionsAllowed": allowed})
    }

    #[rstest]
    #[case::all_must_stay(json!({"minAvailable": 2}), status(2, 2, 2, 0), true, Some(Severity::Critical))]
    #[case::nobody_drains_yet(json!({"minAvailable": 2}), status(2, 2, 2, 0), false, Some(Severity::Warning))]
    #[case::none_may_be_missing(json!({"maxUnavailable": 0}), status(2, 2, 2, 0), true, Some(Severity::Critical))]
    #[case::one_may_go(json!({"minAvailable": 1}), status(2, 1, 2, 1), true, None)]
    #[case::one_is_ill(json!({"minAvailable": 1}), status(1, 1, 2, 0), false, None)]
    #[case::one_is_ill_and_a_drain_waits(json!({"minAvailable": 1}), status(1, 1, 2, 0), true, Some(Severity::Critical))]
    #[case::it_guards_nothing(json!({"minAvailable": 1}), status(0, 1, 0, 0), true, None)]
    fn budgets(#[case] spec: Value, #[case] status: Value, #[case] cordoned: bool, #[case] wanted: Option<Severity>) {
        let world = kit(spec, status, cordoned).build();
        let found: Vec<Severity> = world.findings.iter().filter(|finding| finding.code == Code::PdbBlocksDrain).map(|finding| finding.severity).collect();
        assert_eq!(found, wanted.into_iter().collect::<Vec<_>>());
    }

    #[test]
    fn names_the_node_and_the_pods_that_are_left() {
        let finding = kit(json!({"minAvailable": 2}), status(2, 2, 2, 0), true).build().only(Code::PdbBlocksDrain);
        let subjects: Vec<&str> = finding.subjects.iter().map(|subject| subject.as_str()).collect();
        assert_eq!(subjects, ["poddisruptionbudget/s/b", "node/n1", "pod/s/a", "pod/s/b"]);
    }
}
