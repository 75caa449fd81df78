//! From a pod up to the workload that made it, and to the object that a person would edit.

use crate::model::Subject;
use crate::model::object::{Catalogue, Object};

/// Label of every pod of an LWS: its name. lws v0.10.0.
pub const LWS_NAME: &str = "leaderworkerset.sigs.k8s.io/name";
/// Label of every pod of an LWS: index of its group.
pub const LWS_GROUP: &str = "leaderworkerset.sigs.k8s.io/group-index";
/// Label of every pod of an LWS: index in its group; 0 is the leader.
pub const LWS_WORKER: &str = "leaderworkerset.sigs.k8s.io/worker-index";

/// The workload whose template a pod follows: the Deployment above its ReplicaSet, the LWS of its group, else its controller.
/// `None` for a pod that nobody made.
///
/// A ReplicaSet that was not read is climbed by its name: a Deployment's ReplicaSet is called `<deployment>-<pod-template-hash>`, and
/// that Deployment must be there and select the pod. An Argo Rollout has the label `rollouts-pod-template-hash` instead.
pub fn workload_of(objects: &Catalogue, pod: &Object) -> Option<Subject> {
    let namespace = &pod.meta.namespace;
    if let Some(set) = pod.meta.label(LWS_NAME) {
        return Some(Subject::object("leaderworkerset", namespace, set));
    }
    let owner = pod.meta.controller()?;
    let subject = owner.subject(namespace);
    if owner.kind != "ReplicaSet" {
        return Some(subject);
    }
    if let Some(object) = objects.get(&subject) {
        return Some(object.meta.controller().map_or(subject, |above| above.subject(namespace)));
    }
    let named = [("rollouts-pod-template-hash", "rollout"), ("pod-template-hash", "deployment")];
    let by_name = named.into_iter().find_map(|(label, kind)| {
        let hash = pod.meta.label(label)?;
        let name = owner.name.strip_suffix(hash)?.strip_suffix('-')?;
        let above = Subject::object(kind, namespace, name);
        let (_, workload) = objects.workload(&above)?;
        workload.selector.as_ref().is_none_or(|selector| selector.matches(&pod.meta.labels)).then_some(above)
    });
    Some(by_name.unwrap_or(subject))
}

/// The topmost object above a workload that was seen or named: what a person would edit. The workload itself where nothing is above.
pub fn top_of(objects: &Catalogue, workload: &Subject) -> Subject {
    objects.owner_chain(workload).pop().unwrap_or_else(|| workload.clone())
}

/// The group of an LWS that a pod belongs to: `leaderworkerset/ns/name/group/0`, and its index in the group (0 is the leader).
pub fn group_of(pod: &Object) -> Option<(Subject, u32)> {
    let set = pod.meta.label(LWS_NAME)?;
    let group: u32 = pod.meta.label(LWS_GROUP)?.parse().ok()?;
    let index = pod.meta.label(LWS_WORKER).and_then(|text| text.parse().ok()).unwrap_or(0);
    Some((Subject::object("leaderworkerset", &pod.meta.namespace, set).part(&format!("group/{group}")), index))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::object::Object;
    use jiff::Timestamp;
    use rstest::rstest;
    use serde_json::{Value, json};
    use std::sync::Arc;

    fn catalogue(docs: &[Value]) -> Catalogue {
        Catalogue::new(docs.iter().map(|doc| Arc::new(Object::read(doc, Timestamp::UNIX_EPOCH).unwrap())))
    }

    fn pod(owner_kind: &str, owner: &str, labels: Value) -> Value {
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "s", "labels": labels,
            "ownerReferences": [{"kind": owner_kind, "name": owner, "controller": true}]}})
    }

    #[rstest]
    #[case::by_the_name_of_an_unread_replica_set(pod("ReplicaSet", "a-7c9", json!({"app": "a", "pod-template-hash": "7c9"})), "deployment/s/a")]
    #[case::a_deployment_that_selects_other_pods(pod("ReplicaSet", "a-7c9", json!({"app": "b", "pod-template-hash": "7c9"})), "replicaset/s/a-7c9")]
    #[case::through_the_replica_set(pod("ReplicaSet", "x-1", json!({})), "deployment/s/a")]
    #[case::an_unknown_one(pod("ReplicaSet", "c-7c9", json!({"pod-template-hash": "7c9"})), "replicaset/s/c-7c9")]
    #[case(pod("StatefulSet", "m", json!({})), "statefulset/s/m")]
    #[case(pod("StatefulSet", "m-0", json!({"leaderworkerset.sigs.k8s.io/name": "m"})), "leaderworkerset/s/m")]
    fn climbing(#[case] doc: Value, #[case] wanted: &str) {
        let objects = catalogue(&[
            doc,
            json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a", "namespace": "s"},
                "spec": {"selector": {"matchLabels": {"app": "a"}}}}),
            json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": "x-1", "namespace": "s",
                "ownerReferences": [{"kind": "Deployment", "name": "a", "controller": true}]}}),
        ]);
        let pod = objects.get(&Subject::pod("s", "p")).unwrap();
        assert_eq!(workload_of(&objects, pod).unwrap().as_str(), wanted);
    }

    #[test]
    fn a_circle_of_owners_ends() {
        let own = |kind: &str, name: &str, owner_kind: &str, owner: &str| {
            json!({"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name, "namespace": "s",
                "ownerReferences": [{"kind": owner_kind, "name": owner, "controller": true}]}})
        };
        let objects = catalogue(&[own("Deployment", "a", "StatefulSet", "b"), own("StatefulSet", "b", "Deployment", "a")]);
        let top = top_of(&objects, &Subject::object("deployment", "s", "a"));
        assert!(["deployment/s/a", "statefulset/s/b"].contains(&top.as_str()), "{top}");
    }

    #[test]
    fn groups() {
        let doc = pod(
            "StatefulSet",
            "m-1",
            json!({"leaderworkerset.sigs.k8s.io/name": "m", "leaderworkerset.sigs.k8s.io/group-index": "1",
            "leaderworkerset.sigs.k8s.io/worker-index": "2"}),
        );
        let pod = Object::read(&doc, Timestamp::UNIX_EPOCH).unwrap();
        assert_eq!(group_of(&pod), Some((Subject::parse("leaderworkerset/s/m/group/1"), 2)));
    }
}
