//! Any bytes in any file, any field of an object gone or of another type, any file cut anywhere: a problem at most, never a panic, and
//! the neighbours stay.

use std::fs;
use std::path::Path;

use jiff::Timestamp;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::read;
use crate::world::{Facts, World};

const NEIGHBOUR: &str = "apiVersion: v1\nkind: Pod\nmetadata: {name: neighbour, namespace: s}\n";
const MANIFEST: &str =
    "- {file: neighbour.yaml, kind: objects}\n- {file: x, kind: KIND, subject: pod/s/a, container: c, at: '2026-11-12T10:00:00Z'}\n";

fn now() -> Timestamp {
    "2026-11-12T10:00:00Z".parse().unwrap()
}

fn facts_of(kind: &str, bytes: &[u8]) -> Facts {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("manifest.yaml"), MANIFEST.replace("KIND", kind)).unwrap();
    fs::write(dir.path().join("neighbour.yaml"), NEIGHBOUR).unwrap();
    fs::write(dir.path().join("x"), bytes).unwrap();
    read(dir.path(), Some(now())).unwrap().facts
}

fn has_neighbour(facts: &Facts) -> bool {
    facts.objects.iter().any(|object| object.meta.name == "neighbour")
}

/// Bytes that look like input as often as not.
fn bytes() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        any::<Vec<u8>>(),
        "(---|- |[a-z]{1,5}: |items:|steps:|responses:|[{}\\[\\]&*!|>%@`\"'#\t\r\n ]){0,12}".prop_map(String::into_bytes),
        Just(b"apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n".to_vec()),
        Just(b"vllm:num_requests_running{engine=\"0\"} 1\n".to_vec()),
    ];
    prop::collection::vec(piece, 0..6).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_in_any_file(kind in prop::sample::select(vec!["objects", "http", "watch", "metrics", "dcgm", "log", "durations", "answer"]), bytes in bytes()) {
        let facts = facts_of(kind, &bytes);
        prop_assert!(has_neighbour(&facts));
    }

    #[test]
    fn any_bytes_as_a_manifest(bytes in bytes()) {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("manifest.yaml"), &bytes).unwrap();
        fs::write(dir.path().join("neighbour.yaml"), NEIGHBOUR).unwrap();
        // Whatever the manifest is: no panic; one that is no list of files is told, and the names count.
        if let Ok(bundle) = read(dir.path(), Some(now())) {
            prop_assert!(has_neighbour(&bundle.facts) || !bundle.facts.problems.is_empty() || bundle.files.is_empty());
        }
    }

    #[test]
    fn a_file_cut_anywhere_costs_no_neighbour_and_no_whole_item(which in any::<prop::sample::Index>(), at in any::<prop::sample::Index>()) {
        let inputs = inputs();
        let (kind, bytes) = which.get(&inputs);
        let cut = at.index(bytes.len() + 1);
        let facts = facts_of(kind, &bytes[..cut]);
        prop_assert!(has_neighbour(&facts));
        // Every document that ends before the cut is still there.
        if *kind == "objects" {
            let whole = String::from_utf8_lossy(&bytes[..cut]).matches("\n---\n").count();
            prop_assert!(facts.objects.len() > whole, "{} objects of {whole} whole documents", facts.objects.len());
        }
        if *kind == "http" {
            let whole = String::from_utf8_lossy(&bytes[..cut]).matches("\n- target").count().saturating_sub(1);
            prop_assert!(facts.answers.len() >= whole, "{} answers of {whole} whole ones", facts.answers.len());
        }
    }

    #[test]
    fn any_field_gone_or_of_another_type(which in any::<prop::sample::Index>(), field in any::<prop::sample::Index>(), other in other()) {
        let objects = objects();
        let mut object = which.get(&objects).clone();
        let paths = paths(&object);
        let path = field.get(&paths);
        match other {
            Some(value) => *object.pointer_mut(path).unwrap() = value,
            None => remove(&mut object, path),
        }
        let list = json!({"kind": "List", "items": [object, {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "inner", "namespace": "s"}}]});
        let facts = facts_of("objects", list.to_string().as_bytes());
        prop_assert!(has_neighbour(&facts));
        prop_assert!(facts.objects.iter().any(|object| object.meta.name == "inner"));
        // And what is made of it does not break either.
        let world = World::build(facts, "bundle", now());
        let document = round(&world);
        prop_assert!(document > 0);
    }
}

/// Forces all of a world to be looked at.
fn round(world: &World) -> usize {
    format!("{world:?}").len()
}

fn other() -> impl Strategy<Value = Option<Value>> {
    prop::sample::select(vec![
        None,
        Some(Value::Null),
        Some(json!(true)),
        Some(json!(-1)),
        Some(json!(1e300)),
        Some(json!(9_007_199_254_740_993_i64)),
        Some(json!("x")),
        Some(json!("")),
        Some(json!([])),
        Some(json!({})),
        Some(json!([[1]])),
        Some(json!({"a": {"b": 1}})),
    ])
}

/// Real objects, each file of some cases as JSON.
fn objects() -> Vec<Value> {
    let mut all = Vec::new();
    for case in ["B008", "B024", "B043", "B082", "B076", "L003", "L007"] {
        let text = fs::read_to_string(input(case, "objects.yaml")).unwrap();
        for document in super::yaml::documents(&text) {
            all.extend(super::yaml::read(&document).value);
        }
    }
    all
}

fn inputs() -> Vec<(&'static str, Vec<u8>)> {
    let read = |case: &str, file: &str| fs::read(input(case, file)).unwrap();
    vec![
        ("objects", read("B020", "objects.yaml")),
        ("http", read("B008", "http.yaml")),
        ("watch", read("B053", "watch.yaml")),
        ("metrics", read("B001", "metrics-2xkqv-t0.txt")),
        ("dcgm", read("B114", "dcgm-gpu-node-1.txt")),
        ("log", read("B001", "log-2xkqv.txt")),
    ]
}

fn input(case: &str, file: &str) -> std::path::PathBuf {
    let cases = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/cases");
    let dir = fs::read_dir(cases).unwrap().map(|entry| entry.unwrap().path());
    dir.into_iter().find(|path| path.file_name().unwrap().to_string_lossy().starts_with(case)).unwrap().join(file)
}

/// JSON pointers of every field.
fn paths(value: &Value) -> Vec<String> {
    fn walk(value: &Value, at: &str, out: &mut Vec<String>) {
        let mut go = |key: &str, inner: &Value| {
            let path = format!("{at}/{}", key.replace('~', "~0").replace('/', "~1"));
            out.push(path.clone());
            walk(inner, &path, out);
        };
        match value {
            Value::Object(map) => map.iter().for_each(|(key, inner)| go(key, inner)),
            Value::Array(list) => list.iter().enumerate().for_each(|(i, inner)| go(&i.to_string(), inner)),
            _ => {}
        }
    }
    let mut out = Vec::new();
    walk(value, "", &mut out);
    out
}

fn remove(value: &mut Value, path: &str) {
    let (parent, key) = path.rsplit_once('/').unwrap();
    match value.pointer_mut(parent).unwrap() {
        Value::Object(map) => {
            map.remove(&key.replace("~1", "/").replace("~0", "~"));
        }
        Value::Array(list) => {
            list.remove(key.parse().unwrap());
        }
        _ => {}
    }
}
