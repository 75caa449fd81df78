//! Object metadata, conditions and label selectors, as far as the house reads them.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::field::Field;
use crate::model::writer::Writer;
use crate::model::{Subject, text};

/// Most managedFields entries kept.
const MAX_WRITERS: usize = 64;

/// `metadata` of any object.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Meta {
    /// Name.
    pub name: String,
    /// Namespace; empty for cluster-scoped objects.
    pub namespace: String,
    /// uid; empty where it is not given.
    pub uid: String,
    /// Generation of the spec.
    pub generation: Option<i64>,
    /// When it was created.
    pub created: Option<Timestamp>,
    /// Set when it is being deleted: when it should be gone.
    pub deletion: Option<Timestamp>,
    /// Grace period of the deletion, seconds.
    pub deletion_grace_s: Option<i64>,
    /// Labels.
    pub labels: BTreeMap<String, String>,
    /// Annotations without `last-applied-configuration`; secrets are redacted.
    pub annotations: BTreeMap<String, String>,
    /// Owners.
    pub owners: Vec<Owner>,
    /// Finalizers.
    pub finalizers: Vec<String>,
    /// Who writes what.
    pub writers: Vec<Writer>,
    /// `spec.replicas` as the annotation `kubectl.kubernetes.io/last-applied-configuration` states it: what the next client-side apply
    /// of the same file sets.
    pub applied_replicas: Option<u32>,
}

/// One owner reference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owner {
    /// `apiVersion` of the owner.
    pub api_version: String,
    /// Kind as the API writes it.
    pub kind: String,
    /// Name; in the namespace of the owned object.
    pub name: String,
    /// uid of the owner.
    pub uid: String,
    /// Whether it is the managing controller.
    pub controller: bool,
}

impl Meta {
    /// Reads `metadata`.
    pub fn read(field: &Field) -> Self {
        Self {
            name: field.get("name").name_or_empty(),
            namespace: field.get("namespace").name_or_empty(),
            uid: field.get("uid").name_or_empty(),
            generation: field.get("generation").int().some(),
            created: field.get("creationTimestamp").instant().some(),
            deletion: field.get("deletionTimestamp").instant().some(),
            deletion_grace_s: field.get("deletionGracePeriodSeconds").int().some(),
            labels: field.get("labels").labels(),
            annotations: field.get("annotations").annotations(),
            owners: field.get("ownerReferences").items().iter().map(Owner::read).collect(),
            finalizers: field.get("finalizers").names(),
            writers: field.get("managedFields").items().iter().take(MAX_WRITERS).filter_map(|entry| Writer::read(entry.raw()?)).collect(),
            applied_replicas: field
                .get("annotations")
                .raw()
                .and_then(|annotations| annotations.get("kubectl.kubernetes.io/last-applied-configuration")?.as_str())
                .and_then(applied_replicas),
        }
    }

    /// The owner that is the controller.
    pub fn controller(&self) -> Option<&Owner> {
        self.owners.iter().find(|owner| owner.controller)
    }

    /// A label.
    pub fn label(&self, key: &str) -> Option<&str> {
        self.labels.get(key).map(String::as_str)
    }

    /// An annotation.
    pub fn annotation(&self, key: &str) -> Option<&str> {
        self.annotations.get(key).map(String::as_str)
    }

    /// When the deletion was asked for: `deletionTimestamp` less the grace period (the API sets it in the future).
    pub fn deleted_at(&self) -> Option<Timestamp> {
        let until = self.deletion?;
        until.checked_sub(jiff::SignedDuration::from_secs(self.deletion_grace_s.unwrap_or(0).clamp(0, 1 << 32))).ok()
    }
}

impl Owner {
    fn read(field: &Field) -> Self {
        Self {
            api_version: field.get("apiVersion").name_or_empty(),
            kind: field.get("kind").name_or_empty(),
            name: field.get("name").name_or_empty(),
            uid: field.get("uid").name_or_empty(),
            controller: field.get("controller").flag().some().unwrap_or(false),
        }
    }

    /// The owner as a subject of the namespace of what it owns.
    pub fn subject(&self, namespace: &str) -> Subject {
        let namespace = if self.kind == "Node" { "" } else { namespace };
        Subject::object(&self.kind, namespace, &self.name)
    }
}

/// The replicas that an applied configuration states.
fn applied_replicas(text: &str) -> Option<u32> {
    let applied: serde_json::Value = serde_json::from_str(text).ok()?;
    u32::try_from(applied.get("spec")?.get("replicas")?.as_u64()?).ok()
}

/// One condition of a status.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Condition {
    /// Type.
    pub kind: String,
    /// `True`, `False`, `Unknown`.
    pub status: String,
    /// Reason.
    pub reason: String,
    /// Message.
    pub message: String,
    /// When the status last changed.
    pub since: Option<Timestamp>,
    /// Generation it speaks of.
    pub observed_generation: Option<i64>,
}

impl Condition {
    /// Reads a list of conditions.
    pub fn read_all(field: &Field) -> Vec<Self> {
        field
            .items()
            .iter()
            .map(|item| Self {
                kind: item.get("type").name_or_empty(),
                status: item.get("status").name_or_empty(),
                reason: item.get("reason").name_or_empty(),
                message: item.get("message").text_or_empty(),
                since: item.get("lastTransitionTime").instant().some(),
                observed_generation: item.get("observedGeneration").int().some(),
            })
            .collect()
    }

    /// Whether it is `True`.
    pub fn is_true(&self) -> bool {
        self.status == "True"
    }

    /// Whether it is `False`.
    pub fn is_false(&self) -> bool {
        self.status == "False"
    }

    /// `status (reason: message)` as evidence shows it.
    pub fn shown(&self) -> String {
        match (self.reason.is_empty(), self.message.is_empty()) {
            (true, true) => self.status.clone(),
            (false, true) => format!("{} ({})", self.status, self.reason),
            (true, false) => format!("{} ({})", self.status, self.message),
            (false, false) => format!("{} ({}: {})", self.status, self.reason, self.message),
        }
    }
}

/// A condition by type.
pub fn condition<'a>(conditions: &'a [Condition], kind: &str) -> Option<&'a Condition> {
    conditions.iter().find(|condition| condition.kind == kind)
}

/// A label selector: `matchLabels` and `matchExpressions`, or a Service's plain map.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selector {
    /// Labels that must be equal.
    pub labels: BTreeMap<String, String>,
    /// Expressions that must hold.
    pub expressions: Vec<Expression>,
}

/// One `matchExpressions` entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expression {
    /// Label.
    pub key: String,
    /// `In`, `NotIn`, `Exists`, `DoesNotExist`.
    pub operator: String,
    /// Values.
    pub values: Vec<String>,
}

impl Selector {
    /// Reads a LabelSelector. `None` where there is none.
    pub fn read(field: &Field) -> Option<Self> {
        field.raw()?;
        Some(Self {
            labels: field.get("matchLabels").labels(),
            expressions: field
                .get("matchExpressions")
                .items()
                .iter()
                .map(|item| Expression {
                    key: item.get("key").name_or_empty(),
                    operator: item.get("operator").name_or_empty(),
                    values: item.get("values").label_values(),
                })
                .collect(),
        })
    }

    /// A plain map, as Services have it. `None` where there is none or it is empty: such a Service selects nothing.
    pub fn read_map(field: &Field) -> Option<Self> {
        let labels = field.labels();
        (!labels.is_empty()).then_some(Self { labels, expressions: Vec::new() })
    }

    /// Whether it asks for nothing at all.
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty() && self.expressions.is_empty()
    }

    /// Whether labels match. An empty selector matches everything, as in the API; an operator that is not known matches nothing.
    pub fn matches(&self, labels: &BTreeMap<String, String>) -> bool {
        self.labels.iter().all(|(key, value)| labels.get(key) == Some(value))
            && self.expressions.iter().all(|expression| {
                let value = labels.get(&expression.key);
                match expression.operator.as_str() {
                    "In" => value.is_some_and(|value| expression.values.contains(value)),
                    "NotIn" => value.is_none_or(|value| !expression.values.contains(value)),
                    "Exists" => value.is_some(),
                    "DoesNotExist" => value.is_none(),
                    // Node affinity alone has these two; both sides must be whole numbers.
                    "Gt" | "Lt" => {
                        let number = |text: Option<&String>| text.and_then(|text| text.parse::<i64>().ok());
                        match (number(value), number(expression.values.first())) {
                            (Some(has), Some(asked)) if expression.operator == "Gt" => has > asked,
                            (Some(has), Some(asked)) => has < asked,
                            _ => false,
                        }
                    }
                    _ => false,
                }
            })
    }

    /// Those of `labels` that it asks for, as evidence shows them: `app=a`; `none of app, role` where there is none of them. Other labels
    /// say nothing here, and may hold what is nobody's business.
    pub fn asked_of(&self, labels: &BTreeMap<String, String>) -> String {
        let keys: std::collections::BTreeSet<&String> = self.labels.keys().chain(self.expressions.iter().map(|e| &e.key)).collect();
        let has: Vec<String> = keys.iter().filter_map(|key| Some(format!("{key}={}", labels.get(*key)?))).collect();
        if has.is_empty() {
            return format!("none of {}", keys.into_iter().cloned().collect::<Vec<_>>().join(", "));
        }
        text::tidied(has.join(","))
    }

    /// What of it `labels` do not fulfil, in words: `app=qwen-a (the pod has app=qwen-b)`.
    pub fn missing(&self, labels: &BTreeMap<String, String>) -> Vec<String> {
        let mut out: Vec<String> = self
            .labels
            .iter()
            .filter(|(key, value)| labels.get(*key) != Some(*value))
            .map(|(key, value)| match labels.get(key) {
                Some(other) => format!("{key}={value} (the pod has {key}={other})"),
                None => format!("{key}={value} (the pod has no label {key})"),
            })
            .map(text::tidied)
            .collect();
        for expression in &self.expressions {
            let one = Self { labels: BTreeMap::new(), expressions: vec![expression.clone()] };
            if !one.matches(labels) {
                out.push(one.to_string());
            }
        }
        out
    }
}

impl std::fmt::Display for Selector {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let labels = self.labels.iter().map(|(key, value)| format!("{key}={value}"));
        let expressions = self.expressions.iter().map(|e| match e.operator.as_str() {
            "Exists" => e.key.clone(),
            "DoesNotExist" => format!("!{}", e.key),
            operator => format!("{} {} ({})", e.key, operator.to_ascii_lowercase(), e.values.join(",")),
        });
        f.write_str(&text::tidied(labels.chain(expressions).collect::<Vec<_>>().join(",")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replicas_of_the_last_apply() {
        assert_eq!(applied_replicas(r#"{"spec":{"replicas":2}}"#), Some(2));
        assert_eq!(applied_replicas(r#"{"spec":{"template":{}}}"#), None);
        assert_eq!(applied_replicas(r#"{"spec":{"replicas":-1}}"#), None);
        assert_eq!(applied_replicas("{"), None);
    }
    use rstest::rstest;
    use serde_json::json;
    use std::cell::RefCell;

    fn selector(doc: serde_json::Value) -> Selector {
        let problems = RefCell::new(Vec::new());
        Selector::read(&Field::root(&doc, &problems)).unwrap()
    }

    #[rstest]
    #[case(json!({"matchLabels": {"app": "a"}}), true)]
    #[case(json!({"matchLabels": {"app": "b"}}), false)]
    #[case(json!({"matchExpressions": [{"key": "app", "operator": "In", "values": ["x", "a"]}]}), true)]
    #[case(json!({"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["a"]}]}), false)]
    #[case(json!({"matchExpressions": [{"key": "zone", "operator": "DoesNotExist"}]}), true)]
    #[case(json!({"matchExpressions": [{"key": "zone", "operator": "Exists"}]}), false)]
    #[case(json!({"matchExpressions": [{"key": "app", "operator": "Near"}]}), false)]
    #[case(json!({"matchExpressions": [{"key": "n", "operator": "Gt", "values": ["7"]}]}), true)]
    #[case(json!({"matchExpressions": [{"key": "n", "operator": "Lt", "values": ["7"]}]}), false)]
    #[case(json!({}), true)]
    fn matching(#[case] doc: serde_json::Value, #[case] wanted: bool) {
        let labels = BTreeMap::from([("app".to_owned(), "a".to_owned()), ("n".to_owned(), "8".to_owned())]);
        assert_eq!(selector(doc).matches(&labels), wanted);
    }

    #[test]
    fn what_is_missing_is_said() {
        let labels = BTreeMap::from([("app".to_owned(), "b".to_owned())]);
        let missing = selector(json!({"matchLabels": {"app": "a", "role": "x"}})).missing(&labels);
        assert_eq!(missing, ["app=a (the pod has app=b)", "role=x (the pod has no label role)"]);
    }

    #[test]
    fn secrets_in_labels_match_and_are_not_shown() {
        let labels = |token: &str| BTreeMap::from([("app".to_owned(), "b".to_owned()), ("api-key".to_owned(), token.to_owned())]);
        let asks = Selector { labels: labels("s3cr3t-one"), expressions: Vec::new() };
        assert!(asks.matches(&labels("s3cr3t-one")) && !asks.matches(&labels("s3cr3t-two")));
        let shown = format!("{asks} {:?} {}", asks.missing(&labels("s3cr3t-two")), asks.asked_of(&labels("s3cr3t-two")));
        assert!(!shown.contains("s3cr3t") && shown.contains("api-key=[redacted]"), "{shown}");
        let app = Selector { labels: BTreeMap::from([("app".into(), "a".into())]), expressions: Vec::new() };
        assert_eq!(app.asked_of(&labels("x")), "app=b");
        assert_eq!(app.asked_of(&BTreeMap::new()), "none of app");
    }

    #[test]
    fn deletion_was_asked_for_a_grace_period_before() {
        let meta = Meta { deletion: crate::model::time::instant("2026-11-12T10:00:30Z"), deletion_grace_s: Some(30), ..Meta::default() };
        assert_eq!(meta.deleted_at(), crate::model::time::instant("2026-11-12T10:00:00Z"));
    }
}
