//! Every namespace has a `default` service account and the certificate of the API.

use std::sync::Arc;

use serde_json::{Value, json};

use super::super::kinds::text;
use super::super::state::State;
use super::super::status::GroupResource;
use super::super::store::Range;

const ABOUT: &str = "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes clusters.";

/// Makes what is missing.
pub(super) fn keep(state: &mut State) {
    let namespaces: Vec<Arc<Value>> =
        state.store.list(&GroupResource::new("", "namespaces"), Range::default()).map(|(_, s)| s.object.clone()).collect();
    for namespace in namespaces {
        if namespace.pointer("/metadata/deletionTimestamp").is_some() {
            continue;
        }
        let home = text(&namespace, &["metadata", "name"]).to_owned();
        make(
            state,
            "serviceaccounts",
            json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default", "namespace": home}}),
        );
        let authority = state.authority.clone();
        make(
            state,
            "configmaps",
            json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"ca.crt": authority},
                "metadata": {"name": "kube-root-ca.crt", "namespace": home, "annotations": {"kubernetes.io/description": ABOUT}}}),
        );
    }
}

fn make(state: &mut State, resource: &str, mut object: Value) {
    let resource = GroupResource::new("", resource);
    let (namespace, name) = super::super::state::place(&object);
    if state.store.get(&resource, &namespace, &name).is_none() {
        object["metadata"]["uid"] = state.ids.uid().into();
        object["metadata"]["creationTimestamp"] = state.stamp().into();
        state.put(&resource, object);
    }
}
