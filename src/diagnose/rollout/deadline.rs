//! `deadline-shorter-than-load`: `progressDeadlineSeconds` is shorter than download and load take.

use crate::diagnose::support::counted;
use crate::model::finding::{Code, Finding};
use crate::model::object::{Object, Workload, WorkloadKind};
use crate::model::service::Replica;
use crate::model::state::ReplicaState;
use crate::model::{Evidence, Place, Subject, time};
use crate::world::World;
use crate::world::probes::logs;

/// What the API sets where the field is absent: Deployments and Argo Rollouts.
const DEFAULT_S: i64 = 600;

pub(super) fn check(world: &World, out: &mut Vec<Finding>) {
    for (object, body) in world.objects.workloads() {
        if !matches!(body.kind, WorkloadKind::Deployment | WorkloadKind::Rollout) {
            continue;
        }
        let subject = object.subject();
        let deadline = body.progress_deadline_s.unwrap_or(DEFAULT_S);
        let Some(view) = world.workloads.get(&subject) else { continue };
        let late: Vec<(&Replica, i64, Option<f64>)> = view
            .replicas
            .iter()
            .filter_map(|replica| world.replicas.get(replica))
            .filter_map(|replica| {
                let (age, left) = late(world, replica, deadline)?;
                Some((replica, age, left))
            })
            .collect();
        if !late.is_empty() {
            out.push(finding(world, object, body, deadline, &late));
        }
    }
}

/// Age of a pod that moves and has not made it within the deadline, or will not; with the seconds left, where they are known.
fn late(world: &World, replica: &Replica, deadline: i64) -> Option<(i64, Option<f64>)> {
    use ReplicaState::{Downloading, Loading, Warming};
    if !matches!(replica.state, Downloading | Loading | Warming) || stalled(world, replica) {
        return None;
    }
    let (object, pod) = world.objects.pod(&replica.subject)?;
    // A pod that was restarted has another trouble than its deadline.
    if pod.restarts() > 0 {
        return None;
    }
    let age = time::seconds_between(object.meta.created?, world.now);
    // An init container's log tells what is left before the engine itself has started.
    let own = || {
        replica.engine.as_ref().ok()?.eta_s.as_ref().map(|fact| (fact.value - time::seconds_between(fact.at, world.now) as f64).max(0.0))
    };
    let left = replica.eta_s.clone().ok().or_else(own);
    let whole = age as f64 + left.unwrap_or(0.0);
    (whole > deadline as f64).then_some((age, left))
}

fn stalled(world: &World, replica: &Replica) -> bool {
    logs(world, &replica.subject).last().is_some_and(|log| log.stuck().is_some())
}

fn finding(world: &World, object: &Object, body: &Workload, deadline: i64, late: &[(&Replica, i64, Option<f64>)]) -> Finding {
    let subject = object.subject();
    let passed = body.condition("Progressing").filter(|condition| condition.is_false() && condition.reason == "ProgressDeadlineExceeded");
    let (slowest, age, left) =
        late.iter().max_by_key(|(_, age, _)| *age).map_or((None, 0, None), |(replica, age, left)| (Some(*replica), *age, *left));
    let name = slowest.map_or("its pod", |replica| replica.subject.name());
    let state = slowest.map_or_else(String::new, |replica| replica.state.to_string());
    let progress = slowest.and_then(|replica| replica.engine.as_ref().ok()?.progress.clone());
    let shown = progress.as_ref().map(|fact| format!(", {:.0} % done", fact.value * 100.0)).unwrap_or_default();
    let eta = left.map(|left| format!(", about {left:.0} s left")).unwrap_or_default();
    let aborts = body.canary.as_ref().is_some_and(|canary| canary.deadline_aborts);
    let effect = match (passed.is_some(), aborts) {
        (_, true) => "at the deadline the rollout is aborted (progressDeadlineAbort)",
        (true, false) => "ProgressDeadlineExceeded stops nothing: the rollout goes on, and nothing was rolled back",
        (false, false) => "when it passes, the rollout is only marked: it goes on and nothing is rolled back",
    };
    let said = if body.progress_deadline_s.is_some() { "" } else { " (not set: the default)" };
    let mut finding = Finding::new(
        Code::DeadlineShorterThanLoad,
        &subject,
        format!("the deadline of {} is {deadline} s, and {name} is {age} s old and still {state}{shown}{eta}; {effect}", subject.name()),
        Evidence::field(&subject, "spec.progressDeadlineSeconds", format!("{deadline}{said}")).of_uid(&object.meta.uid),
    );
    if let Some(condition) = passed {
        finding = finding.proof(Evidence::new(&subject, Place::Condition("Progressing".into()), condition.shown(), condition.since));
    }
    for (replica, age, _) in late.iter().take(4) {
        let created = world.objects.get(&replica.subject).and_then(|object| object.meta.created);
        finding = finding.also(&replica.subject).proof(
            Evidence::field(&replica.subject, "metadata.creationTimestamp", format!("{age} s ago, {}", replica.state)).seen_at(created),
        );
        finding = finding.proofs(replica.engine.as_ref().ok().and_then(|engine| engine.evidence.first().cloned()));
    }
    let needed = late.iter().map(|(_, age, left)| *age as f64 + left.unwrap_or(0.0)).fold(0.0, f64::max);
    let above = ((needed * 1.5) as i64).saturating_add(60);
    finding
        .remedy(format!("raise progressDeadlineSeconds above the whole time that download and load take (say {above})"))
        .remedy(format!("wait: {} on the way, and the deadline takes nothing back", counted(late.len(), "pod")))
        .not("delete or restart the pod: it would begin its download and load anew")
        .not(owner_hint(world, &subject))
}

fn owner_hint(world: &World, subject: &Subject) -> String {
    match world.objects.owner_chain(subject).last() {
        Some(owner) => format!("change the deadline on {subject} itself: {owner} owns it and writes it back"),
        None => "take ProgressDeadlineExceeded for a failed rollout: it is a clock, not a cause".into(),
    }
}

#[cfg(test)]
mod tests {
    use crate::diagnose::testkit::Kit;
    use crate::model::finding::Code;
    use rstest::rstest;
    use serde_json::{Value, json};

    fn kit(deadline: Value, bar: &str) -> Kit {
        let mut kit = Kit::new()
            .object(json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "w", "namespace": "s"},
                "spec": {"replicas": 1, "progressDeadlineSeconds": deadline, "selector": {"matchLabels": {"app": "a"}}}}))
            .loading_pod("w-x-1")
            .owned("w-x-1", "ReplicaSet", "w-x")
            .log("w-x-1", "vllm", &["Loading safetensors checkpoint shards:   0% Completed | 0/40 [00:00<?, ?it/s]", bar]);
        kit.change("pod/s/w-x-1", |pod| {
            pod["metadata"]["labels"] = json!({"app": "a", "pod-template-hash": "x"});
            pod["metadata"]["creationTimestamp"] = "2026-11-12T09:48:00Z".into();
        });
        kit
    }

    const HALF: &str = "Loading safetensors checkpoint shards:  50% Completed | 20/40 [02:30<02:30,  7.50s/it]";

    #[rstest]
    #[case::passed(json!(600), true)]
    #[case::the_default(Value::Null, true)]
    #[case::long_enough(json!(3600), false)]
    fn by_deadline(#[case] deadline: Value, #[case] fires: bool) {
        assert_eq!(kit(deadline, HALF).build().none(Code::DeadlineShorterThanLoad), !fires);
    }

    #[test]
    fn a_pod_that_waits_for_gpus_is_another_matter() {
        let mut waits = kit(json!(600), HALF);
        waits.change("pod/s/w-x-1", |pod| {
            pod["spec"]["nodeName"] = Value::Null;
            pod["status"] =
                json!({"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]});
        });
        assert!(waits.build().none(Code::DeadlineShorterThanLoad));
    }
}
