//! What several rules ask of the world in the same words.

use crate::model::engine::{HttpAnswer, HttpFailure, HttpOutcome};
use crate::model::object::{Object, Pod};
use crate::model::service::Replica;
use crate::model::{Evidence, Place, Subject};
use crate::world::World;

/// Pods that run an engine, with their objects.
pub(super) fn engine_pods(world: &World) -> impl Iterator<Item = (&Replica, &Object, &Pod)> {
    world.replicas.values().filter(|replica| replica.subject.kind() == "pod" && replica.engine.is_ok()).filter_map(|replica| {
        let (object, pod) = world.objects.pod(&replica.subject)?;
        Some((replica, object, pod))
    })
}

/// Evidence that a pod is Ready (or is not), with its time.
pub(super) fn ready_proof(object: &Object, pod: &Pod) -> Evidence {
    let subject = object.subject();
    match pod.condition("Ready") {
        Some(ready) => Evidence::new(&subject, Place::Condition("Ready".into()), ready.shown(), ready.since),
        None => Evidence::field(&subject, "status.conditions", "no Ready condition"),
    }
    .of_uid(&object.meta.uid)
}

/// The newest answer of a subject to a request of that route.
pub(super) fn last_answer<'a>(world: &'a World, subject: &Subject, route: &str) -> Option<&'a HttpAnswer> {
    world.answers.get(subject)?.iter().rev().find(|answer| answer.method == "GET" && answer.route() == route)
}

/// The newest answer that shows the port closed, if no later answer shows it open.
pub(super) fn refused<'a>(world: &'a World, subject: &Subject) -> Option<&'a HttpAnswer> {
    let answers = world.answers.get(subject)?;
    let last = answers.iter().rev().find(|answer| matches!(answer.outcome, HttpOutcome::Failed(HttpFailure::Refused)))?;
    let later = answers.iter().any(|answer| answer.port == last.port && answer.at >= last.at && answer.status().is_some());
    let page_later = world.pages.get(subject).is_some_and(|pages| pages.iter().any(|page| page.at > last.at));
    (!later && !page_later).then_some(last)
}

/// "1 pod", "3 pods".
pub(super) fn counted(n: usize, one: &str) -> String {
    if n == 1 { format!("1 {one}") } else { format!("{n} {one}s") }
}

/// A number without a needless fraction.
pub(super) fn number(value: f64) -> String {
    if value.fract() == 0.0 && value.abs() < 9e15 { format!("{}", value as i64) } else { format!("{value:.2}") }
}
