//! The rules that bind a user, and whether they allow a request.

use serde_json::Value;

use super::super::kinds::{items, text};
use super::super::status::GroupResource;
use super::super::store::{Range, Store};
use super::{Attributes, User};

const RBAC: &str = "rbac.authorization.k8s.io";

/// Whether a user may. `Err` carries what the authorizer has to say beside no, often nothing.
///
/// # Errors
/// The answer is no.
pub fn authorize(store: &Store, user: &User, asked: &Attributes) -> Result<(), String> {
    if user.groups.iter().any(|g| g == "system:masters") {
        return Ok(());
    }
    let (rules, missing) = rules_of(store, user, &asked.namespace);
    match rules.iter().any(|rule| allows(rule, asked)) {
        true => Ok(()),
        false => Err(match missing.as_slice() {
            [] => String::new(),
            [one] => format!("RBAC: {one}"),
            many => format!("RBAC: [{}]", many.join(", ")),
        }),
    }
}

/// All rules for a user in a namespace (empty: those for the whole cluster only), and what bindings point at in vain.
pub fn rules_of(store: &Store, user: &User, namespace: &str) -> (Vec<Value>, Vec<String>) {
    let (mut rules, mut missing) = (Vec::new(), Vec::new());
    let resource = |name: &str| GroupResource::new(RBAC, name);
    let bindings = resource("clusterrolebindings");
    let mut collect = |binding: &Value, namespace: &str| {
        if !items(binding, &["subjects"]).iter().any(|subject| applies(subject, user, namespace)) {
            return;
        }
        let (kind, name) = (text(binding, &["roleRef", "kind"]), text(binding, &["roleRef", "name"]));
        let (plural, home, singular) = match kind {
            "ClusterRole" => ("clusterroles", "", "clusterrole"),
            _ => ("roles", namespace, "role"),
        };
        match store.get(&resource(plural), home, name) {
            Some(role) => rules.extend(items(&role.object, &["rules"]).iter().cloned()),
            None => missing.push(format!("{singular}.{RBAC} {name:?} not found")),
        }
    };
    for (_, binding) in store.list(&bindings, Range::default()) {
        collect(&binding.object, "");
    }
    if !namespace.is_empty() {
        for (_, binding) in store.list(&resource("rolebindings"), Range { namespace: Some(namespace), after: None }) {
            collect(&binding.object, namespace);
        }
    }
    (rules, missing)
}

fn applies(subject: &Value, user: &User, namespace: &str) -> bool {
    let name = text(subject, &["name"]);
    match text(subject, &["kind"]) {
        "User" => user.name == name,
        "Group" => user.groups.iter().any(|g| g == name),
        "ServiceAccount" => {
            let home = Some(text(subject, &["namespace"])).filter(|n| !n.is_empty()).unwrap_or(namespace);
            !home.is_empty() && user.account() == Some((home, name))
        }
        _ => false,
    }
}

fn has(rule: &Value, field: &str, wanted: &[&str]) -> bool {
    items(rule, &[field]).iter().filter_map(Value::as_str).any(|given| wanted.contains(&given))
}

/// Whether one rule allows a request.
pub fn allows(rule: &Value, asked: &Attributes) -> bool {
    if !has(rule, "verbs", &["*", &asked.verb]) {
        return false;
    }
    if asked.resource.is_empty() {
        let urls = items(rule, &["nonResourceURLs"]).iter().filter_map(Value::as_str);
        return urls.into_iter().any(|url| match url.strip_suffix('*') {
            Some(prefix) => asked.path.starts_with(prefix),
            None => asked.path == url,
        });
    }
    let whole = asked.whole_resource();
    let any = format!("*/{}", asked.subresource);
    let resources: &[&str] = if asked.subresource.is_empty() { &["*", &whole] } else { &["*", &whole, &any] };
    let names = items(rule, &["resourceNames"]);
    has(rule, "apiGroups", &["*", &asked.group])
        && has(rule, "resources", resources)
        && (names.is_empty() || (!asked.name.is_empty() && names.iter().any(|n| n.as_str() == Some(&asked.name))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;
    use serde_json::json;

    #[rstest]
    #[case("get", "pods", "", "a", true)]
    #[case("get", "pods", "log", "a", true)]
    #[case("delete", "pods", "", "a", false)]
    #[case("get", "secrets", "", "s", true)]
    #[case("get", "secrets", "", "t", false)]
    #[case("list", "secrets", "", "", false)]
    fn rules_allow_what_they_name(#[case] verb: &str, #[case] resource: &str, #[case] sub: &str, #[case] name: &str, #[case] may: bool) {
        let rules = [
            json!({"apiGroups":[""],"resources":["pods","pods/log"],"verbs":["get","list"]}),
            json!({"apiGroups":[""],"resources":["secrets"],"resourceNames":["s"],"verbs":["*"]}),
        ];
        let asked = Attributes {
            verb: verb.into(),
            resource: resource.into(),
            subresource: sub.into(),
            name: name.into(),
            namespace: "n".into(),
            ..Attributes::default()
        };
        assert_eq!(rules.iter().any(|rule| allows(rule, &asked)), may);
    }
}
