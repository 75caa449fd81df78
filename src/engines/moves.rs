//! What moved between pages: rates, and whether an engine that has work stands still.
//!
//! Owns the comparison of counters. A counter that fell means a restart: nothing is said of the time in between. Must not decide a
//! state: see [`super::verdict`].

use std::collections::BTreeMap;

use super::MetricPage;
use super::exposition::Role;
use super::load;
use super::names::Names;
use super::series;
use crate::model::engine::Stall;
use crate::model::unknown::unknown;
use crate::model::{Known, time};

/// Seconds that two pages must be apart to call an engine stalled.
pub(super) const APART_S: i64 = 20;

/// What one page shows of work and of counters.
struct Snap<'a> {
    page: &'a MetricPage,
    running: BTreeMap<String, f64>,
    waiting: BTreeMap<String, f64>,
    gauges: (String, String),
    /// Token counters by name, then by rank.
    counters: BTreeMap<String, BTreeMap<String, f64>>,
    /// Other signs of life: series → value.
    signs: BTreeMap<String, f64>,
}

impl<'a> Snap<'a> {
    fn of(page: &'a MetricPage, names: &Names) -> Self {
        let find = |list| series::amount(&page.page, names, list);
        let (running, waiting) = (find(names.running), find(names.waiting));
        let mut counters = BTreeMap::new();
        for list in [names.prompt_tokens, names.generation_tokens] {
            if let Ok(found) = find(list) {
                counters.insert(found.name.clone(), found.sums());
            }
        }
        let mut signs = BTreeMap::new();
        for name in names.signs.iter().flat_map(|base| names.full(base)) {
            let counts: Vec<f64> = page
                .page
                .family(&name)
                .filter(|sample| sample.role() == Role::Count)
                .map(|sample| sample.value())
                .filter(|value| value.is_finite())
                .collect();
            if !counts.is_empty() {
                signs.insert(format!("{name}_count"), counts.iter().sum());
            }
        }
        for name in names.sign_gauges.iter().flat_map(|base| names.full(base)) {
            let values = series::counting(&page.page, &name, None);
            if !values.is_empty() {
                signs.insert(name, values.iter().map(|sample| sample.value()).filter(|value| value.is_finite()).sum());
            }
        }
        let name = |found: &Known<series::Found>| found.as_ref().map(|found| found.name.clone()).unwrap_or_default();
        Self {
            page,
            gauges: (name(&running), name(&waiting)),
            running: running.map(|found| found.sums()).unwrap_or_default(),
            waiting: waiting.map(|found| found.sums()).unwrap_or_default(),
            counters,
            signs,
        }
    }

    fn work(&self, rank: Option<&str>) -> f64 {
        let of = |map: &BTreeMap<String, f64>| match rank {
            Some(rank) => map.get(rank).copied().unwrap_or(0.0),
            None => map.values().sum(),
        };
        of(&self.running) + of(&self.waiting)
    }

    fn pair(&self, rank: Option<&str>) -> (f64, f64) {
        let of = |map: &BTreeMap<String, f64>| match rank {
            Some(rank) => map.get(rank).copied().unwrap_or(0.0),
            None => map.values().sum(),
        };
        (of(&self.running), of(&self.waiting))
    }
}

/// What the counters did from one page to a later one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    /// Some grew, none fell.
    Moved,
    /// All are the same.
    Still,
    /// One fell: the process is another.
    Restarted,
    /// No counter is on both.
    Blind,
}

fn step(before: &Snap<'_>, after: &Snap<'_>, rank: Option<&str>) -> Step {
    let (mut seen, mut moved) = (false, false);
    for (name, ranks) in &after.counters {
        let Some(old) = before.counters.get(name) else { continue };
        for (label, value) in ranks.iter().filter(|(label, _)| rank.is_none_or(|rank| *label == rank)) {
            let Some(old) = old.get(label) else { continue };
            seen = true;
            if value < old {
                return Step::Restarted;
            }
            moved |= value > old;
        }
    }
    if rank.is_none() && after.signs.iter().any(|(name, value)| before.signs.get(name).is_some_and(|old| old != value)) {
        moved = true;
    }
    match (seen, moved) {
        (false, _) => Step::Blind,
        (true, true) => Step::Moved,
        (true, false) => Step::Still,
    }
}

/// What the pages of one engine say of movement.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Movement {
    /// Whether token counters moved up to the newest page: since the newest page that is at least 20 s older, else since the one
    /// before it.
    pub(super) moved: Known<bool>,
    /// The engine has work and stands still for at least 20 s.
    pub(super) stall: Option<Stall>,
    /// Ranks that do, while the engine as a whole moves.
    pub(super) ranks: BTreeMap<String, Stall>,
}

/// Compares the pages of one run, oldest first.
pub(super) fn movement(pages: &[&MetricPage], names: &Names) -> Movement {
    let none = |why: &str| Movement { moved: unknown(why), stall: None, ranks: BTreeMap::new() };
    let snaps: Vec<Snap<'_>> = pages.iter().map(|page| Snap::of(page, names)).collect();
    let Some((newest, earlier)) = snaps.split_last() else { return none("no sample yet") };
    let Some(last) = earlier.last() else { return none("one sample only") };
    let apart = |snap: &&Snap<'_>| time::seconds_between(snap.page.at, newest.page.at) >= APART_S;
    let base = earlier.iter().rev().find(apart).unwrap_or(last);
    let moved = match step(base, newest, None) {
        Step::Moved => Ok(true),
        Step::Still => Ok(false),
        Step::Restarted => unknown("the engine restarted between the samples"),
        Step::Blind => unknown("no token counter is on both pages"),
    };
    let stall = stall(earlier, newest, None);
    let ranks = match newest.running.len().max(newest.waiting.len()) {
        _ if stall.is_some() => BTreeMap::new(),
        0 | 1 => BTreeMap::new(),
        _ => {
            let labels: std::collections::BTreeSet<&String> = newest.running.keys().chain(newest.waiting.keys()).collect();
            labels.into_iter().filter_map(|rank| Some((rank.clone(), self::stall(earlier, newest, Some(rank))?))).collect()
        }
    };
    Movement { moved, stall, ranks }
}

/// Goes back from the newest page as long as there is work and nothing moves.
fn stall(earlier: &[Snap<'_>], newest: &Snap<'_>, rank: Option<&str>) -> Option<Stall> {
    if newest.work(rank) <= 0.0 {
        return None;
    }
    let first = earlier.iter().rev().take_while(|snap| snap.work(rank) > 0.0 && step(snap, newest, rank) == Step::Still).last()?;
    (time::seconds_between(first.page.at, newest.page.at) >= APART_S).then_some(())?;
    let ((running, waiting), (running_now, waiting_now)) = (first.pair(rank), newest.pair(rank));
    let value = |ranks: &BTreeMap<String, f64>| match rank {
        Some(rank) => ranks.get(rank).copied(),
        None => Some(ranks.values().sum()),
    };
    Some(Stall {
        since: first.page.at,
        until: newest.page.at,
        running: (running, running_now),
        waiting: (waiting, waiting_now),
        counters: newest.counters.iter().filter_map(|(name, ranks)| Some((name.clone(), value(ranks)?))).collect(),
        gauges: newest.gauges.clone(),
    })
}

/// Rates per second between two pages: `prompt-tokens`, `generation-tokens`, `requests`. Empty without a page before.
pub(super) fn rates(before: Option<&MetricPage>, now: &MetricPage, names: &Names) -> BTreeMap<&'static str, Known<f64>> {
    let Some(before) = before else { return BTreeMap::new() };
    let seconds = (now.at.as_millisecond() - before.at.as_millisecond()) as f64 / 1000.0;
    let counters = |page: &MetricPage, list| series::amount(&page.page, names, list).map(|found| found.sums());
    let finished = |page: &MetricPage| match load::finished(&page.page, names) {
        counts if counts.is_empty() => unknown("no counter of finished requests is on the page"),
        counts => Ok(counts),
    };
    BTreeMap::from([
        ("prompt-tokens", rate(counters(before, names.prompt_tokens), counters(now, names.prompt_tokens), seconds)),
        ("generation-tokens", rate(counters(before, names.generation_tokens), counters(now, names.generation_tokens), seconds)),
        ("requests", rate(finished(before), finished(now), seconds)),
    ])
}

fn rate(before: Known<BTreeMap<String, f64>>, now: Known<BTreeMap<String, f64>>, seconds: f64) -> Known<f64> {
    let (before, now) = (before?, now?);
    if seconds <= 0.0 {
        return unknown("the samples are of the same time");
    }
    // A label that is new began at nothing; one that is gone, or fell, tells a restart.
    if before.iter().any(|(label, old)| now.get(label).is_none_or(|new| new < old)) {
        return unknown("the engine restarted between the samples");
    }
    let grown: f64 = now.iter().map(|(label, new)| new - before.get(label).copied().unwrap_or(0.0)).sum();
    Ok(grown / seconds)
}

#[cfg(test)]
mod tests {
    use super::super::exposition::{Filter, read};
    use super::super::names::{SGLANG, VLLM};
    use super::*;
    use crate::model::Subject;
    use proptest::prelude::*;
    use rstest::rstest;

    fn page(second: i64, text: &str) -> MetricPage {
        MetricPage {
            subject: Subject::pod("serving", "a"),
            port: Some(8000),
            path: "/metrics".into(),
            at: jiff::Timestamp::from_second(1_000_000 + second).unwrap(),
            page: read(text.as_bytes(), &Filter::All).into(),
        }
    }

    fn vllm(second: i64, running: u32, waiting: u32, prompt: u64, generated: u64) -> MetricPage {
        page(
            second,
            &format!(
                "vllm:num_requests_running{{engine=\"0\"}} {running}\nvllm:num_requests_waiting{{engine=\"0\"}} {waiting}\n\
                 vllm:prompt_tokens_total{{engine=\"0\"}} {prompt}\nvllm:generation_tokens_total{{engine=\"0\"}} {generated}\n"
            ),
        )
    }

    fn of(pages: &[MetricPage], names: &Names) -> Movement {
        movement(&pages.iter().collect::<Vec<_>>(), names)
    }

    #[rstest]
    #[case::stands_still(&[vllm(0, 0, 3, 5, 9), vllm(60, 0, 3, 5, 9)], Some(60))]
    #[case::running_only(&[vllm(0, 2, 0, 5, 9), vllm(20, 2, 0, 5, 9)], Some(20))]
    #[case::too_close(&[vllm(0, 2, 0, 5, 9), vllm(19, 2, 0, 5, 9)], None)]
    #[case::one_page(&[vllm(0, 2, 0, 5, 9)], None)]
    #[case::prompt_moves(&[vllm(0, 2, 0, 5, 9), vllm(60, 2, 0, 6, 9)], None)]
    #[case::tokens_move(&[vllm(0, 2, 0, 5, 9), vllm(60, 2, 0, 5, 10)], None)]
    #[case::no_work_before(&[vllm(0, 0, 0, 5, 9), vllm(60, 2, 0, 5, 9)], None)]
    #[case::no_work_now(&[vllm(0, 2, 0, 5, 9), vllm(60, 0, 0, 5, 9)], None)]
    #[case::restart(&[vllm(0, 2, 0, 5, 9), vllm(60, 2, 0, 5, 3)], None)]
    #[case::many_pages(&[vllm(0, 2, 0, 5, 8), vllm(10, 2, 0, 5, 9), vllm(20, 2, 1, 5, 9), vllm(30, 2, 2, 5, 9)], Some(20))]
    #[case::moved_just_now(&[vllm(0, 2, 0, 5, 9), vllm(55, 2, 0, 5, 9), vllm(60, 2, 0, 5, 10)], None)]
    #[case::idle_between(&[vllm(0, 2, 0, 5, 9), vllm(30, 0, 0, 5, 9), vllm(40, 2, 0, 5, 9)], None)]
    fn stalls(#[case] pages: &[MetricPage], #[case] seconds: Option<i64>) {
        let movement = of(pages, &VLLM);
        assert_eq!(movement.stall.map(|stall| stall.seconds()), seconds);
    }

    #[test]
    fn a_stall_names_its_proof() {
        let stall = of(&[vllm(0, 0, 3, 5, 9), vllm(60, 0, 4, 5, 9)], &VLLM).stall.unwrap();
        assert_eq!((stall.running, stall.waiting), ((0.0, 0.0), (3.0, 4.0)));
        assert_eq!(stall.counters, [("vllm:generation_tokens_total".to_owned(), 9.0), ("vllm:prompt_tokens_total".to_owned(), 5.0)]);
        assert_eq!(stall.gauges.1, "vllm:num_requests_waiting");
    }

    #[test]
    fn a_rank_can_stall_while_the_engine_moves() {
        let text = |a: u32, b: u32| {
            format!(
                "vllm:num_requests_running{{engine=\"0\"}} 2\nvllm:num_requests_running{{engine=\"2\"}} 0\n\
                 vllm:num_requests_waiting{{engine=\"0\"}} 0\nvllm:num_requests_waiting{{engine=\"2\"}} 6\n\
                 vllm:generation_tokens_total{{engine=\"0\"}} {a}\nvllm:generation_tokens_total{{engine=\"2\"}} {b}\n"
            )
        };
        let movement = of(&[page(0, &text(10, 5)), page(60, &text(90, 5))], &VLLM);
        assert_eq!((movement.moved, movement.stall), (Ok(true), None));
        assert_eq!(movement.ranks.keys().collect::<Vec<_>>(), ["2"]);
        assert_eq!(movement.ranks["2"].waiting, (6.0, 6.0));
        // When both stand still it is the engine that stalls.
        let movement = of(&[page(0, &text(10, 5)), page(60, &text(10, 5))], &VLLM);
        assert!(movement.stall.is_some() && movement.ranks.is_empty());
    }

    #[rstest]
    #[case::a_long_generation(7, 9, None)]
    #[case::nothing_at_all(7, 7, Some(60))]
    fn sglang_counts_tokens_only_at_the_end_of_a_request(#[case] before: u32, #[case] now: u32, #[case] seconds: Option<i64>) {
        let text = |count: u32| {
            format!(
                "sglang:num_running_reqs{{tp_rank=\"0\"}} 1\nsglang:num_queue_reqs{{tp_rank=\"0\"}} 0\nsglang:prompt_tokens_total 5\n\
                 sglang:generation_tokens_total 5\n# TYPE sglang:inter_token_latency_seconds histogram\n\
                 sglang:inter_token_latency_seconds_bucket{{le=\"+Inf\"}} {count}\nsglang:inter_token_latency_seconds_count {count}\n"
            )
        };
        let movement = of(&[page(0, &text(before)), page(60, &text(now))], &SGLANG);
        assert_eq!(movement.stall.map(|stall| stall.seconds()), seconds);
        assert_eq!(movement.moved, Ok(seconds.is_none()));
    }

    #[rstest]
    #[case(&[], Err("no sample yet"))]
    #[case(&[vllm(0, 0, 0, 1, 1)], Err("one sample only"))]
    #[case(&[vllm(0, 0, 0, 1, 1), vllm(1, 0, 0, 1, 1)], Ok(false))]
    #[case(&[vllm(0, 0, 0, 1, 1), vllm(1, 0, 0, 2, 1)], Ok(true))]
    #[case(&[vllm(0, 0, 0, 9, 9), vllm(1, 0, 0, 2, 1)], Err("the engine restarted between the samples"))]
    #[case(&[page(0, "vllm:num_requests_running 1\n"), page(60, "vllm:num_requests_running 1\n")], Err("no token counter is on both pages"))]
    fn movement_is_known_or_says_why(#[case] pages: &[MetricPage], #[case] wanted: Result<bool, &str>) {
        assert_eq!(of(pages, &VLLM).moved.map_err(|why| why.why().to_owned()), wanted.map_err(str::to_owned));
    }

    proptest! {
        #[test]
        fn rates_are_never_negative(values in proptest::collection::vec((0_u64..1 << 40, 0_u64..1 << 40, 0_i64..100), 2..8)) {
            let mut second = 0;
            let pages: Vec<MetricPage> = values
                .iter()
                .map(|(prompt, generated, step)| { second += step; vllm(second, 1, 1, *prompt, *generated) })
                .collect();
            for pair in pages.windows(2) {
                for (name, rate) in rates(Some(&pair[0]), &pair[1], &VLLM) {
                    if let Ok(rate) = rate {
                        prop_assert!(rate >= 0.0 && rate.is_finite(), "{name} {rate}");
                    }
                }
            }
        }
    }

    #[test]
    fn rates_add_ranks_up() {
        let text = |a: u32, b: u32| format!("vllm:prompt_tokens_total{{engine=\"0\"}} {a}\nvllm:prompt_tokens_total{{engine=\"1\"}} {b}\n");
        let (before, now) = (page(0, &text(10, 100)), page(10, &text(30, 200)));
        let rates = rates(Some(&before), &now, &VLLM);
        assert_eq!(rates["prompt-tokens"], Ok(12.0));
        assert_eq!(rates["generation-tokens"].as_ref().unwrap_err().why(), "vllm:generation_tokens_total is not on the page");
    }
}
