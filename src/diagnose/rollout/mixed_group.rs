//! `mixed-group`: pods of one group come from different revisions or group keys, or a member was made anew while its group was not.
//!
//! Ranks of one engine must start together: a mixed group does not form, or its collectives hang.

use crate::model::finding::{Code, Finding};
use crate::model::object::Object;
use crate::model::{Evidence, Subject, time};
use crate::systems::owners::group_of;
use crate::world::World;

/// Label: revision of the template that a pod follows. lws v0.10.0.
const REVISION: &str = "leaderworkerset.sigs.k8s.io/template-revision-hash";
/// Label: key that all pods of one making of a group share. lws v0.10.0.
const KEY: &str = "leaderworkerset.sigs.k8s.io/group-key";
/// Seconds by which a member may be younger than the others of its group.
const APART_S: i64 = 300;

pub(super) fn check(world: &World, out: &mut Vec<Finding>) {
    for (subject, group) in world.replicas.iter().filter(|(subject, _)| subject.as_str().contains("/group/")) {
        // One that is being deleted belongs to the group that goes.
        let members: Vec<&Object> =
            group.pods.iter().filter_map(|pod| world.objects.get(pod)).filter(|object| object.meta.deletion.is_none()).collect();
        let found = differing(&members, REVISION, "different revisions")
            .or_else(|| differing(&members, KEY, "different group keys"))
            .or_else(|| made_anew(world, subject, &members));
        if let Some((what, proofs)) = found {
            out.extend(finding(subject, &what, proofs));
        }
    }
}

/// Pods whose label differs.
fn differing(members: &[&Object], label: &str, words: &str) -> Option<(String, Vec<Evidence>)> {
    let have: Vec<(&Object, &str)> = members.iter().filter_map(|object| Some((*object, object.meta.label(label)?))).collect();
    let (_, first) = have.first()?;
    if have.iter().all(|(_, value)| value == first) {
        return None;
    }
    let listed: Vec<String> = have.iter().take(6).map(|(object, value)| format!("{} {value}", object.meta.name)).collect();
    let proofs = have
        .iter()
        .take(8)
        .map(|(object, value)| Evidence::field(&object.subject(), &format!("metadata.labels[{label}]"), *value).of_uid(&object.meta.uid))
        .collect();
    Some((format!("has pods of {words}: {}", listed.join(", ")), proofs))
}

/// A member that is much younger than the others. Workers of one group are made at once; the leader before them.
fn made_anew(world: &World, group: &Subject, members: &[&Object]) -> Option<(String, Vec<Evidence>)> {
    let set = Subject::object(group.kind(), group.namespace(), group.name());
    let after_leader = world.objects.workload(&set).is_some_and(|(_, body)| body.strategy.startup_policy == "LeaderReady");
    let index = |object: &Object| group_of(object).map_or(0, |(_, index)| index);
    // Workers that wait for the leader to be Ready are younger than it by design.
    let counted: Vec<&&Object> = members.iter().filter(|object| index(object) > 0 || !after_leader).collect();
    let oldest = counted.iter().filter_map(|object| Some((object.meta.created?, **object))).min_by_key(|(at, _)| *at)?;
    let youngest = counted.iter().filter_map(|object| Some((object.meta.created?, **object))).max_by_key(|(at, _)| *at)?;
    let apart = time::seconds_between(oldest.0, youngest.0);
    if apart < APART_S {
        return None;
    }
    let proof = |(at, object): (jiff::Timestamp, &Object)| {
        Evidence::field(&object.subject(), "metadata.creationTimestamp", at.to_string()).seen_at(Some(at)).of_uid(&object.meta.uid)
    };
    let what = format!(
        "has a member that was made anew while the group was not: {} is {} younger than {}",
        youngest.1.meta.name,
        time::span(apart),
        oldest.1.meta.name
    );
    Some((what, vec![proof(youngest), proof(oldest)]))
}

fn finding(subject: &Subject, what: &str, proofs: Vec<Evidence>) -> Option<Finding> {
    let set = Subject::object(subject.kind(), subject.namespace(), subject.name());
    let index = subject.as_str().rsplit('/').next().unwrap_or_default();
    let mut proofs = proofs.into_iter();
    let first = proofs.next()?;
    Some(
        Finding::new(
            Code::MixedGroup,
            &set,
            format!("group {index} of {} {what}; its ranks can not work together", set.name()),
            first,
        )
        .also(subject)
        .proofs(proofs)
        .remedy("make the whole group anew: delete its leader, so that all its pods follow one revision")
        .remedy("check that the LeaderWorkerSet controller runs: it makes groups whole")
        .not("delete only the member that differs: a single member made anew mixes the group again"),
    )
}

#[cfg(test)]
mod tests {
    use crate::diagnose::testkit::Kit;
    use crate::model::finding::Code;
    use rstest::rstest;
    use serde_json::json;

    /// Leader and two workers: (revision, key, created).
    fn kit(policy: &str, members: [(&str, &str, &str); 3]) -> Kit {
        let mut kit = Kit::new().object(json!({"apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": "LeaderWorkerSet",
            "metadata": {"name": "m", "namespace": "s"},
            "spec": {"replicas": 1, "startupPolicy": policy, "leaderWorkerTemplate": {"size": 3}}}));
        for (i, (revision, key, created)) in members.into_iter().enumerate() {
            let name = if i == 0 { "m-0".to_owned() } else { format!("m-0-{i}") };
            kit = kit.pod_with(&name, |pod| {
                pod["metadata"]["creationTimestamp"] = format!("2026-11-12T{created}Z").into();
                pod["metadata"]["labels"] = json!({"leaderworkerset.sigs.k8s.io/name": "m", "leaderworkerset.sigs.k8s.io/group-index": "0",
                    "leaderworkerset.sigs.k8s.io/worker-index": i.to_string(), super::REVISION: revision, super::KEY: key});
            });
        }
        kit
    }

    #[rstest]
    #[case::whole("LeaderCreated", [("a", "k", "07:00:00"), ("a", "k", "07:00:05"), ("a", "k", "07:00:06")], None)]
    #[case::revisions("LeaderCreated", [("a", "k", "07:00:00"), ("b", "k", "07:00:05"), ("a", "k", "07:00:06")], Some("different revisions"))]
    #[case::keys("LeaderCreated", [("a", "k", "07:00:00"), ("a", "k", "07:00:05"), ("a", "j", "07:00:06")], Some("different group keys"))]
    #[case::a_member_made_anew("LeaderCreated", [("a", "k", "07:00:00"), ("a", "k", "07:00:05"), ("a", "k", "08:40:00")], Some("m-0-2"))]
    #[case::workers_after_the_leader("LeaderReady", [("a", "k", "07:00:00"), ("a", "k", "07:20:05"), ("a", "k", "07:20:06")], None)]
    fn groups(#[case] policy: &str, #[case] members: [(&str, &str, &str); 3], #[case] words: Option<&str>) {
        let world = kit(policy, members).build();
        match words {
            None => assert!(world.none(Code::MixedGroup), "{:?}", world.findings),
            Some(words) => {
                let finding = world.only(Code::MixedGroup);
                assert!(finding.summary.contains(words), "{}", finding.summary);
                assert_eq!(finding.subjects[0].as_str(), "leaderworkerset/s/m");
            }
        }
    }
}
