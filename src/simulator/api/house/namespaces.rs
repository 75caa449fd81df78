//! Namespaces that end: first all that lives in them, then they.

use std::sync::Arc;

use serde_json::{Value, json};

use super::super::kinds::{items, text};
use super::super::state::State;
use super::super::status::GroupResource;
use super::super::store::Range;
use super::super::verbs::delete::{Options, one};
use super::super::verbs::update::ends;

/// Goes on with every namespace that is being deleted.
pub(super) fn finish(state: &mut State) {
    let namespaces = GroupResource::new("", "namespaces");
    let ending: Vec<Arc<Value>> = state
        .store
        .list(&namespaces, Range::default())
        .map(|(_, s)| s.object.clone())
        .filter(|n| n.pointer("/metadata/deletionTimestamp").is_some() && !items(n, &["spec", "finalizers"]).is_empty())
        .collect();
    for namespace in ending {
        let name = text(&namespace, &["metadata", "name"]).to_owned();
        let mut left = 0usize;
        for resource in state.registry.stored() {
            if !resource.namespaced {
                continue;
            }
            let stored = resource.stored();
            let inside: Vec<Arc<Value>> =
                state.store.list(&stored, Range { namespace: Some(&name), after: None }).map(|(_, s)| s.object.clone()).collect();
            for object in inside {
                if object.pointer("/metadata/deletionTimestamp").is_none() {
                    let options = Options { propagation: "Background".into(), ..Options::default() };
                    let _ = one(state, &resource, &name, text(&object, &["metadata", "name"]), &options);
                }
            }
            left += state.store.list(&stored, Range { namespace: Some(&name), after: None }).count();
        }
        if left > 0 {
            continue;
        }
        let Some(newest) = state.get(&namespaces, "", &name) else { continue };
        let mut done = (*newest).clone();
        done["spec"] = json!({});
        match ends("Namespace", "", &done) {
            true => state.take(&namespaces, done),
            false => state.put(&namespaces, done),
        };
    }
}
