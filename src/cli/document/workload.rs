//! Workloads: their funnel, and the settings that decide how they roll.

use super::entry::{Entry, Subjects};
use crate::model::funnel::Funnel;
use crate::model::service::Replica;
use crate::model::state::ReplicaState;
use crate::world::World;

/// Adds state, counts and settings of every workload.
pub(super) fn add(world: &World, subjects: &mut Subjects) {
    for (subject, view) in &world.workloads {
        let entry = subjects.at(subject);
        entry.judge(view.state.word(), &view.why);
        funnel(&view.funnel, world, entry);
        let replicas: Vec<&Replica> = view.replicas.iter().filter_map(|replica| world.replicas.get(replica)).collect();
        let gpus =
            |test: &dyn Fn(&Replica) -> bool| replicas.iter().filter(|one| test(one)).map(|one| one.gpus).fold(0, u32::saturating_add);
        let source = "requests of its pods";
        let counted = view.funnel.existing.as_ref().err();
        match counted {
            Some(why) => entry.values.lack("gpu-requested", why.why()),
            None => {
                entry.values.know("gpu-requested", gpus(&|_| true), source, world.now);
                entry.values.know("gpu-held-asleep", gpus(&|replica| replica.state == ReplicaState::Sleeping), source, world.now);
                let idle = gpus(&|replica| replica.pods.iter().any(|pod| world.gpu.idle.contains_key(pod)));
                entry.values.know("gpu-held-idle", idle, "counters of their engines since they started", world.now);
            }
        }
        let Some((object, body)) = world.objects.workload(subject) else { continue };
        entry.values.know("grace-s", body.template.grace() as f64, "spec.template.spec.terminationGracePeriodSeconds", object.seen);
        if let Some(deadline) = body.progress_deadline_s {
            entry.values.know("deadline-s", deadline as f64, "spec.progressDeadlineSeconds", object.seen);
        }
        if let Some((surge, unavailable)) = body.effective_bounds() {
            let source = format!("spec.strategy.rollingUpdate of {} replicas", body.replicas.clone().unwrap_or(0));
            entry.values.know("max-surge", surge, &source, object.seen);
            entry.values.know("max-unavailable", unavailable, &source, object.seen);
        }
    }
}

/// Writes the counts of a funnel.
pub(super) fn funnel(funnel: &Funnel, world: &World, entry: &mut Entry) {
    let pods = "count of its replicas";
    let wanted = if funnel.wanted_by.is_empty() { "spec.replicas" } else { &funnel.wanted_by };
    let counts = [
        ("wanted", &funnel.wanted, wanted),
        ("asked", &funnel.asked, "spec.replicas"),
        ("existing", &funnel.existing, pods),
        ("scheduled", &funnel.scheduled, pods),
        ("started", &funnel.started, pods),
        ("loaded", &funnel.loaded, pods),
        ("pod-ready", &funnel.pod_ready, pods),
        ("listed", &funnel.listed, pods),
        ("routed", &funnel.routed, pods),
        ("serving", &funnel.serving, pods),
        ("sleeping", &funnel.sleeping, pods),
        ("awake", &funnel.awake, pods),
        ("draining", &funnel.draining, pods),
        ("unschedulable", &funnel.unschedulable, pods),
        ("pulling", &funnel.pulling, pods),
        ("loading", &funnel.loading, pods),
    ];
    for (name, count, source) in counts {
        entry.count(name, count, source, world.now);
    }
}
