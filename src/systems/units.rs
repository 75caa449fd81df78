//! Units: one workload (or lone pod) that runs an engine, with its pods gathered into replicas.
//!
//! Every adapter starts from here; what makes units one model service is the adapter's own matter.

use std::collections::{BTreeMap, BTreeSet};

use super::Seen;
use super::owners::{group_of, top_of, workload_of};
use super::recognise::engine_of;
use super::selection::FrontIndex;
use crate::model::engine::EngineKind;
use crate::model::object::{Catalogue, Object, Pod, Workload, WorkloadKind};
use crate::model::service::{ReplicaClaim, RoleClaim, RoleKind};
use crate::model::{Evidence, Subject, Unknown};

/// A workload that runs an engine, or a pod that nobody made.
pub struct Unit {
    /// The workload; of a lone pod the pod.
    pub subject: Subject,
    /// The topmost object above it, itself where there is none.
    pub top: Subject,
    /// Namespace.
    pub namespace: String,
    /// Labels of its template and of its pods, the template's first where they differ.
    pub labels: BTreeMap<String, String>,
    /// Whether the subject is a workload (seen or named).
    pub is_workload: bool,
    /// What it does.
    pub role: RoleKind,
    /// Which engine, and what shows it.
    pub engine: (EngineKind, Evidence),
    /// Container of the engine.
    pub container: String,
    /// Fronts that select its template or any of its pods.
    pub fronts: Vec<Subject>,
    /// Its replicas.
    pub replicas: Vec<ReplicaClaim>,
}

/// Labels that name the role of a workload, most specific first.
const ROLE_LABELS: &[&str] = &["llm-d.ai/role", "disaggregatedset.x-k8s.io/role", "leaderworkerset.sigs.k8s.io/role"];

/// A role from labels; llm-d labels aggregated engines `decode` too, which is told apart only where a prefill role stands beside it.
fn role_of(labels: &BTreeMap<String, String>, above: &BTreeMap<String, String>) -> RoleKind {
    ROLE_LABELS
        .iter()
        .find_map(|key| labels.get(*key).or_else(|| above.get(*key)))
        .map_or(RoleKind::Aggregate, |word| RoleKind::parse(word))
}

/// All units, in the order of their subjects.
pub fn units(objects: &Catalogue) -> Vec<Unit> {
    let mut pods: BTreeMap<Subject, (bool, Vec<(&Object, &Pod)>)> = BTreeMap::new();
    for (object, pod) in objects.pods() {
        match workload_of(objects, object) {
            Some(workload) => pods.entry(workload).or_insert_with(|| (true, Vec::new())).1.push((object, pod)),
            None => pods.entry(object.subject()).or_insert_with(|| (false, Vec::new())).1.push((object, pod)),
        }
    }
    // Workloads without pods are units too: scaled to zero, or not yet made.
    for (object, workload) in objects.workloads() {
        if !is_made_by_workload(object, workload) {
            pods.entry(object.subject()).or_insert_with(|| (true, Vec::new()));
        }
    }
    let fronts = FrontIndex::new(objects);
    pods.into_iter().filter_map(|(subject, (is_workload, pods))| unit(objects, &fronts, subject, is_workload, &pods)).collect()
}

fn is_made_by_workload(object: &Object, workload: &Workload) -> bool {
    object.meta.controller().is_some_and(|owner| {
        matches!(
            (workload.kind, owner.kind.as_str()),
            (WorkloadKind::ReplicaSet, "Deployment" | "Rollout") | (WorkloadKind::StatefulSet, "LeaderWorkerSet" | "Pod" | "StatefulSet")
        )
    })
}

fn unit(objects: &Catalogue, index: &FrontIndex, subject: Subject, is_workload: bool, pods: &[(&Object, &Pod)]) -> Option<Unit> {
    let above = objects.workload(&subject);
    let own: Vec<Recognised> =
        pods.iter().map(|(object, pod)| engine_of(&object.subject(), &object.meta.labels, &object.meta.annotations, &pod.spec)).collect();
    let found = own.iter().find_map(Clone::clone).or_else(|| {
        let (_, workload) = above?;
        engine_of(&subject, &workload.template_labels, &workload.template_annotations, &workload.template)
    })?;
    let (kind, container, evidence) = found;
    let mut labels = above.map(|(_, workload)| workload.template_labels.clone()).unwrap_or_default();
    for (object, _) in pods {
        for (key, value) in &object.meta.labels {
            labels.entry(key.clone()).or_insert_with(|| value.clone());
        }
    }
    let no_labels = BTreeMap::new();
    let above_labels = objects.get(&subject).map_or(&no_labels, |object| &object.meta.labels);
    let namespace = subject.namespace().to_owned();
    let mut fronts = BTreeSet::new();
    if let Some((_, workload)) = above {
        fronts.extend(index.selecting(&namespace, &workload.template_labels));
    }
    for (object, _) in pods {
        fronts.extend(index.selecting(&namespace, &object.meta.labels));
    }
    Some(Unit {
        top: if is_workload { top_of(objects, &subject) } else { subject.clone() },
        role: role_of(&labels, above_labels),
        engine: (kind, evidence),
        fronts: fronts.into_iter().collect(),
        replicas: replicas(&subject, is_workload, pods, own),
        namespace,
        labels,
        is_workload,
        container,
        subject,
    })
}

/// An engine as recognised: which, in which container, and what shows it.
type Recognised = Option<(EngineKind, String, Evidence)>;

/// Gathers pods into replicas: groups of an LWS, else one pod each. `own` has each pod's engine, in the same order.
fn replicas(subject: &Subject, is_workload: bool, pods: &[(&Object, &Pod)], own: Vec<Recognised>) -> Vec<ReplicaClaim> {
    let workload = is_workload.then(|| subject.clone());
    let claim = |subject: Subject, pods: Vec<Subject>, own: Recognised| ReplicaClaim {
        subject,
        pods,
        workload: workload.clone(),
        container: own.as_ref().map(|(_, container, _)| container.clone()),
        engine: own
            .map(|(kind, _, evidence)| (kind, evidence))
            .ok_or_else(|| Unknown::because("none of its containers is known as an engine")),
    };
    let mut groups: BTreeMap<Subject, Vec<(u32, Subject, Recognised)>> = BTreeMap::new();
    let mut out = Vec::new();
    for ((object, _), own) in pods.iter().zip(own) {
        match group_of(object) {
            Some((group, index)) => groups.entry(group).or_default().push((index, object.subject(), own)),
            None => out.push(claim(object.subject(), vec![object.subject()], own)),
        }
    }
    for (group, mut members) in groups {
        members.sort_by(|a, b| (a.0, &a.1).cmp(&(b.0, &b.1)));
        let leader = members.first().and_then(|(_, _, own)| own.clone());
        out.push(claim(group, members.into_iter().map(|(_, pod, _)| pod).collect(), leader));
    }
    out
}

/// Merges units into roles: units of the same role are one role with several workloads. A `decode` without any prefill beside it is an
/// aggregated engine: llm-d labels those `decode` as well.
pub fn roles(units: &[&Unit]) -> Vec<RoleClaim> {
    let has_prefill = units.iter().any(|unit| unit.role == RoleKind::Prefill);
    let mut roles: BTreeMap<RoleKind, RoleClaim> = BTreeMap::new();
    for unit in units {
        let kind = match &unit.role {
            RoleKind::Decode if !has_prefill => RoleKind::Aggregate,
            kind => kind.clone(),
        };
        let role = roles.entry(kind.clone()).or_insert_with(|| RoleClaim { kind, workloads: Vec::new(), replicas: Vec::new() });
        if unit.is_workload {
            role.workloads.push(unit.subject.clone());
        }
        role.replicas.extend(unit.replicas.iter().cloned());
    }
    roles.into_values().collect()
}

/// Autoscalers that target any of these workloads or an object above them.
pub fn autoscalers(seen: &Seen, units: &[&Unit]) -> Vec<Subject> {
    let scaled: BTreeSet<Subject> =
        units.iter().flat_map(|unit| std::iter::once(unit.subject.clone()).chain(seen.objects.owner_chain(&unit.subject))).collect();
    let mut found: Vec<Subject> = scaled.iter().filter_map(|target| seen.autoscalers.get(target)).flatten().cloned().collect();
    found.sort();
    found
}

/// Workloads of the endpoint pickers of these pools.
pub fn routers(objects: &Catalogue, fronts: &[Subject]) -> Vec<Subject> {
    let mut found = BTreeSet::new();
    for (object, pool) in fronts.iter().filter_map(|front| objects.pool(front)) {
        let service = Subject::object("service", &object.meta.namespace, &pool.picker);
        let Some(selector) = objects.service(&service).and_then(|(_, service)| service.selector.as_ref()) else { continue };
        for (pod, _) in objects.pods_matching(&object.meta.namespace, selector) {
            found.extend(workload_of(objects, pod));
        }
    }
    found.into_iter().collect()
}
