//! The types of the built-in kinds, read from a table that `tests/cluster/schema/types` makes beside a real API server.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use serde::Deserialize;

use super::{Habit, Scalar, Schema, Shape, Type};

#[derive(Deserialize)]
struct Table {
    kinds: BTreeMap<String, usize>,
    types: Vec<Entry>,
}

#[derive(Deserialize)]
struct Entry {
    s: String,
    #[serde(default)]
    f: BTreeMap<String, Field>,
    v: Option<usize>,
    i: Option<usize>,
    #[serde(default)]
    k: Vec<String>,
    mk: Option<String>,
    #[serde(default)]
    st: String,
    #[serde(default)]
    t: String,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Field {
    Plain((usize,)),
    Habit((usize, String)),
}

/// The types of all built-in kinds of Kubernetes 1.36, `DeleteOptions` and `ObjectMeta` under the core group among them.
pub fn builtin() -> &'static Schema {
    static SCHEMA: OnceLock<Schema> = OnceLock::new();
    SCHEMA.get_or_init(|| serde_json::from_str(include_str!("builtin.json")).map(read).unwrap_or_default())
}

fn read(table: Table) -> Schema {
    let metadata = table.kinds.get("/v1/ObjectMeta").copied();
    let kinds = table
        .kinds
        .into_iter()
        .filter_map(|(name, at)| {
            let mut parts = name.splitn(3, '/').map(str::to_owned);
            Some(((parts.next()?, parts.next()?, parts.next()?), at))
        })
        .collect();
    // Every object and every template has its metadata embedded: always written, empty at least.
    let mut types: Vec<Type> = table.types.into_iter().map(entry).collect();
    for field in types.iter_mut().filter_map(|ty| ty.fields.get_mut("metadata")).filter(|field| Some(field.0) == metadata) {
        field.1 = Habit::Empty;
    }
    Schema { kinds, types }
}

fn entry(entry: Entry) -> Type {
    let shape = match entry.s.as_str() {
        "m" => Shape::Map,
        "a" => Shape::AtomicMap,
        "l" => Shape::List,
        "t" => Shape::Set,
        "k" => Shape::Keyed,
        "v" => Shape::Scalar,
        _ => Shape::Unknown,
    };
    let field = |field| match field {
        Field::Plain((at,)) => (at, Habit::Keep),
        Field::Habit((at, habit)) => {
            let habit = match habit.as_str() {
                "d" => Habit::Drop,
                "e" => Habit::Empty,
                "z" => Habit::Zero,
                "n" => Habit::Null,
                _ => Habit::Keep,
            };
            (at, habit)
        }
    };
    Type {
        fields: entry.f.into_iter().map(|(name, f)| (name, field(f))).collect(),
        values: entry.v,
        items: entry.i,
        keys: entry.k,
        merge_key: entry.mk,
        strategies: (entry.st.contains('m'), entry.st.contains('r'), entry.st.contains('R')),
        open: false,
        scalar: match entry.t.as_str() {
            "string" => Some(Scalar::Text),
            "bytes" => Some(Scalar::Bytes),
            "integer" => Some(Scalar::Integer),
            "number" => Some(Scalar::Number),
            "boolean" => Some(Scalar::Boolean),
            "quantity" => Some(Scalar::Quantity),
            "intorstring" => Some(Scalar::IntOrText),
            "time" | "microtime" => Some(Scalar::Time),
            _ => None,
        },
        ..Type::of(shape)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn the_table_knows_how_a_pods_lists_merge() {
        let pod = builtin().kind("", "v1", "Pod").unwrap();
        let containers = pod.field("spec").unwrap().field("containers").unwrap();
        assert_eq!((containers.shape(), containers.keys()), (Shape::Keyed, &["name".to_owned()][..]));
        let ports = containers.items().unwrap().field("ports").unwrap();
        assert_eq!(ports.strategy().merge_key, Some("containerPort"));
        assert_eq!(ports.keys(), ["containerPort", "protocol"]);
        assert!(!pod.field("spec").unwrap().allows("contaners"));
        assert_eq!(pod.field("metadata").unwrap().field("finalizers").unwrap().shape(), Shape::Set);
    }
}
