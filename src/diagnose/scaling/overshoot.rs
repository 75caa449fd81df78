//! `overshoot-risk`: the metric does not see replicas on their way, so the autoscaler asks for more than the load needs.
//!
//! Metrics of pods average over the Ready ones; a value compared as a whole grows the wish at every sync while replicas load. A KEDA
//! formula may count what is pending: there nothing is said.

use crate::model::finding::{Code, Finding};
use crate::model::object::autoscale::HpaMetric;
use crate::model::object::{Hpa, Object};
use crate::model::service::Replica;
use crate::model::state::ReplicaState;
use crate::model::{Evidence, Subject};
use crate::world::{World, scaling::Works};

/// What an HPA tolerates without scaling: Kubernetes' default.
const TOLERANCE: f64 = 0.1;

pub(super) fn check(world: &World, out: &mut Vec<Finding>) {
    for (object, hpa) in world.objects.hpas() {
        let subject = object.subject();
        let target = hpa.target.subject(&object.meta.namespace);
        let Some(scaler) = world.scaling.get(&target).and_then(|scaling| scaling.scalers.iter().find(|scaler| scaler.subject == subject))
        else {
            continue;
        };
        let formula = scaler
            .made_by
            .as_ref()
            .and_then(|maker| world.objects.scaled_object(maker))
            .is_some_and(|(_, scaled)| !scaled.formula.is_empty());
        if scaler.works != Ok(Works::On) || formula {
            continue;
        }
        let Some((wanted, now)) = above(hpa) else { continue };
        let Some(view) = world.workloads.get(&target) else { continue };
        let replicas: Vec<&Replica> = view.replicas.iter().filter_map(|replica| world.replicas.get(replica)).collect();
        let way: Vec<&Replica> = replicas.iter().copied().filter(|replica| on_its_way(replica)).collect();
        if !way.is_empty() {
            out.push(finding(world, object, hpa, &target, (wanted, now), &replicas, &way));
        }
    }
}

/// A metric that calls for more, with what it reads.
fn above(hpa: &Hpa) -> Option<(&HpaMetric, &HpaMetric)> {
    hpa.metrics.iter().find_map(|wanted| {
        let now = hpa.current_metrics.iter().find(|now| now.name == wanted.name && now.kind == wanted.kind)?;
        // A mean load per pod of everything that waits shrinks with each replica that is asked for, loaded or not.
        (now.number? > wanted.number? * (1.0 + TOLERANCE)).then_some((wanted, now))
    })
}

fn on_its_way(replica: &Replica) -> bool {
    matches!(
        replica.state,
        ReplicaState::Pulling
            | ReplicaState::Starting
            | ReplicaState::Downloading
            | ReplicaState::Loading
            | ReplicaState::Warming
            | ReplicaState::EngineReady
    )
}

fn finding(
    world: &World,
    object: &Object,
    hpa: &Hpa,
    target: &Subject,
    (wanted, now): (&HpaMetric, &HpaMetric),
    replicas: &[&Replica],
    way: &[&Replica],
) -> Finding {
    let subject = object.subject();
    let stuck =
        replicas.iter().filter(|replica| matches!(replica.state, ReplicaState::PendingGpu | ReplicaState::WaitingAdmission)).count();
    let nowhere = if stuck == 0 { String::new() } else { format!(" and {stuck} can not be placed") };
    let covers = match (world.covered(object, hpa), wanted.kind.as_str()) {
        (Ok(n), "Pods" | "Resource" | "ContainerResource") => format!("its average goes over {n} Ready pods only"),
        (Ok(n), _) => format!("its average is over {n} replicas, and the load on it falls only when they serve"),
        (Err(_), _) => "it is compared as a whole, and falls only when they serve".to_owned(),
    };
    let capped = match (hpa.trusted_desired(), hpa.max.clone()) {
        (Ok(desired), Ok(max)) if desired >= max => {
            format!("; {desired} is its maximum, so no more come, and all of them stay for the scale-down window")
        }
        _ => String::new(),
    };
    let states: Vec<String> = way.iter().map(|replica| format!("{} {}", replica.subject.name(), replica.state)).collect();
    Finding::new(
        Code::OvershootRisk,
        target,
        format!(
            "{} of {target} on the way{nowhere}, and {subject} still reads {} ({}, target {}): {covers}{capped}",
            crate::diagnose::support::counted(way.len(), "replica"),
            wanted.name,
            now.value,
            wanted.value,
        ),
        Evidence::field(&subject, "status.currentMetrics", format!("{} {}", now.name, now.value)).seen_at(Some(object.seen)),
    )
    .proof(Evidence::field(target, "status.replicas", states.join(", ")))
    .also(&subject)
    .remedy("bound the rise: behavior.scaleUp with one policy of few pods over the time that a replica takes to load")
    .remedy(
        "use a metric that counts replicas on their way (a KEDA formula with the pending ones), or a signal of the router over all of them",
    )
    .not("raise the maximum while replicas are on their way")
}

#[cfg(test)]
mod tests {
    use super::super::kit::{deployment, hpa};
    use crate::diagnose::testkit::Kit;
    use crate::model::finding::Code;
    use rstest::rstest;

    #[rstest]
    #[case::above_its_target(true, "19", true)]
    #[case::at_its_target(true, "4200m", false)]
    #[case::nobody_on_the_way(false, "19", false)]
    fn risks(#[case] loading: bool, #[case] metric: &str, #[case] fires: bool) {
        let mut doc = hpa("h", "True", "", 2);
        doc["status"]["currentMetrics"][0]["pods"]["current"]["averageValue"] = metric.into();
        let kit = Kit::new().serving_pod("r", true).owned("r", "Deployment", "a").object(deployment(2)).object(doc);
        let kit = if loading { kit.loading_pod("l").owned("l", "Deployment", "a") } else { kit };
        let world = kit.build();
        assert_eq!(world.none(Code::OvershootRisk), !fires, "{:#?}", world.findings);
    }

    #[test]
    fn an_hpa_that_computes_nothing_asks_for_nothing() {
        let kit = Kit::new().loading_pod("l").owned("l", "Deployment", "a").object(deployment(1));
        assert!(kit.object(hpa("h", "False", "FailedGetPodsMetric", 0)).build().none(Code::OvershootRisk));
    }
}
