//! READY: it says that it serves, in a way that means it.
//!
//! Owns which word is enough, and how old it may be. `/v1/models` never is: its list is static.

use jiff::Timestamp;

use super::super::case::{Case, Voice};
use super::super::http::{self, Got};
use super::super::logs::Phase;
use super::super::sleep;
use super::Ruling;
use crate::model::engine::{EngineKind, HttpAnswer};
use crate::model::state::EngineState;
use crate::model::{Evidence, Fact, Place, time};

/// Seconds for which a page alone can say that the engine serves.
const PAGE_FRESH_S: i64 = 120;
/// Seconds for which an answer says anything of now.
const ANSWER_FRESH_S: i64 = 600;

/// It says that it serves, in a way that means it.
pub(super) fn rule(case: &Case<'_>) -> Option<Ruling> {
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
    let number = |fact: Option<&Fact<f64>>| fact.map(|fact| fact.value);
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
fn became_ready(case: &Case<'_>) -> Option<Timestamp> {
    if let Some(at) = case.log().and_then(|log| log.reached.get(&Phase::Serving)?.time()) {
        return Some(at);
    }
    first_good(case).map(|answer| answer.at)
}

/// The first good health answer that follows a failed one.
pub(in crate::engines) fn first_good<'a>(case: &Case<'a>) -> Option<&'a HttpAnswer> {
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
