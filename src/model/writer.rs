//! Writers: who writes a field of an object, read from `metadata.managedFields`.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde_json::Value;

/// One field manager and what it owns, reduced from one managedFields entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Writer {
    /// `metadata.managedFields[].manager`.
    pub manager: String,
    /// `Apply` or `Update`.
    pub operation: String,
    /// `status`, `scale` or empty.
    pub subresource: String,
    /// Time of its last write that changed something.
    pub time: Option<Timestamp>,
    /// Paths it owns, to the depth at which people ask: `spec.replicas`, `spec.template`, `metadata.annotations[x/y]`.
    pub fields: BTreeSet<String>,
}

/// Most paths kept of one entry.
const MAX_FIELDS: usize = 64;

impl Writer {
    /// Reduces one entry of managedFields. `None` where the entry is not an object.
    pub fn read(entry: &Value) -> Option<Self> {
        let entry = entry.as_object()?;
        let text = |key: &str| entry.get(key).and_then(Value::as_str).map(super::text::clean_name).unwrap_or_default();
        let mut fields = BTreeSet::new();
        if let Some(owned) = entry.get("fieldsV1") {
            collect(owned, "", 0, &mut fields);
        }
        Some(Self {
            manager: text("manager"),
            operation: text("operation"),
            subresource: text("subresource"),
            time: entry.get("time").and_then(Value::as_str).and_then(super::time::instant),
            fields,
        })
    }

    /// Whether it owns this path, something below it, or something that holds it.
    pub fn owns(&self, path: &str) -> bool {
        self.fields.iter().any(|field| {
            let below =
                |outer: &str, inner: &str| inner.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']));
            below(path, field) || below(field, path)
        })
    }
}

fn collect(owned: &Value, path: &str, depth: usize, out: &mut BTreeSet<String>) {
    let Some(map) = owned.as_object() else { return };
    for (key, below) in map {
        if out.len() >= MAX_FIELDS {
            return;
        }
        let Some(name) = key.strip_prefix("f:") else { continue };
        let name = super::text::clean_name(name);
        let keyed = path.ends_with("annotations") || path.ends_with("labels");
        let here = match (path.is_empty(), keyed) {
            (true, _) => name,
            (false, true) => format!("{path}[{name}]"),
            (false, false) => format!("{path}.{name}"),
        };
        let deeper = below.as_object().is_some_and(|inner| inner.keys().any(|k| k.starts_with("f:")));
        // Below a pod template only its annotations and labels are told apart; a restart is written there.
        let go = depth < 1
            || matches!(here.as_str(), "metadata.annotations" | "metadata.labels" | "spec.template")
            || here.starts_with("spec.template.metadata");
        if deeper && go && depth < 6 {
            collect(below, &here, depth + 1, out);
            if here == "spec.template" {
                out.insert(here);
            }
        } else {
            out.insert(here);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_entry_is_reduced_to_the_paths_people_ask_for() {
        let writer = Writer::read(&json!({
            "manager": "kubectl-rollout", "operation": "Update", "time": "2026-11-12T09:58:00Z", "subresource": "",
            "fieldsV1": {"f:spec": {"f:replicas": {}, "f:template": {"f:metadata": {"f:annotations": {".": {},
                "f:kubectl.kubernetes.io/restartedAt": {}}}, "f:spec": {"f:containers": {"k:{\"name\":\"a\"}": {"f:image": {}}}}}}}
        }))
        .unwrap();
        assert_eq!(writer.manager, "kubectl-rollout");
        assert!(writer.owns("spec.replicas"));
        assert!(writer.owns("spec.template"));
        assert!(writer.owns("spec.template.metadata.annotations[kubectl.kubernetes.io/restartedAt]"));
        assert!(writer.owns("spec"));
        assert!(!writer.owns("spec.rep"));
        assert!(!writer.owns("status"));
    }

    #[test]
    fn broken_entries_cost_only_themselves() {
        assert_eq!(Writer::read(&json!(3)), None);
        let writer = Writer::read(&json!({"manager": 4, "fieldsV1": ["x"], "time": "soon"})).unwrap();
        assert_eq!((writer.manager.as_str(), writer.time, writer.fields.len()), ("", None, 0));
    }
}
