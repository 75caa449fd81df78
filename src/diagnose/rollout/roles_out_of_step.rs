//! `roles-out-of-step`: prefill and decode of one model are at different revisions, and one revision has Ready pods without a partner.
//!
//! KV moves between prefill and decode of one revision only: engines of two releases refuse each other's layout (vLLM's NIXL connector
//! compares a hash in which its version stands). Ready counts that add both revisions hide it.

use std::collections::{BTreeMap, BTreeSet};

use crate::model::finding::{Code, Finding};
use crate::model::service::{ModelService, Replica, RoleKind};
use crate::model::state::ReplicaState;
use crate::model::{Evidence, Subject, time};
use crate::world::World;
use crate::world::probes::engine_container;
use crate::world::revision::SET_REVISION;
use crate::world::sets::RoleSet;

/// Seconds for which a pod must have been Ready without a partner: in each rollout one role is a moment ahead.
const AFTER_S: i64 = 60;

pub(super) fn check(world: &World, out: &mut Vec<Finding>) {
    for (subject, set) in &world.sets {
        out.extend(of_set(world, subject, set));
    }
    for service in world.services.values() {
        out.extend(plain(world, service));
    }
}

/// Ready replicas by revision and role.
type Table = BTreeMap<String, BTreeMap<String, u32>>;

/// Revisions that have a Ready replica of one role and none of another.
fn halves(table: &Table, roles: &BTreeSet<String>) -> Vec<String> {
    let ready = |of: &BTreeMap<String, u32>, role: &String| of.get(role).copied().unwrap_or(0);
    table
        .iter()
        .filter(|(_, of)| roles.iter().any(|role| ready(of, role) > 0) && roles.iter().any(|role| ready(of, role) == 0))
        .map(|(revision, _)| revision.clone())
        .collect()
}

fn whole(table: &Table, roles: &BTreeSet<String>) -> Vec<String> {
    let all = |of: &BTreeMap<String, u32>| roles.iter().all(|role| of.get(role).is_some_and(|n| *n > 0));
    table.iter().filter(|(_, of)| all(of)).map(|(revision, _)| revision.clone()).collect()
}

fn row(of: &BTreeMap<String, u32>, roles: &BTreeSet<String>) -> String {
    let parts: Vec<String> = roles
        .iter()
        .map(|role| match of.get(role).copied().unwrap_or(0) {
            0 => format!("no Ready {role}"),
            n => format!("{n} Ready {role}"),
        })
        .collect();
    parts.join(" and ")
}

/// Whether any Ready pod of these workloads has been so for long enough.
fn settled(world: &World, replica: &Replica) -> bool {
    let ready = world.objects.pod(&replica.subject).and_then(|(_, pod)| pod.condition("Ready")).filter(|condition| condition.is_true());
    ready.is_some_and(|condition| condition.since.is_none_or(|since| time::seconds_between(since, world.now) >= AFTER_S))
}

fn of_set(world: &World, subject: &Subject, set: &RoleSet) -> Option<Finding> {
    let revisions = set.revisions();
    let roles: BTreeSet<String> = set.roles.iter().map(|role| role.name.clone()).collect();
    if revisions.len() < 2 || roles.len() < 2 {
        return None;
    }
    let mut table = Table::new();
    for part in set.parts.iter().filter(|part| revisions.contains(&part.revision.as_str())) {
        let ready = part.ready.clone().ok()?;
        let cell = table.entry(part.revision.clone()).or_default().entry(part.role.clone()).or_insert(0);
        *cell = cell.saturating_add(ready);
    }
    let halves = halves(&table, &roles);
    let half = halves.iter().find(|revision| {
        world.replicas.values().any(|replica| {
            replica.workload.as_ref().is_some_and(|workload| set.of(revision).any(|part| part.workload == *workload)) && settled(world, replica)
        })
    })?;
    let mut proofs: Vec<Evidence> = Vec::new();
    for part in &set.parts {
        let ready = part.ready.clone().ok()?;
        let value = format!("{ready} Ready {} of revision {} ({})", part.role, part.revision, part.images.join(", "));
        proofs.push(Evidence::field(&part.workload, &format!("metadata.labels[{SET_REVISION}]"), value));
    }
    let parts = set.parts.iter().filter(|part| part.revision == *half).map(|part| part.workload.clone());
    Some(finding(subject, &table, &roles, half, proofs, parts.collect()))
}

fn finding(subject: &Subject, table: &Table, roles: &BTreeSet<String>, half: &str, proofs: Vec<Evidence>, also: Vec<Subject>) -> Finding {
    let rows: Vec<String> = table.iter().map(|(revision, of)| format!("revision {revision} has {}", row(of, roles))).collect();
    let whole = whole(table, roles);
    let verdict = match whole.as_slice() {
        [] => "none is a whole path".to_owned(),
        [one] => format!("only {one} is a whole path"),
        several => format!("{} are whole paths", several.join(" and ")),
    };
    let mut proofs = proofs.into_iter();
    let first = proofs.next().unwrap_or_else(|| Evidence::field(subject, "spec.roles", half));
    let mut finding = Finding::new(
        Code::RolesOutOfStep,
        subject,
        format!("the roles of {} are out of step: {}; {verdict}, and requests that reach {half} find no partner of its revision", subject.name(), rows.join(", ")),
        first,
    )
    .proofs(proofs);
    for workload in also {
        finding = finding.also(&workload);
    }
    finding
        .remedy(format!("bring up the missing role of {half}: see why its pods do not become Ready"))
        .remedy(format!("or take the change back on {subject}, so that one revision serves alone"))
        .remedy("keep requests from pairing across revisions: let the router select by revision")
        .not("take the set's ready counts for the new version: they add both revisions")
}

/// Prefill and decode as workloads of their own: their revision is the release of their engine's image.
fn plain(world: &World, service: &ModelService) -> Option<Finding> {
    let role_of = |kind: &RoleKind| matches!(kind, RoleKind::Prefill | RoleKind::Decode).then(|| kind.word().to_owned());
    let mut table = Table::new();
    let mut roles: BTreeSet<String> = BTreeSet::new();
    let mut images: BTreeMap<(String, String), BTreeSet<String>> = BTreeMap::new();
    let mut repositories: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut settled_in: BTreeSet<String> = BTreeSet::new();
    let mut proofs: Vec<Evidence> = Vec::new();
    for role in &service.roles {
        let Some(name) = role_of(&role.kind) else { continue };
        roles.insert(name.clone());
        for replica in role.replicas.iter().filter_map(|replica| world.replicas.get(replica)) {
            let leader = replica.pods.first().and_then(|pod| world.replicas.get(pod)).unwrap_or(replica);
            let Some((object, _)) = world.objects.pod(&leader.subject) else { continue };
            // Sets of roles have revisions of their own.
            if object.meta.label(SET_REVISION).is_some() {
                return None;
            }
            if matches!(leader.state, ReplicaState::Terminating | ReplicaState::Draining) {
                continue;
            }
            let Some((repository, release)) = release(world, leader) else { continue };
            repositories.entry(name.clone()).or_default().insert(repository);
            let cell = table.entry(release.clone()).or_default().entry(name.clone()).or_insert(0);
            if replica.pod_ready == Ok(true) {
                *cell = cell.saturating_add(1);
                if settled(world, leader) {
                    settled_in.insert(release.clone());
                }
            }
            if images.entry((release.clone(), name.clone())).or_default().insert(release.clone()) {
                let value = format!("{release} ({name}, {})", if replica.pod_ready == Ok(true) { "Ready" } else { "not Ready" });
                proofs.push(Evidence::field(&leader.subject, "spec.containers[].image", value).of_uid(&object.meta.uid));
            }
        }
    }
    // Two images of different make can not be compared by their tags.
    let same = repositories.values().collect::<BTreeSet<_>>().len() == 1 && repositories.values().all(|names| names.len() == 1);
    if roles.len() < 2 || table.len() < 2 || !same {
        return None;
    }
    let half = halves(&table, &roles).into_iter().find(|release| settled_in.contains(release))?;
    let workloads: Vec<Subject> =
        service.roles.iter().filter(|role| role_of(&role.kind).is_some()).flat_map(|role| role.workloads.iter().cloned()).collect();
    let subject = owner(world, service, &workloads)?;
    Some(finding(&subject, &table, &roles, &half, proofs, workloads))
}

/// The object that owns the roles: one above all their workloads, else the pool or Service in front of them, else the first workload.
fn owner(world: &World, service: &ModelService, workloads: &[Subject]) -> Option<Subject> {
    let tops: BTreeSet<Subject> = workloads.iter().filter_map(|workload| world.objects.owner_chain(workload).pop()).collect();
    match (tops.len(), tops.into_iter().next()) {
        (1, Some(top)) => Some(top),
        _ => service.claim.fronts.first().or(workloads.first()).cloned(),
    }
}

/// Repository and tag of the image in which the engine runs.
fn release(world: &World, replica: &Replica) -> Option<(String, String)> {
    let (container, _) = engine_container(world, replica)?;
    let image = container.image.split('@').next().unwrap_or_default();
    let (repository, tag) = image.rsplit_once(':').filter(|(_, tag)| !tag.contains('/'))?;
    Some((repository.to_owned(), tag.to_owned()))
}

#[cfg(test)]
mod tests {
    use crate::diagnose::testkit::Kit;
    use crate::model::finding::Code;
    use rstest::rstest;
    use serde_json::{Value, json};

    /// Pods of a pool by (role, image, Ready).
    fn plain(pods: &[(&str, &str, bool)]) -> Kit {
        let mut kit = Kit::new().object(json!({"apiVersion": "inference.networking.k8s.io/v1", "kind": "InferencePool",
            "metadata": {"name": "p", "namespace": "s"}, "spec": {"selector": {"matchLabels": {"model": "m"}}, "targetPorts": [{"number": 8000}]}}));
        for (i, (role, image, ready)) in pods.iter().enumerate() {
            let name = format!("m-{role}-{i}");
            let labels = json!({"model": "m", "llm-d.ai/role": role, "llm-d.ai/model": "m"});
            kit = if *ready { kit.pod_with(&name, |_| ()) } else { kit.loading_pod(&name) };
            kit.change(&format!("pod/s/{name}"), |pod| {
                pod["metadata"]["labels"] = labels;
                pod["spec"]["containers"][0]["image"] = (*image).into();
            });
        }
        kit
    }

    const OLD: &str = "x/vllm-openai:v0.32.0";
    const NEW: &str = "x/vllm-openai:v0.33.0";

    #[rstest]
    #[case::in_step(&[("prefill", OLD, true), ("decode", OLD, true)], false)]
    #[case::half_of_the_new(&[("prefill", OLD, true), ("decode", OLD, true), ("prefill", NEW, true), ("decode", NEW, false)], true)]
    #[case::no_whole_path(&[("prefill", NEW, true), ("decode", OLD, true)], true)]
    #[case::both_whole(&[("prefill", OLD, true), ("decode", OLD, true), ("prefill", NEW, true), ("decode", NEW, true)], false)]
    #[case::images_of_different_make(&[("prefill", "x/vllm-prefill:v2", true), ("decode", "x/vllm-decode:v1", true)], false)]
    fn by_image(#[case] pods: &[(&str, &str, bool)], #[case] fires: bool) {
        let world = plain(pods).build();
        assert_eq!(world.none(Code::RolesOutOfStep), !fires, "{:?}", world.findings);
        if fires {
            assert_eq!(world.only(Code::RolesOutOfStep).subjects[0].as_str(), "inferencepool/s/p");
        }
    }

    fn set(pods: &[(&str, &str, bool)]) -> Kit {
        let mut kit = Kit::new().object(json!({"apiVersion": "disaggregatedset.x-k8s.io/v1", "kind": "DisaggregatedSet",
            "metadata": {"name": "d", "namespace": "s"}, "spec": {"roles": [{"name": "prefill"}, {"name": "decode"}]}}));
        for (i, (revision, role, ready)) in pods.iter().enumerate() {
            let name = format!("d-0-{revision}-{role}");
            let labels = json!({"disaggregatedset.x-k8s.io/name": "d", "disaggregatedset.x-k8s.io/role": role, "disaggregatedset.x-k8s.io/revision": revision});
            kit = kit.object(json!({"apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": "LeaderWorkerSet",
                "metadata": {"name": name, "namespace": "s", "labels": labels, "creationTimestamp": format!("2026-11-12T0{i}:00:00Z")},
                "spec": {"replicas": 1, "leaderWorkerTemplate": {"size": 1}}}));
            let pod = format!("{name}-0");
            kit = if *ready { kit.pod_with(&pod, |_| ()) } else { kit.loading_pod(&pod) };
            kit.change(&format!("pod/s/{pod}"), |doc: &mut Value| {
                doc["metadata"]["labels"] = json!({"leaderworkerset.sigs.k8s.io/name": name, "leaderworkerset.sigs.k8s.io/group-index": "0",
                    "leaderworkerset.sigs.k8s.io/worker-index": "0", "disaggregatedset.x-k8s.io/revision": revision});
            });
        }
        kit
    }

    #[rstest]
    #[case::half(&[("r1", "prefill", true), ("r1", "decode", true), ("r2", "prefill", true), ("r2", "decode", false)], true)]
    #[case::whole(&[("r1", "prefill", true), ("r1", "decode", true), ("r2", "prefill", true), ("r2", "decode", true)], false)]
    #[case::one_revision(&[("r1", "prefill", true), ("r1", "decode", false)], false)]
    #[case::nothing_of_the_new_is_ready(&[("r1", "prefill", true), ("r1", "decode", true), ("r2", "prefill", false)], false)]
    fn by_set(#[case] pods: &[(&str, &str, bool)], #[case] fires: bool) {
        let world = set(pods).build();
        assert_eq!(world.none(Code::RolesOutOfStep), !fires, "{:?}", world.findings);
    }
}
