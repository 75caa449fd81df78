//! What every cluster has from its first moment: roles and bindings, namespaces, priority classes, the API's own Service.
//!
//! Owns the list; the house keeps it afterwards.

use serde_json::{Value, json};

use super::auth::{User, bootstrap};
use super::kinds::text;
use super::state::State;
use super::verbs::create;

/// Puts it in.
pub(super) fn put_in(state: &mut State) {
    let admin = User::known("system:apiserver", &["system:masters"]);
    for mut object in bootstrap::objects() {
        object["apiVersion"] = "rbac.authorization.k8s.io/v1".into();
        let kind = text(&object, &["kind"]).to_owned();
        if let Some(resource) = state.resource_of("rbac.authorization.k8s.io/v1", &kind) {
            object["metadata"]["uid"] = state.ids.uid().into();
            object["metadata"]["creationTimestamp"] = state.stamp().into();
            state.put(&resource.stored(), object);
        }
    }
    for name in ["default", "kube-node-lease", "kube-public", "kube-system"] {
        seed(state, &admin, json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}));
    }
    for (name, value) in [("system-cluster-critical", 2_000_000_000), ("system-node-critical", 2_000_001_000)] {
        seed(
            state,
            &admin,
            json!({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, "value": value,
                "description": "Used for system critical pods that must not be moved from their current node."}),
        );
    }
    let labels = json!({"component": "apiserver", "provider": "kubernetes"});
    let ports = json!([{"name": "https", "protocol": "TCP", "port": 443, "targetPort": 6443}]);
    seed(
        state,
        &admin,
        json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "kubernetes", "namespace": "default", "labels": labels},
            "spec": {"clusterIP": "10.96.0.1", "clusterIPs": ["10.96.0.1"], "ports": ports}}),
    );
}

fn seed(state: &mut State, user: &User, mut object: Value) {
    let (api_version, kind) = (text(&object, &["apiVersion"]).to_owned(), text(&object, &["kind"]).to_owned());
    let Some(resource) = state.resource_of(&api_version, &kind) else { return };
    super::verbs::decode::complete(&resource, &mut object);
    let stamp = state.stamp();
    let writer = super::apply::Writer {
        manager: "kube-apiserver",
        api_version: &api_version,
        subresource: "",
        now: Some(&stamp),
        reset: &[&["f:status"]],
    };
    super::apply::track_update(resource.stored_node(), None, &mut object, &writer);
    // The furniture is fixed and valid; a test opens a cluster and looks for it.
    let _ = create::add(state, user, &resource, object, false);
}
