//! The snapshot: facts in, one immutable [`World`] out.
//!
//! Owns how facts combine: which replica is on which stage, what a Service or pool really picks, what a funnel counts, how long a
//! stage usually takes. Must not do I/O or look at a clock, and raises no findings: that is `diagnose`.

mod build;
pub mod climb;
pub mod counts;
pub mod durations;
pub mod ended;
pub mod epp;
pub mod facts;
pub mod flow;
pub mod forecast;
pub mod gpu;
pub mod groups;
pub mod judge;
pub mod levels;
pub mod listing;
pub mod named;
pub mod node;
pub mod owners;
pub mod probes;
pub mod prometheus;
pub mod promotion;
pub mod prompts;
pub mod proven;
pub mod proxy;
pub mod restarts;
pub mod revision;
pub mod router;
pub mod scale_api;
pub mod scale_values;
pub mod scaling;
pub mod sets;
pub mod standby;
#[cfg(test)]
mod tests;
pub mod views;

use std::collections::BTreeMap;

use jiff::Timestamp;

pub use facts::{Facts, InputProblem, LearntDuration};

use crate::engines::MetricPage;
use crate::model::engine::{ContainerLog, EngineReport, HttpAnswer};
use crate::model::funnel::Funnel;
use crate::model::object::Catalogue;
use crate::model::service::{ModelService, Replica, ServiceId};
use crate::model::state::{ViewState, WorkloadState};
use crate::model::value::Values;
use crate::model::{Evidence, Known, Subject};

/// Everything that is known at one instant, immutable.
#[derive(Debug, Clone)]
pub struct World {
    /// The present.
    pub now: Timestamp,
    /// `bundle` or `cluster`.
    pub source: &'static str,
    /// Objects.
    pub objects: Catalogue,
    /// Model services by identity.
    pub services: BTreeMap<ServiceId, ModelService>,
    /// Every pod and every group of pods, judged. Pods of routers and controllers are here too, without an engine.
    pub replicas: BTreeMap<Subject, Replica>,
    /// Every engine that answered, was asked, or is known to run: by pod, or `engine/<name>`.
    pub engines: BTreeMap<Subject, EngineReport>,
    /// Every workload, counted.
    pub workloads: BTreeMap<Subject, WorkloadView>,
    /// Sets of roles that roll together (DisaggregatedSets), by role and revision.
    pub sets: BTreeMap<Subject, sets::RoleSet>,
    /// Every Service and InferencePool that selects pods, counted.
    pub fronts: BTreeMap<Subject, Front>,
    /// What the routers of pools say, by pool.
    pub routers: BTreeMap<Subject, router::RouterReading>,
    /// The endpoint pickers of pools, by pool: who leads, who stands by, whether any answers.
    pub pickers: BTreeMap<Subject, epp::Picker>,
    /// What is scaled by autoscalers, and whether that works, by the scaled object.
    pub scaling: BTreeMap<Subject, scaling::Scaling>,
    /// Views and whether they are current.
    pub views: BTreeMap<Subject, View>,
    /// HTTP answers by target, oldest first.
    pub answers: BTreeMap<Subject, Vec<HttpAnswer>>,
    /// Metric pages by subject, oldest first: the newest of each engine (its report holds what the older ones told), the last two of others.
    pub pages: BTreeMap<Subject, Vec<MetricPage>>,
    /// Pages of GPU exporters by node, oldest first.
    pub exporters: BTreeMap<Subject, Vec<MetricPage>>,
    /// Where prompt tokens came from between the last two pages, by engine.
    pub prompts: BTreeMap<Subject, prompts::PromptSources>,
    /// GPU occupancy: slots, cards, waiting pods.
    pub gpu: gpu::Gpus,
    /// Logs by pod.
    pub logs: BTreeMap<Subject, Vec<ContainerLog>>,
    /// Earlier versions of objects by subject, oldest first.
    pub history: BTreeMap<Subject, Vec<facts::Change>>,
    /// Learnt stage durations.
    pub durations: durations::Durations,
    /// What could not be read.
    pub problems: Vec<InputProblem>,
}

/// A workload, counted and judged.
#[derive(Debug, Clone, PartialEq)]
pub struct WorkloadView {
    /// Replicas that belong to it: pods, or groups.
    pub replicas: Vec<Subject>,
    /// Ended pods that its controller has left behind: no replicas, and in no count.
    pub left_over: Vec<Subject>,
    /// Replicas that serve and whose engine itself said so within the last 10 minutes.
    pub proven: Known<u32>,
    /// The counts.
    pub funnel: Funnel,
    /// One word.
    pub state: WorkloadState,
    /// Why, in sentences.
    pub why: Vec<String>,
    /// What proves it.
    pub evidence: Vec<Evidence>,
}

/// A Service or InferencePool, counted.
#[derive(Debug, Clone, PartialEq)]
pub struct Front {
    /// Pods that its selector matches.
    pub selected: Vec<Subject>,
    /// Of these, pods that Kubernetes calls Ready.
    pub ready: Vec<Subject>,
    /// Of these, pods that it can pick; the reason where that is not known.
    pub usable: Known<Vec<Subject>>,
    /// Whether any selected pod runs an engine.
    pub serves_engines: bool,
    /// What else is to be said of it, in sentences.
    pub why: Vec<String>,
}

/// A view and its state.
#[derive(Debug, Clone, PartialEq)]
pub struct View {
    /// One word.
    pub state: ViewState,
    /// Why.
    pub why: Vec<String>,
    /// Rows and other numbers.
    pub values: Values,
}
