//! All that the embedded cluster holds, behind one lock: objects, resources, ids, tokens.
//!
//! Owns the one door through which objects change, so that everything that follows a change can be told. Must not know HTTP.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::Value;

use super::auth::tokens::Tokens;
use super::kinds::text;
use super::registry::{Registry, Resource};
use super::status::GroupResource;
use super::store::{Place, Store};
use crate::simulator::clock::seconds;
use crate::simulator::ids::Ids;

/// The state.
#[derive(Debug)]
pub struct State {
    /// All objects.
    pub store: Store,
    /// All resources.
    pub registry: Registry,
    /// The source of uids and names.
    pub ids: Ids,
    /// Who is known by which token.
    pub tokens: Tokens,
    /// The time of the request that is being served.
    pub now: Timestamp,
    /// The certificate of whoever signs the API's, as PEM; empty over plain HTTP.
    pub authority: String,
}

impl State {
    /// Without objects.
    pub fn new(seed: u64, keep: usize, now: Timestamp) -> Self {
        let mut ids = Ids::new(seed);
        let key = ids.bytes();
        Self { store: Store::new(keep), registry: Registry::builtin(), ids, tokens: Tokens::new(key), now, authority: String::new() }
    }

    /// The time of the request as objects show it.
    pub fn stamp(&self) -> String {
        seconds(self.now)
    }

    /// The newest form of an object.
    pub fn get(&self, resource: &GroupResource, namespace: &str, name: &str) -> Option<Arc<Value>> {
        self.store.get(resource, namespace, name).map(|stored| stored.object.clone())
    }

    /// Writes an object.
    pub fn put(&mut self, resource: &GroupResource, object: Value) -> Arc<Value> {
        let place = place(&object);
        self.store.write(resource, place, Some(object), self.now)
    }

    /// Takes an object away, as it is at its end.
    pub fn take(&mut self, resource: &GroupResource, object: Value) -> Arc<Value> {
        let place = place(&object);
        self.store.remove(resource, place, object, self.now)
    }

    /// The resource of an owner reference or a scale target.
    pub fn resource_of(&self, api_version: &str, kind: &str) -> Option<Arc<Resource>> {
        self.registry.of_kind(api_version, kind).cloned()
    }
}

/// Where an object is.
pub fn place(object: &Value) -> Place {
    (text(object, &["metadata", "namespace"]).to_owned(), text(object, &["metadata", "name"]).to_owned())
}
