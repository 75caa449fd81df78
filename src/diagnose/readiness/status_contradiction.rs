//! `status-contradiction`: an object says ready, and what it stands for is not.

use crate::model::finding::{Code, Finding};
use crate::model::object::Body;
use crate::model::service::Replica;
use crate::model::{Evidence, Place, Subject};
use crate::world::World;
use serde_json::Value;

pub(super) fn check(world: &World, out: &mut Vec<Finding>) {
    workloads(world, out);
    custom_resources(world, out);
}

/// A workload's status counts more Ready replicas than are Ready, and is of the present generation.
fn workloads(world: &World, out: &mut Vec<Finding>) {
    for (object, workload) in world.objects.workloads() {
        let subject = object.subject();
        let Some(view) = world.workloads.get(&subject) else { continue };
        let (Some(said), Ok(seen), Ok(existing)) = (workload.status.ready, &view.funnel.pod_ready, &view.funnel.existing) else { continue };
        // All replicas that the status counts must have been seen: else the difference proves nothing.
        let complete = workload.status.replicas.is_none_or(|replicas| replicas <= *existing);
        if said <= *seen || !complete {
            continue;
        }
        let not_ready = view.replicas.iter().filter_map(|replica| world.replicas.get(replica)).filter(|r| r.pod_ready == Ok(false));
        let proofs: Vec<Evidence> = not_ready.flat_map(|replica| proof_of(world, replica)).take(4).collect();
        out.push(
            Finding::new(
                Code::StatusContradiction,
                &subject,
                format!("{subject} says that {said} are ready, of its pods {seen} are"),
                Evidence::field(&subject, "status.readyReplicas", said.to_string()),
            )
            .proofs(proofs)
            .remedy("believe the pods: the status is behind, or its controller does not run"),
        );
    }
}

fn proof_of(world: &World, replica: &Replica) -> Option<Evidence> {
    let pod = replica.pods.first()?;
    let (object, pod) = world.objects.pod(pod)?;
    Some(crate::diagnose::support::ready_proof(object, pod))
}

/// A custom resource above engines says Ready, and none of its engines serves although some are wanted.
fn custom_resources(world: &World, out: &mut Vec<Finding>) {
    for (subject, object) in world.objects.all() {
        let Body::Other(body) = &object.body else { continue };
        let Some((place, value)) = says_ready(body) else { continue };
        let below: Vec<&Replica> =
            world.replicas.values().filter(|replica| replica.engine.is_ok() && stands_for(world, subject, replica)).collect();
        if below.is_empty() || below.iter().any(|replica| replica.state.serves()) {
            continue;
        }
        let states: Vec<String> = below.iter().take(4).map(|replica| format!("{} {}", replica.subject.name(), replica.state)).collect();
        out.push(
            Finding::new(
                Code::StatusContradiction,
                subject,
                format!("{subject} says that it is ready, and none of its engines serves: {}", states.join(", ")),
                Evidence::new(subject, place, value, None),
            )
            .proofs(below.iter().take(4).filter_map(|replica| {
                let first = replica.evidence.first()?;
                Some(Evidence { value: format!("{} ({})", replica.state, first.value), ..first.clone() })
            }))
            .remedy("believe the engines: the object's status looks at processes or pods, not at what they serve"),
        );
    }
}

/// Whether the object stands above a replica: as an owner, or by a label that names it.
fn stands_for(world: &World, subject: &Subject, replica: &Replica) -> bool {
    let chain = |from: &Subject| world.objects.owner_chain(from).contains(subject);
    replica.pods.iter().any(chain) || replica.workload.as_ref().is_some_and(|workload| workload == subject || chain(workload))
}

/// Where a custom resource says that it is ready: a Ready or Available condition that is True, or a state or phase in words.
fn says_ready(body: &Value) -> Option<(Place, String)> {
    let status = body.get("status")?;
    let conditions = status.get("conditions").and_then(Value::as_array).into_iter().flatten();
    for kind in ["Ready", "Available"] {
        let said = conditions.clone().find(|c| c.get("type").and_then(Value::as_str) == Some(kind));
        match said.and_then(|c| c.get("status")).and_then(Value::as_str) {
            Some("True") => return Some((Place::Condition(kind.into()), "True".into())),
            Some(_) => return None,
            None => {}
        }
    }
    ["phase", "state"].iter().find_map(|key| {
        let word = status.get(key)?.as_str()?;
        matches!(word.to_ascii_lowercase().as_str(), "ready" | "running" | "active" | "successful" | "healthy" | "loaded")
            .then(|| (Place::Field(format!("status.{key}")), word.to_owned()))
    })
}

#[cfg(test)]
mod tests {
    use crate::diagnose::testkit::Kit;
    use crate::model::finding::Code;
    use rstest::rstest;
    use serde_json::{Value, json};

    fn kit(ready: u32) -> Kit {
        Kit::new().loading_pod("a-0").owned("a-0", "StatefulSet", "a").object(json!({"apiVersion": "apps/v1", "kind": "StatefulSet",
            "metadata": {"name": "a", "namespace": "s"}, "spec": {"replicas": 1}, "status": {"replicas": 1, "readyReplicas": ready}}))
    }

    #[test]
    fn a_workload_that_counts_more_than_there_are() {
        assert_eq!(kit(1).build().only(Code::StatusContradiction).subjects[0].as_str(), "statefulset/s/a");
        assert!(kit(0).build().none(Code::StatusContradiction));
    }

    fn model(name: &str) -> Value {
        json!({"apiVersion": "x.io/v1", "kind": "Model", "metadata": {"name": name, "namespace": "s"}, "status": {"phase": "Running"}})
    }

    #[test]
    fn a_custom_resource_is_judged_by_its_own_engines_and_by_one_that_serves() {
        assert!(kit(0).object(model("another")).build().none(Code::StatusContradiction), "no engine below it was seen");
        let one_serves = Kit::new().pod_with("b-0", |_| ()).owned_object("pod/s/b-0", "Model", "m", "x.io/v1").object(model("m"));
        assert!(one_serves.build().none(Code::StatusContradiction));
    }

    #[test]
    fn pods_that_were_not_read_prove_nothing() {
        let mut kit = kit(2);
        kit.change("statefulset/s/a", |set| set["status"]["replicas"] = 3.into());
        assert!(kit.build().none(Code::StatusContradiction), "one of three pods was read");
    }

    #[rstest]
    #[case(json!({"conditions": [{"type": "Ready", "status": "True"}]}), true)]
    #[case(json!({"phase": "Running"}), true)]
    #[case(json!({"conditions": [{"type": "Ready", "status": "False"}], "phase": "Running"}), false)]
    #[case(json!({}), false)]
    fn a_custom_resource_above_an_engine_that_does_not_serve(#[case] status: Value, #[case] fires: bool) {
        let world = kit(0)
            .owned_object("statefulset/s/a", "Model", "m", "x.io/v1")
            .object(json!({"apiVersion": "x.io/v1", "kind": "Model", "metadata": {"name": "m", "namespace": "s"}, "status": status}))
            .build();
        assert_eq!(world.none(Code::StatusContradiction), !fires);
    }
}
