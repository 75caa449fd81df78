//! One word for one pod: what Kubernetes shows and what the engine says, put side by side.
//!
//! Where the two differ the engine's word decides the state (a pod that is Ready with a stalled engine is `stalled`), and the sentence
//! says so. What is not known never turns into "fine": a pod whose engine was not asked is what Kubernetes calls it, and says that.

use jiff::Timestamp;

use crate::engines::{DrainPromise, drain_promise};
use crate::model::engine::{EngineKind, EngineReport};
use crate::model::object::meta::Condition;
use crate::model::object::pod::ContainerStatus;
use crate::model::object::{Catalogue, ContainerState, Object, Pod};
use crate::model::service::Listing;
use crate::model::state::{EngineState, ReplicaState};
use crate::model::{Evidence, Known, Place, Subject, time};

/// What the judgement of a pod is made of.
pub struct PodCase<'a> {
    /// All objects, for events.
    pub objects: &'a Catalogue,
    /// The pod.
    pub object: &'a Object,
    /// Its body.
    pub pod: &'a Pod,
    /// Which engine it runs; unknown for pods that run none.
    pub engine_kind: Option<EngineKind>,
    /// Container of the engine, where known.
    pub container: Option<&'a str>,
    /// What the engine says.
    pub engine: Option<&'a EngineReport>,
    /// Whether it is listed.
    pub listing: &'a Listing,
    /// Whether Kubernetes calls it Ready.
    pub ready: &'a Known<bool>,
    /// The present.
    pub now: Timestamp,
}

/// The judgement.
#[derive(Debug, Clone, PartialEq)]
pub struct Verdict {
    /// One word.
    pub state: ReplicaState,
    /// Sentences, the one to show first.
    pub why: Vec<String>,
    /// Proof.
    pub evidence: Vec<Evidence>,
    /// Since when.
    pub since: Option<Timestamp>,
}

impl Verdict {
    fn new(state: ReplicaState, why: impl Into<String>, evidence: Evidence, since: Option<Timestamp>) -> Self {
        Self { state, why: vec![why.into()], evidence: vec![evidence], since }
    }

    fn and(mut self, why: impl Into<String>) -> Self {
        self.why.push(why.into());
        self
    }
}

/// Reasons of a waiting container that mean: its image does not come.
pub const PULL_TROUBLE: &[&str] = &["ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "RegistryUnavailable"];

/// Words in the name or image of an init container that fetches the model.
const FETCHERS: &[&str] =
    &["storage-initializer", "download", "fetch", "model-puller", "pull-model", "modelcar", "model-loader", "init-model"];

/// Judges a pod.
pub fn judge(case: &PodCase) -> Verdict {
    super::node::weigh(case, of_pod(case))
}

fn of_pod(case: &PodCase) -> Verdict {
    deleted(case)
        .or_else(|| ended(case))
        .or_else(|| not_scheduled(case))
        .or_else(|| init_containers(case))
        .or_else(|| waiting(case))
        .unwrap_or_else(|| running(case))
}

impl PodCase<'_> {
    fn subject(&self) -> Subject {
        self.object.subject()
    }

    /// The status of the engine's container, else of the first that is not ready, else the first.
    pub fn status(&self) -> Option<&ContainerStatus> {
        self.container
            .and_then(|name| self.pod.container(name))
            .or_else(|| self.pod.containers.iter().find(|status| !status.ready))
            .or_else(|| self.pod.containers.first())
    }

    fn condition_proof(&self, condition: &Condition) -> Evidence {
        Evidence::new(&self.subject(), Place::Condition(condition.kind.clone()), condition.shown(), condition.since)
            .of_uid(&self.object.meta.uid)
    }

    fn field_proof(&self, path: &str, value: impl Into<String>) -> Evidence {
        Evidence::field(&self.subject(), path, value).of_uid(&self.object.meta.uid)
    }
}

fn deleted(case: &PodCase) -> Option<Verdict> {
    let until = case.object.meta.deletion?;
    let since = case.object.meta.deleted_at();
    let left = time::seconds_between(case.now, until);
    let proof = case.field_proof("metadata.deletionTimestamp", until.to_string()).seen_at(since);
    let end = if left >= 0 { format!("killed in {}", time::span(left)) } else { format!("{} past its deadline", time::span(-left)) };
    let running = case
        .engine
        .and_then(|engine| engine.load.as_ref().ok())
        .and_then(|load| load.running.as_ref().ok())
        .map_or_else(|| "a number of requests nobody knows".to_owned(), |fact| format!("{} running", fact.value));
    if left < 0 {
        let verdict = Verdict::new(ReplicaState::Terminating, format!("being deleted, {end}"), proof, since);
        return Some(match case.object.meta.finalizers.as_slice() {
            [] => verdict,
            names => verdict.and(format!("finalizers hold it: {}", names.join(", "))),
        });
    }
    let container = case
        .container
        .and_then(|name| case.pod.spec.containers.iter().find(|container| container.name == name))
        .or_else(|| case.pod.spec.containers.first());
    let promise = match case.engine_kind {
        Some(kind) => drain_promise(&case.subject(), kind, container),
        None => DrainPromise::Unknown(crate::model::Unknown::because("its engine is not known")),
    };
    let hook = case.pod.spec.containers.iter().find_map(|container| container.pre_stop.as_ref());
    Some(match (&promise, hook) {
        (DrainPromise::Finishes { .. }, _) => {
            let mut verdict = Verdict::new(ReplicaState::Draining, format!("draining ({running}), {end}"), proof, since);
            verdict.evidence.extend(promise.evidence().iter().cloned());
            verdict
        }
        (_, Some(hook)) => Verdict::new(
            ReplicaState::Draining,
            format!("its preStop ({}) runs before the engine is told, {running}, {end}", hook.what),
            proof,
            since,
        ),
        (DrainPromise::Cuts { evidence }, None) => {
            let words = format!("being deleted, {running}: its engine cuts them at SIGTERM; {end}");
            let mut verdict = Verdict::new(ReplicaState::Terminating, words, proof, since);
            verdict.evidence.extend(evidence.iter().cloned());
            verdict
        }
        (DrainPromise::Unknown(_), None) => Verdict::new(ReplicaState::Terminating, format!("being deleted, {end}"), proof, since),
    })
}

fn ended(case: &PodCase) -> Option<Verdict> {
    let phase = case.pod.phase.as_deref().ok()?;
    if !case.pod.has_ended() {
        return None;
    }
    let shown =
        [case.pod.reason.as_str(), case.pod.message.as_str()].into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join(": ");
    let why = if shown.is_empty() { format!("the pod has ended ({phase})") } else { format!("the pod has ended ({phase}): {shown}") };
    let since = case.pod.containers.iter().find_map(|status| match &status.state {
        ContainerState::Terminated(end) => end.finished,
        _ => None,
    });
    Some(Verdict::new(ReplicaState::Dead, why, case.field_proof("status.phase", phase), since))
}

fn not_scheduled(case: &PodCase) -> Option<Verdict> {
    let scheduled = case.pod.condition("PodScheduled");
    if !case.pod.node.is_empty() || scheduled.is_some_and(Condition::is_true) {
        return None;
    }
    let gates = &case.pod.spec.scheduling_gates;
    let gated = scheduled.is_some_and(|condition| condition.reason == "SchedulingGated");
    let since = scheduled.and_then(|condition| condition.since).or(case.object.meta.created);
    if !gates.is_empty() || gated {
        let proof = match scheduled.filter(|_| gates.is_empty()) {
            Some(condition) => case.condition_proof(condition),
            None => case.field_proof("spec.schedulingGates", gates.join(", ")),
        };
        let names = if gates.is_empty() { "that it does not name".to_owned() } else { gates.join(", ") };
        return Some(Verdict::new(ReplicaState::WaitingAdmission, format!("held back by the scheduling gate {names}"), proof, since));
    }
    // A pod whose status was not read says nothing about scheduling.
    if scheduled.is_none() && case.pod.conditions.is_empty() && case.pod.phase.is_err() {
        return Some(Verdict::new(
            ReplicaState::Unknown,
            "the pod has no status that says where it stands",
            case.field_proof("status", "absent"),
            None,
        ));
    }
    let gpus = case.pod.spec.gpus();
    let proof = scheduled.map_or_else(|| case.field_proof("spec.nodeName", "not set"), |condition| case.condition_proof(condition));
    let message = scheduled.map(|condition| condition.message.clone()).filter(|message| !message.is_empty());
    let mut words = if gpus > 0 { format!("no node takes it: it needs {gpus} GPU{}", plural(gpus)) } else { "no node takes it".into() };
    if let Some(message) = message {
        words = format!("{words} ({message})");
    }
    Some(Verdict::new(ReplicaState::PendingGpu, words, proof, since))
}

fn plural(n: u32) -> &'static str {
    if n == 1 { "" } else { "s" }
}

fn init_containers(case: &PodCase) -> Option<Verdict> {
    let sidecar = |name: &str| case.pod.spec.init_containers.iter().any(|c| c.name == name && c.sidecar);
    let status = case.pod.init_containers.iter().find(|status| match &status.state {
        ContainerState::Terminated(end) => end.exit_code != Some(0),
        ContainerState::Running { .. } => !sidecar(&status.name),
        ContainerState::Waiting { .. } => !(sidecar(&status.name) && status.started == Some(true)),
        ContainerState::Unknown => false,
    })?;
    let image = case.pod.spec.init_containers.iter().find(|c| c.name == status.name).map_or("", |c| c.image.as_str());
    let fetches = FETCHERS.iter().any(|word| status.name.contains(word) || image.contains(word));
    let path = format!("status.initContainerStatuses[{}].state", status.name);
    match &status.state {
        ContainerState::Running { since } if fetches => {
            let mut words = format!("the init container {} fetches the model", status.name);
            if let Some(progress) = case.engine.and_then(|engine| engine.progress.as_ref()) {
                words = format!("{words}, {:.0} % done", progress.value * 100.0);
            }
            Some(Verdict::new(ReplicaState::Downloading, words, case.field_proof(&path, "running").seen_at(*since), *since))
        }
        ContainerState::Running { since } => Some(Verdict::new(
            ReplicaState::Starting,
            format!("the init container {} runs", status.name),
            case.field_proof(&path, "running").seen_at(*since),
            *since,
        )),
        ContainerState::Waiting { reason, .. } if reason == "PodInitializing" || reason.is_empty() => None,
        ContainerState::Waiting { reason, message } => Some(wait_verdict(case, status, reason, message, &path)),
        ContainerState::Terminated(end) => Some(Verdict::new(
            ReplicaState::Crashing,
            format!("the init container {} ended with {}", status.name, end.shown()),
            case.field_proof(&path, end.shown()).seen_at(end.finished),
            end.finished,
        )),
        ContainerState::Unknown => None,
    }
}

fn waiting(case: &PodCase) -> Option<Verdict> {
    let status = case.status();
    let path = |status: &ContainerStatus| format!("status.containerStatuses[{}].state", status.name);
    match status.map(|status| (&status.state, status)) {
        Some((ContainerState::Waiting { reason, message }, status)) => Some(wait_verdict(case, status, reason, message, &path(status))),
        Some((ContainerState::Terminated(end), status)) => Some(
            Verdict::new(
                ReplicaState::Crashing,
                format!("its container {} ended with {}", status.name, end.shown()),
                case.field_proof(&path(status), end.shown()).seen_at(end.finished),
                end.finished,
            )
            .and(format!("{} restart{}", status.restarts, plural(status.restarts))),
        ),
        Some((ContainerState::Running { .. }, _)) => None,
        // Bound to a node, and the kubelet has said nothing yet.
        Some((ContainerState::Unknown, _)) | None if case.ready != &Ok(true) => {
            let since = case.pod.condition("PodScheduled").and_then(|condition| condition.since);
            Some(creating(case, since))
        }
        _ => None,
    }
}

fn wait_verdict(case: &PodCase, status: &ContainerStatus, reason: &str, message: &str, path: &str) -> Verdict {
    let shown = if message.is_empty() { reason.to_owned() } else { format!("{reason}: {message}") };
    let proof = case.field_proof(path, shown.clone());
    if PULL_TROUBLE.contains(&reason) {
        return Verdict::new(ReplicaState::Pulling, format!("the image of {} does not come: {shown}", status.name), proof, None);
    }
    match reason {
        "ContainerCreating" | "PodInitializing" | "" => {
            let since = case.pod.condition("PodScheduled").and_then(|condition| condition.since);
            let mut verdict = creating(case, since);
            verdict.evidence.push(proof);
            verdict
        }
        // It has never run: what it lacks stands in the message (a Secret, a ConfigMap, a volume).
        "CreateContainerConfigError" | "CreateContainerError" | "RunContainerError" if status.restarts == 0 && status.last.is_none() => {
            let since = case.pod.condition("PodScheduled").and_then(|condition| condition.since);
            Verdict::new(ReplicaState::Starting, format!("its container {} can not be made: {shown}", status.name), proof, since)
        }
        // A back-off follows a run, whatever the counts say.
        _ if status.restarts == 0 && status.last.is_none() && reason != "CrashLoopBackOff" => {
            Verdict::new(ReplicaState::Starting, format!("its container {} has not run yet: {shown}", status.name), proof, None)
        }
        _ => {
            let since = status.last.as_ref().and_then(|last| last.finished);
            let ended = status.last.as_ref().map(|last| format!(", its last run ended with {}", last.shown())).unwrap_or_default();
            Verdict::new(ReplicaState::Crashing, format!("its container {} waits with {reason}{ended}", status.name), proof, since)
                .and(format!("{} restart{}", status.restarts, plural(status.restarts)))
        }
    }
}

/// Containers are being created: the sandbox and volumes first, the image after that.
fn creating(case: &PodCase, since: Option<Timestamp>) -> Verdict {
    let events = case.objects.events_about(&case.subject());
    let last = |reason: &str| events.iter().rev().find(|(_, event)| event.reason == reason).map(|(_, event)| *event);
    let pulling = last("Pulling").filter(|pulling| last("Pulled").is_none_or(|pulled| pulled.last < pulling.last));
    if let Some(event) = pulling {
        let proof = Evidence::new(&case.subject(), Place::Event("Pulling".into()), event.message.clone(), event.last);
        let words = match event.last {
            Some(at) => format!("its image is being pulled since {}", time::span(time::seconds_between(at, case.now))),
            None => "its image is being pulled".into(),
        };
        return Verdict::new(ReplicaState::Pulling, words, proof, event.last);
    }
    match case.pod.condition("PodReadyToStartContainers") {
        Some(condition) if condition.is_true() => Verdict::new(
            ReplicaState::Pulling,
            "its sandbox is ready and no container runs: the image is being pulled",
            case.condition_proof(condition),
            condition.since.or(since),
        ),
        Some(condition) => {
            let trouble = events.iter().rev().find(|(_, event)| event.reason.starts_with("Failed"));
            let mut verdict = Verdict::new(
                ReplicaState::Starting,
                "its sandbox and volumes are not ready, so no image is pulled yet (PodReadyToStartContainers is not True)",
                case.condition_proof(condition),
                since,
            );
            if let Some((_, event)) = trouble {
                verdict.why.push(format!("{}: {}", event.reason, event.message));
                verdict.evidence.push(Evidence::new(
                    &case.subject(),
                    Place::Event(event.reason.clone()),
                    event.message.clone(),
                    event.last,
                ));
            }
            verdict
        }
        None => Verdict::new(
            ReplicaState::Starting,
            format!("bound to {}, its containers are being created", case.pod.node),
            case.field_proof("spec.nodeName", case.pod.node.clone()),
            since,
        ),
    }
}

fn running(case: &PodCase) -> Verdict {
    let Some(engine) = case.engine else { return by_kubernetes(case, None) };
    let from =
        |state: ReplicaState| Verdict { state, why: vec![engine.why.clone()], evidence: engine.evidence.clone(), since: engine.since };
    match &engine.state {
        EngineState::Starting => from(ReplicaState::Starting),
        EngineState::Downloading => from(ReplicaState::Downloading),
        EngineState::Loading => from(ReplicaState::Loading),
        EngineState::Warming => from(ReplicaState::Warming),
        EngineState::Paused => from(ReplicaState::Paused),
        EngineState::Stalled => from(ReplicaState::Stalled),
        EngineState::Draining => from(ReplicaState::Draining),
        EngineState::Sleeping(_) => from(ReplicaState::Sleeping),
        EngineState::Waking => from(ReplicaState::Waking),
        EngineState::Dead => from(ReplicaState::Dead),
        EngineState::Unknown(why) => by_kubernetes(case, Some(why.why())),
        EngineState::Ready => match case.ready {
            Ok(true) => {
                let mut verdict = listed(case, engine.why.clone());
                verdict.evidence.extend(engine.evidence.iter().take(3).cloned());
                verdict
            }
            Ok(false) => engine_ready(case, engine),
            Err(why) => {
                let mut verdict = from(ReplicaState::EngineReady);
                verdict.why.push(format!("whether the pod is Ready is not known: {why}"));
                verdict
            }
        },
    }
}

/// The engine serves and the pod is not Ready.
fn engine_ready(case: &PodCase, engine: &EngineReport) -> Verdict {
    let condition = case.pod.condition("Ready");
    let unmet = unmet_gates(case.pod);
    let why = if unmet.is_empty() {
        format!(
            "the engine serves, the pod is not Ready{}",
            condition.filter(|c| !c.message.is_empty()).map(|c| format!(": {}", c.message)).unwrap_or_default()
        )
    } else {
        format!("the engine serves, the pod is not Ready: its readiness gate {} is not met", unmet.join(", "))
    };
    let proof = condition.map_or_else(|| case.field_proof("status.conditions", "no Ready condition"), |c| case.condition_proof(c));
    let mut verdict = Verdict::new(ReplicaState::EngineReady, why, proof, condition.and_then(|c| c.since));
    verdict.why.push(engine.why.clone());
    verdict.evidence.extend(engine.evidence.iter().take(3).cloned());
    verdict
}

/// Readiness gates that are not True.
pub fn unmet_gates(pod: &Pod) -> Vec<String> {
    pod.spec.readiness_gates.iter().filter(|gate| !pod.condition(gate).is_some_and(Condition::is_true)).cloned().collect()
}

/// Ready and awake: what is left is whether anybody picks it.
fn listed(case: &PodCase, why: String) -> Verdict {
    let ready = case.pod.condition("Ready");
    let since = ready.and_then(|condition| condition.since);
    let proof = ready.map_or_else(|| case.field_proof("status.conditions", "no Ready condition"), |c| case.condition_proof(c));
    let (state, words) = match (&case.listing.listed, &case.listing.routed) {
        (Ok(false), _) => (ReplicaState::NotRouted, Some(format!("no router or Service picks it: {}", case.listing.why))),
        (Ok(true), Ok(false)) => (ReplicaState::NotRouted, Some(format!("listed, but no request reaches it: {}", case.listing.why))),
        (Ok(true), _) => (ReplicaState::Serving, None),
        (Err(reason), _) => (ReplicaState::Ready, Some(format!("Ready; whether it is listed is not known: {reason}"))),
    };
    let mut verdict = Verdict { state, why: words.into_iter().collect(), evidence: vec![proof], since };
    verdict.why.push(why);
    verdict.evidence.extend(case.listing.evidence.iter().cloned());
    verdict
}

/// The engine was not asked, or did not say: what Kubernetes shows is all there is.
/// `lacking` says why the engine's side is missing; `None` for a pod that runs none or is a follower of its group's leader.
fn by_kubernetes(case: &PodCase, lacking: Option<&str>) -> Verdict {
    let follower = crate::systems::owners::group_of(case.object).is_some_and(|(_, index)| index > 0);
    let (no_engine, lacking) = match (lacking, follower) {
        (_, true) => (true, "it follows the leader of its group, which speaks for it"),
        (Some(why), false) => (false, why),
        (None, false) => (true, "it runs no engine that is known"),
    };
    let ready = case.pod.condition("Ready");
    let status = case.status();
    let runs_since = status.and_then(ContainerStatus::running_since).flatten();
    match case.ready {
        Ok(true) if no_engine => listed(case, format!("Kubernetes calls it Ready; {lacking}")),
        Ok(true) => listed(case, format!("Kubernetes calls it Ready; the engine's own side is not known: {lacking}")),
        Ok(false) => {
            let proof = ready.map_or_else(|| case.field_proof("status.conditions", "no Ready condition"), |c| case.condition_proof(c));
            let unmet = unmet_gates(case.pod);
            let containers_ready = case.pod.condition("ContainersReady").is_some_and(Condition::is_true);
            if containers_ready && !unmet.is_empty() {
                return Verdict::new(
                    ReplicaState::EngineReady,
                    format!("its containers are ready, its readiness gate {} is not met", unmet.join(", ")),
                    proof,
                    ready.and_then(|condition| condition.since),
                );
            }
            // Not Ready since before this run began: it has never been Ready in this run.
            let never = match (ready.and_then(|condition| condition.since), runs_since) {
                (Some(not_ready), Some(start)) => not_ready <= start,
                _ => false,
            };
            let passed = status.and_then(|status| status.started);
            let (state, words) = match (never, passed) {
                (_, Some(false)) => (ReplicaState::Starting, "its startup probe has not passed yet"),
                (true, _) => (ReplicaState::Starting, "it has not been Ready since its container started"),
                (false, _) => (ReplicaState::Unknown, "its container runs and it is not Ready"),
            };
            Verdict::new(state, format!("{words}; {lacking}"), proof, runs_since)
        }
        Err(why) => Verdict::new(
            ReplicaState::Unknown,
            format!("{why}; {lacking}"),
            case.field_proof("status.phase", case.pod.phase.clone().unwrap_or_else(|_| "not set".into())),
            None,
        ),
    }
}
