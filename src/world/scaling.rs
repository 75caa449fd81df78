//! Autoscaling as it stands: what scales an object, and whether that works.
//!
//! An HPA that a ScaledObject made is one autoscaler with it, not a second one: KEDA writes 0 ↔ 1 (or idle ↔ minimum) itself and leaves
//! 1 ↔ N to its HPA. Must not raise findings. Facts: autoscaling/v2 conditions of Kubernetes 1.30 to 1.37, KEDA 2.20.

use std::collections::BTreeMap;

use crate::model::object::autoscale::ScaleTarget;
use crate::model::object::meta::condition;
use crate::model::object::{Body, Catalogue, Condition, Hpa, Object, ScaledObject};
use crate::model::unknown::unknown;
use crate::model::{Evidence, Known, Place, Subject};

/// Whether an object is scaled by somebody.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Works {
    /// Nothing scales it now, although something should.
    Off,
    /// It is held where it is on purpose.
    Paused,
    /// It is scaled.
    On,
}

impl Works {
    /// The word of the public document.
    pub fn word(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Paused => "paused",
            Self::On => "on",
        }
    }
}

/// Which kind of autoscaler it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ScalerKind {
    /// A HorizontalPodAutoscaler.
    Hpa,
    /// A KEDA ScaledObject.
    Keda,
    /// AIBrix: writes the target itself (KPA, APA), or makes an HPA.
    PodAutoscaler,
    /// llm-d's VariantAutoscaling (`llmd.ai`): publishes a number, writes `/scale` only to wake from zero.
    Variant,
}

/// One autoscaler of an object.
#[derive(Debug, Clone, PartialEq)]
pub struct Scaler {
    /// The autoscaler.
    pub subject: Subject,
    /// Its kind.
    pub kind: ScalerKind,
    /// Another autoscaler of the same object that made this one: a ScaledObject's HPA.
    pub made_by: Option<Subject>,
    /// Whether it works, and what shows it.
    pub works: Known<Works>,
    /// In words.
    pub why: String,
    /// What shows it.
    pub evidence: Option<Evidence>,
}

/// All that scales one object.
#[derive(Debug, Clone, PartialEq)]
pub struct Scaling {
    /// Autoscalers that name it as their target, in the order of their subjects.
    pub scalers: Vec<Scaler>,
    /// Whether any of them works.
    pub works: Known<Works>,
    /// Why, in sentences.
    pub why: Vec<String>,
    /// What shows it.
    pub evidence: Vec<Evidence>,
}

impl Scaling {
    /// Autoscalers that no other autoscaler of the same object made.
    pub fn roots(&self) -> impl Iterator<Item = &Scaler> {
        self.scalers.iter().filter(|scaler| scaler.made_by.is_none())
    }

    /// What this autoscaler made: the HPA of a ScaledObject.
    pub fn made(&self, by: &Subject) -> impl Iterator<Item = &Scaler> {
        self.scalers.iter().filter(move |scaler| scaler.made_by.as_ref() == Some(by))
    }
}

/// Everything that is scaled, by the scaled object (which may be named only).
pub fn scaling(objects: &Catalogue) -> BTreeMap<Subject, Scaling> {
    let mut by_target: BTreeMap<Subject, Vec<Scaler>> = BTreeMap::new();
    let mut add = |namespace: &str, target: &ScaleTarget, scaler: Scaler| {
        if !target.name.is_empty() && !target.kind.is_empty() {
            by_target.entry(target.subject(namespace)).or_default().push(scaler);
        }
    };
    for (object, scaled) in objects.scaled_objects() {
        add(&object.meta.namespace, &scaled.target, keda(object, scaled));
    }
    for (object, hpa) in objects.hpas() {
        let made_by = maker(objects, object, hpa);
        add(&object.meta.namespace, &hpa.target, self::hpa(object, hpa, made_by));
    }
    for (_, object) in objects.all() {
        if let Body::Other(body) = &object.body
            && let Some(kind) = foreign(object)
            && let Some(target) = ScaleTarget::of(body)
        {
            add(&object.meta.namespace, &target, other(object, body, kind));
        }
    }
    by_target.into_iter().map(|(target, scalers)| (target, whole(scalers))).collect()
}

/// The ScaledObject or PodAutoscaler that made an HPA: by owner reference, by KEDA's label, or by the name that its status gives.
fn maker(objects: &Catalogue, object: &Object, hpa: &Hpa) -> Option<Subject> {
    let namespace = &object.meta.namespace;
    let target = hpa.target.subject(namespace);
    let owners = object.meta.owners.iter().filter(|owner| matches!(owner.kind.as_str(), "ScaledObject" | "PodAutoscaler"));
    let owned = owners.map(|owner| owner.subject(namespace)).next();
    let named = || {
        objects
            .scaled_objects()
            .find(|(scaled, body)| {
                // The cheap comparisons first: this runs for each HPA over all ScaledObjects.
                scaled.meta.namespace == *namespace
                    && (body.hpa_name == object.meta.name
                        || object.meta.label("scaledobject.keda.sh/name") == Some(scaled.meta.name.as_str()))
                    && body.target.subject(namespace) == target
            })
            .map(|(scaled, _)| scaled.subject())
    };
    owned.or_else(named)
}

fn foreign(object: &Object) -> Option<ScalerKind> {
    match (object.group(), object.kind.as_str()) {
        ("llmd.ai", "VariantAutoscaling") => Some(ScalerKind::Variant),
        ("autoscaling.aibrix.ai", "PodAutoscaler") => Some(ScalerKind::PodAutoscaler),
        _ => None,
    }
}

fn shown(subject: &Subject, condition: &Condition) -> Evidence {
    Evidence::new(subject, Place::Condition(condition.kind.clone()), condition.shown(), condition.since)
}

/// What an HPA's conditions say of it.
fn hpa(object: &Object, hpa: &Hpa, made_by: Option<Subject>) -> Scaler {
    let subject = object.subject();
    let able = hpa.condition("AbleToScale").filter(|condition| condition.is_false());
    let active = hpa.condition("ScalingActive");
    // A pass that can not read /scale leaves ScalingActive of an older pass behind.
    let (works, because) = match (able, active) {
        (Some(able), _) => (Ok(Works::Off), Some(able)),
        (None, Some(active)) if active.is_true() => (Ok(Works::On), Some(active)),
        // KEDA holds its target at zero: its HPA rests meanwhile, and that is no fault.
        (None, Some(active)) if active.is_false() && active.reason == "ScalingDisabled" && made_by.is_some() => {
            (Ok(Works::On), Some(active))
        }
        (None, Some(active)) if active.is_false() && active.reason == "ScalingDisabled" && hpa_at_zero(hpa) => {
            (Ok(Works::On), Some(active))
        }
        (None, Some(active)) if active.is_false() => (Ok(Works::Off), Some(active)),
        _ => (unknown(format!("{subject} has no condition ScalingActive")), None),
    };
    let evidence = because.map(|condition| shown(&subject, condition).of_uid(&object.meta.uid));
    let why = because
        .map_or_else(|| "it has not judged anything yet".to_owned(), |condition| format!("{} is {}", condition.kind, condition.shown()));
    Scaler { kind: ScalerKind::Hpa, made_by, works, why: format!("{subject}: {why}"), evidence, subject }
}

/// Since Kubernetes 1.37 an HPA may hold zero itself, and says so.
fn hpa_at_zero(hpa: &Hpa) -> bool {
    hpa.condition("ScaledToZero").is_some_and(Condition::is_true)
}

fn keda(object: &Object, scaled: &ScaledObject) -> Scaler {
    let subject = object.subject();
    let paused = condition(&scaled.conditions, "Paused").filter(|condition| condition.is_true());
    let one_way = scaled.paused_by.iter().any(|by| by.contains("paused-scale-"));
    let (works, why, evidence) = match (scaled.paused, scaled.condition("Ready")) {
        (true, _) => {
            let by = scaled.paused_by.join(", ");
            (Ok(Works::Paused), format!("paused by {by}"), Some(Evidence::field(&subject, "metadata.annotations", by)))
        }
        (false, _) if paused.is_some() && !one_way => {
            (Ok(Works::Paused), "its condition Paused is True".to_owned(), paused.map(|condition| shown(&subject, condition)))
        }
        (false, Some(ready)) if ready.is_false() => (Ok(Works::Off), format!("Ready is {}", ready.shown()), Some(shown(&subject, ready))),
        (false, Some(ready)) if ready.is_true() => {
            let active = scaled.condition("Active").map(|active| format!(", Active is {}", active.shown())).unwrap_or_default();
            (Ok(Works::On), format!("Ready is {}{active}", ready.shown()), Some(shown(&subject, ready)))
        }
        (false, Some(ready)) => {
            (unknown(format!("{subject}: Ready is {}", ready.shown())), format!("Ready is {}", ready.shown()), Some(shown(&subject, ready)))
        }
        (false, None) => (unknown(format!("{subject} has no condition Ready")), "it has no condition Ready".to_owned(), None),
    };
    Scaler {
        kind: ScalerKind::Keda,
        made_by: None,
        works,
        why: format!("{subject}: {why}"),
        evidence: evidence.map(|evidence| evidence.of_uid(&object.meta.uid)),
        subject,
    }
}

fn other(object: &Object, body: &serde_json::Value, kind: ScalerKind) -> Scaler {
    let subject = object.subject();
    let said = |kind: &str| {
        let conditions = body.get("status")?.get("conditions")?.as_array()?;
        let found = conditions.iter().find(|condition| condition.get("type").and_then(serde_json::Value::as_str) == Some(kind))?;
        let text = |key: &str| found.get(key).and_then(serde_json::Value::as_str).unwrap_or_default();
        Some((text("status").to_owned(), text("reason").to_owned()))
    };
    let judged = ["AbleToScale", "ScalingActive", "Ready"].into_iter().filter_map(|kind| Some((kind, said(kind)?)));
    let (works, why) = match (kind, judged.clone().find(|(_, (status, _))| status == "False"), judged.clone().next()) {
        (ScalerKind::Variant, ..) => {
            (unknown("it only publishes a number: whoever reads it scales"), "it only publishes a number".to_owned())
        }
        (_, Some((kind, (_, reason))), _) => (Ok(Works::Off), format!("{kind} is False ({reason})")),
        (_, None, Some((kind, (status, _)))) if status == "True" => (Ok(Works::On), format!("{kind} is True")),
        _ => (unknown(format!("{subject} has no condition that tells")), "no condition tells".to_owned()),
    };
    Scaler { kind, made_by: None, works, why: format!("{subject}: {why}"), evidence: None, subject }
}

/// All autoscalers of one object taken together: one that works is enough; what a paused ScaledObject's HPA says is of no account.
fn whole(mut scalers: Vec<Scaler>) -> Scaling {
    scalers.sort_by(|a, b| a.subject.cmp(&b.subject));
    // An HPA whose maker does not scale the same object (or was not read) stands for itself.
    let present: Vec<Subject> = scalers.iter().map(|scaler| scaler.subject.clone()).collect();
    for scaler in &mut scalers {
        scaler.made_by = scaler.made_by.take().filter(|maker| present.contains(maker));
    }
    let verdict = |root: &Scaler| -> Known<Works> {
        if root.works == Ok(Works::Paused) {
            return Ok(Works::Paused);
        }
        // The HPA that it made shows better than the maker whether scaling works.
        scalers
            .iter()
            .filter(|scaler| scaler.made_by.as_ref() == Some(&root.subject))
            .find_map(|made| made.works.clone().ok())
            .map_or_else(|| root.works.clone(), Ok)
    };
    let roots: Vec<(&Scaler, Known<Works>)> =
        scalers.iter().filter(|scaler| scaler.made_by.is_none()).map(|root| (root, verdict(root))).collect();
    let best = roots.iter().filter_map(|(_, works)| works.as_ref().ok()).max().copied();
    let works = match best {
        Some(works) => Ok(works),
        None => Err(roots
            .iter()
            .find_map(|(_, works)| works.as_ref().err().cloned())
            .unwrap_or_else(|| crate::model::Unknown::because("nothing tells whether it is scaled"))),
    };
    let why = scalers.iter().map(|scaler| scaler.why.clone()).collect();
    let evidence = scalers.iter().filter_map(|scaler| scaler.evidence.clone()).collect();
    Scaling { works, why, evidence, scalers }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::Timestamp;
    use rstest::rstest;
    use serde_json::{Value, json};
    use std::sync::Arc;

    fn catalogue(docs: &[Value]) -> Catalogue {
        Catalogue::new(docs.iter().map(|doc| Arc::new(Object::read(doc, Timestamp::UNIX_EPOCH).unwrap())))
    }

    fn hpa(name: &str, active: (&str, &str), owner: Option<&str>) -> Value {
        let owners =
            owner.map(|owner| json!([{"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject", "name": owner, "controller": true}]));
        json!({"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler",
            "metadata": {"name": name, "namespace": "s", "ownerReferences": owners},
            "spec": {"scaleTargetRef": {"kind": "Deployment", "name": "a"}, "maxReplicas": 4},
            "status": {"conditions": [{"type": "ScalingActive", "status": active.0, "reason": active.1}]}})
    }

    fn scaled(annotations: Value, ready: &str) -> Value {
        json!({"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject", "metadata": {"name": "so", "namespace": "s", "annotations": annotations},
            "spec": {"scaleTargetRef": {"name": "a"}}, "status": {"conditions": [{"type": "Ready", "status": ready}]}})
    }

    #[rstest]
    #[case::works(vec![hpa("h", ("True", "ValidMetricFound"), None)], Some(Works::On))]
    #[case::no_metric(vec![hpa("h", ("False", "FailedGetPodsMetric"), None)], Some(Works::Off))]
    #[case::set_to_zero_by_hand(vec![hpa("h", ("False", "ScalingDisabled"), None)], Some(Works::Off))]
    #[case::keda_holds_zero(vec![hpa("keda-hpa-so", ("False", "ScalingDisabled"), Some("so")), scaled(json!({}), "True")], Some(Works::On))]
    #[case::keda_holds_zero_known_by_name(vec![hpa("keda-hpa-so", ("False", "ScalingDisabled"), None), scaled(json!({}), "True")], Some(Works::On))]
    #[case::its_hpa_fails(vec![hpa("keda-hpa-so", ("False", "FailedGetExternalMetric"), Some("so")), scaled(json!({}), "True")], Some(Works::Off))]
    #[case::paused(vec![scaled(json!({"autoscaling.keda.sh/paused": "true"}), "True")], Some(Works::Paused))]
    #[case::paused_one_way(vec![scaled(json!({"autoscaling.keda.sh/paused-scale-in": "true"}), "True")], Some(Works::On))]
    #[case::broken(vec![scaled(json!({}), "False")], Some(Works::Off))]
    #[case::two_of_them(vec![hpa("h", ("False", "AmbiguousSelector"), None), hpa("g", ("False", "AmbiguousSelector"), None)], Some(Works::Off))]
    #[case::one_of_two_works(vec![hpa("h", ("False", "FailedGetPodsMetric"), None), hpa("g", ("True", "ValidMetricFound"), None)], Some(Works::On))]
    #[case::new(vec![hpa("h", ("Unknown", ""), None)], None)]
    fn states(#[case] docs: Vec<Value>, #[case] wanted: Option<Works>) {
        let all = scaling(&catalogue(&docs));
        assert_eq!(all[&Subject::parse("deployment/s/a")].works.clone().ok(), wanted);
    }

    #[test]
    fn an_hpa_of_a_scaled_object_is_no_second_autoscaler() {
        let all = scaling(&catalogue(&[
            hpa("keda-hpa-so", ("True", ""), Some("so")),
            hpa("mine", ("True", ""), None),
            scaled(json!({}), "True"),
        ]));
        let roots: Vec<_> = all[&Subject::parse("deployment/s/a")].roots().map(|scaler| scaler.subject.to_string()).collect();
        assert_eq!(roots, ["hpa/s/mine", "scaledobject/s/so"]);
    }

    #[test]
    fn autoscalers_of_other_projects() {
        let doc = |group: &str, kind: &str, status: Value| {
            json!({"apiVersion": group, "kind": kind, "metadata": {"name": "p", "namespace": "s"},
                "spec": {"scaleTargetRef": {"kind": "Deployment", "name": "a"}}, "status": status})
        };
        let conflict = json!({"conditions": [{"type": "AbleToScale", "status": "False", "reason": "Conflict"}]});
        let all = scaling(&catalogue(&[
            doc("autoscaling.aibrix.ai/v1alpha1", "PodAutoscaler", conflict),
            doc("llmd.ai/v1alpha1", "VariantAutoscaling", json!({})),
        ]));
        let scaling = &all[&Subject::parse("deployment/s/a")];
        assert_eq!((scaling.works.clone(), scaling.scalers.len()), (Ok(Works::Off), 2));
        assert!(super::scaling(&catalogue(&[doc("x.io/v1", "PodAutoscaler", json!({}))])).is_empty());
    }
}
