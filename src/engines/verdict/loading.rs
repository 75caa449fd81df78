//! STARTING, DOWNLOADING, LOADING, WARMING: on its way up, and how far, by its log.
//!
//! Owns the sentences of the way up. A port that is closed meanwhile is normal (vLLM, SGLang, TGI).

use jiff::Timestamp;

use super::super::case::{Case, Voice};
use super::super::logs::{Counted, LogReading, Phase};
use super::{Ruling, newest_line};
use crate::model::engine::EngineKind;
use crate::model::state::EngineState;
use crate::model::time;

/// On its way up: how far, by its log.
pub(super) fn rule(case: &Case<'_>) -> Option<Ruling> {
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
                let done = log.newest_of(Counted::Shards).and_then(|progress| progress.share);
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
pub(super) fn downloading(log: &LogReading) -> Ruling {
    let newest = log.newest_of(Counted::Download);
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
