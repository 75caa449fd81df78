//! `readiness-gate-unmet`: containers (and engine) are ready, a readiness gate of the pod is not.

use crate::diagnose::support::ready_proof;
use crate::model::finding::{Code, Finding};
use crate::model::object::meta::Condition;
use crate::model::{Evidence, Place};
use crate::world::World;
use crate::world::judge::unmet_gates;

pub(super) fn check(world: &World, out: &mut Vec<Finding>) {
    for (object, pod) in world.objects.pods() {
        if pod.has_ended() || object.meta.deletion.is_some() {
            continue;
        }
        let containers = pod.condition("ContainersReady");
        if !containers.is_some_and(Condition::is_true) || pod.condition("Ready").is_some_and(Condition::is_true) {
            continue;
        }
        let gates = unmet_gates(pod);
        let (Some(first), Some(containers)) = (gates.first(), containers) else { continue };
        let subject = object.subject();
        let said = |gate: &str| match pod.condition(gate) {
            Some(condition) => Evidence::new(&subject, Place::Condition(gate.to_owned()), condition.shown(), condition.since),
            None => Evidence::new(&subject, Place::Condition(gate.to_owned()), "not set by anybody", None),
        };
        let all = gates.join(", ");
        out.push(
            Finding::new(
                Code::ReadinessGateUnmet,
                &subject,
                format!("{}: all containers are ready, but its readiness gate {all} is not met, so it is not listed", subject.name()),
                said(first),
            )
            .proofs(gates.iter().skip(1).map(|gate| said(gate)))
            .proof(Evidence::field(&subject, "spec.readinessGates", pod.spec.readiness_gates.join(", ")))
            .proof(Evidence::new(&subject, Place::Condition("ContainersReady".into()), containers.shown(), containers.since))
            .proof(ready_proof(object, pod))
            .remedy(format!("look at the controller that sets the condition {all}: it has not, or says False"))
            .not("restart the engine: it is not the engine that holds the pod back"),
        );
    }
}

#[cfg(test)]
mod tests {
    use crate::diagnose::testkit::Kit;
    use crate::model::finding::Code;
    use rstest::rstest;
    use serde_json::{Value, json};

    fn world(gate_condition: Option<Value>, containers_ready: &str) -> crate::diagnose::testkit::Judged {
        Kit::new()
            .pod_with("a", |pod| {
                pod["spec"]["readinessGates"] = json!([{"conditionType": "x.io/in"}]);
                let mut conditions = vec![
                    json!({"type": "ContainersReady", "status": containers_ready}),
                    json!({"type": "Ready", "status": "False"}),
                    json!({"type": "PodScheduled", "status": "True"}),
                ];
                conditions.extend(gate_condition);
                pod["status"]["conditions"] = json!(conditions);
            })
            .build()
    }

    #[rstest]
    #[case(None)]
    #[case(Some(json!({"type": "x.io/in", "status": "False"})))]
    fn fires(#[case] condition: Option<Value>) {
        assert!(world(condition, "True").only(Code::ReadinessGateUnmet).summary.contains("x.io/in"));
    }

    #[rstest]
    #[case(Some(json!({"type": "x.io/in", "status": "True"})), "True")]
    #[case(None, "False")]
    fn silent(#[case] condition: Option<Value>, #[case] containers: &str) {
        assert!(world(condition, containers).none(Code::ReadinessGateUnmet));
    }

    #[test]
    fn a_pod_that_leaves_or_has_ended_waits_for_nothing() {
        let leaving = |change: fn(&mut Value)| {
            Kit::new().pod_with("a", |pod| {
                pod["spec"]["readinessGates"] = json!([{"conditionType": "x.io/in"}]);
                pod["status"]["conditions"] = json!([{"type": "ContainersReady", "status": "True"}, {"type": "Ready", "status": "False"}]);
                change(pod);
            })
        };
        assert!(!leaving(|_| ()).build().none(Code::ReadinessGateUnmet));
        assert!(leaving(|pod| pod["status"]["conditions"][1]["status"] = "True".into()).build().none(Code::ReadinessGateUnmet));
        let deleted = leaving(|pod| pod["metadata"]["deletionTimestamp"] = "2026-11-12T10:00:20Z".into());
        assert!(deleted.build().none(Code::ReadinessGateUnmet));
        assert!(leaving(|pod| pod["status"]["phase"] = "Failed".into()).build().none(Code::ReadinessGateUnmet));
    }
}
