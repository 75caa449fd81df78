//! `selector-overlap`: two workloads, or the targets of two autoscalers, select the same pods.
//!
//! Two Services in front of the same pods are common and fine; two controllers that count the same pods as theirs are not.

use std::collections::{BTreeMap, BTreeSet};

use crate::model::finding::{Code, Finding};
use crate::model::object::meta::Condition;
use crate::model::{Evidence, Place, Subject};
use crate::world::World;

pub(super) fn check(world: &World, out: &mut Vec<Finding>) {
    workloads(world, out);
    autoscalers(world, out);
}

fn workloads(world: &World, out: &mut Vec<Finding>) {
    // Who is at the top of its own chain and has a selector: a ReplicaSet below a Deployment selects a part of the same on purpose.
    let tops: Vec<_> = world
        .objects
        .workloads()
        .filter(|(object, _)| {
            object.meta.controller().is_none_or(|owner| world.objects.workload(&owner.subject(&object.meta.namespace)).is_none())
        })
        .filter_map(|(object, workload)| Some((object, workload.selector.as_ref()?)))
        .filter(|(_, selector)| !selector.is_empty())
        .collect();
    let mut by_namespace: BTreeMap<&str, Vec<_>> = BTreeMap::new();
    for top in tops {
        by_namespace.entry(top.0.meta.namespace.as_str()).or_default().push(top);
    }
    let mut pairs: BTreeMap<(Subject, Subject), BTreeSet<Subject>> = BTreeMap::new();
    for (object, _) in world.objects.pods() {
        let Some(candidates) = by_namespace.get(object.meta.namespace.as_str()) else { continue };
        let mut matching: Vec<Subject> =
            candidates.iter().filter(|(_, selector)| selector.matches(&object.meta.labels)).map(|(top, _)| top.subject()).collect();
        matching.sort();
        for (i, one) in matching.iter().enumerate() {
            for other in matching.iter().skip(i + 1) {
                pairs.entry((one.clone(), other.clone())).or_default().insert(object.subject());
            }
        }
    }
    for ((one, other), pods) in pairs {
        let selector = |subject: &Subject| {
            let text = world.objects.workload(subject).and_then(|(_, w)| w.selector.as_ref()).map(ToString::to_string);
            Evidence::field(subject, "spec.selector", text.unwrap_or_default())
        };
        let names: Vec<&str> = pods.iter().take(3).map(Subject::name).collect();
        out.push(
            Finding::new(
                Code::SelectorOverlap,
                &one,
                format!("{one} and {other} select the same pods ({})", names.join(", ")),
                selector(&one),
            )
            .also(&other)
            .proof(selector(&other))
            .proofs(pods.iter().take(3).map(|pod| {
                // Only the labels by which they are selected: the others say nothing here.
                let labels = world.objects.get(pod).map(|object| {
                    let asked = [&one, &other].into_iter().filter_map(|top| world.objects.workload(top)?.1.selector.as_ref());
                    asked
                        .map(|selector| selector.asked_of(&object.meta.labels))
                        .collect::<BTreeSet<_>>()
                        .into_iter()
                        .collect::<Vec<_>>()
                        .join("; ")
                });
                Evidence::field(pod, "metadata.labels", labels.unwrap_or_default())
            }))
            .remedy(
                "give each workload a label of its own in selector and template (a selector can not be changed: make the workload anew)",
            )
            .not("scale either of them by a metric of pods: an autoscaler averages over the pods of both"),
        );
    }
}

fn autoscalers(world: &World, out: &mut Vec<Finding>) {
    let ambiguous: Vec<_> = world
        .objects
        .hpas()
        .filter_map(|(object, hpa)| {
            let condition = hpa.conditions.iter().find(|c: &&Condition| c.reason == "AmbiguousSelector")?;
            Some((object, hpa.target.subject(&object.meta.namespace), condition))
        })
        .collect();
    for (object, target, condition) in &ambiguous {
        let others = ambiguous.iter().filter(|(other, other_target, _)| {
            other.meta.namespace == object.meta.namespace && other.subject() != object.subject() && other_target != target
        });
        for (other, _, other_condition) in others.filter(|(other, _, _)| object.subject() < other.subject()) {
            let proof = |subject: &Subject, condition: &Condition| {
                Evidence::new(subject, Place::Condition(condition.kind.clone()), condition.shown(), condition.since)
            };
            out.push(
                Finding::new(
                    Code::SelectorOverlap,
                    &object.subject(),
                    format!("the targets of {} and {} select the same pods, so neither HPA scales", object.subject(), other.subject()),
                    proof(&object.subject(), condition),
                )
                .also(&other.subject())
                .also(target)
                .proof(proof(&other.subject(), other_condition))
                .remedy("make the selectors of the two targets disjoint"),
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::diagnose::testkit::Kit;
    use crate::model::finding::Code;
    use serde_json::json;

    fn deployment(name: &str, labels: serde_json::Value) -> serde_json::Value {
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": "s"},
            "spec": {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}}}})
    }

    #[test]
    fn two_deployments_that_match_one_pod() {
        let world = Kit::new()
            .pod_with("p", |pod| pod["metadata"]["labels"] = json!({"app": "a", "tier": "x"}))
            .object(deployment("one", json!({"app": "a"})))
            .object(deployment("two", json!({"tier": "x"})))
            .build();
        let finding = world.only(Code::SelectorOverlap);
        assert_eq!(finding.subjects.iter().map(|s| s.as_str()).collect::<Vec<_>>(), ["deployment/s/one", "deployment/s/two"]);
    }

    #[test]
    fn a_replica_set_below_its_deployment_and_two_services_are_fine() {
        let mut set = deployment("one-1", json!({"app": "a"}));
        set["kind"] = "ReplicaSet".into();
        set["metadata"]["ownerReferences"] = json!([{"kind": "Deployment", "name": "one", "controller": true}]);
        let service = |name: &str| {
            json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name, "namespace": "s"},
            "spec": {"selector": {"app": "a"}}})
        };
        let world = Kit::new()
            .pod_with("p", |pod| pod["metadata"]["labels"] = json!({"app": "a"}))
            .object(deployment("one", json!({"app": "a"})))
            .object(set)
            .object(service("x"))
            .object(service("y"))
            .build();
        assert!(world.none(Code::SelectorOverlap));
    }

    #[test]
    fn two_autoscalers_that_say_so_themselves() {
        let hpa = |name: &str, reason: &str| {
            json!({"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": name, "namespace": "s"},
                "spec": {"scaleTargetRef": {"kind": "Deployment", "name": format!("{name}-target")}, "maxReplicas": 3},
                "status": {"conditions": [{"type": "ScalingActive", "status": "False", "reason": reason}]}})
        };
        let finding = Kit::new().object(hpa("one", "AmbiguousSelector")).object(hpa("two", "AmbiguousSelector")).build();
        assert_eq!(
            finding.only(Code::SelectorOverlap).subjects[..2].iter().map(|s| s.as_str()).collect::<Vec<_>>(),
            ["hpa/s/one", "hpa/s/two"]
        );
        let other = Kit::new().object(hpa("one", "ScalingDisabled")).object(hpa("two", "ScalingDisabled")).build();
        assert!(other.none(Code::SelectorOverlap));
    }

    #[test]
    fn an_empty_selector_is_no_claim_on_every_pod() {
        let world = Kit::new()
            .pod_with("p", |pod| pod["metadata"]["labels"] = json!({"app": "a"}))
            .object(deployment("one", json!({"app": "a"})))
            .object(deployment("two", json!({})))
            .build();
        assert!(world.none(Code::SelectorOverlap));
    }
}
