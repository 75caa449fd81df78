//! Autoscalers: what they want, and whether they work at all.

use std::collections::BTreeMap;

use super::entry::Subjects;
use crate::model::object::{Hpa, Object, ScaledObject};
use crate::model::value::Scalar;
use crate::model::{Fact, Known, Subject, Unknown};
use crate::world::World;

/// Whether autoscaling works, as one autoscaler shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Works {
    Paused,
    Off,
    On,
}

impl Works {
    fn word(self) -> &'static str {
        match self {
            Self::Paused => "paused",
            Self::Off => "off",
            Self::On => "on",
        }
    }
}

/// Adds the values of HPAs and ScaledObjects, and to what they scale whether that works.
pub(super) fn add(world: &World, subjects: &mut Subjects) {
    let mut targets: BTreeMap<Subject, Vec<(Subject, Known<Works>)>> = BTreeMap::new();
    for (object, hpa) in world.objects.hpas() {
        let subject = object.subject();
        let works = hpa_works(hpa);
        hpa_values(&subject, object, hpa, &works, subjects);
        targets.entry(hpa.target.subject(&object.meta.namespace)).or_default().push((subject, works));
    }
    for (object, scaled) in world.objects.scaled_objects() {
        let subject = object.subject();
        let target = scaled.target.subject(&object.meta.namespace);
        let works = scaled_works(scaled);
        scaled_values(world, &subject, object, scaled, &works, subjects);
        targets.entry(target).or_default().push((subject, works));
    }
    for (target, by) in targets {
        let names: Vec<&str> = by.iter().map(|(subject, _)| subject.as_str()).collect();
        // What is paused stays paused whatever its HPA says; else one that works is enough.
        let paused = by.iter().any(|(_, works)| *works == Ok(Works::Paused));
        let best = by.iter().filter_map(|(_, works)| works.as_ref().ok()).max().copied();
        let value = match (paused, best) {
            (true, _) => Ok(Works::Paused),
            (false, Some(works)) => Ok(works),
            (false, None) => {
                Err(by.iter().find_map(|(_, works)| works.as_ref().err().cloned()).unwrap_or_else(|| Unknown::because("nothing tells")))
            }
        };
        let value = value.map(|works| Fact::new(Scalar::from(works.word()), names.join(", "), world.now));
        subjects.at(&target).values.set("autoscaling", value);
    }
}

fn hpa_works(hpa: &Hpa) -> Known<Works> {
    match hpa.condition("ScalingActive") {
        Some(condition) if condition.is_true() => Ok(Works::On),
        Some(condition) if condition.is_false() => Ok(Works::Off),
        _ => Err(Unknown::because("the HPA has no condition ScalingActive")),
    }
}

fn scaled_works(scaled: &ScaledObject) -> Known<Works> {
    if scaled.paused || scaled.condition("Paused").is_some_and(|condition| condition.is_true()) {
        return Ok(Works::Paused);
    }
    match scaled.condition("Ready") {
        Some(condition) if condition.is_true() => Ok(Works::On),
        Some(condition) if condition.is_false() => Ok(Works::Off),
        _ => Err(Unknown::because("the ScaledObject has no condition Ready")),
    }
}

fn hpa_values(subject: &Subject, object: &Object, hpa: &Hpa, works: &Known<Works>, subjects: &mut Subjects) {
    let entry = subjects.at(subject);
    let at = object.seen;
    entry.count("hpa-desired", &hpa.trusted_desired(), "status.desiredReplicas", at);
    entry.count("hpa-current", &hpa.current, "status.currentReplicas", at);
    entry.count("hpa-min", &hpa.min, "spec.minReplicas", at);
    entry.count("hpa-max", &hpa.max, "spec.maxReplicas", at);
    entry.values.set("hpa-metric", metric(hpa, at));
    entry.values.set("autoscaling", works.clone().map(|works| Fact::new(Scalar::from(works.word()), "condition ScalingActive", at)));
}

/// The present value of the metric: of several the first that has one.
fn metric(hpa: &Hpa, at: jiff::Timestamp) -> Known<Fact<Scalar>> {
    if let Some(condition) = hpa.condition("ScalingActive").filter(|condition| condition.is_false()) {
        return Err(Unknown::because(format!("ScalingActive is {}", condition.shown())));
    }
    let wanted = |name: &str| hpa.metrics.is_empty() || hpa.metrics.iter().any(|metric| metric.name == name);
    hpa.current_metrics
        .iter()
        .filter(|metric| wanted(&metric.name))
        .find_map(|metric| Some(Fact::new(Scalar::Number(metric.number?), format!("status.currentMetrics, {}", metric.name), at)))
        .ok_or_else(|| Unknown::because("status.currentMetrics has no value of it"))
}

fn scaled_values(world: &World, subject: &Subject, object: &Object, scaled: &ScaledObject, works: &Known<Works>, subjects: &mut Subjects) {
    let hpa = Subject::object("HorizontalPodAutoscaler", &object.meta.namespace, &scaled.hpa_name);
    let read = world.objects.hpa(&hpa);
    let entry = subjects.at(subject);
    let at = object.seen;
    entry.count("hpa-min", &scaled.min, "spec.minReplicaCount", at);
    entry.count("hpa-max", &scaled.max, "spec.maxReplicaCount", at);
    let value = match read {
        Some((object, hpa)) => metric(hpa, object.seen),
        None => Err(Unknown::because(format!("its HPA {hpa} was not read"))),
    };
    entry.values.set("hpa-metric", value);
    entry
        .values
        .set("autoscaling", works.clone().map(|works| Fact::new(Scalar::from(works.word()), "condition Ready, paused annotations", at)));
}
