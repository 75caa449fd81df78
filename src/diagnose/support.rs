//! What several rules ask of the world in the same words.

use std::collections::BTreeSet;

use crate::model::engine::{HttpAnswer, HttpFailure, HttpOutcome};
use crate::model::object::{Object, Pod, Selector};
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

/// Whether nothing of the roles of these pods is left that a front picks: each replica of them that is not among `pods` is known to be
/// unlisted. What nobody knows is no loss.
pub(super) fn nothing_left(world: &World, pods: &BTreeSet<Subject>) -> bool {
    let of_them = |subject: &Subject| {
        pods.contains(subject) || world.replicas.get(subject).is_some_and(|replica| replica.pods.iter().any(|pod| pods.contains(pod)))
    };
    world.services.values().flat_map(|service| &service.roles).filter(|role| role.replicas.iter().any(of_them)).all(|role| {
        role.replicas
            .iter()
            .filter(|subject| !of_them(subject))
            .all(|subject| world.replicas.get(subject).is_none_or(|replica| replica.listing.listed == Ok(false)))
    })
}

/// Whether a label of a pod must stay as it is: its workload selects by it or its controller sets it. A pod that loses it is orphaned:
/// another is made in its place, and it keeps its GPUs.
pub(super) fn label_is_held(world: &World, pod: &Subject, key: &str) -> bool {
    const SET_BY_CONTROLLERS: &[&str] = &[
        "leaderworkerset.sigs.k8s.io/",
        "statefulset.kubernetes.io/",
        "apps.kubernetes.io/",
        "batch.kubernetes.io/",
        "disaggregatedset.x-k8s.io/",
    ];
    matches!(key, "pod-template-hash" | "controller-revision-hash" | "rollouts-pod-template-hash")
        || SET_BY_CONTROLLERS.iter().any(|prefix| key.starts_with(prefix))
        || world
            .objects
            .owner_chain(pod)
            .iter()
            .filter_map(|owner| world.objects.workload(owner)?.1.selector.as_ref())
            .any(|selector| selector.labels.contains_key(key) || selector.expressions.iter().any(|expression| expression.key == key))
}

/// What a Service or pool selects by.
pub(super) fn selector_of<'a>(world: &'a World, front: &Subject) -> Option<&'a Selector> {
    let pool = world.objects.pool(front).and_then(|(_, pool)| pool.selector.as_ref());
    pool.or_else(|| world.objects.service(front).and_then(|(_, service)| service.selector.as_ref()))
}

/// Names in a sentence: `a`, `a and b`, `a, b and 3 more`.
pub(super) fn named(pods: &[&str]) -> String {
    match pods {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [one, two] => format!("{one} and {two}"),
        [one, two, rest @ ..] => format!("{one}, {two} and {} more", rest.len()),
    }
}
