//! Garbage collection: what belongs to something that is gone goes too, or is set free.
//!
//! Owns the index from owners to dependents. Follows `k8s.io/kubernetes/pkg/controller/garbagecollector` (1.36).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;

use super::super::kinds::{at, items, metadata_mut, text};
use super::super::registry::Resource;
use super::super::state::{State, place};
use super::super::status::GroupResource;
use super::super::store::{Change, Place};
use super::super::verbs::delete::{Options, one};

type Key = (GroupResource, Place);

/// Who depends on whom.
#[derive(Debug, Default)]
pub(super) struct Garbage {
    /// Owner's uid → dependents.
    dependents: BTreeMap<String, BTreeSet<Key>>,
    /// Owners that wait for their dependents.
    waiting: BTreeSet<Key>,
}

fn owners(object: &Value) -> &[Value] {
    items(object, &["metadata", "ownerReferences"])
}

fn has(object: &Value, finalizer: &str) -> bool {
    items(object, &["metadata", "finalizers"]).iter().any(|f| f == finalizer)
}

impl Garbage {
    /// Whether something waits for another pass.
    pub(super) fn waits(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Does what follows from these changes.
    pub(super) fn collect(&mut self, state: &mut State, changes: &[(GroupResource, Arc<Change>)]) {
        let mut orphans: BTreeSet<Key> = BTreeSet::new();
        let mut gone: Vec<String> = Vec::new();
        for (resource, change) in changes {
            let key = (resource.clone(), change.place.clone());
            for owner in change.old.as_deref().map(owners).unwrap_or_default() {
                if let Some(set) = self.dependents.get_mut(text(owner, &["uid"])) {
                    set.remove(&key);
                }
            }
            if change.gone {
                gone.push(text(&change.object, &["metadata", "uid"]).to_owned());
                self.waiting.remove(&key);
                continue;
            }
            for owner in owners(&change.object) {
                self.dependents.entry(text(owner, &["uid"]).to_owned()).or_default().insert(key.clone());
            }
            if change.old.is_none() && !owners(&change.object).is_empty() {
                orphans.insert(key.clone());
            }
            if change.object.pointer("/metadata/deletionTimestamp").is_some()
                && (has(&change.object, "orphan") || has(&change.object, "foregroundDeletion"))
            {
                self.waiting.insert(key);
            }
        }
        for uid in gone {
            orphans.extend(self.dependents.remove(&uid).into_iter().flatten());
        }
        for key in orphans {
            self.judge(state, &key);
        }
        for key in self.waiting.clone() {
            self.serve(state, &key);
        }
    }

    /// Looks after an object whose owner may be gone.
    fn judge(&self, state: &mut State, (resource, (namespace, name)): &Key) {
        let Some(object) = state.get(resource, namespace, name) else { return };
        let (mut solid, mut dangling) = (Vec::new(), 0usize);
        for owner in owners(&object) {
            match exists(state, owner, namespace) {
                Some(false) => dangling += 1,
                _ => solid.push(owner.clone()),
            }
        }
        if dangling == 0 {
            return;
        }
        if !solid.is_empty() {
            set_owners(state, resource, &object, solid);
            return;
        }
        let propagation = if has(&object, "orphan") {
            "Orphan"
        } else if has(&object, "foregroundDeletion") {
            "Foreground"
        } else {
            "Background"
        };
        remove(state, resource, &object, propagation);
    }

    /// Looks after an owner that waits for its dependents.
    fn serve(&mut self, state: &mut State, key: &Key) {
        let (resource, (namespace, name)) = key;
        let Some(owner) = state.get(resource, namespace, name) else {
            self.waiting.remove(key);
            return;
        };
        let uid = text(&owner, &["metadata", "uid"]).to_owned();
        let dependents: Vec<Key> = self.dependents.get(&uid).into_iter().flatten().cloned().collect();
        let objects: Vec<(Key, Arc<Value>)> =
            dependents.into_iter().filter_map(|k| state.get(&k.0, &k.1.0, &k.1.1).map(|o| (k, o))).collect();
        if has(&owner, "orphan") {
            for ((resource, _), object) in &objects {
                let rest = owners(object).iter().filter(|o| text(o, &["uid"]) != uid).cloned().collect();
                set_owners(state, resource, object, rest);
            }
            super::release(state, resource, &owner, "orphan");
            self.waiting.remove(key);
            return;
        }
        let mut blocked = false;
        for ((resource, _), object) in &objects {
            let blocks =
                owners(object).iter().any(|o| text(o, &["uid"]) == uid && at(o, &["blockOwnerDeletion"]) == Some(&Value::Bool(true)));
            blocked |= blocks;
            if object.pointer("/metadata/deletionTimestamp").is_none() {
                remove(state, resource, object, if blocks { "Foreground" } else { "Background" });
            }
        }
        let left = objects.iter().any(|(k, _)| state.get(&k.0, &k.1.0, &k.1.1).is_some());
        if !blocked || !left {
            super::release(state, resource, &owner, "foregroundDeletion");
            self.waiting.remove(key);
        }
    }
}

/// Whether an owner is there; `None` when its kind is not served, so that nobody can know.
fn exists(state: &State, owner: &Value, namespace: &str) -> Option<bool> {
    let resource = state.resource_of(text(owner, &["apiVersion"]), text(owner, &["kind"]))?;
    let home = if resource.namespaced { namespace } else { "" };
    let found = state.get(&resource.stored(), home, text(owner, &["name"]));
    Some(found.is_some_and(|o| text(&o, &["metadata", "uid"]) == text(owner, &["uid"])))
}

fn set_owners(state: &mut State, resource: &GroupResource, object: &Value, owners: Vec<Value>) {
    let mut object = object.clone();
    if let Some(metadata) = metadata_mut(&mut object) {
        match owners.is_empty() {
            true => metadata.remove("ownerReferences"),
            false => metadata.insert("ownerReferences".into(), owners.into()),
        };
    }
    state.put(resource, object);
}

fn remove(state: &mut State, resource: &GroupResource, object: &Value, propagation: &str) {
    let Some(served): Option<Arc<Resource>> = state.registry.any_version(resource).cloned() else { return };
    let (namespace, name) = place(object);
    let uid = text(object, &["metadata", "uid"]).to_owned();
    let options = Options { propagation: propagation.to_owned(), uid, ..Options::default() };
    // It went in the meantime, which is what was wanted.
    let _ = one(state, &served, &namespace, &name, &options);
}
