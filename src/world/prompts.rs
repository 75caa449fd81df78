//! Where an engine's prompt tokens came from between its last two pages: computed here, or handed over by a prefill engine.
//!
//! vLLM's `prompt_tokens_by_source_total` (0.33.0). SGLang has no such counter. Read before older pages are dropped.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::flow::grown;
use crate::engines::MetricPage;
use crate::model::Subject;

/// Names of the family, by how the page was exported.
const FAMILIES: &[&str] =
    &["vllm:prompt_tokens_by_source_total", "ray_vllm:prompt_tokens_by_source_total", "ray_vllm_prompt_tokens_by_source_total"];
/// Source of tokens that this engine computed.
pub const LOCAL: &str = "local_compute";
/// Source of tokens that another engine computed.
pub const TRANSFER: &str = "external_kv_transfer";

/// Growth of the counters between two pages.
#[derive(Debug, Clone, PartialEq)]
pub struct PromptSources {
    /// Time of the older page.
    pub from: Timestamp,
    /// Time of the newer page.
    pub until: Timestamp,
    /// Tokens by source.
    pub grown: BTreeMap<String, f64>,
}

/// Growth by engine, for engines with two pages.
pub fn sources(pages: &BTreeMap<Subject, Vec<MetricPage>>) -> BTreeMap<Subject, PromptSources> {
    pages
        .iter()
        .filter_map(|(subject, list)| {
            let [.., before, now] = list.as_slice() else { return None };
            let (old, new) = (read(before), read(now));
            let grown: BTreeMap<String, f64> =
                new.iter().filter_map(|(source, value)| Some((source.clone(), grown(old.get(source).copied(), Some(*value))?))).collect();
            (!grown.is_empty()).then(|| (subject.clone(), PromptSources { from: before.at, until: now.at, grown }))
        })
        .collect()
}

fn read(page: &MetricPage) -> BTreeMap<String, f64> {
    let mut out = BTreeMap::new();
    for sample in FAMILIES.iter().flat_map(|family| page.page.family(family)) {
        if let Some(source) = sample.label("source") {
            *out.entry(source.to_owned()).or_insert(0.0) += sample.value();
        }
    }
    out
}
