//! How replicas come and go: revisions, steps of a rollout, what probes allow, how often a group was made anew, what a stop would cut.

use super::entry::{Entry, Subjects};
use crate::model::ladder::Stage;
use crate::model::object::{Object, Workload};
use crate::model::service::Replica;
use crate::model::state::ReplicaState;
use crate::model::{Fact, Known, Subject, time};
use crate::world::World;
use crate::world::forecast::{Forecast, for_template, of_pod, requests_lost};
use crate::world::probes::{engine_container, guard, load_time};
use crate::world::promotion::{failed, waiting};
use crate::world::restarts::group_restarts;
use crate::world::revision;

/// Adds the values to replicas and workloads.
pub(super) fn add(world: &World, subjects: &mut Subjects) {
    for (subject, replica) in &world.replicas {
        let entry = subjects.at(subject);
        if let Some(revision) = replica.pods.first().and_then(|pod| revision::of_pod(world.objects.get(pod)?)) {
            entry.values.know("revision", revision, "labels of the pod", world.now);
        }
        if subject.as_str().contains("/group/") {
            group(world, subject, entry);
        }
        if replica.pods.first() == Some(subject) {
            pod(world, replica, entry);
        }
    }
    for (object, body) in world.objects.workloads() {
        workload(world, object, body, subjects.at(&object.subject()));
    }
}

fn group(world: &World, subject: &Subject, entry: &mut Entry) {
    let Some(restarts) = group_restarts(&world.objects, subject) else { return };
    entry.values.know("restarts", restarts.count, "RecreateGroup events", restarts.last.unwrap_or(world.now));
    match restarts.period_s {
        Some(period) => entry.values.know("period-s", period, "RecreateGroup events", world.now),
        None => entry.values.lack("period-s", "one time tells no period"),
    }
}

fn pod(world: &World, replica: &Replica, entry: &mut Entry) {
    let Some((object, body)) = world.objects.pod(&replica.subject) else { return };
    // Bound and not started: nobody uses what it holds.
    let bound = !body.node.is_empty() && !body.has_ended();
    if bound && replica.gpus > 0 && !replica.ladder.has(Stage::Started) && replica.state != ReplicaState::Terminating {
        entry.values.know("gpu-held-idle", replica.gpus, "bound to its node, and no container of it runs", world.now);
    }
    // A probe's budget and the load matter to containers that run an engine.
    if replica.engine.is_ok()
        && let Some((container, _)) = engine_container(world, replica)
        && let Some((kind, probe)) = guard(container)
    {
        entry.values.know("probe-budget-s", probe.budget_s() as f64, &format!("spec.containers[{}].{kind}Probe", container.name), object.seen);
    }
    if let Some(load) = load_time(world, &replica.subject) {
        let at = load.evidence.at.unwrap_or(world.now);
        entry.measure("load-s", Ok(Fact::new(load.seconds, load.evidence.place.to_string(), at)));
    }
    if let Some(forecast) = of_pod(world, replica) {
        drain(&forecast, world, entry);
        entry.measure("requests-lost", requests_lost(replica, &forecast).map(|lost| Fact::new(lost, "running and waiting, nothing drains them", world.now)));
        leaving(world, object, &forecast, entry);
    }
}

/// A pod that is being deleted: what is left of its time.
fn leaving(world: &World, object: &Object, forecast: &Forecast, entry: &mut Entry) {
    let Some(until) = object.meta.deletion else { return };
    let source = "metadata.deletionTimestamp";
    entry.values.know("drain-deadline-s", time::seconds_between(world.now, until).max(0) as f64, source, object.seen);
    let Some(since) = object.meta.deleted_at() else { return };
    let gone = time::seconds_between(since, world.now).max(0);
    entry.values.know("drain-since-s", gone as f64, source, object.seen);
    let left = forecast.pre_stop_s.clone().map(|hook| Fact::new(hook.saturating_sub(gone).max(0) as f64, "preStop", world.now));
    entry.measure("sigterm-in-s", left);
}

fn drain(forecast: &Forecast, world: &World, entry: &mut Entry) {
    let seconds = |known: &Known<i64>, source: &str| known.clone().map(|seconds| Fact::new(seconds as f64, source, world.now));
    entry.measure("drain-s", seconds(&forecast.drain_s, "grace period, preStop and the engine's own drain"));
    entry.measure("grace-needed-s", seconds(&forecast.needed_s, "preStop and the engine's own drain, and the time to end"));
}

fn workload(world: &World, object: &Object, body: &Workload, entry: &mut Entry) {
    let subject = object.subject();
    if let Some(forecast) = for_template(&subject, body) {
        drain(&forecast, world, entry);
    }
    let asked = body.replicas.clone().unwrap_or(0);
    let behind = body.status.updated.is_some_and(|updated| updated < asked || body.status.replicas.is_some_and(|all| updated < all));
    let since = match (waiting(&subject, body, behind), failed(&subject, body)) {
        (Some(waits), _) => waits.since,
        (None, Some(failed)) => failed.since,
        (None, None) => None,
    };
    if let Some(since) = since {
        entry.values.know("since", since, "status of the rollout", object.seen);
    }
    let Some(canary) = body.canary.as_ref().filter(|canary| !canary.steps.is_empty()) else { return };
    let steps = u32::try_from(canary.steps.len()).unwrap_or(u32::MAX);
    entry.values.know("steps", steps, "spec.strategy.canary.steps", object.seen);
    match canary.index {
        Some(index) => entry.values.know("step", index.saturating_add(1).min(steps), "status.currentStepIndex", object.seen),
        None => entry.values.lack("step", "status.currentStepIndex is not set"),
    }
    match canary.percent() {
        Some(percent) => entry.values.know("weight", f64::from(percent) / 100.0, "status.canary.weights, spec.strategy.canary.steps", object.seen),
        None => entry.values.lack("weight", "no step has set a weight yet"),
    }
}
