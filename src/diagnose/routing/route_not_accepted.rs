//! `route-not-accepted`: a gateway does not accept the route, or can not resolve its backend.
//!
//! The usual cause after the move to InferencePool v1: the backend still names the old API group, in which no pool is left. `Accepted` is
//! True then all the same: it speaks of the route and its gateway, not of the backend.

use super::proof::{condition_proof, said};
use crate::model::finding::{Code, Finding};
use crate::model::object::meta::condition;
use crate::model::object::network::{Backend, ParentStatus};
use crate::model::object::{Object, Route};
use crate::model::{Evidence, Subject};
use crate::world::World;
use crate::world::proxy::{Passing, answers_via, passing};

pub(super) fn check(world: &World, out: &mut Vec<Finding>) {
    for (object, route) in world.objects.routes() {
        if let Some(finding) = look(world, object, route) {
            out.push(told_by_proxy(world, object, finding));
        }
    }
}

fn look(world: &World, object: &Object, route: &Route) -> Option<Finding> {
    let subject = object.subject();
    let denied = route.status.iter().find_map(|parent| {
        let condition =
            ["Accepted", "ResolvedRefs"].iter().find_map(|kind| condition(&parent.conditions, kind).filter(|c| c.is_false()))?;
        Some((parent, condition))
    });
    let wrong = route.backends.iter().find_map(|backend| Some((backend, wrong_group(world, object, backend)?)));
    let resolved = |parent: &ParentStatus| condition(&parent.conditions, "ResolvedRefs").is_some_and(|condition| condition.is_true());
    let mut finding = match (denied, &wrong) {
        (Some((parent, denied)), _) => {
            let mut words = format!("{} does not carry out the route {}: {}", parent.parent, subject.name(), said(denied));
            if let Some((backend, pool)) = &wrong {
                words = format!("{words}; {}", groups(backend, pool));
            }
            let mut finding = Finding::new(Code::RouteNotAccepted, &subject, words, condition_proof(object, denied)).also(&parent.parent);
            if denied.kind != "Accepted"
                && let Some(accepted) = condition(&parent.conditions, "Accepted").filter(|accepted| accepted.is_true())
            {
                finding = finding
                    .proof(condition_proof(object, accepted))
                    .not("take Accepted True for a route that works: it does not speak of the backend");
            }
            finding
        }
        // A gateway that has resolved the reference knows that group.
        (None, Some((backend, pool))) if !route.status.iter().any(resolved) => {
            let proof = Evidence::field(&subject, "spec.rules[].backendRefs[].group", backend.group.clone());
            Finding::new(Code::RouteNotAccepted, &subject, format!("the route {}: {}", subject.name(), groups(backend, pool)), proof)
        }
        _ if route.status.is_empty() && !route.parents.is_empty() && !just_made(world, object) => {
            let gateways: Vec<String> = route.parents.iter().map(ToString::to_string).collect();
            let words = format!("no gateway has taken up the route {}, which asks for {}", subject.name(), gateways.join(", "));
            let proof = Evidence::field(&subject, "status.parents", "none").of_uid(&object.meta.uid);
            Finding::new(Code::RouteNotAccepted, &subject, words, proof)
                .remedy(format!("see that {} exists and that its listeners allow routes of this namespace", gateways.join(", ")))
        }
        _ => return None,
    };
    if let Some((backend, pool)) = &wrong {
        let group = pool.group();
        finding = finding
            .also(&pool.subject())
            .proof(Evidence::field(&subject, "spec.rules[].backendRefs[].group", backend.group.clone()))
            .proof(Evidence::field(&pool.subject(), "apiVersion", pool.api_version.clone()))
            .remedy(format!("name the group of the pool that is there: {group}, in place of {}", named(&backend.group)))
            .not("restart engines or router: they are not asked at all");
        finding = finding.proofs(group_unknown(world, backend));
    } else {
        for backend in &route.backends {
            if let Some(missing) = missing(world, object, backend) {
                finding = finding.remedy(format!("create {missing}, or name a backend that exists")).proof(Evidence::field(
                    &subject,
                    "spec.rules[].backendRefs",
                    format!("{missing} is not seen"),
                ));
            }
        }
        if finding.remedies.is_empty() {
            finding = finding.remedy("correct what the condition names: parentRef, hostname, listener or backend of the route");
        }
    }
    Some(finding)
}

fn groups(backend: &Backend, pool: &Object) -> String {
    format!(
        "its backend names the group {}, in which no pool {} is seen; the pool is in {}",
        named(&backend.group),
        backend.name,
        pool.group()
    )
}

fn named(group: &str) -> &str {
    if group.is_empty() { "of the core API" } else { group }
}

fn just_made(world: &World, object: &Object) -> bool {
    object.meta.created.is_some_and(|at| crate::model::time::seconds_between(at, world.now) < 60)
}

fn pool_named(route: &Object, backend: &Backend) -> Subject {
    let namespace = if backend.namespace.is_empty() { &route.meta.namespace } else { &backend.namespace };
    Subject::object(&backend.kind, namespace, &backend.name)
}

/// The pool of that name that exists in another group than the backend says.
fn wrong_group<'a>(world: &'a World, route: &Object, backend: &Backend) -> Option<&'a Object> {
    let (pool, _) = world.objects.pool(&pool_named(route, backend)).filter(|_| backend.kind == "InferencePool")?;
    (pool.group() != backend.group).then_some(pool)
}

/// A backend of a kind that is read here and that does not exist, where others of its kind are seen in the namespace.
fn missing(world: &World, route: &Object, backend: &Backend) -> Option<Subject> {
    let subject = pool_named(route, backend);
    let others = match backend.kind.as_str() {
        "InferencePool" => world.objects.pools().any(|(object, _)| object.meta.namespace == subject.namespace()),
        "Service" => world.objects.services().any(|(object, _)| object.meta.namespace == subject.namespace()),
        _ => false,
    };
    (others && world.objects.get(&subject).is_none()).then_some(subject)
}

/// The API server's answer that it does not serve that group.
fn group_unknown(world: &World, backend: &Backend) -> Option<Evidence> {
    let prefix = format!("/apis/{}/", backend.group);
    let answers = world.answers.values().flatten();
    let answer = answers.filter(|answer| answer.path.starts_with(&prefix)).max_by_key(|answer| answer.at)?;
    (answer.status() == Some(404)).then(|| answer.evidence())
}

/// Adds what the proxy was seen to answer to requests of that route.
fn told_by_proxy(world: &World, object: &Object, finding: Finding) -> Finding {
    let answers = answers_via(&world.objects, &world.answers, &object.subject());
    match passing(&answers, None) {
        Passing::Fails(answer) => {
            let mut finding = finding.proof(answer.evidence());
            finding.summary = format!("{}; callers get {}", finding.summary, answer.outcome_word());
            finding
        }
        Passing::Passes(answer) => finding.proof(answer.evidence()),
        Passing::Unseen => match answers.last() {
            Some(answer) => {
                let mut finding = finding.proof(answer.evidence());
                finding.summary = format!("{}; callers get {}", finding.summary, answer.outcome_word());
                finding
            }
            None => finding,
        },
    }
}

#[cfg(test)]
mod tests {
    use crate::diagnose::testkit::Kit;
    use crate::model::finding::Code;
    use rstest::rstest;

    #[rstest]
    #[case::well(&[("Accepted", "True"), ("ResolvedRefs", "True")], false)]
    #[case::denied(&[("Accepted", "False")], true)]
    #[case::unresolved(&[("Accepted", "True"), ("ResolvedRefs", "False")], true)]
    #[case::pending(&[("Accepted", "Unknown")], false)]
    fn by_status(#[case] status: &[(&str, &str)], #[case] fires: bool) {
        let world = Kit::new().pod_with("a", |_| ()).pool("p", |_| ()).route("r", "p", status).build();
        assert_eq!(!world.none(Code::RouteNotAccepted), fires, "{:?}", world.findings);
    }

    #[test]
    fn the_old_group_is_named_with_the_one_that_is_right_and_with_what_callers_get() {
        let finding = Kit::new()
            .pod_with("a", |_| ())
            .pool("p", |_| ())
            .route("r", "p", &[("Accepted", "True"), ("ResolvedRefs", "False")])
            .with("httproute/s/r", |route| {
                route["spec"]["rules"][0]["backendRefs"][0]["group"] = "inference.networking.x-k8s.io".into();
            })
            .proxy_answer(-3, "/v1/chat/completions", 500)
            .build()
            .only(Code::RouteNotAccepted);
        assert!(
            finding.summary.contains("inference.networking.x-k8s.io") && finding.summary.contains("callers get 500"),
            "{}",
            finding.summary
        );
        assert!(finding.remedies.iter().any(|remedy| remedy.contains("inference.networking.k8s.io")), "{:?}", finding.remedies);
        assert!(finding.subjects.iter().any(|subject| subject.as_str() == "inferencepool/s/p"));
    }

    #[test]
    fn a_route_that_nobody_took_up() {
        let world = Kit::new()
            .pool("p", |_| ())
            .route("r", "p", &[])
            .with("httproute/s/r", |route| route["status"] = serde_json::json!({}))
            .build();
        assert!(world.only(Code::RouteNotAccepted).summary.contains("gateway/s/gw"));
    }
}
