//! How values are written on the screen: counts, loads, ages, states. One place, so that pages never differ.

use jiff::Timestamp;

use super::theme::{Mark, Role, Theme};
use crate::model::engine::EngineLoad;
use crate::model::finding::Severity;
use crate::model::funnel::{Funnel, Step};
use crate::model::state::{EngineState, ReplicaState, WorkloadState};
use crate::model::{Evidence, Fact, Known, time};

/// A count, or what stands for unknown.
pub(crate) fn count(value: &Known<u32>, theme: Theme) -> String {
    match value {
        Ok(n @ 0..=9_999) => n.to_string(),
        Ok(n) => number(f64::from(*n), theme),
        Err(_) => theme.unknown().to_owned(),
    }
}

/// A count in at most three columns: `999`, then `1k`, `12k` rounded down, then bounds.
pub(crate) fn short_count(value: &Known<u32>, theme: Theme) -> String {
    match value {
        Ok(n @ 0..=999) => n.to_string(),
        Ok(n @ 1_000..=99_999) => format!("{}k", n / 1_000),
        Ok(100_000..=999_999) => "<1M".to_owned(),
        Ok(_) => ">1M".to_owned(),
        Err(_) => theme.unknown().to_owned(),
    }
}

/// A number in at most five columns: `7`, `0.5`, `1234`, `12k`, `3M`. What is no number is unknown.
pub(crate) fn number(value: f64, theme: Theme) -> String {
    if !value.is_finite() {
        return theme.unknown().to_owned();
    }
    let (scaled, unit) = match value.abs() {
        size if size < 10_000.0 => (value, ""),
        size if size < 1e6 => (value / 1e3, "k"),
        size if size < 1e9 => (value / 1e6, "M"),
        size if size < 1e12 => (value / 1e9, "G"),
        _ => return "huge".to_owned(),
    };
    if scaled.fract().abs() < 0.05 || scaled.abs() >= 100.0 { format!("{scaled:.0}{unit}") } else { format!("{scaled:.1}{unit}") }
}

/// A share 0..1 as `42%`. What lies far outside is no share and unknown.
pub(crate) fn share(value: f64, theme: Theme) -> String {
    if (-0.005..=9.99).contains(&value) { format!("{:.0}%", value.max(0.0) * 100.0) } else { theme.unknown().to_owned() }
}

/// A known number, or what stands for unknown.
pub(crate) fn fact(value: Option<&Fact<f64>>, write: fn(f64, Theme) -> String, theme: Theme) -> String {
    value.map_or_else(|| theme.unknown().to_owned(), |fact| write(fact.value, theme))
}

/// Yes, no, or what stands for unknown, with the role.
pub(crate) fn yes_no(value: &Known<bool>, theme: Theme) -> (&'static str, Role) {
    match value {
        Ok(true) => ("yes", Role::Good),
        Ok(false) => ("no", Role::Warn),
        Err(_) => (theme.unknown(), Role::Dim),
    }
}

/// An instant to the second, `2026-11-12 10:00:00Z`.
pub(crate) fn instant(at: Timestamp) -> String {
    let text = at.to_string();
    let (date, _) = text.split_once('T').unwrap_or((&text, ""));
    format!("{date} {}Z", time::clock(at))
}

/// The age of something in a narrow column, `60s`.
pub(crate) fn age(at: Option<Timestamp>, now: Timestamp, theme: Theme) -> String {
    at.map_or_else(|| theme.unknown().to_owned(), |at| time::short_span(time::seconds_between(at, now)))
}

/// Since when, in words: `09:59:00Z (60s)`; with the date where it was not today.
pub(crate) fn since(at: Timestamp, now: Timestamp) -> String {
    let full = instant(at);
    let today = full.split(' ').next() == instant(now).split(' ').next();
    let shown = if today { format!("{}Z", time::clock(at)) } else { full };
    format!("{shown} ({})", time::short_span(time::seconds_between(at, now)))
}

/// One piece of evidence on a line.
pub(crate) fn proof(evidence: &Evidence, now: Timestamp) -> String {
    match evidence.at {
        Some(at) => format!("{evidence}, at {}", since(at, now)),
        None => evidence.to_string(),
    }
}

/// How many seconds it should still take, in words.
pub(crate) fn eta(seconds: f64) -> Option<String> {
    // A cast of a float saturates.
    (seconds.is_finite() && seconds >= 0.0).then(|| format!("about {} left", time::span(seconds.round() as i64)))
}

/// Mark and role of a severity.
pub(crate) fn severity(severity: Severity) -> (Mark, Role) {
    match severity {
        Severity::Critical => (Mark::Bad, Role::Bad),
        Severity::Warning => (Mark::Warn, Role::Warn),
        Severity::Info => (Mark::Info, Role::Info),
    }
}

/// Mark and role of a workload's state.
pub(crate) fn workload(state: WorkloadState) -> (Mark, Role) {
    match state {
        WorkloadState::Serving => (Mark::Good, Role::Good),
        WorkloadState::Degraded => (Mark::Warn, Role::Warn),
        WorkloadState::Down | WorkloadState::FailedUpdate | WorkloadState::Blocked => (Mark::Bad, Role::Bad),
        WorkloadState::ScaledToZero => (Mark::Off, Role::Dim),
        WorkloadState::RollingOut => (Mark::Progress, Role::Info),
        WorkloadState::WaitingPromotion => (Mark::Waiting, Role::Info),
        WorkloadState::Unknown => (Mark::Unknown, Role::Dim),
    }
}

/// Mark and role of a replica's state.
pub(crate) fn replica(state: ReplicaState) -> (Mark, Role) {
    match state {
        ReplicaState::Serving | ReplicaState::Ready => (Mark::Good, Role::Good),
        ReplicaState::PendingGpu | ReplicaState::WaitingAdmission => (Mark::Waiting, Role::Warn),
        ReplicaState::Pulling
        | ReplicaState::Starting
        | ReplicaState::Downloading
        | ReplicaState::Loading
        | ReplicaState::Warming
        | ReplicaState::Waking => (Mark::Progress, Role::Info),
        ReplicaState::EngineReady | ReplicaState::NotRouted => (Mark::Warn, Role::Warn),
        ReplicaState::Paused => (Mark::Paused, Role::Warn),
        ReplicaState::Sleeping => (Mark::Asleep, Role::Dim),
        ReplicaState::Draining | ReplicaState::Terminating => (Mark::Leaving, Role::Dim),
        ReplicaState::Stalled | ReplicaState::Crashing | ReplicaState::Dead => (Mark::Bad, Role::Bad),
        ReplicaState::Unknown => (Mark::Unknown, Role::Dim),
    }
}

/// Mark and role of what an engine says.
pub(crate) fn engine(state: &EngineState) -> (Mark, Role) {
    match state {
        EngineState::Ready => (Mark::Good, Role::Good),
        EngineState::Starting | EngineState::Downloading | EngineState::Loading | EngineState::Warming | EngineState::Waking => {
            (Mark::Progress, Role::Info)
        }
        EngineState::Paused => (Mark::Paused, Role::Warn),
        EngineState::Sleeping(_) => (Mark::Asleep, Role::Dim),
        EngineState::Draining => (Mark::Leaving, Role::Dim),
        EngineState::Stalled | EngineState::Dead => (Mark::Bad, Role::Bad),
        EngineState::Unknown(_) => (Mark::Unknown, Role::Dim),
    }
}

/// What an engine says in one word; the reason of an unknown one stands elsewhere.
pub(crate) fn engine_word(state: &EngineState) -> String {
    match state {
        EngineState::Unknown(_) => "UNKNOWN".to_owned(),
        known => known.to_string(),
    }
}

/// Where replicas are lost first, in words: `3 of 12 wait for a node`. `None` where none is lost as far as is known.
pub(crate) fn bottleneck(funnel: &Funnel) -> Option<String> {
    if let Some((step, lost)) = funnel.bottleneck() {
        let what = match step {
            Step::Wanted | Step::Asked => "not asked for",
            Step::Existing => "asked for, not made",
            Step::Scheduled => "without a node",
            Step::Loaded => "on a node, not loaded",
            Step::PodReady => "loaded, pod not Ready",
            Step::Listed => "pod Ready, not listed",
            Step::Routed => "listed, not routed",
        };
        return Some(format!("{lost} {what}"));
    }
    let short = funnel.short().ok().filter(|short| *short > 0)?;
    let last = Step::ALL.into_iter().rev().find(|step| funnel.step(*step).is_ok());
    let what = match last {
        Some(Step::Routed) => "routed",
        Some(Step::Listed) => "listed",
        Some(Step::PodReady) => "pod Ready",
        _ => "there",
    };
    Some(format!("{short} {what}, not serving"))
}

/// Serving of wanted: `1/2`.
pub(crate) fn serving(funnel: &Funnel, theme: Theme) -> String {
    format!("{}/{}", count(&funnel.serving, theme), count(&funnel.wanted, theme))
}

/// The role in which serving of wanted is shown.
pub(crate) fn serving_role(funnel: &Funnel) -> Role {
    match (&funnel.serving, &funnel.wanted) {
        (Ok(0), Ok(wanted)) if *wanted > 0 => Role::Bad,
        (Ok(serving), Ok(wanted)) if serving < wanted => Role::Warn,
        (Ok(_), Ok(_)) => Role::Text,
        _ => Role::Dim,
    }
}

/// How the ranks of one engine differ: `16 ranks: running 0..5, waiting 0..2, KV 3%..91% (most on rank 7)`. `None` for a single rank.
pub(crate) fn spread(load: &EngineLoad, theme: Theme) -> Option<String> {
    if load.ranks.len() < 2 {
        return None;
    }
    let range = |pick: fn(&crate::model::engine::RankLoad) -> Option<f64>, write: fn(f64, Theme) -> String| {
        let values: Vec<f64> = load.ranks.values().filter_map(pick).filter(|value| value.is_finite()).collect();
        let low = values.iter().copied().reduce(f64::min)?;
        let high = values.iter().copied().reduce(f64::max)?;
        let (low, high) = (write(low, theme), write(high, theme));
        Some(if low == high { low } else { format!("{low}..{high}") })
    };
    let mut parts = Vec::new();
    for (name, part) in [
        ("running", range(|rank| rank.running, number)),
        ("waiting", range(|rank| rank.waiting, number)),
        ("KV", range(|rank| rank.kv_usage, share)),
    ] {
        parts.push(format!("{name} {}", part.unwrap_or_else(|| theme.unknown().to_owned())));
    }
    let busiest = load
        .ranks
        .iter()
        .filter_map(|(name, rank)| rank.kv_usage.filter(|kv| kv.is_finite()).map(|kv| (name, kv)))
        .reduce(|best, next| if next.1 > best.1 { next } else { best });
    let most = busiest.map_or_else(String::new, |(name, _)| format!(" (most on rank {name})"));
    Some(format!("{} ranks: {}{most}", load.ranks.len(), parts.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::console::theme::{Charset, Depth};
    use rstest::rstest;

    const THEME: Theme = Theme { depth: Depth::None, charset: Charset::Unicode };

    #[rstest]
    #[case(0.0, "0")]
    #[case(-0.0, "-0")]
    #[case(0.5, "0.5")]
    #[case(7.0, "7")]
    #[case(1234.0, "1234")]
    #[case(12_345.0, "12.3k")]
    #[case(250_000.0, "250k")]
    #[case(3e6, "3M")]
    #[case(1e15, "huge")]
    #[case(f64::NAN, "–")]
    #[case(f64::INFINITY, "–")]
    fn numbers(#[case] value: f64, #[case] text: &str) {
        assert_eq!(number(value, THEME), text);
    }

    #[rstest]
    #[case(0.0, "0%")]
    #[case(0.424, "42%")]
    #[case(1.0, "100%")]
    #[case(1.2, "120%")]
    #[case(42.0, "–")]
    #[case(-1.0, "–")]
    #[case(f64::NAN, "–")]
    fn shares(#[case] value: f64, #[case] text: &str) {
        assert_eq!(share(value, THEME), text);
    }

    #[test]
    fn unknown_is_never_zero() {
        assert_eq!(count(&crate::model::unknown::unknown("x"), THEME), "–");
        assert_eq!(count(&Ok(0), THEME), "0");
        assert_eq!(count(&Ok(12_000), THEME), "12k");
        assert_eq!(fact(None, number, THEME), "–");
        for (n, text) in [(0, "0"), (999, "999"), (1_999, "1k"), (99_999, "99k"), (500_000, "<1M"), (u32::MAX, ">1M")] {
            assert_eq!(short_count(&Ok(n), THEME), text);
        }
        assert_eq!(yes_no(&crate::model::unknown::unknown("x"), THEME).0, "–");
    }

    #[test]
    fn instants_say_the_date_only_where_it_matters() {
        let now = time::instant("2026-11-12T10:00:00Z").unwrap();
        assert_eq!(instant(now), "2026-11-12 10:00:00Z");
        assert_eq!(since(time::instant("2026-11-12T09:59:00Z").unwrap(), now), "09:59:00Z (60s)");
        assert_eq!(since(time::instant("2026-11-11T10:00:00Z").unwrap(), now), "2026-11-11 10:00:00Z (24h)");
    }

    #[test]
    fn the_first_loss_in_words() {
        let mut funnel = Funnel::unknown("not read");
        assert_eq!(bottleneck(&funnel), None);
        (funnel.wanted, funnel.pod_ready, funnel.serving) = (Ok(2), Ok(2), Ok(1));
        assert_eq!(bottleneck(&funnel).as_deref(), Some("1 pod Ready, not serving"));
        funnel.scheduled = Ok(1);
        assert_eq!(bottleneck(&funnel).as_deref(), Some("1 without a node"));
        assert_eq!(serving(&funnel, THEME), "1/2");
        assert_eq!(serving_role(&funnel), Role::Warn);
    }

    #[test]
    fn an_eta_of_nonsense_is_none() {
        assert_eq!(eta(f64::NAN), None);
        assert_eq!(eta(-1.0), None);
        assert_eq!(eta(240.0).as_deref(), Some("about 4 min left"));
        assert!(eta(1e300).is_some());
    }
}
