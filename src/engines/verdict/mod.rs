//! The state of an engine: rulings in a fixed order, the first that applies decides.
//!
//! Owns the order and each ruling's sentence. READY is said only where the engine says it in a way that means it. Must not mix in
//! what Kubernetes believes; a pod's readiness serves only to know that an engine had been up before.

mod dead;
mod loading;
mod ready;
mod stalled;

pub(super) use ready::first_good;

use jiff::Timestamp;

use super::case::{Case, Voice};
use super::drain::drain_promise;
use super::http;
use super::logs::Phase;
use super::sleep;
use crate::model::engine::EngineKind;
use crate::model::object::pod::ContainerState;
use crate::model::state::EngineState;
use crate::model::{Evidence, Place, Unknown};

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
        .or_else(|| dead::rule(case))
        .or_else(|| stalled::rule(case))
        .or_else(|| ready::rule(case))
        .or_else(|| loading::rule(case))
        .unwrap_or_else(|| nothing(case));
    stalled::with_ranks(case, ruling)
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
                return Some(loading::downloading(log));
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
