//! `no-wake-signal-at-zero`: scaled to zero, and its trigger has no value at zero, so nothing brings it back.
//!
//! A trigger has no signal if its query was answered without a series, or if it asks only for metrics that a running engine exports. A
//! query that fills the gap with 0 has a value, and it stays 0.

use super::words::{condition_proof, metrics_in, only_while_running};
use crate::model::finding::{Code, Finding, Severity};
use crate::model::object::autoscale::Trigger;
use crate::model::object::{Condition, Object, ScaledObject};
use crate::model::time::{seconds_between, span};
use crate::model::{Evidence, Subject};
use crate::world::World;
use crate::world::owners::replicas_of;
use crate::world::prometheus::Given;

pub(super) fn check(world: &World, out: &mut Vec<Finding>) {
    resting(world, out);
    for (object, scaled) in world.objects.scaled_objects() {
        let target = scaled.target.subject(&object.meta.namespace);
        let at_zero = world.objects.get(&target).and_then(replicas_of) == Some(0);
        let floor = scaled.idle.unwrap_or(0).max(scaled.min.clone().unwrap_or(0));
        let active = scaled.condition("Active").is_some_and(|active| active.is_true());
        if !at_zero || scaled.paused || (floor > 0 && scaled.idle != Some(0)) || active || scaled.triggers.is_empty() {
            continue;
        }
        let silent: Option<Vec<Evidence>> =
            scaled.triggers.iter().enumerate().map(|(i, trigger)| silent(world, object, i, trigger)).collect();
        if let Some(proofs) = silent {
            out.extend(finding(world, object, scaled, &target, proofs));
        }
    }
}

/// HPAs of their own (no ScaledObject made them): one whose target somebody else set to zero rests and never raises it; one that went to
/// zero itself (Kubernetes 1.37) needs a metric that is there at zero.
fn resting(world: &World, out: &mut Vec<Finding>) {
    for (target, scaling) in &world.scaling {
        if world.asked_of(target) != Some(0) {
            continue;
        }
        for scaler in scaling.roots().filter(|_| scaling.scalers.len() == 1) {
            let Some((object, hpa)) = world.objects.hpa(&scaler.subject) else { continue };
            let Some(active) = hpa.condition("ScalingActive") else { continue };
            let itself = hpa.condition("ScaledToZero").is_some_and(Condition::is_true);
            let rests = !itself && active.is_false() && active.reason == "ScalingDisabled";
            let unheard = itself
                && (active.is_false() || (!hpa.metrics.is_empty() && hpa.metrics.iter().all(|metric| only_while_running(&metric.name))));
            if !rests && !unheard {
                continue;
            }
            let subject = object.subject();
            let names: Vec<&str> = hpa.metrics.iter().map(|metric| metric.name.as_str()).collect();
            let summary = match rests {
                true => format!(
                    "{target} was set to zero, and {subject} rests meanwhile (ScalingDisabled): it never raises a target from zero that it did not take there itself"
                ),
                false => format!(
                    "{target} was scaled to zero by {subject}, whose metric ({}) has a value only while a pod runs: nothing can wake it",
                    names.join(", ")
                ),
            };
            // Somebody may mean it, where the HPA is not meant to go to zero at all.
            let severity = if rests && hpa.min != Ok(0) { Severity::Warning } else { Severity::Critical };
            let finding = Finding::new(Code::NoWakeSignalAtZero, target, summary, condition_proof(object, active)).severe(severity);
            let finding = finding.proof(Evidence::field(target, "spec.replicas", "0")).also(&subject);
            out.push(match rests {
                true => finding.remedy(format!("scale {target} to 1 or more once: {subject} takes over from there")),
                false => finding
                    .remedy(format!("now: set minReplicas: 1 on {subject} and scale {target} to 1"))
                    .remedy("lasting: use a metric of the router, gateway or proxy in front, which is there at zero"),
            });
        }
    }
}

/// What shows that a trigger has no signal at zero; `None` where it may have one.
fn silent(world: &World, object: &Object, i: usize, trigger: &Trigger) -> Option<Evidence> {
    let subject = object.subject();
    match trigger.kind.as_str() {
        "cpu" | "memory" => {
            Some(Evidence::field(&subject, &format!("spec.triggers[{i}].type"), format!("{}: measured on running pods only", trigger.kind)))
        }
        "prometheus" => {
            let metrics = metrics_in(&trigger.query);
            let engines_only = !metrics.is_empty() && metrics.iter().all(|metric| only_while_running(metric));
            let path = format!("spec.triggers[{i}].metadata.query");
            match world.query(&trigger.query) {
                Some(answered) => match answered.given {
                    Ok(Given::NoSeries) => {
                        let proof = answered.answer.evidence();
                        Some(Evidence { value: format!("no series: the result is empty ({})", proof.value), ..proof })
                    }
                    Ok(Given::Value(value)) if engines_only && value == 0.0 => {
                        Some(Evidence::field(&subject, &path, format!("{}: 0, and filled in while no engine runs", trigger.query)))
                    }
                    _ => None,
                },
                None => engines_only.then(|| Evidence::field(&subject, &path, trigger.query.clone())),
            }
        }
        // Queues, cron and the like have a value whatever runs.
        _ => None,
    }
}

fn finding(world: &World, object: &Object, scaled: &ScaledObject, target: &Subject, proofs: Vec<Evidence>) -> Option<Finding> {
    let subject = object.subject();
    let asked: Vec<String> = scaled
        .triggers
        .iter()
        .map(|trigger| match metrics_in(&trigger.query).as_slice() {
            [] => trigger.kind.clone(),
            metrics => format!("{} query on {}", trigger.kind, metrics.join(", ")),
        })
        .collect();
    let since = match world.zero_since(target) {
        Some((at, _)) => format!(" since {at} ({})", span(seconds_between(at, world.now))),
        None => String::new(),
    };
    let conditions = ["Ready", "Active"].into_iter().filter_map(|kind| Some(condition_proof(object, scaled.condition(kind)?)));
    let mut proofs = proofs.into_iter();
    let finding = Finding::new(
        Code::NoWakeSignalAtZero,
        target,
        format!(
            "{target} is scaled to zero{since}, and nothing can wake it: the trigger of {subject} ({}) has a value only while a pod runs; no error is reported anywhere",
            asked.join("; ")
        ),
        proofs.next()?,
    )
    .proofs(proofs)
    .proofs(conditions)
    .proofs(world.zero_since(target).map(|(_, proof)| proof))
    .also(&subject)
    .remedy(format!("now: set minReplicaCount: 1 on {subject}, or annotate it autoscaling.keda.sh/paused-replicas: \"1\" and take the annotation off later"))
    .remedy("lasting: trigger on a signal that is there at zero, such as the queue or request count of the router, gateway or proxy in front (an EPP's flow-control queue)")
    .not("read the empty result as a measured 0")
    .not(format!("scale {target} by hand: KEDA takes it back to zero after the cooldown"));
    Some(finding)
}

#[cfg(test)]
mod tests {
    use super::super::kit::{deployment, hpa, kedas, scaled};
    use crate::diagnose::testkit::Kit;
    use crate::model::finding::Code;
    use rstest::rstest;
    use serde_json::{Value, json};

    const ENGINE: &str = "sum(vllm:num_requests_waiting)";
    const EMPTY: &str = r#"{"data":{"resultType":"vector","result":[]}}"#;
    const ZERO: &str = r#"{"data":{"resultType":"vector","result":[{"metric":{},"value":[1,"0"]}]}}"#;

    #[rstest]
    #[case::no_series(0, ENGINE, Some(EMPTY), true)]
    #[case::never_asked_but_of_an_engine(0, ENGINE, None, true)]
    #[case::filled_with_zero(0, "sum(vllm:num_requests_waiting) or vector(0)", Some(ZERO), true)]
    #[case::of_the_router(0, "sum(llm_d_epp_flow_control_queue_size)", Some(ZERO), false)]
    #[case::of_the_router_unasked(0, "sum(llm_d_epp_flow_control_queue_size)", None, false)]
    #[case::of_the_router_without_series(0, "sum(llm_d_epp_flow_control_queue_size)", Some(EMPTY), true)]
    #[case::of_both(0, "sum(vllm:num_requests_waiting) + sum(llm_d_epp_queue_size)", None, false)]
    #[case::not_at_zero(1, ENGINE, Some(EMPTY), false)]
    fn queries(#[case] replicas: u32, #[case] query: &str, #[case] body: Option<&str>, #[case] fires: bool) {
        let kit = Kit::new().object(deployment(replicas)).object(scaled(query)).object(kedas("False", "ScalingDisabled", 0));
        let kit = match body {
            Some(body) => kit.answer_from("prometheus", &format!("/api/v1/query?query={query}"), 200, body),
            None => kit,
        };
        let world = kit.build();
        assert_eq!(world.none(Code::NoWakeSignalAtZero), !fires, "{:#?}", world.findings);
    }

    #[rstest]
    #[case::by_hand(0, "False", "ScalingDisabled", false, true)]
    #[case::by_itself_and_deaf(0, "True", "ValidMetricFound", true, true)]
    #[case::runs(1, "True", "ValidMetricFound", false, false)]
    #[case::its_metric_fails(0, "False", "FailedGetPodsMetric", false, false)]
    fn hpas_of_their_own(#[case] replicas: u32, #[case] active: &str, #[case] reason: &str, #[case] itself: bool, #[case] fires: bool) {
        let mut doc = hpa("h", active, reason, 0);
        if itself {
            doc["status"]["conditions"].as_array_mut().unwrap().push(json!({"type": "ScaledToZero", "status": "True"}));
        }
        let world = Kit::new().object(deployment(replicas)).object(doc).build();
        assert_eq!(world.none(Code::NoWakeSignalAtZero), !fires, "{:#?}", world.findings);
    }

    #[rstest]
    #[case::held_there(|doc: &mut Value| doc["metadata"]["annotations"] = json!({"autoscaling.keda.sh/paused-replicas": "0"}))]
    #[case::keda_lifts_it(|doc: &mut Value| doc["spec"]["minReplicaCount"] = 1.into())]
    #[case::a_clock_too(|doc: &mut Value| doc["spec"]["triggers"].as_array_mut().unwrap().push(json!({"type": "cron", "metadata": {}})))]
    #[case::on_its_way(|doc: &mut Value| doc["status"]["conditions"][1]["status"] = "True".into())]
    fn others(#[case] change: fn(&mut Value)) {
        let mut doc = scaled(ENGINE);
        change(&mut doc);
        assert!(Kit::new().object(deployment(0)).object(doc).build().none(Code::NoWakeSignalAtZero));
    }
}
