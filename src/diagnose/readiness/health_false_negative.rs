//! `health-false-negative`: health or readiness fails while the engine does serve: its token counters move.

use crate::diagnose::support::{engine_pods, last_answer, ready_proof};
use crate::model::engine::{HttpFailure, HttpOutcome};
use crate::model::finding::{Code, Finding};
use crate::model::{Evidence, Place, time};
use crate::world::World;

/// Events older than this say nothing of now, seconds.
const FRESH_S: i64 = 600;

pub(super) fn check(world: &World, out: &mut Vec<Finding>) {
    for (replica, object, pod) in engine_pods(world) {
        let Ok(engine) = &replica.engine else { continue };
        if engine.movement != Ok(true) {
            continue;
        }
        let mut failures: Vec<Evidence> = Vec::new();
        for route in ["/health", "/health_generate", "/ready", "/ping"] {
            let failed = last_answer(world, &replica.subject, route).filter(|answer| match &answer.outcome {
                HttpOutcome::Answered { status, .. } => *status >= 500,
                HttpOutcome::Failed(failure) => *failure == HttpFailure::Timeout,
            });
            failures.extend(failed.map(|answer| answer.evidence()));
        }
        let probes = world.objects.events_about(&replica.subject).into_iter().filter(|(_, event)| {
            event.reason == "Unhealthy" && event.last.is_some_and(|at| time::seconds_between(at, world.now) <= FRESH_S)
        });
        failures.extend(probes.map(|(_, event)| {
            let value = format!("{} (seen {} times)", event.message, event.count);
            Evidence::new(&replica.subject, Place::Event("Unhealthy".into()), value, event.last)
        }));
        let Some(first) = failures.first().cloned() else { continue };
        let Ok(load) = &engine.load else { continue };
        let moved: Vec<Evidence> = [&load.generation_tokens, &load.prompt_tokens]
            .into_iter()
            .filter_map(|counter| counter.as_ref().ok())
            .map(|fact| {
                let value = format!("{} and moving between the last two pages", crate::diagnose::support::number(fact.value));
                Evidence::new(&replica.subject, Place::Metric(fact.source.clone()), value, Some(fact.at))
            })
            .collect();
        out.push(
            Finding::new(
                Code::HealthFalseNegative,
                &replica.subject,
                format!(
                    "{} serves (its token counters move), but {} says that it is not well: {}",
                    replica.subject.name(),
                    first.place,
                    first.value
                ),
                first,
            )
            .proofs(failures.into_iter().skip(1))
            .proofs(moved)
            .proof(ready_proof(object, pod))
            .remedy("give the probe more time: a busy engine answers late (SGLang's /health generates a token and needs over a second)")
            .remedy("raise failureThreshold, so that one late answer does not take a serving replica out")
            .not("restart it: it serves, and a restart cuts what runs"),
        );
    }
}

#[cfg(test)]
mod tests {
    use crate::diagnose::testkit::{Kit, vllm_page};
    use crate::model::finding::Code;
    use serde_json::json;

    fn moving() -> Kit {
        Kit::new().pod_with("a", |_| ()).page("a", -60, &vllm_page(3.0, 0.0, 10.0)).page("a", 0, &vllm_page(3.0, 0.0, 500.0))
    }

    #[test]
    fn fires_on_a_late_health_answer_and_on_probe_events() {
        assert!(!moving().answer("a", "/health", Err("timeout")).build().none(Code::HealthFalseNegative));
        let event = json!({"apiVersion": "v1", "kind": "Event", "metadata": {"name": "e", "namespace": "s"}, "reason": "Unhealthy",
            "message": "Readiness probe failed: timeout", "count": 4, "lastTimestamp": "2026-11-12T09:59:00Z",
            "involvedObject": {"kind": "Pod", "namespace": "s", "name": "a"}});
        let finding = moving().object(event).build().only(Code::HealthFalseNegative);
        assert!(finding.summary.contains("Readiness probe failed"), "{}", finding.summary);
    }

    #[test]
    fn silent_when_it_is_well_or_does_not_move() {
        assert!(moving().answer("a", "/health", Ok((200, ""))).build().none(Code::HealthFalseNegative));
        let still = Kit::new().pod_with("a", |_| ()).page("a", 0, &vllm_page(3.0, 0.0, 10.0)).answer("a", "/health", Err("timeout"));
        assert!(still.build().none(Code::HealthFalseNegative));
    }
}
