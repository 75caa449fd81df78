//! The state of an engine: rulings in a fixed order, the first that applies decides.
//!
//! Owns the order and each ruling's sentence. READY is said only where the engine says it in a way that means it. Must not mix in
//! what Kubernetes believes; a pod's readiness serves only to know that an engine had been up before.

use jiff::Timestamp;

use super::case::{Case, Voice};
use super::drain::drain_promise;
use super::http::{self, Got};
use super::logs::{LogReading, Phase};
use super::sleep;
use crate::model::engine::{EngineKind, HttpAnswer};
use crate::model::object::pod::ContainerState;
use crate::model::state::EngineState;
use crate::model::{Evidence, Place, Unknown, time};

/// Seconds for which a page alone can say that the engine serves.
const PAGE_FRESH_S: i64 = 120;
/// Seconds for which an answer says anything of now.
const ANSWER_FRESH_S: i64 = 600;

/// A decision with its proof.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Ruling {
    pub(super) state: EngineState,
    pub(super) why: String,
    pub(super) evidence: Vec<Evidence>,
    pub(super) since: Option<Timestamp>,
}

impl Ruling {
    pub(super) fn new(state: EngineState, why: impl Into<String>, evidence: Vec<Evidence>) -> Self {
        Self { state, why: why.into(), evidence, since: None }
    }

    pub(super) fn since(mut self, since: Option<Timestamp>) -> Self {
        self.since = since;
        self
    }

    fn unknown(why: impl Into<String>, evidence: Vec<Evidence>) -> Self {
        let why = why.into();
        Self::new(EngineState::Unknown(Unknown::because(why.clone())), why, evidence)
    }
}

/// Decides.
pub(super) fn decide(case: &Case<'_>) -> Ruling {
    let ruling = not_running(case)
        .or_else(|| sleep::rule(case))
        .or_else(|| draining(case))
        .or_else(|| dead(case))
        .or_else(|| stalled(case))
        .or_else(|| ready(case))
        .or_else(|| loading(case))
        .unwrap_or_else(|| nothing(case));
    with_stalled_ranks(case, ruling)
}

/// The container does not run: what was answered before says nothing of now.
fn not_running(case: &Case<'_>) -> Option<Ruling> {
    let status = case.observed.status?;
    let field = |what: &str, value: String| {
        vec![Evidence::field(case.observed.subject, &format!("status.containerStatuses[{}].state.{what}", status.name), value)]
    };
    match &status.state {
        ContainerState::Terminated(end) => Some(
            Ruling::new(EngineState::Dead, format!("its container has ended: {}", end.shown()), field("terminated", end.shown()))
                .since(end.finished),
        ),
        // Without a last run a back-off is about the image, which is not the engine's state.
        ContainerState::Waiting { reason, .. } if status.last.is_some() => {
            let end = status.last.as_ref()?;
            let why = format!("its container does not run ({reason}): the last run ended with {}", end.shown());
            Some(Ruling::new(EngineState::Dead, why, field("waiting", reason.clone())).since(end.finished))
        }
        ContainerState::Waiting { reason, .. } => {
            let reason = if reason.is_empty() { "no reason given" } else { reason };
            let fetching = case.other_logs().find(|log| log.phase == Some(Phase::Downloading));
            if let Some(log) = fetching {
                return Some(downloading(log));
            }
            Some(Ruling::unknown(format!("its container has not started: {reason}"), field("waiting", reason.to_owned())))
        }
        ContainerState::Running { .. } | ContainerState::Unknown => None,
    }
}

/// Told to end, and something finishes its requests.
fn draining(case: &Case<'_>) -> Option<Ruling> {
    let log = case.log();
    let by_log = log.filter(|log| log.phase == Some(Phase::Draining)).and_then(|log| Some((log, log.latest.get(&Phase::Draining)?)));
    let closed = matches!(case.voice, Voice::Closed(_));
    let subject = case.observed.subject;
    let asked = case.observed.deleted_at.map(|at| Evidence::field(subject, "metadata.deletionTimestamp", at.to_string()).seen_at(Some(at)));
    if let Some((log, line)) = by_log
        && !closed
    {
        let left = log.remaining.as_ref().map(|(count, _)| format!(": {count} left")).unwrap_or_default();
        let mut evidence = vec![log.evidence(line)];
        evidence.extend(asked);
        let begun = log.reached.get(&Phase::Draining).and_then(|line| line.time()).or(case.observed.deleted_at);
        return Some(
            Ruling::new(EngineState::Draining, format!("it was told to end and finishes its requests{left}"), evidence).since(begun),
        );
    }
    let asked = asked?;
    let kind = case.engine()?;
    let promise = drain_promise(subject, kind, case.observed.container);
    if !promise.finishes() || closed || log.is_some_and(|log| log.phase == Some(Phase::Stopping)) {
        return None;
    }
    let running = case.load.as_ref().ok().and_then(|load| load.running.as_ref().ok());
    // SGLang's /health is 503 from SIGTERM on; vLLM's stays 200.
    let unwell = match case.voice {
        Voice::Unwell(answer, 503) if kind == EngineKind::Sglang => Some(answer.evidence()),
        _ => None,
    };
    let busy = running.filter(|running| running.value > 0.0);
    (busy.is_some() || unwell.is_some()).then(|| {
        let mut evidence = vec![asked];
        evidence.extend(busy.map(|fact| Evidence::new(subject, Place::Metric(fact.source.clone()), fact.value.to_string(), Some(fact.at))));
        evidence.extend(unwell);
        evidence.extend(promise.evidence().iter().cloned());
        let what = busy.map_or_else(String::new, |fact| format!(": {} still run", fact.value));
        let why = format!("its pod is being deleted and it finishes its requests{what}");
        Ruling::new(EngineState::Draining, why, evidence).since(case.observed.deleted_at)
    })
}

/// It refuses, fails or does not answer although it had been up, or its log says that it failed for good.
fn dead(case: &Case<'_>) -> Option<Ruling> {
    let told_to_end = case.observed.deleted_at.is_some();
    if let Some(log) = case.log()
        && log.phase == Some(Phase::Failed)
        && let Some((failure, line)) = &log.failure
    {
        // A health answer of a later time, or moving tokens, shows that it went on.
        let later = match case.voice {
            Voice::Healthy(answer) => line.at.is_none_or(|at| answer.at > at),
            _ => false,
        };
        if !later {
            let mut evidence = vec![log.evidence(line)];
            evidence.extend(case.voice.answer().map(|answer| answer.evidence()));
            return Some(
                Ruling::new(EngineState::Dead, format!("its log says that it failed: {}", failure.words()), evidence).since(line.time()),
            );
        }
    }
    let answer = match case.voice {
        Voice::Closed(answer) | Voice::Unwell(answer, _) | Voice::Silent(answer) => answer,
        Voice::Healthy(_) | Voice::Open(_) | Voice::NotAsked => return None,
    };
    if case.moved_around(answer.at) || (case.is_follower() && matches!(case.voice, Voice::Closed(_))) {
        return None;
    }
    let was_up = case.had_been_up(Some(answer.at));
    let words = answer.outcome_word();
    let (why, proof) = match case.voice {
        Voice::Closed(_) => {
            let up = was_up?;
            let why = match told_to_end {
                true => "it was told to end, and its port is closed".to_owned(),
                false => format!("its port is closed ({words}) although it had been up"),
            };
            (why, Some(up))
        }
        // vLLM answers 503 only when its core is dead: while it loads the port is closed (measured on 0.32.0).
        Voice::Unwell(_, status) if case.engine() == Some(EngineKind::Vllm) => {
            (format!("{} answers {status}: its engine core is dead", answer.request()), was_up)
        }
        Voice::Unwell(_, status) => (format!("{} answers {status} although it had been up", answer.request()), Some(was_up?)),
        // A page taken after the silence shows that the process lives.
        Voice::Silent(_) if case.pages.last().is_some_and(|page| page.at >= answer.at) => return None,
        _ => (format!("{} gets no answer ({words}) although it had been up", answer.request()), Some(was_up?)),
    };
    let first = answer.evidence();
    let proof = proof.filter(|proof| *proof != first);
    let evidence = [Some(first), proof].into_iter().flatten().collect();
    Some(Ruling::new(EngineState::Dead, why, evidence).since(first_failure(case, answer)))
}

/// The first of the unbroken row of failures that ends with this answer.
fn first_failure(case: &Case<'_>, answer: &HttpAnswer) -> Option<Timestamp> {
    let route = http::route(answer);
    case.answers
        .newest_first(&[route])
        .filter(|other| other.at <= answer.at)
        .take_while(|other| http::got(other) != Got::Status(200))
        .last()
        .map(|first| first.at)
}

/// It has work, and no token moved between two pages at least 20 s apart.
fn stalled(case: &Case<'_>) -> Option<Ruling> {
    let stall = case.movement.stall.as_ref()?;
    let subject = case.pages.last().map_or(case.observed.subject, |page| &page.subject);
    let seconds = stall.seconds();
    let both = |(before, now): (f64, f64)| if before == now { format!("{now} on both scrapes") } else { format!("{before}, then {now}") };
    let mut evidence = vec![
        Evidence::new(subject, Place::Metric(stall.gauges.1.clone()), format!("waiting {}", both(stall.waiting)), Some(stall.until)),
        Evidence::new(subject, Place::Metric(stall.gauges.0.clone()), format!("running {}", both(stall.running)), Some(stall.until)),
    ];
    for (name, value) in &stall.counters {
        evidence.push(Evidence::new(
            subject,
            Place::Metric(name.clone()),
            format!("{value} on both scrapes, {seconds} s apart"),
            Some(stall.until),
        ));
    }
    if let Voice::Healthy(answer) = case.voice {
        evidence.push(answer.evidence());
    }
    let work = match stall.waiting.1 > 0.0 {
        true => format!("{} wait and {} run", stall.waiting.1, stall.running.1),
        false => format!("{} run", stall.running.1),
    };
    let lives = if matches!(case.voice, Voice::Healthy(_)) { "it answers its health check, but " } else { "" };
    let why = format!("{lives}{work} and no token was produced for {seconds} s");
    Some(Ruling::new(EngineState::Stalled, why, evidence).since(Some(stall.since)))
}

/// It says that it serves, in a way that means it.
fn ready(case: &Case<'_>) -> Option<Ruling> {
    if case.is_follower() {
        return None;
    }
    if let Voice::Healthy(health) = case.voice
        && let Some(ruling) = no_answer_to_work(case, health)
    {
        return Some(ruling);
    }
    let (answer, proof) = match case.voice {
        Voice::Healthy(answer) => {
            let age = time::seconds_between(answer.at, case.observed.now);
            if age > ANSWER_FRESH_S && case.fresh_page(PAGE_FRESH_S).is_none() {
                return Some(Ruling::unknown(format!("its last answer is {} old", time::span(age)), vec![answer.evidence()]));
            }
            (Some(answer), answer.evidence())
        }
        // Its health check fails while tokens move: it does serve.
        Voice::Unwell(answer, _) | Voice::Silent(answer) | Voice::Closed(answer) if case.moved_around(answer.at) => {
            let mut ruling = Ruling::new(
                EngineState::Ready,
                format!("its tokens move, although {} gives {}", answer.request(), answer.outcome_word()),
                moving(case),
            );
            ruling.evidence.push(answer.evidence());
            return Some(ruling);
        }
        Voice::Unwell(..) | Voice::Closed(_) => return None,
        Voice::Silent(answer) => {
            let page = case.pages.last().filter(|page| page.at >= answer.at)?;
            let page = Evidence::new(&page.subject, Place::Http(format!("GET {}", page.path)), "200", Some(page.at));
            let why = format!("{} gets no answer ({}), although its metrics are answered", answer.request(), answer.outcome_word());
            return Some(Ruling::unknown(why, vec![answer.evidence(), page]));
        }
        // No health answer. The port opens only when all is ready (vLLM), so a fresh page is a word of its own.
        Voice::Open(_) | Voice::NotAsked => {
            let newest = case.pages.last()?;
            let age = time::seconds_between(newest.at, case.observed.now);
            if age > PAGE_FRESH_S {
                let page = Evidence::new(&newest.subject, Place::Http(format!("GET {}", newest.path)), "200", Some(newest.at));
                return Some(Ruling::unknown(format!("its last sample is {} old and nothing else was asked", time::span(age)), vec![page]));
            }
            // SGLang answers before its warm-up request is done.
            if case.engine() == Some(EngineKind::Sglang)
                && case.log().is_some_and(|log| log.phase.is_some_and(|phase| phase < Phase::Serving))
            {
                return None;
            }
            (None, Evidence::new(&newest.subject, Place::Http(format!("GET {}", newest.path)), "200", Some(newest.at)))
        }
    };
    let mut evidence = vec![proof];
    evidence.extend(sleep::awake(case));
    let mut why = match answer {
        Some(answer) => format!("{} answers 200", answer.request()),
        None => "it answers /metrics, which it does only when it is up".to_owned(),
    };
    let load = case.load.as_ref().ok();
    let number = |fact: Option<&crate::model::Fact<f64>>| fact.map(|fact| fact.value);
    let running = load.and_then(|load| number(load.running.as_ref().ok()));
    let waiting = load.and_then(|load| number(load.waiting.as_ref().ok()));
    match (running, waiting, &case.movement.moved) {
        (Some(running), waiting, moved) if running + waiting.unwrap_or(0.0) > 0.0 => match moved {
            Ok(true) => {
                why.push_str(", and its tokens move");
                evidence.extend(moving(case));
            }
            Ok(false) => why.push_str("; it has work, and whether tokens move can not be judged from samples less than 20 s apart"),
            Err(reason) => why.push_str(&format!("; it has work, and whether tokens move is not judged: {reason}")),
        },
        (Some(_), Some(_), _) => why.push_str(", and it has no requests"),
        _ => {}
    }
    Some(Ruling::new(EngineState::Ready, why, evidence).since(became_ready(case)))
}

/// Its health is good, and a request got no answer or an error: asleep, paused or stalled all look like this, so it is not READY.
fn no_answer_to_work(case: &Case<'_>, health: &HttpAnswer) -> Option<Ruling> {
    let work = case.answers.newest(http::WORK)?;
    let failed = matches!(http::got(work), Got::Silent | Got::Status(500 | 502 | 504));
    let together = time::seconds_between(work.at, health.at) <= 60;
    (failed && together && case.movement.moved != Ok(true)).then(|| {
        let why = format!("{} answers 200, but {} gave {}", health.request(), work.request(), work.outcome_word());
        Ruling::unknown(why, vec![work.evidence(), health.evidence()])
    })
}

/// When it became ready: its log says so, or the first good answer after a failed one.
pub(super) fn became_ready(case: &Case<'_>) -> Option<Timestamp> {
    if let Some(at) = case.log().and_then(|log| log.reached.get(&Phase::Serving)?.time()) {
        return Some(at);
    }
    first_good(case).map(|answer| answer.at)
}

/// The first good health answer that follows a failed one.
pub(super) fn first_good<'a>(case: &Case<'a>) -> Option<&'a HttpAnswer> {
    let mut failed = false;
    let mut first = None;
    for answer in
        case.answers.iter().filter(|answer| http::HEALTH.contains(&http::route(answer)) || http::READY.contains(&http::route(answer)))
    {
        match http::got(answer) {
            Got::Status(200) if failed => {
                first = Some(answer);
                failed = false;
            }
            Got::Status(200) | Got::NotItself => {}
            Got::Status(status) if status < 500 => {}
            _ => failed = true,
        }
    }
    first
}

/// Counters that moved, as evidence.
fn moving(case: &Case<'_>) -> Vec<Evidence> {
    let (Some(newest), Ok(load)) = (case.pages.last(), &case.load) else { return Vec::new() };
    [&load.generation_tokens, &load.prompt_tokens]
        .into_iter()
        .filter_map(|fact| fact.as_ref().ok())
        .map(|fact| Evidence::new(&newest.subject, Place::Metric(fact.source.clone()), format!("{}, moving", fact.value), Some(newest.at)))
        .collect()
}

/// On its way up: how far, by its log.
fn loading(case: &Case<'_>) -> Option<Ruling> {
    let answer = case.voice.answer().filter(|_| !matches!(case.voice, Voice::Healthy(_)));
    let add = |mut ruling: Ruling| {
        ruling.evidence.extend(answer.map(|answer| answer.evidence()));
        ruling
    };
    // SGLang's port opens after the weights and graphs; 503 then is its warm-up.
    if let Voice::Unwell(answer, status) = case.voice {
        let body = answer.body().to_ascii_lowercase();
        return Some(match case.engine() {
            Some(EngineKind::Sglang) => {
                let mut evidence = vec![answer.evidence()];
                evidence.extend(newest_line(case));
                let since = case.log().and_then(|log| log.reached.get(&Phase::Warming)?.time());
                Ruling::new(EngineState::Warming, format!("its port is open, {} answers {status}: warm-up", answer.request()), evidence)
                    .since(since)
            }
            _ if body.contains("loading") => {
                Ruling::new(EngineState::Loading, "it answers that it loads the model", vec![answer.evidence()])
            }
            _ => Ruling::new(
                EngineState::Starting,
                format!("{} answers {status}, and it had not been up yet", answer.request()),
                vec![answer.evidence()],
            ),
        });
    }
    if let Some(log) = case.log()
        && let Some(phase) = log.phase
        && let Some(line) = log.latest.get(&phase)
    {
        let since = |phase: Phase| log.reached.get(&phase).and_then(|line| line.time());
        let loading_since = || [Phase::LoadBegin, Phase::Downloading, Phase::Loading].into_iter().filter_map(since).min();
        let say = |state: EngineState, why: &str, since: Option<Timestamp>| {
            Some(add(Ruling::new(state, why, vec![log.evidence(line)]).since(since)))
        };
        match phase {
            Phase::Started => return say(EngineState::Starting, "its process is up, it does not load yet", since(Phase::Started)),
            Phase::Downloading => return Some(add(downloading(log))),
            Phase::LoadBegin | Phase::Downloaded | Phase::Loading => {
                let done = log.newest_of(super::logs::Counted::Shards).and_then(|progress| progress.share);
                let why = done.map_or_else(
                    || "it loads the weights".to_owned(),
                    |share| format!("it loads the weights: {:.0} % of the shards", share * 100.0),
                );
                return say(EngineState::Loading, &why, loading_since());
            }
            Phase::Warming => {
                return say(
                    EngineState::Warming,
                    "its weights are in; it compiles, sizes its cache or captures graphs",
                    since(Phase::Warming),
                );
            }
            Phase::Stopping => return say(EngineState::Dead, "its log says that it has shut down", since(Phase::Stopping)),
            Phase::Serving | Phase::Awake | Phase::Asleep | Phase::Draining | Phase::Failed => {}
        }
    }
    if let Some(log) = case.other_logs().find(|log| log.phase == Some(Phase::Downloading)).filter(|_| case.log().is_none()) {
        return Some(add(downloading(log)));
    }
    if let Voice::Closed(answer) = case.voice
        && !case.is_follower()
    {
        let since = case.observed.status.and_then(|status| status.running_since().flatten());
        let why =
            format!("its port is still closed ({}), which is normal while it loads; no log tells how far it is", answer.outcome_word());
        return Some(Ruling::new(EngineState::Starting, why, vec![answer.evidence()]).since(since));
    }
    None
}

/// The model is being fetched, by this log.
fn downloading(log: &LogReading) -> Ruling {
    let newest = log.newest_of(super::logs::Counted::Download);
    let line = newest.map(|progress| &progress.line).or_else(|| log.latest.get(&Phase::Downloading));
    let done = newest.map(|progress| match progress.share {
        Some(share) => format!(": {:.0} % ({})", share * 100.0, progress.count),
        None => format!(": {}", progress.count),
    });
    let mut why = format!("the model is being fetched{}", done.unwrap_or_default());
    if let Some(stuck) = log.stuck() {
        let seconds = stuck.seconds.map(|seconds| format!(" for {}", time::span(seconds as i64))).unwrap_or_default();
        why.push_str(&format!("; the count stands still{seconds}"));
    }
    let since = log.reached.get(&Phase::Downloading).and_then(|line| line.time());
    Ruling::new(EngineState::Downloading, why, line.map(|line| log.evidence(line)).into_iter().collect()).since(since)
}

/// The newest line of the engine's log that means something.
fn newest_line(case: &Case<'_>) -> Option<Evidence> {
    let log = case.log()?;
    log.latest.get(&log.phase?).map(|line| log.evidence(line))
}

/// Nothing decides.
fn nothing(case: &Case<'_>) -> Ruling {
    let mut evidence: Vec<Evidence> = newest_line(case).into_iter().collect();
    if case.is_follower() {
        evidence.extend(case.voice.answer().map(|answer| answer.evidence()));
        return Ruling::unknown("it is a further rank of its group: its port tells nothing, the first rank answers for it", evidence);
    }
    match case.voice {
        Voice::Open(answer) => {
            evidence.insert(0, answer.evidence());
            let why = match http::route(answer) == "/v1/models" {
                true => format!("only {} answered: the list is static and says nothing of the engine", answer.request()),
                false => format!("only {} answered, which does not tell its health", answer.request()),
            };
            Ruling::unknown(why, evidence)
        }
        Voice::Silent(answer) => {
            evidence.insert(0, answer.evidence());
            Ruling::unknown(format!("{} gets no answer ({})", answer.request(), answer.outcome_word()), evidence)
        }
        _ => {
            let why = match case.phase() {
                Some(phase) if phase >= Phase::Serving => "its log says that it served, and nobody asked it since".to_owned(),
                _ => format!("nobody asked {} and nothing else tells", case.name()),
            };
            Ruling::unknown(why, evidence)
        }
    }
}

/// Ranks that stand still while the engine moves are said whatever the state is.
fn with_stalled_ranks(case: &Case<'_>, mut ruling: Ruling) -> Ruling {
    let subject = case.pages.last().map_or(case.observed.subject, |page| &page.subject);
    for (rank, stall) in case.movement.ranks.iter().take(64) {
        let (waiting, running) = (stall.waiting.1, stall.running.1);
        let has = match (waiting > 0.0, running > 0.0) {
            (true, true) => format!("{waiting} waiting and {running} running"),
            (true, false) => format!("{waiting} waiting"),
            _ => format!("{running} running"),
        };
        let value = format!("engine {rank} has {has} and does not move for {} s", stall.seconds());
        let gauge = if waiting > 0.0 { &stall.gauges.1 } else { &stall.gauges.0 };
        ruling.evidence.push(Evidence::new(
            subject,
            Place::Metric(format!("{gauge}{{engine=\"{rank}\"}}")),
            value.clone(),
            Some(stall.until),
        ));
        ruling.why.push_str(&format!("; {value}"));
    }
    ruling
}
