//! Named values of autoscalers and of what they scale, as the public document has them.
//!
//! Owns which number of an autoscaler may be shown: one that was never computed is unknown, and an empty result is no 0.

use jiff::{SignedDuration, Timestamp};

use super::World;
use super::owners::replicas_of;
use super::prometheus::Given;
use crate::model::object::autoscale::HpaMetric;
use crate::model::object::{Body, Hpa, Object, ScaledObject};
use crate::model::unknown::unknown;
use crate::model::value::{Scalar, Values};
use crate::model::{Evidence, Fact, Known, Place, Subject};

impl World {
    /// Values of an autoscaler, or of an object that is scaled or could be; empty for anything else.
    pub fn scale_values(&self, subject: &Subject) -> Values {
        let mut values = Values::default();
        if let Some((object, hpa)) = self.objects.hpa(subject) {
            self.of_hpa(object, hpa, &mut values);
        }
        if let Some((object, scaled)) = self.objects.scaled_object(subject) {
            self.of_scaled(object, scaled, &mut values);
        }
        if let Some(scaling) = self.scaling.get(subject) {
            let by: Vec<&str> = scaling.scalers.iter().map(|scaler| scaler.subject.as_str()).collect();
            let works = scaling.works.clone();
            values.set("autoscaling", works.map(|works| Fact::new(Scalar::from(works.word()), by.join(", "), self.now)));
        }
        if let Some(object @ Object { body: Body::Other(_), .. }) = self.objects.get(subject)
            && let Some(replicas) = replicas_of(object)
        {
            values.know("asked", replicas, "spec.replicas", object.seen);
        } else if self.scaling.contains_key(subject)
            && self.objects.workload(subject).is_none()
            && let (Some(replicas), Some(answer)) = (self.asked_of(subject), self.scale_answer(subject))
        {
            values.know("asked", replicas, &answer.request(), answer.at);
        }
        if let Some((since, evidence)) = self.zero_since(subject) {
            values.know("since", since, &evidence.to_string(), since);
        }
        if self.dropped(subject) {
            values.lack(
                "requests-lost",
                "no counters of the pods that were ended were read: how many of their requests were cut is not known",
            );
        }
        values
    }

    fn of_hpa(&self, object: &Object, hpa: &Hpa, values: &mut Values) {
        let mut count = |name, count: Known<u32>, source: &str| {
            values.set(name, count.map(|n| Fact::new(Scalar::from(n), source, object.seen)));
        };
        count("hpa-desired", hpa.trusted_desired(), "status.desiredReplicas");
        count("hpa-current", hpa.current.clone(), "status.currentReplicas");
        count("hpa-min", hpa.min.clone(), "spec.minReplicas");
        count("hpa-max", hpa.max.clone(), "spec.maxReplicas");
        values.set("hpa-metric", present(hpa, object.seen));
        values.set(
            "hpa-metric-pods",
            self.covered(object, hpa).map(|n| Fact::new(Scalar::from(n), "pods that the average counts", self.now)),
        );
        let works = self.scaling.get(&hpa.target.subject(&object.meta.namespace)).and_then(|scaling| {
            scaling.scalers.iter().find(|scaler| scaler.subject == object.subject()).map(|scaler| scaler.works.clone())
        });
        if let Some(works) = works {
            values.set("autoscaling", works.map(|works| Fact::new(Scalar::from(works.word()), "condition ScalingActive", object.seen)));
        }
    }

    fn of_scaled(&self, object: &Object, scaled: &ScaledObject, values: &mut Values) {
        let mut count = |name, count: Known<u32>, source: &str| {
            values.set(name, count.map(|n| Fact::new(Scalar::from(n), source, object.seen)));
        };
        count("hpa-min", scaled.min.clone(), "spec.minReplicaCount");
        count("hpa-max", scaled.max.clone(), "spec.maxReplicaCount");
        values.set("hpa-metric", self.trigger_value(object, scaled));
        let works = self.scaling.get(&scaled.target.subject(&object.meta.namespace)).and_then(|scaling| {
            scaling.scalers.iter().find(|scaler| scaler.subject == object.subject()).map(|scaler| scaler.works.clone())
        });
        if let Some(works) = works {
            values.set(
                "autoscaling",
                works.map(|works| Fact::new(Scalar::from(works.word()), "condition Ready, pause annotations", object.seen)),
            );
        }
    }

    /// What the first trigger sees: the answer to its query where there is one, else what its HPA last read.
    fn trigger_value(&self, object: &Object, scaled: &ScaledObject) -> Known<Fact<Scalar>> {
        for trigger in &scaled.triggers {
            let Some(answered) = self.query(&trigger.query) else { continue };
            return match answered.given? {
                Given::Value(value) => Ok(Fact::new(Scalar::Number(value), format!("query {}", trigger.query), answered.answer.at)),
                Given::NoSeries => unknown(format!("no series: the result of the query {} is empty", trigger.query)),
            };
        }
        let hpa = Subject::object("HorizontalPodAutoscaler", &object.meta.namespace, &scaled.hpa_name);
        match self.objects.hpa(&hpa) {
            Some((object, hpa)) => present(hpa, object.seen),
            None => unknown(format!("its HPA {hpa} was not read, and neither was an answer to its query")),
        }
    }

    /// Over how many pods the average of an HPA's metric goes: metrics of pods and resources count the Ready ones that gave a sample,
    /// others are divided by the replicas of the target's status.
    pub fn covered(&self, object: &Object, hpa: &Hpa) -> Known<u32> {
        hpa.trusted_desired()?;
        let target = hpa.target.subject(&object.meta.namespace);
        let Some(metric) = hpa.metrics.first() else { return unknown("it asks for no metric") };
        let view = self.workloads.get(&target).ok_or_else(|| crate::model::Unknown::because(format!("{target} was not read")));
        match (metric.kind.as_str(), metric.value.split(' ').next().unwrap_or_default()) {
            ("Pods" | "Resource" | "ContainerResource", _) => view?.funnel.pod_ready.clone(),
            (_, "averageValue") => match self.objects.workload(&target).and_then(|(_, workload)| workload.status.replicas) {
                Some(replicas) => Ok(replicas),
                None => hpa.current.clone(),
            },
            _ => unknown("it compares one value, no average over pods"),
        }
    }

    /// Since when an object is scaled to zero, by the best that shows it: what a watch saw, its HPA's condition, KEDA's cooldown.
    pub fn zero_since(&self, target: &Subject) -> Option<(Timestamp, Evidence)> {
        let object = self.objects.get(target)?;
        if replicas_of(object)? != 0 {
            return None;
        }
        if let Some(write) = self.replica_writes(target).last().filter(|write| !write.first) {
            return Some((write.at, Evidence::field(target, "spec.replicas", "0").seen_at(Some(write.at))));
        }
        let scaling = self.scaling.get(target)?;
        let disabled = scaling.scalers.iter().find_map(|scaler| {
            let condition = self.objects.hpa(&scaler.subject)?.1.condition("ScalingActive")?;
            let at = condition.since.filter(|_| condition.is_false() && condition.reason == "ScalingDisabled")?;
            Some((at, Evidence::new(&scaler.subject, Place::Condition("ScalingActive".into()), condition.shown(), Some(at))))
        });
        let cooled = || {
            scaling.scalers.iter().find_map(|scaler| {
                let (_, scaled) = self.objects.scaled_object(&scaler.subject)?;
                let at = scaled.last_active?.checked_add(SignedDuration::from_secs(scaled.cooldown_s.clamp(0, 1 << 32))).ok()?;
                let value = format!("last active {}, cooldown {} s", scaled.last_active?, scaled.cooldown_s);
                (at <= self.now).then(|| (at, Evidence::field(&scaler.subject, "status.lastActiveTime", value).seen_at(Some(at))))
            })
        };
        disabled.or_else(cooled)
    }

    /// Whether a watch saw its replicas go down: pods were ended with whatever they ran.
    fn dropped(&self, target: &Subject) -> bool {
        self.replica_writes(target).windows(2).any(|pair| matches!(pair, [before, after] if after.replicas < before.replicas))
    }
}

/// The present value of an HPA's metric: of several the first that has one.
fn present(hpa: &Hpa, at: Timestamp) -> Known<Fact<Scalar>> {
    if let Some(condition) = hpa.condition("ScalingActive").filter(|condition| condition.is_false()) {
        return unknown(format!("ScalingActive is {}", condition.shown()));
    }
    let asked = |metric: &&HpaMetric| hpa.metrics.is_empty() || hpa.metrics.iter().any(|wanted| wanted.name == metric.name);
    hpa.current_metrics
        .iter()
        .filter(asked)
        .find_map(|metric| Some(Fact::new(Scalar::Number(metric.number?), format!("status.currentMetrics, {}", metric.name), at)))
        .ok_or_else(|| crate::model::Unknown::because("status.currentMetrics has no value of it"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::Facts;
    use serde_json::{Value, json};

    fn world(docs: &[Value]) -> World {
        let now = "2026-11-12T10:00:00Z".parse().unwrap();
        let objects = docs.iter().map(|doc| Object::read(doc, now).unwrap()).collect();
        World::build(Facts { objects, ..Facts::default() }, "bundle", now)
    }

    fn hpa(metric: Value, status: Value) -> Value {
        json!({"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "h", "namespace": "s"},
            "spec": {"scaleTargetRef": {"kind": "Deployment", "name": "a"}, "maxReplicas": 6, "metrics": [metric]}, "status": status})
    }

    fn deployment(replicas: u32) -> Value {
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a", "namespace": "s"},
            "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": "a"}}}, "status": {"replicas": replicas}})
    }

    #[test]
    fn a_number_that_was_never_computed_is_unknown() {
        let status = json!({"desiredReplicas": 0, "currentReplicas": 2,
            "conditions": [{"type": "ScalingActive", "status": "False", "reason": "FailedGetPodsMetric"}]});
        let world = world(&[
            deployment(2),
            hpa(json!({"type": "Pods", "pods": {"metric": {"name": "m"}, "target": {"averageValue": "1"}}}), status),
        ]);
        let values = world.scale_values(&Subject::parse("hpa/s/h"));
        for name in ["hpa-desired", "hpa-metric", "hpa-metric-pods"] {
            assert!(values.get(name).unwrap().is_err(), "{name}");
        }
        assert_eq!(values.number("hpa-max"), Some(6.0));
        let target = world.scale_values(&Subject::parse("deployment/s/a"));
        assert!(matches!(target.get("autoscaling"), Some(Ok(Fact { value: Scalar::Word(word), .. })) if word == "off"));
    }

    #[test]
    fn an_external_average_goes_over_the_replicas_of_the_status() {
        let status = json!({"desiredReplicas": 3, "currentReplicas": 3, "conditions": [{"type": "ScalingActive", "status": "True"}]});
        let external = |target: Value| json!({"type": "External", "external": {"metric": {"name": "q"}, "target": target}});
        let average = world(&[deployment(3), hpa(external(json!({"averageValue": "4"})), status.clone())]);
        assert_eq!(average.scale_values(&Subject::parse("hpa/s/h")).number("hpa-metric-pods"), Some(3.0));
        let whole = world(&[deployment(3), hpa(external(json!({"value": "4"})), status)]);
        assert!(whole.scale_values(&Subject::parse("hpa/s/h")).get("hpa-metric-pods").unwrap().is_err());
    }

    #[test]
    fn zero_since_the_hpa_rests_or_the_cooldown_ended() {
        let scaled = json!({"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject", "metadata": {"name": "so", "namespace": "s"},
            "spec": {"scaleTargetRef": {"name": "a"}, "cooldownPeriod": 300}, "status": {"lastActiveTime": "2026-11-12T09:00:00Z"}});
        let world = world(&[deployment(0), scaled]);
        assert_eq!(world.zero_since(&Subject::parse("deployment/s/a")).unwrap().0.to_string(), "2026-11-12T09:05:00Z");
        assert!(super::tests::world(&[deployment(1)]).zero_since(&Subject::parse("deployment/s/a")).is_none());
    }
}
