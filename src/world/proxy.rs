//! What proxies (gateways) were seen to answer, told apart by the route that takes the request.
//!
//! Must not judge whether a route is right: that is `diagnose`.

use std::collections::BTreeMap;

use crate::model::engine::HttpAnswer;
use crate::model::object::{Catalogue, Object, Route, meta};
use crate::model::{Evidence, Place, Subject};

/// What a proxy was seen to do with requests, from its newest answer that says so.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Passing<'a> {
    /// A request was answered by a backend.
    Passes(&'a HttpAnswer),
    /// The proxy or what is behind it failed the request: 5xx, a closed port, silence.
    Fails(&'a HttpAnswer),
    /// Nobody was seen to ask, or the answers say neither.
    Unseen,
}

/// Routes that name this pool as a backend, in whichever API group.
pub fn routes_to<'a>(objects: &'a Catalogue, pool: &Subject) -> Vec<(&'a Object, &'a Route)> {
    objects
        .routes()
        .filter(|(object, route)| {
            route.backends.iter().any(|backend| {
                let namespace = if backend.namespace.is_empty() { &object.meta.namespace } else { &backend.namespace };
                backend.kind == "InferencePool" && backend.name == pool.name() && namespace == pool.namespace()
            })
        })
        .collect()
}

/// What shows that none of its gateways carries out a route: each says that it does not accept it, or can not resolve its backend. `None`
/// where one carries it out, or where none has said anything.
pub fn stopped(object: &Object, route: &Route) -> Option<Evidence> {
    // With several backends a reference that can not be resolved may be that of another one.
    let one = route.backends.windows(2).all(|pair| matches!(pair, [a, b] if a.name == b.name && a.kind == b.kind));
    let kinds: &[&str] = if one { &["Accepted", "ResolvedRefs"] } else { &["Accepted"] };
    let proofs: Option<Vec<Evidence>> = route
        .status
        .iter()
        .map(|parent| {
            let condition =
                kinds.iter().find_map(|kind| meta::condition(&parent.conditions, kind).filter(|condition| condition.is_false()))?;
            let place = Place::Condition(condition.kind.clone());
            Some(Evidence::new(&object.subject(), place, condition.shown(), condition.since).of_uid(&object.meta.uid))
        })
        .collect();
    proofs?.into_iter().next()
}

/// Answers of gateways to requests that this route takes, oldest first. Of two routes on one gateway the one with the longer match takes
/// the request; where both match alike (they differ in hosts or headers) nobody knows whose it was, and it counts for none.
pub fn answers_via<'a>(objects: &Catalogue, answers: &'a BTreeMap<Subject, Vec<HttpAnswer>>, route: &Subject) -> Vec<&'a HttpAnswer> {
    let Some((_, body)) = objects.route(route) else { return Vec::new() };
    let mut found: Vec<&HttpAnswer> = body
        .parents
        .iter()
        .filter_map(|gateway| answers.get(gateway))
        .flatten()
        .filter(|answer| {
            let length = |body: &Route| body.rules.iter().filter_map(|rule| rule.takes(answer.route())).max();
            let Some(own) = length(body) else { return false };
            objects
                .routes()
                .filter(|(object, other)| object.subject() != *route && other.parents.contains(&answer.target))
                .all(|(_, other)| length(other).is_none_or(|length| length < own))
        })
        .collect();
    found.sort_by_key(|answer| answer.at);
    found
}

/// Answers of gateways to requests for this pool, oldest first.
pub fn answers_for<'a>(objects: &Catalogue, answers: &'a BTreeMap<Subject, Vec<HttpAnswer>>, pool: &Subject) -> Vec<&'a HttpAnswer> {
    let mut found: Vec<&HttpAnswer> =
        routes_to(objects, pool).iter().flat_map(|(route, _)| answers_via(objects, answers, &route.subject())).collect();
    found.sort_by_key(|answer| answer.at);
    found
}

/// What the newest answer that is no older than `since` shows. Answers that blame the caller (4xx) say nothing.
pub fn passing<'a>(answers: &[&'a HttpAnswer], since: Option<jiff::Timestamp>) -> Passing<'a> {
    answers
        .iter()
        .rev()
        .filter(|answer| since.is_none_or(|since| answer.at >= since))
        .find_map(|answer| match answer.status() {
            Some(200..=299) => Some(Passing::Passes(answer)),
            Some(500..) | None => Some(Passing::Fails(answer)),
            Some(_) => None,
        })
        .unwrap_or(Passing::Unseen)
}
