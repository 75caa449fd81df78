//! Worlds for the tests of the console, made by hand: the views are tested without the reading side.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;

use super::scene::Scene;
use crate::model::engine::{EngineKind, EngineLoad, EngineReport, RankLoad, Stall};
use crate::model::finding::{Code, Finding};
use crate::model::funnel::Funnel;
use crate::model::ladder::{Ladder, Rung, Stage};
use crate::model::service::{Claim, Listing, ModelService, Replica, Role, RoleKind, ServiceId};
use crate::model::state::{EngineState, ReplicaState, WorkloadState};
use crate::model::unknown::unknown;
use crate::model::{Evidence, Fact, Place, Subject, time};
use crate::world::{Facts, InputProblem, World};

pub(crate) fn at(text: &str) -> Timestamp {
    time::instant(text).unwrap()
}

pub(crate) fn now() -> Timestamp {
    at("2026-11-12T10:00:00Z")
}

fn before(seconds: i64) -> Timestamp {
    Timestamp::from_second(now().as_second() - seconds).unwrap()
}

/// A world in which nothing was seen.
pub(crate) fn empty() -> World {
    World::build(Facts::default(), "bundle", now())
}

fn evidence(subject: &Subject, place: Place, value: &str) -> Evidence {
    Evidence::new(subject, place, value, Some(before(5)))
}

pub(crate) fn load(running: f64, waiting: f64, kv: f64) -> EngineLoad {
    let fact = |value| Ok(Fact::new(value, "vllm:num_requests_running", before(12)));
    EngineLoad {
        at: before(12),
        ranks: BTreeMap::from([(
            "0".into(),
            RankLoad { running: Some(running), waiting: Some(waiting), swapped: None, kv_usage: Some(kv) },
        )]),
        running: fact(running),
        waiting: fact(waiting),
        swapped: None,
        kv_usage: fact(kv),
        kv_usage_max: fact(kv),
        prompt_tokens: unknown("no sample yet"),
        generation_tokens: unknown("no sample yet"),
        finished: BTreeMap::new(),
        ttft: None,
        inter_token: None,
        e2e: None,
        rates: BTreeMap::new(),
        lora: None,
        sleep: None,
        unread: 0,
        models: Vec::new(),
    }
}

pub(crate) fn report(subject: &Subject, state: EngineState, why: &str, load: crate::model::Known<EngineLoad>) -> EngineReport {
    EngineReport {
        kind: Ok(EngineKind::Vllm),
        version: Ok(Fact::new("0.19.0".into(), "GET :8000/version", before(12))),
        state,
        evidence: vec![evidence(subject, Place::Http("GET :8000/health".into()), "200")],
        why: why.into(),
        since: Some(before(60)),
        load,
        progress: None,
        eta_s: None,
        stages: BTreeMap::new(),
        sleep_routes: unknown("never asked"),
        movement: unknown("one page only"),
        stall: None,
        stalled_ranks: BTreeMap::new(),
        model_name: None,
    }
}

/// A ladder up to `top`, the stages reached some seconds ago in turn.
pub(crate) fn ladder(subject: &Subject, top: Stage, ago: &[i64]) -> Ladder {
    let mut ladder = Ladder::blank();
    let mut ago = ago.iter();
    for stage in Stage::ALL {
        ladder.set(
            stage,
            match stage {
                Stage::Admitted => Rung::NotApplicable("no gate".into()),
                _ if stage <= top => Rung::Reached {
                    at: ago.next().map_or_else(|| unknown("only that it is so"), |s| Ok(before(*s))),
                    evidence: evidence(subject, Place::Condition(stage.word().into()), "True"),
                },
                _ => Rung::NotReached { why: String::new(), evidence: None },
            },
        );
    }
    ladder
}

pub(crate) fn replica(id: &ServiceId, name: &str, state: ReplicaState) -> Replica {
    let subject = Subject::pod(&id.namespace, name);
    Replica {
        pods: vec![subject.clone()],
        workload: Some(Subject::object("Deployment", &id.namespace, &id.name)),
        service: Some(id.clone()),
        state,
        why: Vec::new(),
        evidence: vec![evidence(&subject, Place::Condition("Ready".into()), "True")],
        since: Some(before(3600)),
        ladder: ladder(&subject, Stage::Listed, &[3900, 3898, 3860, 3850, 3840, 3700, 3610, 3605, 3600]),
        engine: Ok(report(&subject, EngineState::Ready, "answers and moves", Ok(load(2.0, 0.0, 0.42)))),
        listing: Listing {
            listed: Ok(true),
            routed: unknown("a plain Service has no router"),
            fronts: Vec::new(),
            evidence: Vec::new(),
            why: "in EndpointSlice qwen-a-x7".into(),
        },
        pod_ready: Ok(true),
        gpus: 1,
        eta_s: unknown("it serves"),
        slower_than_usual: None,
        subject,
    }
}

pub(crate) fn funnel(counts: [u32; 7], serving: u32, by: &str) -> Funnel {
    let mut funnel = Funnel::unknown("a plain Service has no router");
    let [wanted, asked, existing, scheduled, loaded, ready, listed] = counts;
    (funnel.wanted, funnel.asked, funnel.existing, funnel.scheduled) = (Ok(wanted), Ok(asked), Ok(existing), Ok(scheduled));
    (funnel.started, funnel.loaded, funnel.pod_ready, funnel.listed) = (Ok(scheduled), Ok(loaded), Ok(ready), Ok(listed));
    (funnel.serving, funnel.sleeping, funnel.draining) = (Ok(serving), Ok(0), Ok(0));
    (funnel.unschedulable, funnel.pulling, funnel.loading) = (Ok(existing - scheduled), Ok(0), Ok(scheduled - loaded));
    funnel.wanted_by = by.into();
    funnel
}

pub(crate) fn id(namespace: &str, name: &str) -> ServiceId {
    ServiceId { namespace: namespace.into(), name: name.into(), system: "plain" }
}

pub(crate) fn add(world: &mut World, id: &ServiceId, state: WorkloadState, roles: Vec<(RoleKind, Funnel, WorkloadState, Vec<Replica>)>) {
    let workload = Subject::object("Deployment", &id.namespace, &id.name);
    let mut judged = Vec::new();
    for (kind, funnel, state, replicas) in roles {
        judged.push(Role {
            kind,
            workloads: vec![workload.clone()],
            replicas: replicas.iter().map(|replica| replica.subject.clone()).collect(),
            left_over: Vec::new(),
            proven: funnel.serving.clone(),
            funnel,
            state,
            why: Vec::new(),
        });
        for replica in replicas {
            if let Ok(report) = &replica.engine {
                world.engines.insert(replica.subject.clone(), report.clone());
            }
            world.replicas.insert(replica.subject.clone(), replica);
        }
    }
    let claim = Claim {
        id: id.clone(),
        found_by: Evidence::field(&Subject::object("Service", &id.namespace, &id.name), "spec.selector", "app=qwen-a"),
        roles: Vec::new(),
        fronts: vec![Subject::object("Service", &id.namespace, &id.name)],
        autoscalers: vec![Subject::object("HorizontalPodAutoscaler", &id.namespace, &id.name)],
        routers: Vec::new(),
    };
    world.services.insert(id.clone(), ModelService { claim, roles: judged, state });
}

/// One service of two replicas, one of them stalled; one of two roles, short of nodes and loading; an engine of nobody.
pub(crate) fn incident() -> (World, Vec<Finding>) {
    let mut world = empty();
    let qwen = id("serving", "qwen-a");
    let good = replica(&qwen, "qwen-a-7c9d5b6f44-9dl4m", ReplicaState::Serving);
    let mut bad = replica(&qwen, "qwen-a-7c9d5b6f44-2xkqv", ReplicaState::Stalled);
    bad.why = vec!["engine answers /health, but 3 requests wait and no token was produced for 60 s".into()];
    bad.since = Some(before(60));
    bad.engine = Ok(report(&bad.subject, EngineState::Stalled, "3 requests wait, no token for 60 s", Ok(load(0.0, 3.0, 0.17))));
    let stalled = bad.subject.clone();
    add(
        &mut world,
        &qwen,
        WorkloadState::Degraded,
        vec![(RoleKind::Aggregate, funnel([2, 2, 2, 2, 2, 2, 2], 1, "spec.replicas"), WorkloadState::Degraded, vec![bad, good])],
    );

    let deep = id("serving", "deepseek-v4");
    let mut loading = replica(&deep, "deepseek-v4-decode-1", ReplicaState::Loading);
    loading.pod_ready = Ok(false);
    loading.ladder = ladder(&loading.subject, Stage::Loading, &[700, 690, 640, 630, 600]);
    loading.engine = Ok(report(&loading.subject, EngineState::Loading, "shard 12 of 40", unknown("no page: the port is closed")));
    if let Ok(report) = &mut loading.engine {
        report.progress = Some(Fact::new(0.3, "log of vllm", before(4)));
    }
    loading.listing.listed = Ok(false);
    loading.listing.why = "not Ready, so no endpoint".into();
    loading.eta_s = Ok(240.0);
    loading.slower_than_usual = Some("loading takes 10 min, usually 4 min".into());
    loading.gpus = 8;
    let mut wide = replica(&deep, "deepseek-v4-decode-0", ReplicaState::Serving);
    let ranks = (0..4).map(|rank| {
        let n = f64::from(rank);
        (rank.to_string(), RankLoad { running: Some(n), waiting: Some(0.0), swapped: None, kv_usage: Some(0.2 * n) })
    });
    let mut spread = load(6.0, 0.0, 0.3);
    spread.ranks = ranks.collect();
    let mut four = report(&wide.subject, EngineState::Ready, "answers and moves", Ok(spread));
    let stall = Stall {
        since: before(72),
        until: before(12),
        running: (1.0, 1.0),
        waiting: (0.0, 0.0),
        counters: Vec::new(),
        gauges: Default::default(),
    };
    four.stalled_ranks.insert("1".into(), stall);
    wide.engine = Ok(four);
    let mut asleep = replica(&deep, "deepseek-v4-prefill-0", ReplicaState::Sleeping);
    asleep.engine = Ok(report(&asleep.subject, EngineState::Sleeping(Some(1)), "is_sleeping answers true", Ok(load(0.0, 0.0, 0.0))));
    add(
        &mut world,
        &deep,
        WorkloadState::Degraded,
        vec![
            (RoleKind::Prefill, funnel([1, 1, 1, 1, 1, 1, 1], 0, "spec.replicas"), WorkloadState::Down, vec![asleep]),
            (
                RoleKind::Decode,
                funnel([12, 12, 12, 9, 8, 7, 7], 7, "hpa/serving/deepseek-v4"),
                WorkloadState::Degraded,
                vec![wide, loading],
            ),
        ],
    );

    let idle = id("batch", "tiny");
    add(
        &mut world,
        &idle,
        WorkloadState::ScaledToZero,
        vec![(RoleKind::Aggregate, Funnel::unknown("spec.replicas is text, not a number"), WorkloadState::Unknown, Vec::new())],
    );
    let old = Subject::engine("old");
    let lone = report(
        &old,
        EngineState::Unknown(crate::model::Unknown::because("one scrape only")),
        "one page, nothing to compare with",
        Ok(load(1.0, 0.0, 0.05)),
    );
    world.engines.insert(old, lone);
    world.problems.push(InputProblem {
        place: "objects.yaml, document 3".into(),
        what: "kind is missing".into(),
        about: Some(Subject::pod("serving", "lost")),
    });

    let findings = vec![
        Finding::new(
            Code::ScaleUpLost,
            &Subject::object("HorizontalPodAutoscaler", "serving", "deepseek-v4"),
            "5 short of 12: 3 wait for GPUs, 1 loads weights (about 4 min left), 1 is loaded and not Ready",
            Evidence::field(&Subject::object("HorizontalPodAutoscaler", "serving", "deepseek-v4"), "status.desiredReplicas", "12"),
        ),
        Finding::new(
            Code::EngineHung,
            &stalled,
            "pod serving/qwen-a-7c9d5b6f44-2xkqv answers /health, but 3 requests wait and no token moved for 60 s",
            evidence(&stalled, Place::Metric("vllm:num_requests_waiting".into()), "3, 60 s apart, vllm:generation_tokens unchanged"),
        )
        .remedy("take the pod out of selection, then delete it; its Deployment makes a new one")
        .not("do not trust /health or the pod's Ready condition here"),
    ];
    (world, findings)
}

/// Text that wants to do harm, of all kinds.
pub(crate) const HOSTILE: [&str; 7] = [
    "\u{1b}]0;owned\u{7}\u{1b}[2J\u{1b}[31mred\u{9b}31m",
    "\u{202e}gnp.exe\u{2066}\u{2069}\u{200f}\u{61c}שלום مرحبا",
    "名前模型服务名前模型服务名前模型服务名前模型服务名前模型服务名前模型服务名前模型服务名前模型服务",
    "👩\u{200d}🚒👍🏽🇩🇪❤\u{fe0f}\u{200b}\u{feff}\u{2060}a\u{300}\u{301}\u{302}\u{303}\u{304}\u{305}",
    "line\r\nbreak\ttab\u{0}\u{85}\u{2028}end\u{e0041}\u{fff9}\u{115f}\u{3164}",
    "ﾞﾟ\u{ad}\u{600}1\u{70f}각\u{1f1e6}",
    "",
];

/// The incident with all of its text replaced by `text`, and with numbers that are none.
pub(crate) fn hostile(text: &str) -> (World, Vec<Finding>, String) {
    let long = format!("{text}{}", "x".repeat(1000));
    let mut world = empty();
    let id = id(&long, text);
    let mut states = Vec::new();
    for (n, state) in ReplicaState::ALL.iter().enumerate() {
        let mut replica = replica(&id, &format!("{text}{n}"), *state);
        replica.why = vec![text.into(), long.clone()];
        replica.slower_than_usual = Some(long.clone());
        replica.eta_s = Ok(if n % 2 == 0 { f64::NAN } else { f64::MAX });
        replica.listing.why = text.into();
        replica.listing.listed = unknown(text);
        replica.pod_ready = unknown(long.as_str());
        replica.gpus = u32::MAX;
        replica.since = Some(if n % 2 == 0 { Timestamp::MIN } else { Timestamp::MAX });
        let mut heavy = load(f64::INFINITY, f64::NAN, -1.0);
        heavy
            .ranks
            .insert(long.clone(), RankLoad { running: Some(f64::MIN), waiting: Some(f64::NAN), swapped: None, kv_usage: Some(1e300) });
        let state = if n % 2 == 0 { EngineState::Unknown(crate::model::Unknown::because(text)) } else { EngineState::Dead };
        replica.engine = Ok(report(&replica.subject, state, text, Ok(heavy)));
        replica.ladder.set(
            Stage::Loading,
            Rung::Reached { at: Ok(Timestamp::MIN), evidence: evidence(&replica.subject, Place::Log(text.into()), &long) },
        );
        replica.ladder.set(Stage::Warming, Rung::Unknown(crate::model::Unknown::because(long.as_str())));
        replica.ladder.set(Stage::Routed, Rung::NotReached { why: long.clone(), evidence: None });
        states.push(replica);
    }
    let mut huge = funnel([u32::MAX, 0, u32::MAX, 0, 0, 0, 0], 0, &long);
    huge.routed = unknown(long.as_str());
    let names = states.iter().map(|replica| replica.subject.clone()).collect::<Vec<_>>();
    add(&mut world, &id, WorkloadState::Blocked, vec![(RoleKind::Other(long.clone()), huge, WorkloadState::WaitingPromotion, states)]);
    let engine = Subject::engine(&long);
    world.engines.insert(engine.clone(), report(&engine, EngineState::Sleeping(None), &long, unknown(text)));
    world.problems.push(InputProblem { place: long.clone(), what: text.into(), about: Some(engine.clone()) });
    let mut finding = Finding::new(Code::EngineHung, &engine, long.as_str(), evidence(&engine, Place::Field(text.into()), &long))
        .remedy(text)
        .not(long.as_str());
    finding.subjects.extend(names);
    finding.evidence.extend((0..20).map(|_| evidence(&engine, Place::Event(long.clone()), text)));
    (world, vec![finding], long)
}

pub(crate) fn scene(world: World, findings: Vec<Finding>) -> Scene {
    Scene::new(Arc::new(world), findings, "B001-engine-core-silent")
}
