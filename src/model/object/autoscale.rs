//! Autoscalers: HorizontalPodAutoscalers and KEDA ScaledObjects.

use super::field::Field;
use super::meta::{Condition, condition};
use crate::model::{Known, Subject};

/// A HorizontalPodAutoscaler (autoscaling/v2).
#[derive(Debug, Clone, PartialEq)]
pub struct Hpa {
    /// What it scales: kind, name, in its own namespace.
    pub target: ScaleTarget,
    /// Lower bound; 1 where not set.
    pub min: Known<u32>,
    /// Upper bound.
    pub max: Known<u32>,
    /// `status.desiredReplicas`; absent before its first reconcile.
    pub desired: Known<u32>,
    /// `status.currentReplicas`.
    pub current: Known<u32>,
    /// What it asks for.
    pub metrics: Vec<HpaMetric>,
    /// What it last read.
    pub current_metrics: Vec<HpaMetric>,
    /// Conditions.
    pub conditions: Vec<Condition>,
    /// When it last scaled.
    pub last_scaled: Option<jiff::Timestamp>,
    /// Generation that the status speaks of.
    pub observed_generation: Option<i64>,
}

/// What an autoscaler scales.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ScaleTarget {
    /// `apiVersion` of the target.
    pub api_version: String,
    /// Kind as the API writes it.
    pub kind: String,
    /// Name.
    pub name: String,
}

/// One metric of an HPA, asked for or read.
#[derive(Debug, Clone, PartialEq)]
pub struct HpaMetric {
    /// `Resource`, `Pods`, `Object`, `External`, `ContainerResource`.
    pub kind: String,
    /// Name of the metric.
    pub name: String,
    /// Target or present value as written: `averageValue 5`.
    pub value: String,
    /// The number of it, in units of the metric (milli-quantities divided out).
    pub number: Option<f64>,
}

/// A KEDA ScaledObject.
#[derive(Debug, Clone, PartialEq)]
pub struct ScaledObject {
    /// What it scales; kind Deployment where not set.
    pub target: ScaleTarget,
    /// `minReplicaCount`; 0 where not set.
    pub min: Known<u32>,
    /// `maxReplicaCount`; 100 where not set.
    pub max: Known<u32>,
    /// `pollingInterval`, seconds; 30 where not set.
    pub polling_s: i64,
    /// Triggers.
    pub triggers: Vec<Trigger>,
    /// `fallback.replicas`.
    pub fallback_replicas: Option<u32>,
    /// Name of the HPA it makes.
    pub hpa_name: String,
    /// Conditions.
    pub conditions: Vec<Condition>,
    /// `autoscaling.keda.sh/paused` or `paused-replicas` is set.
    pub paused: bool,
    /// `autoscaling.keda.sh/paused-replicas`.
    pub paused_replicas: Option<u32>,
    /// Annotations that pause it, wholly or one way, as `autoscaling.keda.sh/paused-replicas: "0"`. KEDA 2.20 takes any value but
    /// `false` for true, and `paused-replicas` whenever it is there.
    pub paused_by: Vec<String>,
    /// `idleReplicaCount`.
    pub idle: Option<u32>,
    /// `cooldownPeriod`, seconds: how long after the last activity it goes to zero (or idle); 300 where not set.
    pub cooldown_s: i64,
    /// `status.lastActiveTime`.
    pub last_active: Option<jiff::Timestamp>,
    /// `status.health` by metric: failures in a row, and `Happy` or `Failing`.
    pub health: std::collections::BTreeMap<String, TriggerHealth>,
    /// `advanced.scalingModifiers.formula`; empty where not set.
    pub formula: String,
}

/// How a trigger of a ScaledObject does, by its status.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TriggerHealth {
    /// Failures in a row.
    pub failures: Option<u32>,
    /// `Happy` or `Failing`.
    pub status: String,
}

impl TriggerHealth {
    /// Whether it fails.
    pub fn fails(&self) -> bool {
        self.status == "Failing" || (self.status.is_empty() && self.failures.is_some_and(|n| n > 0))
    }
}

/// One trigger of a ScaledObject.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trigger {
    /// `prometheus`, `cpu`, `cron` …
    pub kind: String,
    /// Name.
    pub name: String,
    /// `query` of a Prometheus trigger.
    pub query: String,
    /// `threshold`.
    pub threshold: String,
    /// `ignoreNullValues`; true where not set.
    pub ignore_null: bool,
    /// `serverAddress` of a Prometheus trigger.
    pub server: String,
}

impl ScaleTarget {
    fn read(field: &Field) -> Self {
        Self {
            api_version: field.get("apiVersion").name_or_empty(),
            kind: field.get("kind").name_or_empty(),
            name: field.get("name").name_or_empty(),
        }
    }

    /// Reads a target out of the kept JSON of an autoscaler that has no slim form (`spec.scaleTargetRef`). `None` where it names none.
    pub fn of(body: &serde_json::Value) -> Option<Self> {
        let reference = body.get("spec")?.get("scaleTargetRef")?;
        let word = |key: &str| reference.get(key).and_then(serde_json::Value::as_str).unwrap_or_default().to_owned();
        let target = Self { api_version: word("apiVersion"), kind: word("kind"), name: word("name") };
        (!target.kind.is_empty() && !target.name.is_empty()).then_some(target)
    }

    /// The target as a subject in the autoscaler's namespace.
    pub fn subject(&self, namespace: &str) -> Subject {
        Subject::object(&self.kind, namespace, &self.name)
    }
}

impl Hpa {
    /// Reads the body.
    pub fn read(root: &Field) -> Self {
        let (spec, status) = (root.get("spec"), root.get("status"));
        Self {
            target: ScaleTarget::read(&spec.get("scaleTargetRef")),
            min: spec.get("minReplicas").count().or(1),
            max: spec.get("maxReplicas").count().known(),
            desired: status.get("desiredReplicas").count().known(),
            current: status.get("currentReplicas").count().known(),
            metrics: spec.get("metrics").items().iter().map(|item| HpaMetric::read(item, "target")).collect(),
            current_metrics: status.get("currentMetrics").items().iter().map(|item| HpaMetric::read(item, "current")).collect(),
            conditions: Condition::read_all(&status.get("conditions")),
            last_scaled: status.get("lastScaleTime").instant().some(),
            observed_generation: status.get("observedGeneration").int().some(),
        }
    }

    /// A condition by type.
    pub fn condition(&self, kind: &str) -> Option<&Condition> {
        condition(&self.conditions, kind)
    }

    /// `status.desiredReplicas`, if it means something: while ScalingActive is False nothing was computed.
    pub fn trusted_desired(&self) -> Known<u32> {
        match self.condition("ScalingActive") {
            Some(active) if active.is_false() => {
                crate::model::unknown::unknown(format!("the HPA computes nothing: ScalingActive {}", active.shown()))
            }
            _ => self.desired.clone(),
        }
    }
}

impl HpaMetric {
    fn read(item: &Field, side: &str) -> Self {
        let kind = item.get("type").name_or_empty();
        let mut lower = kind.clone();
        if let Some(first) = lower.get_mut(..1) {
            first.make_ascii_lowercase();
        }
        let body = item.get(&lower);
        let name = match kind.as_str() {
            "Resource" | "ContainerResource" => body.get("name").name_or_empty(),
            _ => body.at(&["metric", "name"]).name_or_empty(),
        };
        let numbers = body.get(side);
        let shown = ["averageValue", "value", "averageUtilization"]
            .into_iter()
            .find_map(|key| numbers.get(key).int_or_text().some().map(|text| (key, text)));
        Self {
            kind,
            name,
            number: shown.as_ref().and_then(|(_, text)| quantity(text)),
            value: shown.map(|(key, text)| format!("{key} {text}")).unwrap_or_default(),
        }
    }
}

/// A Kubernetes quantity as a number: `5`, `2500m`, `1k`, `2Gi`.
pub fn quantity(text: &str) -> Option<f64> {
    let split = text.find(|c: char| !matches!(c, '0'..='9' | '.' | '-' | '+')).unwrap_or(text.len());
    let (number, suffix) = text.split_at(split);
    let factor = match suffix {
        "" => 1.0,
        "n" => 1e-9,
        "u" => 1e-6,
        "m" => 1e-3,
        "k" => 1e3,
        "M" => 1e6,
        "G" => 1e9,
        "T" => 1e12,
        "Ki" => 1024.0,
        "Mi" => 1024.0 * 1024.0,
        "Gi" => 1024.0 * 1024.0 * 1024.0,
        "Ti" => 1024.0_f64.powi(4),
        _ => return text.parse().ok(),
    };
    number.parse::<f64>().ok().map(|n| n * factor)
}

impl ScaledObject {
    /// Reads the body.
    pub fn read(root: &Field) -> Self {
        let (spec, status) = (root.get("spec"), root.get("status"));
        let annotations = root.at(&["metadata", "annotations"]);
        let paused_replicas = annotations.get("autoscaling.keda.sh/paused-replicas").name().some().and_then(|text| text.parse().ok());
        let mut target = ScaleTarget::read(&spec.get("scaleTargetRef"));
        if target.kind.is_empty() {
            target.kind = "Deployment".into();
        }
        let paused = annotations.get("autoscaling.keda.sh/paused").name().some();
        let on = |value: &str| !matches!(value, "false" | "False" | "FALSE" | "f" | "F" | "0");
        let paused_by = ["paused", "paused-replicas", "paused-scale-in", "paused-scale-out"]
            .into_iter()
            .filter_map(|key| {
                let key = format!("autoscaling.keda.sh/{key}");
                let value = annotations.get(&key).name().some()?;
                (key.ends_with("paused-replicas") || on(&value)).then(|| format!("{key}: \"{value}\""))
            })
            .collect();
        let hpa_name = status.get("hpaName").name_or_empty();
        Self {
            hpa_name: if hpa_name.is_empty() {
                let set = spec.at(&["advanced", "horizontalPodAutoscalerConfig", "name"]).name_or_empty();
                if set.is_empty() { format!("keda-hpa-{}", root.at(&["metadata", "name"]).name_or_empty()) } else { set }
            } else {
                hpa_name
            },
            target,
            min: spec.get("minReplicaCount").count().or(0),
            max: spec.get("maxReplicaCount").count().or(100),
            polling_s: spec.get("pollingInterval").int().some().unwrap_or(30),
            triggers: spec.get("triggers").items().iter().map(Trigger::read).collect(),
            fallback_replicas: spec.at(&["fallback", "replicas"]).count().some(),
            conditions: Condition::read_all(&status.get("conditions")),
            paused: annotations.get("autoscaling.keda.sh/paused-replicas").is_set() || paused.as_deref().is_some_and(on),
            paused_replicas,
            paused_by,
            idle: spec.get("idleReplicaCount").count().some(),
            cooldown_s: spec.get("cooldownPeriod").int().some().unwrap_or(300),
            last_active: status.get("lastActiveTime").instant().some(),
            health: status
                .get("health")
                .members()
                .into_iter()
                .take(64)
                .map(|(metric, field)| {
                    let failures = field.get("numberOfFailures").count().some();
                    (metric, TriggerHealth { failures, status: field.get("status").name_or_empty() })
                })
                .collect(),
            formula: spec.at(&["advanced", "scalingModifiers", "formula"]).text_or_empty(),
        }
    }

    /// A condition by type.
    pub fn condition(&self, kind: &str) -> Option<&Condition> {
        condition(&self.conditions, kind)
    }
}

impl Trigger {
    fn read(field: &Field) -> Self {
        let metadata = field.get("metadata");
        Self {
            kind: field.get("type").name_or_empty(),
            name: field.get("name").name_or_empty(),
            query: metadata.get("query").text_or_empty(),
            threshold: metadata.get("threshold").int_or_text().some().unwrap_or_default(),
            ignore_null: metadata.get("ignoreNullValues").name().some().as_deref() != Some("false"),
            server: metadata.get("serverAddress").text_or_empty(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;
    use serde_json::json;
    use std::cell::RefCell;

    #[rstest]
    #[case("5", Some(5.0))]
    #[case("2500m", Some(2.5))]
    #[case("2Gi", Some(2147483648.0))]
    #[case("1e3", Some(1000.0))]
    #[case("many", None)]
    fn quantities(#[case] text: &str, #[case] wanted: Option<f64>) {
        assert_eq!(quantity(text), wanted);
    }

    #[rstest]
    #[case(json!({}), false, 0)]
    #[case(json!({"autoscaling.keda.sh/paused": "true"}), true, 1)]
    #[case(json!({"autoscaling.keda.sh/paused": "yes please"}), true, 1)]
    #[case(json!({"autoscaling.keda.sh/paused": "false"}), false, 0)]
    #[case(json!({"autoscaling.keda.sh/paused": "false", "autoscaling.keda.sh/paused-replicas": "2"}), true, 1)]
    #[case(json!({"autoscaling.keda.sh/paused-scale-in": "true"}), false, 1)]
    fn pauses(#[case] annotations: serde_json::Value, #[case] paused: bool, #[case] by: usize) {
        let problems = RefCell::new(Vec::new());
        let doc = json!({"metadata": {"name": "a", "annotations": annotations}, "spec": {},
            "status": {"health": {"s0-prometheus": {"numberOfFailures": 4, "status": "Failing"}}}});
        let scaled = ScaledObject::read(&Field::root(&doc, &problems));
        assert_eq!((scaled.paused, scaled.paused_by.len()), (paused, by));
        assert!(scaled.health["s0-prometheus"].fails());
    }

    #[test]
    fn an_hpa_whose_scaling_is_inactive_wants_nothing_known() {
        let problems = RefCell::new(Vec::new());
        let doc = json!({"spec": {"scaleTargetRef": {"kind": "Deployment", "name": "a"}, "maxReplicas": 6,
              "metrics": [{"type": "External", "external": {"metric": {"name": "queue"}, "target": {"averageValue": "2500m"}}}]},
            "status": {"desiredReplicas": 0, "conditions": [{"type": "ScalingActive", "status": "False", "reason": "FailedGetExternalMetric"}]}});
        let hpa = Hpa::read(&Field::root(&doc, &problems));
        assert!(hpa.trusted_desired().unwrap_err().why().contains("FailedGetExternalMetric"));
        assert_eq!((hpa.min, hpa.max), (Ok(1), Ok(6)));
        assert_eq!((hpa.metrics[0].name.as_str(), hpa.metrics[0].number), ("queue", Some(2.5)));
    }
}
