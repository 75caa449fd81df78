//! What the router of a pool (an endpoint picker, EPP) says about its endpoints.
//!
//! Reads the metric pages of the pods behind the pool's picker Service. Names are those of llm-d-router v0.10.0 and their older twins of
//! the Gateway API Inference Extension. An EPP counts engine ranks (`<pod>-rank-<i>`): they are mapped back to pods here.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use super::epp::{MASTER, Picker};
use super::flow::Flow;
use crate::engines::MetricPage;
use crate::model::object::Catalogue;
use crate::model::unknown::unknown;
use crate::model::{Evidence, Fact, Known, Place, Subject};

/// Queue of each endpoint that the router knows: name of the family, and of the label that names the endpoint.
const PER_ENDPOINT: &[(&str, &str)] =
    &[("llm_d_epp_per_endpoint_queue_size", "model_server_endpoint"), ("inference_pool_per_pod_queue_size", "model_server_pod")];

/// Number of endpoints with fresh metrics.
const READY: &[&str] = &["llm_d_epp_ready_endpoints", "inference_pool_ready_pods"];

/// Prefixes of the families that this module and its rules read.
pub const ROUTER_PREFIXES: &[&str] =
    &["llm_d_epp_", "llm_d_inference_scheduler_", "inference_pool_", "inference_extension_", "inference_objective_", "inference_model_"];

/// What one pool's router says.
#[derive(Debug, Clone, PartialEq)]
pub struct RouterReading {
    /// The pod whose page it is: the one that knows endpoints (followers know none).
    pub pod: Subject,
    /// When the page was taken.
    pub at: Timestamp,
    /// Endpoints (ranks) by pod name; `None` where the page does not name them.
    pub endpoints: Option<BTreeMap<String, BTreeSet<String>>>,
    /// Endpoints with fresh metrics, as the router counts them (ranks).
    pub ready: Known<Fact<f64>>,
    /// Whether the page is the leader's (or that of the only replica): followers keep counts too, and theirs are not to be trusted.
    pub from_leader: bool,
    /// Queue, saturation, outcomes and errors on the page.
    pub flow: Flow,
    /// The same on the page before that, with its time.
    pub earlier: Option<(Timestamp, Flow)>,
    /// Name of the family that names the endpoints.
    family: &'static str,
}

impl RouterReading {
    /// Whether the router counts this pod; unknown where it does not name its endpoints.
    pub fn counts(&self, pod: &Subject) -> Known<bool> {
        match &self.endpoints {
            Some(endpoints) => Ok(endpoints.contains_key(pod.name())),
            None => unknown(format!("the router {} does not name its endpoints", self.pod)),
        }
    }

    /// Evidence that it counts the pod.
    pub fn evidence(&self, pod: &Subject) -> Evidence {
        let ranks = self.endpoints.as_ref().and_then(|endpoints| endpoints.get(pod.name())).map_or(0, BTreeSet::len);
        let value = format!("counts {} with {ranks} {}", pod.name(), if ranks == 1 { "endpoint" } else { "endpoints" });
        Evidence::new(&self.pod, Place::Metric(self.family.into()), value, Some(self.at))
    }

    /// Endpoints that it counts, in words: "16 endpoints: 8 data-parallel ranks in each of 2 pods". `None` where it does not name them.
    pub fn shape(&self) -> Option<String> {
        let endpoints = self.endpoints.as_ref()?;
        let ranks = self.ranks()?;
        let per_pod: BTreeSet<usize> = endpoints.values().map(BTreeSet::len).collect();
        let pods = if endpoints.len() == 1 { "1 pod".to_owned() } else { format!("{} pods", endpoints.len()) };
        let counted = if ranks == 1 { "1 endpoint".to_owned() } else { format!("{ranks} endpoints") };
        Some(match per_pod.iter().copied().collect::<Vec<_>>().as_slice() {
            [] | [1] if endpoints.len() < 2 => format!("the router counts {counted}"),
            [] | [1] => format!("the router counts {counted}, one in each of {pods}"),
            [n] if endpoints.len() == 1 => format!("the router counts {counted}: {n} data-parallel ranks of 1 pod, so 1 replica"),
            [n] => format!("the router counts {counted}: {n} data-parallel ranks in each of {pods}, so {pods} and not {ranks} replicas"),
            _ => format!("the router counts {counted}: data-parallel ranks of {pods}"),
        })
    }

    /// Endpoints (ranks) that it names in all.
    pub fn ranks(&self) -> Option<usize> {
        self.endpoints.as_ref().map(|endpoints| endpoints.values().map(BTreeSet::len).sum())
    }
}

/// The readings of all pools whose router was asked. Replicas are never added up: the leader's page counts, followers report too.
pub fn routers(
    objects: &Catalogue,
    pickers: &BTreeMap<Subject, Picker>,
    pages: &BTreeMap<Subject, Vec<MetricPage>>,
) -> BTreeMap<Subject, RouterReading> {
    let mut out = BTreeMap::new();
    for (object, _) in objects.pools() {
        let Some(picker) = pickers.get(&object.subject()) else { continue };
        let mut readings: Vec<RouterReading> = picker
            .pods
            .iter()
            .filter_map(|pod| {
                let pages = pages.get(pod)?;
                let mut reading = reading(pod, object.meta.name.as_str(), pages.last()?)?;
                let before = pages.len().checked_sub(2).and_then(|i| pages.get(i));
                reading.earlier = before.map(|page| (page.at, Flow::read(&page.page, object.meta.name.as_str())));
                Some(reading)
            })
            .collect();
        for reading in &mut readings {
            let leads = picker.leader.as_ref().ok().map(|(leader, _)| *leader == reading.pod);
            reading.from_leader = match (leads, master(pages.get(&reading.pod))) {
                (Some(leads), _) => leads,
                (None, Some(master)) => master,
                // Without election every replica leads, and a lone pod has nobody to follow.
                (None, None) => picker.election.is_none() || picker.pods.len() == 1,
            };
        }
        if let Some(best) = readings.into_iter().max_by_key(|reading| (reading.from_leader, reading.ranks().unwrap_or(0) > 0, reading.at)) {
            out.insert(object.subject(), best);
        }
    }
    out
}

/// Whether the newest page says that its process leads.
fn master(pages: Option<&Vec<MetricPage>>) -> Option<bool> {
    let page = pages?.last()?;
    page.page
        .family(MASTER)
        .find(|sample| sample.label("name").is_none_or(|name| name.starts_with("epp-")))
        .map(|sample| sample.value() == 1.0)
}

/// Reads one router page; `None` where it is no router's page.
fn reading(pod: &Subject, pool: &str, page: &MetricPage) -> Option<RouterReading> {
    let of_pool = |name: Option<&str>| name.is_none_or(|name| name == pool);
    let mut family_used = "";
    let mut endpoints: Option<BTreeMap<String, BTreeSet<String>>> = None;
    for (family, label) in PER_ENDPOINT {
        for sample in page.page.family(family).filter(|sample| of_pool(sample.label("name"))) {
            let Some(name) = sample.label(label) else { continue };
            let (pod_name, rank) = split_rank(name);
            endpoints.get_or_insert_default().entry(pod_name.to_owned()).or_default().insert(rank.to_owned());
            family_used = family;
        }
        if endpoints.is_some() {
            break;
        }
    }
    let ready = READY
        .iter()
        .find_map(|family| {
            let mut samples = page.page.family(family).filter(|sample| of_pool(sample.label("name"))).peekable();
            samples.peek()?;
            Some(Fact::new(samples.map(|sample| sample.value()).sum::<f64>(), *family, page.at))
        })
        .ok_or_else(|| crate::model::Unknown::because(format!("none of {} is on its page", READY.join(", "))));
    if endpoints.is_none() && ready.is_err() {
        return None;
    }
    // A router that counts no endpoint has no series of them: that is a known "none", not "unknown".
    if endpoints.is_none() && ready.as_ref().is_ok_and(|fact| fact.value == 0.0) {
        endpoints = Some(BTreeMap::new());
    }
    Some(RouterReading {
        pod: pod.clone(),
        at: page.at,
        endpoints,
        ready,
        from_leader: false,
        flow: Flow::read(&page.page, pool),
        earlier: None,
        family: family_used,
    })
}

/// `<pod>-rank-<i>` → (pod, rank); a name without rank is rank 0.
fn split_rank(name: &str) -> (&str, &str) {
    match name.rsplit_once("-rank-") {
        Some((pod, rank)) if !rank.is_empty() && rank.bytes().all(|b| b.is_ascii_digit()) => (pod, rank),
        _ => (name, "0"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case("qwen-a-7c9-2xkqv-rank-0", ("qwen-a-7c9-2xkqv", "0"))]
    #[case("a-rank-x-rank-11", ("a-rank-x", "11"))]
    #[case("a-rank-", ("a-rank-", "0"))]
    #[case("a", ("a", "0"))]
    fn ranks_are_mapped_back_to_pods(#[case] name: &str, #[case] wanted: (&str, &str)) {
        assert_eq!(split_rank(name), wanted);
    }
}
