//! Nobody gives what they do not have: writes to roles and bindings by users who hold less.

use serde_json::Value;

use super::super::kinds::{items, text};
use super::super::status::{ApiError, GroupResource};
use super::super::store::Store;
use super::rules::{allows, authorize, rules_of};
use super::{Attributes, User};

const RBAC: &str = "rbac.authorization.k8s.io";

/// Checks a role or binding that is about to be written.
///
/// # Errors
/// 403 with the rules that the user does not hold.
pub fn refuse_escalation(store: &Store, user: &User, resource: &GroupResource, object: &Value) -> Result<(), ApiError> {
    if resource.group != RBAC || user.groups.iter().any(|g| g == "system:masters") {
        return Ok(());
    }
    let namespace = text(object, &["metadata", "namespace"]);
    let name = text(object, &["metadata", "name"]);
    let may = |verb: &str, resource: &str, name: &str| {
        let asked = Attributes {
            verb: verb.to_owned(),
            group: RBAC.to_owned(),
            resource: resource.to_owned(),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            ..Attributes::default()
        };
        authorize(store, user, &asked).is_ok()
    };
    let granted = match resource.resource.as_str() {
        "roles" | "clusterroles" => {
            if may("escalate", &resource.resource, name) {
                return Ok(());
            }
            items(object, &["rules"]).to_vec()
        }
        _ => {
            let (kind, role) = (text(object, &["roleRef", "kind"]), text(object, &["roleRef", "name"]));
            let (plural, home) = if kind == "ClusterRole" { ("clusterroles", "") } else { ("roles", namespace) };
            if may("bind", plural, role) {
                return Ok(());
            }
            match store.get(&GroupResource::new(RBAC, plural), home, role) {
                Some(found) => items(&found.object, &["rules"]).to_vec(),
                None => {
                    return Err(ApiError::not_found(&GroupResource::new(RBAC, plural), role));
                }
            }
        }
    };
    let (held, _) = rules_of(store, user, namespace);
    let lacking: Vec<String> = granted.iter().filter(|rule| !covered(rule, &held)).map(shown).collect();
    if lacking.is_empty() {
        return Ok(());
    }
    let groups = user.groups.iter().map(|g| format!("{g:?}")).collect::<Vec<_>>().join(" ");
    let why = format!(
        "user {:?} (groups=[{groups}]) is attempting to grant RBAC permissions not currently held:\n{}",
        user.name,
        lacking.join("\n")
    );
    Err(ApiError::forbidden(resource, name, &why))
}

/// Whether each single permission in a rule is held.
fn covered(rule: &Value, held: &[Value]) -> bool {
    let list = |field: &str| items(rule, &[field]).iter().filter_map(Value::as_str).map(str::to_owned).collect::<Vec<_>>();
    let or_one = |values: Vec<String>| if values.is_empty() { vec![String::new()] } else { values };
    for verb in list("verbs") {
        for path in list("nonResourceURLs") {
            let asked = Attributes { verb: verb.clone(), path, ..Attributes::default() };
            if !held.iter().any(|rule| allows(rule, &asked)) {
                return false;
            }
        }
        for group in list("apiGroups") {
            for resource in list("resources") {
                let (resource, subresource) = resource.split_once('/').unwrap_or((&resource, ""));
                for name in or_one(list("resourceNames")) {
                    let asked = Attributes {
                        verb: verb.clone(),
                        group: group.clone(),
                        resource: resource.to_owned(),
                        subresource: subresource.to_owned(),
                        name,
                        ..Attributes::default()
                    };
                    if !held.iter().any(|rule| allows(rule, &asked)) {
                        return false;
                    }
                }
            }
        }
    }
    true
}

/// A rule as Go prints it.
fn shown(rule: &Value) -> String {
    let fields = [
        ("apiGroups", "APIGroups"),
        ("resources", "Resources"),
        ("resourceNames", "ResourceNames"),
        ("nonResourceURLs", "NonResourceURLs"),
        ("verbs", "Verbs"),
    ];
    let parts = fields.iter().filter(|(field, _)| !items(rule, &[field]).is_empty());
    let parts = parts.map(|(field, shown)| {
        let values = items(rule, &[field]).iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
        format!("{shown}:[{}]", values.replace("\" \"", "\", \""))
    });
    format!("{{{}}}", parts.collect::<Vec<_>>().join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_rule_is_covered_by_those_that_hold_each_of_its_permissions() {
        let rule = json!({"apiGroups":[""],"resources":["pods","pods/log"],"verbs":["get"]});
        assert!(covered(&rule, &[json!({"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]})]));
        assert!(!covered(&rule, &[json!({"apiGroups":[""],"resources":["pods"],"verbs":["get"]})]));
        assert_eq!(shown(&rule), "{APIGroups:[\"\"], Resources:[\"pods\", \"pods/log\"], Verbs:[\"get\"]}");
    }
}
