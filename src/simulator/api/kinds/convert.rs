//! Kinds that are served in two forms over one stored object: HorizontalPodAutoscaler v1 and v2, Event core and events.k8s.io.
//!
//! Owns both ways of each. What is stored is autoscaling/v2 and the core Event.

use serde_json::{Map, Value, json};

use super::{at, items, map_mut, text};

/// Annotations in which autoscaling/v1 carries what it has no fields for.
const HPA_NOTES: [(&str, &str, &str); 4] = [
    ("autoscaling.alpha.kubernetes.io/metrics", "spec", "metrics"),
    ("autoscaling.alpha.kubernetes.io/behavior", "spec", "behavior"),
    ("autoscaling.alpha.kubernetes.io/current-metrics", "status", "currentMetrics"),
    ("autoscaling.alpha.kubernetes.io/conditions", "status", "conditions"),
];

fn is_cpu(metric: &Value) -> bool {
    text(metric, &["type"]) == "Resource" && text(metric, &["resource", "name"]) == "cpu"
}

/// An autoscaling/v2 HPA as autoscaling/v1 shows it.
pub fn hpa_to_v1(mut object: Value) -> Value {
    object["apiVersion"] = "autoscaling/v1".into();
    let metrics = items(&object, &["spec", "metrics"]).to_vec();
    let target = metrics.iter().find(|m| is_cpu(m)).and_then(|m| at(m, &["resource", "target", "averageUtilization"])).cloned();
    let shown = items(&object, &["status", "currentMetrics"]).iter().find(|m| is_cpu(m));
    let current = shown.and_then(|m| at(m, &["resource", "current", "averageUtilization"])).cloned();
    if let Some(spec) = map_mut(&mut object, &["spec"]) {
        let rest: Vec<Value> =
            metrics.into_iter().filter(|m| !is_cpu(m) || at(m, &["resource", "target", "averageUtilization"]).is_none()).collect();
        match rest.is_empty() {
            true => spec.remove("metrics"),
            false => spec.insert("metrics".into(), rest.into()),
        };
        if let Some(target) = target {
            spec.insert("targetCPUUtilizationPercentage".into(), target);
        }
    }
    let mut notes = Map::new();
    for (note, part, field) in HPA_NOTES {
        if let Some(value) = map_mut(&mut object, &[part]).and_then(|map| map.remove(field)).filter(|v| !v.is_null()) {
            notes.insert(note.into(), value.to_string().into());
        }
    }
    if let Some(status) = map_mut(&mut object, &["status"]) {
        if let Some(current) = current {
            status.insert("currentCPUUtilizationPercentage".into(), current);
        }
        status.entry("currentReplicas").or_insert(json!(0));
        status.entry("desiredReplicas").or_insert(json!(0));
    }
    if !notes.is_empty()
        && let Some(annotations) = map_mut(&mut object, &["metadata", "annotations"])
    {
        annotations.extend(notes);
    }
    object
}

/// An autoscaling/v1 HPA as it is stored.
pub fn hpa_from_v1(mut object: Value) -> Value {
    object["apiVersion"] = "autoscaling/v2".into();
    for (note, part, field) in HPA_NOTES {
        let value = map_mut(&mut object, &["metadata"])
            .and_then(|m| m.get_mut("annotations"))
            .and_then(Value::as_object_mut)
            .and_then(|a| a.remove(note))
            .and_then(|v| serde_json::from_str::<Value>(v.as_str()?).ok());
        if let (Some(value), Some(map)) = (value, map_mut(&mut object, &[part])) {
            map.insert(field.into(), value);
        }
    }
    if let Some(metadata) = map_mut(&mut object, &["metadata"])
        && metadata.get("annotations").and_then(Value::as_object).is_some_and(Map::is_empty)
    {
        metadata.remove("annotations");
    }
    if let Some(spec) = map_mut(&mut object, &["spec"])
        && let Some(target) = spec.remove("targetCPUUtilizationPercentage").filter(|t| !t.is_null())
    {
        let metric = json!({"type":"Resource","resource":{"name":"cpu","target":{"type":"Utilization","averageUtilization":target}}});
        if let Some(metrics) = spec.entry("metrics").or_insert_with(|| json!([])).as_array_mut() {
            metrics.insert(0, metric);
        }
    }
    if let Some(status) = map_mut(&mut object, &["status"]) {
        status.remove("currentCPUUtilizationPercentage");
    }
    object
}

const EVENT_NAMES: [(&str, &str); 7] = [
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
    ("reportingComponent", "reportingController"),
];

/// A core Event as events.k8s.io/v1 shows it.
pub fn event_to_new(mut object: Value) -> Value {
    object["apiVersion"] = "events.k8s.io/v1".into();
    rename(&mut object, EVENT_NAMES.iter().copied());
    object
}

/// An events.k8s.io/v1 Event as it is stored.
pub fn event_from_new(mut object: Value) -> Value {
    object["apiVersion"] = "v1".into();
    rename(&mut object, EVENT_NAMES.iter().map(|(core, new)| (*new, *core)));
    object
}

fn rename(object: &mut Value, names: impl Iterator<Item = (&'static str, &'static str)>) {
    let Some(members) = object.as_object_mut() else { return };
    let mut moved = Vec::new();
    for (from, to) in names {
        if let Some(value) = members.remove(from) {
            moved.push((to.to_owned(), value));
        }
    }
    members.extend(moved);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_hpa_goes_to_v1_and_back_unchanged() {
        let stored = json!({"apiVersion":"autoscaling/v2","kind":"HorizontalPodAutoscaler","metadata":{"name":"h"},
            "spec":{"maxReplicas":3,"metrics":[
                {"type":"Resource","resource":{"name":"cpu","target":{"type":"Utilization","averageUtilization":80}}},
                {"type":"Pods","pods":{"metric":{"name":"q"},"target":{"type":"AverageValue","averageValue":"5"}}}]},
            "status":{"currentReplicas":0,"desiredReplicas":0}});
        let shown = hpa_to_v1(stored.clone());
        assert_eq!(shown["spec"]["targetCPUUtilizationPercentage"], 80);
        assert_eq!(hpa_from_v1(shown), stored);
    }

    #[test]
    fn an_event_has_two_names_for_what_it_regards() {
        let core = json!({"apiVersion":"v1","involvedObject":{"name":"p"},"message":"m","reason":"r"});
        let new = event_to_new(core.clone());
        assert_eq!(new["regarding"]["name"], "p");
        assert_eq!(event_from_new(new), core);
    }
}
