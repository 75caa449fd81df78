//! DEAD: it refuses, fails or is silent after it had been up, or its log says that it failed for good.
//!
//! Owns the difference between "not up yet" and "no longer up". Must not call a closed port dead that never was open.

use jiff::Timestamp;

use super::super::case::{Case, Voice};
use super::super::http::{self, Got};
use super::super::logs::Phase;
use super::Ruling;
use crate::model::engine::{EngineKind, HttpAnswer};
use crate::model::state::EngineState;

/// It refuses, fails or does not answer although it had been up, or its log says that it failed for good.
pub(super) fn rule(case: &Case<'_>) -> Option<Ruling> {
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
    // SGLang's /health runs a request through its loop: 503 with work on its pages that stands still is a loop that hangs, while the
    // process lives and answers.
    if matches!(case.voice, Voice::Unwell(_, 503)) && case.engine() == Some(EngineKind::Sglang) && case.movement.stall.is_some() {
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
