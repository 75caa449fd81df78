//! What probes give a container before the kubelet kills it, and how long its load takes.
//!
//! Owns the arithmetic and where the numbers come from. Must not say that something is wrong: that is a rule's.

use jiff::Timestamp;

use super::World;
use crate::engines::logs::{Counted, Phase};
use crate::engines::{LogReading, read_log};
use crate::model::object::pod::{Container, ContainerStatus, Probe};
use crate::model::service::Replica;
use crate::model::{Evidence, Subject};

/// The probe that guards a container until it has started: the startup probe, else the liveness probe.
pub fn guard(container: &Container) -> Option<(&'static str, &Probe)> {
    match (&container.startup, &container.liveness) {
        (Some(probe), _) => Some(("startup", probe)),
        (None, Some(probe)) => Some(("liveness", probe)),
        (None, None) => None,
    }
}

/// The container of a pod that runs the engine, with its status: the claimed one, else the first.
pub fn engine_container<'a>(world: &'a World, replica: &Replica) -> Option<(&'a Container, Option<&'a ContainerStatus>)> {
    let (_, pod) = world.objects.pod(&replica.subject)?;
    let name = claimed(world, replica);
    let container = match name {
        Some(name) => pod.spec.containers.iter().chain(&pod.spec.init_containers).find(|container| container.name == name),
        None => None,
    }
    .or_else(|| pod.spec.containers.first())?;
    Some((container, pod.container(&container.name)))
}

fn claimed<'a>(world: &'a World, replica: &Replica) -> Option<&'a str> {
    let service = world.services.get(replica.service.as_ref()?)?;
    service
        .claim
        .roles
        .iter()
        .flat_map(|role| &role.replicas)
        .find(|claim| claim.pods.contains(&replica.subject))
        .and_then(|claim| claim.container.as_deref())
}

/// All logs of a pod, read; the runs before restarts first.
pub fn logs(world: &World, pod: &Subject) -> Vec<LogReading> {
    let kind = world.engines.get(pod).and_then(|engine| engine.kind.clone().ok());
    let mut logs: Vec<LogReading> = world.logs.get(pod).into_iter().flatten().map(|log| read_log(log, kind, world.now)).collect();
    logs.sort_by_key(|log| log.previous_at.map_or((1, Timestamp::UNIX_EPOCH), |at| (0, at)));
    logs
}

/// Whether a log shows that the engine came to serve in that run.
pub fn served(log: &LogReading) -> bool {
    log.reached.contains_key(&Phase::Serving)
}

/// Seconds that a whole load takes, with what shows it.
#[derive(Debug, Clone, PartialEq)]
pub struct LoadTime {
    /// Seconds.
    pub seconds: f64,
    /// Seconds that were seen of it, and the count at that time, where a log shows the way there.
    pub seen: Option<(f64, String)>,
    /// What shows it.
    pub evidence: Evidence,
}

/// How long reading the weights takes as the logs of this pod and its earlier runs show it: the run that came furthest tells best.
/// A lower bound: what comes after the weights is not in it.
pub fn load_time(world: &World, pod: &Subject) -> Option<LoadTime> {
    let logs = logs(world, pod);
    logs.iter()
        .filter_map(|log| {
            let progress = log.newest_of(Counted::Shards).or_else(|| log.newest_of(Counted::Download))?;
            let (elapsed, share) = (progress.elapsed_s?, progress.share.filter(|share| *share > 0.0 && *share <= 1.0)?);
            let whole = if share >= 1.0 { elapsed } else { progress.whole_s().unwrap_or(elapsed / share) };
            Some((
                share,
                LoadTime { seconds: whole, seen: Some((elapsed, progress.count.clone())), evidence: log.evidence(&progress.line) },
            ))
        })
        .max_by(|(a, _), (b, _)| a.total_cmp(b))
        .map(|(_, load)| load)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnose::testkit::Kit;

    #[test]
    fn the_run_that_came_furthest_tells_the_load() {
        let world = Kit::new()
            .loading_pod("a")
            .log("a", "vllm", &["Loading safetensors checkpoint shards:  25% Completed | 10/40 [01:00<03:00,  6.00s/it]"])
            .previous_log(
                "a",
                "vllm",
                "2026-11-12T09:58:00Z",
                &["Loading safetensors checkpoint shards:  50% Completed | 20/40 [02:30<02:30,  7.50s/it]"],
            )
            .build()
            .world;
        let load = load_time(&world, &Subject::pod("s", "a")).unwrap();
        assert_eq!(load.seconds, 300.0);
        assert_eq!(load.seen, Some((150.0, "20/40".into())));
    }

    #[test]
    fn a_log_without_progress_tells_nothing() {
        let world = Kit::new().loading_pod("a").log("a", "vllm", &["hello"]).build().world;
        assert_eq!(load_time(&world, &Subject::pod("s", "a")), None);
    }
}
