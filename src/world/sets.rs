//! DisaggregatedSets: roles of one model that roll together, each role and revision in a LeaderWorkerSet of its own.
//!
//! Source: kubernetes-sigs/lws v0.10.0, `api/disaggregatedset/v1`. The set's own status adds both revisions and says nothing of an
//! update, so its state is told from its LeaderWorkerSets. Must not raise findings.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde_json::Value;

use super::WorkloadView;
use super::revision::SET_REVISION;
use crate::model::funnel::Funnel;
use crate::model::object::{Body, Catalogue, WorkloadKind};
use crate::model::service::Replica;
use crate::model::state::{ReplicaState, WorkloadState};
use crate::model::{Evidence, Known, Place, Subject};

/// Label of a set's LeaderWorkerSets: the set.
const NAME: &str = "disaggregatedset.x-k8s.io/name";
/// Label of a set's LeaderWorkerSets: the role.
const ROLE: &str = "disaggregatedset.x-k8s.io/role";

/// A set of roles that roll together.
#[derive(Debug, Clone, PartialEq)]
pub struct RoleSet {
    /// Roles as its spec names them, in that order.
    pub roles: Vec<SetRole>,
    /// The newest revision: that of the LeaderWorkerSet made last.
    pub newest: String,
    /// Every role of every revision that was read.
    pub parts: Vec<Part>,
}

/// A role as the set's spec has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetRole {
    /// Name.
    pub name: String,
    /// `maxSurge` and `maxUnavailable` in replicas; absent where they can not be read.
    pub bounds: Option<(u32, u32)>,
    /// Replicas that its spec asks for; absent where a scaler sets them.
    pub replicas: Option<u32>,
}

/// One role of one revision.
#[derive(Debug, Clone, PartialEq)]
pub struct Part {
    /// Role.
    pub role: String,
    /// Revision.
    pub revision: String,
    /// Its LeaderWorkerSet.
    pub workload: Subject,
    /// When that was made.
    pub created: Option<Timestamp>,
    /// Replicas that it asks for.
    pub asked: Known<u32>,
    /// Replicas that exist.
    pub existing: Known<u32>,
    /// Of them Ready.
    pub ready: Known<u32>,
    /// Images of its template.
    pub images: Vec<String>,
}

impl RoleSet {
    /// Revisions that have a replica or ask for one, the newest last.
    pub fn revisions(&self) -> Vec<&str> {
        let alive = |part: &&Part| part.asked != Ok(0) || part.existing != Ok(0);
        let mut seen: Vec<&str> = Vec::new();
        for part in self.parts.iter().filter(alive) {
            if !seen.contains(&part.revision.as_str()) {
                seen.push(&part.revision);
            }
        }
        seen.sort_by_key(|revision| *revision == self.newest);
        seen
    }

    /// The parts of one revision.
    pub fn of<'a>(&'a self, revision: &'a str) -> impl Iterator<Item = &'a Part> {
        self.parts.iter().filter(move |part| part.revision == revision)
    }

    /// A role as the spec has it.
    pub fn role(&self, name: &str) -> Option<&SetRole> {
        self.roles.iter().find(|role| role.name == name)
    }

    /// Replicas of a role and revision that are Ready.
    pub fn ready(&self, role: &str, revision: &str) -> Known<u32> {
        self.of(revision).filter(|part| part.role == role).try_fold(0u32, |sum, part| Ok(sum.saturating_add(part.ready.clone()?)))
    }
}

/// Every DisaggregatedSet whose LeaderWorkerSets were read, also where the set itself was not.
pub fn sets(objects: &Catalogue, workloads: &BTreeMap<Subject, WorkloadView>) -> BTreeMap<Subject, RoleSet> {
    let mut out: BTreeMap<Subject, RoleSet> = BTreeMap::new();
    for (object, body) in objects.workloads().filter(|(_, body)| body.kind == WorkloadKind::LeaderWorkerSet) {
        let meta = &object.meta;
        let labels = (meta.label(NAME), meta.label(ROLE), meta.label(SET_REVISION));
        let (Some(name), Some(role), Some(revision)) = labels else { continue };
        let subject = object.subject();
        let Some(view) = workloads.get(&subject) else { continue };
        let mut images: Vec<String> = body
            .template
            .containers
            .iter()
            .chain(body.worker_template.iter().flat_map(|spec| &spec.containers))
            .map(|c| c.image.clone())
            .collect();
        images.dedup();
        let ready = view.funnel.pod_ready.clone().or_else(|why| body.status.ready.ok_or(why));
        let existing = view.funnel.existing.clone().or_else(|why| body.status.replicas.ok_or(why));
        let part = Part {
            role: role.to_owned(),
            revision: revision.to_owned(),
            workload: subject,
            created: meta.created,
            asked: body.replicas.clone(),
            existing,
            ready,
            images,
        };
        let set = out.entry(Subject::object("disaggregatedset", &meta.namespace, name)).or_insert_with(|| RoleSet {
            roles: Vec::new(),
            newest: String::new(),
            parts: Vec::new(),
        });
        set.parts.push(part);
    }
    for (subject, set) in &mut out {
        set.newest = set.parts.iter().max_by_key(|part| part.created).map(|part| part.revision.clone()).unwrap_or_default();
        set.roles = match objects.get(subject).map(|object| &object.body) {
            Some(Body::Other(body)) => roles(body),
            _ => Vec::new(),
        };
        if set.roles.is_empty() {
            let names: BTreeSet<&str> = set.parts.iter().map(|part| part.role.as_str()).collect();
            set.roles = names.into_iter().map(|name| SetRole { name: name.to_owned(), bounds: None, replicas: None }).collect();
        }
    }
    out
}

fn roles(body: &Value) -> Vec<SetRole> {
    let list = body.pointer("/spec/roles").and_then(Value::as_array).into_iter().flatten();
    list.filter_map(|role| {
        let replicas = role.pointer("/spec/replicas").and_then(Value::as_u64).and_then(|n| u32::try_from(n).ok());
        let external = role.pointer("/scaling/mode").and_then(Value::as_str) == Some("External");
        let bound = |name: &str, default: u32| match role.pointer(&format!("/spec/rolloutStrategy/rollingUpdateConfiguration/{name}")) {
            None | Some(Value::Null) => Some(default),
            Some(value) => value.as_u64().and_then(|n| u32::try_from(n).ok()),
        };
        Some(SetRole {
            name: role.get("name")?.as_str()?.to_owned(),
            bounds: bound("maxSurge", 0).zip(bound("maxUnavailable", 1)),
            replicas: replicas.filter(|_| !external),
        })
    })
    .collect()
}

/// Counts and judges a set from the views of its parts.
pub fn view(
    subject: &Subject,
    set: &RoleSet,
    workloads: &BTreeMap<Subject, WorkloadView>,
    replicas: &BTreeMap<Subject, Replica>,
) -> WorkloadView {
    let views: Vec<(&Part, &WorkloadView)> = set.parts.iter().filter_map(|part| Some((part, workloads.get(&part.workload)?))).collect();
    let own: Vec<&Replica> = views.iter().flat_map(|(_, view)| &view.replicas).filter_map(|replica| replicas.get(replica)).collect();
    let funnel = sum(set, &views);
    let serving = |role: &str| -> Known<u32> {
        views
            .iter()
            .filter(|(part, _)| part.role == role)
            .try_fold(0u32, |sum, (_, view)| Ok(sum.saturating_add(view.funnel.serving.clone()?)))
    };
    let counts: Vec<(&str, Known<u32>)> = set.roles.iter().map(|role| (role.name.as_str(), serving(&role.name))).collect();
    let revisions = set.revisions();
    let mut why: Vec<String> = counts
        .iter()
        .map(|(role, count)| match count {
            Ok(n) => format!("{role}: {n} serve{}", if *n == 1 { "s" } else { "" }),
            Err(reason) => format!("{role}: how many serve is not known ({reason})"),
        })
        .collect();
    let mut evidence: Vec<Evidence> = views
        .iter()
        .map(|(part, _)| Evidence::field(&part.workload, &format!("metadata.labels[{SET_REVISION}]"), part.revision.clone()))
        .collect();
    let waits = own.iter().find(|replica| {
        let of_newest = set.of(&set.newest).any(|part| Some(&part.workload) == replica.workload.as_ref());
        of_newest && matches!(replica.state, ReplicaState::PendingGpu | ReplicaState::WaitingAdmission)
    });
    let state = if revisions.is_empty() {
        why.insert(0, "no replica is asked for".into());
        WorkloadState::ScaledToZero
    } else if counts.iter().any(|(_, count)| *count == Ok(0)) {
        WorkloadState::Down
    } else if revisions.len() > 1 {
        why.insert(0, format!("a rollout is on its way: revisions {} stand side by side", revisions.join(" and ")));
        match waits {
            Some(replica) => {
                why.insert(0, format!("the rollout does not go on: {} {}: {}", replica.subject.name(), replica.state, first(&replica.why)));
                evidence.insert(
                    0,
                    Evidence::new(&replica.subject, Place::Condition("PodScheduled".into()), first(&replica.why), replica.since),
                );
                why.insert(
                    0,
                    format!("the rollout does not go on: {} {}: {}", replica.subject.called(), replica.state, first(&replica.why)),
                );
                evidence.insert(
                    0,
                    Evidence::new(&replica.subject, Place::Condition("PodScheduled".into()), first(&replica.why), replica.since),
                );
                WorkloadState::Blocked
            }
            None => WorkloadState::RollingOut,
        }
    } else if counts.iter().any(|(_, count)| count.is_err()) {
        WorkloadState::Unknown
    } else if views.iter().any(|(_, view)| view.state != WorkloadState::Serving && view.state != WorkloadState::ScaledToZero) {
        WorkloadState::Degraded
    } else {
        WorkloadState::Serving
    };
    if evidence.is_empty() {
        evidence.push(Evidence::field(subject, "spec.roles", "no LeaderWorkerSet of it was read"));
    }
    let proven = views.iter().try_fold(0u32, |sum, (_, view)| Ok(sum.saturating_add(view.proven.clone()?)));
    WorkloadView {
        replicas: own.iter().map(|replica| replica.subject.clone()).collect(),
        left_over: views.iter().flat_map(|(_, view)| view.left_over.iter().cloned()).collect(),
        proven,
        funnel,
        state,
        why,
        evidence,
    }
}

fn first(why: &[String]) -> String {
    why.first().cloned().unwrap_or_default()
}

/// The funnel of the whole: sums over its parts; wanted is what the set's spec asks for, where it says so.
fn sum(set: &RoleSet, views: &[(&Part, &WorkloadView)]) -> Funnel {
    let of = |read: &dyn Fn(&Funnel) -> &Known<u32>| -> Known<u32> {
        views.iter().try_fold(0u32, |sum, (_, view)| Ok(sum.saturating_add(read(&view.funnel).clone()?)))
    };
    let spec: Option<u32> = set.roles.iter().map(|role| role.replicas).try_fold(0u32, |sum, n| Some(sum.saturating_add(n?)));
    Funnel {
        wanted: spec.map_or_else(|| of(&|f| &f.wanted), Ok),
        wanted_by: "spec.roles[].spec.replicas".into(),
        asked: of(&|f| &f.asked),
        existing: of(&|f| &f.existing),
        scheduled: of(&|f| &f.scheduled),
        started: of(&|f| &f.started),
        loaded: of(&|f| &f.loaded),
        pod_ready: of(&|f| &f.pod_ready),
        listed: of(&|f| &f.listed),
        routed: of(&|f| &f.routed),
        serving: of(&|f| &f.serving),
        sleeping: of(&|f| &f.sleeping),
        awake: of(&|f| &f.awake),
        draining: of(&|f| &f.draining),
        unschedulable: of(&|f| &f.unschedulable),
        pulling: of(&|f| &f.pulling),
        loading: of(&|f| &f.loading),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnose::testkit::Kit;
    use serde_json::json;

    /// A set `d` with roles prefill and decode; pods by (revision, role, Ready).
    fn kit(pods: &[(&str, &str, bool)]) -> Kit {
        let role = |name: &str| json!({"name": name, "spec": {"replicas": 1, "rolloutStrategy": {"rollingUpdateConfiguration": {"maxSurge": 1, "maxUnavailable": 0}}}});
        let mut kit = Kit::new().object(json!({"apiVersion": "disaggregatedset.x-k8s.io/v1", "kind": "DisaggregatedSet",
            "metadata": {"name": "d", "namespace": "s"}, "spec": {"roles": [role("prefill"), role("decode")]}}));
        for (i, (revision, role, ready)) in pods.iter().enumerate() {
            let set = format!("d-0-{revision}-{role}");
            kit = kit.object(json!({"apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": "LeaderWorkerSet",
                "metadata": {"name": set, "namespace": "s", "creationTimestamp": format!("2026-11-12T0{i}:00:00Z"),
                    "labels": {NAME: "d", ROLE: role, SET_REVISION: revision},
                    "ownerReferences": [{"kind": "DisaggregatedSet", "name": "d", "controller": true}]},
                "spec": {"replicas": 1, "leaderWorkerTemplate": {"size": 1, "workerTemplate": {"spec": {"containers": [{"name": "e", "image": "x"}]}}}}}));
            let labels = json!({"leaderworkerset.sigs.k8s.io/name": set, "leaderworkerset.sigs.k8s.io/group-index": "0",
                "leaderworkerset.sigs.k8s.io/worker-index": "0"});
            let name = format!("{set}-0");
            kit = kit.pod_with(&name, |pod| {
                pod["metadata"]["labels"] = labels;
                if !ready {
                    pod["spec"]["nodeName"] = serde_json::Value::Null;
                    pod["status"] = json!({"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False",
                        "reason": "Unschedulable", "message": "3 Insufficient nvidia.com/gpu"}]});
                }
            });
        }
        kit
    }

    fn state(pods: &[(&str, &str, bool)]) -> WorkloadState {
        let world = kit(pods).build().world;
        world.workloads.get(&Subject::parse("disaggregatedset/s/d")).unwrap().state
    }

    #[test]
    fn one_word_for_the_whole() {
        let whole = [("r1", "prefill", true), ("r1", "decode", true)];
        assert_eq!(state(&whole), WorkloadState::Serving);
        assert_eq!(state(&[whole[0], ("r1", "decode", false)]), WorkloadState::Down);
        assert_eq!(state(&[whole[0], whole[1], ("r2", "prefill", true)]), WorkloadState::RollingOut);
        assert_eq!(state(&[whole[0], whole[1], ("r2", "decode", false)]), WorkloadState::Blocked);
    }

    #[test]
    fn counts_by_role_and_revision() {
        let world = kit(&[("r1", "prefill", true), ("r1", "decode", true), ("r2", "prefill", true), ("r2", "decode", false)]).build().world;
        let set = world.sets.get(&Subject::parse("disaggregatedset/s/d")).unwrap();
        assert_eq!((set.newest.as_str(), set.revisions()), ("r2", vec!["r1", "r2"]));
        assert_eq!((set.ready("prefill", "r2"), set.ready("decode", "r2")), (Ok(1), Ok(0)));
        assert_eq!(set.role("decode").unwrap().bounds, Some((1, 0)));
        let funnel = &world.workloads.get(&Subject::parse("disaggregatedset/s/d")).unwrap().funnel;
        assert_eq!((funnel.wanted.clone(), funnel.existing.clone(), funnel.pod_ready.clone()), (Ok(2), Ok(4), Ok(3)));
    }
}
