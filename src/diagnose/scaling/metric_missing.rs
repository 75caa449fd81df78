//! `hpa-metric-missing`: a metric of an HPA has no value. Without any the HPA computes nothing; with some missing it may grow, not shrink.

use super::words::{condition_proof, metric_names, stays};
use crate::engines::renames::{Rename, renames};
use crate::model::finding::{Code, Finding, Severity};
use crate::model::object::{Hpa, Object, ScaledObject};
use crate::model::{Evidence, Place, Subject};
use crate::world::World;
use crate::world::prometheus::Given;

pub(super) fn check(world: &World, out: &mut Vec<Finding>) {
    failing_triggers(world, out);
    for (object, hpa) in world.objects.hpas() {
        let active = hpa.condition("ScalingActive");
        let failing = active
            .filter(|active| active.is_false() && (active.reason.starts_with("FailedGet") || active.reason == "InvalidMetricSourceType"));
        if let Some(active) = failing {
            let subject = object.subject();
            let target = hpa.target.subject(&object.meta.namespace);
            let names = metric_names(hpa);
            let summary =
                format!("{subject} has no value of {names} ({}): autoscaling of {target} is off, {}", active.reason, stays(world, &target));
            let mut finding = Finding::new(Code::HpaMetricMissing, &subject, summary, condition_proof(object, active)).also(&target);
            if let Some((made_by, scaled)) = maker(world, &subject, &target) {
                let queries = scaled.triggers.iter().filter(|trigger| !trigger.query.is_empty());
                finding = finding
                    .also(&made_by.subject())
                    .proofs(queries.map(|trigger| Evidence::field(&made_by.subject(), "spec.triggers", trigger.query.clone())));
            }
            out.push(hints(world, object, hpa, finding));
        } else if active.is_some_and(|active| active.is_true())
            && let Some(gaps) = gaps(hpa)
        {
            let subject = object.subject();
            let summary =
                format!("{subject} reads only some of its metrics ({gaps} has no value): it can scale up, and holds every scale-down");
            let proof = Evidence::field(&subject, "status.currentMetrics", format!("no value of {gaps}")).of_uid(&object.meta.uid);
            out.push(hints(world, object, hpa, Finding::new(Code::HpaMetricMissing, &subject, summary, proof).severe(Severity::Warning)));
        }
    }
}

/// The ScaledObject that made an HPA.
fn maker<'a>(world: &'a World, hpa: &Subject, target: &Subject) -> Option<(&'a Object, &'a ScaledObject)> {
    let scaler = world.scaling.get(target)?.scalers.iter().find(|scaler| scaler.subject == *hpa)?;
    world.objects.scaled_object(scaler.made_by.as_ref()?)
}

/// ScaledObjects none of whose triggers works, where their HPA does not say so itself: it was not read, or could not be made.
fn failing_triggers(world: &World, out: &mut Vec<Finding>) {
    for (object, scaled) in world.objects.scaled_objects() {
        let Some(ready) = scaled.condition("Ready").filter(|ready| ready.is_false() && ready.reason == "TriggerError") else { continue };
        let subject = object.subject();
        let hpa = Subject::object("HorizontalPodAutoscaler", &object.meta.namespace, &scaled.hpa_name);
        if world.objects.hpa(&hpa).is_some() || scaled.paused {
            continue;
        }
        let target = scaled.target.subject(&object.meta.namespace);
        let failing: Vec<String> = scaled.health.iter().filter(|(_, health)| health.fails()).map(|(metric, _)| metric.clone()).collect();
        let names = if failing.is_empty() { "its triggers".to_owned() } else { failing.join(", ") };
        let summary =
            format!("{subject} gets no value of {names} (TriggerError): autoscaling of {target} is off, {}", stays(world, &target));
        out.push(
            Finding::new(Code::HpaMetricMissing, &hpa, summary, condition_proof(object, ready))
                .also(&subject)
                .also(&target)
                .proofs(
                    scaled
                        .triggers
                        .iter()
                        .filter(|trigger| !trigger.query.is_empty())
                        .map(|trigger| Evidence::field(&subject, "spec.triggers", trigger.query.clone())),
                )
                .remedy(
                    "see why the trigger fails (events of the ScaledObject, log of keda-operator, address and credentials of the source)",
                )
                .remedy("give the ScaledObject a fallback, so that a failing trigger does not leave the size to chance")
                .not("read the missing value as 0"),
        );
    }
}

/// Metrics that the last pass could not read although it read others: `status.currentMetrics` mirrors the metrics by index, and an entry
/// without type is one that failed.
fn gaps(hpa: &Hpa) -> Option<String> {
    let read = |i: usize| hpa.current_metrics.get(i).is_some_and(|current| !current.kind.is_empty());
    if hpa.current_metrics.is_empty() || !(0..hpa.metrics.len()).any(read) {
        return None;
    }
    let missing: Vec<&str> = hpa.metrics.iter().enumerate().filter(|(i, _)| !read(*i)).map(|(_, metric)| metric.name.as_str()).collect();
    (!missing.is_empty()).then(|| missing.join(", "))
}

fn hints(world: &World, object: &Object, hpa: &Hpa, mut finding: Finding) -> Finding {
    for metric in &hpa.metrics {
        if let Some(answered) = world.metrics_api(&object.meta.namespace, &metric.name)
            && !matches!(answered.given, Ok(Given::Value(_)))
        {
            finding = finding.proof(answered.answer.evidence());
        }
        if let Some(rename) = renamed(&metric.name) {
            let now = match rename.new {
                [] => "nothing stands in its place".to_owned(),
                new => format!("engines export {} now", new.join(" or ")),
            };
            let proof =
                Evidence::new(&object.subject(), Place::Metric(metric.name.clone()), format!("renamed {}: {now}", rename.when), None);
            finding = finding.proof(proof).remedy(format!(
                "{} is gone from the engines ({}): {now}; ask for that, and let the adapter's rule give it",
                metric.name, rename.when
            ));
        }
    }
    let api = match hpa.metrics.first().map(|metric| metric.kind.as_str()) {
        Some("External") => "external.metrics.k8s.io",
        Some("Resource" | "ContainerResource") => "metrics.k8s.io",
        _ => "custom.metrics.k8s.io",
    };
    finding
        .remedy(format!("see whether {api} serves it (the adapter's APIService, its rules, and the series in Prometheus)"))
        .remedy("until then set the size by minReplicas: a floor is kept without any metric")
        .not("read the missing value or the desired count of the status as 0")
}

/// The rename of an engine's metric that an adapter asks for with `_` for the colon.
fn renamed(metric: &str) -> Option<&'static Rename> {
    renames().iter().find(|rename| rename.old == metric || rename.old.replace(':', "_") == metric)
}

#[cfg(test)]
mod tests {
    use super::super::kit::{deployment, hpa, kedas, scaled};
    use crate::diagnose::testkit::Kit;
    use crate::model::finding::{Code, Severity};
    use rstest::rstest;
    use serde_json::json;

    #[rstest]
    #[case("False", "FailedGetPodsMetric", true)]
    #[case("False", "FailedGetExternalMetric", true)]
    #[case("False", "AmbiguousSelector", false)]
    #[case("False", "ScalingDisabled", false)]
    #[case("True", "ValidMetricFound", false)]
    fn reasons(#[case] active: &str, #[case] reason: &str, #[case] fires: bool) {
        let world = Kit::new().object(deployment(2)).object(hpa("h", active, reason, 0)).build();
        assert_eq!(world.none(Code::HpaMetricMissing), !fires);
    }

    #[rstest]
    #[case("TriggerError", true)]
    #[case("ScaledObjectCheckFailed", false)]
    fn triggers_that_all_fail(#[case] reason: &str, #[case] fires: bool) {
        let mut doc = scaled("q");
        doc["status"]["conditions"] = json!([{"type": "Ready", "status": "False", "reason": reason}]);
        let world = Kit::new().object(deployment(2)).object(doc).build();
        assert_eq!(world.none(Code::HpaMetricMissing), !fires);
    }

    #[test]
    fn the_scaled_object_above_is_named_once() {
        let kit = Kit::new().object(deployment(2)).object(kedas("False", "FailedGetExternalMetric", 0)).object(scaled("q"));
        let finding = kit.build().only(Code::HpaMetricMissing);
        assert!(finding.subjects.iter().any(|subject| subject.as_str() == "scaledobject/s/so"));
    }

    #[test]
    fn an_old_name_is_told() {
        let mut doc = hpa("h", "False", "FailedGetPodsMetric", 0);
        doc["spec"]["metrics"][0]["pods"]["metric"]["name"] = "vllm_gpu_cache_usage_perc".into();
        let finding = Kit::new().object(deployment(2)).object(doc).build().only(Code::HpaMetricMissing);
        assert!(finding.remedies[0].contains("kv_cache_usage_perc") && finding.summary.contains("replicas stay at 2"), "{finding:?}");
    }

    #[test]
    fn one_of_two_is_missing() {
        let mut doc = hpa("h", "True", "ValidMetricFound", 2);
        doc["spec"]["metrics"]
            .as_array_mut()
            .unwrap()
            .push(json!({"type": "External", "external": {"metric": {"name": "q"}, "target": {"value": "1"}}}));
        doc["status"]["currentMetrics"].as_array_mut().unwrap().push(json!({"type": ""}));
        let finding = Kit::new().object(deployment(2)).object(doc).build().only(Code::HpaMetricMissing);
        assert_eq!(finding.severity, Severity::Warning);
        assert!(finding.summary.contains("q has no value"));
    }
}
