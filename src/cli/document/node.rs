//! Nodes: GPU slots that they have, and slots that pods hold.

use super::entry::Subjects;
use crate::model::state::ViewState;
use crate::model::{Known, Subject, Unknown};
use crate::world::World;

/// Slots of one node.
pub(super) struct Slots {
    /// Slots of the machine.
    pub(super) capacity: u32,
    /// Slots that pods may have.
    pub(super) allocatable: u32,
    /// Slots that pods on it request.
    pub(super) requested: Known<u32>,
}

impl Slots {
    /// Slots that no pod requests.
    pub(super) fn free(&self) -> Known<u32> {
        Ok(self.allocatable.saturating_sub(self.requested.clone()?))
    }
}

/// Adds the slots of every node that has any.
pub(super) fn add(world: &World, subjects: &mut Subjects) {
    for (subject, slots) in slots(world) {
        let entry = subjects.at(&subject);
        entry.count("gpu-capacity", &Ok(slots.capacity), "status.capacity", world.now);
        entry.count("gpu-allocatable", &Ok(slots.allocatable), "status.allocatable", world.now);
        entry.count(
            "gpu-unhealthy",
            &Ok(slots.capacity.saturating_sub(slots.allocatable)),
            "status.capacity less status.allocatable",
            world.now,
        );
        entry.count("gpu-requested", &slots.requested, "requests of the pods bound to it", world.now);
        entry.count("gpu-free", &slots.free(), "status.allocatable less requests of the pods bound to it", world.now);
    }
}

/// Slots of every node that has GPUs.
pub(super) fn slots(world: &World) -> Vec<(Subject, Slots)> {
    let hidden = unread(world, "pods");
    let mut requested: std::collections::BTreeMap<&str, u32> = std::collections::BTreeMap::new();
    // A pod that is being deleted holds its slots until it is gone.
    for (_, pod) in world.objects.pods().filter(|(_, pod)| !pod.node.is_empty() && !pod.has_ended()) {
        let held = requested.entry(&pod.node).or_default();
        *held = held.saturating_add(pod.spec.gpus());
    }
    world
        .objects
        .nodes()
        .filter(|(_, node)| node.gpu_capacity() > 0 || node.gpus() > 0)
        .map(|(object, node)| {
            let requested = match &hidden {
                Some(why) => Err(why.clone()),
                None => Ok(requested.get(object.meta.name.as_str()).copied().unwrap_or(0)),
            };
            (object.subject(), Slots { capacity: node.gpu_capacity(), allocatable: node.gpus(), requested })
        })
        .collect()
}

/// Why objects of a resource were not all read, if a view says so.
pub(super) fn unread(world: &World, resource: &str) -> Option<Unknown> {
    world.views.iter().find_map(|(subject, view)| {
        let of = subject.as_str().strip_prefix("view/")?.split('/').next()?;
        let cut = matches!(view.state, ViewState::NoPermission | ViewState::LoginNeeded | ViewState::Unreachable);
        (of == resource && cut).then(|| Unknown::because(view.why.first().cloned().unwrap_or_else(|| format!("{resource} were not read"))))
    })
}
