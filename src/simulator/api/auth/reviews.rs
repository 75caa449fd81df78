//! The reviews: may I, may they, what may I, who am I, whose token is this.
//!
//! Owns the answers; each is a function of the store, the asker and the question.

use serde_json::{Value, json};

use super::super::kinds::{items, text};
use super::super::store::Store;
use super::{Attributes, User, authorize, rules_of};

/// The attributes that a `SubjectAccessReview` spec asks about.
fn asked(spec: &Value) -> Attributes {
    let of = |field: &str| text(spec, &["resourceAttributes", field]).to_owned();
    match spec.get("resourceAttributes") {
        Some(_) => Attributes {
            verb: of("verb"),
            group: of("group"),
            resource: of("resource"),
            subresource: of("subresource"),
            namespace: of("namespace"),
            name: of("name"),
            path: String::new(),
        },
        None => Attributes {
            verb: text(spec, &["nonResourceAttributes", "verb"]).to_owned(),
            path: text(spec, &["nonResourceAttributes", "path"]).to_owned(),
            ..Attributes::default()
        },
    }
}

/// Answers a Self-, Local- or SubjectAccessReview.
pub fn access(store: &Store, asker: &User, mut review: Value, own: bool) -> Value {
    let spec = review.get("spec").cloned().unwrap_or_default();
    let user = match own {
        true => asker.clone(),
        false => User {
            name: text(&spec, &["user"]).to_owned(),
            groups: items(&spec, &["groups"]).iter().filter_map(Value::as_str).map(str::to_owned).collect(),
            ..User::default()
        },
    };
    review["status"] = match authorize(store, &user, &asked(&spec)) {
        Ok(()) => json!({"allowed": true}),
        Err(reason) if reason.is_empty() => json!({"allowed": false}),
        Err(reason) => json!({"allowed": false, "reason": reason}),
    };
    review
}

/// Answers a SelfSubjectRulesReview.
pub fn rules(store: &Store, asker: &User, mut review: Value) -> Value {
    let namespace = text(&review, &["spec", "namespace"]).to_owned();
    let (mut found, missing) = rules_of(store, asker, &namespace);
    if asker.groups.iter().any(|g| g == "system:masters") {
        // The group is allowed everything before any role is asked; the role of the same meaning stands in the list anyway.
        found.retain(|rule| !items(rule, &["verbs"]).is_empty());
    }
    let keep = |rule: &Value, fields: &[&str]| {
        let members = fields.iter().filter_map(|field| Some(((*field).to_owned(), rule.get(*field)?.clone())));
        Value::Object(members.collect())
    };
    let (plain, resources): (Vec<&Value>, Vec<&Value>) = found.iter().partition(|rule| !items(rule, &["nonResourceURLs"]).is_empty());
    let resources: Vec<Value> = resources.iter().map(|r| keep(r, &["verbs", "apiGroups", "resources", "resourceNames"])).collect();
    let plain: Vec<Value> = plain.iter().map(|r| keep(r, &["verbs", "nonResourceURLs"])).collect();
    review["status"] = json!({"resourceRules": resources, "nonResourceRules": plain, "incomplete": !missing.is_empty()});
    if !missing.is_empty() {
        review["status"]["evaluationError"] = missing.join(", ").into();
    }
    review
}

/// Answers a SelfSubjectReview.
pub fn myself(asker: &User, mut review: Value, now: &str) -> Value {
    review["metadata"] = json!({"creationTimestamp": now});
    review["status"] = json!({"userInfo": asker.to_value()});
    review
}
