//! Rules of HorizontalPodAutoscalers and PodDisruptionBudgets.

use serde_json::{Value, json};

use super::super::super::status::Cause;
use super::super::{at, items, number, text};

/// An autoscaling/v2 HPA.
pub(super) fn hpa(object: &Value, causes: &mut Vec<Cause>) {
    let (least, most) = (number(object, &["spec", "minReplicas"]).unwrap_or(1), number(object, &["spec", "maxReplicas"]).unwrap_or(0));
    if least < 1 {
        causes.push(Cause::invalid("spec.minReplicas", &least.into(), "must be greater than or equal to 1"));
    }
    if most < 1 {
        causes.push(Cause::invalid("spec.maxReplicas", &most.into(), "must be greater than 0"));
    }
    if most < least {
        causes.push(Cause::invalid("spec.maxReplicas", &most.into(), "must be greater than or equal to `minReplicas`"));
    }
    for field in ["kind", "name"] {
        if text(object, &["spec", "scaleTargetRef", field]).is_empty() {
            causes.push(Cause::required(format!("spec.scaleTargetRef.{field}"), ""));
        }
    }
    if text(object, &["spec", "scaleTargetRef", "apiVersion"]).is_empty() {
        let why = "apiVersion must specify API group";
        causes.push(Cause::invalid("spec.scaleTargetRef.apiVersion", &"".into(), why));
    }
    let outer = items(object, &["spec", "metrics"]).iter().any(|m| matches!(text(m, &["type"]), "Object" | "External"));
    if least == 0 && !outer {
        let why = "must specify at least one Object or External metric to support scaling to zero replicas";
        causes.push(Cause::forbidden("spec.metrics", why));
    }
    for (n, metric) in items(object, &["spec", "metrics"]).iter().enumerate() {
        let known = ["ContainerResource", "External", "Object", "Pods", "Resource"];
        let kind = text(metric, &["type"]);
        if kind.is_empty() {
            causes.push(Cause::required(format!("spec.metrics[{n}].type"), "must specify a metric source type"));
        } else if !known.contains(&kind) {
            causes.push(Cause::unsupported(format!("spec.metrics[{n}].type"), &kind.into(), &known));
        }
    }
    for direction in ["scaleUp", "scaleDown"] {
        let Some(rules) = at(object, &["spec", "behavior", direction]) else { continue };
        let place = format!("spec.behavior.{direction}");
        let policy = text(rules, &["selectPolicy"]);
        if !["", "Max", "Min", "Disabled"].contains(&policy) {
            causes.push(Cause::unsupported(format!("{place}.selectPolicy"), &policy.into(), &["Disabled", "Max", "Min"]));
        }
        if let Some(window) = number(rules, &["stabilizationWindowSeconds"]) {
            let field = format!("{place}.stabilizationWindowSeconds");
            match window {
                ..0 => causes.push(Cause::invalid(field, &window.into(), "must be greater than or equal to zero")),
                3601.. => causes.push(Cause::invalid(field, &window.into(), "must be less than or equal to 3600")),
                _ => {}
            }
        }
    }
}

/// A PodDisruptionBudget.
pub(super) fn budget(object: &Value, causes: &mut Vec<Cause>) {
    let (least, most) = (at(object, &["spec", "minAvailable"]), at(object, &["spec", "maxUnavailable"]));
    if least.is_some() && most.is_some() {
        causes.push(Cause::invalid("spec", &json!({}), "minAvailable and maxUnavailable cannot be both set"));
    }
    for (field, given) in [("minAvailable", least), ("maxUnavailable", most)] {
        let Some(given) = given else { continue };
        if given.as_i64().is_some_and(|count| count < 0) {
            causes.push(Cause::invalid(format!("spec.{field}"), given, "must be greater than or equal to 0"));
        }
    }
}
