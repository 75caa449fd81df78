//! `dead-endpoint-in-rotation`: listed as ready, but the engine refuses, fails or does not answer.

use crate::diagnose::support::{engine_pods, last_answer, ready_proof};
use crate::model::Subject;
use crate::model::engine::{HttpAnswer, HttpFailure, HttpOutcome};
use crate::model::finding::{Code, Finding};
use crate::model::state::EngineState;
use crate::world::World;

pub(super) fn check(world: &World, out: &mut Vec<Finding>) {
    for (replica, object, pod) in engine_pods(world) {
        let Ok(engine) = &replica.engine else { continue };
        if replica.listing.listed != Ok(true) {
            continue;
        }
        // Called Ready and in the endpoints, and the newest answer to a health check is none: whether it was ever up does not matter to
        // the request that is sent there.
        let silent = failed_health(world, &replica.subject)
            .filter(|_| replica.pod_ready == Ok(true) && !matches!(engine.state, EngineState::Ready | EngineState::Sleeping(_) | EngineState::Paused));
        if engine.state != EngineState::Dead && silent.is_none() {
            continue;
        }
        let fronts: Vec<&str> = replica.listing.fronts.iter().map(|front| front.as_str()).collect();
        let Some(proof) = silent.map(|answer| answer.evidence()).or_else(|| engine.evidence.first().cloned()) else { continue };
        out.push(
            Finding::new(
                Code::DeadEndpointInRotation,
                &replica.subject,
                format!("{} is in the ready endpoints of {}, but {}", replica.subject.name(), fronts.join(" and "), engine.why),
                proof,
            )
            .proofs(replica.listing.evidence.iter().cloned())
            .proofs(engine.evidence.iter().cloned())
            .proof(ready_proof(object, pod))
            .remedy(format!("take it out of selection: relabel {} so that its Service or pool no longer selects it", replica.subject.name()))
            .remedy("replace the replica: add one, wait until it serves, then delete this one")
            .remedy("give it a readiness probe that asks the engine itself (GET /health on the serving port)"),
        );
    }
}

/// The newest answer to a health check, if it is a refusal, silence or a server's error.
fn failed_health<'a>(world: &'a World, subject: &Subject) -> Option<&'a HttpAnswer> {
    let newest = ["/health", "/health_generate", "/ready", "/ping"]
        .into_iter()
        .filter_map(|route| last_answer(world, subject, route))
        .max_by_key(|answer| answer.at)?;
    let failed = match &newest.outcome {
        HttpOutcome::Answered { status, .. } => *status >= 500,
        HttpOutcome::Failed(failure) => matches!(failure, HttpFailure::Refused | HttpFailure::Timeout),
    };
    failed.then_some(newest)
}

#[cfg(test)]
mod tests {
    use crate::diagnose::testkit::Kit;
    use crate::model::finding::Code;

    #[test]
    fn fires_when_a_listed_engine_that_was_up_refuses() {
        let world = Kit::new().serving_pod("a", true).answer("a", "/health", Err("connection refused")).build();
        let finding = world.only(Code::DeadEndpointInRotation);
        assert!(finding.summary.contains("service/s/a"), "{}", finding.summary);
        assert!(finding.evidence.iter().any(|e| e.value.contains("connection refused")), "{:?}", finding.evidence);
    }

    #[rstest::rstest]
    #[case(Err("timeout"))]
    #[case(Ok((503, "")))]
    fn fires_when_a_pod_called_ready_does_not_answer(#[case] answer: Result<(u16, &'static str), &'static str>) {
        let world = Kit::new().serving_pod("a", true).answer("a", "/health", answer).build();
        assert!(!world.none(Code::DeadEndpointInRotation), "{:?}", world.world.replicas);
    }

    #[test]
    fn silent_while_tokens_move() {
        use crate::diagnose::testkit::vllm_page;
        let world = Kit::new()
            .serving_pod("a", true)
            .page("a", -60, &vllm_page(3.0, 0.0, 10.0))
            .page("a", 0, &vllm_page(3.0, 0.0, 500.0))
            .answer("a", "/health", Err("timeout"))
            .build();
        assert!(world.none(Code::DeadEndpointInRotation));
    }

    #[test]
    fn silent_when_it_answers_or_is_not_listed() {
        let fine = Kit::new().serving_pod("a", true).answer("a", "/health", Ok((200, "")));
        assert!(fine.build().none(Code::DeadEndpointInRotation));
        let unlisted = Kit::new().serving_pod("a", false).answer("a", "/health", Err("connection refused"));
        assert!(unlisted.build().none(Code::DeadEndpointInRotation));
    }
}
