//! Whose drain settings are looked at: each workload's template once, and pods whose workload was not read.

use std::collections::BTreeMap;

use crate::model::Subject;
use crate::model::object::WorkloadKind;
use crate::model::service::Replica;
use crate::world::World;
use crate::world::forecast::{Forecast, for_template, of_pod};

/// The settings of one workload (or one pod), and the pods to which they apply.
pub(super) struct Settings<'a> {
    /// The workload, or the pod where its workload was not read.
    pub(super) subject: Subject,
    /// What a stop of one of its pods would do.
    pub(super) forecast: Forecast,
    /// Its pods that run an engine, those that are being deleted too.
    pub(super) pods: Vec<&'a Replica>,
}

/// Settings of all that runs an engine.
pub(super) fn settings(world: &World) -> Vec<Settings<'_>> {
    let mut pods: BTreeMap<Subject, Vec<&Replica>> = BTreeMap::new();
    for replica in world.replicas.values().filter(|replica| replica.subject.kind() == "pod") {
        if world.objects.pod(&replica.subject).is_some_and(|(_, pod)| !pod.has_ended()) {
            let read = replica.workload.as_ref().filter(|workload| world.objects.workload(workload).is_some());
            pods.entry(read.unwrap_or(&replica.subject).clone()).or_default().push(replica);
        }
    }
    let mut out = Vec::new();
    for (object, body) in world.objects.workloads() {
        // ReplicaSets and StatefulSets below another workload follow its template.
        let below = matches!(body.kind, WorkloadKind::ReplicaSet | WorkloadKind::StatefulSet) && object.meta.controller().is_some();
        let subject = object.subject();
        if below && !pods.contains_key(&subject) {
            continue;
        }
        let Some(forecast) = for_template(&subject, body) else { continue };
        out.push(Settings { pods: pods.remove(&subject).unwrap_or_default(), subject, forecast });
    }
    for (subject, of) in pods.into_iter().filter(|(subject, _)| subject.kind() == "pod") {
        out.extend(of.first().and_then(|replica| of_pod(world, replica)).map(|forecast| Settings { subject, forecast, pods: of }));
    }
    out
}
