//! `dead-endpoint-in-rotation`: listed as ready, but the engine refuses, fails or does not answer.

use crate::diagnose::support::{engine_pods, ready_proof};
use crate::model::finding::{Code, Finding};
use crate::model::state::EngineState;
use crate::world::World;

pub(super) fn check(world: &World, out: &mut Vec<Finding>) {
    for (replica, object, pod) in engine_pods(world) {
        let Ok(engine) = &replica.engine else { continue };
        if replica.listing.listed != Ok(true) || engine.state != EngineState::Dead {
            continue;
        }
        let fronts: Vec<&str> = replica.listing.fronts.iter().map(|front| front.as_str()).collect();
        let Some(proof) = engine.evidence.first().cloned() else { continue };
        out.push(
            Finding::new(
                Code::DeadEndpointInRotation,
                &replica.subject,
                format!("{} is in the ready endpoints of {}, but {}", replica.subject.name(), fronts.join(" and "), engine.why),
                proof,
            )
            .proofs(replica.listing.evidence.iter().cloned())
            .proofs(engine.evidence.iter().skip(1).cloned())
            .proof(ready_proof(object, pod))
            .remedy(format!("take it out of selection: relabel {} so that its Service or pool no longer selects it", replica.subject.name()))
            .remedy("replace the replica: add one, wait until it serves, then delete this one")
            .remedy("give it a readiness probe that asks the engine itself (GET /health on the serving port)"),
        );
    }
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

    #[test]
    fn silent_when_it_answers_or_is_not_listed() {
        let fine = Kit::new().serving_pod("a", true).answer("a", "/health", Ok((200, "")));
        assert!(fine.build().none(Code::DeadEndpointInRotation));
        let unlisted = Kit::new().serving_pod("a", false).answer("a", "/health", Err("connection refused"));
        assert!(unlisted.build().none(Code::DeadEndpointInRotation));
    }
}
