//! `group-restart-loop`: a multi-node group is made anew again and again before it is ready.

use crate::engines::LogReading;
use crate::model::finding::{Code, Finding};
use crate::model::service::Replica;
use crate::model::state::ReplicaState;
use crate::model::{Evidence, Subject, time};
use crate::world::World;
use crate::world::probes::logs;
use crate::world::restarts::{GroupRestarts, group_restarts};

/// Restarts before it is a loop: one worker that failed once is none.
const LOOP: u32 = 3;
/// Seconds since the last restart after which a loop is over.
const OVER_S: i64 = 3600;

pub(super) fn check(world: &World, out: &mut Vec<Finding>) {
    for (subject, group) in &world.replicas {
        if !subject.as_str().contains("/group/") || group.pod_ready == Ok(true) {
            continue;
        }
        let Some(restarts) = group_restarts(&world.objects, subject).filter(|restarts| restarts.count >= LOOP) else { continue };
        if restarts.last.is_some_and(|last| time::seconds_between(last, world.now) > OVER_S) {
            continue;
        }
        out.push(finding(world, subject, group, &restarts));
    }
}

/// The member that is late: the one whose state is the most basic.
fn late<'a>(world: &'a World, group: &Replica) -> Option<&'a Replica> {
    use ReplicaState::{Crashing, Dead, PendingGpu, Pulling, Starting, WaitingAdmission};
    let order = [WaitingAdmission, PendingGpu, Pulling, Crashing, Dead, Starting];
    let members: Vec<&Replica> = group.pods.iter().filter_map(|pod| world.replicas.get(pod)).collect();
    let started = |replica: &&&Replica| replica.ladder.has(crate::model::ladder::Stage::Started);
    order
        .iter()
        .find_map(|state| members.iter().find(|member| member.state == *state && !(member.state == Starting && started(member))))
        .copied()
}

/// The log in which the last run of a member says why it ended.
fn failure(logs: &[(Subject, Vec<LogReading>)]) -> Option<(&Subject, Evidence, &'static str)> {
    logs.iter().find_map(|(pod, logs)| {
        let log = logs.iter().rev().find(|log| log.failure.is_some())?;
        let (failure, line) = log.failure.as_ref()?;
        Some((pod, log.evidence(line), failure.words()))
    })
}

fn finding(world: &World, subject: &Subject, group: &Replica, restarts: &GroupRestarts) -> Finding {
    let set = Subject::object(subject.kind(), subject.namespace(), subject.name());
    let index = subject.as_str().rsplit('/').next().unwrap_or_default();
    let period = restarts.period_s.map(|seconds| format!(", about every {}", time::span(seconds as i64))).unwrap_or_default();
    let members = group.pods.len();
    let late = late(world, group);
    let read: Vec<(Subject, Vec<LogReading>)> = group.pods.iter().map(|pod| (pod.clone(), logs(world, pod))).collect();
    let failed = failure(&read);
    let node = late.and_then(|member| Some(world.objects.pod(&member.subject)?.1.node.clone())).filter(|node| !node.is_empty());
    let on = node.as_ref().map(|node| format!(" on {node}")).unwrap_or_default();
    let mut cause = late.map(|member| {
        let doing = match member.state {
            ReplicaState::Pulling => "still pulls its image".to_owned(),
            ReplicaState::PendingGpu => "finds no node".into(),
            state => format!("is {state}"),
        };
        let long = member.since.map(|since| format!(" since {}", time::span(time::seconds_between(since, world.now)))).unwrap_or_default();
        format!("1 of its {members} pods is late: {}{on} {doing}{long}", member.subject.name())
    });
    if let Some((pod, line, words)) = &failed {
        let said = format!("{} gave up: {words} ({})", pod.name(), line.value);
        cause = Some(cause.map_or(said.clone(), |cause| format!("{cause}, while {said}")));
    }
    let cause = cause.map(|cause| format!("; {cause}")).unwrap_or_default();
    let mut finding = Finding::new(
        Code::GroupRestartLoop,
        &set,
        format!("group {index} of {} was made anew {} times{period} and is not ready{cause}", set.name(), restarts.count),
        restarts.evidence.first().cloned().unwrap_or_else(|| Evidence::field(subject, "status", "made anew")),
    )
    .also(subject)
    .proofs(restarts.evidence.iter().skip(1).take(3).cloned());
    if let Some(member) = late {
        finding = finding.also(&member.subject).proofs(member.evidence.first().cloned());
        finding = match member.state {
            ReplicaState::Pulling => finding.remedy(format!("pre-pull the image{on}, so that all pods of the group start together")),
            ReplicaState::PendingGpu | ReplicaState::WaitingAdmission => {
                finding.remedy(format!("give {} a node first: the others start without it", member.subject.name()))
            }
            _ => finding.remedy(format!("look at the log of {}: it is the one that fails", member.subject.name())),
        };
    }
    if let Some((_, line, _)) = failed {
        finding = finding.proof(line);
    }
    let policy = world.objects.workload(&set).map(|(_, body)| body.strategy.restart_policy.clone()).unwrap_or_default();
    if !policy.is_empty() {
        finding = finding.proof(Evidence::field(&set, "spec.leaderWorkerTemplate.restartPolicy", policy.clone()));
    }
    if policy != "RecreateGroupAfterStart" {
        finding = finding.remedy(format!(
            "make the group anew only after all its pods have started: restartPolicy RecreateGroupAfterStart on {set} (before lws 0.10 the annotation leaderworkerset.sigs.k8s.io/experimental-recreate-group-after-start)"
        ));
    }
    finding
        .remedy("raise the time for which the leader waits for its workers to join")
        .not("restart or delete the group by hand: it only begins the same round again")
}

#[cfg(test)]
mod tests {
    use crate::diagnose::testkit::Kit;
    use crate::model::finding::Code;
    use rstest::rstest;
    use serde_json::{Value, json};

    fn kit(count: u32, last: &str, ready: bool) -> Kit {
        let labels = |worker: &str| json!({"leaderworkerset.sigs.k8s.io/name": "m", "leaderworkerset.sigs.k8s.io/group-index": "0", "leaderworkerset.sigs.k8s.io/worker-index": worker});
        let kit = Kit::new()
            .object(json!({"apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": "LeaderWorkerSet", "metadata": {"name": "m", "namespace": "s"},
                "spec": {"replicas": 1, "leaderWorkerTemplate": {"size": 2, "restartPolicy": "RecreateGroupOnPodRestart"}}}))
            .object(json!({"apiVersion": "v1", "kind": "Event", "metadata": {"name": "e", "namespace": "s"}, "reason": "RecreateGroup", "count": count,
                "message": "Worker pod m-0-1 failed, deleted leader pod m-0 to recreate group 0", "firstTimestamp": "2026-11-12T06:00:00Z",
                "lastTimestamp": last, "involvedObject": {"kind": "LeaderWorkerSet", "namespace": "s", "name": "m"}}));
        let mut kit =
            if ready { kit.pod_with("m-0", |_| ()).pod_with("m-0-1", |_| ()) } else { kit.loading_pod("m-0").loading_pod("m-0-1") };
        kit.change("pod/s/m-0", |pod| pod["metadata"]["labels"] = labels("0"));
        kit.change("pod/s/m-0-1", |pod| {
            pod["metadata"]["labels"] = labels("1");
            if !ready {
                pod["spec"]["nodeName"] = "n9".into();
                pod["status"]["containerStatuses"][0]["state"] = json!({"waiting": {"reason": "ContainerCreating"}});
                pod["status"]["containerStatuses"][0]["started"] = Value::Null;
            }
        });
        kit.event("Pod", "m-0-1", "Pulling", "Pulling image x")
    }

    #[rstest]
    #[case::a_loop(14, "2026-11-12T09:57:00Z", false, true)]
    #[case::once(1, "2026-11-12T09:57:00Z", false, false)]
    #[case::it_came_up(14, "2026-11-12T09:40:00Z", true, false)]
    #[case::long_over(14, "2026-11-12T08:00:00Z", false, false)]
    fn fires_or_not(#[case] count: u32, #[case] last: &str, #[case] ready: bool, #[case] fires: bool) {
        assert_eq!(kit(count, last, ready).build().none(Code::GroupRestartLoop), !fires);
    }

    #[test]
    fn names_the_member_that_is_late_and_why_the_leader_gave_up() {
        let line = "torch.distributed.DistStoreError: Timed out after 181 seconds waiting for clients. 1/2 clients joined.";
        let finding = kit(14, "2026-11-12T09:57:00Z", false)
            .previous_log("m-0", "vllm", "2026-11-12T09:57:00Z", &[line])
            .build()
            .only(Code::GroupRestartLoop);
        assert!(finding.summary.contains("m-0-1 on n9 still pulls"), "{}", finding.summary);
        assert!(finding.summary.contains("181 seconds"), "{}", finding.summary);
    }
}
