//! Compares traces, and lists where the embedded API may differ from a real one.

use serde_json::Value;

use crate::script::Script;

/// A difference that is allowed where a script pins it.
pub(crate) struct Allowed {
    pub(crate) id: &'static str,
    /// Where.
    pub(crate) api: &'static str,
    /// Why.
    pub(crate) reason: &'static str,
}

/// All of them; the scripts that name them pin what the embedded API says instead.
pub(crate) const ALLOWED: &[Allowed] = &[
    Allowed {
        id: "custom-resources-are-not-validated",
        api: "writes of custom resources",
        reason: "custom resources are schemaless here: nothing is validated, defaulted or pruned by a CRD's schema",
    },
    Allowed {
        id: "json-parse-text",
        api: "bodies and continue tokens that are no JSON",
        reason: "the sentence about the syntax error is the parser's own; code, reason and all around it are Kubernetes'",
    },
    Allowed {
        id: "go-struct-names",
        api: "values of a wrong type",
        reason: "the path to the field is told without the name of the Go struct that it stands in",
    },
    Allowed {
        id: "no-protobuf-answers",
        api: "content negotiation",
        reason: "answers are JSON or YAML, never protobuf; clients that prefer protobuf take JSON too",
    },
];

/// What differs, one line each.
pub(crate) fn compare(script: &Script, golden: &Value, trace: &[Value], embedded: bool) -> Vec<String> {
    let mut wrong = Vec::new();
    let golden = golden.as_array().unwrap();
    if golden.len() != trace.len() {
        wrong.push(format!("{} steps, the golden has {}", trace.len(), golden.len()));
    }
    let told: Vec<&crate::script::Step> = script.steps.iter().filter(|s| !s.quiet).collect();
    for ((wanted, found), step) in golden.iter().zip(trace).zip(told) {
        let place = format!("step {} {}", wanted["step"], wanted["asked"].as_str().unwrap_or_default());
        let (mut wanted, mut found) = (wanted["answer"].clone(), found["answer"].clone());
        if let (Some(differs), true) = (step.differs.as_ref(), embedded) {
            for (pointer, pinned) in &differs.embedded {
                let says = found.pointer(pointer).cloned().unwrap_or(Value::Null);
                if says != *pinned {
                    wrong.push(format!("{place}: {}: at {pointer} it says {says}, pinned is {pinned}", differs.id));
                }
                remove(&mut wanted, pointer);
                remove(&mut found, pointer);
            }
        }
        let mut lines = Vec::new();
        diff("", &wanted, &found, &mut lines);
        wrong.extend(lines.into_iter().map(|line| format!("{place}: {line}")));
    }
    wrong
}

fn remove(value: &mut Value, pointer: &str) {
    let Some((parent, name)) = pointer.rsplit_once('/') else { return };
    let name = &name.replace("~1", "/").replace("~0", "~");
    match value.pointer_mut(parent) {
        Some(Value::Object(members)) => {
            members.remove(name);
        }
        Some(Value::Array(items)) => {
            if let Some(item) = name.parse::<usize>().ok().and_then(|n| items.get_mut(n)) {
                *item = Value::Null;
            }
        }
        _ => {}
    }
}

fn diff(path: &str, wanted: &Value, found: &Value, lines: &mut Vec<String>) {
    match (wanted, found) {
        (Value::Object(a), Value::Object(b)) => {
            for (name, value) in a {
                match b.get(name) {
                    Some(other) => diff(&format!("{path}/{name}"), value, other, lines),
                    None => lines.push(format!("{path}/{name}: missing, should be {value}")),
                }
            }
            for (name, value) in b.iter().filter(|(name, _)| !a.contains_key(*name)) {
                lines.push(format!("{path}/{name}: should not be there: {value}"));
            }
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            for (n, (x, y)) in a.iter().zip(b).enumerate() {
                diff(&format!("{path}/{n}"), x, y, lines);
            }
        }
        (a, b) if a != b => lines.push(format!("{path}: should be {a}, is {b}")),
        _ => {}
    }
}
