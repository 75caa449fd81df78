//! Model services whose own object is no workload: a system's object, a pool, a Service.

use super::entry::Subjects;
use super::workload;
use crate::world::World;

/// Adds the state of every model service to the object by which it was found; with one role its counts too.
pub(super) fn add(world: &World, subjects: &mut Subjects) {
    for (id, service) in &world.services {
        let found = &service.claim.found_by.object;
        if world.workloads.contains_key(found) || world.replicas.contains_key(found) {
            continue;
        }
        let entry = subjects.at(found);
        let why: Vec<String> =
            service.roles.iter().flat_map(|role| role.why.iter().map(move |why| format!("{id}, {}: {why}", role.kind))).collect();
        entry.judge(service.state.word(), &why);
        if let [role] = service.roles.as_slice() {
            workload::funnel(&role.funnel, world, entry);
        }
    }
}
