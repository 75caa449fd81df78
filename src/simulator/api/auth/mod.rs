//! Who asks, and whether they may: users, the attributes of a request, and role-based access control over the stored roles.
//!
//! Owns the authorizer and its words, as `k8s.io/kubernetes/plugin/pkg/auth/authorizer/rbac` has them (1.36). Must not read requests:
//! see [`super::http`].

pub mod bootstrap;
mod escalate;
pub mod reviews;
pub mod rules;
pub mod tokens;

use std::collections::BTreeMap;

use serde_json::{Value, json};

pub use escalate::refuse_escalation;
pub use rules::{authorize, rules_of};

use super::status::{ApiError, GroupResource};

/// Somebody.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct User {
    /// The name: `alice`, `system:serviceaccount:ns:name`, `system:anonymous`.
    pub name: String,
    /// A unique id, when the way of login gives one.
    pub uid: String,
    /// The groups, `system:authenticated` among them for everybody who logged in.
    pub groups: Vec<String>,
    /// What else the login tells.
    pub extra: BTreeMap<String, Vec<String>>,
}

impl User {
    /// Somebody who logged in.
    pub fn known(name: impl Into<String>, groups: &[&str]) -> Self {
        let mut groups: Vec<String> = groups.iter().map(|g| (*g).to_owned()).collect();
        if !groups.iter().any(|g| g == "system:authenticated") {
            groups.push("system:authenticated".to_owned());
        }
        Self { name: name.into(), groups, ..Self::default() }
    }

    /// Somebody who did not.
    pub fn anonymous() -> Self {
        Self { name: "system:anonymous".to_owned(), groups: vec!["system:unauthenticated".to_owned()], ..Self::default() }
    }

    /// The service account, if it is one: namespace and name.
    pub fn account(&self) -> Option<(&str, &str)> {
        self.name.strip_prefix("system:serviceaccount:")?.split_once(':')
    }

    /// `authentication.k8s.io/v1` UserInfo.
    pub fn to_value(&self) -> Value {
        let mut info = json!({"username": self.name, "groups": self.groups});
        if !self.uid.is_empty() {
            info["uid"] = self.uid.clone().into();
        }
        if !self.extra.is_empty() {
            info["extra"] = json!(self.extra);
        }
        info
    }
}

/// What is asked, as the authorizer sees it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Attributes {
    /// `get`, `list`, `watch`, `create`, … or the lower-case HTTP method of a plain path.
    pub verb: String,
    /// The API group.
    pub group: String,
    /// The plural name; empty for a plain path.
    pub resource: String,
    /// The subresource, or empty.
    pub subresource: String,
    /// The namespace, or empty.
    pub namespace: String,
    /// The object's name, or empty.
    pub name: String,
    /// The plain path when no resource is asked.
    pub path: String,
}

impl Attributes {
    /// `pods/log`, `pods`.
    pub fn whole_resource(&self) -> String {
        match self.subresource.is_empty() {
            true => self.resource.clone(),
            false => format!("{}/{}", self.resource, self.subresource),
        }
    }
}

/// The 403 for a request. `reason` is what the authorizer adds, often nothing.
pub fn forbidden(user: &User, asked: &Attributes, reason: &str) -> ApiError {
    let name = &user.name;
    if asked.resource.is_empty() {
        let why = format!("User {name:?} cannot {} path {:?}", asked.verb, asked.path);
        let why = if reason.is_empty() { why } else { format!("{why}: {reason}") };
        return ApiError::new(403, "Forbidden", format!("forbidden: {why}")).with_details(json!({}));
    }
    let resource = asked.whole_resource();
    let mut why = format!("User {name:?} cannot {} resource {resource:?} in API group {:?}", asked.verb, asked.group);
    why += &match asked.namespace.is_empty() {
        true => " at the cluster scope".to_owned(),
        false => format!(" in the namespace {:?}", asked.namespace),
    };
    if !reason.is_empty() {
        why = format!("{why}: {reason}");
    }
    ApiError::forbidden(&GroupResource::new(asked.group.clone(), asked.resource.clone()), &asked.name, &why)
}
