//! `waiting-for-promotion`: the rollout pauses until a person promotes or aborts it.

use crate::diagnose::support::counted;
use crate::model::finding::{Code, Finding};
use crate::model::{Evidence, time};
use crate::world::World;
use crate::world::promotion::waiting;
use crate::world::revision::updates;

pub(super) fn check(world: &World, out: &mut Vec<Finding>) {
    let updates = updates(world);
    for (object, body) in world.objects.workloads() {
        let subject = object.subject();
        let asked = body.replicas.clone().unwrap_or(0);
        let status = &body.status;
        let behind = status.updated.is_some_and(|updated| updated < asked || status.replicas.is_some_and(|all| updated < all));
        let Some(waits) = waiting(&subject, body, behind) else { continue };
        let since = waits.since.map(|at| format!(" since {at} ({})", time::span(time::seconds_between(at, world.now)))).unwrap_or_default();
        let stands = body
            .canary
            .as_ref()
            .and_then(|canary| {
                let step = canary.index?.saturating_add(1);
                let weight = canary.percent().map(|percent| format!(" at {percent} % of the traffic")).unwrap_or_default();
                Some(format!("; it stands at step {step} of {}{weight}", canary.steps.len()))
            })
            .unwrap_or_default();
        let mut holds = String::new();
        let mut proofs: Vec<Evidence> = Vec::new();
        if let Some(update) = updates.iter().find(|update| update.workload == subject) {
            let ready = |pods: &[&crate::model::service::Replica]| pods.iter().filter(|replica| replica.pod_ready == Ok(true)).count();
            let gpus = update.new.iter().map(|replica| replica.gpus).fold(0, u32::saturating_add);
            holds = format!(
                "; new {} of {} Ready (holding {}), old {} of {} Ready",
                ready(&update.new), update.new.len(), counted(gpus as usize, "GPU"), ready(&update.old), update.old.len()
            );
            proofs.extend(update.new.iter().take(4).filter_map(|replica| replica.evidence.first().cloned()));
        }
        let mut evidence = waits.evidence.into_iter();
        let first = evidence.next().unwrap_or_else(|| Evidence::field(&subject, "spec.paused", "true"));
        let promote = if body.canary.is_some() { "promote it, when the new revision is good" } else { "resume it (spec.paused false), when the new revision is good" };
        let abort = if body.canary.is_some() { "abort it, to go back to the stable revision and free what the canary holds" } else { "roll it back, to free what the new revision holds" };
        out.push(
            Finding::new(
                Code::WaitingForPromotion,
                &subject,
                format!("the rollout of {} waits for a person to promote or abort it{since}: {}{stands}{holds}; it is not failing", subject.name(), waits.why),
                first,
            )
            .proofs(evidence)
            .proofs(proofs)
            .remedy(promote)
            .remedy(abort)
            .not("scale its ReplicaSets: the rollout's controller sets their numbers"),
        );
    }
}

#[cfg(test)]
mod tests {
    use crate::diagnose::testkit::Kit;
    use crate::model::finding::{Code, Severity};
    use rstest::rstest;
    use serde_json::{Value, json};

    fn rollout(pause: Value) -> Kit {
        Kit::new().object(json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout", "metadata": {"name": "w", "namespace": "s"},
            "spec": {"replicas": 4, "strategy": {"canary": {"steps": [{"setWeight": 25}, {"pause": pause}, {"setWeight": 100}]}}},
            "status": {"stableRS": "a", "currentPodHash": "b", "currentStepIndex": 1, "phase": "Paused",
                "pauseConditions": [{"reason": "CanaryPauseStep", "startTime": "2026-11-09T09:50:00Z"}]}}))
    }

    #[rstest]
    #[case(json!({}), true)]
    #[case(json!({"duration": "10m"}), false)]
    fn a_pause(#[case] pause: Value, #[case] fires: bool) {
        let world = rollout(pause).build();
        assert_eq!(world.none(Code::WaitingForPromotion), !fires);
        if fires {
            let finding = world.only(Code::WaitingForPromotion);
            assert_eq!(finding.severity, Severity::Info);
            assert!(finding.summary.contains("step 2 of 3 at 25 %"), "{}", finding.summary);
        }
    }

    #[test]
    fn a_deployment_paused_before_anything_rolls_waits_for_nobody() {
        let doc = |updated: u32| {
            json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "w", "namespace": "s"},
                "spec": {"replicas": 2, "paused": true}, "status": {"replicas": 2, "updatedReplicas": updated}})
        };
        assert!(Kit::new().object(doc(2)).build().none(Code::WaitingForPromotion));
        assert!(!Kit::new().object(doc(1)).build().none(Code::WaitingForPromotion));
    }
}
