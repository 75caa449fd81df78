//! Who decides a field, as the snapshot knows it.

use super::entry::{Ownership, Subjects};
use crate::model::object::Body;
use crate::world::World;

/// Adds the owners of every object, and of what is scaled without having been read.
pub(super) fn add(world: &World, subjects: &mut Subjects) {
    let read = world.objects.all().filter(|(_, object)| !matches!(object.body, Body::Event(_))).map(|(subject, _)| subject);
    let named = world.scaling.keys().filter(|target| world.objects.get(target).is_none());
    for subject in read.chain(named) {
        let owners = world.owners_of(subject);
        if !owners.is_empty() {
            subjects.at(subject).owners.extend(owners.into_iter().map(|owned| Ownership {
                field: owned.field.to_owned(),
                writer: owned.writer.to_string(),
                via: owned.via,
            }));
        }
    }
}
