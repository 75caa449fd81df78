//! Autoscalers and what they scale: what they want, and whether they work at all.

use std::collections::BTreeSet;

use super::entry::Subjects;
use crate::model::Subject;
use crate::model::object::Body;
use crate::world::World;

/// Adds the values of autoscalers, of what they scale, and of whatever else asks for replicas.
pub(super) fn add(world: &World, subjects: &mut Subjects) {
    let scalers =
        world.objects.hpas().map(|(object, _)| object.subject()).chain(world.objects.scaled_objects().map(|(object, _)| object.subject()));
    let others = world.objects.all().filter(|(_, object)| matches!(object.body, Body::Other(_))).map(|(subject, _)| subject.clone());
    let scaled = world.scaling.keys().chain(world.history.keys()).cloned();
    let all: BTreeSet<Subject> = scalers.chain(others).chain(scaled).collect();
    for subject in all {
        let values = world.scale_values(&subject);
        if !values.is_empty() {
            subjects.at(&subject).values.extend(values);
        }
    }
    for (target, scaling) in &world.scaling {
        for scaler in &scaling.scalers {
            say(subjects, &scaler.subject, &scaler.why);
        }
        if scaling.works != Ok(crate::world::scaling::Works::On) {
            let word = scaling.works.as_ref().map_or("not known", |works| works.word());
            say(subjects, target, &format!("autoscaling is {word}: {}", scaling.why.join("; ")));
        }
    }
}

fn say(subjects: &mut Subjects, subject: &Subject, words: &str) {
    let why = &mut subjects.at(subject).why;
    if !why.iter().any(|said| said == words) {
        why.push(words.to_owned());
    }
}
