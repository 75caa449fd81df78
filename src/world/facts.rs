//! Facts: what sources hand over, before anything is concluded from it.

use jiff::Timestamp;

use crate::engines::MetricPage;
use crate::model::engine::{ContainerLog, HttpAnswer};
use crate::model::object::Object;
use crate::model::{Subject, ladder::Stage};

/// Everything observed, in any order. Histories (pages, answers) may hold several of one subject.
#[derive(Debug, Clone, Default)]
pub struct Facts {
    /// Objects as last seen.
    pub objects: Vec<Object>,
    /// HTTP answers of engines, routers, proxies and the API server.
    pub answers: Vec<HttpAnswer>,
    /// Metric pages of engines and routers.
    pub pages: Vec<MetricPage>,
    /// Pages of GPU exporters; their subject is the node.
    pub exporters: Vec<MetricPage>,
    /// Container logs.
    pub logs: Vec<ContainerLog>,
    /// Stage durations learnt earlier.
    pub durations: Vec<LearntDuration>,
    /// Earlier versions of objects (a watch's history), oldest first, each with the time at which it was seen.
    pub history: Vec<Change>,
    /// What could not be read: costs nobody else anything.
    pub problems: Vec<InputProblem>,
}

/// One change of an object as a watch showed it.
#[derive(Debug, Clone)]
pub struct Change {
    /// When.
    pub at: Timestamp,
    /// `ADDED`, `MODIFIED`, `DELETED`, `LIST`.
    pub event: String,
    /// The object after the change (before it, when deleted).
    pub object: Object,
}

/// Seconds that a stage took in past loads of one model, engine version and accelerator.
#[derive(Debug, Clone, PartialEq)]
pub struct LearntDuration {
    /// Model; empty matches any.
    pub model: String,
    /// Engine word: `vllm`.
    pub engine: String,
    /// Engine version; empty matches any.
    pub version: String,
    /// Accelerator: the node's product label; empty matches any.
    pub accelerator: String,
    /// Stage.
    pub stage: Stage,
    /// Samples, seconds.
    pub seconds: Vec<f64>,
}

/// An input that could not be read, wholly or in part.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct InputProblem {
    /// Where: `objects.yaml, document 3`.
    pub place: String,
    /// What is wrong.
    pub what: String,
    /// The subject that it is about, where that is known.
    pub about: Option<Subject>,
}
