//! `leaked-gpu-memory`: memory of a GPU is used, and by no pod that runs.
//!
//! A process that outlived its container holds the memory; the next engine on that card dies at start, and its own settings are not to
//! blame. Where the exporter names the pods of devices, a device without a running one is the proof. Where it does not, a node without
//! any GPU pod that runs is; or a log that names the card and too little free memory on it, while fewer slots are in use than cards.

use std::collections::BTreeSet;

use crate::diagnose::support::number;
use crate::model::finding::{Code, Finding};
use crate::model::object::{ContainerState, Pod};
use crate::model::{Evidence, Place, Subject, text, time};
use crate::world::World;
use crate::world::gpu::{Device, NodeGpus};

/// Memory from which on it is some process's, MiB; drivers and contexts keep a few hundred.
const USED_MIB: f64 = 2048.0;
/// Seconds after the end of a container in which its memory may still be on its way back.
const FREEING_S: i64 = 60;
/// Log phrases of an engine that found too little memory.
const PHRASES: &[&str] = &["Free memory on device", "CUDA out of memory", "OutOfMemoryError", "not enough memory"];

pub(super) fn check(world: &World, out: &mut Vec<Finding>) {
    for (subject, node) in &world.gpu.nodes {
        if node.pods_hidden.is_some() || !node.by_claim.is_empty() || node.sharing.is_some() {
            continue;
        }
        let devices: Vec<(&Subject, &Device)> = world.gpu.devices_of(subject).collect();
        let used: Vec<&(&Subject, &Device)> =
            devices.iter().filter(|(_, device)| device.memory_used.as_ref().is_ok_and(|used| used.value >= USED_MIB)).collect();
        for (name, device) in &used {
            if let Some(proof) = leaked(world, node, device, used.len()) {
                out.push(finding(world, node, name, device, proof));
            }
        }
    }
}

/// Log lines that name the card, or lack of memory, of pods on the node.
type Lines = Vec<(Subject, Evidence)>;

/// Whether nothing that runs holds the memory of a device: log lines that say so too, where there are any.
fn leaked(world: &World, node: &NodeGpus, device: &Device, used: usize) -> Option<Lines> {
    let lines = lines(world, node, device);
    let holds = |pod: &Subject| world.objects.pod(pod).is_some_and(|(_, body)| may_hold(body, device));
    let by_holder = match &device.held_by {
        Ok(holders) => !holders.iter().any(holds),
        Err(_) => {
            let running: u32 = node
                .pods
                .iter()
                .filter(|pod| holds(pod))
                .filter_map(|pod| world.objects.pod(pod))
                .map(|(_, body)| body.spec.gpus())
                .fold(0, u32::saturating_add);
            let named = lines.iter().any(|(_, line)| line.value.contains(&device.uuid)) && lines.len() > 1;
            running == 0 || (named && used > running as usize)
        }
    };
    by_holder.then_some(lines)
}

/// Whether a pod may hold memory: one of its GPU containers runs, or ended too short a time before the page.
fn may_hold(pod: &Pod, device: &Device) -> bool {
    if pod.has_ended() {
        return false;
    }
    let recent = |at: Option<jiff::Timestamp>| at.is_some_and(|at| time::seconds_between(at, device.at) < FREEING_S);
    pod.containers.iter().any(|status| {
        let runs = matches!(status.state, ContainerState::Running { .. });
        let just_ended = match &status.state {
            ContainerState::Terminated(end) => recent(end.finished),
            _ => status.last.as_ref().is_some_and(|last| recent(last.finished)),
        };
        let gpus = pod.spec.containers.iter().any(|container| container.name == status.name && container.gpus() > 0);
        gpus && (runs || just_ended)
    })
}

fn lines(world: &World, node: &NodeGpus, device: &Device) -> Lines {
    let mut out = Lines::new();
    for pod in &node.pods {
        let (mut named, mut short) = (None, None);
        for log in world.logs.get(pod).into_iter().flatten() {
            let proof = |line: &str| Evidence::new(pod, Place::Log(log.container.clone()), text::tidy(line), log.previous_at);
            for line in &log.lines {
                if !device.uuid.is_empty() && line.contains(device.uuid.as_str()) {
                    named = Some(proof(line));
                }
                if PHRASES.iter().any(|phrase| line.contains(phrase)) {
                    short = Some(proof(line));
                }
            }
        }
        // Lines of a pod that names another card are not about this one.
        let other = named.is_none()
            && world.gpu.devices_of(&device.node).any(|(_, other)| {
                other.uuid != device.uuid
                    && !other.uuid.is_empty()
                    && world.logs.get(pod).into_iter().flatten().flat_map(|log| &log.lines).any(|line| line.contains(other.uuid.as_str()))
            });
        if !other {
            out.extend(named.into_iter().chain(short).map(|line| (pod.clone(), line)));
        }
    }
    out
}

fn finding(world: &World, node: &NodeGpus, subject: &Subject, device: &Device, lines: Lines) -> Finding {
    let used = device.memory_used.as_ref().map_or(0.0, |used| used.value);
    let total = device.memory_total.as_ref().map(|total| format!(" of {}", number(*total))).unwrap_or_default();
    let mut stuck: BTreeSet<&Subject> = lines.iter().map(|(pod, _)| pod).collect();
    if stuck.is_empty() {
        stuck.extend(node.pods.iter().filter(|pod| world.objects.pod(pod).is_some_and(|(_, body)| !may_hold(body, device))));
    }
    let mut words = format!("{}{total} MiB of {} on {} are used by no pod that runs", number(used), device.uuid, device.node.name());
    if !stuck.is_empty() {
        let names: Vec<String> = stuck
            .iter()
            .map(|pod| {
                world.replicas.get(*pod).map_or_else(|| pod.name().to_owned(), |replica| format!("{} ({})", pod.name(), replica.state))
            })
            .collect();
        words = format!("{words}; pods that want it: {}", names.join(", "));
    }
    if let Some((_, line)) = lines.iter().find(|(_, line)| PHRASES.iter().any(|phrase| line.value.contains(phrase))) {
        words = format!("{words}; taken before it started: {}", line.value);
    }
    let place = Place::Metric("DCGM_FI_DEV_FB_USED".into());
    let value = format!("{} MiB, {}", number(used), device.uuid);
    let mut finding =
        Finding::new(Code::LeakedGpuMemory, subject, words, Evidence::new(subject, place, value, Some(device.at))).also(&device.node);
    for pod in stuck {
        finding = finding.also(pod);
        if let Some((object, body)) = world.objects.pod(pod)
            && let Some(status) = body.containers.first()
        {
            let shown = match (&status.state, &status.last) {
                (ContainerState::Waiting { reason, .. }, Some(last)) => format!("{reason}, last run {}", last.shown()),
                (ContainerState::Waiting { reason, .. }, None) => reason.clone(),
                (ContainerState::Terminated(end), _) => end.shown(),
                _ => "not running".into(),
            };
            let path = format!("status.containerStatuses[{}].state", status.name);
            finding = finding.proof(Evidence::field(pod, &path, shown).of_uid(&object.meta.uid));
        }
    }
    finding
        .proofs(lines.into_iter().map(|(_, line)| line))
        .remedy(format!("find the process that holds the memory on {} (nvidia-smi, fuser /dev/nvidia*) and end it", device.node.name()))
        .remedy("or let the owner of the node reset the GPU, or reboot the node")
        .remedy("meanwhile let the pod go to another GPU or another node: cordon this one and delete the pod")
        .not("lower --gpu-memory-utilization: the memory is taken before the engine starts, its settings are not the cause")
}

#[cfg(test)]
mod tests {
    use crate::diagnose::testkit::Kit;
    use crate::model::finding::Code;
    use rstest::rstest;
    use serde_json::{Value, json};

    /// Its container ended ten minutes ago and waits to be started again.
    fn crashing(pod: &mut Value) {
        pod["status"]["conditions"][3]["status"] = "False".into();
        pod["status"]["containerStatuses"][0] = json!({"name": "vllm", "ready": false, "started": false, "restartCount": 5,
            "state": {"waiting": {"reason": "CrashLoopBackOff"}},
            "lastState": {"terminated": {"exitCode": 1, "reason": "Error", "finishedAt": "2026-11-12T09:50:00Z"}}});
    }

    #[rstest]
    #[case::by_a_crashing_pod_alone(true, &[(0, 70_000, "")], true)]
    #[case::little_is_nothing(true, &[(0, 500, "")], false)]
    #[case::by_one_that_runs(false, &[(0, 70_000, "")], false)]
    #[case::labelled_and_running(false, &[(0, 70_000, "a")], false)]
    #[case::labelled_beside_a_running_one(false, &[(0, 70_000, "a"), (1, 60_000, "")], true)]
    #[case::unlabelled_beside_a_running_one(false, &[(0, 70_000, ""), (1, 60_000, "")], false)]
    fn memory_beside_pods(#[case] crashes: bool, #[case] cards: &[(u32, u32, &str)], #[case] fires: bool) {
        let world = Kit::new()
            .node("n1", 2, |_| ())
            .gpu_pod("a", "n1", 1, |pod| {
                if crashes {
                    crashing(pod);
                }
            })
            .exporter("n1", cards)
            .build();
        assert_eq!(!world.none(Code::LeakedGpuMemory), fires, "{:?}", world.findings);
    }

    #[test]
    fn the_log_names_the_card_beside_others_that_run() {
        let finding = Kit::new()
            .node("n1", 2, |_| ())
            .gpu_pod("a", "n1", 1, crashing)
            .gpu_pod("b", "n1", 1, |_| ())
            .exporter("n1", &[(0, 70_000, ""), (1, 60_000, "")])
            .log("a", "vllm", &["NVIDIA_VISIBLE_DEVICES=GPU-1", "ValueError: Free memory on device (9.41/79.10 GiB) on startup is less"])
            .build()
            .only(Code::LeakedGpuMemory);
        assert_eq!(finding.subjects[0].as_str(), "node/n1/gpu/1");
        assert!(finding.summary.contains("9.41/79.10"), "{}", finding.summary);
        assert!(finding.not.iter().any(|not| not.contains("gpu-memory-utilization")));
    }

    #[test]
    fn memory_on_its_way_back_is_no_leak() {
        let world = Kit::new()
            .node("n1", 2, |_| ())
            .gpu_pod("a", "n1", 1, |pod| {
                crashing(pod);
                pod["status"]["containerStatuses"][0]["lastState"]["terminated"]["finishedAt"] = "2026-11-12T09:59:30Z".into();
            })
            .exporter("n1", &[(0, 70_000, "")])
            .build();
        assert!(world.none(Code::LeakedGpuMemory));
    }
}
