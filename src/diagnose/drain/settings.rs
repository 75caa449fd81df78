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
            pods.entry(replica.workload.as_ref().unwrap_or(&replica.subject).clone()).or_default().push(replica);
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
    // Workloads that were not read, or whose template does not tell the engine: their pods tell.
    for (subject, of) in pods {
        let told: Vec<(&Replica, Forecast)> = of.into_iter().filter_map(|replica| Some((replica, of_pod(world, replica)?))).collect();
        let Some((_, first)) = told.first() else { continue };
        if told.iter().all(|(_, other)| alike(first, other)) {
            out.push(Settings { subject, forecast: first.clone(), pods: told.into_iter().map(|(replica, _)| replica).collect() });
        } else {
            out.extend(told.into_iter().map(|(replica, forecast)| Settings {
                subject: replica.subject.clone(),
                forecast,
                pods: vec![replica],
            }));
        }
    }
    out
}

/// Whether two pods would stop in the same way; they differ in the middle of a rollout.
fn alike(a: &Forecast, b: &Forecast) -> bool {
    (a.grace_s, &a.pre_stop, &a.drain_s, &a.needed_s, a.cuts_at_once())
        == (b.grace_s, &b.pre_stop, &b.drain_s, &b.needed_s, b.cuts_at_once())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnose::testkit::Kit;
    use rstest::rstest;

    #[rstest]
    #[case::one_template(30, 30, &["replicaset/s/w-1"])]
    #[case::they_differ(30, 90, &["pod/s/a", "pod/s/b"])]
    fn pods_of_a_workload_that_was_not_read(#[case] first: i64, #[case] second: i64, #[case] wanted: &[&str]) {
        let kit = [("a", first), ("b", second)].into_iter().fold(Kit::new(), |kit, (name, grace)| {
            kit.pod_with(name, |pod| pod["spec"]["terminationGracePeriodSeconds"] = grace.into()).owned(name, "ReplicaSet", "w-1")
        });
        let world = kit.build().world;
        let settings = settings(&world);
        let subjects: Vec<&str> = settings.iter().map(|one| one.subject.as_str()).collect();
        assert_eq!(subjects, wanted);
    }
}
