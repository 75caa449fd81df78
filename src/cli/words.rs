//! How values are written in text: one place, so that commands never differ.

use crate::model::engine::EngineReport;
use crate::model::funnel::{Funnel, Step};
use crate::model::service::{Replica, Role};
use crate::model::state::ReplicaState;
use crate::model::{Fact, Known, time};
use crate::world::World;

/// What stands for unknown.
pub(super) const UNKNOWN: &str = "–";

/// The steps of a funnel, as legends name them.
pub(super) const LEGEND: &str = "wanted→asked→existing→scheduled→loaded→ready→listed→routed";

/// A count, or what stands for unknown.
pub(super) fn count(value: &Known<u32>) -> String {
    value.as_ref().map_or_else(|_| UNKNOWN.to_owned(), u32::to_string)
}

/// A number without a needless point.
pub(super) fn number(n: f64) -> String {
    if n.fract() == 0.0 { format!("{n:.0}") } else { format!("{n:.2}") }
}

/// A share as percent.
pub(super) fn share(n: f64) -> String {
    format!("{:.0}%", n * 100.0)
}

/// The counts of a funnel in a row: `6→6→6→5→2→2→2→–`.
pub(super) fn funnel(funnel: &Funnel) -> String {
    Step::ALL.map(|step| count(funnel.step(step))).join("→")
}

/// The same with names.
pub(super) fn named_funnel(funnel: &Funnel) -> String {
    Step::ALL.map(|step| format!("{} {}", step.word(), count(funnel.step(step)))).join(" → ")
}

/// Why steps of a funnel are unknown, one sentence a reason.
pub(super) fn unknown_steps(funnel: &Funnel) -> Vec<String> {
    let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
    for step in Step::ALL {
        if let Err(why) = funnel.step(step) {
            match reasons.iter_mut().find(|(reason, _)| *reason == why.why()) {
                Some((_, steps)) => steps.push(step.word()),
                None => reasons.push((why.why(), vec![step.word()])),
            }
        }
    }
    reasons.into_iter().map(|(why, steps)| format!("{} unknown: {why}", steps.join(", "))).collect()
}

/// What keeps a role from what is wanted: `2 short of 6: 1 pending-gpu, 1 loading (about 4 min left)`.
pub(super) fn bottleneck(world: &World, role: &Role) -> String {
    let replicas: Vec<&Replica> = role.replicas.iter().filter_map(|replica| world.replicas.get(replica)).collect();
    let funnel = &role.funnel;
    match (funnel.short(), &funnel.wanted) {
        (Err(why), _) => format!("not known: {why}"),
        (Ok(0), _) => "none".to_owned(),
        (Ok(short), wanted) => {
            let mut parts = Vec::new();
            if let (Ok(wanted), Ok(existing)) = (wanted, &funnel.existing)
                && let Some(missing @ 1..) = wanted.checked_sub(*existing)
            {
                parts.push(format!("{missing} not made yet"));
            }
            parts.extend(crate::world::counts::shortage(&replicas));
            let head = format!("{short} short of {}", count(wanted));
            if parts.is_empty() { head } else { format!("{head}: {}", parts.join(", ")) }
        }
    }
}

/// Load of a role: sums over its engines with a sample, and how many those are.
pub(super) fn load(world: &World, role: &Role) -> String {
    let reports: Vec<&EngineReport> =
        role.replicas.iter().filter_map(|replica| world.replicas.get(replica)?.engine.as_ref().ok()).collect();
    let sampled: Vec<_> = reports.iter().filter_map(|report| report.load.as_ref().ok()).collect();
    if sampled.is_empty() {
        return UNKNOWN.to_owned();
    }
    let values = |value: fn(&crate::model::engine::EngineLoad) -> &Known<Fact<f64>>| -> Vec<f64> {
        sampled.iter().filter_map(|load| Some(value(load).as_ref().ok()?.value)).collect()
    };
    let sum = |list: Vec<f64>| if list.is_empty() { UNKNOWN.to_owned() } else { number(list.iter().sum()) };
    let usage = values(|load| &load.kv_usage);
    let mean = if usage.is_empty() { UNKNOWN.to_owned() } else { share(usage.iter().sum::<f64>() / usage.len() as f64) };
    let mut text = format!("{} running, {} waiting, kv {mean}", sum(values(|load| &load.running)), sum(values(|load| &load.waiting)));
    if sampled.len() < reports.len() {
        text.push_str(&format!(" ({} of {} sampled)", sampled.len(), reports.len()));
    }
    text
}

/// One value of a replica's load.
pub(super) fn loaded(
    replica: &Replica,
    value: fn(&crate::model::engine::EngineLoad) -> &Known<Fact<f64>>,
    write: fn(f64) -> String,
) -> String {
    let load = replica.engine.as_ref().ok().and_then(|report| report.load.as_ref().ok());
    load.and_then(|load| value(load).as_ref().ok()).map_or_else(|| UNKNOWN.to_owned(), |fact| write(fact.value))
}

/// Since when, as an age.
pub(super) fn since(world: &World, replica: &Replica) -> String {
    replica.since.map_or_else(|| UNKNOWN.to_owned(), |since| time::short_span(time::seconds_between(since, world.now)))
}

/// Whether a replica needs a word of explanation.
pub(super) fn needs_words(replica: &Replica) -> bool {
    replica.state != ReplicaState::Serving
}
