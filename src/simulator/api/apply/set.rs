//! Sets of fields, as `metadata.managedFields[].fieldsV1` writes them: a tree of `f:name`, `k:{…}` and `v:…` steps.
//!
//! Owns the set operations and the two ways to make a set: of one object, and of the difference of two. Must not know managers.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::super::schema::{Node, Shape};

/// A set of fields.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Set {
    /// The place itself is in the set (`.`, or an empty leaf).
    pub(super) own: bool,
    /// What lies below, by step.
    pub(super) below: BTreeMap<String, Set>,
}

impl Set {
    /// Nothing is in it.
    pub(super) fn is_empty(&self) -> bool {
        !self.own && self.below.values().all(Set::is_empty)
    }

    /// Reads `fieldsV1`.
    pub(super) fn read(fields: &Value) -> Self {
        let mut set = Self::default();
        for (step, below) in fields.as_object().into_iter().flatten() {
            match step.as_str() {
                "." => set.own = true,
                step => {
                    let mut child = Self::read(below);
                    child.own |= child.below.is_empty();
                    set.below.insert(step.to_owned(), child);
                }
            }
        }
        set
    }

    /// Writes `fieldsV1`.
    pub(super) fn write(&self) -> Value {
        let mut fields = Map::new();
        for (step, child) in self.below.iter().filter(|(_, child)| !child.is_empty()) {
            let mut below = child.write();
            if let (true, Some(map)) = (child.own && child.below.values().any(|c| !c.is_empty()), below.as_object_mut()) {
                map.insert(".".to_owned(), Value::Object(Map::new()));
            }
            fields.insert(step.clone(), below);
        }
        Value::Object(fields)
    }

    /// What is in either.
    pub(super) fn union(&mut self, other: &Set) {
        self.own |= other.own;
        for (step, child) in &other.below {
            self.below.entry(step.clone()).or_default().union(child);
        }
    }

    /// Without what is in `other`.
    pub(super) fn subtract(&mut self, other: &Set) {
        self.own &= !other.own;
        for (step, child) in &other.below {
            if let Some(mine) = self.below.get_mut(step) {
                mine.subtract(child);
                if mine.is_empty() {
                    self.below.remove(step);
                }
            }
        }
    }

    /// What is in both.
    pub(super) fn intersection(&self, other: &Set) -> Set {
        let below = self.below.iter().filter_map(|(step, child)| Some((step.clone(), child.intersection(other.below.get(step)?))));
        Set { own: self.own && other.own, below: below.filter(|(_, child)| !child.is_empty()).collect() }
    }

    /// Without all at and below the path.
    pub(super) fn forget(&mut self, path: &[&str]) {
        match path {
            [] => {}
            [last] => {
                self.below.remove(*last);
            }
            [first, rest @ ..] => {
                if let Some(child) = self.below.get_mut(*first) {
                    child.forget(rest);
                }
            }
        }
    }

    /// The paths of all members as Kubernetes shows them in a conflict: `.spec.containers[name="a"].image`.
    pub(super) fn paths(&self) -> Vec<String> {
        let mut found = Vec::new();
        self.collect("", &mut found);
        found
    }

    fn collect(&self, path: &str, found: &mut Vec<String>) {
        if self.own {
            found.push(path.to_owned());
        }
        for (step, child) in &self.below {
            child.collect(&format!("{path}{}", shown(step)), found);
        }
    }
}

fn shown(step: &str) -> String {
    match step.split_once(':') {
        Some(("f", name)) => format!(".{name}"),
        Some(("k", keys)) => {
            let keys: Map<String, Value> = serde_json::from_str(keys).unwrap_or_default();
            format!("[{}]", keys.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(","))
        }
        Some(("v", value)) => format!("[={value}]"),
        _ => format!(".{step}"),
    }
}

/// The step to an item of a list whose items are told apart; `None` when it lacks its keys.
pub(super) fn item_step(item: &Value, node: Node<'_>) -> Option<String> {
    match node.shape() {
        Shape::Set => Some(format!("v:{item}")),
        Shape::Keyed => {
            let mut keys = Map::new();
            for key in node.keys() {
                // A port without a protocol is one of TCP: the only default among the keys of built-in lists.
                let value = item.get(key).cloned().unwrap_or_else(|| if key == "protocol" { "TCP".into() } else { Value::Null });
                keys.insert(key.clone(), value);
            }
            Some(format!("k:{}", Value::Object(keys)))
        }
        _ => None,
    }
}

/// All steps below a value that can be told apart, or `None` when the value is one field.
pub(super) fn steps<'a, 'n>(value: &'a Value, node: Option<Node<'n>>) -> Option<Vec<(String, &'a Value, Option<Node<'n>>)>> {
    match (value, node.map_or(Shape::Unknown, Node::shape)) {
        (_, Shape::AtomicMap | Shape::Scalar | Shape::List) => None,
        (Value::Object(members), _) => {
            Some(members.iter().map(|(name, v)| (format!("f:{name}"), v, node.and_then(|n| n.field(name)))).collect())
        }
        (Value::Array(items), Shape::Set | Shape::Keyed) => {
            let node = node?;
            Some(items.iter().filter_map(|item| Some((item_step(item, node)?, item, node.items()))).collect())
        }
        _ => None,
    }
}

/// Whether a member of this name is one that the type declares, not one of a free map.
fn declared(node: Option<Node<'_>>, step: &str) -> bool {
    node.is_some_and(|node| node.fields().any(|(name, _, _)| step.strip_prefix("f:") == Some(name)))
}

/// The fields that an applied object names.
pub(super) fn of_object(object: &Value, node: Option<Node<'_>>) -> Set {
    let mut set = Set::default();
    let Some(steps) = steps(object, node) else {
        set.own = true;
        return set;
    };
    for (step, value, child) in steps {
        let mut below = of_object(value, child);
        let empty = value.is_null() || value.as_object().is_some_and(Map::is_empty);
        below.own |= empty || !declared(node, &step);
        set.below.insert(step, below);
    }
    set
}

/// How one object differs from another.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Difference {
    /// Fields that are there and were not, or have another value.
    pub(super) changed: Set,
    /// Fields that are gone.
    pub(super) gone: Set,
}

/// How `new` differs from `old`.
pub(super) fn compare(old: &Value, new: &Value, node: Option<Node<'_>>) -> Difference {
    let mut difference = Difference::default();
    both(old, new, node, &mut difference.changed, &mut difference.gone);
    difference
}

fn both(old: &Value, new: &Value, node: Option<Node<'_>>, changed: &mut Set, gone: &mut Set) {
    let (before, after) = (steps(old, node), steps(new, node));
    let (before, after) = match (before, after) {
        (Some(before), Some(after)) => (before, after),
        (None, Some(after)) if old.is_null() => (Vec::new(), after),
        (Some(before), None) if new.is_null() => (before, Vec::new()),
        _ => {
            changed.own |= old != new;
            return;
        }
    };
    let after_by: BTreeMap<&str, &Value> = after.iter().map(|(step, value, _)| (step.as_str(), *value)).collect();
    let before_by: BTreeMap<&str, &Value> = before.iter().map(|(step, value, _)| (step.as_str(), *value)).collect();
    for (step, value, child) in &after {
        let below = match before_by.get(step.as_str()) {
            Some(old) => {
                let (mut c, mut g) = (Set::default(), Set::default());
                both(old, value, *child, &mut c, &mut g);
                if !g.is_empty() {
                    gone.below.insert(step.clone(), g);
                }
                c
            }
            None => whole(value, *child),
        };
        if !below.is_empty() {
            changed.below.insert(step.clone(), below);
        }
    }
    for (step, value, child) in &before {
        if !after_by.contains_key(step.as_str()) {
            gone.below.insert(step.clone(), whole(value, *child));
        }
    }
}

/// A value that came or went: itself and all below it.
fn whole(value: &Value, node: Option<Node<'_>>) -> Set {
    let below = steps(value, node).unwrap_or_default();
    Set { own: true, below: below.into_iter().map(|(step, value, child)| (step, whole(value, child))).collect() }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::super::super::schema::{builtin, normalise};
    use super::*;
    use serde_json::json;

    fn deployment(object: Value) -> Value {
        let mut object = object;
        normalise(&mut object, builtin().kind("apps", "v1", "Deployment").unwrap());
        object
    }

    #[test]
    fn the_fields_of_a_created_object_are_those_that_the_real_server_lists() {
        let node = builtin().kind("apps", "v1", "Deployment");
        let object = deployment(json!({"metadata":{"labels":{"a":"b"}},"spec":{"replicas":1,"selector":{"matchLabels":{"a":"b"}},
            "template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"i"}]}}}}));
        let set = compare(&deployment(json!({})), &object, node).changed;
        assert_eq!(
            set.write(),
            json!({"f:metadata":{"f:labels":{".":{},"f:a":{}}},"f:spec":{"f:replicas":{},"f:selector":{},
            "f:template":{"f:metadata":{"f:labels":{".":{},"f:a":{}}},"f:spec":{"f:containers":{
            "k:{\"name\":\"c\"}":{".":{},"f:image":{},"f:name":{},"f:resources":{}}}}}}})
        );
    }

    #[test]
    fn the_fields_of_an_applied_object_name_items_and_leaves() {
        let object = json!({"metadata":{"labels":{"a":"b"}},"spec":{"template":{"spec":{"containers":[{"name":"c","image":"i"}]}}}});
        let set = of_object(&object, builtin().kind("apps", "v1", "Deployment"));
        let fields = json!({"f:metadata":{"f:labels":{"f:a":{}}},"f:spec":{"f:template":{"f:spec":{"f:containers":{
            "k:{\"name\":\"c\"}":{".":{},"f:image":{},"f:name":{}}}}}}});
        assert_eq!(set.write(), fields);
        assert_eq!(Set::read(&fields), set);
        assert!(set.paths().contains(&".spec.template.spec.containers[name=\"c\"].image".to_owned()));
    }

    #[test]
    fn a_set_without_itself_is_empty() {
        let object = json!({"metadata":{"labels":{"a":"b"}},"spec":{"replicas":1}});
        let mut set = of_object(&object, builtin().kind("apps", "v1", "Deployment"));
        assert_eq!(set.intersection(&set), set);
        set.subtract(&set.clone());
        assert!(set.is_empty());
    }
}
