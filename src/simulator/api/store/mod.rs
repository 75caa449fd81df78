//! The store: all objects, one counter of revisions, and the recent history of every resource.
//!
//! Owns what etcd and the watch cache own for a real API server: the newest object under each key, the order of changes, snapshots of
//! the recent past for paged lists, and the news for watchers. Must not know what an object means: no defaulting, no rules, no users.

mod history;

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::Value;
use tokio::sync::watch;

use super::status::GroupResource;
pub use history::{Change, History, Since};

/// Where an object is: namespace (empty for cluster-scoped ones) and name.
pub type Place = (String, String);

/// An object and the revision that wrote it.
#[derive(Debug, Clone)]
pub struct Stored {
    /// The object, with `metadata.resourceVersion` set.
    pub object: Arc<Value>,
    /// That version as a number.
    pub revision: u64,
}

/// All objects of one resource.
#[derive(Debug)]
struct Shelf {
    objects: BTreeMap<Place, Stored>,
    history: History,
    news: watch::Sender<u64>,
}

/// Which part of a resource a list wants.
#[derive(Debug, Clone, Copy, Default)]
pub struct Range<'a> {
    /// Only this namespace; `None` for all.
    pub namespace: Option<&'a str>,
    /// Only places after this one.
    pub after: Option<&'a Place>,
}

/// The store.
#[derive(Debug)]
pub struct Store {
    revision: u64,
    shelves: BTreeMap<GroupResource, Shelf>,
    keep: usize,
}

impl Store {
    /// An empty store that keeps `keep` changes of each resource for watches and snapshots.
    pub fn new(keep: usize) -> Self {
        Self { revision: 1, shelves: BTreeMap::new(), keep: keep.max(1) }
    }

    /// The newest revision.
    pub fn revision(&self) -> u64 {
        self.revision
    }

    fn shelf(&mut self, resource: &GroupResource) -> &mut Shelf {
        let (keep, revision) = (self.keep, self.revision);
        self.shelves.entry(resource.clone()).or_insert_with(|| Shelf {
            objects: BTreeMap::new(),
            history: History::new(keep, revision.min(1)),
            news: watch::Sender::new(0),
        })
    }

    /// The newest object at a place.
    pub fn get(&self, resource: &GroupResource, namespace: &str, name: &str) -> Option<&Stored> {
        self.shelves.get(resource)?.objects.get(&(namespace.to_owned(), name.to_owned()))
    }

    /// How many objects a resource has.
    pub fn count(&self, resource: &GroupResource) -> usize {
        self.shelves.get(resource).map_or(0, |s| s.objects.len())
    }

    /// The newest objects of a resource in order of namespace and name.
    pub fn list<'a>(&'a self, resource: &GroupResource, range: Range<'a>) -> impl Iterator<Item = (&'a Place, &'a Stored)> {
        use std::ops::Bound;
        let start = match (range.after, range.namespace) {
            (Some(place), _) => Bound::Excluded(place.clone()),
            (None, Some(namespace)) => Bound::Included((namespace.to_owned(), String::new())),
            (None, None) => Bound::Unbounded,
        };
        self.shelves
            .get(resource)
            .into_iter()
            .flat_map(move |shelf| shelf.objects.range((start.clone(), Bound::Unbounded)))
            .take_while(move |((namespace, _), _)| range.namespace.is_none_or(|wanted| wanted == namespace))
    }

    /// The objects of a resource as they were at `revision`, in order; `None` when that is too long ago.
    pub fn list_at(&self, resource: &GroupResource, range: Range<'_>, revision: u64) -> Option<Vec<(Place, Arc<Value>)>> {
        let mut found: BTreeMap<Place, Arc<Value>> =
            self.list(resource, range).map(|(place, stored)| (place.clone(), stored.object.clone())).collect();
        if revision < self.revision
            && let Some(shelf) = self.shelves.get(resource)
        {
            let inside =
                |place: &Place| range.namespace.is_none_or(|wanted| wanted == place.0) && range.after.is_none_or(|after| place > after);
            for change in shelf.history.back_to(revision)?.filter(|change| inside(&change.place)) {
                match &change.old {
                    Some(old) => found.insert(change.place.clone(), old.clone()),
                    None => found.remove(&change.place),
                };
            }
        }
        Some(found.into_iter().collect())
    }

    /// Writes an object (`Some`) or takes it away (`None`) and gives the new revision. The object gets that revision as its
    /// `metadata.resourceVersion`; a deleted one is reported with it too.
    pub fn write(&mut self, resource: &GroupResource, place: Place, object: Option<Value>, now: Timestamp) -> Arc<Value> {
        self.revision += 1;
        let revision = self.revision;
        let shelf = self.shelf(resource);
        let old = shelf.objects.get(&place).map(|stored| stored.object.clone());
        let (gone, mut value) = match object {
            Some(value) => (false, value),
            None => (true, old.as_deref().cloned().unwrap_or(Value::Null)),
        };
        if let Some(metadata) = value.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.insert("resourceVersion".to_owned(), revision.to_string().into());
        }
        let object = Arc::new(value);
        match gone {
            true => shelf.objects.remove(&place),
            false => shelf.objects.insert(place.clone(), Stored { object: object.clone(), revision }),
        };
        shelf.history.push(Change { revision, at: now, place, old, object: object.clone(), gone });
        shelf.news.send_replace(revision);
        object
    }

    /// The same for the last act of a delete: `object` is what it was at its end.
    pub fn remove(&mut self, resource: &GroupResource, place: Place, object: Value, now: Timestamp) -> Arc<Value> {
        if let Some(stored) = self.shelf(resource).objects.get_mut(&place) {
            // The end of an object is reported as it last was; watchers that select by field still compare with what they saw.
            let seen = stored.object.clone();
            stored.object = Arc::new(object);
            let gone = self.write(resource, place, None, now);
            if let Some(shelf) = self.shelves.get_mut(resource) {
                shelf.history.amend_old(seen);
            }
            return gone;
        }
        Arc::new(object)
    }

    /// Changes of a resource after `revision`, at most `most`; or that they are no longer kept.
    pub fn since(&self, resource: &GroupResource, revision: u64, most: usize) -> Since {
        self.shelves.get(resource).map_or(Since::Changes(Vec::new()), |shelf| shelf.history.since(revision, most))
    }

    /// Tells of each new change of a resource.
    pub fn news(&mut self, resource: &GroupResource) -> watch::Receiver<u64> {
        self.shelf(resource).news.subscribe()
    }

    /// Forgets the history up to `revision`, as etcd's compaction and a watch cache that overflows do.
    pub fn compact(&mut self, revision: u64) {
        for shelf in self.shelves.values_mut() {
            shelf.history.forget(revision);
        }
    }

    /// Forgets what is older than `at`.
    pub fn compact_before(&mut self, at: Timestamp) {
        for shelf in self.shelves.values_mut() {
            shelf.history.forget_before(at);
        }
    }

    /// All resources that ever had an object or a watcher.
    pub fn resources(&self) -> impl Iterator<Item = &GroupResource> {
        self.shelves.keys()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use serde_json::json;

    fn store_with(names: &[&str]) -> (Store, GroupResource) {
        let mut store = Store::new(100);
        let pods = GroupResource::new("", "pods");
        for name in names {
            put(&mut store, &pods, name);
        }
        (store, pods)
    }

    fn put(store: &mut Store, resource: &GroupResource, name: &str) -> u64 {
        let object = json!({ "metadata": { "name": name } });
        store.write(resource, ("a".into(), name.into()), Some(object), Timestamp::UNIX_EPOCH);
        store.revision()
    }

    fn names(list: Vec<(Place, Arc<Value>)>) -> Vec<String> {
        list.into_iter().map(|(place, _)| place.1).collect()
    }

    #[test]
    fn a_snapshot_shows_the_past_and_says_when_it_is_gone() {
        let (mut store, pods) = store_with(&["a", "b"]);
        let then = store.revision();
        put(&mut store, &pods, "c");
        store.write(&pods, ("a".into(), "a".into()), None, Timestamp::UNIX_EPOCH);
        put(&mut store, &pods, "b");
        assert_eq!(names(store.list_at(&pods, Range::default(), then).unwrap()), ["a", "b"]);
        let old = store.list_at(&pods, Range::default(), then).unwrap();
        assert_eq!(old[1].1["metadata"]["resourceVersion"], "3");
        assert_eq!(names(store.list_at(&pods, Range::default(), store.revision()).unwrap()), ["b", "c"]);
        store.compact(then + 1);
        assert!(store.list_at(&pods, Range::default(), then).is_none());
    }

    #[test]
    fn a_deleted_object_is_reported_with_the_revision_of_its_end() {
        let (mut store, pods) = store_with(&["a"]);
        let gone = store.write(&pods, ("a".into(), "a".into()), None, Timestamp::UNIX_EPOCH);
        assert_eq!(gone["metadata"]["resourceVersion"], "3");
        let Since::Changes(changes) = store.since(&pods, 2, 10) else { panic!("expired") };
        assert!(changes[0].gone && changes.len() == 1);
    }

    #[test]
    fn a_range_stays_in_its_namespace() {
        let (mut store, pods) = store_with(&["a", "b"]);
        store.write(&pods, ("b".into(), "x".into()), Some(json!({ "metadata": {} })), Timestamp::UNIX_EPOCH);
        let after = ("a".to_owned(), "a".to_owned());
        let range = Range { namespace: Some("a"), after: Some(&after) };
        assert_eq!(store.list(&pods, range).map(|(p, _)| p.1.clone()).collect::<Vec<_>>(), ["b"]);
    }
}
