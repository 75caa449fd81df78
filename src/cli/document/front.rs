//! Services and InferencePools: what they select, and what of it they can pick.

use super::entry::Subjects;
use crate::model::Subject;
use crate::world::World;

/// Adds the counts of every Service and pool that selects pods.
pub(super) fn add(world: &World, subjects: &mut Subjects) {
    let number = |list: &[Subject]| u32::try_from(list.len()).unwrap_or(u32::MAX);
    for (subject, front) in &world.fronts {
        let entry = subjects.at(subject);
        entry.why.extend(front.why.iter().cloned());
        entry.count("selected", &Ok(number(&front.selected)), "pods that its selector matches", world.now);
        entry.count("pod-ready", &Ok(number(&front.ready)), "condition Ready of these pods", world.now);
        let usable = front.usable.as_ref().map(|usable| number(usable)).map_err(Clone::clone);
        entry.count("usable", &usable, "pods that it can pick", world.now);
    }
}
