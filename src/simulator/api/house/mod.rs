//! What an API server and its own controllers keep in order: garbage, namespaces, accounts, CRDs, aggregated roles.
//!
//! Owns what must follow a change for the API to behave as one; the controllers of workloads are none of its business. Works on the
//! state alone: one pass reads what changed since the last and writes what follows.

mod accounts;
mod crds;
mod garbage;
mod namespaces;
mod protection;
mod roles;

use std::sync::Arc;

use serde_json::Value;

use super::state::State;
use super::status::GroupResource;
use super::store::{Change, Range, Since};

/// What the house remembers between passes.
#[derive(Debug)]
pub struct House {
    seen: u64,
    garbage: garbage::Garbage,
}

impl Default for House {
    fn default() -> Self {
        // The store begins at revision 1, before the first object.
        Self { seen: 1, garbage: garbage::Garbage::default() }
    }
}

impl House {
    /// One pass. Gives whether it changed anything, in which case another is due.
    pub fn pass(&mut self, state: &mut State) -> bool {
        let before = state.store.revision();
        let changes = self.news(state);
        self.seen = before;
        if changes.is_empty() && !self.garbage.waits() {
            return false;
        }
        let touches = |resource: &GroupResource| changes.iter().any(|(r, _)| r == resource);
        let core = |name: &str| GroupResource::new("", name);
        let crds = GroupResource::new("apiextensions.k8s.io", "customresourcedefinitions");
        let cluster_roles = GroupResource::new("rbac.authorization.k8s.io", "clusterroles");
        if touches(&crds) {
            crds::keep(state);
        }
        if touches(&core("namespaces")) || touches(&core("serviceaccounts")) || touches(&core("configmaps")) {
            accounts::keep(state);
        }
        if touches(&cluster_roles) {
            roles::aggregate(state);
        }
        self.garbage.collect(state, &changes);
        namespaces::finish(state);
        protection::release_unused(state);
        crds::finish(state, &changes);
        state.store.revision() != before
    }

    fn news(&self, state: &State) -> Vec<(GroupResource, Arc<Change>)> {
        let resources: Vec<GroupResource> = state.store.resources().cloned().collect();
        let mut changes = Vec::new();
        for resource in resources {
            match state.store.since(&resource, self.seen, usize::MAX) {
                Since::Changes(list) => changes.extend(list.into_iter().map(|change| (resource.clone(), change))),
                // More happened than is kept: what is there now counts as new.
                Since::Expired => changes.extend(state.store.list(&resource, Range::default()).map(|(place, stored)| {
                    let change = Change {
                        revision: stored.revision,
                        at: state.now,
                        place: place.clone(),
                        old: None,
                        object: stored.object.clone(),
                        gone: false,
                    };
                    (resource.clone(), Arc::new(change))
                })),
            }
        }
        changes.sort_by_key(|(_, change)| change.revision);
        changes
    }
}

/// Takes a finalizer off an object; the object goes when it was the last one it waited for.
fn release(state: &mut State, resource: &GroupResource, object: &Value, finalizer: &str) {
    let mut object = object.clone();
    let Some(metadata) = super::kinds::metadata_mut(&mut object) else { return };
    let left = match metadata.get_mut("finalizers").and_then(Value::as_array_mut) {
        Some(list) => {
            list.retain(|f| f != finalizer);
            list.len()
        }
        None => 0,
    };
    if left == 0 {
        metadata.remove("finalizers");
    }
    let (kind, group) = (super::kinds::text(&object, &["kind"]).to_owned(), resource.group.clone());
    match super::verbs::update::ends(&kind, &group, &object) {
        true => state.take(resource, object),
        false => state.put(resource, object),
    };
}
