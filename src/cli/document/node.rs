//! GPUs: slots of nodes, cards as exporters show them, and where waiting pods could go.

use super::entry::Subjects;
use crate::model::Fact;
use crate::world::World;

/// Adds the slots of every node that has any, its cards, and what waiting pods could take.
pub(super) fn add(world: &World, subjects: &mut Subjects) {
    nodes(world, subjects);
    devices(world, subjects);
    pods(world, subjects);
}

fn nodes(world: &World, subjects: &mut Subjects) {
    for (subject, node) in &world.gpu.nodes {
        let entry = subjects.at(subject);
        entry.why.extend(node.why());
        entry.count("gpu-capacity", &Ok(node.capacity()), "status.capacity", world.now);
        entry.count("gpu-allocatable", &Ok(node.allocatable()), "status.allocatable", world.now);
        entry.count("gpu-unhealthy", &Ok(node.unhealthy()), "status.capacity less status.allocatable", world.now);
        entry.count("gpu-requested", &node.requested(), "requests of the pods bound to it", world.now);
        entry.count("gpu-free", &node.free(), "status.allocatable less requests of the pods bound to it", world.now);
        let source = node.physical.as_ref().map(|(_, source)| source.clone()).unwrap_or_default();
        entry.count("gpu-physical", &node.physical.as_ref().map(|(cards, _)| *cards).map_err(Clone::clone), &source, world.now);
    }
}

fn devices(world: &World, subjects: &mut Subjects) {
    for (subject, device) in &world.gpu.devices {
        let entry = subjects.at(subject);
        let profile = device.profile.as_ref().map(|profile| format!(", MIG {profile}")).unwrap_or_default();
        entry.why.push(format!("{} {}{profile}", device.model, device.uuid).trim().to_owned());
        entry.measure("gpu-util", device.util.clone());
        entry.measure("gpu-active", device.active.clone());
        entry.measure("gpu-memory-used", device.memory_used.clone());
        let holders = device.holders().map(|holders| Fact::new(holders.as_str().into(), "labels of the exporter's page", device.at));
        entry.values.set("held-by", holders);
    }
}

fn pods(world: &World, subjects: &mut Subjects) {
    for (subject, waiting) in &world.gpu.waiting {
        let entry = subjects.at(subject);
        entry.why.extend(waiting.words());
        entry.count("gpu-needed", &Ok(waiting.needed), "spec.containers[].resources.requests", world.now);
        entry.count("gpu-usable", &waiting.usable, "free GPUs of allowed nodes on which it fits", world.now);
        entry.count("gpu-largest-block", &waiting.largest_block, "most free GPUs on one allowed node", world.now);
    }
    for (node, gpus) in &world.gpu.nodes {
        let Some((_, any)) = world.gpu.devices_of(node).next() else { continue };
        for pod in &gpus.pods {
            match world.gpu.util_of(pod) {
                Some(util) => subjects
                    .at(pod)
                    .measure("gpu-util", util.map(|util| Fact::new(util, "mean over the cards that it holds alone", any.at))),
                None => subjects.at(pod).values.lack(
                    "gpu-util",
                    match &any.held_by {
                        Err(why) => why.why(),
                        Ok(_) => "the exporter names it on no device",
                    },
                ),
            }
        }
    }
    for (subject, replica) in &world.replicas {
        if replica.gpus == 0 || subject.kind() != "pod" {
            continue;
        }
        let idle = world.gpu.idle.get(subject).map_or(0, |idle| idle.gpus);
        let asleep = if replica.state == crate::model::state::ReplicaState::Sleeping { replica.gpus } else { 0 };
        let entry = subjects.at(subject);
        match replica.engine.as_ref().map(|engine| &engine.load) {
            Ok(Ok(_)) => entry.values.know("gpu-held-idle", idle, "counters of its engine since it started", world.now),
            Ok(Err(why)) => entry.values.lack("gpu-held-idle", why.why()),
            Err(why) => entry.values.lack("gpu-held-idle", why.why()),
        }
        entry.values.know("gpu-held-asleep", asleep, "the engine's own word", world.now);
    }
}
