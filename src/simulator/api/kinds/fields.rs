//! Field selectors: which fields of which kind can select, and whether an object is selected.
//!
//! Owns the table of fields. The grammar is that of `k8s.io/apimachinery/pkg/fields` (1.36).

use serde_json::Value;

use super::super::status::{ApiError, ApiResult};
use super::{at, text};

/// The requirements of a field selector: field, wanted value, and whether it must differ.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FieldSelector(Vec<(String, String, bool)>);

const POD: &[&str] = &[
    "spec.nodeName",
    "spec.restartPolicy",
    "spec.schedulerName",
    "spec.serviceAccountName",
    "spec.hostNetwork",
    "status.phase",
    "status.podIP",
    "status.podIPs",
    "status.nominatedNodeName",
];
const EVENT: &[&str] = &[
    "involvedObject.kind",
    "involvedObject.namespace",
    "involvedObject.name",
    "involvedObject.uid",
    "involvedObject.apiVersion",
    "involvedObject.resourceVersion",
    "involvedObject.fieldPath",
    "reason",
    "reportingComponent",
    "source",
    "type",
];
const NEW_EVENT: &[&str] = &[
    "regarding.kind",
    "regarding.namespace",
    "regarding.name",
    "regarding.uid",
    "regarding.apiVersion",
    "regarding.resourceVersion",
    "regarding.fieldPath",
    "reason",
    "reportingController",
    "type",
];

/// The fields that select beside name and namespace; `None` when the kind has no list of its own.
fn selectable(group: &str, kind: &str) -> Option<&'static [&'static str]> {
    Some(match (group, kind) {
        ("", "Pod") => POD,
        ("", "Event") => EVENT,
        ("events.k8s.io", "Event") => NEW_EVENT,
        ("", "Node") => &["spec.unschedulable"],
        ("", "Namespace") => &["status.phase"],
        ("", "Secret") => &["type"],
        ("", "Service") => &["spec.clusterIP", "spec.type"],
        ("", "ReplicationController") | ("apps", "ReplicaSet") => &["status.replicas"],
        ("batch", "Job") => &["status.successful"],
        ("certificates.k8s.io", "CertificateSigningRequest") => &["spec.signerName"],
        _ => return None,
    })
}

impl FieldSelector {
    /// Reads a selector for objects of a kind. `more` are fields that a CRD declares as selectable (`.spec.color`).
    ///
    /// # Errors
    /// 400 for what is no selector and for fields that do not select this kind.
    pub fn parse(selector: &str, group: &str, kind: &str, more: &[String]) -> ApiResult<Self> {
        let mut needs = Vec::new();
        for part in split(selector) {
            let (name, wanted, differs) = requirement(&part)
                .ok_or_else(|| ApiError::bad_request(format!("invalid selector: '{selector}'; can't understand '{part}'")))?;
            let own = selectable(group, kind);
            let known = match name.as_str() {
                "metadata.name" => true,
                "metadata.namespace" => !matches!(kind, "Node" | "Namespace") || !group.is_empty(),
                name => own.is_some_and(|fields| fields.contains(&name)) || more.iter().any(|f| f.trim_start_matches('.') == name),
            };
            if !known {
                return Err(ApiError::bad_request(match own {
                    Some(_) => format!("field label not supported: {name}"),
                    None if more.is_empty() && !group.contains('.') || group.ends_with(".k8s.io") => {
                        format!("{name:?} is not a known field selector: only \"metadata.name\", \"metadata.namespace\"")
                    }
                    None => format!("field label not supported: {name}"),
                }));
            }
            needs.push((name, wanted, differs));
        }
        Ok(Self(needs))
    }

    /// Whether it selects everything.
    pub fn is_everything(&self) -> bool {
        self.0.is_empty()
    }

    /// The one name that it asks for, if it does.
    pub fn name(&self) -> Option<&str> {
        self.0.iter().find(|(field, _, differs)| field == "metadata.name" && !differs).map(|(_, name, _)| name.as_str())
    }

    /// Whether an object is selected.
    pub fn matches(&self, object: &Value) -> bool {
        self.0.iter().all(|(field, wanted, differs)| (value(object, field) == *wanted) != *differs)
    }
}

/// The name that a selector of any kind asks for, as the authorizer sees it.
pub fn asked_name(selector: &str) -> Option<String> {
    split(selector)
        .iter()
        .filter_map(|part| requirement(part))
        .find(|(f, _, differs)| f == "metadata.name" && !differs)
        .map(|(_, name, _)| name)
}

fn value(object: &Value, field: &str) -> String {
    let found = match field {
        "reportingComponent" | "reportingController" => {
            let own = text(object, &[field]);
            return if own.is_empty() { text(object, &["source", "component"]) } else { own }.to_owned();
        }
        "source" => {
            let own = text(object, &["source", "component"]);
            return if own.is_empty() { text(object, &["reportingComponent"]) } else { own }.to_owned();
        }
        "status.successful" => at(object, &["status", "succeeded"]),
        "status.podIPs" => return text(object, &["status", "podIP"]).to_owned(),
        "spec.unschedulable" | "spec.hostNetwork" => {
            let path: Vec<&str> = field.split('.').collect();
            return at(object, &path).and_then(Value::as_bool).unwrap_or(false).to_string();
        }
        field => at(object, &field.split('.').collect::<Vec<_>>()),
    };
    match found {
        Some(Value::String(text)) => text.clone(),
        None if field.starts_with("status.") && matches!(field, "status.replicas" | "status.successful") => "0".to_owned(),
        None | Some(Value::Null) => String::new(),
        Some(other) => other.to_string(),
    }
}

/// The parts between commas that are not escaped.
fn split(selector: &str) -> Vec<String> {
    let (mut parts, mut part, mut escaped) = (Vec::new(), String::new(), false);
    for c in selector.chars() {
        match c {
            ',' if !escaped => parts.push(std::mem::take(&mut part)),
            c => part.push(c),
        }
        escaped = c == '\\' && !escaped;
    }
    parts.push(part);
    parts.retain(|part| !part.is_empty());
    parts
}

fn requirement(part: &str) -> Option<(String, String, bool)> {
    let (name, wanted, differs) = part
        .split_once("!=")
        .map(|(n, w)| (n, w, true))
        .or_else(|| part.split_once("==").map(|(n, w)| (n, w, false)))
        .or_else(|| part.split_once('=').map(|(n, w)| (n, w, false)))?;
    let (mut value, mut escaped) = (String::new(), false);
    for c in wanted.chars() {
        match (escaped, c) {
            (false, '\\') => escaped = true,
            (false, '=') => return None,
            (_, c) => {
                escaped = false;
                value.push(c);
            }
        }
    }
    Some((name.to_owned(), value, differs))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn fields_select_and_unknown_ones_are_refused_in_kubernetes_words() {
        let pod = json!({"metadata":{"name":"a"},"spec":{"nodeName":"n"},"status":{"phase":"Running"}});
        let selector = FieldSelector::parse("spec.nodeName=n,status.phase!=Failed", "", "Pod", &[]).unwrap();
        assert!(selector.matches(&pod));
        assert_eq!(FieldSelector::parse("spec.x=1", "", "Pod", &[]).unwrap_err().message, "field label not supported: spec.x");
        let error = FieldSelector::parse("spec.x=1", "apps", "Deployment", &[]).unwrap_err();
        assert_eq!(error.message, "\"spec.x\" is not a known field selector: only \"metadata.name\", \"metadata.namespace\"");
        assert_eq!(asked_name("metadata.name=x\\,y,a=b"), Some("x,y".to_owned()));
    }
}
