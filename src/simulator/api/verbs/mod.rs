//! The verbs: what each does to the state and what it answers.
//!
//! Owns the order of steps in a request once it is known who asks for what. Must not know connections.

pub mod create;
pub mod decode;
pub mod delete;
pub mod list;
pub mod patch;
pub mod update;
pub mod watch;

use std::sync::Arc;

use bytes::Bytes;
use serde_json::Value;

use super::auth::User;
use super::http::{Accept, Query, Target};
use super::kinds::convert;
use super::registry::Resource;

/// A request that may be served.
#[derive(Debug, Clone)]
pub struct Call {
    /// Who asks.
    pub user: User,
    /// `get`, `create`, …
    pub verb: String,
    /// For what.
    pub target: Target,
    /// With which options.
    pub query: Query,
    /// In which form the answer is wanted.
    pub accept: Accept,
    /// What the body is.
    pub content_type: String,
    /// The body.
    pub body: Bytes,
    /// The client's name.
    pub agent: String,
}

impl Call {
    /// The field manager: the one that is named, else what the user agent starts with.
    pub fn manager(&self) -> String {
        match self.query.get("fieldManager") {
            "" => super::apply::manager_from_user_agent(&self.agent),
            named => named.to_owned(),
        }
    }
}

/// An answer that is one object.
#[derive(Debug, Clone)]
pub struct Answer {
    /// The HTTP code.
    pub code: u16,
    /// The object in the version that was asked for.
    pub object: Value,
    /// What is told in `Warning` headers.
    pub warnings: Vec<String>,
}

impl Answer {
    /// A plain 200.
    pub fn ok(object: Value) -> Self {
        Self { code: 200, object, warnings: Vec::new() }
    }
}

/// A stored object in the version of a resource.
pub fn outgoing(resource: &Resource, stored: &Value) -> Value {
    let mut object = match (resource.gr.group.as_str(), resource.version.as_str(), resource.kind.as_str()) {
        ("autoscaling", "v1", "HorizontalPodAutoscaler") => convert::hpa_to_v1(stored.clone()),
        ("events.k8s.io", _, "Event") => convert::event_to_new(stored.clone()),
        _ => stored.clone(),
    };
    if let Some(members) = object.as_object_mut() {
        members.insert("apiVersion".into(), resource.api_version().into());
        members.insert("kind".into(), resource.kind.clone().into());
    }
    if let (None, false, Some(node)) = (&resource.custom, is_served_as_stored(resource), resource.node()) {
        super::schema::normalise(&mut object, node);
    }
    object
}

/// An object in the version of a resource as it is stored.
pub fn incoming(resource: &Resource, object: Value) -> Value {
    let mut stored = match (resource.gr.group.as_str(), resource.version.as_str(), resource.kind.as_str()) {
        ("autoscaling", "v1", "HorizontalPodAutoscaler") => convert::hpa_from_v1(object),
        ("events.k8s.io", _, "Event") => convert::event_from_new(object),
        _ => object,
    };
    let (group, version) = resource.stored_version();
    if let Some(members) = stored.as_object_mut() {
        members.insert("apiVersion".into(), super::registry::join(group, version).into());
        members.insert("kind".into(), resource.kind.clone().into());
    }
    stored
}

/// Whether stored objects are served as they are.
pub fn is_served_as_stored(resource: &Resource) -> bool {
    let (group, version) = resource.stored_version();
    group == resource.gr.group && version == resource.version
}

/// A resource that is asked for.
pub type Served = Arc<Resource>;
