//! Asleep, waking, paused: what answers, gauges, calls and log lines say, newest first.
//!
//! Owns how they combine. vLLM answers 200 on /health in all of these states and accepts requests that then hang (measured on
//! 0.32.0). SGLang has no answer and no metric for it: only the call that released its memory tells.

use jiff::Timestamp;

use super::case::{Case, Voice};
use super::http::{self, Got};
use super::load;
use super::logs::Phase;
use super::names::VLLM;
use super::verdict::Ruling;
use crate::model::engine::{EngineKind, HttpAnswer, Offer, SleepReading};
use crate::model::state::EngineState;
use crate::model::unknown::unknown;
use crate::model::{Evidence, Known, Place};

/// One statement about sleep.
struct Word {
    reading: SleepReading,
    at: Timestamp,
    /// Of two at the same instant the higher one counts: the answer knows more than the gauge, which before 0.33 said "awake" after
    /// a partial wake, and is set only by the API process that served the call.
    weight: u8,
    evidence: Evidence,
    /// An answer that says "asleep" without a level; from 0.33 on it says so of a plain pause too.
    bare: bool,
}

/// Sleeping, waking or paused, if the newest word says so.
pub(super) fn rule(case: &Case<'_>) -> Option<Ruling> {
    let words = words(case);
    let gone = match case.voice {
        Voice::Closed(answer) => Some(answer.at),
        // Its core died since: nothing sleeps there any more.
        Voice::Unwell(answer, _) if case.engine() == Some(EngineKind::Vllm) => Some(answer.at),
        _ => None,
    };
    let current = |at: Timestamp| gone.is_none_or(|gone| at >= gone);
    let newest = words.last().filter(|word| current(word.at));
    let paused = paused(case).filter(|(_, answer, _)| current(answer.at));
    let is_paused = matches!(paused, Some((true, ..)));
    let others = |first: &Evidence| -> Vec<Evidence> {
        let mut rest: Vec<Evidence> = Vec::new();
        for word in words.iter().rev() {
            if word.evidence != *first && rest.len() < 4 && !rest.iter().any(|seen| seen.place == word.evidence.place) {
                rest.push(word.evidence.clone());
            }
        }
        if let Voice::Healthy(answer) = case.voice {
            rest.push(answer.evidence());
        }
        rest
    };
    if let Some(word) = newest.filter(|word| word.reading == SleepReading::Waking) {
        let mut evidence = vec![word.evidence.clone()];
        evidence.extend(others(&word.evidence));
        return Some(
            Ruling::new(EngineState::Waking, "it is on its way back from sleep: a wake call is in flight", evidence).since(Some(word.at)),
        );
    }
    if let Some(word) = newest
        && let SleepReading::Asleep(level) = word.reading
    {
        let gauge = words.iter().rev().find(|word| !word.bare).map(|word| word.reading);
        let only_paused = match word.bare {
            // "Asleep" while the gauge says awake and /is_paused says paused: a pause.
            true => is_paused && gauge == Some(SleepReading::Awake),
            false => level == 0,
        };
        let level = match (word.bare, gauge) {
            (false, _) => Some(level),
            (true, Some(SleepReading::Asleep(level))) => Some(level),
            (true, _) => None,
        };
        let mut evidence = vec![word.evidence.clone()];
        evidence.extend(others(&word.evidence));
        if only_paused {
            if let Some((true, _, proof)) = &paused {
                evidence.insert(0, proof.clone());
            }
            let why = "it takes no work: paused, or its KV cache is released; requests wait until it is resumed";
            return Some(Ruling::new(EngineState::Paused, why, evidence).since(since(&words)));
        }
        let why = match level {
            Some(0) => "it is asleep at level 0: requests hang until it is woken",
            Some(1) => "it is asleep at level 1: weights in host memory, requests hang until it is woken",
            Some(2) => "it is asleep at level 2: weights dropped, requests hang until it is woken and loaded",
            _ => "it is asleep: requests hang until it is woken",
        };
        let since = fell_asleep(case).or_else(|| since(&words));
        return Some(Ruling::new(EngineState::Sleeping(level), why, evidence).since(since));
    }
    if let Some((true, answer, proof)) = paused {
        let mut evidence = vec![proof];
        evidence.extend(match case.voice {
            Voice::Healthy(health) if health != answer => Some(health.evidence()),
            _ => None,
        });
        let why = "it is paused: it takes no work until it is resumed";
        return Some(Ruling::new(EngineState::Paused, why, evidence).since(Some(answer.at)));
    }
    None
}

/// What shows that it is awake and unpaused, for the evidence of READY.
pub(super) fn awake(case: &Case<'_>) -> Vec<Evidence> {
    let words = words(case);
    let mut evidence: Vec<Evidence> =
        words.last().filter(|word| word.reading == SleepReading::Awake).map(|word| word.evidence.clone()).into_iter().collect();
    evidence.extend(paused(case).filter(|(is, ..)| !is).map(|(.., proof)| proof));
    evidence
}

/// All words on sleep, oldest first.
fn words(case: &Case<'_>) -> Vec<Word> {
    let mut words = Vec::new();
    let word = |answer: &HttpAnswer, reading, weight, bare| Word { reading, at: answer.at, weight, evidence: answer.evidence(), bare };
    for answer in case.answers.iter().filter(|answer| http::got(answer) == Got::Status(200)) {
        let body = || serde_json::from_str::<serde_json::Value>(answer.body()).ok();
        let read = match http::route(answer) {
            "/is_sleeping" | "/props" => body().and_then(|body| http::is_sleeping(answer, &body)).map(|asleep| match asleep {
                true => word(answer, SleepReading::Asleep(1), 3, true),
                false => word(answer, SleepReading::Awake, 3, true),
            }),
            "/sleep" if answer.method == "POST" => Some(word(answer, SleepReading::Asleep(http::sleep_level(answer)), 2, false)),
            // 0.33 says "sleeping" after a partial wake.
            "/wake_up" if answer.method == "POST" => Some(match answer.body().contains("\"sleeping\"") {
                true => word(answer, SleepReading::Asleep(1), 2, true),
                false => word(answer, SleepReading::Awake, 2, true),
            }),
            "/release_memory_occupation" => Some(word(answer, SleepReading::Asleep(1), 2, true)),
            "/resume_memory_occupation" => Some(word(answer, SleepReading::Awake, 2, true)),
            _ => None,
        };
        words.extend(read);
    }
    for page in &case.pages {
        if let Some((reading, series)) = load::sleep(&page.page, &VLLM) {
            let shown = match reading {
                SleepReading::Awake => "awake 1".to_owned(),
                SleepReading::Asleep(1) => "awake 0, weights_offloaded 1".to_owned(),
                SleepReading::Asleep(2) => "awake 0, discard_all 1".to_owned(),
                SleepReading::Asleep(_) => "awake 0, weights_offloaded 0, discard_all 0".to_owned(),
                SleepReading::Waking => "above 0".to_owned(),
            };
            let evidence = Evidence::new(&page.subject, Place::Metric(series), shown, Some(page.at));
            words.push(Word { reading, at: page.at, weight: 1, evidence, bare: false });
        }
    }
    // A log line counts only by its own time, and only where nothing better is as new.
    if let Some(log) = case.log() {
        for (phase, reading) in [(Phase::Asleep, SleepReading::Asleep(1)), (Phase::Awake, SleepReading::Awake)] {
            if let Some((line, at)) = log.latest.get(&phase).and_then(|line| Some((line, line.time()?))) {
                words.push(Word { reading, at, weight: 0, evidence: log.evidence(line), bare: true });
            }
        }
    }
    // Tokens that move are awake, whatever was said before.
    if case.movement.moved == Ok(true)
        && let Some(page) = case.pages.last()
        && words.iter().all(|word| word.at < page.at)
    {
        let evidence = Evidence::new(&page.subject, Place::Metric("token counters".into()), "they move", Some(page.at));
        words.push(Word { reading: SleepReading::Awake, at: page.at, weight: 0, evidence, bare: true });
    }
    words.sort_by_key(|word| (word.at, word.weight));
    // A wake in flight is told by the gauge only; the answer of the same instant still says "asleep".
    if let Some(waking) = words.iter().rposition(|word| word.reading == SleepReading::Waking) {
        let at = words.get(waking).map(|word| word.at);
        if words.last().map(|word| word.at) == at {
            let word = words.remove(waking);
            words.push(word);
        }
    }
    words
}

/// When the unbroken row of "asleep" began.
fn since(words: &[Word]) -> Option<Timestamp> {
    words.iter().rev().take_while(|word| matches!(word.reading, SleepReading::Asleep(_))).last().map(|word| word.at)
}

/// When the log says that it fell asleep, if it has not woken since.
fn fell_asleep(case: &Case<'_>) -> Option<Timestamp> {
    let log = case.log()?;
    let asleep = log.latest.get(&Phase::Asleep)?.time()?;
    let awake = log.latest.get(&Phase::Awake).and_then(|line| line.time());
    awake.is_none_or(|awake| awake < asleep).then_some(asleep)
}

/// Whether it is paused, by the newest word, with its proof.
fn paused<'a>(case: &Case<'a>) -> Option<(bool, &'a HttpAnswer, Evidence)> {
    let told = case.answers.iter().rev().find_map(|answer| {
        // vLLM 0.33 refuses work with these words while it is paused; older ones let it hang.
        if http::WORK.contains(&http::route(answer)) && http::got(answer) == Got::Status(503) {
            return answer.body().contains("engine_paused").then(|| (true, answer, answer.evidence()));
        }
        (http::got(answer) == Got::Status(200)).then_some(())?;
        let is = match (http::route(answer), answer.method.as_str()) {
            ("/is_paused", _) => {
                let body = serde_json::from_str(answer.body()).ok()?;
                http::is_paused(answer, &body)?
            }
            ("/pause" | "/pause_generation", "POST") => true,
            ("/resume" | "/continue_generation", "POST") => false,
            _ => return None,
        };
        Some((is, answer, answer.evidence()))
    });
    // SGLang's /ready is 503 while it is paused, its /health may still be 200; no other state has both.
    let sglang = || {
        (case.engine() == Some(EngineKind::Sglang)).then_some(())?;
        let ready = case.answers.newest(&["/ready"]).filter(|answer| http::got(answer) == Got::Status(503))?;
        let health = case.answers.newest(&["/health", "/health_generate"]).filter(|answer| http::got(answer) == Got::Status(200))?;
        let plain = case.observed.container.and_then(|c| c.env.get("SGLANG_ENABLE_HEALTH_ENDPOINT_GENERATION")).is_some();
        let served = case.log().is_none_or(|log| log.reached.contains_key(&Phase::Serving));
        let together = ready.at.as_second().abs_diff(health.at.as_second()) <= 60;
        (together && served && !plain && case.observed.deleted_at.is_none()).then(|| (true, ready, ready.evidence()))
    };
    match (told, sglang()) {
        (Some(told), Some(other)) if other.1.at > told.1.at => Some(other),
        (told, other) => told.or(other),
    }
}

/// Whether sleep can be asked for, as far as answers tell.
pub(super) fn routes(case: &Case<'_>) -> Known<Offer> {
    let routes: &[&str] = match case.engine() {
        Some(EngineKind::Sglang) => &["/release_memory_occupation"],
        _ => &["/is_sleeping", "/sleep", "/wake_up"],
    };
    let judged = case.answers.newest_first(routes).find_map(|answer| match http::got(answer) {
        Got::Status(404) => Some((false, answer)),
        Got::Status(200) => Some((true, answer)),
        // The route is there; it wants another method.
        Got::Status(405) => Some((true, answer)),
        _ => None,
    });
    match judged {
        Some((offered, answer)) => Ok(Offer { offered, evidence: answer.evidence() }),
        None => unknown(format!("no answer of {} is known", routes.first().copied().unwrap_or_default())),
    }
}
