//! From metric pages to the load of an engine.
//!
//! Owns what is summed, what is averaged and what stays unknown. Must not judge: see [`super::verdict`].

use std::collections::BTreeMap;

use super::exposition::{Page, Verdict};
use super::names::{Names, Reason};
use super::series::{self, Found};
use super::{MetricPage, detect, latency, moves};
use crate::model::engine::{EngineKind, EngineLoad, LoraLoad, RankLoad, SleepReading};
use crate::model::unknown::unknown;
use crate::model::{Fact, Known, Unknown, text};

/// Why a page can not be read as an engine's, if so.
pub(super) fn unusable(page: &Page) -> Option<Unknown> {
    match page.verdict() {
        Verdict::NotMetrics(what) => Some(Unknown::because(format!("the page is no metrics page: {what}"))),
        Verdict::Empty => Some(Unknown::because("the page is empty")),
        Verdict::Metrics if detect::kind_of_page(page).is_none() => Some(Unknown::because("no metric of an engine is on the page")),
        Verdict::Metrics => None,
    }
}

/// The load that the newest of these pages shows, with rates and percentiles since the page before it.
pub(super) fn read(pages: &[&MetricPage], kind: EngineKind) -> Known<EngineLoad> {
    let Some((newest, earlier)) = pages.split_last() else { return unknown("no sample yet") };
    let names = Names::of(kind);
    let (page, at) = (&newest.page, newest.at);
    let find = |list| series::find(page, names, list);
    let amount = |list| series::amount(page, names, list);
    let sum = |found: &Known<Found>| found.as_ref().map(|found| Fact::new(found.sum(), found.name.clone(), at)).map_err(Clone::clone);

    let (running, waiting, swapped) = (amount(names.running), amount(names.waiting), amount(names.swapped));
    let kv = find(names.kv_usage).and_then(|found| usable_share(&found));
    let kv_means = kv.as_ref().map(Found::means).unwrap_or_default();
    let kv_fact = |value: Option<f64>| match (&kv, value) {
        (Ok(found), Some(value)) => Ok(Fact::new(value, found.name.clone(), at)),
        (Err(why), _) => Err(why.clone()),
        (Ok(found), None) => unknown(format!("{} has no value", found.name)),
    };
    let mean = (!kv_means.is_empty()).then(|| kv_means.values().sum::<f64>() / kv_means.len() as f64);
    let most = kv.as_ref().ok().and_then(|found| found.ranks.values().flatten().copied().reduce(f64::max));

    let mut ranks: BTreeMap<String, RankLoad> = BTreeMap::new();
    let mut spread = |values: BTreeMap<String, f64>, set: fn(&mut RankLoad, f64)| {
        for (rank, value) in values {
            set(ranks.entry(rank).or_default(), value);
        }
    };
    spread(running.as_ref().map(Found::sums).unwrap_or_default(), |rank, value| rank.running = Some(value));
    spread(waiting.as_ref().map(Found::sums).unwrap_or_default(), |rank, value| rank.waiting = Some(value));
    spread(swapped.as_ref().map(Found::sums).unwrap_or_default(), |rank, value| rank.swapped = Some(value));
    spread(kv_means, |rank, value| rank.kv_usage = Some(value));

    let before = earlier.last();
    Ok(EngineLoad {
        at,
        ranks,
        running: sum(&running),
        waiting: sum(&waiting),
        swapped: sum(&swapped).ok(),
        kv_usage: kv_fact(mean),
        kv_usage_max: kv_fact(most),
        prompt_tokens: sum(&amount(names.prompt_tokens)),
        generation_tokens: sum(&amount(names.generation_tokens)),
        finished: finished(page, names),
        ttft: latency::read(page, before.map(|page| &*page.page), names, names.ttft),
        inter_token: latency::read(page, before.map(|page| &*page.page), names, names.inter_token),
        e2e: latency::read(page, before.map(|page| &*page.page), names, names.e2e),
        rates: moves::rates(before.copied(), newest, names),
        lora: lora(page, names),
        sleep: sleep(page, names).map(|(reading, name)| Fact::new(reading, name, at)),
        unread: usize::try_from(page.unread().count).unwrap_or(usize::MAX),
        models: models(page, names),
    })
}

/// How far beyond 1 a share may lie by rounding.
const ROUNDING: f64 = 1e-6;

/// Below 0 means "not known" (vLLM's V0 engine wrote -1 in such places); above 1 no share can be, whoever wrote it.
fn usable_share(found: &Found) -> Known<Found> {
    let mut ranks = found.ranks.clone();
    if let Some(most) = ranks.values().flatten().copied().reduce(f64::max).filter(|most| *most > 1.0 + ROUNDING) {
        return unknown(format!("{} is {most}, and a share lies between 0 and 1", found.name));
    }
    ranks.values_mut().flatten().for_each(|value| *value = if (-ROUNDING..0.0).contains(value) { 0.0 } else { value.min(1.0) });
    ranks.values_mut().for_each(|values| values.retain(|value| *value >= 0.0));
    ranks.retain(|_, values| !values.is_empty());
    match ranks.is_empty() {
        true => unknown(format!("{} is below 0", found.name)),
        false => Ok(Found { name: found.name.clone(), ranks }),
    }
}

/// Finished requests by reason, over all ranks.
pub(super) fn finished(page: &Page, names: &Names) -> BTreeMap<String, f64> {
    let mut counts = BTreeMap::new();
    for (list, reason) in names.finished {
        let samples = list
            .iter()
            .flat_map(|base| names.full(base))
            .map(|name| series::counting(page, &name, None))
            .find(|samples| !samples.is_empty())
            .unwrap_or_default();
        for sample in samples.into_iter().filter(|sample| sample.value().is_finite()) {
            let word = match reason {
                Reason::Label(label) => text::clean_name(sample.label(label).unwrap_or("unknown")).to_string(),
                Reason::Fixed(word) => (*word).to_owned(),
            };
            if counts.len() < 64 || counts.contains_key(&word) {
                *counts.entry(word).or_insert(0.0) += sample.value();
            }
        }
    }
    counts
}

/// vLLM's adapters. Each set of names has a series of its own and stays for ever; its value is the time at which it was set, so the
/// highest is the present one.
fn lora(page: &Page, names: &Names) -> Option<LoraLoad> {
    let newest = names
        .full("lora_requests_info")
        .flat_map(|name| series::counting(page, &name, None))
        .filter(|sample| sample.value().is_finite())
        .max_by(|a, b| a.value().total_cmp(&b.value()))?;
    let list = |label: &str| {
        let joined = newest.label(label).unwrap_or_default();
        joined.split(',').map(str::trim).filter(|name| !name.is_empty()).take(1024).map(|name| text::clean_name(name).to_string()).collect()
    };
    Some(LoraLoad {
        running: list("running_lora_adapters"),
        waiting: list("waiting_lora_adapters"),
        max: newest.label("max_lora").and_then(|text| text.parse().ok()).filter(|max: &f64| max.is_finite()),
    })
}

/// vLLM's sleep as the page shows it, with the series. A call in flight counts before the state that it will change. With several
/// ranks one that sleeps is enough: requests sent to it hang.
pub(super) fn sleep(page: &Page, names: &Names) -> Option<(SleepReading, String)> {
    for name in names.full("sleep_mode_operations_in_flight") {
        let waking = page.family(&name).any(|sample| sample.label("operation") == Some("wake") && sample.value() > 0.0);
        if waking {
            return Some((SleepReading::Waking, format!("{name}{{operation=\"wake\"}}")));
        }
    }
    let name = names.full("engine_sleep_state").find(|name| page.family(name).next().is_some())?;
    let mut ranks: BTreeMap<String, [Option<bool>; 3]> = BTreeMap::new();
    for sample in page.family(&name).filter(|sample| sample.value().is_finite()) {
        let place = match sample.label("sleep_state") {
            Some("awake") => 0,
            Some("weights_offloaded") => 1,
            Some("discard_all") => 2,
            _ => continue,
        };
        if let Some(cell) = ranks.entry(series::rank(sample)).or_default().get_mut(place) {
            *cell = Some(sample.value() > 0.0);
        }
    }
    ranks
        .into_values()
        .filter_map(|[awake, offloaded, dropped]| match (awake?, offloaded, dropped) {
            (true, _, _) => Some(SleepReading::Awake),
            (false, _, Some(true)) => Some(SleepReading::Asleep(2)),
            (false, Some(true), _) => Some(SleepReading::Asleep(1)),
            (false, _, _) => Some(SleepReading::Asleep(0)),
        })
        .max_by_key(|reading| match reading {
            SleepReading::Awake => 0,
            SleepReading::Waking => 1,
            SleepReading::Asleep(level) => 2 + u16::from(*level),
        })
        .map(|reading| (reading, name))
}

/// Model names on the page: the first served name of each engine.
fn models(page: &Page, names: &Names) -> Vec<String> {
    let mut models = Vec::new();
    for name in names.running.iter().chain(names.waiting).flat_map(|name| names.full(name.base)) {
        for model in page.family(&name).filter_map(|sample| sample.label("model_name")) {
            let model = text::clean_name(model).to_string();
            if !model.is_empty() && models.len() < 64 && !models.contains(&model) {
                models.push(model);
            }
        }
    }
    models
}

#[cfg(test)]
mod tests {
    use super::super::exposition::read as read_page;
    use super::*;
    use crate::model::Subject;
    use rstest::rstest;

    #[rstest]
    #[case("0.5", Ok(0.5))]
    #[case("1.0000000001", Ok(1.0))]
    #[case("-0.0000000001", Ok(0.0))]
    #[case("57.3", Err("vllm:kv_cache_usage_perc is 57.3, and a share lies between 0 and 1"))]
    #[case("2", Err("vllm:kv_cache_usage_perc is 2, and a share lies between 0 and 1"))]
    #[case("-3", Err("vllm:kv_cache_usage_perc is below 0"))]
    #[case("1e400", Err("vllm:kv_cache_usage_perc is infinite, which can not be"))]
    fn shares(#[case] value: &str, #[case] wanted: Result<f64, &str>) {
        let text = format!("vllm:num_requests_running 1\nvllm:kv_cache_usage_perc {value}\n");
        let page = MetricPage {
            subject: Subject::pod("s", "a"),
            port: None,
            path: "/metrics".into(),
            at: jiff::Timestamp::UNIX_EPOCH,
            page: read_page(text.as_bytes(), &super::super::wanted()).into(),
        };
        let load = read(&[&page], EngineKind::Vllm).unwrap();
        assert_eq!(load.kv_usage.as_ref().map(|fact| fact.value).map_err(|why| why.why()), wanted);
        assert_eq!(load.kv_usage_max.is_ok(), wanted.is_ok());
    }
}
