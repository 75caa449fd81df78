//! `keda-paused`, `keda-fallback`: a ScaledObject that is held on purpose, or that steers by its fallback because its scaler fails.

use crate::model::finding::{Code, Finding};
use crate::model::object::{Condition, Object, ScaledObject};
use crate::model::{Evidence, Place, Subject};
use crate::world::World;

pub(super) fn check(world: &World, out: &mut Vec<Finding>) {
    for (object, scaled) in world.objects.scaled_objects() {
        let target = scaled.target.subject(&object.meta.namespace);
        let is = |kind: &str| scaled.condition(kind).filter(|condition| condition.is_true());
        if !scaled.paused_by.is_empty() || is("Paused").is_some() {
            out.push(paused(world, object, scaled, &target, is("Paused")));
        }
        if let Some(condition) = is("Fallback") {
            out.push(fallback(object, scaled, &target, condition));
        }
    }
}

fn proof(subject: &Subject, condition: &Condition) -> Evidence {
    Evidence::new(subject, Place::Condition(condition.kind.clone()), condition.shown(), condition.since)
}

fn paused(world: &World, object: &Object, scaled: &ScaledObject, target: &Subject, condition: Option<&Condition>) -> Finding {
    let subject = object.subject();
    let by = scaled.paused_by.join(", ");
    let one_way = scaled.paused_by.iter().map(|by| by.as_str()).find(|by| by.contains("paused-scale-")).filter(|_| !scaled.paused);
    let what = match (one_way, scaled.paused_replicas) {
        (Some(by), _) if by.contains("scale-in") => format!("{target} is not scaled in"),
        (Some(_), _) => format!("{target} is not scaled out"),
        (None, Some(n)) => format!("{target} is held at {n} replicas"),
        (None, None) => match world.objects.get(target).and_then(crate::world::owners::replicas_of) {
            Some(n) => format!("{target} stays at {n} replicas, and its HPA is gone meanwhile"),
            None => format!("{target} stays as it is"),
        },
    };
    let how = if by.is_empty() { "its condition Paused".to_owned() } else { by.clone() };
    let annotations = (!by.is_empty()).then(|| {
        let at = object
            .meta
            .writers
            .iter()
            .filter(|writer| writer.fields.iter().any(|field| field.contains("autoscaling.keda.sh/paused")))
            .find_map(|writer| writer.time);
        Evidence::field(&subject, "metadata.annotations", by).of_uid(&object.meta.uid).seen_at(at)
    });
    let mut proofs = annotations.into_iter().chain(condition.map(|condition| proof(&subject, condition)));
    let first = proofs.next().unwrap_or_else(|| Evidence::field(&subject, "metadata.annotations", ""));
    Finding::new(Code::KedaPaused, &subject, format!("{subject} is paused by {how}: {what}"), first)
        .proofs(proofs)
        .also(target)
        .remedy(format!(
            "to scale again take the annotation off {subject}: KEDA makes its HPA anew, without a history, so it may shrink at once"
        ))
        .not(format!("only scale {target} up by hand: it stays paused"))
}

fn fallback(object: &Object, scaled: &ScaledObject, target: &Subject, condition: &Condition) -> Finding {
    let subject = object.subject();
    let failing: Vec<String> = scaled
        .health
        .iter()
        .filter(|(_, health)| health.fails())
        .map(|(metric, health)| match health.failures {
            Some(n) => format!("{metric} failed {n} times"),
            None => format!("{metric} fails"),
        })
        .collect();
    let why = if failing.is_empty() { "a trigger fails".to_owned() } else { failing.join(", ") };
    let size = match scaled.fallback_replicas {
        Some(n) => format!("{target} is set to its fallback of {n} replicas, whatever the load is"),
        None => format!("{target} is set to its fallback, whatever the load is"),
    };
    let servers: Vec<&str> = scaled.triggers.iter().map(|trigger| trigger.server.as_str()).filter(|server| !server.is_empty()).collect();
    let finding =
        Finding::new(Code::KedaFallback, &subject, format!("{subject} is in fallback: {why}; {size}"), proof(&subject, condition))
            .proofs(failing.iter().map(|failing| Evidence::field(&subject, "status.health", failing.clone()).of_uid(&object.meta.uid)))
            .also(target);
    match servers.is_empty() {
        true => finding.remedy("see why the trigger fails (events of the ScaledObject, log of keda-operator)"),
        false => finding.remedy(format!(
            "see why {} does not answer (events of the ScaledObject, log of keda-operator, credentials)",
            servers.join(", ")
        )),
    }
    .not("read the number of replicas as what the load needs")
}

#[cfg(test)]
mod tests {
    use super::super::kit::{deployment, scaled};
    use crate::diagnose::testkit::Kit;
    use crate::model::finding::Code;
    use rstest::rstest;
    use serde_json::{Value, json};

    fn world(annotations: Value, conditions: Value) -> crate::diagnose::testkit::Judged {
        let mut doc = scaled("q");
        doc["metadata"]["annotations"] = annotations;
        doc["status"]["conditions"] = conditions;
        doc["spec"]["fallback"] = json!({"replicas": 6, "failureThreshold": 3});
        doc["status"]["health"] = json!({"s0-prometheus": {"numberOfFailures": 12, "status": "Failing"}});
        Kit::new().object(deployment(2)).object(doc).build()
    }

    #[rstest]
    #[case(json!({}), json!([{"type": "Paused", "status": "False"}]), false)]
    #[case(json!({}), json!([{"type": "Paused", "status": "True", "reason": "ScaledObjectPaused"}]), true)]
    #[case(json!({"autoscaling.keda.sh/paused": "true"}), json!([]), true)]
    #[case(json!({"autoscaling.keda.sh/paused": "false"}), json!([]), false)]
    #[case(json!({"autoscaling.keda.sh/paused-replicas": "0"}), json!([]), true)]
    #[case(json!({"autoscaling.keda.sh/paused-scale-in": "true"}), json!([]), true)]
    fn pauses(#[case] annotations: Value, #[case] conditions: Value, #[case] fires: bool) {
        assert_eq!(world(annotations, conditions).none(Code::KedaPaused), !fires);
    }

    #[rstest]
    #[case("True", true)]
    #[case("False", false)]
    fn fallbacks(#[case] status: &str, #[case] fires: bool) {
        let world = world(json!({}), json!([{"type": "Fallback", "status": status, "reason": "FallbackExists"}]));
        assert_eq!(world.none(Code::KedaFallback), !fires);
        if fires {
            let summary = world.only(Code::KedaFallback).summary;
            assert!(summary.contains("fallback of 6 replicas") && summary.contains("failed 12 times"), "{summary}");
        }
    }
}
