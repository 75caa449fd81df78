//! Workloads: the objects whose controllers make pods. One slim form for all of them.

use super::canary::Canary;
use super::field::Field;
use super::meta::{Condition, Meta, Selector, condition};
use super::pod::PodSpec;
use crate::model::Known;

/// Which workload it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WorkloadKind {
    /// apps/v1.
    Deployment,
    /// apps/v1; made by a Deployment, or alone.
    ReplicaSet,
    /// apps/v1; made by an LWS, or alone.
    StatefulSet,
    /// apps/v1.
    DaemonSet,
    /// leaderworkerset.x-k8s.io.
    LeaderWorkerSet,
    /// argoproj.io.
    Rollout,
    /// apps.kruise.io.
    CloneSet,
}

/// A workload.
#[derive(Debug, Clone, PartialEq)]
pub struct Workload {
    /// Which.
    pub kind: WorkloadKind,
    /// `spec.replicas`; 1 where it is absent, as the APIs default it.
    pub replicas: Known<u32>,
    /// Pods per replica: the group size of an LWS, else 1.
    pub group_size: u32,
    /// Selector of its pods.
    pub selector: Option<Selector>,
    /// Labels of the pod template (of an LWS: of the leader, else the worker).
    pub template_labels: std::collections::BTreeMap<String, String>,
    /// Annotations of the pod template.
    pub template_annotations: std::collections::BTreeMap<String, String>,
    /// Pod template (of an LWS: of the leader, else the worker).
    pub template: PodSpec,
    /// Template of the workers of an LWS, where it differs from the leader's.
    pub worker_template: Option<PodSpec>,
    /// How it replaces pods.
    pub strategy: Strategy,
    /// `spec.progressDeadlineSeconds`, where the kind has it.
    pub progress_deadline_s: Option<i64>,
    /// `spec.revisionHistoryLimit`.
    pub revision_history_limit: Option<i64>,
    /// Rollouts are paused.
    pub paused: bool,
    /// Counts in its status, with their trust: they are of the generation in `observed_generation`.
    pub status: WorkloadStatus,
    /// Conditions.
    pub conditions: Vec<Condition>,
    /// Steps and progress of an Argo Rollout; absent for other kinds.
    pub canary: Option<Box<Canary>>,
}

/// How a workload replaces pods.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Strategy {
    /// `RollingUpdate`, `Recreate`, `OnDelete` …; empty where it is not set.
    pub kind: String,
    /// `maxSurge` as written: a count or a percentage.
    pub max_surge: Option<String>,
    /// `maxUnavailable` as written.
    pub max_unavailable: Option<String>,
    /// `partition`.
    pub partition: Option<u32>,
    /// Restart policy of an LWS's groups.
    pub restart_policy: String,
    /// Startup policy of an LWS's groups: with `LeaderReady` the workers are made after the leader is Ready.
    pub startup_policy: String,
}

/// Counts in a workload's status.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WorkloadStatus {
    /// Pods or groups.
    pub replicas: Option<u32>,
    /// Of them Ready.
    pub ready: Option<u32>,
    /// Of them available.
    pub available: Option<u32>,
    /// Of them at the newest revision.
    pub updated: Option<u32>,
    /// Generation that the status speaks of.
    pub observed_generation: Option<i64>,
    /// Current revision, where the kind has one.
    pub current_revision: String,
    /// Newest revision, where the kind has one.
    pub update_revision: String,
    /// Phase, where the kind has one (Argo Rollout).
    pub phase: String,
}

impl Workload {
    /// Reads the body of a workload of that kind.
    pub fn read(kind: WorkloadKind, root: &Field) -> Self {
        let (spec, status) = (root.get("spec"), root.get("status"));
        let lws = kind == WorkloadKind::LeaderWorkerSet;
        let group = spec.get("leaderWorkerTemplate");
        let worker = group.get("workerTemplate");
        let leader = group.get("leaderTemplate");
        let template = match (lws, leader.is_set()) {
            (true, true) => leader.clone(),
            (true, false) => worker.clone(),
            (false, _) => spec.get("template"),
        };
        let strategy = match kind {
            WorkloadKind::StatefulSet | WorkloadKind::DaemonSet | WorkloadKind::CloneSet => spec.get("updateStrategy"),
            WorkloadKind::LeaderWorkerSet => spec.get("rolloutStrategy"),
            _ => spec.get("strategy"),
        };
        // An LWS writes its bounds below rollingUpdateConfiguration, CloneSets directly in the strategy.
        let bounds = match kind {
            WorkloadKind::LeaderWorkerSet => strategy.get("rollingUpdateConfiguration"),
            WorkloadKind::CloneSet => strategy.clone(),
            WorkloadKind::Rollout => strategy.get("canary"),
            _ => strategy.get("rollingUpdate"),
        };
        let template_meta = Meta::read(&template.get("metadata"));
        Self {
            kind,
            replicas: spec.get("replicas").count().or(1),
            group_size: if lws { group.get("size").count().some().unwrap_or(1).max(1) } else { 1 },
            selector: Selector::read(&spec.get("selector")),
            template_labels: template_meta.labels,
            template_annotations: template_meta.annotations,
            template: PodSpec::read(&template.get("spec")),
            worker_template: (lws && leader.is_set() && worker.is_set()).then(|| PodSpec::read(&worker.get("spec"))),
            strategy: Strategy {
                kind: strategy.get("type").name_or_empty(),
                max_surge: bounds.get("maxSurge").int_or_text().some(),
                max_unavailable: bounds.get("maxUnavailable").int_or_text().some(),
                partition: bounds.get("partition").count().some(),
                restart_policy: group.get("restartPolicy").name_or_empty(),
                startup_policy: spec.get("startupPolicy").name_or_empty(),
            },
            progress_deadline_s: spec.get("progressDeadlineSeconds").int().some(),
            revision_history_limit: spec.get("revisionHistoryLimit").int().some(),
            paused: spec.get("paused").flag().some().unwrap_or(false),
            status: WorkloadStatus {
                replicas: status.get("replicas").count().some().or_else(|| {
                    // The APIs leave out a count that is 0; a status that was never written says nothing.
                    let counts = ["replicas", "readyReplicas", "availableReplicas", "updatedReplicas"];
                    let none = kind != WorkloadKind::DaemonSet && counts.iter().all(|name| !status.get(name).is_set());
                    (none && status.get("observedGeneration").is_set()).then_some(0)
                }),
                ready: status.get("readyReplicas").count().some(),
                available: status.get("availableReplicas").count().some(),
                updated: status.get("updatedReplicas").count().some(),
                observed_generation: status.get("observedGeneration").int_or_text().some().and_then(|text| text.parse().ok()),
                current_revision: status.get("currentRevision").name_or_empty(),
                update_revision: status.get("updateRevision").name_or_empty(),
                phase: status.get("phase").name_or_empty(),
            },
            conditions: Condition::read_all(&status.get("conditions")),
            canary: (kind == WorkloadKind::Rollout).then(|| Box::new(Canary::read(root))),
        }
    }

    /// A condition by type.
    pub fn condition(&self, kind: &str) -> Option<&Condition> {
        condition(&self.conditions, kind)
    }

    /// GPUs that one replica (one pod, or one whole group) requests.
    pub fn gpus_per_replica(&self) -> u32 {
        let workers = self.group_size.saturating_sub(1);
        let worker = self.worker_template.as_ref().unwrap_or(&self.template);
        self.template.gpus().saturating_add(worker.gpus().saturating_mul(workers))
    }

    /// `maxSurge` and `maxUnavailable` in replicas, as the kind's controller resolves them: surge rounds up, unavailable down, and not
    /// both 0 (kube-controller-manager's `ResolveFenceposts`). Where not set: 25 % both for Deployments and Argo Rollouts, 0 and 1 for an
    /// LWS (lws v0.10), 0 and 20 % for a CloneSet (rounded up). `None` for kinds that have none, or for bounds that can not be read.
    pub fn effective_bounds(&self) -> Option<(u32, u32)> {
        let (surge, unavailable, up) = match self.kind {
            WorkloadKind::Deployment | WorkloadKind::Rollout => ("25%", "25%", false),
            WorkloadKind::LeaderWorkerSet => ("0", "1", false),
            WorkloadKind::CloneSet => ("0", "20%", true),
            WorkloadKind::ReplicaSet | WorkloadKind::StatefulSet | WorkloadKind::DaemonSet => return None,
        };
        let replicas = self.replicas.clone().ok()?;
        if self.strategy.kind == "Recreate" {
            return Some((0, replicas));
        }
        let surge = resolve(self.strategy.max_surge.as_deref().unwrap_or(surge), replicas, true)?;
        let unavailable = resolve(self.strategy.max_unavailable.as_deref().unwrap_or(unavailable), replicas, up)?;
        Some(if surge == 0 && unavailable == 0 { (0, 1) } else { (surge, unavailable) })
    }
}

/// A count or a percentage of `replicas`.
fn resolve(bound: &str, replicas: u32, up: bool) -> Option<u32> {
    match bound.strip_suffix('%') {
        None => bound.parse().ok(),
        Some(percent) => {
            let percent: u64 = percent.parse().ok()?;
            let hundredths = percent.checked_mul(u64::from(replicas))?;
            u32::try_from(if up { hundredths.div_ceil(100) } else { hundredths / 100 }).ok()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;
    use serde_json::json;
    use std::cell::RefCell;

    fn read(kind: WorkloadKind, doc: serde_json::Value) -> Workload {
        let problems = RefCell::new(Vec::new());
        Workload::read(kind, &Field::root(&doc, &problems))
    }

    #[rstest]
    #[case(1, json!({}), (1, 0))]
    #[case(4, json!({"rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}}), (1, 1))]
    #[case(3, json!({"rollingUpdate": {"maxSurge": 0, "maxUnavailable": "10%"}}), (0, 1))]
    #[case(3, json!({"type": "Recreate"}), (0, 3))]
    fn bounds(#[case] replicas: u32, #[case] strategy: serde_json::Value, #[case] wanted: (u32, u32)) {
        let w = read(WorkloadKind::Deployment, json!({"spec": {"replicas": replicas, "strategy": strategy}}));
        assert_eq!(w.effective_bounds(), Some(wanted));
    }

    #[rstest]
    #[case(WorkloadKind::LeaderWorkerSet, json!({}), Some((0, 1)))]
    #[case(WorkloadKind::LeaderWorkerSet, json!({"rolloutStrategy": {"rollingUpdateConfiguration": {"maxSurge": 1, "maxUnavailable": 0}}}), Some((1, 0)))]
    #[case(WorkloadKind::CloneSet, json!({}), Some((0, 1)))]
    #[case(WorkloadKind::Rollout, json!({"strategy": {"canary": {"maxSurge": 1, "maxUnavailable": 0}}}), Some((1, 0)))]
    #[case(WorkloadKind::StatefulSet, json!({}), None)]
    #[case(WorkloadKind::Deployment, json!({"strategy": {"rollingUpdate": {"maxSurge": "many"}}}), None)]
    fn bounds_of_other_kinds(#[case] kind: WorkloadKind, #[case] mut spec: serde_json::Value, #[case] wanted: Option<(u32, u32)>) {
        spec["replicas"] = 3.into();
        assert_eq!(read(kind, json!({"spec": spec})).effective_bounds(), wanted);
    }

    #[test]
    fn a_group_counts_leader_and_workers() {
        let gpu = |n: u32| json!({"spec": {"containers": [{"name": "e", "resources": {"limits": {"nvidia.com/gpu": n}}}]}});
        let w = read(
            WorkloadKind::LeaderWorkerSet,
            json!({"spec": {"replicas": 2, "leaderWorkerTemplate": {"size": 3, "leaderTemplate": gpu(1), "workerTemplate": gpu(8)}}}),
        );
        assert_eq!((w.replicas.clone(), w.group_size, w.gpus_per_replica()), (Ok(2), 3, 17));
    }

    #[test]
    fn replicas_of_a_wrong_type_are_unknown_not_one() {
        let w = read(WorkloadKind::Deployment, json!({"spec": {"replicas": "three"}}));
        assert_eq!(w.replicas.unwrap_err().why(), "spec.replicas is text, not a count");
    }
}
