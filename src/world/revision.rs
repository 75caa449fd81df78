//! Revisions: which pods of a workload follow its newest template, and which an older one.
//!
//! Owns where each kind writes a pod's revision. Must not judge the rollout: see `counts` and the rules.

use std::collections::BTreeMap;

use super::World;
use crate::model::Subject;
use crate::model::object::{Catalogue, Object, Workload, WorkloadKind};
use crate::model::service::Replica;
use crate::model::state::ReplicaState;

/// Label of a pod of a DisaggregatedSet, and of its LeaderWorkerSets: the revision of the set. lws v0.10.0.
pub const SET_REVISION: &str = "disaggregatedset.x-k8s.io/revision";
/// Labels in which controllers write a pod's revision, the most telling first: pods of an LWS have those of its StatefulSets too.
const LABELS: &[&str] =
    &["leaderworkerset.sigs.k8s.io/template-revision-hash", "rollouts-pod-template-hash", "pod-template-hash", "controller-revision-hash"];
/// Annotation of a Deployment and its ReplicaSets: number of the revision.
const NUMBER: &str = "deployment.kubernetes.io/revision";

/// The revision that a pod follows, by its labels.
pub fn of_pod(object: &Object) -> Option<&str> {
    LABELS.iter().find_map(|label| object.meta.label(label)).filter(|revision| !revision.is_empty())
}

/// Number of a Deployment's or ReplicaSet's revision.
pub fn number(object: &Object) -> Option<u64> {
    object.meta.annotation(NUMBER)?.parse().ok()
}

/// Pods of one workload, told apart by revision.
#[derive(Debug, Clone)]
pub struct Update<'a> {
    /// The workload.
    pub workload: Subject,
    /// Its object and body, where they were read.
    pub body: Option<(&'a Object, &'a Workload)>,
    /// The newest revision.
    pub newest: String,
    /// Pods of the newest revision that are not being deleted.
    pub new: Vec<&'a Replica>,
    /// Pods of older revisions that are not being deleted.
    pub old: Vec<&'a Replica>,
    /// Pods that are being deleted: they still hold what they requested.
    pub leaving: Vec<&'a Replica>,
}

impl Update<'_> {
    /// Pods of both revisions that Kubernetes calls Ready.
    pub fn ready(&self) -> usize {
        self.new.iter().chain(&self.old).filter(|replica| replica.pod_ready == Ok(true)).count()
    }
}

/// Every workload with pods whose revision is known. Pods without a revision label are left out.
pub fn updates(world: &World) -> Vec<Update<'_>> {
    let mut pods: BTreeMap<&Subject, Vec<(&Object, &Replica)>> = BTreeMap::new();
    for replica in world.replicas.values().filter(|replica| replica.subject.kind() == "pod") {
        let Some(workload) = &replica.workload else { continue };
        let Some((object, pod)) = world.objects.pod(&replica.subject) else { continue };
        if !pod.has_ended() {
            pods.entry(workload).or_default().push((object, replica));
        }
    }
    pods.into_iter().filter_map(|(workload, pods)| update(world, workload, &pods)).collect()
}

fn update<'a>(world: &'a World, workload: &Subject, pods: &[(&'a Object, &'a Replica)]) -> Option<Update<'a>> {
    let body = world.objects.workload(workload);
    let newest =
        body.and_then(|(object, body)| by_workload(&world.objects, object, body, pods)).or_else(|| youngest(pods).map(str::to_owned))?;
    let leaving = |replica: &Replica| matches!(replica.state, ReplicaState::Terminating | ReplicaState::Draining);
    let of = |test: &dyn Fn(&Object, &Replica) -> bool| -> Vec<&'a Replica> {
        pods.iter().filter(|(object, replica)| test(object, replica)).map(|(_, replica)| *replica).collect()
    };
    Some(Update {
        workload: workload.clone(),
        body,
        new: of(&|object, replica| !deleted(object) && !leaving(replica) && of_pod(object) == Some(newest.as_str())),
        old: of(&|object, replica| !deleted(object) && !leaving(replica) && of_pod(object).is_some_and(|have| have != newest)),
        leaving: of(&|object, replica| deleted(object) || leaving(replica)),
        newest,
    })
}

fn deleted(object: &Object) -> bool {
    object.meta.deletion.is_some()
}

fn youngest<'a>(pods: &[(&'a Object, &'a Replica)]) -> Option<&'a str> {
    pods.iter()
        .filter(|(object, _)| of_pod(object).is_some())
        .max_by_key(|(object, _)| object.meta.created)
        .and_then(|(object, _)| of_pod(object))
}

/// The newest revision as the workload or its revisions' objects tell it.
fn by_workload(objects: &Catalogue, object: &Object, body: &Workload, pods: &[(&Object, &Replica)]) -> Option<String> {
    match body.kind {
        WorkloadKind::Deployment => {
            let newest = replica_sets(objects, &object.subject()).into_iter().max_by_key(|set| number(set))?;
            number(newest)?;
            newest.meta.label("pod-template-hash").map(str::to_owned)
        }
        WorkloadKind::Rollout => body.canary.as_ref().map(|canary| canary.current.clone()).filter(|hash| !hash.is_empty()),
        WorkloadKind::StatefulSet | WorkloadKind::CloneSet => {
            let revision = body.status.update_revision.as_str();
            if revision.is_empty() {
                return None;
            }
            // CloneSets may write the bare hash on their pods.
            let short = pods.iter().filter_map(|(object, _)| of_pod(object)).find(|have| *have != revision && revision.ends_with(*have));
            Some(short.unwrap_or(revision).to_owned())
        }
        WorkloadKind::LeaderWorkerSet | WorkloadKind::ReplicaSet | WorkloadKind::DaemonSet => None,
    }
}

/// ReplicaSets that a Deployment or Rollout owns, of those that were read.
pub fn replica_sets<'a>(objects: &'a Catalogue, owner: &Subject) -> Vec<&'a Object> {
    objects
        .workloads()
        .filter(|(object, body)| {
            body.kind == WorkloadKind::ReplicaSet
                && object.meta.controller().is_some_and(|above| above.subject(&object.meta.namespace) == *owner)
        })
        .map(|(object, _)| object)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnose::testkit::Kit;
    use rstest::rstest;
    use serde_json::{Value, json};

    fn pod(kit: Kit, name: &str, label: &str, hash: &str, created: &str) -> Kit {
        kit.pod_with(name, |pod| {
            pod["metadata"]["labels"] = json!({"app": "a", label: hash});
            pod["metadata"]["creationTimestamp"] = created.into();
        })
        .owned(name, "StatefulSet", "w")
    }

    fn set(status: Value) -> Value {
        json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "w", "namespace": "s"}, "spec": {"replicas": 2}, "status": status})
    }

    #[rstest]
    #[case::the_status_says(json!({"updateRevision": "w-1", "currentRevision": "w-2"}), "w-1")]
    #[case::else_the_youngest_pod(json!({}), "w-2")]
    fn newest(#[case] status: Value, #[case] wanted: &str) {
        let kit = pod(Kit::new(), "a", "controller-revision-hash", "w-1", "2026-11-12T07:00:00Z");
        let kit = pod(kit, "b", "controller-revision-hash", "w-2", "2026-11-12T08:00:00Z");
        let world = kit.object(set(status)).build().world;
        let updates = updates(&world);
        assert_eq!(updates.len(), 1);
        assert_eq!(updates[0].newest, wanted);
        assert_eq!((updates[0].new.len(), updates[0].old.len(), updates[0].ready()), (1, 1, 2));
    }

    #[test]
    fn a_deployment_is_told_by_the_numbers_of_its_replica_sets() {
        let rs = |hash: &str, revision: &str| {
            json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": format!("w-{hash}"), "namespace": "s",
                "labels": {"pod-template-hash": hash}, "annotations": {"deployment.kubernetes.io/revision": revision},
                "ownerReferences": [{"kind": "Deployment", "name": "w", "controller": true}]}})
        };
        // A rollback gives the older ReplicaSet the newest number.
        let kit = Kit::new()
            .object(json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "w", "namespace": "s"}}))
            .object(rs("old", "10"))
            .object(rs("new", "9"))
            .pod_with("a", |pod| pod["metadata"]["labels"] = json!({"pod-template-hash": "new"}))
            .owned("a", "ReplicaSet", "w-new");
        let world = kit.build().world;
        let updates = updates(&world);
        assert_eq!((updates[0].newest.as_str(), updates[0].old.len()), ("old", 1));
    }
}
