//! Which subjects there are: every object, and everything that an object, an answer, a page or a log names.

use super::entry::Subjects;
use crate::model::Subject;
use crate::model::object::{Body, Object};
use crate::world::World;

/// Most unreadable fields of an object that are told in its entry.
const MAX_PROBLEMS: usize = 10;

/// Adds all subjects.
pub(super) fn add(world: &World, subjects: &mut Subjects) {
    for (subject, object) in world.objects.all() {
        // An event is evidence about something else and no subject itself.
        if matches!(object.body, Body::Event(_)) {
            named(object, subjects);
            continue;
        }
        let entry = subjects.at(subject);
        let unread = object.problems.iter().take(MAX_PROBLEMS).map(|problem| format!("not read: {problem}"));
        entry.why.extend(unread);
        named(object, subjects);
    }
    let heard = world.answers.keys().chain(world.pages.keys()).chain(world.exporters.keys()).chain(world.logs.keys());
    for subject in heard.chain(world.history.keys()).chain(world.engines.keys()) {
        subjects.at(subject);
    }
    for claim in world.services.values().map(|service| &service.claim) {
        let mine = claim.fronts.iter().chain(&claim.autoscalers).chain(&claim.routers).chain([&claim.found_by.object]);
        mine.for_each(|subject| {
            subjects.at(subject);
        });
    }
}

/// Adds what one object names.
fn named(object: &Object, subjects: &mut Subjects) {
    let namespace = &object.meta.namespace;
    let mut see = |subject: Subject| {
        if !subject.name().is_empty() {
            subjects.at(&subject);
        }
    };
    object.meta.owners.iter().for_each(|owner| see(owner.subject(namespace)));
    match &object.body {
        Body::Pod(pod) => {
            if !pod.node.is_empty() {
                see(Subject::node(&pod.node));
            }
            pod.spec.claims.iter().for_each(|claim| see(Subject::object("PersistentVolumeClaim", namespace, claim)));
        }
        Body::Hpa(hpa) => see(hpa.target.subject(namespace)),
        Body::ScaledObject(scaled) => {
            see(scaled.target.subject(namespace));
            if !scaled.hpa_name.is_empty() {
                see(Subject::object("HorizontalPodAutoscaler", namespace, &scaled.hpa_name));
            }
        }
        Body::EndpointSlice(slice) => {
            if !slice.service.is_empty() {
                see(Subject::object("Service", namespace, &slice.service));
            }
            slice.endpoints.iter().filter_map(|endpoint| endpoint.pod.as_deref()).for_each(|pod| see(Subject::pod(namespace, pod)));
        }
        Body::InferencePool(pool) => {
            if !pool.picker.is_empty() {
                see(Subject::object("Service", namespace, &pool.picker));
            }
            pool.parents.iter().for_each(|parent| see(parent.parent.clone()));
        }
        Body::Route(route) => {
            for backend in &route.backends {
                let namespace = if backend.namespace.is_empty() { namespace } else { &backend.namespace };
                see(Subject::object(&backend.kind, namespace, &backend.name));
            }
            route.parents.iter().for_each(|parent| see(parent.clone()));
        }
        Body::Event(event) => see(event.about.clone()),
        Body::Workload(workload) => {
            // The Deployment controller names the ReplicaSet that it speaks of: `ReplicaSet "qwen-a-7c9d5b6f44" is progressing.`
            for condition in &workload.conditions {
                if let Some(name) = condition.message.split_once("ReplicaSet \"").and_then(|(_, rest)| rest.split_once('"')) {
                    see(Subject::object("ReplicaSet", namespace, name.0));
                }
            }
        }
        Body::Service(_) | Body::Node(_) | Body::Lease(_) | Body::Budget(_) | Body::Claim(_) | Body::Other(_) => {}
    }
}
