//! Cards and MIG slices as a node's exporter shows them: use, memory, and which pods hold them.
//!
//! NVIDIA's dcgm-exporter (2.x to 4.8). Keyed by index below the node; MIG slices by their instance id. With time slicing one line a pod
//! repeats the value of the card: it counts once. A field may be missing, a sentinel stands for "not supported": both are unknown.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use crate::engines::MetricPage;
use crate::engines::exposition::Sample;
use crate::model::object::Catalogue;
use crate::model::unknown::unknown;
use crate::model::{Fact, Known, Subject, text};

/// From here on a value is one of DCGM's "not supported" marks, not a measure.
const SENTINEL: f64 = 2_147_483_632.0;

/// Families that are read.
const UTIL: &str = "DCGM_FI_DEV_GPU_UTIL";
const SM_ACTIVE: &str = "DCGM_FI_PROF_SM_ACTIVE";
const GR_ACTIVE: &str = "DCGM_FI_PROF_GR_ENGINE_ACTIVE";
const FB_USED: &str = "DCGM_FI_DEV_FB_USED";
const FB_FREE: &str = "DCGM_FI_DEV_FB_FREE";
const FB_RESERVED: &str = "DCGM_FI_DEV_FB_RESERVED";
const XID: &str = "DCGM_FI_DEV_XID_ERRORS";

/// One card or MIG slice.
#[derive(Debug, Clone, PartialEq)]
pub struct Device {
    /// Its node.
    pub node: Subject,
    /// UUID of the card (of a MIG slice: of the card it is cut from); empty where the page does not tell.
    pub uuid: String,
    /// Model of the card.
    pub model: String,
    /// MIG profile, where it is a slice.
    pub profile: Option<String>,
    /// Share of time in which any kernel ran, 0..1: coarse, and absent on MIG slices.
    pub util: Known<Fact<f64>>,
    /// Share of SM cycles (else of time) with work, 0..1, where profiling fields are exported.
    pub active: Known<Fact<f64>>,
    /// Memory in use, MiB.
    pub memory_used: Known<Fact<f64>>,
    /// All its memory, MiB.
    pub memory_total: Known<f64>,
    /// The last XID error; 0 for none.
    pub xid: Option<f64>,
    /// Pods on it. Unknown where the exporter gives no pod for any device.
    pub held_by: Known<Vec<Subject>>,
    /// Use of single pods, where the exporter tells them apart.
    pub own: BTreeMap<Subject, f64>,
    /// When the page was taken.
    pub at: Timestamp,
}

impl Device {
    /// Whether several pods share it and the page only repeats the card's value for each.
    pub fn mirrored(&self) -> bool {
        self.held_by.as_ref().is_ok_and(|pods| pods.len() > 1) && self.own.is_empty()
    }

    /// Its pods in words: names, or `none`.
    pub fn holders(&self) -> Known<String> {
        let pods = self.held_by.clone()?;
        Ok(if pods.is_empty() { "none".into() } else { pods.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ") })
    }
}

/// Whether a page is one of a GPU exporter that is read here.
pub fn is_exporter_page(page: &MetricPage) -> bool {
    [UTIL, FB_USED, GR_ACTIVE].iter().any(|family| page.page.family(family).next().is_some())
}

/// The pod that a line names. Through Prometheus the exporter's own pod stands in `pod`, and the workload's in `exported_pod`.
pub fn pod_of(sample: &Sample<'_>) -> Option<Subject> {
    [("exported_pod", "exported_namespace"), ("pod", "namespace"), ("pod_name", "pod_namespace")].into_iter().find_map(
        |(pod, namespace)| {
            let pod = sample.label(pod).filter(|pod| !pod.is_empty())?;
            Some(Subject::pod(&text::clean_name(sample.label(namespace).unwrap_or_default()), &text::clean_name(pod)))
        },
    )
}

/// Index of a card, and of the MIG instance on it.
type Key = (u32, Option<u32>);

/// Index and MIG instance of a line.
fn key(sample: &Sample<'_>) -> Option<Key> {
    let index = sample.label("gpu").or_else(|| sample.label("device")?.strip_prefix("nvidia"))?.parse().ok()?;
    Some((index, sample.label("GPU_I_ID").and_then(|id| id.parse().ok())))
}

fn sane(sample: &Sample<'_>) -> Option<f64> {
    let value = sample.value();
    (value.is_finite() && (0.0..SENTINEL).contains(&value)).then_some(value)
}

/// Lines of one family for one device: values by pod.
type Lines = BTreeMap<Key, Vec<(Option<Subject>, Option<f64>)>>;

fn lines(page: &MetricPage, family: &str) -> Lines {
    let mut out = Lines::new();
    for sample in page.page.family(family) {
        if let Some(key) = key(&sample) {
            out.entry(key).or_default().push((pod_of(&sample), sane(&sample)));
        }
    }
    out
}

/// The value of the device: what all lines repeat, or the sum of what they tell apart.
fn of_device(lines: Option<&Vec<(Option<Subject>, Option<f64>)>>) -> Option<f64> {
    let values: Vec<f64> = lines?.iter().filter_map(|(_, value)| *value).collect();
    let first = *values.first()?;
    Some(if values.iter().all(|value| *value == first) { first } else { values.iter().sum() })
}

/// Reads the newest page of a node's exporter. `objects` serves to drop holders that are the exporter itself.
pub fn read(objects: &Catalogue, node: &Subject, page: &MetricPage) -> BTreeMap<Subject, Device> {
    let families = [UTIL, SM_ACTIVE, GR_ACTIVE, FB_USED, FB_FREE, FB_RESERVED, XID];
    let by_family: BTreeMap<&str, Lines> = families.into_iter().map(|family| (family, lines(page, family))).collect();
    let mut about: BTreeMap<Key, (String, String, Option<String>, BTreeSet<Subject>)> = BTreeMap::new();
    let mut labelled = false;
    for sample in families.iter().flat_map(|family| page.page.family(family)) {
        let Some(key) = key(&sample) else { continue };
        let entry = about.entry(key).or_default();
        let fill = |slot: &mut String, label: Option<&str>| {
            if slot.is_empty() {
                *slot = text::clean_name(label.unwrap_or_default());
            }
        };
        fill(&mut entry.0, sample.label("UUID"));
        fill(&mut entry.1, sample.label("modelName"));
        if entry.2.is_none() {
            entry.2 = sample.label("GPU_I_PROFILE").filter(|profile| !profile.is_empty()).map(text::clean_name);
        }
        if let Some(pod) = pod_of(&sample).filter(|pod| !is_exporter(objects, pod)) {
            labelled = true;
            entry.3.insert(pod);
        }
    }
    let held_by = |pods: BTreeSet<Subject>| -> Known<Vec<Subject>> {
        if !labelled {
            return unknown("the exporter gives no pod for any device of this node");
        }
        Ok(pods.into_iter().collect())
    };
    about
        .into_iter()
        .map(|(key, (uuid, model, profile, pods))| {
            let value = |family: &str| of_device(by_family.get(family).and_then(|lines| lines.get(&key)));
            let fact = |family: &'static str, scale: f64| -> Known<Fact<f64>> {
                match value(family) {
                    Some(value) => Ok(Fact::new(value / scale, family, page.at)),
                    None => unknown(format!("{family} is not exported for it")),
                }
            };
            // Memory that lines tell apart adds up to no more than the card has; the card's own value is the highest line otherwise.
            let (used, free) = (value(FB_USED), value(FB_FREE));
            let total = match (used, free) {
                (Some(used), Some(free)) => Ok(used + free + value(FB_RESERVED).unwrap_or(0.0)),
                _ => unknown(format!("{FB_USED} and {FB_FREE} are not both exported for it")),
            };
            let own = own_use(by_family.get(UTIL).and_then(|lines| lines.get(&key)));
            let (index, instance) = key;
            let mut subject = node.part(&format!("gpu/{index}"));
            if let Some(instance) = instance {
                subject = subject.part(&format!("mig/{instance}"));
            }
            let device = Device {
                node: node.clone(),
                uuid,
                model,
                profile,
                util: fact(UTIL, 100.0).map(|fact| fact.map(|value| value.min(1.0))),
                active: fact(SM_ACTIVE, 1.0).or_else(|_| fact(GR_ACTIVE, 1.0)),
                memory_used: fact(FB_USED, 1.0),
                memory_total: total,
                xid: value(XID),
                held_by: held_by(pods),
                own,
                at: page.at,
            };
            (subject, device)
        })
        .collect()
}

/// Use by pod, where the lines of a card differ: they are told apart then.
fn own_use(lines: Option<&Vec<(Option<Subject>, Option<f64>)>>) -> BTreeMap<Subject, f64> {
    let known: BTreeMap<Subject, f64> =
        lines.into_iter().flatten().filter_map(|(pod, value)| Some((pod.clone()?, (*value)? / 100.0))).collect();
    let first = known.values().next().copied();
    let differ = known.values().any(|value| Some(*value) != first);
    if differ { known } else { BTreeMap::new() }
}

fn is_exporter(objects: &Catalogue, pod: &Subject) -> bool {
    objects.pod(pod).is_some_and(|(_, body)| body.spec.containers.iter().any(|container| container.image.contains("dcgm-exporter")))
}
