//! Server-side apply: one manager's wishes merged into the object.
//!
//! Owns the merge, what a manager gives up, and conflicts, as `sigs.k8s.io/structured-merge-diff` has them. Must not default or
//! validate: the result goes through that afterwards.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::super::schema::{Node, Shape};
use super::super::status::{ApiError, ApiResult};
use super::entries::{Entry, Writer, read, strip, write};
use super::set::{Set, compare, item_step, of_object};

/// Applies `wishes` to `live` (`{}` with metadata when there is no object yet) and gives the object with its managedFields.
///
/// # Errors
/// 409 with one cause for each field that another manager owns and that would change, unless `force`; 422-like `BadRequest` for list
/// items without their keys or with the same keys twice.
pub fn apply(node: Option<Node<'_>>, live: &Value, wishes: &Value, writer: &Writer<'_>, force: bool) -> ApiResult<Value> {
    let named = wishes.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
    let kind = wishes.get("kind").and_then(Value::as_str).unwrap_or_default();
    check_keys(wishes, node, "").map_err(|why| untyped(named, writer.api_version, kind, &why))?;
    let mut entries = read(live);
    let exists = live.pointer("/metadata/uid").is_some();
    if entries.is_empty() && exists {
        entries.push(before_first(node, live, writer));
    }
    let mut merged = live.clone();
    merge(&mut merged, wishes, node);
    let mut wished = of_object(wishes, node);
    strip(&mut wished, writer);
    let at = entries.iter().position(|entry| entry.is(writer, true));
    let last = at.map(|at| entries.remove(at));
    if let Some(Entry { set: last, .. }) = &last {
        let mut keep = wished.clone();
        entries.iter().for_each(|entry| keep.union(&entry.set));
        give_up(&mut merged, last, &keep, node);
    }
    let mut difference = compare(live, &merged, node);
    strip(&mut difference.changed, writer);
    let mut conflicts: Vec<(String, String)> = Vec::new();
    for entry in &mut entries {
        let contested = entry.set.intersection(&difference.changed);
        if !contested.is_empty() && !force {
            conflicts.extend(contested.paths().into_iter().map(|path| (entry.shown(), path)));
        }
        entry.set.subtract(&contested);
        entry.set.subtract(&difference.gone);
    }
    if !conflicts.is_empty() {
        return Err(conflict(&conflicts));
    }
    let mut own = Entry::of(writer, true, wished);
    if difference.changed.is_empty() && difference.gone.is_empty() && exists {
        // Nothing changed but who is named: that has no time.
        own.time = last.and_then(|last| last.time);
    }
    entries.push(own);
    write(&mut merged, entries);
    Ok(merged)
}

/// The 500 for wishes that fit no type.
pub fn untyped(name: &str, api_version: &str, kind: &str, why: &str) -> ApiError {
    ApiError::new(500, "", format!("failed to create typed patch object (/{name}; {api_version}, Kind={kind}): {why}"))
}

/// All that an object without entries has, as one updater's.
fn before_first(node: Option<Node<'_>>, live: &Value, writer: &Writer<'_>) -> Entry {
    let mut set = compare(&json!({"metadata": {}}), live, node).changed;
    strip(&mut set, writer);
    let before = Writer { manager: "before-first-apply", subresource: "", ..writer.clone() };
    Entry::of(&before, false, set)
}

fn conflict(conflicts: &[(String, String)]) -> ApiError {
    let causes = conflicts
        .iter()
        .map(|(manager, path)| json!({"reason": "FieldManagerConflict", "message": format!("conflict with {manager}"), "field": path}))
        .collect();
    if let [(manager, path)] = conflicts {
        return ApiError::apply_conflict(format!("Apply failed with 1 conflict: conflict with {manager}: {path}"), causes);
    }
    let mut by_manager: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (manager, path) in conflicts {
        by_manager.entry(manager).or_default().push(path);
    }
    let mut lines = Vec::new();
    for (manager, paths) in by_manager {
        lines.push(format!("conflicts with {manager}:"));
        lines.extend(paths.iter().map(|path| format!("- {path}")));
    }
    ApiError::apply_conflict(format!("Apply failed with {} conflicts: {}", conflicts.len(), lines.join("\n")), causes)
}

/// Refuses lists with the same item twice.
fn check_keys(value: &Value, node: Option<Node<'_>>, path: &str) -> Result<(), String> {
    let Some(node) = node else { return Ok(()) };
    match value {
        Value::Object(members) if node.shape() != Shape::AtomicMap => {
            members.iter().try_for_each(|(name, child)| check_keys(child, node.field(name), &format!("{path}.{name}")))
        }
        Value::Array(items) if matches!(node.shape(), Shape::Keyed | Shape::Set) => {
            let mut seen = std::collections::BTreeSet::new();
            for (at, item) in items.iter().enumerate() {
                let Some(step) = item_step(item, node) else { continue };
                if !seen.insert(step.clone()) {
                    let mut only = Set::default();
                    only.below.insert(step, Set { own: true, below: BTreeMap::new() });
                    return Err(format!("{path}: duplicate entries for key {}", only.paths().concat()));
                }
                check_keys(item, node.items(), &format!("{path}[{at}]"))?;
            }
            Ok(())
        }
        _ => Ok(()),
    }
}

fn merge(live: &mut Value, wishes: &Value, node: Option<Node<'_>>) {
    let shape = node.map_or(Shape::Unknown, Node::shape);
    match (live, wishes) {
        (Value::Object(mine), Value::Object(theirs)) if shape != Shape::AtomicMap => {
            for (name, wish) in theirs {
                match mine.get_mut(name) {
                    Some(value) => merge(value, wish, node.and_then(|n| n.field(name))),
                    None => {
                        mine.insert(name.clone(), wish.clone());
                    }
                }
            }
        }
        (Value::Array(mine), Value::Array(theirs)) if matches!(shape, Shape::Keyed | Shape::Set) => {
            let Some(node) = node else { return };
            *mine = merged_items(std::mem::take(mine), theirs, node);
        }
        (live, wishes) => *live = wishes.clone(),
    }
}

/// Items of both lists: those that only the object has stand before what comes next, the rest in the order of the wishes.
fn merged_items(mine: Vec<Value>, theirs: &[Value], node: Node<'_>) -> Vec<Value> {
    let wished: Vec<Option<String>> = theirs.iter().map(|item| item_step(item, node)).collect();
    let there: Vec<(Option<String>, Value)> = mine.into_iter().map(|item| (item_step(&item, node), item)).collect();
    let shared: BTreeMap<String, Value> =
        there.iter().filter_map(|(step, item)| wished.contains(step).then(|| Some((step.clone()?, item.clone())))?).collect();
    let mut mine = there.into_iter().peekable();
    let mut result = Vec::new();
    for (step, wish) in wished.into_iter().zip(theirs) {
        while let Some((_, item)) = mine.next_if(|(mine, _)| !mine.as_ref().is_some_and(|m| shared.contains_key(m))) {
            result.push(item);
        }
        mine.next_if(|(mine, _)| *mine == step);
        match step.and_then(|step| shared.get(&step)) {
            Some(item) => {
                let mut item = item.clone();
                merge(&mut item, wish, node.items());
                result.push(item);
            }
            None => result.push(wish.clone()),
        }
    }
    result.extend(mine.filter(|(step, _)| !step.as_ref().is_some_and(|s| shared.contains_key(s))).map(|(_, item)| item));
    result
}

/// Takes away what the manager owned last time, does not wish any more, and nobody else owns.
fn give_up(value: &mut Value, last: &Set, keep: &Set, node: Option<Node<'_>>) {
    for (step, child) in &last.below {
        let kept = keep.below.get(step);
        match (value.as_object_mut(), step.strip_prefix("f:")) {
            (Some(members), Some(name)) => match kept {
                None => {
                    members.remove(name);
                }
                Some(kept) => {
                    if let Some(below) = members.get_mut(name) {
                        give_up(below, child, kept, node.and_then(|n| n.field(name)));
                    }
                }
            },
            _ => {
                let (Some(items), Some(node)) = (value.as_array_mut(), node) else { continue };
                match kept {
                    None => items.retain(|item| item_step(item, node).as_ref() != Some(step)),
                    Some(kept) => {
                        if let Some(item) = items.iter_mut().find(|item| item_step(item, node).as_ref() == Some(step)) {
                            give_up(item, child, kept, node.items());
                        }
                    }
                }
            }
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::super::super::schema::builtin;
    use super::super::track_update;
    use super::*;

    fn node() -> Option<Node<'static>> {
        builtin().kind("apps", "v1", "Deployment")
    }

    fn writer(manager: &str) -> Writer<'_> {
        Writer { manager, api_version: "apps/v1", subresource: "", now: Some("2026-01-01T00:00:00Z"), reset: &[&["f:status"]] }
    }

    fn wishes(replicas: u64, containers: &[&str]) -> Value {
        let containers: Vec<Value> = containers.iter().map(|name| json!({"name": name, "image": "i"})).collect();
        json!({"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"d"},
            "spec":{"replicas":replicas,"template":{"spec":{"containers":containers}}}})
    }

    #[test]
    fn a_field_that_another_manager_set_is_a_conflict_and_force_takes_it() {
        let first = apply(node(), &json!({"metadata":{"name":"d"}}), &wishes(1, &["a"]), &writer("one"), false).unwrap();
        let error = apply(node(), &first, &wishes(2, &["a"]), &writer("two"), false).unwrap_err();
        assert_eq!(error.message, "Apply failed with 1 conflict: conflict with \"one\": .spec.replicas");
        let second = apply(node(), &first, &wishes(2, &["a"]), &writer("two"), true).unwrap();
        let one = &second["metadata"]["managedFields"][0];
        assert_eq!(one["manager"], "one");
        assert!(one["fieldsV1"]["f:spec"].get("f:replicas").is_none());
    }

    #[test]
    fn the_same_value_is_shared_and_stays_when_one_gives_it_up() {
        let first = apply(node(), &json!({"metadata":{"name":"d"}}), &wishes(1, &["a", "b"]), &writer("one"), false).unwrap();
        let second = apply(node(), &first, &wishes(1, &["a"]), &writer("two"), false).unwrap();
        let third = apply(node(), &second, &json!({"metadata":{"name":"d"}}), &writer("one"), false).unwrap();
        assert_eq!(third["spec"]["replicas"], 1);
        assert_eq!(third["spec"]["template"]["spec"]["containers"], json!([{"name":"a","image":"i"}]));
        assert_eq!(third["metadata"]["managedFields"].as_array().unwrap().len(), 1);
    }

    #[test]
    fn an_updater_takes_what_it_changes_and_its_conflict_shows_its_time() {
        let first = apply(node(), &json!({"metadata":{"name":"d"}}), &wishes(1, &["a"]), &writer("one"), false).unwrap();
        let mut scaled = first.clone();
        scaled["spec"]["replicas"] = json!(5);
        let by = Writer { subresource: "scale", now: None, ..writer("kubectl") };
        track_update(node(), Some(&first), &mut scaled, &by);
        let error = apply(node(), &scaled, &wishes(1, &["a"]), &writer("one"), false).unwrap_err();
        assert_eq!(
            error.message,
            "Apply failed with 1 conflict: conflict with \"kubectl\" with subresource \"scale\" using apps/v1: .spec.replicas"
        );
    }
}
