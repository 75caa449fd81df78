//! `rollout-blocked-by-admission`: pods of the rollout stay behind a scheduling gate.
//!
//! Kueue makes one Workload for each group of a LeaderWorkerSet, one for a StatefulSet, one for each pod of a Deployment (kueue v0.19).

use serde_json::Value;

use crate::model::finding::{Code, Finding};
use crate::model::object::{Body, Object, WorkloadKind};
use crate::model::service::Replica;
use crate::model::state::ReplicaState;
use crate::model::{Evidence, Place, Subject, time};
use crate::systems::owners::group_of;
use crate::world::World;
use crate::world::revision::{Update, updates};

/// Seconds behind a gate before it is a finding: each gated pod waits a moment.
const AFTER_S: i64 = 60;
/// Kueue's gate.
const KUEUE: &str = "kueue.x-k8s.io/";

pub(super) fn check(world: &World, out: &mut Vec<Finding>) {
    for update in updates(world).into_iter().filter(|update| !update.old.is_empty()) {
        let gated: Vec<&Replica> = update
            .new
            .iter()
            .copied()
            .filter(|replica| replica.state == ReplicaState::WaitingAdmission)
            .filter(|replica| replica.since.is_none_or(|since| time::seconds_between(since, world.now) >= AFTER_S))
            .collect();
        if !gated.is_empty() {
            out.push(finding(world, &update, &gated));
        }
    }
}

/// What Kueue has for a gated pod.
enum Admission<'a> {
    /// A Workload that has no quota, or waits for a check.
    Waits(&'a Subject, String),
    /// A Workload that is admitted: the gate should be lifted any moment.
    Admitted(&'a Subject),
    /// None was read.
    None,
}

fn admission<'a>(world: &'a World, pod: &Object) -> Admission<'a> {
    let group = group_of(pod);
    let mut found = world.objects.all().filter(|(subject, object)| {
        subject.kind() == "workload"
            && object.group() == "kueue.x-k8s.io"
            && object.meta.namespace == pod.meta.namespace
            && stands_for(object, pod, group.as_ref())
    });
    let Some((subject, object)) = found.next() else { return Admission::None };
    let Body::Other(body) = &object.body else { return Admission::None };
    for kind in ["QuotaReserved", "Admitted"] {
        let conditions = body.pointer("/status/conditions").and_then(Value::as_array).into_iter().flatten();
        let condition = conditions.into_iter().find(|condition| condition.get("type").and_then(Value::as_str) == Some(kind));
        let text = |key: &str| condition.and_then(|condition| condition.get(key)).and_then(Value::as_str).unwrap_or_default();
        if text("status") != "True" {
            let message = if text("message").is_empty() { text("reason") } else { text("message") };
            let status = if condition.is_some() { text("status") } else { "not set" };
            return Admission::Waits(subject, format!("{kind} {status}: {message}"));
        }
    }
    Admission::Admitted(subject)
}

/// Whether a Kueue Workload stands for this pod: it is owned by it or carries the name of its group or pod group.
fn stands_for(workload: &Object, pod: &Object, group: Option<&(Subject, u32)>) -> bool {
    let owned = workload.meta.owners.iter().any(|owner| owner.kind == "Pod" && owner.name == pod.meta.name);
    let named = pod.meta.label("kueue.x-k8s.io/pod-group-name").is_some_and(|name| workload.meta.name == name);
    // `leaderworkerset-<set>-<group>-<hash>`.
    let of_group = group.is_some_and(|(group, _)| {
        let index = group.as_str().rsplit('/').next().unwrap_or_default();
        workload.meta.name.starts_with(&format!("leaderworkerset-{}-{index}-", group.name()))
            || workload.meta.name == format!("leaderworkerset-{}-{index}", group.name())
    });
    owned || named || of_group
}

fn finding(world: &World, update: &Update, gated: &[&Replica]) -> Finding {
    let subject = &update.workload;
    let gates =
        |replica: &Replica| world.objects.pod(&replica.subject).map(|(_, pod)| pod.spec.scheduling_gates.join(", ")).unwrap_or_default();
    let shown: Vec<String> = gated
        .iter()
        .take(4)
        .map(|replica| match world.objects.get(&replica.subject).and_then(group_of) {
            Some((group, _)) => format!("{} (group {})", replica.subject.name(), group.as_str().rsplit('/').next().unwrap_or_default()),
            None => replica.subject.name().to_owned(),
        })
        .collect();
    let kueue = gated.iter().any(|replica| gates(replica).contains(KUEUE));
    let first = gated.first().map(|replica| gates(replica)).unwrap_or_default();
    let gate = if first.is_empty() { "a gate that it does not name".to_owned() } else { first };
    let waited = gated
        .iter()
        .filter_map(|replica| replica.since)
        .min()
        .map(|at| format!(" since {}", time::span(time::seconds_between(at, world.now))))
        .unwrap_or_default();
    let mut missing = false;
    let mut proofs: Vec<Evidence> = Vec::new();
    let mut told: Vec<String> = Vec::new();
    for replica in gated.iter().take(4).filter(|_| kueue) {
        let Some((object, _)) = world.objects.pod(&replica.subject) else { continue };
        match admission(world, object) {
            Admission::None => {
                missing = true;
                told.push(format!("no Workload object was found for {}", replica.subject.name()));
                proofs.push(Evidence::field(&replica.subject, "metadata.name", "no kueue.x-k8s.io Workload stands for it"));
            }
            Admission::Waits(workload, words) => {
                told.push(format!("its Workload {} waits: {words}", workload.name()));
                proofs.push(Evidence::new(workload, Place::Field("status.conditions".into()), words, None));
            }
            Admission::Admitted(workload) => {
                told.push(format!("its Workload {} is admitted, and the gate was not lifted", workload.name()));
                proofs.push(Evidence::new(workload, Place::Condition("Admitted".into()), "True", None));
            }
        }
    }
    told.dedup();
    let tail = if told.is_empty() { String::new() } else { format!("; {}", told.join("; ")) };
    let mut finding = Finding::new(
        Code::RolloutBlockedByAdmission,
        subject,
        format!("the rollout of {} waits behind {gate}{waited}: {}{tail}; free GPUs do not matter here", subject.name(), shown.join(", ")),
        gated
            .first()
            .and_then(|replica| replica.evidence.first().cloned())
            .unwrap_or_else(|| Evidence::field(subject, "spec.schedulingGates", gate.clone())),
    );
    for replica in gated.iter().take(4) {
        finding = finding.also(&replica.subject);
    }
    finding = finding.proofs(proofs);
    let serving = update.old.iter().filter(|replica| replica.state.serves()).count();
    finding = finding.proof(Evidence::field(subject, "status", format!("{serving} pods of the old revision serve")));
    if update
        .body
        .is_some_and(|(_, body)| body.kind == WorkloadKind::LeaderWorkerSet || body.effective_bounds().is_some_and(|(surge, _)| surge > 0))
    {
        finding =
            finding.remedy("set maxSurge 0: the update then takes a replica that is admitted already, and needs no admission for a surge");
    }
    if kueue {
        let words = if missing {
            "and that a Workload for the surge is made (Kueue makes one for each group that it knows of)"
        } else {
            "so that its Workload is admitted"
        };
        finding = finding.remedy(format!("give the queue quota for the surge, {words}"));
        finding = finding.not("remove the scheduling gate by hand: Kueue's count of the quota breaks");
    } else {
        finding = finding.remedy(format!("look at the controller that lifts {gate}"));
    }
    finding.not("add GPUs: the scheduler does not look at the pod before the gate is lifted")
}

#[cfg(test)]
mod tests {
    use crate::diagnose::testkit::Kit;
    use crate::model::finding::Code;
    use rstest::rstest;
    use serde_json::{Value, json};

    fn lws(name: &str, group: &str, hash: &str) -> Value {
        json!({"leaderworkerset.sigs.k8s.io/name": name, "leaderworkerset.sigs.k8s.io/group-index": group,
            "leaderworkerset.sigs.k8s.io/worker-index": "0", "leaderworkerset.sigs.k8s.io/template-revision-hash": hash})
    }

    fn kit(old: &str, since: &str) -> Kit {
        Kit::new()
            .object(json!({"apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": "LeaderWorkerSet", "metadata": {"name": "m", "namespace": "s"},
                "spec": {"replicas": 1, "leaderWorkerTemplate": {"size": 1}, "rolloutStrategy": {"rollingUpdateConfiguration": {"maxSurge": 1}}}}))
            .pod_with("m-0", |pod| pod["metadata"]["labels"] = lws("m", "0", old))
            .pod_with("m-1", |pod| {
                pod["metadata"]["labels"] = lws("m", "1", "new");
                pod["metadata"]["creationTimestamp"] = since.into();
                pod["spec"]["nodeName"] = Value::Null;
                pod["spec"]["schedulingGates"] = json!([{"name": "kueue.x-k8s.io/admission"}]);
                pod["status"] = json!({"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False", "reason": "SchedulingGated",
                    "lastTransitionTime": since}]});
            })
    }

    fn workload(name: &str, reserved: &str) -> Value {
        json!({"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Workload", "metadata": {"name": name, "namespace": "s"},
            "status": {"conditions": [{"type": "QuotaReserved", "status": reserved, "message": "insufficient quota for nvidia.com/gpu"}]}})
    }

    #[rstest]
    #[case::half_way("old", "2026-11-12T09:30:00Z", true)]
    #[case::just_now("old", "2026-11-12T09:59:30Z", false)]
    #[case::a_scale_up_is_no_rollout("new", "2026-11-12T09:30:00Z", false)]
    fn fires_or_not(#[case] old: &str, #[case] since: &str, #[case] fires: bool) {
        assert_eq!(kit(old, since).build().none(Code::RolloutBlockedByAdmission), !fires);
    }

    #[rstest]
    #[case::none(None, "no Workload object")]
    #[case::of_another_group(Some(workload("leaderworkerset-m-0-x", "True")), "no Workload object")]
    #[case::without_quota(Some(workload("leaderworkerset-m-1-x", "False")), "insufficient quota")]
    fn says_what_kueue_has(#[case] object: Option<Value>, #[case] words: &str) {
        let kit = kit("old", "2026-11-12T09:30:00Z");
        let kit = match object {
            Some(object) => kit.object(object),
            None => kit,
        };
        let finding = kit.build().only(Code::RolloutBlockedByAdmission);
        assert!(finding.summary.contains(words) && finding.summary.contains("group 1"), "{}", finding.summary);
    }
}
