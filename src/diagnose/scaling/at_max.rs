//! `hpa-at-max`: the autoscaler wants its maximum or more.

use super::words::condition_proof;
use crate::model::finding::{Code, Finding};
use crate::model::object::{Hpa, Object};
use crate::model::{Evidence, Subject};
use crate::world::World;

pub(super) fn check(world: &World, out: &mut Vec<Finding>) {
    for (object, hpa) in world.objects.hpas() {
        let (Ok(desired), Ok(max)) = (hpa.trusted_desired(), hpa.max.clone()) else { continue };
        let capped = hpa.condition("ScalingLimited").filter(|limited| limited.is_true() && limited.reason == "TooManyReplicas");
        // A pinned size (minimum = maximum) is meant, unless more is asked for.
        let pinned = hpa.min == Ok(max);
        if desired >= max && max > 0 && (capped.is_some() || (!pinned && above_target(hpa))) {
            let proof = match capped {
                Some(condition) => condition_proof(object, condition),
                None => Evidence::field(&object.subject(), "status.desiredReplicas", desired.to_string()).seen_at(Some(object.seen)),
            };
            out.push(finding(world, object, hpa, desired, max, proof));
        }
    }
}

/// Whether a metric lies at or above its target: the load does not let go of the maximum.
fn above_target(hpa: &Hpa) -> bool {
    hpa.metrics.iter().any(|wanted| {
        let now = hpa.current_metrics.iter().find(|current| current.name == wanted.name && current.kind == wanted.kind);
        matches!((wanted.number, now.and_then(|current| current.number)), (Some(target), Some(now)) if now >= target)
    })
}

fn finding(world: &World, object: &Object, hpa: &Hpa, desired: u32, max: u32, proof: Evidence) -> Finding {
    let subject = object.subject();
    let target = hpa.target.subject(&object.meta.namespace);
    let maker =
        world.scaling.get(&target).and_then(|scaling| scaling.scalers.iter().find(|scaler| scaler.subject == subject)?.made_by.clone());
    let serving = world.workloads.get(&target).and_then(|view| view.funnel.serving.clone().ok());
    let serves = serving.filter(|serving| *serving < desired).map(|serving| format!(", and {serving} of them serve")).unwrap_or_default();
    let metric = hpa.current_metrics.first().map(|metric| format!("; {} is at {}", metric.name, metric.value)).unwrap_or_default();
    let finding = Finding::new(
        Code::HpaAtMax,
        &subject,
        format!("{subject} wants {desired} of at most {max} replicas of {target}{serves}: no more will be added{metric}"),
        proof,
    )
    .proof(Evidence::field(&subject, "spec.maxReplicas", max.to_string()).of_uid(&object.meta.uid))
    .also(&target);
    let finding = match serving {
        Some(serving) if serving < desired => {
            finding.remedy("first see why those on their way do not serve: a higher maximum adds nothing before they do")
        }
        _ => finding,
    };
    raise(finding, &subject, maker.as_ref())
}

fn raise(finding: Finding, subject: &Subject, maker: Option<&Subject>) -> Finding {
    match maker {
        Some(maker) => finding
            .also(maker)
            .remedy(format!("raise maxReplicaCount of {maker}, if there are GPUs for it"))
            .not(format!("edit {subject}: {maker} writes it back")),
        None => finding.remedy(format!("raise maxReplicas of {subject}, if there are GPUs for it; else shed load")),
    }
}

#[cfg(test)]
mod tests {
    use super::super::kit::{deployment, hpa, kedas, scaled};
    use crate::diagnose::testkit::Kit;
    use crate::model::finding::Code;
    use rstest::rstest;
    use serde_json::json;

    #[rstest]
    #[case(6, "19", false, true)]
    #[case(5, "19", false, false)]
    #[case(6, "1", false, false)]
    #[case(6, "1", true, true)]
    fn wishes(#[case] desired: u32, #[case] metric: &str, #[case] capped: bool, #[case] fires: bool) {
        let mut doc = hpa("h", "True", "", desired);
        doc["status"]["currentMetrics"][0]["pods"]["current"]["averageValue"] = metric.into();
        if capped {
            doc["status"]["conditions"]
                .as_array_mut()
                .unwrap()
                .push(json!({"type": "ScalingLimited", "status": "True", "reason": "TooManyReplicas"}));
        }
        let world = Kit::new().object(deployment(desired)).object(doc).build();
        assert_eq!(world.none(Code::HpaAtMax), !fires);
    }

    #[test]
    fn a_pinned_size_is_meant_and_an_idle_hpa_wants_nothing() {
        let mut doc = hpa("h", "True", "", 6);
        doc["spec"]["minReplicas"] = 6.into();
        assert!(Kit::new().object(deployment(6)).object(doc).build().none(Code::HpaAtMax));
        assert!(Kit::new().object(deployment(6)).object(hpa("h", "False", "FailedGetPodsMetric", 6)).build().none(Code::HpaAtMax));
    }

    #[test]
    fn the_lever_is_the_scaled_object() {
        let world = Kit::new().object(deployment(6)).object(kedas("True", "", 6)).object(scaled("q")).build();
        let finding = world.only(Code::HpaAtMax);
        assert!(finding.remedies.iter().any(|words| words.contains("maxReplicaCount of scaledobject/s/so")), "{finding:?}");
    }
}
