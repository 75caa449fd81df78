//! Objects about the cluster itself: nodes, events, leases, disruption budgets, volume claims.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::field::Field;
use super::meta::{Condition, Selector, condition};
use super::devices::is_gpu_resource;
use crate::model::{Known, Subject};

/// A Node.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// Extended resources of its capacity, by name.
    pub capacity: BTreeMap<String, u32>,
    /// Extended resources that pods may have, by name.
    pub allocatable: BTreeMap<String, u32>,
    /// Taints as `key=value:effect`, parts apart.
    pub taints: Vec<Taint>,
    /// Cordoned.
    pub unschedulable: bool,
    /// Conditions.
    pub conditions: Vec<Condition>,
}

/// One taint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Taint {
    /// Key.
    pub key: String,
    /// Value; may be empty.
    pub value: String,
    /// `NoSchedule`, `PreferNoSchedule`, `NoExecute`.
    pub effect: String,
}

/// An Event, core/v1 or events.k8s.io/v1.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// What it is about.
    pub about: Subject,
    /// uid of it.
    pub about_uid: String,
    /// Reason.
    pub reason: String,
    /// Message.
    pub message: String,
    /// `Normal` or `Warning`.
    pub kind: String,
    /// How often it was seen.
    pub count: u32,
    /// First time.
    pub first: Option<Timestamp>,
    /// Last time.
    pub last: Option<Timestamp>,
}

/// A coordination Lease.
#[derive(Debug, Clone, PartialEq)]
pub struct Lease {
    /// Who holds it; empty for nobody.
    pub holder: String,
    /// Seconds for which a renewal holds.
    pub duration_s: Option<i64>,
    /// Last renewal.
    pub renewed: Option<Timestamp>,
    /// How often it changed hands.
    pub transitions: Option<i64>,
}

/// A PodDisruptionBudget.
#[derive(Debug, Clone, PartialEq)]
pub struct Budget {
    /// Pods it guards.
    pub selector: Option<Selector>,
    /// `minAvailable` as written.
    pub min_available: Option<String>,
    /// `maxUnavailable` as written.
    pub max_unavailable: Option<String>,
    /// `status.disruptionsAllowed`.
    pub allowed: Known<u32>,
    /// `status.currentHealthy`.
    pub healthy: Known<u32>,
    /// `status.desiredHealthy`.
    pub desired_healthy: Known<u32>,
    /// `status.expectedPods`.
    pub expected: Known<u32>,
}

/// A PersistentVolumeClaim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// `ReadWriteOnce` …
    pub access_modes: Vec<String>,
    /// Volume it is bound to.
    pub volume: String,
}

impl Node {
    /// Reads the body.
    pub fn read(root: &Field) -> Self {
        let devices = |name: &str| {
            root.at(&["status", name])
                .members()
                .into_iter()
                .filter(|(resource, _)| resource.contains('/'))
                .filter_map(|(resource, count)| Some((resource, count.int_or_text().some()?.parse().ok()?)))
                .collect()
        };
        Self {
            capacity: devices("capacity"),
            allocatable: devices("allocatable"),
            taints: root
                .at(&["spec", "taints"])
                .items()
                .iter()
                .map(|taint| Taint {
                    key: taint.get("key").name_or_empty(),
                    value: taint.get("value").name_or_empty(),
                    effect: taint.get("effect").name_or_empty(),
                })
                .collect(),
            unschedulable: root.at(&["spec", "unschedulable"]).flag().some().unwrap_or(false),
            conditions: Condition::read_all(&root.at(&["status", "conditions"])),
        }
    }

    /// GPU slots that pods may have.
    pub fn gpus(&self) -> u32 {
        self.allocatable.iter().filter(|(name, _)| is_gpu_resource(name)).map(|(_, n)| *n).fold(0, u32::saturating_add)
    }

    /// GPU slots of the machine.
    pub fn gpu_capacity(&self) -> u32 {
        self.capacity.iter().filter(|(name, _)| is_gpu_resource(name)).map(|(_, n)| *n).fold(0, u32::saturating_add)
    }

    /// Whether its Ready condition is True.
    pub fn is_ready(&self) -> bool {
        condition(&self.conditions, "Ready").is_some_and(Condition::is_true)
    }
}

impl Event {
    /// Reads the body.
    pub fn read(root: &Field) -> Self {
        let old = root.get("involvedObject");
        let about = if old.is_set() { old } else { root.get("regarding") };
        let message = if root.get("message").is_set() { root.get("message") } else { root.get("note") };
        let series = root.get("series");
        let instant = |names: &[&str]| names.iter().find_map(|name| root.get(name).instant().some());
        let first = instant(&["firstTimestamp", "deprecatedFirstTimestamp", "eventTime"]);
        Self {
            about: Subject::object(
                &about.get("kind").name_or_empty(),
                &about.get("namespace").name_or_empty(),
                &about.get("name").name_or_empty(),
            ),
            about_uid: about.get("uid").name_or_empty(),
            reason: root.get("reason").name_or_empty(),
            message: message.text_or_empty(),
            kind: root.get("type").name_or_empty(),
            count: series.get("count").count().some().or_else(|| root.get("count").count().some()).unwrap_or(1),
            first,
            last: series
                .get("lastObservedTime")
                .instant()
                .some()
                .or_else(|| instant(&["lastTimestamp", "deprecatedLastTimestamp", "eventTime"]))
                .or(first),
        }
    }
}

impl Lease {
    /// Reads the body.
    pub fn read(root: &Field) -> Self {
        let spec = root.get("spec");
        Self {
            holder: spec.get("holderIdentity").name_or_empty(),
            duration_s: spec.get("leaseDurationSeconds").int().some(),
            renewed: spec.get("renewTime").instant().some(),
            transitions: spec.get("leaseTransitions").int().some(),
        }
    }
}

impl Budget {
    /// Reads the body.
    pub fn read(root: &Field) -> Self {
        let (spec, status) = (root.get("spec"), root.get("status"));
        Self {
            selector: Selector::read(&spec.get("selector")),
            min_available: spec.get("minAvailable").int_or_text().some(),
            max_unavailable: spec.get("maxUnavailable").int_or_text().some(),
            allowed: status.get("disruptionsAllowed").count().known(),
            healthy: status.get("currentHealthy").count().known(),
            desired_healthy: status.get("desiredHealthy").count().known(),
            expected: status.get("expectedPods").count().known(),
        }
    }
}

impl Claim {
    /// Reads the body.
    pub fn read(root: &Field) -> Self {
        Self {
            access_modes: root.at(&["spec", "accessModes"]).names(),
            volume: root.at(&["spec", "volumeName"]).name_or_empty(),
        }
    }
}
