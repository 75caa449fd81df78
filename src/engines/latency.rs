//! Percentiles of what was observed between two pages.
//!
//! Owns how ranks become one histogram: buckets add up, percentiles are never averaged. A rank that restarted between the pages
//! gives nothing. Must not know names.

use super::exposition::{Histogram, Page};
use super::names::Names;
use crate::model::engine::Latency;

/// The first of these histograms that the page has. Percentiles need an earlier page.
pub(super) fn read(page: &Page, earlier: Option<&Page>, names: &Names, list: &[&str]) -> Option<Latency> {
    list.iter().flat_map(|base| names.full(base)).find_map(|name| {
        let now = page.histograms(&name).by_labels;
        let all = now.values().fold(Histogram::default(), |sum, one| sum.merge(one));
        let count = all.count.or(all.observations()).filter(|count| count.is_finite())?;
        let before = earlier.map(|page| page.histograms(&name).by_labels).unwrap_or_default();
        let between = now
            .iter()
            .filter_map(|(labels, histogram)| histogram.delta(before.get(labels)?))
            .fold(Histogram::default(), |sum, one| sum.merge(&one));
        Some(Latency {
            count,
            sum: all.sum.filter(|sum| sum.is_finite()).unwrap_or(0.0),
            p50: between.quantile(0.5),
            p95: between.quantile(0.95),
            p99: between.quantile(0.99),
        })
    })
}

#[cfg(test)]
mod tests {
    use super::super::exposition::{Filter, read as page};
    use super::super::names::VLLM;
    use super::*;

    fn text(engine: &str, fast: u32, slow: u32) -> String {
        let all = fast + slow;
        let label = format!("engine=\"{engine}\"");
        format!(
            "vllm:e2e_request_latency_seconds_bucket{{{label},le=\"1.0\"}} {fast}\n\
             vllm:e2e_request_latency_seconds_bucket{{{label},le=\"2.0\"}} {all}\n\
             vllm:e2e_request_latency_seconds_bucket{{{label},le=\"+Inf\"}} {all}\n\
             vllm:e2e_request_latency_seconds_sum{{{label}}} {all}\n\
             vllm:e2e_request_latency_seconds_count{{{label}}} {all}\n"
        )
    }

    fn latency(now: &str, before: Option<&str>) -> Latency {
        let head = "# TYPE vllm:e2e_request_latency_seconds histogram\n";
        let now = page(format!("{head}{now}").as_bytes(), &Filter::All);
        let before = before.map(|text| page(format!("{head}{text}").as_bytes(), &Filter::All));
        read(&now, before.as_ref(), &VLLM, VLLM.e2e).unwrap()
    }

    #[test]
    fn percentiles_are_of_the_time_between_two_pages_and_of_all_ranks() {
        // Between the pages: rank 0 had one slow request, rank 1 ninety-nine fast ones. A mean of both p50 would say 1.
        let before = text("0", 1000, 0) + &text("1", 0, 1000);
        let now = text("0", 1000, 1) + &text("1", 99, 1000);
        let latency = latency(&now, Some(&before));
        assert_eq!((latency.count, latency.sum), (2100.0, 2100.0));
        assert!((latency.p50.unwrap() - 50.0 / 99.0).abs() < 1e-9);
        assert!((latency.p99.unwrap() - 1.0).abs() < 1e-9);
    }

    #[test]
    fn one_page_or_a_restart_gives_no_percentile() {
        assert_eq!(latency(&text("0", 9, 1), None).p50, None);
        let after_restart = latency(&text("0", 3, 1), Some(&text("0", 9, 1)));
        assert_eq!((after_restart.count, after_restart.p50, after_restart.p99), (4.0, None, None));
    }

    #[test]
    fn a_rank_that_restarted_does_not_hide_the_others() {
        let latency = latency(&(text("0", 1, 0) + &text("1", 20, 0)), Some(&(text("0", 9, 0) + &text("1", 10, 0))));
        assert_eq!(latency.p50, Some(0.5));
    }
}
