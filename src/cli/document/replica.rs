//! Replicas: pods, and groups of pods.

use super::entry::{Entry, Subjects};
use crate::model::ladder::Stage;
use crate::model::object::Body;
use crate::model::service::Replica;
use crate::model::state::ReplicaState;
use crate::model::value::Scalar;
use crate::model::{Fact, Known, time};
use crate::world::World;

/// Adds state and values of every replica.
pub(super) fn add(world: &World, subjects: &mut Subjects) {
    for (subject, replica) in &world.replicas {
        let entry = subjects.at(subject);
        entry.judge(replica.state.word(), &replica.why);
        entry.why.extend(replica.slower_than_usual.clone());
        standing(world, replica, entry);
        if replica.pods.first() == Some(subject) {
            pod(world, replica, entry);
        } else {
            group(world, replica, entry);
        }
    }
}

/// Where it stands on the ladder, and what it holds.
fn standing(world: &World, replica: &Replica, entry: &mut Entry) {
    let now = world.now;
    let yes = |value: &Known<bool>| value.clone().map(u32::from);
    entry.count("pod-ready", &yes(&replica.pod_ready), "condition Ready", now);
    entry.count("listed", &yes(&replica.listing.listed), &fronts(replica), now);
    entry.count("routed", &yes(&replica.listing.routed), &fronts(replica), now);
    if let Some(since) = replica.since {
        entry.values.know("since", since, "the best evidence of the state", now);
    }
    if replica.gpus > 0 {
        entry.values.know("gpu-requested", replica.gpus, "spec.containers[].resources.requests", now);
    }
    let report = replica.engine.as_ref().ok();
    if let Some(progress) = report.and_then(|report| report.progress.as_ref()) {
        entry.measure("progress", Ok(progress.clone()));
    }
    match (report.and_then(|report| report.eta_s.as_ref()), on_its_way(replica.state)) {
        // A prediction that has run out is no prediction: the snapshot knows by now.
        (Some(own), true) => match &replica.eta_s {
            Err(why) if why.why().starts_with("overdue") => entry.measure("eta-s", Err(why.clone())),
            _ => entry.measure("eta-s", Ok(own.clone())),
        },
        (None, true) => entry.measure("eta-s", replica.eta_s.clone().map(|eta| Fact::new(eta, "earlier loads of this model", now))),
        (_, false) => {}
    }
}

fn fronts(replica: &Replica) -> String {
    let names: Vec<&str> = replica.listing.fronts.iter().map(|front| front.as_str()).collect();
    if names.is_empty() { "no pool or Service selects it".into() } else { names.join(", ") }
}

fn on_its_way(state: ReplicaState) -> bool {
    use ReplicaState::{Downloading, Loading, Pulling, Starting, Warming};
    matches!(state, Pulling | Starting | Downloading | Loading | Warming)
}

fn pod(world: &World, replica: &Replica, entry: &mut Entry) {
    let Some((object, pod)) = world.objects.pod(&replica.subject) else { return };
    let at = object.seen;
    let number = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
    entry.values.know("restarts", pod.restarts(), "status.containerStatuses[].restartCount", at);
    entry.values.know("containers", number(pod.spec.containers.len()), "spec.containers", at);
    let ready = pod.containers.iter().filter(|container| container.ready).count();
    entry.values.know("containers-ready", number(ready), "status.containerStatuses[].ready", at);
    entry.values.know("grace-s", pod.spec.grace() as f64, "spec.terminationGracePeriodSeconds", at);
    match object.meta.created {
        Some(created) => {
            let age = time::seconds_between(created, world.now).max(0);
            entry.values.know("age-s", age as f64, "metadata.creationTimestamp", at);
        }
        None => entry.values.lack("age-s", "metadata.creationTimestamp is not set"),
    }
}

/// Counts of the members of a group.
fn group(world: &World, replica: &Replica, entry: &mut Entry) {
    let members: Vec<&Replica> = replica.pods.iter().filter_map(|pod| world.replicas.get(pod)).collect();
    let count = |test: &dyn Fn(&Replica) -> bool| Scalar::Number(members.iter().filter(|member| test(member)).count() as f64);
    let counts: [(&'static str, Scalar); 5] = [
        ("existing", count(&|member| matches!(world.objects.get(&member.subject).map(|object| &object.body), Some(Body::Pod(_))))),
        ("scheduled", count(&|member| member.ladder.has(Stage::Scheduled))),
        ("started", count(&|member| member.ladder.has(Stage::Started))),
        ("pulling", count(&|member| member.state == ReplicaState::Pulling)),
        ("loading", count(&|member| matches!(member.state, ReplicaState::Downloading | ReplicaState::Loading | ReplicaState::Warming))),
    ];
    for (name, value) in counts {
        entry.values.set(name, Ok(Fact::new(value, "count of its pods", world.now)));
    }
}
