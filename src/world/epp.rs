//! The endpoint picker (EPP) of a pool: its pods, who of them leads, and whether any is there to answer.
//!
//! With leader election only the leader is ever Ready: `readiness` and the ext_proc health check pass on it alone (llm-d-router v0.10.0,
//! Gateway API Inference Extension #1264). A standby is well although it is never Ready. Must not read metric pages beyond the one gauge
//! that says who leads: that is `router`.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use super::proxy::{Passing, answers_for, passing};
use crate::engines::MetricPage;
use crate::model::engine::HttpAnswer;
use crate::model::object::{Catalogue, Container, InferencePool, Lease, Object, Pod};
use crate::model::unknown::unknown;
use crate::model::{Evidence, Known, Place, Subject, time};

/// Seconds for which a renewal holds where the Lease does not say it (client-go's default).
const LEASE_S: i64 = 15;
/// Gauge of controller-runtime: 1 on the leader.
pub const MASTER: &str = "leader_election_master_status";
/// Flag that turns leader election on; a flag without value is on.
const ELECTION_FLAGS: &[&str] = &["--ha-enable-leader-election", "-ha-enable-leader-election"];

/// The picker of one pool.
#[derive(Debug, Clone, PartialEq)]
pub struct Picker {
    /// Its Service, as the pool names it.
    pub service: Subject,
    /// Workloads that make its pods.
    pub workloads: Vec<Subject>,
    /// Its pods, ended ones left out.
    pub pods: Vec<Subject>,
    /// Of these, pods that Kubernetes calls Ready.
    pub ready: Vec<Subject>,
    /// What shows that its replicas elect a leader; `None` where nothing does.
    pub election: Option<Evidence>,
    /// The Lease, where it was seen.
    pub lease: Option<LeaseView>,
    /// The pod that leads. With election: by the Lease, else by readiness. Without: unknown, as none leads.
    pub leader: Known<(Subject, Vec<Evidence>)>,
    /// What shows that nobody is there to answer; `None` where somebody is, or where nobody knows.
    pub absent: Option<Vec<Evidence>>,
    /// Since when nobody is, where that is known.
    pub absent_since: Option<Timestamp>,
}

/// A leader's Lease as seen.
#[derive(Debug, Clone, PartialEq)]
pub struct LeaseView {
    /// The Lease.
    pub subject: Subject,
    /// Identity of the holder; empty for none.
    pub holder: String,
    /// The last renewal.
    pub renewed: Option<Timestamp>,
    /// Whether a holder is named and the last renewal still holds.
    pub held: bool,
    /// Seconds since it ran out, where it did.
    pub expired_s: Option<i64>,
}

impl LeaseView {
    fn read(object: &Object, lease: &Lease, now: Timestamp) -> Self {
        let until = lease.renewed.map(|renewed| time::seconds_between(renewed, now).saturating_sub(lease.duration_s.unwrap_or(LEASE_S)));
        let expired_s = until.filter(|past| *past > 0);
        Self {
            subject: object.subject(),
            holder: lease.holder.clone(),
            renewed: lease.renewed,
            held: !lease.holder.is_empty() && until.is_some_and(|past| past <= 0),
            expired_s,
        }
    }

    /// The holder's pod: an identity is `<pod>_<uuid>`.
    pub fn holder_pod(&self) -> &str {
        self.holder.split('_').next().unwrap_or_default()
    }

    /// As evidence: holder and last renewal.
    pub fn evidence(&self) -> Evidence {
        let renewed = self.renewed.map_or_else(|| "never renewed".to_owned(), |at| format!("renewed {at}"));
        let value = if self.holder.is_empty() { format!("no holder, {renewed}") } else { format!("held by {}, {renewed}", self.holder) };
        Evidence::field(&self.subject, "spec.holderIdentity", value).seen_at(self.renewed)
    }
}

impl Picker {
    /// Pods that wait to lead: not Ready, by design.
    pub fn standbys(&self) -> impl Iterator<Item = &Subject> {
        let leader = self.leader.as_ref().ok().map(|(leader, _)| leader.clone());
        self.pods.iter().filter(move |pod| leader.as_ref().is_some_and(|leader| leader != *pod))
    }
}

/// The pickers of all pools whose Service was seen.
pub fn pickers(objects: &Catalogue, pages: &BTreeMap<Subject, Vec<MetricPage>>, now: Timestamp) -> BTreeMap<Subject, Picker> {
    objects
        .pools()
        .filter(|(_, pool)| !pool.picker.is_empty())
        .filter_map(|(object, pool)| Some((object.subject(), picker(objects, pages, object, pool, now)?)))
        .collect()
}

fn picker(
    objects: &Catalogue,
    pages: &BTreeMap<Subject, Vec<MetricPage>>,
    pool: &Object,
    body: &InferencePool,
    now: Timestamp,
) -> Option<Picker> {
    let namespace = pool.meta.namespace.as_str();
    let service = Subject::object("service", namespace, &body.picker);
    let selector = objects.service(&service).and_then(|(_, service)| service.selector.as_ref())?;
    let pods: Vec<(&Object, &Pod)> = objects.pods_matching(namespace, selector).filter(|(_, pod)| !pod.has_ended()).collect();
    let workloads: BTreeSet<Subject> = objects
        .workloads()
        .filter(|(object, workload)| {
            object.meta.namespace == namespace && object.meta.controller().is_none() && selector.matches(&workload.template_labels)
        })
        .map(|(object, _)| object.subject())
        .collect();
    let ready: Vec<Subject> = pods
        .iter()
        .filter(|(object, pod)| super::listing::pod_ready(object, pod) == Ok(true))
        .map(|(object, _)| object.subject())
        .collect();
    let lease = lease_of(objects, pool, &pods, now);
    let election = election(objects, &pods, &workloads, lease.as_ref());
    let leader = leader(objects, pages, &pods, &ready, lease.as_ref(), election.as_ref());
    let (absent, absent_since) = absent(objects, namespace, body, &pods, &ready, &workloads);
    Some(Picker {
        service,
        workloads: workloads.into_iter().collect(),
        pods: pods.iter().map(|(object, _)| object.subject()).collect(),
        ready,
        election,
        lease,
        leader,
        absent,
        absent_since,
    })
}

/// The Lease `epp-<namespace>-<pool>.<domain>` in the pool's namespace, else one that one of the pods holds.
fn lease_of(objects: &Catalogue, pool: &Object, pods: &[(&Object, &Pod)], now: Timestamp) -> Option<LeaseView> {
    let prefix = format!("epp-{}-{}.", pool.meta.namespace, pool.meta.name);
    let own = || objects.leases().filter(|(object, _)| object.meta.namespace == pool.meta.namespace);
    let named = own().find(|(object, _)| object.meta.name.starts_with(&prefix));
    let held = || {
        own().find(|(_, lease)| {
            let holder = lease.holder.split('_').next().unwrap_or_default();
            pods.iter().any(|(pod, _)| pod.meta.name == holder)
        })
    };
    named.or_else(held).map(|(object, lease)| LeaseView::read(object, lease, now))
}

fn election(objects: &Catalogue, pods: &[(&Object, &Pod)], workloads: &BTreeSet<Subject>, lease: Option<&LeaseView>) -> Option<Evidence> {
    let flag = |subject: &Subject, containers: &[Container]| {
        containers.iter().find_map(|container| {
            let (name, value) = ELECTION_FLAGS.iter().find_map(|flag| Some((*flag, container.flag(flag)?)))?;
            (!matches!(value, "false" | "0" | "f"))
                .then(|| Evidence::field(subject, &format!("spec.containers[{}].args", container.name), name))
        })
    };
    pods.iter()
        .find_map(|(object, pod)| flag(&object.subject(), &pod.spec.containers))
        .or_else(|| {
            workloads.iter().find_map(|subject| {
                let (_, workload) = objects.workload(subject)?;
                flag(subject, &workload.template.containers)
            })
        })
        .or_else(|| lease.map(LeaseView::evidence))
}

fn leader(
    objects: &Catalogue,
    pages: &BTreeMap<Subject, Vec<MetricPage>>,
    pods: &[(&Object, &Pod)],
    ready: &[Subject],
    lease: Option<&LeaseView>,
    election: Option<&Evidence>,
) -> Known<(Subject, Vec<Evidence>)> {
    if election.is_none() {
        return unknown("its replicas elect no leader, as far as is seen");
    }
    if let Some(lease) = lease.filter(|lease| lease.held) {
        let holder = pods.iter().find(|(object, _)| object.meta.name == lease.holder_pod());
        return match holder {
            Some((object, _)) => Ok((object.subject(), vec![lease.evidence()])),
            None => unknown(format!("{} is held by {}, which is none of its pods", lease.subject, lease.holder)),
        };
    }
    // The Lease was not seen, or ran out between two looks: readiness passes on the leader alone, and its own gauge says it.
    if let Some((object, pod)) = ready.first().and_then(|pod| objects.pod(pod)) {
        let proof = pod
            .condition("Ready")
            .map(|condition| Evidence::new(&object.subject(), Place::Condition("Ready".into()), condition.shown(), condition.since));
        return Ok((object.subject(), proof.into_iter().chain(lease.map(LeaseView::evidence)).collect()));
    }
    let master = pods.iter().find_map(|(object, _)| {
        let page = pages.get(&object.subject())?.last()?;
        let leads = page
            .page
            .family(MASTER)
            .any(|sample| sample.value() == 1.0 && sample.label("name").is_some_and(|name| name.starts_with("epp-")));
        leads.then(|| (object.subject(), vec![Evidence::new(&object.subject(), Place::Metric(MASTER.into()), "1", Some(page.at))]))
    });
    match (master, lease) {
        (Some(found), None) => Ok(found),
        (_, Some(lease)) if lease.holder.is_empty() => unknown(format!("{} has no holder", lease.subject)),
        (_, Some(lease)) => match lease.expired_s {
            Some(past) => unknown(format!("{} ran out {} ago", lease.subject, time::span(past))),
            None => unknown(format!("{} was never renewed", lease.subject)),
        },
        (None, None) => unknown("none of its pods is Ready, and its Lease was not seen"),
    }
}

/// What shows that no picker answers: its Service has no ready endpoint, its pods are not Ready, its workload asks for none.
fn absent(
    objects: &Catalogue,
    namespace: &str,
    body: &InferencePool,
    pods: &[(&Object, &Pod)],
    ready: &[Subject],
    workloads: &BTreeSet<Subject>,
) -> (Option<Vec<Evidence>>, Option<Timestamp>) {
    let slices: Vec<_> = objects.slices_of(namespace, &body.picker).collect();
    let listed = slices.iter().any(|(_, slice)| slice.endpoints.iter().any(|endpoint| endpoint.ready));
    // Pods decide where both were seen: a slice lags behind them by some time. Without pods the slice is all there is.
    if !ready.is_empty() || (pods.is_empty() && listed) {
        return (None, None);
    }
    let mut proof = Vec::new();
    for subject in workloads {
        if let Some((_, workload)) = objects.workload(subject) {
            if let Ok(replicas) = &workload.replicas {
                proof.push(Evidence::field(subject, "spec.replicas", replicas.to_string()));
            }
            if let Some(ready) = workload.status.ready.or(workload.status.replicas.map(|_| 0)) {
                // A workload that counts Ready pods which were not read is no proof of absence.
                if ready > 0 && pods.is_empty() {
                    return (None, None);
                }
                proof.push(Evidence::field(subject, "status.readyReplicas", ready.to_string()));
            }
        }
    }
    let mut since: Option<Timestamp> = None;
    for (object, pod) in pods.iter().take(4) {
        let Some(condition) = pod.condition("Ready") else { continue };
        since = since.max(condition.since);
        proof.push(
            Evidence::new(&object.subject(), Place::Condition("Ready".into()), condition.shown(), condition.since).of_uid(&object.meta.uid),
        );
    }
    for (object, slice) in &slices {
        let value = match slice.endpoints.len() {
            0 => "no endpoint".to_owned(),
            n => format!("0 of {n} ready"),
        };
        if !listed {
            proof.push(Evidence::field(&object.subject(), "endpoints[].conditions.ready", value));
        }
    }
    ((!proof.is_empty()).then_some(proof), since)
}

/// What a pool's requests meet while its picker is absent.
pub fn meets<'a>(objects: &Catalogue, answers: &'a BTreeMap<Subject, Vec<HttpAnswer>>, pool: &Subject, picker: &Picker) -> Passing<'a> {
    passing(&answers_for(objects, answers, pool), picker.absent_since)
}
