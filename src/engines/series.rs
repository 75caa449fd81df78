//! From a page to numbers by rank.
//!
//! Owns which samples of a family count: data-parallel ranks add up, tensor-parallel ranks repeat each other, SGLang's series by
//! priority repeat their total. Must not know what the numbers mean.

use std::collections::BTreeMap;

use super::exposition::{Page, Role, Sample};
use super::names::{Name, Names};
use crate::model::unknown::unknown;
use crate::model::{Known, text};

/// A series that was found, by rank.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Found {
    /// Its full name on the page.
    pub(super) name: String,
    /// Values by rank; a rank has several where several models or workers share it.
    pub(super) ranks: BTreeMap<String, Vec<f64>>,
}

impl Found {
    /// Sum of all.
    pub(super) fn sum(&self) -> f64 {
        self.ranks.values().flatten().sum()
    }

    /// Sum by rank.
    pub(super) fn sums(&self) -> BTreeMap<String, f64> {
        self.ranks.iter().map(|(rank, values)| (rank.clone(), values.iter().sum())).collect()
    }

    /// Mean of each rank.
    pub(super) fn means(&self) -> BTreeMap<String, f64> {
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len().max(1) as f64;
        self.ranks.iter().map(|(rank, values)| (rank.clone(), mean(values))).collect()
    }
}

/// The first of these names that the page has, with the values that count. Names are tried in order, so a page that has the old
/// name beside the new one is counted once.
pub(super) fn find(page: &Page, names: &Names, list: &[Name]) -> Known<Found> {
    if list.is_empty() {
        return unknown("this engine has no such metric");
    }
    let mut empty = None;
    for name in list {
        for full in names.full(name.base) {
            let samples = counting(page, &full, name.only);
            if samples.iter().any(|sample| sample.value().is_infinite()) {
                return unknown(format!("{full} is infinite, which can not be"));
            }
            if let Some(found) = by_rank(&full, &samples) {
                return Ok(found);
            }
            if !samples.is_empty() || page.describe(&full).is_some() {
                empty.get_or_insert(full);
            }
        }
    }
    match empty {
        Some(name) => unknown(format!("{name} is on the page without a value")),
        None => {
            let tried: Vec<String> = list.iter().filter_map(|name| names.full(name.base).next()).collect();
            unknown(match tried.as_slice() {
                [one] => format!("{one} is not on the page"),
                many => format!("none of {} is on the page", many.join(", ")),
            })
        }
    }
}

/// As [`find`], of a thing that is counted: below 0 it can not be, so nothing is known of it.
pub(super) fn amount(page: &Page, names: &Names, list: &[Name]) -> Known<Found> {
    let found = find(page, names, list)?;
    match found.ranks.values().flatten().copied().reduce(f64::min).filter(|least| *least < 0.0) {
        Some(least) => unknown(format!("{} is {least}, and it can not be below 0", found.name)),
        None if !found.sum().is_finite() => unknown(format!("{} adds up to more than a number can hold", found.name)),
        None => Ok(found),
    }
}

/// The last of samples with the same labels: a page that has a series twice means one thing, not two.
fn without_repeats(samples: Vec<Sample<'_>>) -> Vec<Sample<'_>> {
    if samples.len() < 2 {
        return samples;
    }
    let mut places: BTreeMap<Vec<(&str, &str)>, usize> = BTreeMap::new();
    let mut out: Vec<Sample<'_>> = Vec::with_capacity(samples.len());
    for sample in samples {
        let place = *places.entry(sample.labels().collect()).or_insert(out.len());
        match out.get_mut(place) {
            Some(earlier) => *earlier = sample,
            None => out.push(sample),
        }
    }
    out
}

/// The first of an engine's main series that stands on the page more than once with the same labels.
pub(super) fn repeated(page: &Page, names: &Names) -> Option<String> {
    let lists = [names.running, names.waiting, names.kv_usage, names.prompt_tokens, names.generation_tokens];
    lists.into_iter().flatten().flat_map(|name| names.full(name.base)).find(|full| {
        let samples: Vec<Sample<'_>> = page.family(full).filter(|sample| sample.role() == Role::Value).collect();
        let count = samples.len();
        without_repeats(samples).len() < count
    })
}

/// The samples of a family that count. Sums, counts and buckets of histograms are not among them.
pub(super) fn counting<'p>(page: &'p Page, full: &str, only: Option<(&str, &str)>) -> Vec<Sample<'p>> {
    let samples = page
        .family(full)
        .filter(|sample| sample.role() == Role::Value)
        .filter(|sample| only.is_none_or(|(label, value)| sample.label(label) == Some(value)))
        .collect();
    first_of_group(without_priorities(without_repeats(samples)))
}

/// Drops SGLang's series by priority where their total (`priority=""`) stands beside them.
fn without_priorities(samples: Vec<Sample<'_>>) -> Vec<Sample<'_>> {
    let priority = |sample: &Sample<'_>| sample.label("priority").unwrap_or_default().to_owned();
    if samples.iter().all(|sample| priority(sample).is_empty()) {
        return samples;
    }
    let others = |sample: &Sample<'_>| -> Vec<(String, String)> {
        sample.labels().filter(|(name, _)| *name != "priority").map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
    };
    let totals: Vec<_> = samples.iter().filter(|sample| priority(sample).is_empty()).map(others).collect();
    samples.into_iter().filter(|sample| priority(sample).is_empty() || !totals.contains(&others(sample))).collect()
}

/// Of the tensor-, pipeline- and expert-parallel ranks of one data-parallel rank, which all report the same, only the first. With
/// data-parallel attention the first has a number of its own in each (`dp_rank="1", tp_rank="4"`). A page that has no
/// data-parallel label and starts at a later rank is of a follower: its leader reports the same.
fn first_of_group(samples: Vec<Sample<'_>>) -> Vec<Sample<'_>> {
    let place = |sample: &Sample<'_>| -> [u32; 3] {
        ["tp_rank", "pp_rank", "moe_ep_rank"].map(|label| sample.label(label).and_then(|text| text.parse().ok()).unwrap_or(0))
    };
    let group = |sample: &Sample<'_>| sample.label("dp_rank").map(str::to_owned);
    let mut firsts: BTreeMap<Option<String>, [u32; 3]> = BTreeMap::new();
    for sample in &samples {
        let first = firsts.entry(group(sample)).or_insert_with(|| place(sample));
        *first = place(sample).min(*first);
    }
    samples
        .into_iter()
        .filter(|sample| {
            let first = firsts.get(&group(sample)).copied().unwrap_or_default();
            // `moe_ep_rank` follows `tp_rank` and does not tell groups apart.
            let is_first = place(sample).get(..2) == first.get(..2);
            is_first && (group(sample).is_some() || first.first() == Some(&0))
        })
        .collect()
}

fn by_rank(full: &str, samples: &[Sample<'_>]) -> Option<Found> {
    let mut ranks: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for sample in samples.iter().filter(|sample| sample.value().is_finite()) {
        ranks.entry(rank(*sample)).or_default().push(sample.value());
    }
    (!ranks.is_empty()).then(|| Found { name: full.to_owned(), ranks })
}

/// The data-parallel rank of a sample: `engine` (vLLM), `dp_rank` (SGLang); a page without them has the one rank `0`.
pub(super) fn rank(sample: Sample<'_>) -> String {
    let label = ["engine", "dp_rank"].into_iter().find_map(|name| sample.label(name).filter(|value| !value.is_empty()));
    text::clean_name(label.unwrap_or("0")).to_string()
}

#[cfg(test)]
mod tests {
    use super::super::exposition::read;
    use super::super::names::{SGLANG, VLLM};
    use super::*;
    use rstest::rstest;

    fn found(names: &Names, list: &[Name], page: &str) -> Known<Found> {
        find(&read(page.as_bytes(), &super::super::wanted()), names, list)
    }

    #[rstest]
    #[case::tensor_ranks("sglang:num_running_reqs{tp_rank=\"0\"} 5\nsglang:num_running_reqs{tp_rank=\"1\"} 5\n", 5.0)]
    #[case::pipeline(
        "sglang:num_running_reqs{tp_rank=\"0\",pp_rank=\"0\"} 5\nsglang:num_running_reqs{tp_rank=\"0\",pp_rank=\"1\"} 5\n",
        5.0
    )]
    #[case::data_ranks(
        "sglang:num_running_reqs{dp_rank=\"0\",tp_rank=\"0\"} 5\nsglang:num_running_reqs{dp_rank=\"1\",tp_rank=\"0\"} 2\n",
        7.0
    )]
    #[case::data_parallel_attention(
        "sglang:num_running_reqs{dp_rank=\"0\",tp_rank=\"0\"} 5\nsglang:num_running_reqs{dp_rank=\"0\",tp_rank=\"1\"} 5\nsglang:num_running_reqs{dp_rank=\"1\",tp_rank=\"4\"} 2\n",
        7.0
    )]
    #[case::priorities(
        "sglang:num_running_reqs{tp_rank=\"0\",priority=\"\"} 5\nsglang:num_running_reqs{tp_rank=\"0\",priority=\"1\"} 3\nsglang:num_running_reqs{tp_rank=\"0\",priority=\"2\"} 2\n",
        5.0
    )]
    #[case::priorities_without_total("sglang:num_running_reqs{priority=\"1\"} 3\nsglang:num_running_reqs{priority=\"2\"} 2\n", 5.0)]
    #[case::underscore("sglang_num_running_reqs{dp_rank=\"0\"} 3\nsglang_num_running_reqs{dp_rank=\"1\"} 4\n", 7.0)]
    #[case::no_rank("sglang:num_running_reqs 3\n", 3.0)]
    #[case::nan_is_no_value("sglang:num_running_reqs{dp_rank=\"0\"} NaN\nsglang:num_running_reqs{dp_rank=\"1\"} 4\n", 4.0)]
    fn sglang_counts_each_request_once(#[case] page: &str, #[case] wanted: f64) {
        assert_eq!(found(&SGLANG, SGLANG.running, page).unwrap().sum(), wanted);
    }

    #[rstest]
    #[case::negative("vllm:num_requests_running -5\n", "vllm:num_requests_running is -5, and it can not be below 0")]
    #[case::infinite("vllm:num_requests_running +Inf\n", "vllm:num_requests_running is infinite, which can not be")]
    #[case::one_of_two(
        "vllm:num_requests_running{engine=\"0\"} 2\nvllm:num_requests_running{engine=\"1\"} +Inf\n",
        "vllm:num_requests_running is infinite, which can not be"
    )]
    fn what_can_not_be_is_unknown(#[case] page: &str, #[case] why: &str) {
        let page = read(page.as_bytes(), &super::super::wanted());
        assert_eq!(amount(&page, &VLLM, VLLM.running).unwrap_err().why(), why);
    }

    #[test]
    fn a_series_that_stands_twice_counts_once_and_the_last_holds() {
        let text = "vllm:num_requests_running{engine=\"0\"} 3\nvllm:num_requests_running{engine=\"1\"} 1\nvllm:num_requests_running{engine=\"0\"} 5\n";
        let page = read(text.as_bytes(), &super::super::wanted());
        assert_eq!(find(&page, &VLLM, VLLM.running).unwrap().sum(), 6.0);
        assert_eq!(repeated(&page, &VLLM).as_deref(), Some("vllm:num_requests_running"));
        let once = read(b"vllm:num_requests_running{engine=\"0\"} 3\nvllm:num_requests_running{engine=\"1\"} 3\n", &super::super::wanted());
        assert_eq!(repeated(&once, &VLLM), None);
    }

    #[rstest]
    #[case::absent(&VLLM, VLLM.kv_usage, "vllm:num_requests_running 1\n", "none of vllm:kv_cache_usage_perc, vllm:gpu_cache_usage_perc is on the page")]
    #[case::one(&VLLM, VLLM.running, "vllm:num_requests_waiting 1\n", "vllm:num_requests_running is not on the page")]
    #[case::nan(&VLLM, VLLM.running, "vllm:num_requests_running NaN\n", "vllm:num_requests_running is on the page without a value")]
    #[case::declared(&VLLM, VLLM.running, "# TYPE vllm:num_requests_running gauge\n", "vllm:num_requests_running is on the page without a value")]
    #[case::follower(&SGLANG, SGLANG.running, "sglang:num_running_reqs{tp_rank=\"8\"} 5\n", "sglang:num_running_reqs is on the page without a value")]
    fn what_is_missing_is_unknown(#[case] names: &Names, #[case] list: &[Name], #[case] page: &str, #[case] why: &str) {
        assert_eq!(found(names, list, page).unwrap_err().why(), why);
    }

    #[rstest]
    #[case("vllm:kv_cache_usage_perc 0.4\nvllm:gpu_cache_usage_perc 0.4\n", "vllm:kv_cache_usage_perc", 0.4)]
    #[case("vllm:gpu_cache_usage_perc 0.5\n", "vllm:gpu_cache_usage_perc", 0.5)]
    #[case("vllm:kv_cache_usage_perc NaN\nvllm:gpu_cache_usage_perc 0.5\n", "vllm:gpu_cache_usage_perc", 0.5)]
    #[case("ray_vllm:gpu_cache_usage_perc 0.6\n", "ray_vllm:gpu_cache_usage_perc", 0.6)]
    fn the_name_that_was_used_is_told(#[case] page: &str, #[case] name: &str, #[case] value: f64) {
        let found = found(&VLLM, VLLM.kv_usage, page).unwrap();
        assert_eq!((found.name.as_str(), found.sum()), (name, value));
    }
}
