//! From all observations of one engine to one report.
//!
//! Owns what the report holds beside the state: load, progress, stage times, names. Must not decide the state: see [`super::verdict`].

use std::collections::BTreeMap;

use super::case::Case;
use super::http;
use super::logs::{Counted, LogReading, Phase};
use super::names::Names;
use super::verdict::{self, Ruling, first_good};
use super::{Observed, detect, load, series, sleep};
use crate::model::engine::{EngineKind, EngineLoad, EngineReport, NameCheck};
use crate::model::ladder::Stage;
use crate::model::state::EngineState;
use crate::model::unknown::unknown;
use crate::model::{Fact, Known};

/// All that can be said of one engine from itself.
pub fn report(observed: &Observed<'_>) -> EngineReport {
    let case = Case::of(observed);
    let Ruling { state, mut why, mut evidence, since } = verdict::decide(&case);
    let model_name = names(&case);
    if let Some(check) = model_name.as_ref().filter(|check| !check.agrees()) {
        let (listed, expected) = (check.listed.join(", "), check.expected.join(", "));
        evidence.push(crate::model::Evidence { value: format!("lists {listed}; its flags say {expected}"), ..check.evidence.clone() });
        why.push_str(&format!("; it lists {listed}, not {expected}"));
    }
    let kind = case.engine().unwrap_or(EngineKind::OpenAi);
    if let Some(name) = case.pages.last().and_then(|page| series::repeated(&page.page, Names::of(kind))) {
        why.push_str(&format!("; its page has {name} twice with the same labels: the last one counts"));
    }
    let (progress, eta_s) = progress(&case, &state);
    EngineReport {
        kind: case.kind.clone().map(|(kind, _)| kind),
        version: detect::version(observed, &case.answers, &case.logs),
        state,
        evidence,
        why,
        since,
        load: load_of(&case),
        progress,
        eta_s,
        stages: stages(&case),
        sleep_routes: sleep::routes(&case),
        movement: case.movement.moved.clone(),
        stall: case.movement.stall.clone(),
        stalled_ranks: case.movement.ranks.clone(),
        model_name,
    }
}

/// The load, or why there is none: never asked, asked without answer, or answered with something else.
fn load_of(case: &Case<'_>) -> Known<EngineLoad> {
    let asked = case.answers.newest(&["/metrics", "/prometheus/metrics"]);
    let failed = asked.filter(|answer| http::got(answer) != http::Got::Status(200));
    match case.pages.last() {
        Some(page) if failed.is_none_or(|answer| answer.at <= page.at) => case.load.clone(),
        newest => {
            let unread = case.observed.pages.iter().max_by_key(|page| page.at);
            match (failed, unread, newest) {
                (Some(answer), unread, _) if unread.is_none_or(|page| page.at <= answer.at) => {
                    let last = newest.map(|page| format!(" (the last sample is of {})", page.at)).unwrap_or_default();
                    unknown(format!("no sample: {} {}{last}", answer.request(), past(&answer.outcome_word())))
                }
                (_, Some(page), _) => match load::unusable(&page.page) {
                    Some(why) => unknown(format!("no sample: {why}")),
                    None => unknown("no sample of this run of its container yet"),
                },
                _ => unknown("no sample yet"),
            }
        }
    }
}

fn past(outcome: &str) -> String {
    match outcome {
        "timeout" => "timed out".into(),
        "connection refused" => "was refused".into(),
        other => format!("gave {other}"),
    }
}

/// Share done and seconds left of what the present state waits for.
fn progress(case: &Case<'_>, state: &EngineState) -> (Option<Fact<f64>>, Option<Fact<f64>>) {
    let what = match state {
        EngineState::Downloading => Counted::Download,
        EngineState::Loading => Counted::Shards,
        EngineState::Warming => Counted::WarmUp,
        _ => return (None, None),
    };
    let of = |log: &LogReading| {
        let newest = log.newest_of(what)?;
        let at = newest.line.time().unwrap_or(case.observed.now);
        let source = format!("log of {}", log.container);
        let fact = |value: f64| Fact::new(value, source.clone(), at);
        Some((newest.share.map(fact), newest.left_s.filter(|left| left.is_finite()).map(fact)))
    };
    let engine = case.log().and_then(of);
    engine.or_else(|| case.other_logs().find_map(of)).unwrap_or((None, None))
}

/// When the log, or answers, show that a stage began.
fn stages(case: &Case<'_>) -> BTreeMap<Stage, Fact<()>> {
    let mut stages = BTreeMap::new();
    if let Some(log) = case.log() {
        let first = |phases: &[Phase]| {
            let lines = phases.iter().filter_map(|phase| log.reached.get(phase));
            lines.filter_map(|line| Some((line.time()?, line))).min_by_key(|(at, _)| *at)
        };
        let rows: [(Stage, &[Phase]); 3] = [
            (Stage::Loading, &[Phase::LoadBegin, Phase::Downloading, Phase::Downloaded, Phase::Loading]),
            (Stage::Warming, &[Phase::Warming]),
            (Stage::EngineReady, &[Phase::Serving]),
        ];
        for (stage, phases) in rows {
            if let Some((at, line)) = first(phases) {
                stages.insert(stage, Fact::new((), format!("log of {}: {}", log.container, line.text), at));
            }
        }
    }
    if let Some(answer) = first_good(case) {
        stages.entry(Stage::EngineReady).or_insert_with(|| Fact::new((), answer.request(), answer.at));
    }
    stages
}

/// The names that the flags give, beside those that are listed.
fn names(case: &Case<'_>) -> Option<NameCheck> {
    let container = case.observed.container?;
    let (listed, answer) = http::models(&case.answers)?;
    let words = container.words();
    let served = words
        .iter()
        .position(|word| *word == "--served-model-name" || word.starts_with("--served-model-name="))
        .map(|at| {
            let inline = words.get(at).and_then(|word| word.split_once('=')).map(|(_, name)| name);
            let rest = words.iter().skip(at + 1).copied().take_while(|word| !word.starts_with('-'));
            inline.into_iter().chain(rest).map(str::to_owned).collect::<Vec<_>>()
        })
        .filter(|names| !names.is_empty());
    let model = || {
        let flag = ["--model", "--model-path", "--model_path"].into_iter().find_map(|flag| container.flag(flag));
        let positional = || words.iter().position(|word| *word == "serve").and_then(|at| words.get(at + 1)).copied();
        let name = flag.or_else(positional).filter(|name| !name.is_empty() && !name.starts_with('-'))?;
        Some(vec![name.to_owned()])
    };
    let expected = served.or_else(model)?;
    // A shell variable or template says nothing.
    let plain = expected.iter().all(|name| !name.contains(['$', '{']));
    (plain && !listed.is_empty()).then(|| NameCheck { expected, listed, evidence: answer.evidence() })
}
