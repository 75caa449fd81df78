//! `probe-kills-busy-engine`: liveness fails under load, and the kubelet restarts an engine that serves.

use crate::diagnose::support::{counted, number};
use crate::engines::LogReading;
use crate::model::finding::{Code, Finding};
use crate::model::object::Event;
use crate::model::service::Replica;
use crate::model::{Evidence, Place, time};
use crate::world::World;
use crate::world::probes::{engine_container, logs, served};

/// Events older than this say nothing of the last restart, seconds.
const FRESH_S: i64 = 3600;

pub(super) fn check(world: &World, out: &mut Vec<Finding>) {
    for replica in world.replicas.values().filter(|replica| replica.subject.kind() == "pod") {
        out.extend(killed(world, replica));
    }
}

fn killed(world: &World, replica: &Replica) -> Option<Finding> {
    let (container, status) = engine_container(world, replica)?;
    let (status, probe) = (status?, container.liveness.as_ref()?);
    let events: Vec<&Event> = world
        .objects
        .events_about(&replica.subject)
        .into_iter()
        .map(|(_, event)| event)
        .filter(|event| matches!(event.reason.as_str(), "Killing" | "Unhealthy") && event.message.to_ascii_lowercase().contains("liveness"))
        .filter(|event| event.last.is_none_or(|last| time::seconds_between(last, world.now) <= FRESH_S))
        .collect();
    let killing = events.iter().rev().find(|event| event.reason == "Killing");
    let failing = events.iter().rev().find(|event| event.reason == "Unhealthy");
    let by_exit = status.restarts > 0 && status.last.as_ref().is_some_and(|last| matches!(last.exit_code, Some(137 | 143)) && last.reason != "OOMKilled");
    // The kubelet says that it kills, or the probe fails and the container was killed.
    let first = killing.or(failing.filter(|_| by_exit))?;
    let busy = busy(world, replica, status.restarts)?;
    let probe_words = format!(
        "{}: timeoutSeconds {}, periodSeconds {}, failureThreshold {}", probe.shown(), probe.timeout_s, probe.period_s, probe.failure_threshold
    );
    let seen = |event: &Event| {
        let value = format!("{} (seen {} times)", event.message, event.count.max(1));
        Evidence::new(&replica.subject, Place::Event(event.reason.clone()), value, event.last)
    };
    let mut finding = Finding::new(
        Code::ProbeKillsBusyEngine,
        &replica.subject,
        format!(
            "the liveness probe restarts {} although its engine serves: {} ({}, {} s for an answer), and {}",
            replica.subject.name(), counted(status.restarts as usize, "restart"), probe.shown(), probe.timeout_s, busy.0
        ),
        seen(first),
    )
    .proofs(killing.map(|event| seen(event)))
    .proofs(failing.map(|event| seen(event)))
    .proofs(busy.1)
    .proof(Evidence::field(&replica.subject, &format!("spec.containers[{}].livenessProbe", container.name), probe_words));
    if let Some(last) = &status.last {
        finding = finding.proof(
            Evidence::field(&replica.subject, &format!("status.containerStatuses[{}].lastState", status.name), last.shown()).seen_at(last.finished),
        );
    }
    Some(
        finding
            .remedy("give the liveness probe more time: a higher timeoutSeconds and failureThreshold; a busy engine answers late")
            .remedy("let liveness ask something that does not queue behind requests, or leave it to readiness")
            .remedy("spread the load, so that the engine's process has time to answer")
            .not("take it for a crash of the engine: it was killed while it served")
            .not("restart it: each restart cuts what runs and loads the model again"),
    )
}

/// What shows that the engine served when the probe failed: tokens that move, requests in its batch, or the log of the run that was killed.
fn busy(world: &World, replica: &Replica, restarts: u32) -> Option<(String, Vec<Evidence>)> {
    let engine = replica.engine.as_ref().ok();
    let logs = logs(world, &replica.subject);
    let before: Option<&LogReading> = logs.iter().rfind(|log| log.previous_at.is_some());
    // A run that had not come to serve was killed while it loaded.
    if before.is_some_and(|log| !served(log)) {
        return None;
    }
    let load = engine.and_then(|engine| engine.load.as_ref().ok());
    let mut proofs = Vec::new();
    if let Some(load) = load {
        for fact in [&load.running, &load.waiting, &load.generation_tokens].into_iter().filter_map(|fact| fact.as_ref().ok()) {
            proofs.push(Evidence::new(&replica.subject, Place::Metric(fact.source.clone()), number(fact.value), Some(fact.at)));
        }
    }
    if engine.is_some_and(|engine| engine.movement == Ok(true)) {
        return Some(("its token counters move".into(), proofs));
    }
    let running = load.and_then(|load| load.running.as_ref().ok()).map(|fact| fact.value).filter(|n| *n > 0.0);
    if let Some(running) = running {
        return Some((format!("{} requests run", number(running)), proofs));
    }
    let log = before.filter(|_| restarts > 0)?;
    proofs.extend(log.reached.get(&crate::engines::logs::Phase::Serving).map(|line| log.evidence(line)));
    Some(("its log shows that it served before it was killed".into(), proofs))
}

#[cfg(test)]
mod tests {
    use crate::diagnose::testkit::{Kit, vllm_page};
    use crate::model::finding::Code;
    use serde_json::json;

    fn kit() -> Kit {
        let kit = Kit::new().pod_with("a", |pod| {
            pod["spec"]["containers"][0]["livenessProbe"] = json!({"httpGet": {"path": "/health", "port": 8000}, "timeoutSeconds": 1});
            pod["status"]["containerStatuses"][0]["restartCount"] = 2.into();
            pod["status"]["containerStatuses"][0]["lastState"] = json!({"terminated": {"exitCode": 137, "reason": "Error"}});
        });
        kit.event("Pod", "a", "Unhealthy", "Liveness probe failed: context deadline exceeded")
    }

    #[test]
    fn tokens_move_while_it_fails() {
        let world = kit().page("a", -60, &vllm_page(9.0, 4.0, 10.0)).page("a", 0, &vllm_page(9.0, 4.0, 500.0)).build();
        let finding = world.only(Code::ProbeKillsBusyEngine);
        assert!(finding.summary.contains("2 restarts"), "{}", finding.summary);
        assert!(world.none(Code::KilledWhileLoading));
    }

    #[test]
    fn silent_without_a_sign_of_work_or_without_a_kill() {
        assert!(kit().build().none(Code::ProbeKillsBusyEngine));
        let mut alive = kit().page("a", 0, &vllm_page(9.0, 4.0, 10.0));
        alive.change("pod/s/a", |pod| pod["status"]["containerStatuses"][0]["restartCount"] = 0.into());
        assert!(alive.build().none(Code::ProbeKillsBusyEngine));
    }

    #[test]
    fn a_run_killed_while_it_loaded_is_another_finding() {
        let world = kit()
            .page("a", 0, &vllm_page(9.0, 4.0, 10.0))
            .previous_log("a", "vllm", "2026-11-12T09:57:25Z", &["Loading safetensors checkpoint shards:  50% Completed | 20/40 [02:30<02:30,  7.50s/it]"])
            .build();
        assert!(world.none(Code::ProbeKillsBusyEngine));
    }
}
