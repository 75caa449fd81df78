//! The funnel of a workload or role, and its state in one word.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::WorkloadView;
use super::ended::{LeftOver, can_not_make, half_rolled};
use super::proven::proven;
use crate::model::funnel::Funnel;
use crate::model::ladder::Stage;
use crate::model::object::meta::Condition;
use crate::model::object::{Catalogue, Object, Workload, WorkloadKind};
use crate::model::service::Replica;
use crate::model::state::{EngineState, ReplicaState, WorkloadState};
use crate::model::unknown::unknown;
use crate::model::{Evidence, Known, Place, Subject, Unknown};

/// What is wanted of a workload, and who says so.
#[derive(Debug, Clone, PartialEq)]
pub struct Wanted {
    /// The number.
    pub count: Known<u32>,
    /// Whose it is: `hpa/serving/qwen-a`, `spec.replicas`.
    pub by: String,
}

/// Who wants how many replicas of a workload that these autoscalers target: an HPA that computes, else the spec. Two HPAs that compute
/// make it unknown.
pub fn wanted(objects: &Catalogue, autoscalers: &[Subject], workload: &Workload) -> Wanted {
    let wanting: Vec<(&Subject, u32)> =
        autoscalers.iter().filter_map(|scaler| Some((scaler, objects.hpa(scaler)?.1.trusted_desired().ok()?))).collect();
    match wanting.as_slice() {
        [] => Wanted { count: workload.replicas.clone(), by: "spec.replicas".into() },
        [(hpa, desired)] => Wanted { count: Ok(*desired), by: hpa.to_string() },
        several => {
            let words: Vec<String> = several.iter().map(|(hpa, desired)| format!("{hpa} wants {desired}")).collect();
            Wanted { count: unknown(format!("two autoscalers write it: {}", words.join(", "))), by: words.join(", ") }
        }
    }
}

/// Counts of these replicas. `lacking` is set when it is known that replicas exist which were not read.
pub fn count(replicas: &[&Replica], wanted: Wanted, asked: Known<u32>, lacking: Option<&Unknown>) -> Funnel {
    let live: Vec<&&Replica> =
        replicas.iter().filter(|replica| !matches!(replica.state, ReplicaState::Terminating | ReplicaState::Draining)).collect();
    let number = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
    let of = |test: &dyn Fn(&Replica) -> bool| -> Known<u32> {
        match lacking {
            Some(why) => Err(why.clone()),
            None => Ok(number(live.iter().filter(|replica| test(replica)).count())),
        }
    };
    // A count of things that may be unknown of a replica is known only if it is known of each.
    let known = |read: &dyn Fn(&Replica) -> Known<bool>| -> Known<u32> {
        if let Some(why) = lacking {
            return Err(why.clone());
        }
        let mut n = 0;
        for replica in &live {
            match read(replica) {
                Ok(true) => n += 1,
                Ok(false) => {}
                Err(why) => return unknown(format!("{}: {why}", replica.subject.called())),
            }
        }
        Ok(number(n))
    };
    let state = |wanted: &'static [ReplicaState]| move |replica: &Replica| wanted.contains(&replica.state);
    Funnel {
        wanted: wanted.count,
        wanted_by: wanted.by,
        asked,
        existing: of(&|_| true),
        scheduled: of(&|replica| replica.ladder.has(Stage::Scheduled)),
        started: of(&|replica| replica.ladder.has(Stage::Started)),
        loaded: known(&loaded),
        pod_ready: known(&|replica| replica.pod_ready.clone()),
        listed: known(&|replica| replica.listing.listed.clone()),
        routed: known(&|replica| replica.listing.routed.clone()),
        serving: of(&|replica| replica.state.serves()),
        sleeping: of(&state(&[ReplicaState::Sleeping])),
        awake: known(&awake),
        draining: match lacking {
            Some(why) => Err(why.clone()),
            None => Ok(number(replicas.len() - live.len())),
        },
        unschedulable: of(&state(&[ReplicaState::PendingGpu])),
        pulling: of(&state(&[ReplicaState::Pulling])),
        loading: of(&loading),
    }
}

/// Whether its engine is on the way to be ready: it says what it does, or its container runs and nothing tells how far it is.
fn loading(replica: &Replica) -> bool {
    match replica.state {
        ReplicaState::Downloading | ReplicaState::Loading | ReplicaState::Warming => true,
        ReplicaState::Starting => replica.ladder.has(Stage::Started),
        _ => false,
    }
}

/// Whether the weights are in. A Ready pod whose engine was not asked is taken to have loaded.
fn loaded(replica: &Replica) -> Known<bool> {
    use crate::model::ladder::Rung;
    if replica.pod_ready == Ok(true) {
        return Ok(true);
    }
    match replica.ladder.rung(Stage::Warming) {
        Rung::Reached { .. } => Ok(true),
        Rung::NotReached { .. } => Ok(false),
        Rung::NotApplicable(_) => replica.pod_ready.clone(),
        Rung::Unknown(why) => Err(why.clone()),
    }
}

/// Whether the engine is awake by its own word.
fn awake(replica: &Replica) -> Known<bool> {
    match &replica.engine {
        Err(why) => Err(why.clone()),
        Ok(engine) => match &engine.state {
            EngineState::Ready | EngineState::Paused | EngineState::Stalled | EngineState::Draining => Ok(true),
            EngineState::Unknown(why) => Err(why.clone()),
            _ => Ok(false),
        },
    }
}

/// Judges a workload from its counts and its own status.
pub fn workload(
    objects: &Catalogue,
    object: &Object,
    body: &Workload,
    replicas: &[&Replica],
    left: LeftOver,
    funnel: Funnel,
    now: Timestamp,
) -> WorkloadView {
    let subject = &object.subject();
    let mut evidence = Vec::new();
    let mut why = Vec::new();
    let missing = matches!((&funnel.existing, &funnel.asked), (Ok(existing), Ok(asked)) if existing < asked);
    let failing = if missing { can_not_make(objects, subject, body) } else { None };
    let rollout = match (&failing, rollout(subject, body, object.meta.generation, replicas)) {
        (Some(proof), Rollout::Moving(_)) if half_rolled(body) => Rollout::Stuck(proof.clone()),
        // Pods that can not be made are a shortage, not a rollout.
        (Some(_), Rollout::Moving(_)) => Rollout::None,
        (_, rollout) => rollout,
    };
    let from_status = funnel.serving.is_err();
    let (wanted, serving) = (
        funnel.wanted.clone(),
        match (&funnel.serving, body.status.ready) {
            (Ok(n), _) => Ok(*n),
            // No pod was read: the status is all there is, and says only what Kubernetes believes.
            (Err(_), Some(ready)) => Ok(ready),
            (Err(why), None) => Err(why.clone()),
        },
    );
    let state = match (&wanted, &serving) {
        (Err(reason), _) => {
            why.push(format!("how many are wanted is not known: {reason}"));
            WorkloadState::Unknown
        }
        (Ok(0), Ok(0)) if funnel.existing.as_ref().is_ok_and(|n| *n == 0) || from_status => {
            why.push(format!("none is wanted ({})", funnel.wanted_by));
            WorkloadState::ScaledToZero
        }
        (_, Err(reason)) => {
            why.push(format!("how many serve is not known: {reason}"));
            WorkloadState::Unknown
        }
        (Ok(wanted), Ok(0)) if *wanted > 0 => {
            why.push(format!("none of {wanted} serves"));
            WorkloadState::Down
        }
        (Ok(wanted), Ok(serving)) => {
            why.push(format!("{serving} of {wanted} serve{}", if *serving == 1 { "s" } else { "" }));
            match &rollout {
                Rollout::Stuck(_) => WorkloadState::Blocked,
                Rollout::Waits(..) => WorkloadState::WaitingPromotion,
                Rollout::Failed(..) => WorkloadState::FailedUpdate,
                Rollout::Moving(_) => WorkloadState::RollingOut,
                Rollout::None if serving < wanted => WorkloadState::Degraded,
                Rollout::None => WorkloadState::Serving,
            }
        }
    };
    if from_status && body.status.ready.is_some() {
        why.push("counted from the workload's status: none of its pods was read".into());
    }
    match rollout {
        Rollout::None => {}
        Rollout::Moving(proof) => {
            why.push(format!("a rollout is on its way: {}", proof.value));
            evidence.push(proof);
        }
        Rollout::Stuck(proof) => {
            why.push(format!("the rollout does not go on: {}", proof.value));
            evidence.push(proof);
        }
        Rollout::Waits(words, proofs) => {
            why.insert(0, format!("the rollout waits for a person to promote or abort it: {words}"));
            evidence.extend(proofs);
        }
        Rollout::Failed(words, proofs) => {
            why.insert(0, words);
            evidence.extend(proofs);
        }
    }
    if let Some(proof) = failing.filter(|proof| !evidence.contains(proof)) {
        why.insert(0, format!("its pods can not be made: {}", proof.value));
        evidence.push(proof);
    }
    why.extend(shortage(replicas));
    let proof = proven(replicas, funnel.existing.as_ref().err(), now);
    why.extend(proof.sentence());
    why.extend(left.sentence());
    evidence.insert(0, Evidence::field(subject, "spec.replicas", known_text(&body.replicas)));
    evidence.extend(left.evidence);
    WorkloadView {
        replicas: replicas.iter().map(|replica| replica.subject.clone()).collect(),
        left_over: left.pods,
        proven: proof.proven,
        funnel,
        state,
        why,
        evidence,
    }
}

fn known_text(known: &Known<u32>) -> String {
    known.as_ref().map_or_else(|why| why.to_string(), u32::to_string)
}

/// A rollout as the workload's status and pods show it.
enum Rollout {
    None,
    Moving(Evidence),
    Stuck(Evidence),
    /// A person must say that it goes on.
    Waits(String, Vec<Evidence>),
    /// It was aborted or has failed.
    Failed(String, Vec<Evidence>),
}

fn rollout(subject: &Subject, body: &Workload, generation: Option<i64>, replicas: &[&Replica]) -> Rollout {
    let status = &body.status;
    let stale = matches!((generation, status.observed_generation), (Some(now), Some(seen)) if seen < now);
    let asked = body.replicas.clone().unwrap_or(0);
    let behind = match body.kind {
        WorkloadKind::Deployment | WorkloadKind::CloneSet => {
            status.updated.is_some_and(|updated| updated < asked)
                || matches!((status.updated, status.replicas), (Some(updated), Some(all)) if updated < all)
        }
        WorkloadKind::StatefulSet => {
            !status.update_revision.is_empty() && !status.current_revision.is_empty() && status.update_revision != status.current_revision
        }
        WorkloadKind::LeaderWorkerSet => body.condition("UpdateInProgress").is_some_and(Condition::is_true),
        WorkloadKind::Rollout => body.canary.as_ref().is_some_and(|canary| canary.in_update()),
        WorkloadKind::ReplicaSet | WorkloadKind::DaemonSet => false,
    };
    if let Some(failed) = super::promotion::failed(subject, body) {
        return Rollout::Failed(failed.why, failed.evidence);
    }
    if let Some(waiting) = super::promotion::waiting(subject, body, behind) {
        return Rollout::Waits(waiting.why, waiting.evidence);
    }
    let failed = body.condition("Progressing").filter(|condition| condition.is_false() && condition.reason == "ProgressDeadlineExceeded");
    // Pods beyond what is asked for are a surge: one of them that no node takes stops the rollout.
    let surging = replicas.len() > usize::try_from(asked).unwrap_or(usize::MAX);
    let waits = replicas
        .iter()
        .find(|replica| matches!(replica.state, ReplicaState::PendingGpu | ReplicaState::WaitingAdmission) && (surging || behind));
    let proof = |value: String| Evidence::field(subject, "status.updatedReplicas", value);
    if !(behind || stale || (surging && status.updated.is_some())) {
        return Rollout::None;
    }
    match (waits, failed) {
        (Some(replica), _) => Rollout::Stuck(Evidence::new(
            &replica.subject,
            Place::Condition("PodScheduled".into()),
            format!("{}: {}", replica.subject.called(), replica.why.first().cloned().unwrap_or_default()),
            replica.since,
        )),
        (None, _) if stale => Rollout::Moving(Evidence::field(
            subject,
            "status.observedGeneration",
            format!("the status is of generation {}, the spec of {}", status.observed_generation.unwrap_or(0), generation.unwrap_or(0)),
        )),
        (None, Some(condition)) if replicas.iter().all(|replica| !on_its_way(replica)) => {
            Rollout::Stuck(Evidence::new(subject, Place::Condition("Progressing".into()), condition.shown(), condition.since))
        }
        _ => Rollout::Moving(proof(format!(
            "{} of {} replicas are at the newest revision",
            status.updated.map_or_else(|| "–".to_owned(), |n| n.to_string()),
            status.replicas.map_or_else(|| asked.to_string(), |n| n.to_string())
        ))),
    }
}

fn on_its_way(replica: &Replica) -> bool {
    matches!(
        replica.state,
        ReplicaState::Pulling | ReplicaState::Starting | ReplicaState::Downloading | ReplicaState::Loading | ReplicaState::Warming
    )
}

/// What the replicas that do not serve are doing, in words: "3 pending-gpu, 2 loading (about 4 min left)".
pub fn shortage(replicas: &[&Replica]) -> Option<String> {
    let mut by_state: BTreeMap<ReplicaState, Vec<&Replica>> = BTreeMap::new();
    for replica in replicas.iter().filter(|replica| !replica.state.serves()) {
        by_state.entry(replica.state).or_default().push(replica);
    }
    let words: Vec<String> = by_state
        .into_iter()
        .map(|(state, of)| {
            let eta = of
                .iter()
                .filter_map(|replica| replica.eta_s.as_ref().ok())
                .fold(None, |most: Option<f64>, eta| Some(most.map_or(*eta, |most| most.max(*eta))));
            match eta.filter(|eta| *eta >= 1.0 && of.iter().any(|replica| on_its_way(replica))) {
                Some(eta) => format!("{} {state} (about {} left)", of.len(), crate::model::time::span(eta as i64)),
                None => format!("{} {state}", of.len()),
            }
        })
        .collect();
    (!words.is_empty()).then(|| words.join(", "))
}
