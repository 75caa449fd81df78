//! Rules of Deployments, ReplicaSets, StatefulSets, DaemonSets and Jobs.

use serde_json::{Map, Value, json};

use super::super::super::status::Cause;
use super::super::labels::LabelSelector;
use super::super::{at, items, number, text};
use super::{IMMUTABLE, map_at, names, pods};

/// A workload that is told which pods are its own.
pub(super) fn workload(kind: &str, object: &Value, causes: &mut Vec<Cause>) {
    if let Some(replicas) = number(object, &["spec", "replicas"]).filter(|r| *r < 0) {
        causes.push(Cause::invalid("spec.replicas", &replicas.into(), "must be greater than or equal to 0"));
    }
    let null = Value::Null;
    let selector = at(object, &["spec", "selector"]).unwrap_or(&null);
    let empty = selector.as_object().is_none_or(Map::is_empty);
    if selector.is_null() {
        causes.push(Cause::required("spec.selector", ""));
    } else {
        names::labels(map_at(selector, &["matchLabels"]), "spec.selector.matchLabels", causes);
        if empty {
            let why = match kind {
                "DaemonSet" => "empty selector is invalid for daemonset",
                "StatefulSet" => "empty selector is invalid for statefulset",
                "ReplicaSet" => "empty selector is invalid for deployment",
                _ => "empty selector is invalid for deployment",
            };
            causes.push(Cause::invalid("spec.selector", &json!({}), why));
        }
    }
    let labels = at(object, &["spec", "template", "metadata", "labels"]);
    // No selector selects nothing; an empty one was told above.
    let selected = selector.as_object().is_some_and(Map::is_empty) || LabelSelector::of_object(selector).is_some_and(|s| s.matches(labels));
    if !selected {
        let shown = labels.cloned().unwrap_or(Value::Null);
        causes.push(Cause::invalid("spec.template.metadata.labels", &shown, "`selector` does not match template `labels`"));
    }
    template(object, causes);
    let policy = text(object, &["spec", "template", "spec", "restartPolicy"]);
    if !policy.is_empty() && policy != "Always" && ["OnFailure", "Never"].contains(&policy) {
        causes.push(Cause::unsupported("spec.template.spec.restartPolicy", &policy.into(), &["Always"]));
    }
    strategy(kind, object, causes);
}

fn template(object: &Value, causes: &mut Vec<Cause>) {
    let map = |name: &str| map_at(object, &["spec", "template", "metadata", name]);
    names::labels(map("labels"), "spec.template.labels", causes);
    names::annotations(map("annotations"), "spec.template.annotations", causes);
    pods::spec(object, "spec.template.spec", items(object, &["spec", "volumeClaimTemplates"]), causes);
}

fn strategy(kind: &str, object: &Value, causes: &mut Vec<Cause>) {
    let field = if kind == "Deployment" { "strategy" } else { "updateStrategy" };
    let known: &[&str] = match kind {
        "Deployment" => &["Recreate", "RollingUpdate"],
        "StatefulSet" | "DaemonSet" => &["OnDelete", "RollingUpdate"],
        _ => return,
    };
    let given = text(object, &["spec", field, "type"]);
    let rolling = at(object, &["spec", field, "rollingUpdate"]);
    if !known.contains(&given) {
        causes.push(Cause::unsupported(format!("spec.{field}"), &json!({ "type": given }), known));
    } else if given != "RollingUpdate" && rolling.is_some() && kind == "Deployment" {
        let why = "may not be specified when strategy `type` is 'Recreate'";
        causes.push(Cause::forbidden("spec.strategy.rollingUpdate", why));
    }
    if let Some(rolling) = rolling.filter(|_| kind == "Deployment") {
        let none = |name: &str| matches!(at(rolling, &[name]), Some(v) if v == &json!(0) || v == &json!("0%"));
        if none("maxUnavailable") && none("maxSurge") {
            let shown = at(rolling, &["maxUnavailable"]).unwrap_or(&Value::Null);
            let why = "may not be 0 when `maxSurge` is 0";
            causes.push(Cause::invalid("spec.strategy.rollingUpdate.maxUnavailable", shown, why));
        }
    }
}

/// A Job.
pub(super) fn job(object: &Value, causes: &mut Vec<Cause>) {
    for field in ["parallelism", "completions", "backoffLimit", "activeDeadlineSeconds"] {
        if let Some(count) = number(object, &["spec", field]).filter(|c| *c < 0) {
            causes.push(Cause::invalid(format!("spec.{field}"), &count.into(), "must be greater than or equal to 0"));
        }
    }
    template(object, causes);
    let policy = text(object, &["spec", "template", "spec", "restartPolicy"]);
    if policy == "Always" {
        causes.push(Cause::unsupported("spec.template.spec.restartPolicy", &policy.into(), &["OnFailure", "Never"]));
    }
}

/// What may not change.
pub(super) fn update(kind: &str, old: &Value, new: &Value, causes: &mut Vec<Cause>) {
    let same = |path: &[&str]| at(old, path) == at(new, path);
    let null = Value::Null;
    match kind {
        "Deployment" | "ReplicaSet" | "DaemonSet" if !same(&["spec", "selector"]) => {
            causes.push(Cause::invalid("spec.selector", at(new, &["spec", "selector"]).unwrap_or(&null), IMMUTABLE));
        }
        "StatefulSet" => {
            let fixed = |object: &Value| {
                let mut spec = at(object, &["spec"]).cloned().unwrap_or(Value::Null);
                if let Some(map) = spec.as_object_mut() {
                    for field in [
                        "replicas",
                        "ordinals",
                        "template",
                        "updateStrategy",
                        "revisionHistoryLimit",
                        "persistentVolumeClaimRetentionPolicy",
                        "minReadySeconds",
                    ] {
                        map.remove(field);
                    }
                }
                spec
            };
            if fixed(old) != fixed(new) {
                let why = "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden";
                causes.push(Cause::forbidden("spec", why));
            }
        }
        "Job" => {
            for field in ["selector", "template", "completionMode"] {
                if !same(&["spec", field]) {
                    causes.push(Cause::invalid(format!("spec.{field}"), at(new, &["spec", field]).unwrap_or(&null), IMMUTABLE));
                }
            }
        }
        _ => {}
    }
}
