//! Kubernetes objects in the slim form that the house keeps, and the catalogue of those that are seen.
//!
//! Reads untrusted JSON: a field of a wrong type is unknown with its reason and a problem of its object; it never panics and never
//! costs a neighbour. Must not judge what an object means.

pub mod autoscale;
pub mod canary;
pub mod catalogue;
pub mod cluster;
pub mod devices;
pub mod field;
pub mod meta;
pub mod network;
pub mod pod;
pub mod workload;

use std::cell::RefCell;

use jiff::Timestamp;
use serde_json::Value;

pub use autoscale::{Hpa, ScaledObject};
pub use canary::Canary;
pub use catalogue::Catalogue;
pub use cluster::{Budget, Claim, Event, Lease, Node};
use field::Field;
pub use meta::{Condition, Meta, Selector};
pub use network::{EndpointSlice, InferencePool, Route, RouteRule, Service};
pub use pod::{Container, ContainerState, Pod, PodSpec};
pub use workload::{Workload, WorkloadKind};

use super::{Known, Subject, Unknown, text};

/// One object as last seen.
#[derive(Debug, Clone, PartialEq)]
pub struct Object {
    /// `apiVersion`.
    pub api_version: String,
    /// Kind as the API writes it.
    pub kind: String,
    /// Metadata.
    pub meta: Meta,
    /// What the house reads of the rest.
    pub body: Body,
    /// When it was seen.
    pub seen: Timestamp,
    /// Fields that could not be read, in words.
    pub problems: Vec<String>,
}

/// The part of an object that depends on its kind.
#[derive(Debug, Clone, PartialEq)]
pub enum Body {
    /// v1.
    Pod(Box<Pod>),
    /// Whatever makes pods.
    Workload(Box<Workload>),
    /// v1.
    Service(Service),
    /// discovery.k8s.io/v1.
    EndpointSlice(EndpointSlice),
    /// inference.networking.k8s.io/v1, inference.networking.x-k8s.io/v1alpha2.
    InferencePool(InferencePool),
    /// gateway.networking.k8s.io.
    Route(Route),
    /// autoscaling/v2.
    Hpa(Box<Hpa>),
    /// keda.sh/v1alpha1.
    ScaledObject(Box<ScaledObject>),
    /// v1.
    Node(Node),
    /// v1, events.k8s.io/v1.
    Event(Event),
    /// coordination.k8s.io/v1.
    Lease(Lease),
    /// policy/v1.
    Budget(Budget),
    /// v1.
    Claim(Claim),
    /// Anything else: its JSON without metadata and without data that could be secret, bounded.
    Other(Value),
}

/// Most bytes of text kept of an object of a kind that has no slim form.
const MAX_OTHER_DEPTH: usize = 24;

impl Object {
    /// Reads one object. Fails only where it has no kind or no name: everything else is unknown field by field.
    ///
    /// # Errors
    /// The reason, when the document is no Kubernetes object.
    pub fn read(value: &Value, seen: Timestamp) -> Known<Self> {
        let problems = RefCell::new(Vec::new());
        let root = Field::root(value, &problems);
        let kind = root.get("kind").name().known()?;
        let api_version = root.get("apiVersion").name_or_empty();
        let meta = Meta::read(&root.get("metadata"));
        if kind.is_empty() || meta.name.is_empty() {
            return Err(Unknown::because(format!("an object of kind {kind:?} without metadata.name")));
        }
        let group = api_version.split_once('/').map_or("", |(group, _)| group);
        let workload = |kind| Body::Workload(Box::new(Workload::read(kind, &root)));
        let body = match (group, kind.as_str()) {
            ("", "Pod") => Body::Pod(Box::new(Pod::read(&root))),
            ("apps", "Deployment") => workload(WorkloadKind::Deployment),
            ("apps", "ReplicaSet") => workload(WorkloadKind::ReplicaSet),
            ("apps", "StatefulSet") => workload(WorkloadKind::StatefulSet),
            ("apps", "DaemonSet") => workload(WorkloadKind::DaemonSet),
            ("leaderworkerset.x-k8s.io", "LeaderWorkerSet") => workload(WorkloadKind::LeaderWorkerSet),
            ("argoproj.io", "Rollout") => workload(WorkloadKind::Rollout),
            ("apps.kruise.io", "CloneSet") => workload(WorkloadKind::CloneSet),
            ("", "Service") => Body::Service(Service::read(&root)),
            ("discovery.k8s.io", "EndpointSlice") => Body::EndpointSlice(EndpointSlice::read(&root)),
            ("inference.networking.k8s.io" | "inference.networking.x-k8s.io", "InferencePool") => {
                Body::InferencePool(InferencePool::read(&root))
            }
            ("gateway.networking.k8s.io", "HTTPRoute" | "GRPCRoute") => Body::Route(Route::read(&root)),
            ("autoscaling", "HorizontalPodAutoscaler") => Body::Hpa(Box::new(Hpa::read(&root))),
            ("keda.sh", "ScaledObject") => Body::ScaledObject(Box::new(ScaledObject::read(&root))),
            ("", "Node") => Body::Node(Node::read(&root)),
            ("" | "events.k8s.io", "Event") => Body::Event(Event::read(&root)),
            ("coordination.k8s.io", "Lease") => Body::Lease(Lease::read(&root)),
            ("policy", "PodDisruptionBudget") => Body::Budget(Budget::read(&root)),
            ("", "PersistentVolumeClaim") => Body::Claim(Claim::read(&root)),
            // A Secret's or ConfigMap's data is nobody's business here.
            ("", "Secret" | "ConfigMap") => Body::Other(Value::Null),
            _ => Body::Other(prune(value)),
        };
        let mut problems = problems.into_inner();
        if api_version.is_empty() {
            problems.insert(0, "apiVersion is not set: the object is read as if it were of the core group".into());
        }
        Ok(Self { api_version, kind, meta, body, seen, problems })
    }

    /// API group; empty for the core group.
    pub fn group(&self) -> &str {
        self.api_version.split_once('/').map_or("", |(group, _)| group)
    }

    /// Its name in documents and on screen. A foreign kind that shares its name with a built-in one carries its group:
    /// Knative's Service is `service.serving.knative.dev/…`.
    pub fn subject(&self) -> Subject {
        let foreign = matches!(self.body, Body::Other(_))
            && matches!(self.kind.as_str(), "Pod" | "Service" | "Node" | "Deployment" | "StatefulSet" | "ReplicaSet" | "Event")
            && !self.group().is_empty();
        if foreign {
            return Subject::object(&format!("{}.{}", self.kind, self.group()), &self.meta.namespace, &self.meta.name);
        }
        Subject::object(&self.kind, &self.meta.namespace, &self.meta.name)
    }
}

/// The JSON of a custom resource without metadata, its texts made harmless, secrets left out, to a bounded depth.
fn prune(value: &Value) -> Value {
    fn walk(value: &Value, depth: usize) -> Value {
        match value {
            Value::Object(map) if depth < MAX_OTHER_DEPTH => Value::Object(
                map.iter()
                    .filter(|(key, _)| depth > 0 || !matches!(key.as_str(), "metadata" | "data" | "stringData"))
                    .map(|(key, inner)| {
                        let secret = text::is_secret_name(key) && inner.is_string();
                        let kept = if secret { Value::String("[redacted]".into()) } else { walk(inner, depth + 1) };
                        (text::clean_name(key), kept)
                    })
                    .collect(),
            ),
            Value::Array(list) if depth < MAX_OTHER_DEPTH => {
                Value::Array(list.iter().take(1000).map(|inner| walk(inner, depth + 1)).collect())
            }
            Value::Object(_) | Value::Array(_) => Value::Null,
            Value::String(raw) => Value::String(text::tidy(raw)),
            other => other.clone(),
        }
    }
    walk(value, 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn now() -> Timestamp {
        Timestamp::UNIX_EPOCH
    }

    #[test]
    fn only_kind_and_name_are_needed() {
        let pod = Object::read(&json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}}), now()).unwrap();
        assert_eq!(pod.subject().as_str(), "pod/a");
        assert!(Object::read(&json!({"kind": "Pod"}), now()).is_err());
        assert!(Object::read(&json!([]), now()).is_err());
        assert!(Object::read(&json!({"apiVersion": "v1", "kind": 3, "metadata": {"name": "a"}}), now()).is_err());
    }

    #[test]
    fn secrets_of_any_kind_are_not_kept() {
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}, "data": {"k": "czNjcjN0"}});
        assert_eq!(Object::read(&secret, now()).unwrap().body, Body::Other(Value::Null));
        let custom = json!({"apiVersion": "x.io/v1", "kind": "Model", "metadata": {"name": "a"},
            "spec": {"apiKey": "s3cr3t", "uri": "hf://a"}});
        let Body::Other(kept) = Object::read(&custom, now()).unwrap().body else { panic!("not other") };
        assert_eq!(kept["spec"]["apiKey"], "[redacted]");
        assert_eq!(kept["spec"]["uri"], "hf://a");
    }

    #[test]
    fn a_foreign_service_is_told_apart() {
        let knative = json!({"apiVersion": "serving.knative.dev/v1", "kind": "Service", "metadata": {"name": "a", "namespace": "s"}});
        assert_eq!(Object::read(&knative, now()).unwrap().subject().as_str(), "service.serving.knative.dev/s/a");
    }
}
