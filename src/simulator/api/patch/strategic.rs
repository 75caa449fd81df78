//! Strategic merge patch, as `k8s.io/apimachinery/pkg/util/strategicpatch` (1.36) does it: lists of objects merge by the key that
//! the kind's Go type names, with `$patch`, `$retainKeys`, `$setElementOrder/…` and `$deleteFromPrimitiveList/…`.

use serde_json::{Map, Value};

use super::super::schema::Node;
use super::super::status::{ApiError, ApiResult};

const DIRECTIVE: &str = "$patch";
const RETAIN: &str = "$retainKeys";
const ORDER: &str = "$setElementOrder/";
const DELETE: &str = "$deleteFromPrimitiveList/";

/// The object after a strategic merge patch; `node` is the type of the whole object.
///
/// # Errors
/// 400 when the body is no JSON object, 500 with Kubernetes' words when a directive or a merge key is wrong.
pub fn strategic_patch(object: &Value, body: &[u8], node: Option<Node<'_>>) -> ApiResult<Value> {
    let Value::Object(patch) = super::object_body(body)? else { return Ok(object.clone()) };
    let original = object.as_object().cloned().unwrap_or_default();
    Ok(Value::Object(merge_maps(original, patch, node)?))
}

fn wrong(message: impl Into<String>) -> ApiError {
    ApiError::new(500, "", message).with_details(serde_json::json!({}))
}

fn merge_maps(mut original: Map<String, Value>, mut patch: Map<String, Value>, node: Option<Node<'_>>) -> ApiResult<Map<String, Value>> {
    match patch.remove(DIRECTIVE) {
        None => {}
        Some(Value::String(what)) if what == "replace" => return Ok(stripped(patch)),
        Some(Value::String(what)) if what == "delete" => return Ok(Map::new()),
        Some(Value::String(what)) if what == "merge" => {}
        Some(other) => return Err(wrong(format!("unknown patch type: {}", bare(&other)))),
    }
    if let Some(retain) = patch.remove(RETAIN) {
        let keep: Vec<String> = strings(&retain);
        if let Some(missing) = patch.keys().find(|name| !name.starts_with('$') && !keep.contains(name)) {
            return Err(wrong(format!("{missing:?} is not present in the $retainKeys list")));
        }
        original.retain(|name, _| keep.contains(name));
    }
    let mut orders: Map<String, Value> = Map::new();
    let mut deletions: Map<String, Value> = Map::new();
    patch.retain(|name, value| {
        let (into, bare) = match (name.strip_prefix(ORDER), name.strip_prefix(DELETE)) {
            (Some(bare), _) => (&mut orders, bare),
            (_, Some(bare)) => (&mut deletions, bare),
            _ => return true,
        };
        into.insert(bare.to_owned(), value.take());
        false
    });
    for (name, gone) in deletions {
        if let Some(Value::Array(items)) = original.get_mut(&name) {
            let gone = gone.as_array().cloned().unwrap_or_default();
            items.retain(|item| !gone.contains(item));
        }
    }
    for (name, value) in patch {
        let child = node.and_then(|node| node.field(&name));
        let order = orders.remove(&name);
        match value {
            Value::Null => {
                original.remove(&name);
            }
            Value::Object(members) => {
                let replace = child.is_some_and(|c| c.strategy().replace);
                let before = match original.remove(&name) {
                    Some(Value::Object(before)) if !replace => before,
                    _ => Map::new(),
                };
                let delete = members.get(DIRECTIVE).and_then(Value::as_str) == Some("delete");
                let merged = merge_maps(before, members, child)?;
                if !delete {
                    original.insert(name, Value::Object(merged));
                }
            }
            Value::Array(items) => {
                let before = match original.remove(&name) {
                    Some(Value::Array(before)) => before,
                    _ => Vec::new(),
                };
                let merged = match child.filter(|child| child.strategy().merge) {
                    Some(child) => merge_lists(before, items, child, order)?,
                    None => items.into_iter().filter_map(plain).collect(),
                };
                original.insert(name, Value::Array(merged));
            }
            value => {
                original.insert(name, value);
            }
        }
    }
    // An order without the list itself only sorts what is there.
    for (name, order) in orders {
        let child = node.and_then(|node| node.field(&name));
        if let (Some(child), Some(Value::Array(items))) = (child, original.get_mut(&name)) {
            *items = ordered(std::mem::take(items), &order, child.strategy().merge_key);
        }
    }
    Ok(original)
}

fn merge_lists(before: Vec<Value>, patch: Vec<Value>, node: Node<'_>, order: Option<Value>) -> ApiResult<Vec<Value>> {
    let Some(key) = node.strategy().merge_key else {
        let mut merged = before;
        for item in patch {
            if !merged.contains(&item) {
                merged.push(item);
            }
        }
        return Ok(match order {
            Some(order) => ordered(merged, &order, None),
            None => merged,
        });
    };
    let replace = patch.iter().any(|item| item.get(DIRECTIVE).and_then(Value::as_str) == Some("replace"));
    let mut merged = if replace { Vec::new() } else { before };
    for item in patch {
        let Value::Object(mut members) = item else {
            return Err(wrong("cannot merge a list of objects with an item that is not an object"));
        };
        let directive = members.get(DIRECTIVE).map(bare);
        let named = members.get(key).cloned();
        match directive.as_deref() {
            Some("replace") => {
                members.remove(DIRECTIVE);
                if !members.is_empty() {
                    merged.push(Value::Object(stripped(members)));
                }
            }
            Some("delete") => {
                let named = named.ok_or_else(|| no_key(key))?;
                merged.retain(|item| item.get(key) != Some(&named));
            }
            Some("merge") | None => {
                let named = named.ok_or_else(|| no_key(key))?;
                let at = merged.iter().position(|item| item.get(key) == Some(&named));
                let old = at.and_then(|at| merged.get(at)).and_then(Value::as_object).cloned();
                let new = Value::Object(merge_maps(old.unwrap_or_default(), members, node.items())?);
                match at.and_then(|at| merged.get_mut(at)) {
                    Some(slot) => *slot = new,
                    None => merged.push(new),
                }
            }
            Some(other) => return Err(wrong(format!("unknown patch type: {other}"))),
        }
    }
    Ok(match order {
        Some(order) => ordered(merged, &order, Some(key)),
        None => merged,
    })
}

fn no_key(key: &str) -> ApiError {
    wrong(format!("map: does not contain declared merge key: {key}"))
}

/// Items in the order that the patch asks for; those that it does not name keep their place before the next named one.
fn ordered(items: Vec<Value>, order: &Value, key: Option<&str>) -> Vec<Value> {
    let place = |item: &Value| {
        order.as_array()?.iter().position(|wanted| match key {
            Some(key) => wanted.get(key).is_some() && wanted.get(key) == item.get(key),
            None => wanted == item,
        })
    };
    let (named, others): (Vec<_>, Vec<_>) = items.into_iter().enumerate().partition(|(_, item)| place(item).is_some());
    let mut named: Vec<(usize, Value)> = named;
    named.sort_by_key(|(_, item)| place(item));
    let mut merged = Vec::with_capacity(named.len() + others.len());
    let (mut left, mut right) = (named.into_iter().peekable(), others.into_iter().peekable());
    while let (Some((wanted, _)), Some((other, _))) = (left.peek(), right.peek()) {
        let next = if wanted < other { left.next() } else { right.next() };
        merged.extend(next.map(|(_, item)| item));
    }
    merged.extend(left.chain(right).map(|(_, item)| item));
    merged
}

/// An object that is added as a whole: no directives, no nulls.
fn stripped(map: Map<String, Value>) -> Map<String, Value> {
    map.into_iter().filter(|(name, _)| !name.starts_with('$')).filter_map(|(name, value)| Some((name, plain(value)?))).collect()
}

fn plain(value: Value) -> Option<Value> {
    match value {
        Value::Object(map) if map.get(DIRECTIVE).and_then(Value::as_str) == Some("delete") => None,
        Value::Object(map) => Some(Value::Object(stripped(map))),
        Value::Array(items) => Some(Value::Array(items.into_iter().filter_map(plain).collect())),
        Value::Null => None,
        value => Some(value),
    }
}

fn strings(value: &Value) -> Vec<String> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

fn bare(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::super::super::schema::builtin;
    use super::*;
    use rstest::rstest;
    use serde_json::json;

    fn pod(containers: Value) -> Value {
        json!({ "spec": { "containers": containers } })
    }

    #[rstest]
    #[case::one_container(pod(json!([{"name":"a","image":"1"},{"name":"b","image":"1"}])), pod(json!([{"name":"b","image":"2"}])),
        pod(json!([{"name":"a","image":"1"},{"name":"b","image":"2"}])))]
    #[case::deleted(pod(json!([{"name":"a"},{"name":"b"}])), pod(json!([{"name":"a","$patch":"delete"}])), pod(json!([{"name":"b"}])))]
    #[case::replaced(pod(json!([{"name":"a"},{"name":"b"}])), pod(json!([{"name":"c"},{"$patch":"replace"}])), pod(json!([{"name":"c"}])))]
    #[case::env(pod(json!([{"name":"a","env":[{"name":"X","value":"1"}]}])), pod(json!([{"name":"a","env":[{"name":"Y","value":"2"}]}])),
        pod(json!([{"name":"a","env":[{"name":"X","value":"1"},{"name":"Y","value":"2"}]}])))]
    #[case::ports_merge_by_container_port(pod(json!([{"name":"a","ports":[{"containerPort":1,"name":"x"}]}])),
        pod(json!([{"name":"a","ports":[{"containerPort":1,"name":"y"}]}])), pod(json!([{"name":"a","ports":[{"containerPort":1,"name":"y"}]}])))]
    #[case::args_are_replaced(pod(json!([{"name":"a","args":["1","2"]}])), pod(json!([{"name":"a","args":["3"]}])),
        pod(json!([{"name":"a","args":["3"]}])))]
    #[case::order(pod(json!([{"name":"a"},{"name":"b"}])), json!({"spec":{"$setElementOrder/containers":[{"name":"b"},{"name":"a"}]}}),
        pod(json!([{"name":"b"},{"name":"a"}])))]
    #[case::finalizers_merge(json!({"metadata":{"finalizers":["a"]}}), json!({"metadata":{"finalizers":["b"]}}),
        json!({"metadata":{"finalizers":["a","b"]}}))]
    #[case::finalizers_go(json!({"metadata":{"finalizers":["a","b"]}}), json!({"metadata":{"$deleteFromPrimitiveList/finalizers":["a"]}}),
        json!({"metadata":{"finalizers":["b"]}}))]
    #[case::conditions(json!({"status":{"conditions":[{"type":"A","status":"True"}]}}), json!({"status":{"conditions":[{"type":"A","status":"False"}]}}),
        json!({"status":{"conditions":[{"type":"A","status":"False"}]}}))]
    #[case::null_removes(json!({"metadata":{"labels":{"a":"1","b":"2"}}}), json!({"metadata":{"labels":{"a":null}}}),
        json!({"metadata":{"labels":{"b":"2"}}}))]
    #[case::a_map_is_replaced(json!({"metadata":{"labels":{"a":"1"}}}), json!({"metadata":{"labels":{"$patch":"replace","b":"2"}}}),
        json!({"metadata":{"labels":{"b":"2"}}}))]
    fn a_patch_merges_by_the_kinds_keys(#[case] object: Value, #[case] patch: Value, #[case] wanted: Value) {
        let node = builtin().kind("", "v1", "Pod");
        assert!(node.is_some());
        assert_eq!(strategic_patch(&object, patch.to_string().as_bytes(), node).unwrap(), wanted);
    }

    #[test]
    fn a_wrong_directive_and_a_missing_key_are_told_in_kubernetes_words() {
        let node = builtin().kind("", "v1", "Pod");
        let error = |patch: Value| strategic_patch(&pod(json!([])), patch.to_string().as_bytes(), node).unwrap_err().message;
        assert_eq!(error(pod(json!([{"image":"x"}]))), "map: does not contain declared merge key: name");
        assert_eq!(error(json!({"spec":{"$patch":"spin"}})), "unknown patch type: spin");
    }
}
