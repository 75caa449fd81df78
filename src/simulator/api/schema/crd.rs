//! The types of custom resources, read from a CRD's `openAPIV3Schema`. They say what merges and how; nothing is pruned by them.

use serde_json::Value;

use super::{Habit, Schema, Shape, Type, builtin};

/// The deepest schema that is read; what lies deeper is of unknown type.
const DEEPEST: usize = 64;

/// The types of one served version of a custom resource.
pub fn of_crd(group: &str, version: &str, kind: &str, schema: Option<&Value>) -> Schema {
    let mut made = Schema::default();
    let at = match schema {
        Some(schema) => read(&mut made, schema, 0),
        None => push(&mut made, Type { open: true, ..Type::of(Shape::Map) }),
    };
    let metadata = builtin().kinds.get(&(String::new(), "v1".to_owned(), "ObjectMeta".to_owned())).copied();
    let metadata = metadata.map(|from| copy(&mut made, from, 0));
    let text = push(&mut made, Type::of(Shape::Scalar));
    if let Some(top) = made.types.get_mut(at) {
        top.fields.insert("apiVersion".into(), (text, Habit::Keep));
        top.fields.insert("kind".into(), (text, Habit::Keep));
        if let Some(metadata) = metadata {
            top.fields.insert("metadata".into(), (metadata, Habit::Keep));
        }
    }
    made.kinds.insert((group.to_owned(), version.to_owned(), kind.to_owned()), at);
    made
}

fn push(schema: &mut Schema, ty: Type) -> usize {
    schema.types.push(ty);
    schema.types.len() - 1
}

/// Copies a built-in type with all that it is made of.
fn copy(into: &mut Schema, from: usize, depth: usize) -> usize {
    let Some(ty) = builtin().types.get(from).filter(|_| depth < DEEPEST) else {
        return push(into, Type::of(Shape::Unknown));
    };
    let mut ty = ty.clone();
    for (at, _) in ty.fields.values_mut() {
        *at = copy(into, *at, depth + 1);
    }
    ty.values = ty.values.map(|at| copy(into, at, depth + 1));
    ty.items = ty.items.map(|at| copy(into, at, depth + 1));
    push(into, ty)
}

fn flag(schema: &Value, name: &str) -> bool {
    schema.get(name).and_then(Value::as_bool) == Some(true)
}

fn read(made: &mut Schema, schema: &Value, depth: usize) -> usize {
    if depth > DEEPEST {
        return push(made, Type::of(Shape::Unknown));
    }
    let text = |name: &str| schema.get(name).and_then(Value::as_str);
    let mut ty = match text("type") {
        Some("object") => {
            let shape = if text("x-kubernetes-map-type") == Some("atomic") { Shape::AtomicMap } else { Shape::Map };
            let mut ty = Type { open: true, ..Type::of(shape) };
            for (name, field) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
                let at = read(made, field, depth + 1);
                ty.fields.insert(name.clone(), (at, Habit::Keep));
            }
            ty.values = schema.get("additionalProperties").filter(|v| v.is_object()).map(|values| read(made, values, depth + 1));
            ty
        }
        Some("array") => {
            let shape = match text("x-kubernetes-list-type") {
                Some("set") => Shape::Set,
                Some("map") => Shape::Keyed,
                _ => Shape::List,
            };
            let mut ty = Type::of(shape);
            ty.items = schema.get("items").map(|items| read(made, items, depth + 1));
            ty.keys = schema
                .get("x-kubernetes-list-map-keys")
                .and_then(Value::as_array)
                .into_iter()
                .flatten()
                .filter_map(Value::as_str)
                .map(str::to_owned)
                .collect();
            ty
        }
        Some(_) => Type::of(Shape::Scalar),
        None if flag(schema, "x-kubernetes-int-or-string") => Type::of(Shape::Scalar),
        None => Type::of(Shape::Unknown),
    };
    ty.open |= flag(schema, "x-kubernetes-preserve-unknown-fields");
    push(made, ty)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_crds_keyed_list_is_keyed_and_metadata_is_that_of_every_object() {
        let schema = json!({"type":"object","properties":{"spec":{"type":"object","properties":{
            "rules":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["name"],"items":{"type":"object"}}}}}});
        let schema = of_crd("g", "v1", "K", Some(&schema));
        let kind = schema.kind("g", "v1", "K").unwrap();
        let rules = kind.field("spec").unwrap().field("rules").unwrap();
        assert_eq!((rules.shape(), rules.keys()), (Shape::Keyed, &["name".to_owned()][..]));
        let owners = kind.field("metadata").unwrap().field("ownerReferences").unwrap();
        assert_eq!((owners.shape(), owners.keys()), (Shape::Keyed, &["uid".to_owned()][..]));
    }
}
