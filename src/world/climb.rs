//! The ladder of one pod: for each stage the time at which it was reached and the evidence that tells it best.

use super::judge::{PodCase, Verdict, unmet_gates};
use crate::model::ladder::{Ladder, Rung, Stage};
use crate::model::object::ContainerState;
use crate::model::object::meta::Condition;
use crate::model::state::{EngineState, ReplicaState};
use crate::model::unknown::unknown;
use crate::model::{Evidence, Known, Place, Subject, Unknown};

/// Climbs the ladder of a pod as far as the evidence goes. `verdict` says what stands in the way of the next stage.
pub fn climb(case: &PodCase, verdict: &Verdict) -> Ladder {
    let subject = case.object.subject();
    let meta = &case.object.meta;
    let uid = meta.uid.as_str();
    let mut ladder = Ladder::blank();
    let reached = |at: Option<jiff::Timestamp>, evidence: Evidence| Rung::Reached {
        at: at.ok_or_else(|| Unknown::because("nothing tells when")),
        evidence: evidence.of_uid(uid),
    };
    let proof =
        |condition: &Condition| Evidence::new(&subject, Place::Condition(condition.kind.clone()), condition.shown(), condition.since);
    let created = meta.created;
    ladder.set(
        Stage::Requested,
        reached(created, Evidence::field(&subject, "metadata.creationTimestamp", created.map(|at| at.to_string()).unwrap_or_default())),
    );

    let scheduled = case.pod.condition("PodScheduled").filter(|condition| condition.is_true());
    let bound = scheduled.is_some() || !case.pod.node.is_empty();
    let gated = verdict.state == ReplicaState::WaitingAdmission;
    ladder.set(
        Stage::Admitted,
        match gated {
            true => not_reached(verdict),
            // Without a gate it is admitted from the start; when a gate was lifted nobody records.
            false => reached(created, Evidence::field(&subject, "spec.schedulingGates", "none")),
        },
    );
    ladder.set(
        Stage::Scheduled,
        match (bound, scheduled) {
            (true, Some(condition)) => reached(condition.since, proof(condition)),
            (true, None) => reached(None, Evidence::field(&subject, "spec.nodeName", case.pod.node.clone())),
            (false, _) if gated => blocked(),
            (false, _) => not_reached(verdict),
        },
    );

    let status = case.status();
    let since = status.and_then(|status| match &status.state {
        ContainerState::Running { since } => Some(*since),
        ContainerState::Terminated(end) => Some(end.started),
        _ => None,
    });
    let ever_ran = since.or_else(|| status.and_then(|status| status.last.as_ref()).map(|last| last.started));
    let pulled_event = case.objects.events_about(&subject).into_iter().rev().find(|(_, event)| event.reason == "Pulled");
    ladder.set(
        Stage::Pulled,
        match (pulled_event, ever_ran) {
            (Some((_, event)), _) => {
                reached(event.first, Evidence::new(&subject, Place::Event("Pulled".into()), event.message.clone(), event.first))
            }
            (None, Some(_)) => reached(None, Evidence::field(&subject, "status.containerStatuses[].state", "a container has run")),
            (None, None) if !bound => blocked(),
            (None, None) => not_reached(verdict),
        },
    );
    let running = matches!(status.map(|status| &status.state), Some(ContainerState::Running { .. }));
    ladder.set(
        Stage::Started,
        match (since, running) {
            (Some(at), true) => {
                let name = status.map_or("", |status| status.name.as_str());
                let path = format!("status.containerStatuses[{name}].state.running.startedAt");
                reached(at, Evidence::field(&subject, &path, at.map(|at| at.to_string()).unwrap_or_default()))
            }
            _ if ladder.has(Stage::Pulled) => not_reached(verdict),
            _ => blocked(),
        },
    );

    engine_stages(case, verdict, &mut ladder, &reached);

    let ready = case.pod.condition("Ready");
    ladder.set(
        Stage::PodReady,
        match (case.ready, ready) {
            (Ok(true), Some(condition)) => reached(condition.since, proof(condition)),
            (Ok(true), None) => reached(None, Evidence::field(&subject, "status.conditions", "Ready")),
            (Ok(false), _) => {
                let gates = unmet_gates(case.pod);
                let why = match (gates.is_empty(), ready) {
                    (false, _) => format!("readiness gate {} is not met", gates.join(", ")),
                    (true, Some(condition)) if !condition.message.is_empty() => condition.message.clone(),
                    _ => String::new(),
                };
                Rung::NotReached { why, evidence: ready.map(&proof) }
            }
            (Err(why), _) => Rung::Unknown(why.clone()),
        },
    );
    let listing = case.listing;
    let last = listing.evidence.last().cloned();
    ladder.set(Stage::Listed, known_rung(&listing.listed, &listing.why, last.clone(), &subject));
    ladder.set(
        Stage::Routed,
        match &listing.routed {
            Err(why) if why.why().contains("has no router") => Rung::NotApplicable(why.why().to_owned()),
            routed => known_rung(routed, &listing.why, last, &subject),
        },
    );
    ladder
}

fn known_rung(known: &Known<bool>, why: &str, evidence: Option<Evidence>, subject: &Subject) -> Rung {
    match known {
        Ok(true) => Rung::Reached {
            at: unknown("nothing records when"),
            evidence: evidence.unwrap_or_else(|| Evidence::field(subject, "metadata.labels", "selected")),
        },
        Ok(false) => Rung::NotReached { why: why.to_owned(), evidence },
        Err(why) => Rung::Unknown(why.clone()),
    }
}

fn not_reached(verdict: &Verdict) -> Rung {
    Rung::NotReached { why: verdict.why.first().cloned().unwrap_or_default(), evidence: verdict.evidence.first().cloned() }
}

/// A lower stage says why.
fn blocked() -> Rung {
    Rung::NotReached { why: String::new(), evidence: None }
}

/// Stages 5 to 7, from what the engine itself shows.
fn engine_stages(case: &PodCase, verdict: &Verdict, ladder: &mut Ladder, reached: &dyn Fn(Option<jiff::Timestamp>, Evidence) -> Rung) {
    let subject = case.object.subject();
    if !ladder.has(Stage::Started) {
        for stage in [Stage::Loading, Stage::Warming, Stage::EngineReady] {
            ladder.set(stage, blocked());
        }
        return;
    }
    let Some(engine) = case.engine else {
        let why = "it runs no engine that is known";
        for stage in [Stage::Loading, Stage::Warming, Stage::EngineReady] {
            ladder.set(stage, Rung::NotApplicable(why.into()));
        }
        return;
    };
    // How far the engine has come by its own word; `None` when it says nothing.
    let height = match &engine.state {
        EngineState::Starting | EngineState::Downloading => Some(Stage::Started),
        EngineState::Loading => Some(Stage::Loading),
        EngineState::Warming => Some(Stage::Warming),
        // It was ready once: weights are in, and it does not serve now.
        EngineState::Sleeping(_) | EngineState::Waking | EngineState::Paused | EngineState::Stalled | EngineState::Dead => {
            Some(Stage::Warming)
        }
        EngineState::Ready | EngineState::Draining => Some(Stage::EngineReady),
        EngineState::Unknown(_) => None,
    };
    let engine_proof = || engine.evidence.first().cloned().unwrap_or_else(|| Evidence::field(&subject, "status", engine.why.clone()));
    for stage in [Stage::Loading, Stage::Warming, Stage::EngineReady] {
        let seen = engine.stages.get(&stage);
        let rung = match (height, seen) {
            (Some(height), seen) if stage <= height => match seen {
                Some(fact) => {
                    let value = format!("{stage} since {}", fact.at);
                    reached(Some(fact.at), Evidence::new(&subject, Place::Log(fact.source.clone()), value, Some(fact.at)))
                }
                None => reached(None, engine_proof()),
            },
            (Some(_), _) if stage == Stage::EngineReady || verdict.state != ReplicaState::Unknown => {
                Rung::NotReached { why: engine.why.clone(), evidence: engine.evidence.first().cloned() }
            }
            (_, Some(fact)) => {
                reached(Some(fact.at), Evidence::new(&subject, Place::Log(fact.source.clone()), stage.word(), Some(fact.at)))
            }
            _ => Rung::Unknown(Unknown::because(engine.why.clone())),
        };
        ladder.set(stage, rung);
    }
}
