//! What routes requests: Services, EndpointSlices, InferencePools, HTTPRoutes.

use super::field::Field;
use super::meta::{Condition, Selector};
use crate::model::Subject;

/// A Service.
#[derive(Debug, Clone, PartialEq)]
pub struct Service {
    /// What it selects; `None` where it selects nothing itself.
    pub selector: Option<Selector>,
    /// Its ports.
    pub ports: Vec<ServicePort>,
    /// Addresses of pods that are not Ready are published as ready.
    pub publish_not_ready: bool,
    /// `clusterIP: None`.
    pub headless: bool,
    /// `ExternalName` and others; empty for ClusterIP.
    pub kind: String,
}

/// One port of a Service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServicePort {
    /// Name; may be empty.
    pub name: String,
    /// Its own port.
    pub port: u16,
    /// Target: a port number or the name of a container port; the own port where not set.
    pub target: String,
}

/// An EndpointSlice.
#[derive(Debug, Clone, PartialEq)]
pub struct EndpointSlice {
    /// The Service it belongs to (label `kubernetes.io/service-name`); empty for none.
    pub service: String,
    /// Who keeps it (label `endpointslice.kubernetes.io/managed-by`).
    pub managed_by: String,
    /// Its endpoints.
    pub endpoints: Vec<Endpoint>,
    /// Ports of all its endpoints.
    pub ports: Vec<u16>,
}

/// One endpoint of a slice.
#[derive(Debug, Clone, PartialEq)]
pub struct Endpoint {
    /// Addresses.
    pub addresses: Vec<String>,
    /// `conditions.ready`; absent means true.
    pub ready: bool,
    /// `conditions.serving`; absent means the same as ready.
    pub serving: bool,
    /// `conditions.terminating`; absent means false.
    pub terminating: bool,
    /// The pod, where the target is one.
    pub pod: Option<String>,
    /// uid of the target: a pod made anew under the same name is another one.
    pub uid: String,
    /// Node.
    pub node: String,
}

/// An InferencePool, v1 or the older v1alpha2.
#[derive(Debug, Clone, PartialEq)]
pub struct InferencePool {
    /// What it selects; `None` where it could not be read or is absent.
    pub selector: Option<Selector>,
    /// Ports on which the engines must answer; each is an endpoint of its own.
    pub target_ports: Vec<u16>,
    /// Service of the endpoint picker; empty for none.
    pub picker: String,
    /// `FailOpen` or `FailClose` (the default).
    pub failure_mode: String,
    /// What each gateway says.
    pub parents: Vec<ParentStatus>,
    /// Whether the status had a `parents` field at all.
    pub has_status: bool,
}

/// What one gateway says of a pool or a route.
#[derive(Debug, Clone, PartialEq)]
pub struct ParentStatus {
    /// The gateway.
    pub parent: Subject,
    /// The controller that wrote it.
    pub controller: String,
    /// Conditions.
    pub conditions: Vec<Condition>,
}

/// An HTTPRoute (or GRPCRoute).
#[derive(Debug, Clone, PartialEq)]
pub struct Route {
    /// Backends of all its rules.
    pub backends: Vec<Backend>,
    /// Its rules, in order.
    pub rules: Vec<RouteRule>,
    /// Gateways it asks for.
    pub parents: Vec<Subject>,
    /// What they say.
    pub status: Vec<ParentStatus>,
}

/// One rule of a route.
#[derive(Debug, Clone, PartialEq)]
pub struct RouteRule {
    /// Paths that it takes; empty takes every path. A rule that also looks at headers or methods takes fewer requests than its paths say.
    pub paths: Vec<PathMatch>,
    /// Where it sends to.
    pub backends: Vec<Backend>,
}

/// One path match of a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PathMatch {
    /// The path and all below it.
    Prefix(String),
    /// The path alone.
    Exact(String),
    /// A regular expression: what it takes is not judged here.
    Pattern(String),
}

impl PathMatch {
    /// How many characters of `route` (a path without query) it fixes; `None` where it does not take it, or where nobody knows.
    pub fn takes(&self, route: &str) -> Option<usize> {
        match self {
            Self::Exact(path) => (path == route).then(|| path.len().saturating_add(1)),
            Self::Prefix(path) => {
                let stem = path.trim_end_matches('/');
                let rest = route.strip_prefix(stem)?;
                (rest.is_empty() || rest.starts_with('/')).then_some(stem.len())
            }
            Self::Pattern(_) => None,
        }
    }
}

impl RouteRule {
    /// How many characters of a path it fixes, by its best match; `None` where it does not take it.
    pub fn takes(&self, route: &str) -> Option<usize> {
        if self.paths.is_empty() {
            return Some(0);
        }
        self.paths.iter().filter_map(|path| path.takes(route)).max()
    }
}

/// A backend that a route names.
#[derive(Debug, Clone, PartialEq)]
pub struct Backend {
    /// API group; empty for core (a Service).
    pub group: String,
    /// Kind; `Service` where not set.
    pub kind: String,
    /// Namespace; empty for the route's own.
    pub namespace: String,
    /// Name.
    pub name: String,
    /// Weight; 1 where not set.
    pub weight: u32,
}

fn port(field: &Field) -> Option<u16> {
    field.count().some().and_then(|n| u16::try_from(n).ok())
}

impl Service {
    /// Reads the body.
    pub fn read(root: &Field) -> Self {
        let spec = root.get("spec");
        Self {
            selector: Selector::read_map(&spec.get("selector")),
            ports: spec
                .get("ports")
                .items()
                .iter()
                .filter_map(|item| {
                    let own = port(&item.get("port"))?;
                    Some(ServicePort {
                        name: item.get("name").name_or_empty(),
                        port: own,
                        target: item.get("targetPort").int_or_text().some().unwrap_or_else(|| own.to_string()),
                    })
                })
                .collect(),
            publish_not_ready: spec.get("publishNotReadyAddresses").flag().some().unwrap_or(false),
            headless: spec.get("clusterIP").name().some().as_deref() == Some("None"),
            kind: spec.get("type").name_or_empty(),
        }
    }
}

impl EndpointSlice {
    /// Reads the body.
    pub fn read(root: &Field) -> Self {
        let labels = root.at(&["metadata", "labels"]);
        Self {
            service: labels.get("kubernetes.io/service-name").name_or_empty(),
            managed_by: labels.get("endpointslice.kubernetes.io/managed-by").name_or_empty(),
            endpoints: root.get("endpoints").items().iter().map(Endpoint::read).collect(),
            ports: root.get("ports").items().iter().filter_map(|item| port(&item.get("port"))).collect(),
        }
    }
}

impl Endpoint {
    fn read(field: &Field) -> Self {
        let conditions = field.get("conditions");
        // A condition of the wrong type is no promise of readiness.
        let flag = |name: &str, absent: bool| conditions.get(name).flag().or(absent).unwrap_or(false);
        let ready = flag("ready", true);
        Self {
            addresses: field.get("addresses").names(),
            ready,
            serving: flag("serving", ready),
            terminating: flag("terminating", false),
            pod: (field.at(&["targetRef", "kind"]).name_or_empty() == "Pod").then(|| field.at(&["targetRef", "name"]).name_or_empty()),
            uid: field.at(&["targetRef", "uid"]).name_or_empty(),
            node: field.get("nodeName").name_or_empty(),
        }
    }
}

impl InferencePool {
    /// Reads the body.
    pub fn read(root: &Field) -> Self {
        let spec = root.get("spec");
        let selector = spec.get("selector");
        // v1alpha2 has a plain map, one number, and extensionRef.
        let new_form = selector.get("matchLabels").is_set() || selector.get("matchExpressions").is_set();
        let picker = if spec.get("endpointPickerRef").is_set() { spec.get("endpointPickerRef") } else { spec.get("extensionRef") };
        let mut target_ports: Vec<u16> = spec.get("targetPorts").items().iter().filter_map(|item| port(&item.get("number"))).collect();
        if target_ports.is_empty() {
            target_ports.extend(port(&spec.get("targetPortNumber")));
        }
        let failure_mode = picker.get("failureMode").name_or_empty();
        Self {
            selector: if new_form { Selector::read(&selector) } else { Selector::read_map(&selector) },
            target_ports,
            picker: picker.get("name").name_or_empty(),
            failure_mode: if failure_mode.is_empty() { "FailClose".into() } else { failure_mode },
            parents: parents(&root.at(&["status", "parents"]), &root.at(&["metadata", "namespace"]).name_or_empty()),
            has_status: root.at(&["status", "parents"]).is_set(),
        }
    }
}

/// Reads `status.parents[]` of a pool or a route in `namespace`.
fn parents(field: &Field, namespace: &str) -> Vec<ParentStatus> {
    field
        .items()
        .iter()
        .map(|item| ParentStatus {
            parent: parent(&item.get("parentRef"), namespace),
            controller: item.get("controllerName").name_or_empty(),
            conditions: Condition::read_all(&item.get("conditions")),
        })
        .collect()
}

fn parent(reference: &Field, namespace: &str) -> Subject {
    let kind = reference.get("kind").name().some().unwrap_or_else(|| "Gateway".into());
    let own = reference.get("namespace").name().some();
    Subject::object(&kind, own.as_deref().unwrap_or(namespace), &reference.get("name").name_or_empty())
}

impl RouteRule {
    fn read(field: &Field) -> Self {
        let path = |item: &Field| {
            let path = item.get("path");
            let value = path.get("value").text().some().unwrap_or_else(|| "/".into());
            match path.get("type").name().some().as_deref() {
                Some("Exact") => PathMatch::Exact(value),
                Some("RegularExpression") => PathMatch::Pattern(value),
                _ => PathMatch::Prefix(value),
            }
        };
        Self {
            paths: field.get("matches").items().iter().map(path).collect(),
            backends: field
                .get("backendRefs")
                .items()
                .iter()
                .map(|item| Backend {
                    group: item.get("group").name_or_empty(),
                    kind: item.get("kind").name().some().unwrap_or_else(|| "Service".into()),
                    namespace: item.get("namespace").name_or_empty(),
                    name: item.get("name").name_or_empty(),
                    weight: item.get("weight").count().some().unwrap_or(1),
                })
                .collect(),
        }
    }
}

impl Route {
    /// Reads the body.
    pub fn read(root: &Field) -> Self {
        let namespace = root.at(&["metadata", "namespace"]).name_or_empty();
        let rules: Vec<RouteRule> = root.at(&["spec", "rules"]).items().iter().map(RouteRule::read).collect();
        Self {
            backends: rules.iter().flat_map(|rule| rule.backends.iter().cloned()).collect(),
            rules,
            parents: root.at(&["spec", "parentRefs"]).items().iter().map(|item| parent(item, &namespace)).collect(),
            status: parents(&root.at(&["status", "parents"]), &namespace),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::cell::RefCell;

    #[test]
    fn both_forms_of_a_pool() {
        let problems = RefCell::new(Vec::new());
        let new = json!({"spec": {"selector": {"matchLabels": {"app": "a"}}, "targetPorts": [{"number": 8000}, {"number": 8001}],
            "endpointPickerRef": {"name": "epp", "failureMode": "FailOpen"}}, "status": {"parents": []}});
        let old = json!({"spec": {"selector": {"app": "a"}, "targetPortNumber": 8000, "extensionRef": {"name": "epp"}}});
        let (new, old) = (InferencePool::read(&Field::root(&new, &problems)), InferencePool::read(&Field::root(&old, &problems)));
        assert_eq!(new.selector, old.selector);
        assert_eq!((new.target_ports, old.target_ports), (vec![8000, 8001], vec![8000]));
        assert_eq!((new.failure_mode.as_str(), old.failure_mode.as_str()), ("FailOpen", "FailClose"));
        assert_eq!((new.picker.as_str(), old.picker.as_str(), new.has_status, old.has_status), ("epp", "epp", true, false));
    }

    #[test]
    fn rules_take_paths_as_the_gateway_api_says() {
        let prefix = |path: &str| PathMatch::Prefix(path.into());
        assert_eq!(prefix("/qwen-a").takes("/qwen-a/v1/chat"), Some(7));
        assert_eq!(prefix("/qwen-a").takes("/qwen-ab"), None);
        assert_eq!(prefix("/").takes("/v1"), Some(0));
        assert_eq!(PathMatch::Exact("/v1".into()).takes("/v1/x"), None);
        let problems = RefCell::new(Vec::new());
        let route = json!({"spec": {"rules": [{"backendRefs": [{"name": "a"}]},
            {"matches": [{"path": {"type": "Exact", "value": "/x"}}], "backendRefs": [{"name": "b", "kind": "InferencePool"}]}]}});
        let route = Route::read(&Field::root(&route, &problems));
        assert_eq!(
            route.rules.iter().map(|rule| rule.takes("/x")).collect::<Vec<_>>(),
            [Some(0), Some(3)],
            "an exact path outranks a prefix of its length"
        );
        assert_eq!(route.backends.len(), 2);
    }

    #[test]
    fn endpoint_conditions_default_as_the_api_says() {
        let problems = RefCell::new(Vec::new());
        let slice = json!({"metadata": {"labels": {"kubernetes.io/service-name": "a"}}, "ports": [{"port": 8000}, {"port": "x"}],
            "endpoints": [{"addresses": ["10.0.0.1"]}, {"conditions": {"ready": "yes"}, "targetRef": {"kind": "Pod", "name": "p"}}]});
        let slice = EndpointSlice::read(&Field::root(&slice, &problems));
        assert_eq!(slice.ports, [8000]);
        assert_eq!(slice.endpoints.iter().map(|e| (e.ready, e.terminating)).collect::<Vec<_>>(), [(true, false), (false, false)]);
        assert_eq!(slice.endpoints[1].pod.as_deref(), Some("p"));
    }
}
