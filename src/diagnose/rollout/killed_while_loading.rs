//! `killed-while-loading`: a liveness or startup probe kills the container before the model is loaded.

use crate::diagnose::support::counted;
use crate::engines::LogReading;
use crate::engines::logs::Phase;
use crate::model::finding::{Code, Finding};
use crate::model::object::pod::{ContainerStatus, Probe};
use crate::model::object::{Object, Pod};
use crate::model::service::Replica;
use crate::model::{Evidence, Place, time};
use crate::world::World;
use crate::world::probes::{LoadTime, engine_container, guard, load_time, logs, served};

pub(super) fn check(world: &World, out: &mut Vec<Finding>) {
    for replica in world.replicas.values().filter(|replica| replica.subject.kind() == "pod") {
        out.extend(killed(world, replica));
    }
}

fn killed(world: &World, replica: &Replica) -> Option<Finding> {
    let (object, pod) = world.objects.pod(&replica.subject)?;
    let (container, status) = engine_container(world, replica)?;
    let status = status.filter(|status| status.restarts > 0)?;
    let (kind, probe) = guard(container)?;
    // Out of memory is another cause, and an engine that ends by itself has another code.
    let last = status.last.as_ref();
    if last.is_some_and(|last| last.reason == "OOMKilled" || !matches!(last.exit_code, Some(137 | 143 | 0) | None)) {
        return None;
    }
    let kill = kill_proof(world, replica, kind, status);
    if kill.is_none() && !outlived(status, probe) {
        return None;
    }
    let logs = logs(world, &replica.subject);
    if loaded_before(object, pod, &logs) {
        return None;
    }
    Some(finding(world, replica, status, (kind, probe), kill, load_time(world, &replica.subject)))
}

/// The kubelet's word that this probe made it kill, or that it fails again and again.
fn kill_proof(world: &World, replica: &Replica, kind: &str, status: &ContainerStatus) -> Option<Evidence> {
    let events = world.objects.events_about(&replica.subject);
    let names = |message: &str| {
        let lower = message.to_ascii_lowercase();
        lower.contains(kind) && lower.contains("probe")
    };
    let killing = events.iter().rev().find(|(_, event)| event.reason == "Killing" && names(&event.message) && event.message.contains(&status.name));
    let unhealthy = || events.iter().rev().find(|(_, event)| event.reason == "Unhealthy" && names(&event.message));
    let (_, event) = killing.or_else(unhealthy)?;
    let value = format!("{} (seen {} times)", event.message, event.count.max(1));
    Some(Evidence::new(&replica.subject, Place::Event(event.reason.clone()), value, event.last))
}

/// Whether the last run was killed (137) when its probe's budget was spent, give or take the grace period: events may be gone.
fn outlived(status: &ContainerStatus, probe: &Probe) -> bool {
    let Some(last) = status.last.as_ref().filter(|last| last.exit_code == Some(137)) else { return false };
    let Some((start, end)) = last.started.zip(last.finished) else { return false };
    let ran = time::seconds_between(start, end);
    let budget = probe.budget_s();
    (budget.saturating_sub(probe.period_s)..=budget.saturating_add(60)).contains(&ran)
}

/// Whether it came to serve before it was killed: then the probe kills a busy engine, not a loading one.
fn loaded_before(object: &Object, pod: &Pod, logs: &[LogReading]) -> bool {
    let previous: Vec<&LogReading> = logs.iter().filter(|log| log.previous_at.is_some()).collect();
    if let Some(last) = previous.last() {
        return served(last) || last.phase >= Some(Phase::Serving);
    }
    // Without a log: a pod that was never Ready since it was made has not served. Its condition would have moved.
    let ready = pod.condition("Ready");
    match (ready.and_then(|condition| condition.since), object.meta.created) {
        _ if ready.is_some_and(|condition| condition.is_true()) => true,
        (Some(since), Some(created)) => time::seconds_between(created, since) > 60,
        _ => false,
    }
}

fn finding(world: &World, replica: &Replica, status: &ContainerStatus, (kind, probe): (&str, &Probe), kill: Option<Evidence>, load: Option<LoadTime>) -> Finding {
    let subject = &replica.subject;
    let budget = probe.budget_s();
    let field = format!("spec.containers[{}].{kind}Probe", status.name);
    let settings = Evidence::field(
        subject,
        &field,
        format!(
            "{}: initialDelaySeconds {}, periodSeconds {}, failureThreshold {}: {budget} s until it kills",
            probe.shown(), probe.initial_delay_s, probe.period_s, probe.failure_threshold
        ),
    );
    let takes = match &load {
        Some(load) => match &load.seen {
            Some((seen, count)) => format!("loading takes about {:.0} s (at {count} after {seen:.0} s)", load.seconds),
            None => format!("loading takes about {:.0} s", load.seconds),
        },
        None => "how long loading takes is not known".into(),
    };
    let by_hand = load.as_ref().map_or(budget.saturating_mul(3), |load| (load.seconds * 1.5) as i64 + 60);
    let threshold = (by_hand / probe.period_s.max(1)).max(1);
    let mut finding = Finding::new(
        Code::KilledWhileLoading,
        subject,
        format!(
            "{} is killed by its {kind} probe while it loads: the probe gives it {budget} s, {takes}; {} so far, and the engine itself reports no error",
            subject.name(), counted(status.restarts as usize, "restart")
        ),
        kill.unwrap_or_else(|| settings.clone()),
    )
    .proof(settings)
    .proof(Evidence::field(subject, &format!("status.containerStatuses[{}].restartCount", status.name), status.restarts.to_string()));
    if let Some(last) = &status.last {
        finding = finding.proof(
            Evidence::field(subject, &format!("status.containerStatuses[{}].lastState", status.name), last.shown()).seen_at(last.finished),
        );
    }
    finding = finding.proofs(load.map(|load| load.evidence));
    if let Some(workload) = replica.workload.as_ref().filter(|workload| world.objects.get(workload).is_some()) {
        finding = finding.also(workload);
    }
    let add = if kind == "startup" {
        format!("raise failureThreshold of the startupProbe to {threshold} (with period {} s): its budget must be above the load time", probe.period_s)
    } else {
        format!("add a startupProbe with a budget above the load time, say period {} s and failureThreshold {threshold}: the liveness probe waits for it", probe.period_s)
    };
    finding
        .remedy(add)
        .remedy("change it where the pod's template is owned, so that it stays")
        .not("give it more memory: exit 137 comes from the kubelet's kill here, not from running out of memory")
        .not("roll back to an older model or engine version for it: the engine does not fail")
}

#[cfg(test)]
mod tests {
    use crate::diagnose::testkit::Kit;
    use crate::model::finding::Code;
    use rstest::rstest;
    use serde_json::{Value, json};

    const SHARDS: &str = "Loading safetensors checkpoint shards:  50% Completed | 20/40 [02:30<02:30,  7.50s/it]";

    fn kit(probes: Value, last: Value) -> Kit {
        let mut kit = Kit::new().loading_pod("a");
        kit.change("pod/s/a", |pod| {
            pod["spec"]["containers"][0].as_object_mut().unwrap().extend(probes.as_object().unwrap().clone());
            pod["status"]["containerStatuses"][0]["restartCount"] = 3.into();
            pod["status"]["containerStatuses"][0]["lastState"] = json!({"terminated": last});
        });
        kit
    }

    fn liveness() -> Value {
        json!({"livenessProbe": {"httpGet": {"path": "/health", "port": 8000}, "initialDelaySeconds": 120, "periodSeconds": 10, "failureThreshold": 6}})
    }

    fn killed() -> Value {
        json!({"exitCode": 137, "reason": "Error", "startedAt": "2026-11-12T09:54:00Z", "finishedAt": "2026-11-12T09:57:25Z"})
    }

    #[rstest]
    #[case::the_kubelet_says_so("Killing", "Container vllm failed liveness probe, will be restarted", killed(), true)]
    #[case::by_the_time_it_ran("Other", "", killed(), true)]
    #[case::it_ran_out_of_memory("Killing", "Container vllm failed liveness probe, will be restarted",
        json!({"exitCode": 137, "reason": "OOMKilled"}), false)]
    #[case::it_failed_by_itself("Other", "", json!({"exitCode": 1, "reason": "Error"}), false)]
    #[case::killed_for_another_cause("Other", "", json!({"exitCode": 137, "startedAt": "2026-11-12T09:54:00Z", "finishedAt": "2026-11-12T09:54:20Z"}), false)]
    fn fires_or_not(#[case] reason: &str, #[case] message: &str, #[case] last: Value, #[case] fires: bool) {
        let world = kit(liveness(), last).event("Pod", "a", reason, message).previous_log("a", "vllm", "2026-11-12T09:57:25Z", &[SHARDS]).build();
        assert_eq!(world.none(Code::KilledWhileLoading), !fires);
    }

    #[test]
    fn an_engine_that_had_served_was_not_loading() {
        let served = ["INFO:     Application startup complete.", "INFO:     127.0.0.1 - \"GET /health HTTP/1.1\" 200 OK"];
        let world = kit(liveness(), killed()).previous_log("a", "vllm", "2026-11-12T09:57:25Z", &served).build();
        assert!(world.none(Code::KilledWhileLoading));
    }

    #[test]
    fn a_startup_probe_is_the_one_that_counts() {
        let mut probes = liveness();
        probes["startupProbe"] = json!({"httpGet": {"path": "/health", "port": 8000}, "periodSeconds": 5, "failureThreshold": 36});
        let world = kit(probes, killed()).event("Pod", "a", "Killing", "Container vllm failed startup probe, will be restarted").build();
        let finding = world.only(Code::KilledWhileLoading);
        assert!(finding.summary.contains("startup probe") && finding.summary.contains("180 s"), "{}", finding.summary);
    }
}
