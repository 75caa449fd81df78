//! STALLED: it has work, and no token moved between two pages at least 20 s apart.
//!
//! Owns how a stall is told and proven. What stands still is found in [`super::super::moves`].

use super::super::case::{Case, Voice};
use super::Ruling;
use crate::model::state::EngineState;
use crate::model::{Evidence, Place};

/// It has work, and no token moved between two pages at least 20 s apart.
pub(super) fn rule(case: &Case<'_>) -> Option<Ruling> {
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
    if let Voice::Healthy(answer) | Voice::Unwell(answer, _) = case.voice {
        evidence.push(answer.evidence());
    }
    let work = match stall.waiting.1 > 0.0 {
        true => format!("{} wait and {} run", stall.waiting.1, stall.running.1),
        false => format!("{} run", stall.running.1),
    };
    let lives = match case.voice {
        Voice::Healthy(_) => "it answers its health check, but ".to_owned(),
        Voice::Unwell(answer, status) => format!("{} answers {status}: ", answer.request()),
        _ => String::new(),
    };
    let why = format!("{lives}{work} and no token was produced for {seconds} s");
    Some(Ruling::new(EngineState::Stalled, why, evidence).since(Some(stall.since)))
}

/// Ranks that stand still while the engine moves are said whatever the state is.
pub(super) fn with_ranks(case: &Case<'_>, mut ruling: Ruling) -> Ruling {
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
