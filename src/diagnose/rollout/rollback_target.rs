//! `rollback-target-gone`: no earlier revision is left in the cluster.

use std::collections::BTreeSet;

use crate::model::finding::{Code, Finding};
use crate::model::object::{Body, Object, Workload, WorkloadKind};
use crate::model::state::WorkloadState;
use crate::model::{Evidence, Subject};
use crate::world::World;
use crate::world::revision::{number, replica_sets};

pub(super) fn check(world: &World, out: &mut Vec<Finding>) {
    for (object, body) in world.objects.workloads() {
        let gone = match body.kind {
            WorkloadKind::Deployment | WorkloadKind::Rollout => replica_sets_gone(world, object, body),
            WorkloadKind::StatefulSet | WorkloadKind::LeaderWorkerSet | WorkloadKind::CloneSet => revisions_gone(world, object, body),
            WorkloadKind::ReplicaSet | WorkloadKind::DaemonSet => None,
        };
        out.extend(gone);
    }
}

/// A limit of 0 is proof by itself. Else the missing revisions prove something only where somebody needs one: the bundle may lack them.
fn needed(world: &World, subject: &Subject, body: &Workload) -> bool {
    use WorkloadState::{Blocked, Degraded, Down, FailedUpdate};
    body.revision_history_limit == Some(0)
        || world.workloads.get(subject).is_some_and(|view| matches!(view.state, Blocked | Degraded | Down | FailedUpdate))
}

fn replica_sets_gone(world: &World, object: &Object, body: &Workload) -> Option<Finding> {
    let subject = object.subject();
    let annotation = if body.kind == WorkloadKind::Rollout { "rollout.argoproj.io/revision" } else { "deployment.kubernetes.io/revision" };
    let current: u64 = object.meta.annotation(annotation)?.parse().ok()?;
    // The first revision has nothing before it.
    if current < 2 || !needed(world, &subject, body) {
        return None;
    }
    let sets = replica_sets(&world.objects, &subject);
    let of = |set: &Object| number(set).or_else(|| set.meta.annotation(annotation)?.parse().ok());
    if sets.iter().any(|set| of(set).is_none_or(|revision| revision < current)) {
        return None;
    }
    if sets.is_empty() && body.revision_history_limit != Some(0) {
        return None;
    }
    let left: Vec<Evidence> =
        sets.iter().map(|set| Evidence::field(&set.subject(), &format!("metadata.annotations[{annotation}]"), of(set).unwrap_or(current).to_string())).collect();
    Some(finding(object, body, &format!("revision {current}"), left))
}

fn revisions_gone(world: &World, object: &Object, body: &Workload) -> Option<Finding> {
    let subject = object.subject();
    if !needed(world, &subject, body) {
        return None;
    }
    let owned: Vec<&Object> = world
        .objects
        .owned_by(&subject)
        .iter()
        .filter_map(|owned| world.objects.get(owned))
        .filter(|owned| owned.kind == "ControllerRevision")
        .collect();
    let number = |object: &Object| match &object.body {
        Body::Other(body) => body.get("revision").and_then(serde_json::Value::as_u64),
        _ => None,
    };
    let numbers: BTreeSet<u64> = owned.iter().filter_map(|owned| number(owned)).collect();
    // One revision with a number above 1: there were others, and they are gone.
    let only = numbers.first().filter(|revision| numbers.len() == 1 && owned.len() == 1 && **revision > 1)?;
    let left = owned.iter().map(|owned| Evidence::field(&owned.subject(), "revision", only.to_string())).collect();
    Some(finding(object, body, &format!("revision {only}"), left))
}

fn finding(object: &Object, body: &Workload, current: &str, left: Vec<Evidence>) -> Finding {
    let subject = object.subject();
    let limit = body.revision_history_limit.map_or_else(|| "not set".to_owned(), |limit| limit.to_string());
    let cause = match body.revision_history_limit {
        Some(0) => "revisionHistoryLimit is 0, so the older ones are removed as soon as a rollout is complete".to_owned(),
        _ => format!("no older one was found (revisionHistoryLimit {limit})"),
    };
    let writer = object.meta.writers.iter().filter(|writer| writer.owns("spec.template")).max_by_key(|writer| writer.time);
    let mut finding = Finding::new(
        Code::RollbackTargetGone,
        &subject,
        format!("{} can not be rolled back from within the cluster: only {current} is left, {cause}", subject.name()),
        Evidence::field(&subject, "spec.revisionHistoryLimit", limit).of_uid(&object.meta.uid),
    )
    .proofs(left);
    if let Some(writer) = writer {
        finding = finding
            .proof(Evidence::field(&subject, "metadata.managedFields", format!("{} writes spec.template ({})", writer.manager, writer.operation)).seen_at(writer.time))
            .remedy(format!("roll back where the template comes from: {} wrote it last", writer.manager));
    } else {
        finding = finding.remedy("roll back where the template comes from (repository, chart, the object above it)");
    }
    finding
        .remedy("set revisionHistoryLimit to 2 or more before the next rollout")
        .not("expect `rollout undo` to work: there is nothing to go back to")
}

#[cfg(test)]
mod tests {
    use crate::diagnose::testkit::Kit;
    use crate::model::finding::Code;
    use rstest::rstest;
    use serde_json::{Value, json};

    fn deployment(limit: Value, revision: &str, ready: u32) -> Value {
        json!({"apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": "w", "namespace": "s", "annotations": {"deployment.kubernetes.io/revision": revision}},
            "spec": {"replicas": 1, "revisionHistoryLimit": limit}, "status": {"replicas": 1, "readyReplicas": ready, "updatedReplicas": 1}})
    }

    fn set(revision: &str) -> Value {
        json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": format!("w-{revision}"), "namespace": "s",
            "annotations": {"deployment.kubernetes.io/revision": revision}, "ownerReferences": [{"kind": "Deployment", "name": "w", "controller": true}]}})
    }

    #[rstest]
    #[case::no_history(json!(0), "9", 1, &["9"], true)]
    #[case::nothing_before_the_first(json!(0), "1", 1, &["1"], false)]
    #[case::an_older_one_is_left(json!(0), "9", 1, &["8", "9"], false)]
    #[case::not_read_and_not_needed(json!(10), "9", 1, &["9"], false)]
    #[case::needed_and_not_there(json!(10), "9", 0, &["9"], true)]
    #[case::none_was_read(json!(10), "9", 0, &[], false)]
    fn deployments(#[case] limit: Value, #[case] revision: &str, #[case] ready: u32, #[case] sets: &[&str], #[case] fires: bool) {
        let kit = sets.iter().fold(Kit::new().object(deployment(limit, revision, ready)), |kit, revision| kit.object(set(revision)));
        let world = kit.build();
        assert_eq!(world.none(Code::RollbackTargetGone), !fires, "{:?}", world.findings);
    }

    #[rstest]
    #[case(&[7], true)]
    #[case(&[6, 7], false)]
    #[case(&[1], false)]
    fn controller_revisions(#[case] revisions: &[u64], #[case] fires: bool) {
        let mut kit = Kit::new().object(json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "w", "namespace": "s"},
            "spec": {"replicas": 1, "revisionHistoryLimit": 0}}));
        for revision in revisions {
            kit = kit.object(json!({"apiVersion": "apps/v1", "kind": "ControllerRevision", "revision": revision,
                "metadata": {"name": format!("w-{revision}"), "namespace": "s", "ownerReferences": [{"kind": "StatefulSet", "name": "w", "controller": true}]}}));
        }
        assert_eq!(kit.build().none(Code::RollbackTargetGone), !fires);
    }
}
