//! Which engine it is, and which version.
//!
//! Owns the order of trust: what the container says (given from outside), metric pages, HTTP answers, log phrases.

use super::exposition::{Page, Verdict};
use super::http::{self, Answers};
use super::logs::LogReading;
use super::{MetricPage, Observed};
use crate::model::engine::EngineKind;
use crate::model::unknown::unknown;
use crate::model::{Evidence, Fact, Known, Place, text};

/// Prefixes of families that only one kind of engine writes.
const PREFIXES: &[(&str, EngineKind)] = &[
    ("vllm:", EngineKind::Vllm),
    ("ray_vllm:", EngineKind::Vllm),
    ("ray_vllm_", EngineKind::Vllm),
    ("sglang:", EngineKind::Sglang),
    ("sglang_", EngineKind::Sglang),
    ("trtllm_", EngineKind::OpenAi),
    ("nv_trt_llm_", EngineKind::OpenAi),
    ("tgi_", EngineKind::OpenAi),
    ("llamacpp:", EngineKind::OpenAi),
];

/// The engine whose families are on the page. A page of two (a wrapper that passes its worker's metrics through beside its own)
/// is of the one that has more.
pub fn kind_of_page(page: &Page) -> Option<EngineKind> {
    if !matches!(page.verdict(), Verdict::Metrics) {
        return None;
    }
    let mut counts = std::collections::BTreeMap::new();
    for family in page.families() {
        if let Some((_, kind)) = PREFIXES.iter().find(|(prefix, _)| family.name().starts_with(prefix)) {
            *counts.entry(*kind).or_insert(0_usize) += 1;
        }
    }
    counts.into_iter().max_by_key(|(kind, count)| (*count, std::cmp::Reverse(*kind))).map(|(kind, _)| kind)
}

/// Whether a page holds metrics of an engine.
pub fn is_engine_page(page: &Page) -> bool {
    kind_of_page(page).is_some()
}

/// Which engine it is, and what shows it.
pub(super) fn kind(
    observed: &Observed<'_>,
    pages: &[&MetricPage],
    answers: &Answers<'_>,
    logs: &[LogReading],
) -> Known<(EngineKind, Evidence)> {
    if let Ok(known) = &observed.kind {
        return Ok(known.clone());
    }
    let by_page = || {
        let newest = pages.last()?;
        let kind = kind_of_page(&newest.page)?;
        let family =
            newest.page.families().find(|family| PREFIXES.iter().any(|(prefix, k)| *k == kind && family.name().starts_with(prefix)))?;
        let name = text::clean_name(family.name()).to_string();
        Some((kind, Evidence::new(&newest.subject, Place::Metric(name), format!("on the page {}", newest.path), Some(newest.at))))
    };
    let by_log = || {
        logs.iter().find_map(|log| {
            let kind = log.kind?;
            let line = log.version.as_ref().map(|(_, line)| line).or_else(|| log.reached.values().next())?;
            Some((kind, log.evidence(line)))
        })
    };
    match by_page().or_else(|| http::kind(answers)).or_else(by_log) {
        Some(known) => Ok(known),
        None => unknown(observed.kind.as_ref().err().map_or("nothing tells which engine it is", |why| why.why())),
    }
}

/// Its version: as it answers, as its log says, or as the tag of its image looks like.
pub(super) fn version(observed: &Observed<'_>, answers: &Answers<'_>, logs: &[LogReading]) -> Known<Fact<String>> {
    if let Some(version) = http::version(answers) {
        return Ok(version);
    }
    let current = logs.iter().filter(|log| log.previous_at.is_none());
    if let Some((version, line, log)) = current.filter_map(|log| log.version.as_ref().map(|(version, line)| (version, line, log))).next() {
        return Ok(Fact::new(version.clone(), format!("log of {}", log.container), line.time().unwrap_or(observed.now)));
    }
    let image = observed.container.map(|container| container.image.as_str()).unwrap_or_default();
    match version_of_image(image) {
        Some(version) => Ok(Fact::new(version, "image tag", observed.now)),
        None => unknown("neither an answer, nor the log, nor the image's tag names it"),
    }
}

/// `registry/vllm-openai:v0.19.0` → `0.19.0`. Tags that are no versions (`latest`, a commit) give nothing.
pub(super) fn version_of_image(image: &str) -> Option<String> {
    let name = image.split('@').next()?;
    let (_, tag) = name.rsplit('/').next()?.split_once(':')?;
    let version: String = tag.trim_start_matches('v').chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '.').take(40).collect();
    let parts: Vec<&str> = version.split('.').collect();
    let number = |part: &&str| part.starts_with(|c: char| c.is_ascii_digit());
    (parts.len() >= 2 && parts.iter().take(2).all(number)).then_some(version)
}

#[cfg(test)]
mod tests {
    use super::super::exposition::{Filter, read};
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case("vllm:x 1\n", Some(EngineKind::Vllm))]
    #[case("ray_vllm:x 1\n", Some(EngineKind::Vllm))]
    #[case("sglang:x 1\n", Some(EngineKind::Sglang))]
    #[case("sglang_x 1\n", Some(EngineKind::Sglang))]
    #[case("tgi_queue_size 1\n", Some(EngineKind::OpenAi))]
    #[case("llamacpp:requests_processing 1\n", Some(EngineKind::OpenAi))]
    #[case("dynamo_x 1\nvllm:x 1\n", Some(EngineKind::Vllm))]
    #[case("llm_d_epp_ready_endpoints 1\n", None)]
    #[case("DCGM_FI_DEV_GPU_UTIL 1\n", None)]
    #[case("<html>vllm:x</html>", None)]
    #[case("", None)]
    fn pages(#[case] text: &str, #[case] wanted: Option<EngineKind>) {
        assert_eq!(kind_of_page(&read(text.as_bytes(), &Filter::All)), wanted);
    }

    #[rstest]
    #[case("registry.local/engines/vllm-openai:v0.19.0", Some("0.19.0"))]
    #[case("registry:5000/vllm", None)]
    #[case("lmsysorg/sglang:v0.5.5-cu126", Some("0.5.5"))]
    #[case("vllm/vllm-openai:latest", None)]
    #[case("vllm/vllm-openai:v0.19.0@sha256:abc", Some("0.19.0"))]
    #[case("", None)]
    fn images(#[case] image: &str, #[case] wanted: Option<&str>) {
        assert_eq!(version_of_image(image).as_deref(), wanted);
    }
}
