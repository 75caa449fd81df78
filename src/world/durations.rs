//! How long loading usually takes, learnt per model, engine version and accelerator; ETA and "slower than usual" from it.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::facts::LearntDuration;
use crate::model::ladder::Stage;
use crate::model::object::{Body, Catalogue};
use crate::model::service::{Replica, ReplicaClaim};
use crate::model::unknown::unknown;
use crate::model::{Subject, time};

/// Most samples kept of one key; the newest stay.
const MAX_SAMPLES: usize = 64;
/// Longest load that is believed, seconds: beyond it a Ready condition speaks of something else than the load.
const MAX_LOAD_S: i64 = 6 * 3600;

/// What durations are kept by.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    /// Model.
    pub model: String,
    /// Engine word.
    pub engine: String,
    /// Engine version; empty where not known.
    pub version: String,
    /// Accelerator; empty where not known.
    pub accelerator: String,
}

/// Learnt durations by key and stage, seconds. The pseudo-stage of a whole load is `Started`: container start to Ready.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Durations {
    samples: BTreeMap<(Key, Stage), Vec<f64>>,
}

impl Durations {
    /// Durations of a file, bounded.
    pub fn from_learnt(learnt: &[LearntDuration]) -> Self {
        let mut durations = Self::default();
        for entry in learnt {
            let key = Key {
                model: entry.model.clone(),
                engine: entry.engine.clone(),
                version: entry.version.clone(),
                accelerator: entry.accelerator.clone(),
            };
            for seconds in &entry.seconds {
                durations.add(key.clone(), entry.stage, *seconds);
            }
        }
        durations
    }

    /// Adds one sample; nonsense (negative, not finite, longer than a load can be) is left out.
    pub fn add(&mut self, key: Key, stage: Stage, seconds: f64) {
        if !(0.0..=MAX_LOAD_S as f64).contains(&seconds) {
            return;
        }
        let samples = self.samples.entry((key, stage)).or_default();
        samples.push(seconds);
        if samples.len() > MAX_SAMPLES {
            samples.remove(0);
        }
    }

    /// Adds all of `other`.
    pub fn merge(&mut self, other: &Self) {
        for ((key, stage), samples) in &other.samples {
            for seconds in samples {
                self.add(key.clone(), *stage, *seconds);
            }
        }
    }

    /// The usual seconds of a stage for this key: the median over what matches best. An exact match wins; then, in this order, the
    /// version, then the accelerator may differ or be unknown. The model never may: its size decides.
    pub fn usual(&self, key: &Key, stage: Stage) -> Option<Usual> {
        let fits = |have: &str, want: &str| have.is_empty() || want.is_empty() || have == want;
        let tiers: [&dyn Fn(&Key) -> bool; 3] = [
            &|have| have.version == key.version && have.accelerator == key.accelerator,
            &|have| fits(&have.accelerator, &key.accelerator),
            &|_| true,
        ];
        tiers.iter().find_map(|tier| {
            let mut samples: Vec<f64> = self
                .samples
                .iter()
                .filter(|((have, of), _)| *of == stage && fits(&have.model, &key.model) && have.engine == key.engine && tier(have))
                .flat_map(|(_, samples)| samples.iter().copied())
                .collect();
            median(&mut samples).map(|seconds| Usual { seconds, samples: samples.len() })
        })
    }

    /// Usual seconds from container start to ready: measured as a whole, or the sum of its stages where each is known.
    pub fn usual_load(&self, key: &Key) -> Option<Usual> {
        let stages = [Stage::Started, Stage::Loading, Stage::Warming];
        let parts: Vec<Usual> = stages.iter().filter_map(|stage| self.usual(key, *stage)).collect();
        let has_inner = self.usual(key, Stage::Loading).is_some();
        match (has_inner, parts.as_slice()) {
            (_, []) => None,
            (true, parts) => Some(Usual {
                seconds: parts.iter().map(|part| part.seconds).sum(),
                samples: parts.iter().map(|part| part.samples).min().unwrap_or(0),
            }),
            (false, [whole, ..]) => Some(*whole),
        }
    }

    /// All samples, in the order of their keys.
    pub fn iter(&self) -> impl Iterator<Item = (&Key, Stage, &[f64])> {
        self.samples.iter().map(|((key, stage), samples)| (key, *stage, samples.as_slice()))
    }
}

/// A usual duration and how many samples it rests on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Usual {
    /// Median, seconds.
    pub seconds: f64,
    /// Samples.
    pub samples: usize,
}

fn median(samples: &mut [f64]) -> Option<f64> {
    samples.sort_by(f64::total_cmp);
    let middle = samples.len() / 2;
    match samples.len() {
        0 => None,
        n if n % 2 == 1 => samples.get(middle).copied(),
        _ => Some((samples.get(middle - 1)? + samples.get(middle)?) / 2.0),
    }
}

/// The key of a replica.
pub fn key_of(objects: &Catalogue, model: &str, replica: &Replica, claim: &ReplicaClaim) -> Option<Key> {
    let (kind, _) = claim.engine.as_ref().ok()?;
    let pod = claim.pods.first()?;
    let version = replica.engine.as_ref().ok().and_then(|engine| engine.version.as_ref().ok().map(|fact| fact.value.clone()));
    Some(Key {
        model: model.to_owned(),
        engine: kind.word().to_owned(),
        version: version.unwrap_or_default(),
        accelerator: accelerator(objects, pod),
    })
}

/// The accelerator of a pod's node by the labels that device plugins and GPU operators set; empty where nothing tells.
pub fn accelerator(objects: &Catalogue, pod: &Subject) -> String {
    let node = match objects.get(pod).map(|object| &object.body) {
        Some(Body::Pod(pod)) => Subject::node(&pod.node),
        _ => return String::new(),
    };
    let Some(node) = objects.get(&node) else { return String::new() };
    ["nvidia.com/gpu.product", "amd.com/gpu.product-name", "cloud.google.com/gke-accelerator", "karpenter.k8s.aws/instance-gpu-name"]
        .into_iter()
        .find_map(|label| node.meta.label(label))
        .unwrap_or_default()
        .to_owned()
}

/// Learns from a replica that has made it: container start to Ready, in the first run only (a later Ready says nothing of a load).
pub fn learn(durations: &mut Durations, key: &Key, replica: &Replica, restarts: u32) {
    if restarts > 0 {
        return;
    }
    let ladder = &replica.ladder;
    let (start, ready) = (ladder.rung(Stage::Started).at(), ladder.rung(Stage::PodReady).at());
    let (Some(start), Some(ready)) = (start, ready) else { return };
    let seconds = time::seconds_between(start, ready);
    if seconds <= 0 || seconds > MAX_LOAD_S {
        return;
    }
    let (loading, warming) = (ladder.rung(Stage::Loading).at(), ladder.rung(Stage::Warming).at());
    match (loading, warming) {
        (Some(loading), Some(warming)) if start <= loading && loading <= warming && warming <= ready => {
            durations.add(key.clone(), Stage::Started, time::seconds_between(start, loading) as f64);
            durations.add(key.clone(), Stage::Loading, time::seconds_between(loading, warming) as f64);
            durations.add(key.clone(), Stage::Warming, time::seconds_between(warming, ready) as f64);
        }
        _ => durations.add(key.clone(), Stage::Started, seconds as f64),
    }
}

/// ETA of a replica that is on its way, and whether it is slower than usual.
pub fn expect(durations: &Durations, key: &Key, replica: &mut Replica, now: Timestamp) {
    if replica.ladder.has(Stage::PodReady) {
        replica.eta_s = unknown("it has arrived");
        return;
    }
    let Some(start) = replica.ladder.rung(Stage::Started).at() else {
        replica.eta_s = unknown("its engine has not started");
        return;
    };
    let elapsed = time::seconds_between(start, now);
    let usual = durations.usual_load(key);
    replica.eta_s = own_prediction(replica, now).or_else(|overdue| match (usual, overdue) {
        (Some(usual), _) if usual.seconds - elapsed as f64 >= 1.0 => Ok(usual.seconds - elapsed as f64),
        (_, Some(overdue)) => unknown(overdue),
        (Some(usual), None) => unknown(format!("overdue: it takes longer than the usual {} already", time::span(usual.seconds as i64))),
        (None, None) => unknown("no load of this model on this engine and accelerator was seen before"),
    });
    if let Some(usual) = usual {
        let limit = usual.seconds * 1.5 + 30.0;
        if elapsed as f64 > limit {
            replica.slower_than_usual = Some(format!(
                "{} since its container started, usual are {} ({} load{} seen)",
                time::span(elapsed),
                time::span(usual.seconds as i64),
                usual.samples,
                if usual.samples == 1 { "" } else { "s" }
            ));
        }
    }
}

/// What the replica's own log predicts, less the time since it said so. `Err` when it predicts nothing; `Err(Some(why))` when the time
/// that it gave is over: that is no "0 s", since nothing tells how long it still takes.
fn own_prediction(replica: &Replica, now: Timestamp) -> Result<f64, Option<String>> {
    let engine = match &replica.engine {
        Ok(engine) => engine,
        Err(_) => return Err(None),
    };
    let Some(fact) = engine.eta_s.as_ref().filter(|fact| fact.value.is_finite()) else { return Err(None) };
    let left = fact.value - time::seconds_between(fact.at, now).max(0) as f64;
    if left >= 1.0 {
        return Ok(left);
    }
    let late = (-left).max(0.0) as i64;
    Err(Some(format!(
        "overdue: its log predicted {} at {}, that was over {} ago",
        time::span(fact.value as i64),
        fact.at,
        time::span(late)
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(model: &str, version: &str, accelerator: &str) -> Key {
        Key { model: model.into(), engine: "vllm".into(), version: version.into(), accelerator: accelerator.into() }
    }

    #[test]
    fn the_best_match_wins_and_the_model_must_fit() {
        let mut d = Durations::default();
        d.add(key("a", "0.19", "H100"), Stage::Started, 100.0);
        d.add(key("a", "0.20", "H100"), Stage::Started, 300.0);
        d.add(key("a", "0.20", "L40S"), Stage::Started, 900.0);
        assert_eq!(d.usual(&key("a", "0.19", "H100"), Stage::Started).map(|u| u.seconds), Some(100.0));
        assert_eq!(d.usual(&key("a", "0.33", "H100"), Stage::Started).map(|u| (u.seconds, u.samples)), Some((200.0, 2)));
        assert_eq!(d.usual(&key("b", "0.19", "H100"), Stage::Started), None);
        assert_eq!(d.usual(&key("a", "0.19", "B200"), Stage::Started).map(|u| u.samples), Some(3));
    }

    #[test]
    fn stages_add_up_to_a_load() {
        let mut d = Durations::default();
        d.add(key("a", "", ""), Stage::Started, 10.0);
        d.add(key("a", "", ""), Stage::Loading, 200.0);
        d.add(key("a", "", ""), Stage::Warming, 40.0);
        assert_eq!(d.usual_load(&key("a", "1", "x")).map(|u| u.seconds), Some(250.0));
    }

    #[test]
    fn nonsense_is_not_learnt_and_samples_are_bounded() {
        let mut d = Durations::default();
        for bad in [-1.0, f64::NAN, f64::INFINITY, 1e9] {
            d.add(key("a", "", ""), Stage::Started, bad);
        }
        assert_eq!(d.iter().count(), 0);
        for n in 0..1000 {
            d.add(key("a", "", ""), Stage::Started, f64::from(n));
        }
        assert_eq!(d.iter().map(|(_, _, samples)| samples.len()).sum::<usize>(), MAX_SAMPLES);
    }
}
