//! `pool-not-accepted`: no gateway accepts the pool, so nothing sends to it whatever its pods and its router say.

use super::proof::{condition_proof, said};
use crate::model::finding::{Code, Finding};
use crate::model::object::meta::condition;
use crate::model::object::{InferencePool, Object};
use crate::model::{Evidence, Subject};
use crate::world::World;
use crate::world::flow::grown;
use crate::world::proxy::routes_to;

/// Conditions that each gateway must not deny.
const CONDITIONS: &[&str] = &["Accepted", "ResolvedRefs"];
/// Pod labels of a router with an Envoy of its own, which needs no Gateway (llm-d's chart, standalone mode).
const STANDALONE: &[&str] = &["llm-d-router-standalone"];

pub(super) fn check(world: &World, out: &mut Vec<Finding>) {
    for (object, pool) in world.objects.pools() {
        let subject = object.subject();
        if stands_alone(world, &subject) {
            continue;
        }
        match pool.parents.as_slice() {
            [] => out.extend(not_taken_up(world, object, pool)),
            parents => {
                // One gateway that takes it is enough for requests to come.
                let denials: Vec<_> = parents
                    .iter()
                    .filter_map(|parent| {
                        let denied = CONDITIONS.iter().find_map(|kind| condition(&parent.conditions, kind).filter(|c| c.is_false()))?;
                        Some((parent, denied))
                    })
                    .collect();
                let Some((first, denied)) = denials.first().filter(|_| denials.len() == parents.len()) else { continue };
                let who = if denials.len() == 1 { first.parent.to_string() } else { format!("none of its {} gateways", denials.len()) };
                let summary = if denials.len() == 1 {
                    format!("{who} does not take the pool {}: {}", subject.name(), said(denied))
                } else {
                    format!("{who} takes the pool {}: {}", subject.name(), said(denied))
                };
                let mut finding = Finding::new(Code::PoolNotAccepted, &subject, summary, condition_proof(object, denied))
                    .also(&first.parent)
                    .proofs(denials.iter().map(|(_, denied)| condition_proof(object, denied)));
                if denied.reason == "InvalidExtensionRef" || denied.reason == "EndpointPickerRefMissing" {
                    finding = finding
                        .proof(Evidence::field(&subject, "spec.endpointPickerRef.name", named(&pool.picker)))
                        .remedy("let spec.endpointPickerRef name the Service of its endpoint picker, with the right port and group");
                }
                out.push(finding.remedy(format!("read what the controller of {} says: {}", first.parent, controller(&first.controller))));
            }
        }
    }
}

fn named(name: &str) -> String {
    if name.is_empty() { "not set".into() } else { name.to_owned() }
}

fn controller(name: &str) -> String {
    if name.is_empty() { "it did not sign its status".into() } else { name.to_owned() }
}

/// `status.parents` is empty: no gateway has picked it up.
fn not_taken_up(world: &World, object: &Object, pool: &InferencePool) -> Option<Finding> {
    let subject = object.subject();
    let routes = routes_to(&world.objects, &subject);
    // A pool without any status, where nothing of the Gateway API is seen, may be used without a gateway.
    let gateways = world.objects.routes().next().is_some() || world.objects.all().any(|(subject, _)| subject.kind() == "gateway");
    if (!pool.has_status && !gateways) || just_made(world, object) {
        return None;
    }
    let cause = if routes.is_empty() {
        "no HTTPRoute that is seen names it".to_owned()
    } else {
        let names: Vec<String> = routes.iter().map(|(route, _)| route.subject().to_string()).collect();
        format!("{} names it", names.join(", "))
    };
    let mut finding = Finding::new(
        Code::PoolNotAccepted,
        &subject,
        format!("no gateway has taken up the pool {} (status.parents is empty); {cause}", subject.name()),
        Evidence::field(&subject, "status.parents", "none: no gateway speaks of it").of_uid(&object.meta.uid),
    );
    for (route, body) in &routes {
        finding = finding.proofs(crate::world::proxy::stopped(route, body));
        for backend in body.backends.iter().filter(|backend| backend.name == subject.name()) {
            let value = format!("{} {} {}", backend.group, backend.kind, backend.name);
            finding = finding.proof(Evidence::field(&route.subject(), "spec.rules[].backendRefs", value));
        }
    }
    Some(
        finding
            .remedy(format!("let an HTTPRoute that a gateway accepts name {} {} as its backend", object.group(), subject.name()))
            .remedy("see that the gateway's controller knows InferencePools of this API group"),
    )
}

fn just_made(world: &World, object: &Object) -> bool {
    object.meta.created.is_some_and(|at| crate::model::time::seconds_between(at, world.now) < 60)
}

/// Whether requests reach its router by another way than a Gateway: an Envoy of its own, or requests that are seen to come.
fn stands_alone(world: &World, pool: &Subject) -> bool {
    let labelled = world.pickers.get(pool).is_some_and(|picker| {
        picker.pods.iter().filter_map(|pod| world.objects.pod(pod)).any(|(object, pod)| {
            STANDALONE.iter().any(|label| object.meta.label(label).is_some())
                || pod.spec.containers.iter().any(|container| container.image.contains("envoy"))
        })
    });
    let coming = world.routers.get(pool).is_some_and(|reading| {
        reading.earlier.as_ref().is_some_and(|(_, before)| grown(before.requests, reading.flow.requests).is_some_and(|n| n > 0.0))
    });
    labelled || coming
}

#[cfg(test)]
mod tests {
    use crate::diagnose::testkit::{Kit, conditions};
    use crate::model::finding::Code;
    use rstest::rstest;
    use serde_json::{Value, json};

    fn parents(status: Value) -> Value {
        json!({"parents": [{"parentRef": {"name": "gw"}, "controllerName": "x.io/c", "conditions": status}]})
    }

    #[rstest]
    #[case::none(json!({"parents": []}), true)]
    #[case::accepted(parents(conditions(&[("Accepted", "True"), ("ResolvedRefs", "True")])), false)]
    #[case::pending(parents(conditions(&[("Accepted", "Unknown")])), false)]
    #[case::denied(parents(conditions(&[("Accepted", "False")])), true)]
    #[case::unresolved(parents(conditions(&[("Accepted", "True"), ("ResolvedRefs", "False")])), true)]
    #[case::one_of_two(json!({"parents": [
        {"parentRef": {"name": "a"}, "conditions": conditions(&[("Accepted", "False")])},
        {"parentRef": {"name": "b"}, "conditions": conditions(&[("Accepted", "True")])}]}), false)]
    fn by_status(#[case] status: Value, #[case] fires: bool) {
        let world = Kit::new().pod_with("a", |_| ()).pool("p", |pool| pool["status"] = status).build();
        assert_eq!(!world.none(Code::PoolNotAccepted), fires, "{:?}", world.findings);
    }

    #[test]
    fn a_pool_without_status_counts_only_where_gateways_are_seen() {
        let bare = Kit::new().pool("p", |pool| pool["status"] = Value::Null).build();
        assert!(bare.none(Code::PoolNotAccepted));
        let routed = Kit::new().pool("p", |pool| pool["status"] = Value::Null).route("r", "p", &[("Accepted", "True")]).build();
        assert!(routed.only(Code::PoolNotAccepted).summary.contains("httproute/s/r"));
    }

    #[test]
    fn a_router_with_an_envoy_of_its_own_needs_no_gateway() {
        let world = Kit::new()
            .pool("p", |pool| pool["status"] = json!({"parents": []}))
            .epp("epp-1", true, |pod| pod["metadata"]["labels"]["llm-d-router-standalone"] = "p".into())
            .build();
        assert!(world.none(Code::PoolNotAccepted));
    }
}
