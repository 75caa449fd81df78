//! The entries of `metadata.managedFields`: reading, writing, and what a plain write does to them.
//!
//! Owns who is told apart from whom: an updater by name, version and subresource, an applier by name and subresource. Follows
//! `k8s.io/apimachinery/pkg/util/managedfields` (1.36).

use serde_json::{Map, Value, json};

use super::super::schema::{Node, builtin, normalise};
use super::set::{Set, compare};

/// Fields of every object that nobody manages.
const UNMANAGED: &[&[&str]] = &[
    &["f:apiVersion"],
    &["f:kind"],
    &["f:metadata", "f:name"],
    &["f:metadata", "f:namespace"],
    &["f:metadata", "f:generateName"],
    &["f:metadata", "f:selfLink"],
    &["f:metadata", "f:uid"],
    &["f:metadata", "f:clusterName"],
    &["f:metadata", "f:generation"],
    &["f:metadata", "f:managedFields"],
    &["f:metadata", "f:resourceVersion"],
    &["f:metadata", "f:creationTimestamp"],
    &["f:metadata", "f:deletionTimestamp"],
    &["f:metadata", "f:deletionGracePeriodSeconds"],
];

/// The most updaters that are told apart; the oldest beyond are put together.
const MOST_UPDATERS: usize = 10;

/// Who writes, as what.
#[derive(Debug, Clone)]
pub struct Writer<'a> {
    /// The field manager.
    pub manager: &'a str,
    /// `apps/v1`, in which the writer speaks.
    pub api_version: &'a str,
    /// The subresource written through, empty for the object itself.
    pub subresource: &'a str,
    /// The time as `metav1.Time` is written; `None` writes no time, as the scale subresource does.
    pub now: Option<&'a str>,
    /// Fields that a write through here cannot change, and so does not own.
    pub reset: &'a [&'a [&'a str]],
}

/// One entry.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Entry {
    pub(super) manager: String,
    pub(super) applies: bool,
    pub(super) api_version: String,
    pub(super) subresource: String,
    pub(super) time: Option<String>,
    pub(super) set: Set,
}

impl Entry {
    pub(super) fn of(writer: &Writer<'_>, applies: bool, set: Set) -> Self {
        Self {
            manager: writer.manager.to_owned(),
            applies,
            api_version: writer.api_version.to_owned(),
            subresource: writer.subresource.to_owned(),
            time: writer.now.map(str::to_owned),
            set,
        }
    }

    /// Whether it is the writer's own.
    pub(super) fn is(&self, writer: &Writer<'_>, applies: bool) -> bool {
        self.applies == applies
            && self.manager == writer.manager
            && self.subresource == writer.subresource
            && (applies || self.api_version == writer.api_version)
    }

    /// As a conflict names it.
    pub(super) fn shown(&self) -> String {
        let mut shown = format!("{:?}", self.manager);
        if !self.subresource.is_empty() {
            shown += &format!(" with subresource {:?}", self.subresource);
        }
        match (self.applies, &self.time) {
            (true, _) => shown,
            (false, None) => format!("{shown} using {}", self.api_version),
            (false, Some(time)) => format!("{shown} using {} at {time}", self.api_version),
        }
    }
}

/// The entries of an object; what is no entry is left out.
pub(super) fn read(object: &Value) -> Vec<Entry> {
    let entries = object.pointer("/metadata/managedFields").and_then(Value::as_array).into_iter().flatten();
    let text = |entry: &Value, name: &str| entry.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    entries
        .filter_map(|entry| {
            Some(Entry {
                manager: text(entry, "manager"),
                applies: match entry.get("operation").and_then(Value::as_str)? {
                    "Apply" => true,
                    "Update" => false,
                    _ => return None,
                },
                api_version: text(entry, "apiVersion"),
                subresource: text(entry, "subresource"),
                time: entry.get("time").and_then(Value::as_str).map(str::to_owned),
                set: Set::read(entry.get("fieldsV1")?),
            })
        })
        .collect()
}

/// Writes the entries into an object in the order in which Kubernetes keeps them: appliers, then updaters by time.
pub(super) fn write(object: &mut Value, mut entries: Vec<Entry>) {
    entries.retain(|entry| !entry.set.is_empty());
    entries.sort_by(|a, b| {
        let key = |e: &Entry| (!e.applies, e.time.clone(), e.manager.clone(), e.api_version.clone(), e.subresource.clone());
        key(a).cmp(&key(b))
    });
    cap(&mut entries);
    let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) else { return };
    if entries.is_empty() {
        metadata.remove("managedFields");
        return;
    }
    let written = entries.into_iter().map(|entry| {
        let mut map = Map::new();
        map.insert("manager".into(), entry.manager.into());
        map.insert("operation".into(), if entry.applies { "Apply" } else { "Update" }.into());
        map.insert("apiVersion".into(), entry.api_version.into());
        map.insert("fieldsType".into(), "FieldsV1".into());
        map.insert("fieldsV1".into(), entry.set.write());
        if let Some(time) = entry.time {
            map.insert("time".into(), time.into());
        }
        if !entry.subresource.is_empty() {
            map.insert("subresource".into(), entry.subresource.into());
        }
        Value::Object(map)
    });
    metadata.insert("managedFields".into(), Value::Array(written.collect()));
}

/// Puts the oldest updaters of a version together as `ancient-changes`.
fn cap(entries: &mut Vec<Entry>) {
    while entries.iter().filter(|e| !e.applies && e.subresource.is_empty()).count() > MOST_UPDATERS {
        let Some(first) = entries.iter().position(|e| !e.applies && e.subresource.is_empty()) else { return };
        let oldest = entries.remove(first);
        let ancient = entries.iter_mut().find(|e| !e.applies && e.subresource.is_empty() && e.api_version == oldest.api_version);
        match ancient {
            Some(next) => {
                next.set.union(&oldest.set);
                next.manager = "ancient-changes".to_owned();
            }
            None => return,
        }
    }
}

/// Takes from a set what nobody manages and what cannot be written here.
pub(super) fn strip(set: &mut Set, writer: &Writer<'_>) {
    for path in UNMANAGED.iter().chain(writer.reset) {
        set.forget(path);
    }
}

/// Records a plain write: the writer owns what it changed, all others lose that and what is gone. `old` is `None` for a create.
pub fn track_update(node: Option<Node<'_>>, old: Option<&Value>, new: &mut Value, writer: &Writer<'_>) {
    let empty = old.is_none().then(|| empty_of(node));
    let before = old.or(empty.as_ref()).unwrap_or(&Value::Null);
    let mut difference = compare(before, new, node);
    strip(&mut difference.changed, writer);
    strip(&mut difference.gone, writer);
    // What the client sent as managedFields counts: an empty list resets them; otherwise the server's are the truth.
    let sent = new.pointer("/metadata/managedFields").and_then(Value::as_array);
    let reset = sent.is_some_and(|list| list.is_empty() || *list == [json!({})]);
    let mut entries = match (reset, sent.is_some() && old.is_none()) {
        (true, _) => Vec::new(),
        (false, true) => read(new),
        (false, false) => {
            let given = read(new);
            if sent.is_some() { given } else { read(before) }
        }
    };
    if reset && old.is_some() {
        write(new, Vec::new());
        return;
    }
    if entries.is_empty() && old.is_some() {
        // An object that nobody manages stays so until somebody applies.
        return;
    }
    for entry in &mut entries {
        entry.set.subtract(&difference.changed);
        entry.set.subtract(&difference.gone);
    }
    if !difference.changed.is_empty() {
        match entries.iter_mut().find(|entry| entry.is(writer, false)) {
            Some(own) => {
                own.set.union(&difference.changed);
                own.time = writer.now.map(str::to_owned);
            }
            None => entries.push(Entry::of(writer, false, difference.changed)),
        }
    }
    write(new, entries);
}

/// Whether any entry of an object has the field at a path of steps (`f:spec`, `f:replicas`).
pub fn owns(object: &Value, path: &[String]) -> bool {
    read(object).iter().any(|entry| path.iter().try_fold(&entry.set, |set, step| set.below.get(step)).is_some())
}

fn empty_of(node: Option<Node<'_>>) -> Value {
    let mut empty = json!({"metadata": {}});
    if let Some(node) = node {
        normalise(&mut empty, node);
    }
    empty
}

/// The manager of a request that names none: what its user agent starts with.
pub fn manager_from_user_agent(agent: &str) -> String {
    let name = agent.split('/').next().unwrap_or_default();
    let printable: String = name.chars().filter(|c| !c.is_control()).take(128).collect();
    if printable.is_empty() { "unknown".to_owned() } else { printable }
}

/// Whether two objects are the same but for the times in their managedFields.
pub fn same_but_times(old: &Value, new: &Value) -> bool {
    let without = |object: &Value| {
        let mut entries = read(object);
        entries.iter_mut().for_each(|entry| entry.time = None);
        entries
    };
    let members = |object: &Value| {
        object.as_object().map(|o| o.iter().filter(|(k, _)| *k != "metadata").map(|(k, v)| (k.clone(), v.clone())).collect::<Map<_, _>>())
    };
    let metadata = |object: &Value| {
        let mut metadata = object.get("metadata").and_then(Value::as_object).cloned().unwrap_or_default();
        metadata.remove("managedFields");
        metadata.remove("resourceVersion");
        metadata
    };
    metadata(old) == metadata(new) && members(old) == members(new) && without(old) == without(new)
}

/// The node of every object's metadata, for kinds without a schema of their own.
pub fn metadata_node() -> Option<Node<'static>> {
    builtin().kind("", "v1", "ObjectMeta")
}
