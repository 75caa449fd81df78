//! Building the snapshot: the order in which facts are folded.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;

use super::counts::{Wanted, count, wanted, workload};
use super::durations::{Durations, expect, key_of, learn};
use super::facts::Facts;
use super::judge::{PodCase, judge};
use super::listing::{Listings, pod_ready};
use super::{WorkloadView, World, climb::climb, groups::group, router::routers, sets::sets, views::views};
use crate::engines::{self, MetricPage, Observed};
use crate::model::engine::{ContainerLog, EngineKind, EngineReport, HttpAnswer};
use crate::model::object::{Catalogue, Workload, WorkloadKind};
use crate::model::service::{Claim, ModelService, Replica, ReplicaClaim, Role, ServiceId};
use crate::model::state::WorkloadState;
use crate::model::unknown::unknown;
use crate::model::{Evidence, Known, Subject, Unknown};
use crate::systems;

/// Most pages and answers kept of one subject; the newest stay.
const MAX_HISTORY: usize = 64;

impl World {
    /// The snapshot of these facts at `now`. `source` is `bundle` or `cluster`.
    pub fn build(facts: Facts, source: &'static str, now: Timestamp) -> Self {
        let objects = Catalogue::new(facts.objects.into_iter().map(Arc::new));
        let all_answers = facts.answers;
        let views = views(&objects, &all_answers);
        let answers = by_subject(all_answers, |answer| (answer.target.clone(), answer.at));
        let pages = by_subject(facts.pages, |page| (page.subject.clone(), page.at));
        let exporters = by_subject(facts.exporters, |page| (page.subject.clone(), page.at));
        let mut logs: BTreeMap<Subject, Vec<ContainerLog>> = BTreeMap::new();
        for log in facts.logs {
            logs.entry(log.pod.clone()).or_default().push(log);
        }
        let mut history: BTreeMap<Subject, Vec<super::facts::Change>> = BTreeMap::new();
        for change in facts.history {
            history.entry(change.object.subject()).or_default().push(change);
        }
        let claims = systems::claims(&objects);
        let pickers = super::epp::pickers(&objects, &pages, now);
        let routers = routers(&objects, &pickers, &pages);
        let scaling = super::scaling::scaling(&objects);
        let claimed = Claimed::new(&claims);
        let engines = engine_reports(&objects, &claimed, &answers, &pages, &logs, now);
        let prompts = super::prompts::sources(&pages);
        let mut pages = pages;
        for (subject, list) in &mut pages {
            // What an engine's older pages tell is in its report by now; of a router's the last two show what moves.
            let keep = if engines.contains_key(subject) { 1 } else { 2 };
            list.drain(..list.len().saturating_sub(keep));
        }
        let listings = Listings::new(&objects, &claims, &routers, &pickers, &answers);
        let with_engine: BTreeSet<Subject> = claimed.pods.keys().cloned().collect();
        let fronts = listings.fronts().map(|front| (front.clone(), listings.front(front, &with_engine))).collect();

        let mut replicas = judge_pods(&objects, &claimed, &engines, &listings, now);
        for claim in claims.iter().flat_map(|claim| &claim.roles).flat_map(|role| &role.replicas) {
            if (claim.pods.len() > 1 || claim.pods.first() != Some(&claim.subject))
                && let Some(group) = group(&objects, claim, &replicas)
            {
                replicas.insert(claim.subject.clone(), group);
            }
        }
        let mut durations = Durations::from_learnt(&facts.durations);
        expectations(&objects, &claims, &mut replicas, &mut durations, now);
        let mut workloads = count_workloads(&objects, &claimed, &replicas, now);
        super::standby::correct(&objects, &pickers, &mut replicas, &mut workloads);
        let gpu = super::gpu::Gpus::read(&objects, &exporters, &replicas, &views, now);
        let services = count_services(&objects, claims, &replicas, &workloads, now);
        let sets = sets(&objects, &workloads);
        let views_of_sets: Vec<_> =
            sets.iter().map(|(subject, set)| (subject.clone(), super::sets::view(subject, set, &workloads, &replicas))).collect();
        workloads.extend(views_of_sets);
        workloads.extend(super::named::only_named(&objects, &replicas));
        Self {
            now,
            source,
            objects,
            services,
            replicas,
            engines,
            workloads,
            sets,
            fronts,
            routers,
            pickers,
            scaling,
            views,
            answers,
            pages,
            exporters,
            prompts,
            gpu,
            logs,
            history,
            durations,
            problems: facts.problems,
        }
    }
}

fn by_subject<T>(items: Vec<T>, key: impl Fn(&T) -> (Subject, Timestamp)) -> BTreeMap<Subject, Vec<T>> {
    let mut map: BTreeMap<Subject, Vec<T>> = BTreeMap::new();
    for item in items {
        map.entry(key(&item).0).or_default().push(item);
    }
    for list in map.values_mut() {
        list.sort_by_key(|item| key(item).1);
        if list.len() > MAX_HISTORY {
            list.drain(..list.len() - MAX_HISTORY);
        }
    }
    map
}

/// Who claims which pod.
struct Claimed<'a> {
    pods: BTreeMap<Subject, (&'a ServiceId, &'a ReplicaClaim)>,
    /// Replica claims by workload.
    by_workload: BTreeMap<Subject, Vec<&'a ReplicaClaim>>,
}

impl<'a> Claimed<'a> {
    fn new(claims: &'a [Claim]) -> Self {
        let mut pods = BTreeMap::new();
        let mut by_workload: BTreeMap<Subject, Vec<&ReplicaClaim>> = BTreeMap::new();
        for claim in claims {
            for replica in claim.roles.iter().flat_map(|role| &role.replicas) {
                for pod in &replica.pods {
                    pods.insert(pod.clone(), (&claim.id, replica));
                }
                if let Some(workload) = &replica.workload {
                    by_workload.entry(workload.clone()).or_default().push(replica);
                }
            }
        }
        Self { pods, by_workload }
    }

    fn engine(&self, pod: &Subject) -> Known<(EngineKind, Evidence)> {
        match self.pods.get(pod) {
            Some((_, claim)) => claim.engine.clone(),
            None => unknown("nothing tells which engine it runs"),
        }
    }
}

/// Reports of every engine: of claimed leaders, of whatever has an engine's page or log, and of pages that belong to no pod.
fn engine_reports(
    objects: &Catalogue,
    claimed: &Claimed,
    answers: &BTreeMap<Subject, Vec<HttpAnswer>>,
    pages: &BTreeMap<Subject, Vec<MetricPage>>,
    logs: &BTreeMap<Subject, Vec<ContainerLog>>,
    now: Timestamp,
) -> BTreeMap<Subject, EngineReport> {
    let mut subjects: BTreeSet<Subject> =
        claimed.pods.iter().filter(|(pod, (_, claim))| claim.pods.first() == Some(pod)).map(|(pod, _)| pod.clone()).collect();
    let engine_page = |list: &[MetricPage]| list.iter().any(|page| engines::kind_of_page(&page.page).is_some());
    subjects
        .extend(pages.iter().filter(|(subject, list)| subject.kind() == "engine" || engine_page(list)).map(|(subject, _)| subject.clone()));
    // A pod that no object shows but that was asked is taken for the engine that whoever asked took it for.
    let unseen = |subject: &Subject| matches!(subject.kind(), "pod" | "engine") && objects.get(subject).is_none();
    subjects.extend(answers.keys().chain(logs.keys()).chain(pages.keys()).filter(|subject| unseen(subject)).cloned());
    subjects
        .into_iter()
        .map(|subject| {
            let body = objects.pod(&subject);
            let name = claimed.pods.get(&subject).and_then(|(_, claim)| claim.container.clone());
            let container = body.and_then(|(_, pod)| {
                let mut all = pod.spec.containers.iter().chain(&pod.spec.init_containers);
                match &name {
                    Some(name) => all.find(|container| container.name == *name),
                    None => pod.spec.containers.first(),
                }
            });
            let report = engines::report(&Observed {
                subject: &subject,
                kind: claimed.engine(&subject),
                container,
                status: body.and_then(|(_, pod)| pod.container(&container?.name)),
                deleted_at: body.and_then(|(object, _)| object.meta.deleted_at()),
                answers: answers.get(&subject).map_or(&[], Vec::as_slice),
                pages: pages.get(&subject).map_or(&[], Vec::as_slice),
                logs: logs.get(&subject).map_or(&[], Vec::as_slice),
                now,
            });
            (subject, report)
        })
        .collect()
}

fn judge_pods(
    objects: &Catalogue,
    claimed: &Claimed,
    engines: &BTreeMap<Subject, EngineReport>,
    listings: &Listings,
    now: Timestamp,
) -> BTreeMap<Subject, Replica> {
    let mut replicas = BTreeMap::new();
    for (object, pod) in objects.pods() {
        let subject = object.subject();
        let claim = claimed.pods.get(&subject);
        let listing = listings.listing(object, pod);
        let ready = pod_ready(object, pod);
        let engine = engines.get(&subject);
        let case = PodCase {
            objects,
            object,
            pod,
            engine_kind: engine.and_then(|report| report.kind.clone().ok()),
            container: claim.and_then(|(_, claim)| claim.container.as_deref()),
            engine,
            listing: &listing,
            ready: &ready,
            now,
        };
        let verdict = judge(&case);
        let ladder = climb(&case, &verdict);
        replicas.insert(
            subject.clone(),
            Replica {
                pods: vec![subject.clone()],
                workload: claim.and_then(|(_, claim)| claim.workload.clone()).or_else(|| systems::owners::workload_of(objects, object)),
                service: claim.map(|(id, _)| (*id).clone()),
                state: verdict.state,
                why: verdict.why,
                evidence: verdict.evidence,
                since: verdict.since,
                ladder,
                engine: engine.cloned().ok_or_else(|| Unknown::because("it runs no engine that is known")),
                listing,
                pod_ready: ready,
                gpus: pod.spec.gpus(),
                eta_s: unknown("nothing was learnt yet"),
                slower_than_usual: None,
                subject,
            },
        );
    }
    // Engines of pods that no object shows: their own word is all there is.
    for (subject, report) in engines.iter().filter(|(subject, _)| subject.kind() == "pod") {
        if !replicas.contains_key(subject) {
            replicas.insert(subject.clone(), unseen(subject, report));
        }
    }
    replicas
}

/// A pod of which only answers, pages or logs were seen.
fn unseen(subject: &Subject, report: &EngineReport) -> Replica {
    use crate::model::state::{EngineState, ReplicaState};
    let state = match &report.state {
        EngineState::Starting => ReplicaState::Starting,
        EngineState::Downloading => ReplicaState::Downloading,
        EngineState::Loading => ReplicaState::Loading,
        EngineState::Warming => ReplicaState::Warming,
        EngineState::Ready => ReplicaState::EngineReady,
        EngineState::Paused => ReplicaState::Paused,
        EngineState::Stalled => ReplicaState::Stalled,
        EngineState::Draining => ReplicaState::Draining,
        EngineState::Sleeping(_) => ReplicaState::Sleeping,
        EngineState::Waking => ReplicaState::Waking,
        EngineState::Dead => ReplicaState::Dead,
        EngineState::Unknown(_) => ReplicaState::Unknown,
    };
    let why = "its pod object was not read";
    Replica {
        subject: subject.clone(),
        pods: vec![subject.clone()],
        workload: None,
        service: None,
        state,
        why: vec![report.why.clone(), format!("{why}: whether Kubernetes calls it Ready is not known")],
        evidence: report.evidence.clone(),
        since: report.since,
        ladder: crate::model::ladder::Ladder::blank(),
        engine: Ok(report.clone()),
        listing: crate::model::service::Listing {
            listed: unknown(why),
            routed: unknown(why),
            fronts: Vec::new(),
            evidence: Vec::new(),
            why: why.into(),
        },
        pod_ready: unknown(why),
        gpus: 0,
        eta_s: unknown(why),
        slower_than_usual: None,
    }
}

fn expectations(
    objects: &Catalogue,
    claims: &[Claim],
    replicas: &mut BTreeMap<Subject, Replica>,
    durations: &mut Durations,
    now: Timestamp,
) {
    let mut keys = Vec::new();
    for claim in claims {
        for of in claim.roles.iter().flat_map(|role| &role.replicas) {
            for subject in std::iter::once(&of.subject).chain(&of.pods) {
                let Some(replica) = replicas.get(subject) else { continue };
                let Some(key) = key_of(objects, &claim.id.name, replica, of) else { continue };
                let restarts = objects.pod(subject).map_or(0, |(_, pod)| pod.restarts());
                if subject.kind() == "pod" {
                    learn(durations, &key, replica, restarts);
                }
                keys.push((subject.clone(), key));
            }
        }
    }
    for (subject, key) in keys {
        if let Some(replica) = replicas.get_mut(&subject) {
            expect(durations, &key, replica, now);
        }
    }
}

/// Every workload that makes pods of its own; ReplicaSets too, since a rollout is told by them.
fn count_workloads(
    objects: &Catalogue,
    claimed: &Claimed,
    replicas: &BTreeMap<Subject, Replica>,
    now: Timestamp,
) -> BTreeMap<Subject, WorkloadView> {
    let mut pods_of: BTreeMap<&Subject, Vec<&Replica>> = BTreeMap::new();
    for replica in replicas.values().filter(|replica| replica.subject.kind() == "pod") {
        if let Some(workload) = &replica.workload {
            pods_of.entry(workload).or_default().push(replica);
        }
    }
    let autoscalers = objects.autoscalers();
    let mut out = BTreeMap::new();
    for (object, body) in objects.workloads() {
        let subject = object.subject();
        let of: Vec<&Replica> = match (claimed.by_workload.get(&subject), body.kind) {
            (Some(claims), _) => claims.iter().filter_map(|claim| replicas.get(&claim.subject)).collect(),
            (None, WorkloadKind::ReplicaSet) => objects.owned_by(&subject).iter().filter_map(|pod| replicas.get(pod)).collect(),
            (None, _) => pods_of.get(&subject).cloned().unwrap_or_default(),
        };
        let (of, left) = super::ended::set_apart(objects, of);
        let lacking = lacking(body, of.is_empty() && left.pods.is_empty());
        let funnel = count(
            &of,
            wanted(objects, autoscalers.get(&subject).map_or(&[], Vec::as_slice), body),
            body.replicas.clone(),
            lacking.as_ref(),
        );
        out.insert(subject.clone(), workload(objects, object, body, &of, left, funnel, now));
    }
    out
}

/// Set when the workload's status counts replicas and none of them was read.
fn lacking(body: &Workload, none: bool) -> Option<Unknown> {
    match body.status.replicas {
        Some(n) if n > 0 && none => Some(Unknown::because(format!("its status counts {n} replicas, and none of their pods was read"))),
        None if none && body.replicas != Ok(0) => Some(Unknown::because("none of its pods was read, and its status does not count them")),
        _ => None,
    }
}

fn count_services(
    objects: &Catalogue,
    claims: Vec<Claim>,
    replicas: &BTreeMap<Subject, Replica>,
    workloads: &BTreeMap<Subject, WorkloadView>,
    now: Timestamp,
) -> BTreeMap<ServiceId, ModelService> {
    claims
        .into_iter()
        .map(|claim| {
            let roles: Vec<Role> = claim
                .roles
                .iter()
                .map(|role| {
                    let of: Vec<&Replica> = role.replicas.iter().filter_map(|claim| replicas.get(&claim.subject)).collect();
                    let seen: Vec<(&Subject, &WorkloadView)> =
                        role.workloads.iter().filter_map(|workload| workloads.get_key_value(workload)).collect();
                    let (of, left) = super::ended::set_apart(objects, of);
                    self::role(role, &of, left, &seen, now)
                })
                .collect();
            let state = overall(&roles);
            (claim.id.clone(), ModelService { claim, roles, state })
        })
        .collect()
}

fn role(
    claim: &crate::model::service::RoleClaim,
    replicas: &[&Replica],
    left: super::ended::LeftOver,
    seen: &[(&Subject, &WorkloadView)],
    now: Timestamp,
) -> Role {
    let workloads: Vec<&WorkloadView> = seen.iter().map(|(_, view)| *view).collect();
    let no_workload = || unknown("no workload of it was read");
    let sum = |read: &dyn Fn(&WorkloadView) -> Known<u32>| -> Known<u32> {
        if workloads.is_empty() {
            return no_workload();
        }
        workloads.iter().try_fold(0u32, |sum, workload| Ok(sum.saturating_add(read(workload)?)))
    };
    let by: BTreeSet<&str> = workloads.iter().map(|workload| workload.funnel.wanted_by.as_str()).collect();
    let by: Vec<&str> = by.into_iter().collect();
    let lacking = workloads.iter().find_map(|workload| workload.funnel.existing.as_ref().err());
    let wanted = Wanted { count: sum(&|workload| workload.funnel.wanted.clone()), by: by.join(", ") };
    let funnel = count(replicas, wanted, sum(&|workload| workload.funnel.asked.clone()), lacking);
    let mut why: Vec<String> = Vec::new();
    let proof = super::proven::proven(replicas, lacking, now);
    let state = match workloads.as_slice() {
        [] => {
            let serving = replicas.iter().filter(|replica| replica.state.serves()).count();
            why.push(format!("{serving} of {} seen serve; no workload says how many are wanted", replicas.len()));
            match (serving, replicas.len()) {
                (0, _) => WorkloadState::Down,
                (n, all) if n < all => WorkloadState::Degraded,
                _ => WorkloadState::Serving,
            }
        }
        [one] => {
            why.extend(one.why.iter().cloned());
            one.state
        }
        several => {
            // Two workloads of one role are two versions of the same thing: the sum is what a person asks for, then who lacks what.
            if let (Ok(serving), Ok(wanted)) = (&funnel.serving, &funnel.wanted) {
                why.push(format!("{serving} of {wanted} serve{}", if *serving == 1 { "s" } else { "" }));
            }
            why.extend(super::counts::shortage(replicas));
            why.extend(proof.sentence());
            why.extend(left.sentence());
            for (subject, view) in seen {
                if !matches!(view.state, WorkloadState::Serving | WorkloadState::ScaledToZero) {
                    why.extend(view.why.first().map(|first| format!("{}: {first}", subject.name())));
                }
            }
            worst(several.iter().map(|workload| workload.state))
        }
    };
    Role {
        kind: claim.kind.clone(),
        workloads: claim.workloads.clone(),
        replicas: replicas.iter().map(|replica| replica.subject.clone()).collect(),
        left_over: left.pods,
        proven: proof.proven,
        funnel,
        state,
        why,
    }
}

/// The state of a whole from the states of its parts: one that serves nothing is down only if all are.
fn worst(states: impl Iterator<Item = WorkloadState>) -> WorkloadState {
    let states: Vec<WorkloadState> = states.filter(|state| *state != WorkloadState::ScaledToZero).collect();
    let all = |state: WorkloadState| !states.is_empty() && states.iter().all(|s| *s == state);
    let any = |state: WorkloadState| states.contains(&state);
    if states.is_empty() {
        WorkloadState::ScaledToZero
    } else if all(WorkloadState::Down) {
        WorkloadState::Down
    } else if any(WorkloadState::Blocked) {
        WorkloadState::Blocked
    } else if any(WorkloadState::FailedUpdate) {
        WorkloadState::FailedUpdate
    } else if any(WorkloadState::WaitingPromotion) {
        WorkloadState::WaitingPromotion
    } else if any(WorkloadState::RollingOut) {
        WorkloadState::RollingOut
    } else if any(WorkloadState::Degraded) || any(WorkloadState::Down) {
        WorkloadState::Degraded
    } else if any(WorkloadState::Unknown) {
        WorkloadState::Unknown
    } else {
        WorkloadState::Serving
    }
}

/// The state of a model service: a role that is down takes the whole down, since each role is needed.
fn overall(roles: &[Role]) -> WorkloadState {
    match roles.iter().find(|role| role.state == WorkloadState::Down) {
        Some(_) => WorkloadState::Down,
        None => worst(roles.iter().map(|role| role.state)),
    }
}
