//! What is known about one engine before it is judged.

use std::sync::Arc;

use jiff::Timestamp;

use super::exposition::Page;
use crate::model::engine::{ContainerLog, EngineKind, HttpAnswer};
use crate::model::object::Container;
use crate::model::object::pod::ContainerStatus;
use crate::model::{Evidence, Known, Subject};

/// One metric page as it was taken.
#[derive(Debug, Clone)]
pub struct MetricPage {
    /// The pod, or `engine/<name>`.
    pub subject: Subject,
    /// Port, where known.
    pub port: Option<u16>,
    /// Path, usually `/metrics`.
    pub path: String,
    /// When it was taken.
    pub at: Timestamp,
    /// What was read; shared, because snapshots keep it as long as it is the newest.
    pub page: Arc<Page>,
}

/// Everything observed about one engine.
#[derive(Debug, Clone)]
pub struct Observed<'a> {
    /// The pod, or `engine/<name>`.
    pub subject: &'a Subject,
    /// Which engine the container runs, where something tells; pages and answers may tell it too.
    pub kind: Known<(EngineKind, Evidence)>,
    /// The container's spec, where known.
    pub container: Option<&'a Container>,
    /// The container's status, where known.
    pub status: Option<&'a ContainerStatus>,
    /// Set when the pod is being deleted: when that was asked for.
    pub deleted_at: Option<Timestamp>,
    /// Answers, oldest first.
    pub answers: &'a [HttpAnswer],
    /// Pages, oldest first.
    pub pages: &'a [MetricPage],
    /// Logs of its containers; those of earlier runs carry `previous_at`.
    pub logs: &'a [ContainerLog],
    /// The present.
    pub now: Timestamp,
}
