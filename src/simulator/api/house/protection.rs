//! Volumes and claims that are being deleted go when nobody uses them.

use std::sync::Arc;

use serde_json::Value;

use super::super::kinds::{items, text};
use super::super::state::State;
use super::super::status::GroupResource;
use super::super::store::Range;

/// Lets go what is no longer used.
pub(super) fn release_unused(state: &mut State) {
    for (resource, finalizer) in
        [("persistentvolumeclaims", "kubernetes.io/pvc-protection"), ("persistentvolumes", "kubernetes.io/pv-protection")]
    {
        let resource = GroupResource::new("", resource);
        let leaving: Vec<Arc<Value>> = state
            .store
            .list(&resource, Range::default())
            .map(|(_, s)| s.object.clone())
            .filter(|o| o.pointer("/metadata/deletionTimestamp").is_some())
            .filter(|o| items(o, &["metadata", "finalizers"]).iter().any(|f| f == finalizer))
            .collect();
        for object in leaving {
            if !is_used(state, &object) {
                super::release(state, &resource, &object, finalizer);
            }
        }
    }
}

fn is_used(state: &State, object: &Value) -> bool {
    let (namespace, name) = super::super::state::place(object);
    if namespace.is_empty() {
        return text(object, &["status", "phase"]) == "Bound";
    }
    let pods = GroupResource::new("", "pods");
    state.store.list(&pods, Range { namespace: Some(&namespace), after: None }).any(|(_, pod)| {
        let over = matches!(text(&pod.object, &["status", "phase"]), "Succeeded" | "Failed");
        !over && items(&pod.object, &["spec", "volumes"]).iter().any(|v| text(v, &["persistentVolumeClaim", "claimName"]) == name)
    })
}
