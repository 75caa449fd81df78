//! Model services, roles, workloads and replicas: who belongs to whom.

use std::fmt;

use jiff::Timestamp;

use super::engine::{EngineKind, EngineReport};
use super::funnel::Funnel;
use super::ladder::Ladder;
use super::state::{ReplicaState, WorkloadState};
use super::{Evidence, Known, Subject};

/// What a group of like replicas does.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RoleKind {
    /// Prefill and decode in one engine.
    Aggregate,
    /// Prefill only.
    Prefill,
    /// Decode only.
    Decode,
    /// Encoder of a multimodal model.
    Encode,
    /// Selects endpoints.
    Router,
    /// A role name of somebody's own.
    Other(String),
}

impl RoleKind {
    /// Reads a role label (`llm-d.ai/role`, an LWS or DisaggregatedSet role name).
    pub fn parse(word: &str) -> Self {
        match word.to_ascii_lowercase().as_str() {
            "aggregate" | "aggregated" | "both" | "prefill-decode" | "unified" | "" => Self::Aggregate,
            "prefill" => Self::Prefill,
            "decode" => Self::Decode,
            "encode" | "encoder" => Self::Encode,
            "router" | "epp" => Self::Router,
            other => Self::Other(other.to_owned()),
        }
    }

    /// The word shown.
    pub fn word(&self) -> &str {
        match self {
            Self::Aggregate => "aggregate",
            Self::Prefill => "prefill",
            Self::Decode => "decode",
            Self::Encode => "encode",
            Self::Router => "router",
            Self::Other(word) => word,
        }
    }
}

impl fmt::Display for RoleKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.word())
    }
}

/// The identity of a model service: namespace, name, and the system that manages it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ServiceId {
    /// Namespace.
    pub namespace: String,
    /// Name as its users know it.
    pub name: String,
    /// `plain`, `kserve` …
    pub system: &'static str,
}

impl fmt::Display for ServiceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.system, self.namespace, self.name)
    }
}

/// One served model with its roles, before anything is judged: what `systems` finds.
#[derive(Debug, Clone, PartialEq)]
pub struct Claim {
    /// Who it is.
    pub id: ServiceId,
    /// The object or label that made it one service.
    pub found_by: Evidence,
    /// Its roles, each with workloads and pods.
    pub roles: Vec<RoleClaim>,
    /// InferencePools and Services from which its requests are routed.
    pub fronts: Vec<Subject>,
    /// HPAs that scale its workloads.
    pub autoscalers: Vec<Subject>,
    /// Workloads of its router (the EPP behind its pool).
    pub routers: Vec<Subject>,
}

/// A role as found.
#[derive(Debug, Clone, PartialEq)]
pub struct RoleClaim {
    /// What it does.
    pub kind: RoleKind,
    /// Workloads that make its pods; empty where only pods are seen.
    pub workloads: Vec<Subject>,
    /// Its replicas: one pod, or one group of pods.
    pub replicas: Vec<ReplicaClaim>,
}

/// A replica as found: the subject that stands for it, and its pods (leader first).
#[derive(Debug, Clone, PartialEq)]
pub struct ReplicaClaim {
    /// The pod, or the group.
    pub subject: Subject,
    /// Its pods, leader first.
    pub pods: Vec<Subject>,
    /// The workload that made it, where that is known.
    pub workload: Option<Subject>,
    /// Which engine it runs, and what shows it.
    pub engine: Known<(EngineKind, Evidence)>,
    /// The container in which the engine runs, where known.
    pub container: Option<String>,
}

/// A model service, judged.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelService {
    /// Who it is, as found.
    pub claim: Claim,
    /// Its roles in the order of the claim.
    pub roles: Vec<Role>,
    /// One word for the whole.
    pub state: WorkloadState,
}

/// A role, judged.
#[derive(Debug, Clone, PartialEq)]
pub struct Role {
    /// What it does.
    pub kind: RoleKind,
    /// Its workloads.
    pub workloads: Vec<Subject>,
    /// Its replicas, by subject.
    pub replicas: Vec<Subject>,
    /// Ended pods that its controllers have left behind: no replicas, and in no count.
    pub left_over: Vec<Subject>,
    /// Replicas that serve and whose engine itself said so within the last 10 minutes.
    pub proven: Known<u32>,
    /// The counts.
    pub funnel: Funnel,
    /// One word.
    pub state: WorkloadState,
    /// Why, in sentences.
    pub why: Vec<String>,
}

/// Whether the set from which a router or proxy picks has this replica.
#[derive(Debug, Clone, PartialEq)]
pub struct Listing {
    /// In it or not, or why nobody knows.
    pub listed: Known<bool>,
    /// Counted by the router or not, or why nobody knows.
    pub routed: Known<bool>,
    /// Pools and Services that select it.
    pub fronts: Vec<Subject>,
    /// What shows it.
    pub evidence: Vec<Evidence>,
    /// Why it is (not) in it, in words.
    pub why: String,
}

/// A replica (or any pod), judged.
#[derive(Debug, Clone, PartialEq)]
pub struct Replica {
    /// The pod or group.
    pub subject: Subject,
    /// Its pods.
    pub pods: Vec<Subject>,
    /// The workload that made it.
    pub workload: Option<Subject>,
    /// The model service it belongs to.
    pub service: Option<ServiceId>,
    /// One word.
    pub state: ReplicaState,
    /// Why, in sentences; the first is the one to show.
    pub why: Vec<String>,
    /// What proves the state.
    pub evidence: Vec<Evidence>,
    /// Since when the state holds, where something tells.
    pub since: Option<Timestamp>,
    /// The ladder.
    pub ladder: Ladder,
    /// What its engine says; the reason where none was asked or it runs none.
    pub engine: Known<EngineReport>,
    /// Whether its router or Service picks it.
    pub listing: Listing,
    /// Whether Kubernetes calls it Ready.
    pub pod_ready: Known<bool>,
    /// GPUs it requests.
    pub gpus: u32,
    /// Seconds until it should serve, from learnt durations or its own log.
    pub eta_s: Known<f64>,
    /// Set when its present stage takes longer than it usually does, in words.
    pub slower_than_usual: Option<String>,
}
