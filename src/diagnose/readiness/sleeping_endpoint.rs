//! `sleeping-endpoint-in-rotation`: an engine asleep still stands in the ready endpoints, and every request to it hangs.

use crate::diagnose::support::engine_pods;
use crate::model::finding::{Code, Finding};
use crate::model::state::EngineState;
use crate::model::{Evidence, Subject};
use crate::world::World;

/// Labels by which people and controllers mark engines asleep (production-stack, llm-d fast model actuation).
const SLEEP_LABELS: &[&str] = &["sleeping", "llm-d.ai/sleeping", "dual-pods.llm-d.ai/sleeping"];

pub(super) fn check(world: &World, out: &mut Vec<Finding>) {
    let asleep: Vec<_> = engine_pods(world)
        .filter(|(replica, _, _)| {
            replica.listing.listed == Ok(true)
                && replica.engine.as_ref().is_ok_and(|engine| matches!(engine.state, EngineState::Sleeping(_)))
        })
        .collect();
    // One finding a front: what is wrong is the set from which it picks.
    let mut by_front: std::collections::BTreeMap<Vec<Subject>, Vec<_>> = std::collections::BTreeMap::new();
    for entry in asleep {
        by_front.entry(entry.0.listing.fronts.clone()).or_default().push(entry);
    }
    for (fronts, pods) in by_front {
        let names: Vec<&str> = pods.iter().map(|(replica, _, _)| replica.subject.name()).collect();
        let fronts: Vec<&str> = fronts.iter().map(Subject::as_str).collect();
        let mut finding: Option<Finding> = None;
        for (replica, object, _) in &pods {
            let Ok(engine) = &replica.engine else { continue };
            let Some(proof) = engine.evidence.first().cloned() else { continue };
            let next = match finding.take() {
                None => Finding::new(
                    Code::SleepingEndpointInRotation,
                    &replica.subject,
                    format!(
                        "{} asleep and still in the ready endpoints of {}: requests sent there hang until {} woken",
                        if names.len() == 1 { format!("{} is", names.join("")) } else { format!("{} are", names.join(" and ")) },
                        fronts.join(" and "),
                        if names.len() == 1 { "it is" } else { "they are" },
                    ),
                    proof,
                ),
                Some(finding) => finding.also(&replica.subject).proof(proof),
            };
            let label = SLEEP_LABELS.iter().find_map(|key| Some((key, object.meta.label(key)?)));
            let label = match label {
                Some((key, value)) => Evidence::field(&replica.subject, &format!("metadata.labels[{key}]"), value),
                None => Evidence::field(&replica.subject, "metadata.labels", "no sleeping label: only the engine's own answer tells"),
            };
            finding = Some(next.proofs(replica.listing.evidence.iter().cloned()).proof(label));
        }
        out.extend(finding.map(|finding| {
            finding
                .remedy("take the sleeping replicas out of selection before anything else")
                .remedy("or wake them: POST /wake_up, then wait until they serve")
                .not("count them as capacity: /health answers 200 while an engine sleeps")
        }));
    }
}

#[cfg(test)]
mod tests {
    use crate::diagnose::testkit::Kit;
    use crate::model::finding::Code;

    #[test]
    fn fires_once_for_all_that_sleep_behind_one_service() {
        let world = Kit::new()
            .serving_pod("a", true)
            .serving_pod("b", true)
            .answer("a", "/health", Ok((200, "")))
            .answer("a", "/is_sleeping", Ok((200, r#"{"is_sleeping":true}"#)))
            .answer("b", "/health", Ok((200, "")))
            .answer("b", "/is_sleeping", Ok((200, r#"{"is_sleeping":false}"#)))
            .build();
        let finding = world.only(Code::SleepingEndpointInRotation);
        assert_eq!(finding.subjects.iter().map(|s| s.as_str()).collect::<Vec<_>>(), ["pod/s/a"]);
        assert!(finding.evidence.iter().any(|e| e.value.contains("no sleeping label")), "{:?}", finding.evidence);
    }

    #[test]
    fn silent_when_it_is_out_of_the_endpoints() {
        let world = Kit::new().serving_pod("a", false).answer("a", "/is_sleeping", Ok((200, r#"{"is_sleeping":true}"#))).build();
        assert!(world.none(Code::SleepingEndpointInRotation));
    }
}
