//! `scaled-at-wrong-level`: an autoscaler or a person scales a child whose parent object sets the number.
//!
//! A system that makes both the workload and its autoscaler (KServe) knows what it does: the autoscaler and its target then have an owner
//! in common, and that is no fault.

use crate::model::finding::{Code, Finding};
use crate::model::object::Object;
use crate::model::{Evidence, Subject};
use crate::world::World;
use crate::world::levels::parent_sets_replicas;
use crate::world::owners::is_person;

pub(super) fn check(world: &World, out: &mut Vec<Finding>) {
    for (target, scaling) in &world.scaling {
        let Some(object) = world.objects.get(target) else { continue };
        let Some(parent) = parent_sets_replicas(&world.objects, object) else { continue };
        let above = world.objects.owner_chain(target);
        for root in scaling.roots().filter(|root| root.kind != crate::world::scaling::ScalerKind::Variant) {
            let family =
                world.objects.owner_chain(&root.subject).iter().any(|owner| above.contains(owner)) || above.contains(&root.subject);
            if !family {
                let proof = Evidence::field(&root.subject, "spec.scaleTargetRef", target.to_string());
                out.push(finding(object, target, &parent, root.subject.as_str(), proof).also(&root.subject));
            }
        }
    }
    for (object, _) in world.objects.workloads() {
        let target = object.subject();
        let by_person = object
            .meta
            .writers
            .iter()
            .find(|writer| is_person(writer) && writer.subresource != "status" && writer.fields.contains("spec.replicas"));
        if let Some(writer) = by_person
            && let Some(parent) = parent_sets_replicas(&world.objects, object)
        {
            let proof =
                Evidence::field(&target, "metadata.managedFields", format!("{} owns spec.replicas", writer.manager)).seen_at(writer.time);
            out.push(finding(object, &target, &parent, &writer.manager, proof));
        }
    }
}

fn finding(object: &Object, target: &Subject, parent: &Subject, who: &str, proof: Evidence) -> Finding {
    let finding = Finding::new(
        Code::ScaledAtWrongLevel,
        target,
        format!("{who} scales {target}, whose replicas {parent} sets: what it writes is undone"),
        proof,
    )
    .proof(Evidence::field(target, "metadata.ownerReferences", parent.to_string()).of_uid(&object.meta.uid))
    .also(parent);
    let finding = match parent.kind() {
        "disaggregatedset" => finding.remedy(format!(
            "set scaling.mode: External on the role of {parent} and let the autoscaler scale DisaggregatedSetRoleScaler {}-<role>",
            parent.name()
        )),
        "deployment" | "statefulset" | "leaderworkerset" | "rollout" | "cloneset" => {
            finding.remedy(format!("let the autoscaler scale {parent} (spec.scaleTargetRef), or set its spec.replicas"))
        }
        _ => finding.remedy(format!("scale {parent} by its own fields (replicas, or the bounds of its autoscaling)")),
    };
    finding.not(format!("write spec.replicas of {target}"))
}

#[cfg(test)]
mod tests {
    use super::super::kit::{deployment, hpa, written};
    use crate::diagnose::testkit::Kit;
    use crate::model::finding::Code;
    use rstest::rstest;
    use serde_json::{Value, json};

    fn owned(mut doc: Value, kind: &str, name: &str) -> Value {
        doc["metadata"]["ownerReferences"] = json!([{"apiVersion": "x.io/v1", "kind": kind, "name": name, "controller": true}]);
        doc
    }

    #[rstest]
    #[case::a_child(vec![owned(deployment(2), "Model", "m"), hpa("h", "True", "", 2)], true)]
    #[case::both_of_one_parent(vec![owned(deployment(2), "Model", "m"), owned(hpa("h", "True", "", 2), "Model", "m")], false)]
    #[case::nobodys_child(vec![deployment(2), hpa("h", "True", "", 2)], false)]
    #[case::a_person(vec![owned(written(2, "kubectl", "Update", "scale"), "Model", "m")], true)]
    #[case::its_controller(vec![owned(written(2, "manager", "Update", ""), "Model", "m")], false)]
    fn levels(#[case] docs: Vec<Value>, #[case] fires: bool) {
        let world = docs.into_iter().fold(Kit::new(), Kit::object).build();
        assert_eq!(world.none(Code::ScaledAtWrongLevel), !fires, "{:#?}", world.findings);
    }

    #[test]
    fn the_parent_is_named() {
        let world = Kit::new().object(owned(deployment(2), "DisaggregatedSet", "d")).object(hpa("h", "True", "", 2)).build();
        let finding = world.only(Code::ScaledAtWrongLevel);
        assert!(finding.remedies[0].contains("DisaggregatedSetRoleScaler d-<role>"), "{finding:?}");
    }
}
