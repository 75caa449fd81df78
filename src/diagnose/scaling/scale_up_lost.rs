//! `scale-up-lost`: an autoscaler wants more replicas than serve, for longer than a replica takes to come up; says at which stage they are lost.
//!
//! Too long is: slower than this model's loads were before, where that was learnt; a quarter of an hour for what is on its way; five
//! minutes for a replica that no node takes, that nobody admits, or that was never made.

use jiff::Timestamp;

use crate::model::finding::{Code, Finding};
use crate::model::service::Replica;
use crate::model::state::ReplicaState;
use crate::model::time::{seconds_between, span};
use crate::model::{Evidence, Subject};
use crate::world::{WorkloadView, World};

/// Seconds after which a replica that waits for a place is lost.
const WAITS_S: i64 = 300;
/// Seconds after which one that is on its way is.
const LOADS_S: i64 = 900;

pub(super) fn check(world: &World, out: &mut Vec<Finding>) {
    for target in world.scaling.keys() {
        let Some(view) = world.workloads.get(target) else { continue };
        let (Ok(wanted), Ok(serving)) = (&view.funnel.wanted, &view.funnel.serving) else { continue };
        if wanted <= serving {
            continue;
        }
        if let Some((since, proofs)) = lost(world, target, view, *wanted) {
            out.extend(finding(world, target, view, *wanted, *serving, since, proofs));
        }
    }
}

/// Since when the longest of the lost is lost, and what shows it.
fn lost(world: &World, target: &Subject, view: &WorkloadView, wanted: u32) -> Option<(Timestamp, Vec<Evidence>)> {
    let late = |replica: &&Replica| {
        let Some(age) = age(world, replica) else { return false };
        match replica.state {
            ReplicaState::PendingGpu | ReplicaState::WaitingAdmission => age > WAITS_S,
            ReplicaState::Terminating | ReplicaState::Draining | ReplicaState::Sleeping | ReplicaState::Waking => false,
            _ => replica.slower_than_usual.is_some() || (replica.eta_s.is_err() && age > LOADS_S),
        }
    };
    let waiting: Vec<&Replica> = view
        .replicas
        .iter()
        .filter_map(|replica| world.replicas.get(replica))
        .filter(|replica| !replica.state.serves())
        .filter(late)
        .collect();
    let oldest = waiting.iter().filter_map(|replica| created(world, replica)).min();
    if let Some(since) = oldest {
        let proofs = waiting.iter().take(4).map(|replica| {
            let place = "status";
            Evidence::field(&replica.subject, place, format!("{}: {}", replica.state, replica.why.first().cloned().unwrap_or_default()))
                .seen_at(replica.since.or(created(world, replica)))
        });
        return Some((since, proofs.collect()));
    }
    // Replicas that were never made: the autoscaler asked, and the workload's controller did not follow.
    let existing = view.funnel.existing.as_ref().ok()?;
    let scaled = world.scaling.get(target)?.scalers.iter().filter_map(|scaler| world.objects.hpa(&scaler.subject)?.1.last_scaled).max()?;
    let missing = *existing < wanted && seconds_between(scaled, world.now) > WAITS_S;
    missing.then(|| {
        (scaled, vec![Evidence::field(target, "status.replicas", format!("{existing} exist, {wanted} are wanted")).seen_at(Some(scaled))])
    })
}

fn created(world: &World, replica: &Replica) -> Option<Timestamp> {
    replica.pods.iter().filter_map(|pod| world.objects.get(pod)?.meta.created).min()
}

fn age(world: &World, replica: &Replica) -> Option<i64> {
    Some(seconds_between(created(world, replica)?, world.now))
}

fn finding(
    world: &World,
    target: &Subject,
    view: &WorkloadView,
    wanted: u32,
    serving: u32,
    since: Timestamp,
    proofs: Vec<Evidence>,
) -> Option<Finding> {
    let stage = match view.funnel.bottleneck() {
        Some((step, lost)) => format!("; {lost} {} lost at {}", if lost == 1 { "is" } else { "are" }, step.word()),
        None => String::new(),
    };
    let replicas: Vec<&Replica> = view.replicas.iter().filter_map(|replica| world.replicas.get(replica)).collect();
    let doing = crate::world::counts::shortage(&replicas).map(|words| format!(" ({words})")).unwrap_or_default();
    let summary = format!(
        "{} wants {wanted} of {target}, {serving} serve, for {}{stage}{doing}",
        view.funnel.wanted_by,
        span(seconds_between(since, world.now))
    );
    let mut proofs = proofs.into_iter();
    let finding = Finding::new(Code::ScaleUpLost, target, summary, proofs.next()?).proofs(proofs);
    let has = |state: ReplicaState| replicas.iter().any(|replica| replica.state == state);
    let finding = if has(ReplicaState::PendingGpu) {
        finding.remedy("free or add GPUs that these pods may use (taints, selectors, quota); a higher maximum adds only more pending pods")
    } else if has(ReplicaState::WaitingAdmission) {
        finding.remedy("look at the Kueue quota: the pods wait to be admitted, not for nodes")
    } else {
        finding.remedy("look at the stage where they are lost: events and logs of those replicas")
    };
    Some(finding.not("raise the autoscaler's maximum"))
}

#[cfg(test)]
mod tests {
    use super::super::kit::{deployment, hpa};
    use crate::diagnose::testkit::Kit;
    use crate::model::finding::Code;
    use rstest::rstest;
    use serde_json::json;

    fn pending(kit: Kit, created: &str) -> Kit {
        kit.pod_with("p", |pod| {
            pod["metadata"]["creationTimestamp"] = created.into();
            pod["spec"]["nodeName"] = json!(null);
            pod["status"] = json!({"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable",
                "message": "0/3 nodes are available: 3 Insufficient nvidia.com/gpu.", "lastTransitionTime": created}]});
        })
        .owned("p", "Deployment", "a")
    }

    #[rstest]
    #[case("2026-11-12T09:50:00Z", true)]
    #[case("2026-11-12T09:58:00Z", false)]
    fn a_pod_that_no_node_takes(#[case] created: &str, #[case] fires: bool) {
        let kit = Kit::new().serving_pod("r", true).owned("r", "Deployment", "a");
        let world = pending(kit, created).object(deployment(2)).object(hpa("h", "True", "", 2)).build();
        assert_eq!(world.none(Code::ScaleUpLost), !fires, "{:#?}", world.findings);
    }

    #[test]
    fn enough_serve() {
        let world =
            Kit::new().serving_pod("r", true).owned("r", "Deployment", "a").object(deployment(1)).object(hpa("h", "True", "", 1)).build();
        assert!(world.none(Code::ScaleUpLost));
    }

    #[rstest]
    #[case("2026-11-12T09:40:00Z", true)]
    #[case("2026-11-12T09:59:30Z", false)]
    fn replicas_that_were_never_made(#[case] scaled: &str, #[case] fires: bool) {
        let mut doc = hpa("h", "True", "", 4);
        doc["status"]["lastScaleTime"] = scaled.into();
        let world = Kit::new().serving_pod("r", true).owned("r", "Deployment", "a").object(deployment(1)).object(doc).build();
        assert_eq!(world.none(Code::ScaleUpLost), !fires, "{:#?}", world.findings);
    }
}
