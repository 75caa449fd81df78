//! JSON merge patch (RFC 7386).

use serde_json::{Map, Value};

use super::super::status::ApiResult;

/// The object after a merge patch.
///
/// # Errors
/// 400 when the body is no JSON object.
pub fn merge_patch(object: &Value, body: &[u8]) -> ApiResult<Value> {
    let patch = super::object_body(body)?;
    let mut object = object.clone();
    merge(&mut object, patch);
    Ok(object)
}

fn merge(target: &mut Value, patch: Value) {
    let Value::Object(patch) = patch else {
        *target = patch;
        return;
    };
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    let Some(members) = target.as_object_mut() else { return };
    for (name, value) in patch {
        match value {
            Value::Null => {
                members.remove(&name);
            }
            value => merge(members.entry(name).or_insert(Value::Null), value),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use rstest::rstest;
    use serde_json::json;

    #[rstest]
    #[case::replace(json!({"a":"b"}), json!({"a":"c"}), json!({"a":"c"}))]
    #[case::remove(json!({"a":"b","c":1}), json!({"a":null}), json!({"c":1}))]
    #[case::null_of_absent(json!({}), json!({"a":{"b":null}}), json!({"a":{}}))]
    #[case::lists_are_replaced(json!({"a":[1,2]}), json!({"a":[3]}), json!({"a":[3]}))]
    #[case::deep(json!({"a":{"b":1,"c":2}}), json!({"a":{"b":3}}), json!({"a":{"b":3,"c":2}}))]
    fn a_merge_patch_follows_the_rfc(#[case] object: Value, #[case] patch: Value, #[case] wanted: Value) {
        assert_eq!(merge_patch(&object, patch.to_string().as_bytes()).unwrap(), wanted);
    }

    #[test]
    fn what_is_no_object_is_refused() {
        assert_eq!(merge_patch(&json!({}), b"[]").unwrap_err().code, 400);
        assert_eq!(merge_patch(&json!({}), b"{").unwrap_err().code, 400);
    }
}
