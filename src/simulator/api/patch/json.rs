//! JSON Patch (RFC 6902) as `gopkg.in/evanphx/json-patch.v4` does it for Kubernetes 1.36: a negative index counts from the end,
//! a `test` of an absent member holds for null, a failed operation is a 422 without words.

use serde::Deserialize;
use serde_json::{Value, json};

use super::super::status::{ApiError, ApiResult};

/// Most operations in one patch, `maxJSONPatchOperations` of the API server.
const MOST: usize = 10_000;

#[derive(Deserialize)]
struct Operation {
    op: String,
    path: String,
    from: Option<String>,
    #[serde(default, deserialize_with = "present")]
    value: Option<Value>,
}

fn present<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

/// The object after a JSON patch.
///
/// # Errors
/// 400 when the body cannot be read, 413 for too many operations, 422 when an operation fails.
pub fn json_patch(object: &Value, body: &[u8]) -> ApiResult<Value> {
    let operations: Vec<Value> =
        serde_json::from_slice(body).map_err(|error| ApiError::bad_request(format!("error decoding patch: {error}")))?;
    if operations.len() > MOST {
        return Err(ApiError::too_large(format!("The allowed maximum operations in a JSON patch is {MOST}, got {}", operations.len())));
    }
    let mut object = object.clone();
    for operation in operations {
        let failed = || ApiError::new(422, "Invalid", "").with_details(json!({}));
        let operation: Operation = serde_json::from_value(operation).map_err(|_| failed())?;
        run(&mut object, operation).ok_or_else(failed)?;
    }
    Ok(object)
}

fn run(object: &mut Value, operation: Operation) -> Option<()> {
    let path = pointer(&operation.path)?;
    match operation.op.as_str() {
        "add" => add(object, &path, operation.value?),
        "remove" => remove(object, &path).map(drop),
        "replace" => {
            let value = operation.value?;
            let slot = find_mut(object, &path)?;
            *slot = value;
            Some(())
        }
        "move" => {
            let from = pointer(&operation.from?)?;
            let value = remove(object, &from)?;
            add(object, &path, value)
        }
        "copy" => {
            let from = pointer(&operation.from?)?;
            let value = find(object, &from)?.clone();
            add(object, &path, value)
        }
        "test" => {
            let wanted = operation.value.unwrap_or(Value::Null);
            match find(object, &path) {
                Some(found) => same(found, &wanted).then_some(()),
                // The parent must be there; an absent member is null.
                None => {
                    let (_, parent) = path.split_last()?;
                    let parent = find(object, parent)?;
                    (parent.is_object() && wanted.is_null()).then_some(())
                }
            }
        }
        _ => None,
    }
}

/// Equal as JSON, with numbers compared by value.
fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a == b || a.as_f64() == b.as_f64(),
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(name, value)| b.get(name).is_some_and(|other| same(value, other)))
        }
        (a, b) => a == b,
    }
}

/// The steps of a JSON pointer, `~1` and `~0` read.
fn pointer(path: &str) -> Option<Vec<String>> {
    if path.is_empty() {
        return Some(Vec::new());
    }
    Some(path.strip_prefix('/')?.split('/').map(|step| step.replace("~1", "/").replace("~0", "~")).collect())
}

/// The index that a step means in a list of `length`; negative ones count from the end.
fn index(step: &str, length: usize) -> Option<usize> {
    let at: i64 = step.parse().ok()?;
    let at = if at < 0 { at.checked_add(i64::try_from(length).ok()?)? } else { at };
    usize::try_from(at).ok()
}

fn find<'a>(object: &'a Value, path: &[String]) -> Option<&'a Value> {
    path.iter().try_fold(object, |value, step| match value {
        Value::Object(members) => members.get(step),
        Value::Array(items) => items.get(index(step, items.len())?),
        _ => None,
    })
}

fn find_mut<'a>(object: &'a mut Value, path: &[String]) -> Option<&'a mut Value> {
    path.iter().try_fold(object, |value, step| match value {
        Value::Object(members) => members.get_mut(step),
        Value::Array(items) => {
            let at = index(step, items.len())?;
            items.get_mut(at)
        }
        _ => None,
    })
}

fn add(object: &mut Value, path: &[String], value: Value) -> Option<()> {
    let Some((last, parent)) = path.split_last() else {
        *object = value;
        return Some(());
    };
    match find_mut(object, parent)? {
        Value::Object(members) => {
            members.insert(last.clone(), value);
            Some(())
        }
        Value::Array(items) => {
            let at = if last == "-" { items.len() } else { index(last, items.len() + usize::from(last.starts_with('-')))? };
            (at <= items.len()).then(|| items.insert(at, value))
        }
        _ => None,
    }
}

fn remove(object: &mut Value, path: &[String]) -> Option<Value> {
    let (last, parent) = path.split_last()?;
    match find_mut(object, parent)? {
        Value::Object(members) => members.remove(last),
        Value::Array(items) => {
            let at = index(last, items.len())?;
            (at < items.len()).then(|| items.remove(at))
        }
        _ => None,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case::add(json!({"a":1}), json!([{"op":"add","path":"/b","value":2}]), Some(json!({"a":1,"b":2})))]
    #[case::add_at_the_end(json!({"a":[1]}), json!([{"op":"add","path":"/a/-","value":2}]), Some(json!({"a":[1,2]})))]
    #[case::add_in_between(json!({"a":[1,3]}), json!([{"op":"add","path":"/a/1","value":2}]), Some(json!({"a":[1,2,3]})))]
    #[case::add_beyond(json!({"a":[1]}), json!([{"op":"add","path":"/a/3","value":2}]), None)]
    #[case::add_without_a_parent(json!({}), json!([{"op":"add","path":"/a/b","value":2}]), None)]
    #[case::escapes(json!({"a/b":{"c~d":1}}), json!([{"op":"replace","path":"/a~1b/c~0d","value":2}]), Some(json!({"a/b":{"c~d":2}})))]
    #[case::remove_of_absent(json!({}), json!([{"op":"remove","path":"/a"}]), None)]
    #[case::replace_of_absent(json!({}), json!([{"op":"replace","path":"/a","value":1}]), None)]
    #[case::test_holds(json!({"a":{"b":1}}), json!([{"op":"test","path":"/a","value":{"b":1.0}}]), Some(json!({"a":{"b":1}})))]
    #[case::test_fails(json!({"a":1}), json!([{"op":"test","path":"/a","value":2}]), None)]
    #[case::test_null_on_absent(json!({"a":{}}), json!([{"op":"test","path":"/a/b","value":null}]), Some(json!({"a":{}})))]
    #[case::test_null_on_an_absent_parent(json!({}), json!([{"op":"test","path":"/a/b","value":null}]), None)]
    #[case::moved(json!({"a":1}), json!([{"op":"move","from":"/a","path":"/b"}]), Some(json!({"b":1})))]
    #[case::copied(json!({"a":[1]}), json!([{"op":"copy","from":"/a/0","path":"/b"}]), Some(json!({"a":[1],"b":1})))]
    #[case::unknown_operation(json!({}), json!([{"op":"spin","path":"/a"}]), None)]
    fn an_operation_changes_the_object_or_fails(#[case] object: Value, #[case] patch: Value, #[case] wanted: Option<Value>) {
        let got = json_patch(&object, patch.to_string().as_bytes());
        match wanted {
            Some(wanted) => assert_eq!(got.unwrap(), wanted),
            None => assert_eq!(got.unwrap_err().code, 422),
        }
    }

    #[test]
    fn too_many_operations_are_too_large() {
        let many = json!(vec![json!({"op":"test","path":"","value":{}}); MOST + 1]);
        assert_eq!(json_patch(&json!({}), many.to_string().as_bytes()).unwrap_err().code, 413);
        assert_eq!(json_patch(&json!({}), b"{}").unwrap_err().code, 400);
    }
}
