//! What the pages draw from: one snapshot, its findings, and an index of which finding is about which row.
//!
//! Built once a snapshot, outside the drawing. Must not judge: it only sorts and looks up what the world says.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;

use crate::diagnose::headline::{Headline, headline};
use crate::model::Subject;
use crate::model::engine::EngineReport;
use crate::model::finding::{Finding, Severity};
use crate::model::service::{ModelService, Replica, Role, ServiceId};
use crate::model::state::{EngineState, WorkloadState};
use crate::world::World;

/// What can be opened: a model service, or an engine that belongs to none.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Target {
    /// A model service.
    Service(ServiceId),
    /// An engine by its subject.
    Engine(Subject),
}

/// A row of the fleet: a role of a model service, or an engine of no service. The same row of the next snapshot has the same key.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct RowKey {
    /// Whose row.
    pub target: Target,
    /// Place of the role in its service; 0 where there is none.
    pub role: usize,
}

/// Load of several replicas together.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Load {
    /// Sum over the replicas with a sample.
    pub(crate) running: Option<f64>,
    /// Sum over the replicas with a sample.
    pub(crate) waiting: Option<f64>,
    /// Mean over the replicas with a sample, 0..1.
    pub(crate) kv: Option<f64>,
    /// Highest rank of all, 0..1.
    pub(crate) kv_max: Option<f64>,
    /// Replicas with a sample.
    pub(crate) sampled: usize,
    /// All replicas.
    pub(crate) replicas: usize,
    /// The oldest of the samples.
    pub(crate) oldest: Option<Timestamp>,
}

impl Load {
    /// The load of these engines.
    pub(crate) fn of<'a>(reports: impl IntoIterator<Item = Option<&'a EngineReport>>) -> Self {
        let mut load = Self::default();
        let mut kv = (0.0, 0.0);
        for report in reports {
            load.replicas += 1;
            let Some(sample) = report.and_then(|report| report.load.as_ref().ok()) else {
                continue;
            };
            load.sampled += 1;
            load.oldest = Some(load.oldest.map_or(sample.at, |oldest| oldest.min(sample.at)));
            let add = |sum: Option<f64>, value: Option<f64>| value.map_or(sum, |value| Some(sum.unwrap_or(0.0) + value));
            load.running = add(load.running, sample.running.as_ref().ok().map(|fact| fact.value));
            load.waiting = add(load.waiting, sample.waiting.as_ref().ok().map(|fact| fact.value));
            if let Ok(usage) = &sample.kv_usage {
                kv = (kv.0 + usage.value, kv.1 + 1.0);
            }
            if let Ok(highest) = &sample.kv_usage_max {
                load.kv_max = Some(load.kv_max.map_or(highest.value, |max: f64| max.max(highest.value)));
            }
        }
        load.kv = (kv.1 > 0.0).then(|| kv.0 / kv.1);
        load
    }
}

/// One snapshot with its findings, indexed for the pages.
#[derive(Debug, Clone)]
pub struct Scene {
    /// The snapshot.
    pub world: Arc<World>,
    /// Findings, worst first.
    pub findings: Arc<[Finding]>,
    /// Where it comes from, for the header: the bundle's folder or the context's name.
    pub title: String,
    rows: Vec<RowKey>,
    worst_first: Vec<usize>,
    pub(crate) headline: Headline,
    by_row: BTreeMap<RowKey, Vec<usize>>,
    by_target: BTreeMap<Target, Vec<usize>>,
}

impl Scene {
    /// A scene of a snapshot.
    pub fn new(world: Arc<World>, mut findings: Vec<Finding>, title: impl Into<String>) -> Self {
        findings.sort_by(|a, b| a.rank().cmp(&b.rank()));
        let rows = rows(&world);
        let owners = owners(&world, &rows);
        let mut by_row: BTreeMap<RowKey, Vec<usize>> = BTreeMap::new();
        let mut by_target: BTreeMap<Target, Vec<usize>> = BTreeMap::new();
        for (at, finding) in findings.iter().enumerate() {
            let hit: BTreeSet<&RowKey> = finding.subjects.iter().flat_map(|subject| rows_of(&owners, subject)).collect();
            let targets: BTreeSet<&Target> = hit.iter().map(|row| &row.target).collect();
            for row in &hit {
                by_row.entry((*row).clone()).or_default().push(at);
            }
            for target in targets {
                by_target.entry(target.clone()).or_default().push(at);
            }
        }
        let headline = headline(&world, &findings.iter().collect::<Vec<_>>(), &world.services.values().collect::<Vec<_>>());
        let mut scene =
            Self { headline, world, findings: findings.into(), title: title.into(), rows, worst_first: Vec::new(), by_row, by_target };
        let mut order: Vec<usize> = (0..scene.rows.len()).collect();
        order.sort_by_key(|at| {
            // What is down comes after what is critical and before what is not, with or without a finding.
            scene.rows.get(*at).map(|row| {
                let badness = scene.badness(row);
                let rank = match scene.worst(row).map(|finding| finding.severity) {
                    Some(Severity::Critical) => 0,
                    _ if badness == 0 => 1,
                    Some(Severity::Warning) => 2,
                    Some(Severity::Info) => 3,
                    None => 4,
                };
                (rank, badness)
            })
        });
        scene.worst_first = order;
        scene
    }

    /// All rows by name.
    pub fn rows(&self) -> &[RowKey] {
        &self.rows
    }

    /// Places of all rows, worst first.
    pub(crate) fn worst_first(&self) -> &[usize] {
        &self.worst_first
    }

    /// The service of a target.
    pub(crate) fn service(&self, target: &Target) -> Option<&ModelService> {
        match target {
            Target::Service(id) => self.world.services.get(id),
            Target::Engine(_) => None,
        }
    }

    /// The role of a row.
    pub(crate) fn role(&self, row: &RowKey) -> Option<&Role> {
        self.service(&row.target)?.roles.get(row.role)
    }

    /// The engine of a target that is no service.
    pub(crate) fn engine(&self, target: &Target) -> Option<&EngineReport> {
        match target {
            Target::Service(_) => None,
            Target::Engine(subject) => self.world.engines.get(subject),
        }
    }

    /// The replicas of a role.
    pub(crate) fn replicas<'a>(&'a self, role: &'a Role) -> impl Iterator<Item = (&'a Subject, Option<&'a Replica>)> {
        role.replicas.iter().map(|subject| (subject, self.world.replicas.get(subject)))
    }

    /// The load of a row.
    pub(crate) fn load(&self, row: &RowKey) -> Load {
        match self.role(row) {
            Some(role) => Load::of(self.replicas(role).map(|(_, replica)| replica.and_then(|replica| replica.engine.as_ref().ok()))),
            None => Load::of(self.engine(&row.target).map(Some)),
        }
    }

    /// Findings about a row, worst first.
    pub(crate) fn about_row(&self, row: &RowKey) -> impl Iterator<Item = &Finding> {
        self.by_row.get(row).into_iter().flatten().filter_map(|at| self.findings.get(*at))
    }

    /// Findings about a target, worst first.
    pub(crate) fn about(&self, target: &Target) -> impl Iterator<Item = &Finding> {
        self.by_target.get(target).into_iter().flatten().filter_map(|at| self.findings.get(*at))
    }

    /// The worst finding about a row.
    pub(crate) fn worst(&self, row: &RowKey) -> Option<&Finding> {
        self.about_row(row).next()
    }

    /// How many findings there are of a severity.
    pub(crate) fn count(&self, severity: Severity) -> usize {
        self.findings.iter().filter(|finding| finding.severity == severity).count()
    }

    /// Where a row stands among rows whose findings are equally bad.
    fn badness(&self, row: &RowKey) -> u8 {
        let state = self.role(row).map(|role| role.state).or_else(|| self.service(&row.target).map(|service| service.state));
        match (state, self.engine(&row.target).map(|engine| &engine.state)) {
            (Some(WorkloadState::Down), _) | (_, Some(EngineState::Dead | EngineState::Stalled)) => 0,
            (Some(WorkloadState::Degraded | WorkloadState::FailedUpdate | WorkloadState::Blocked), _) => 1,
            (Some(WorkloadState::RollingOut | WorkloadState::WaitingPromotion), _) => 2,
            (Some(WorkloadState::Unknown), _) | (_, Some(EngineState::Unknown(_))) => 3,
            _ => 4,
        }
    }
}

/// A row for each role; one for a service without roles; one for each engine that no service has.
fn rows(world: &World) -> Vec<RowKey> {
    let mut rows = Vec::new();
    let mut taken: BTreeSet<&Subject> = BTreeSet::new();
    for (id, service) in &world.services {
        for role in 0..service.roles.len().max(1) {
            rows.push(RowKey { target: Target::Service(id.clone()), role });
        }
        for subject in service.roles.iter().flat_map(|role| &role.replicas) {
            taken.insert(subject);
            taken.extend(world.replicas.get(subject).into_iter().flat_map(|replica| &replica.pods));
        }
        taken.extend(service.claim.roles.iter().flat_map(|role| &role.replicas).flat_map(|replica| &replica.pods));
    }
    let free =
        |subject: &&Subject| !taken.contains(subject) && world.replicas.get(*subject).is_none_or(|replica| replica.service.is_none());
    rows.extend(world.engines.keys().filter(free).map(|subject| RowKey { target: Target::Engine(subject.clone()), role: 0 }));
    rows
}

/// Which rows a subject belongs to.
fn owners<'a>(world: &'a World, rows: &'a [RowKey]) -> BTreeMap<&'a str, Vec<&'a RowKey>> {
    let mut owners: BTreeMap<&str, Vec<&RowKey>> = BTreeMap::new();
    for row in rows {
        let mut own = |subject: &'a Subject| owners.entry(subject.as_str()).or_default().push(row);
        match &row.target {
            Target::Engine(subject) => own(subject),
            Target::Service(id) => {
                let Some(service) = world.services.get(id) else {
                    continue;
                };
                let claim = &service.claim;
                claim.fronts.iter().chain(&claim.autoscalers).chain(&claim.routers).for_each(&mut own);
                let Some(role) = service.roles.get(row.role) else {
                    continue;
                };
                role.workloads.iter().chain(&role.replicas).for_each(&mut own);
                let replicas = role.replicas.iter().filter_map(|subject| world.replicas.get(subject));
                replicas.flat_map(|replica| replica.pods.iter().chain(&replica.workload)).for_each(&mut own);
            }
        }
    }
    owners
}

/// The rows of a subject, or of the object of which it is a part.
fn rows_of<'a>(owners: &BTreeMap<&str, Vec<&'a RowKey>>, subject: &Subject) -> Vec<&'a RowKey> {
    let mut name = subject.as_str();
    loop {
        if let Some(rows) = owners.get(name) {
            return rows.clone();
        }
        match name.rsplit_once('/') {
            Some((whole, _)) if whole.matches('/').count() >= 2 => name = whole,
            _ => return Vec::new(),
        }
    }
}
