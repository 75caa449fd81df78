//! Which Services and InferencePools select a set of labels, without asking each of them.

use std::collections::BTreeMap;

use crate::model::Subject;
use crate::model::object::{Catalogue, Selector};

/// Selectors of all fronts, found by one of their labels.
pub struct FrontIndex<'a> {
    /// (namespace, key, value) of one required label → fronts.
    by_label: BTreeMap<(&'a str, &'a str, &'a str), Vec<(Subject, &'a Selector)>>,
    /// Fronts that require no label by equality, by namespace.
    rest: BTreeMap<&'a str, Vec<(Subject, &'a Selector)>>,
}

impl<'a> FrontIndex<'a> {
    /// An index of all Services and pools that have a selector.
    pub fn new(objects: &'a Catalogue) -> Self {
        let mut index = Self { by_label: BTreeMap::new(), rest: BTreeMap::new() };
        let services = objects.services().filter_map(|(object, service)| Some((object, service.selector.as_ref()?)));
        let pools = objects.pools().filter_map(|(object, pool)| Some((object, pool.selector.as_ref()?)));
        for (object, selector) in services.chain(pools) {
            let namespace = object.meta.namespace.as_str();
            let entry = (object.subject(), selector);
            match selector.labels.iter().next() {
                Some((key, value)) => index.by_label.entry((namespace, key, value)).or_default().push(entry),
                None => index.rest.entry(namespace).or_default().push(entry),
            }
        }
        index
    }

    /// Fronts of the namespace that select these labels, in the order of their names.
    pub fn selecting(&self, namespace: &str, labels: &BTreeMap<String, String>) -> Vec<Subject> {
        let by_label = labels.iter().filter_map(|(key, value)| self.by_label.get(&(namespace, key.as_str(), value.as_str()))).flatten();
        let rest = self.rest.get(namespace).into_iter().flatten();
        let mut found: Vec<Subject> =
            by_label.chain(rest).filter(|(_, selector)| selector.matches(labels)).map(|(front, _)| front.clone()).collect();
        found.sort();
        found.dedup();
        found
    }
}
