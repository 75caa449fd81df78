//! Views: whether what they show is current.

use super::entry::Subjects;
use crate::world::World;

/// Adds every view.
pub(super) fn add(world: &World, subjects: &mut Subjects) {
    for (subject, view) in &world.views {
        let entry = subjects.at(subject);
        entry.judge(view.state.word(), &view.why);
        entry.values.extend(view.values.clone());
    }
}
