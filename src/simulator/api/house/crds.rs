//! CRDs: names accepted, resources served, and at the end their objects cleaned up.

use std::sync::Arc;

use serde_json::{Value, json};

use super::super::kinds::{items, metadata_mut, text};
use super::super::state::State;
use super::super::status::GroupResource;
use super::super::store::{Change, Range};
use super::super::verbs::delete::{Options, one};

const CLEANUP: &str = "customresourcecleanup.apiextensions.k8s.io";

fn resource() -> GroupResource {
    GroupResource::new("apiextensions.k8s.io", "customresourcedefinitions")
}

fn all(state: &State) -> Vec<Arc<Value>> {
    state.store.list(&resource(), Range::default()).map(|(_, s)| s.object.clone()).collect()
}

fn of(crd: &Value) -> GroupResource {
    GroupResource::new(text(crd, &["spec", "group"]), text(crd, &["spec", "names", "plural"]))
}

fn is(crd: &Value, condition: &str) -> bool {
    items(crd, &["status", "conditions"]).iter().any(|c| text(c, &["type"]) == condition && text(c, &["status"]) == "True")
}

/// Serves what is declared.
pub(super) fn keep(state: &mut State) {
    for crd in all(state) {
        if crd.pointer("/metadata/deletionTimestamp").is_some() {
            continue;
        }
        let mut new = (*crd).clone();
        let stamp = state.stamp();
        let mut conditions = items(&crd, &["status", "conditions"]).to_vec();
        for (kind, reason, message) in [
            ("NamesAccepted", "NoConflicts", "no conflicts found"),
            ("Established", "InitialNamesAccepted", "the initial names have been accepted"),
        ] {
            if !is(&crd, kind) {
                conditions.retain(|c| text(c, &["type"]) != kind);
                conditions.push(json!({"type": kind, "status": "True", "reason": reason, "message": message, "lastTransitionTime": stamp}));
            }
        }
        new["status"]["conditions"] = conditions.into();
        new["status"]["acceptedNames"] = crd.pointer("/spec/names").cloned().unwrap_or_default();
        let storage =
            items(&crd, &["spec", "versions"]).iter().find(|v| v.get("storage") == Some(&json!(true))).and_then(|v| v.get("name")).cloned();
        if let (Some(storage), Some(list)) = (storage, new["status"]["storedVersions"].as_array_mut())
            && !list.contains(&storage)
        {
            list.push(storage);
        }
        if let Some(metadata) = metadata_mut(&mut new) {
            let list = metadata.entry("finalizers").or_insert_with(|| json!([]));
            if let Some(list) = list.as_array_mut().filter(|list| !list.contains(&CLEANUP.into())) {
                list.push(CLEANUP.into());
            }
        }
        state.registry.set_custom(&new);
        if new != *crd {
            state.put(&resource(), new);
        }
    }
}

/// Cleans up after those that are being deleted, and forgets those that are gone.
pub(super) fn finish(state: &mut State, changes: &[(GroupResource, Arc<Change>)]) {
    for (_, change) in changes.iter().filter(|(r, change)| *r == resource() && change.gone) {
        let there = state.store.get(&resource(), "", &change.place.1).is_some();
        if !there {
            state.registry.remove_custom(&of(&change.object));
        }
    }
    for crd in all(state) {
        let waits = items(&crd, &["metadata", "finalizers"]).iter().any(|f| f == CLEANUP);
        if crd.pointer("/metadata/deletionTimestamp").is_none() || !waits {
            continue;
        }
        let gr = of(&crd);
        let Some(served) = state.registry.any_version(&gr).cloned() else {
            super::release(state, &resource(), &crd, CLEANUP);
            continue;
        };
        let objects: Vec<Arc<Value>> = state.store.list(&gr, Range::default()).map(|(_, s)| s.object.clone()).collect();
        for object in &objects {
            if object.pointer("/metadata/deletionTimestamp").is_none() {
                let (namespace, name) = super::super::state::place(object);
                let _ = one(state, &served, &namespace, &name, &Options::default());
            }
        }
        if state.store.count(&gr) == 0 {
            super::release(state, &resource(), &crd, CLEANUP);
        }
    }
}
