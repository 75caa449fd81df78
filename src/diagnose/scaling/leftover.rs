//! `deprecated-autoscaler-leftover`: objects of a removed autoscaler (llm-d's VariantAutoscaling, WVA) that are left over and do nothing.
//!
//! WVA published `wva_desired_replicas` (before that `inferno_desired_replicas`); an HPA or ScaledObject read it. Its status and the metric
//! stop with it. One that still runs is no leftover.

use jiff::Timestamp;
use serde_json::Value;

use super::words::{condition_proof, metrics_in};
use crate::model::finding::{Code, Finding};
use crate::model::object::{Body, Object};
use crate::model::time::{seconds_between, span};
use crate::model::{Evidence, Subject};
use crate::world::World;
use crate::world::prometheus::Given;
use crate::world::scaling::{ScalerKind, Works};

/// Metrics by which WVA's number is read.
const WISH: &[&str] = &["wva_desired_replicas", "wva_desired_ratio", "inferno_desired_replicas", "inferno_desired_ratio"];
/// Seconds after which a status that WVA writes every minute is old.
const OLD_S: i64 = 1800;

pub(super) fn check(world: &World, out: &mut Vec<Finding>) {
    for (target, scaling) in &world.scaling {
        let variants: Vec<&Subject> = scaling
            .scalers
            .iter()
            .filter(|scaler| {
                scaler.kind == ScalerKind::Variant && !last_run(world, &scaler.subject).is_some_and(|run| is_fresh(world, run))
            })
            .map(|scaler| &scaler.subject)
            .collect();
        let readers: Vec<&Subject> =
            scaling.scalers.iter().filter(|scaler| reads_removed_metric(world, &scaler.subject)).map(|scaler| &scaler.subject).collect();
        // A reader that gets its number shows that somebody still publishes it.
        let fed = readers.iter().any(|reader| {
            scaling.scalers.iter().any(|scaler| scaler.subject == **reader && scaler.works == Ok(Works::On)) && !no_value(world, reader)
        });
        let starved: Vec<&Subject> = readers.into_iter().filter(|reader| no_value(world, reader)).collect();
        let old = variants.iter().any(|variant| last_run(world, variant).is_some());
        if !fed && (!starved.is_empty() || old) && (!variants.is_empty() || !starved.is_empty()) {
            out.extend(finding(world, target, &variants, &starved));
        }
    }
}

/// When a VariantAutoscaling was last computed, by its status.
pub(super) fn last_run(world: &World, variant: &Subject) -> Option<Timestamp> {
    wish(world, variant)?.get("lastRunTime")?.as_str().and_then(crate::model::time::instant)
}

/// Whether a status of that time can still be believed.
pub(super) fn is_fresh(world: &World, run: Timestamp) -> bool {
    seconds_between(run, world.now) <= OLD_S
}

fn wish<'a>(world: &'a World, variant: &Subject) -> Option<&'a Value> {
    let Body::Other(body) = &world.objects.get(variant)?.body else { return None };
    body.get("status")?.get("desiredOptimizedAlloc")
}

/// Whether an HPA or ScaledObject steers by the number of the removed autoscaler.
pub(super) fn reads_removed_metric(world: &World, scaler: &Subject) -> bool {
    let named = |name: &str| WISH.contains(&name);
    let hpa = world.objects.hpa(scaler).is_some_and(|(_, hpa)| hpa.metrics.iter().any(|metric| named(&metric.name)));
    let keda = world
        .objects
        .scaled_object(scaler)
        .is_some_and(|(_, scaled)| scaled.triggers.iter().any(|trigger| metrics_in(&trigger.query).into_iter().any(named)));
    hpa || keda
}

/// Whether a reader of that number gets none.
fn no_value(world: &World, scaler: &Subject) -> bool {
    let hpa = world
        .objects
        .hpa(scaler)
        .and_then(|(_, hpa)| hpa.condition("ScalingActive"))
        .is_some_and(|active| active.is_false() && active.reason.starts_with("FailedGet"));
    let keda = world.objects.scaled_object(scaler).is_some_and(|(_, scaled)| {
        scaled.condition("Ready").is_some_and(|ready| ready.is_false())
            || scaled
                .triggers
                .iter()
                .any(|trigger| world.query(&trigger.query).is_some_and(|answered| answered.given == Ok(Given::NoSeries)))
    });
    hpa || keda
}

fn finding(world: &World, target: &Subject, variants: &[&Subject], readers: &[&Subject]) -> Option<Finding> {
    let mut words: Vec<String> = Vec::new();
    let mut proofs: Vec<Evidence> = Vec::new();
    for variant in variants {
        let object = world.objects.get(variant)?;
        proofs.push(Evidence::field(variant, "apiVersion", object.api_version.clone()).of_uid(&object.meta.uid));
        let wish = wish(world, variant);
        let number = wish.and_then(|wish| wish.get("numReplicas")).and_then(Value::as_u64);
        let run = last_run(world, variant);
        let old = match (number, run) {
            (Some(n), Some(run)) => {
                format!("; its wish of {n} replicas is of {run}, {} ago, and not current", span(seconds_between(run, world.now)))
            }
            (None, Some(run)) => format!("; last computed {run}, {} ago", span(seconds_between(run, world.now))),
            _ => String::new(),
        };
        if let Some(run) = run {
            proofs.push(Evidence::field(variant, "status.desiredOptimizedAlloc.lastRunTime", run.to_string()).seen_at(Some(run)));
        }
        words.push(format!("{variant} ({}){old}", object.api_version));
    }
    for reader in readers {
        let (name, proof) = reader_words(world, reader)?;
        words.push(format!("{reader} reads {name}, which has no series"));
        proofs.push(proof);
    }
    let subject = variants.first().or(readers.first())?;
    let mut proofs = proofs.into_iter();
    let summary = format!("left over from the removed variant autoscaler (WVA), without effect on {target}: {}", words.join("; "));
    let mut finding = Finding::new(Code::DeprecatedAutoscalerLeftover, subject, summary, proofs.next()?).proofs(proofs);
    for other in variants.iter().chain(readers).chain([&target]) {
        finding = finding.also(other);
    }
    Some(
        finding
            .remedy(format!("scale {target} by a KEDA ScaledObject on metrics of the router (EPP) in Prometheus, which makes its own HPA"))
            .remedy("delete the leftovers only after the new trigger's metric is seen, and before the ScaledObject's HPA and the old one meet on one target")
            .not("show or use the wish in the old status as current"),
    )
}

fn reader_words(world: &World, reader: &Subject) -> Option<(String, Evidence)> {
    if let Some((object, hpa)) = world.objects.hpa(reader) {
        let name = hpa.metrics.iter().find(|metric| WISH.contains(&metric.name.as_str()))?.name.clone();
        let proof =
            hpa.condition("ScalingActive").map_or_else(|| field(object, "spec.metrics", &name), |active| condition_proof(object, active));
        return Some((name, proof));
    }
    let (object, scaled) = world.objects.scaled_object(reader)?;
    let trigger = scaled.triggers.iter().find(|trigger| metrics_in(&trigger.query).iter().any(|name| WISH.contains(name)))?;
    let proof =
        world.query(&trigger.query).map_or_else(|| field(object, "spec.triggers", &trigger.query), |answered| answered.answer.evidence());
    Some((trigger.query.clone(), proof))
}

fn field(object: &Object, path: &str, value: &str) -> Evidence {
    Evidence::field(&object.subject(), path, value).of_uid(&object.meta.uid)
}

#[cfg(test)]
mod tests {
    use super::super::kit::{deployment, hpa};
    use crate::diagnose::testkit::Kit;
    use crate::model::finding::Code;
    use rstest::rstest;
    use serde_json::{Value, json};

    fn variant(run: &str) -> Value {
        json!({"apiVersion": "llmd.ai/v1alpha1", "kind": "VariantAutoscaling", "metadata": {"name": "v", "namespace": "s"},
            "spec": {"scaleTargetRef": {"kind": "Deployment", "name": "a"}, "modelID": "m"},
            "status": {"desiredOptimizedAlloc": {"numReplicas": 4, "lastRunTime": run}}})
    }

    fn reader(active: &str, reason: &str) -> Value {
        let mut doc = hpa("h", active, reason, 2);
        doc["spec"]["metrics"] =
            json!([{"type": "External", "external": {"metric": {"name": "wva_desired_replicas"}, "target": {"averageValue": "1"}}}]);
        doc
    }

    #[rstest]
    #[case::old_and_starved(vec![variant("2026-10-31T10:00:00Z"), reader("False", "FailedGetExternalMetric")], true)]
    #[case::old(vec![variant("2026-10-31T10:00:00Z")], true)]
    #[case::only_the_hpa_is_left(vec![reader("False", "FailedGetExternalMetric")], true)]
    #[case::alive(vec![variant("2026-11-12T09:59:30Z"), reader("True", "ValidMetricFound")], false)]
    #[case::fed_by_its_successor(vec![variant("2026-10-31T10:00:00Z"), reader("True", "ValidMetricFound")], false)]
    #[case::another_hpa(vec![hpa("h", "False", "FailedGetExternalMetric", 0)], false)]
    fn leftovers(#[case] docs: Vec<Value>, #[case] fires: bool) {
        let world = docs.into_iter().fold(Kit::new().object(deployment(2)), Kit::object).build();
        assert_eq!(world.none(Code::DeprecatedAutoscalerLeftover), !fires, "{:#?}", world.findings);
        assert!(world.none(Code::TwoWriters));
    }

    #[test]
    fn the_age_of_the_wish_is_told() {
        let world = Kit::new()
            .object(deployment(2))
            .object(variant("2026-10-31T10:00:00Z"))
            .object(reader("False", "FailedGetExternalMetric"))
            .build();
        let finding = world.only(Code::DeprecatedAutoscalerLeftover);
        assert!(finding.summary.contains("12 d ago") && finding.summary.contains("llmd.ai/v1alpha1"), "{}", finding.summary);
        assert!(finding.subjects.iter().any(|subject| subject.as_str() == "hpa/s/h"));
    }
}
