//! Tables: the columns that `kubectl get` shows.
//!
//! Owns the rows of built-in kinds and of CRDs with printer columns. Columns come from a table that `tests/cluster/schema/tables`
//! makes beside a real API server; cells follow `k8s.io/kubernetes/pkg/printers/internalversion` (1.36).

mod age;
mod cells;
mod path;
mod pods;

use std::collections::BTreeMap;
use std::sync::OnceLock;

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};

use super::registry::Resource;
use super::status::{ApiError, ApiResult};
use super::verbs::outgoing;

/// What of each object stands beside its cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Include {
    /// Nothing.
    None,
    /// Its metadata.
    Metadata,
    /// All of it.
    Object,
}

impl Include {
    /// Reads `includeObject`.
    ///
    /// # Errors
    /// 400 for another word.
    pub fn parse(text: &str) -> ApiResult<Self> {
        match text {
            "None" => Ok(Self::None),
            "" | "Metadata" => Ok(Self::Metadata),
            "Object" => Ok(Self::Object),
            other => Err(ApiError::bad_request(format!("unrecognized includeObject value: {other:?}"))),
        }
    }
}

#[derive(Deserialize)]
struct Columns {
    texts: Vec<String>,
    tables: BTreeMap<String, Vec<(String, String, String, i64, usize)>>,
}

fn columns() -> &'static Columns {
    static COLUMNS: OnceLock<Columns> = OnceLock::new();
    COLUMNS.get_or_init(|| {
        serde_json::from_str(include_str!("columns.json")).unwrap_or(Columns { texts: Vec::new(), tables: BTreeMap::new() })
    })
}

/// The heads of a resource's columns.
fn definitions(resource: &Resource) -> Vec<Value> {
    let name = |description: &str| json!({"name": "Name", "type": "string", "format": "name", "description": description, "priority": 0});
    let known = columns();
    if let Some(custom) = &resource.custom {
        let about = known.tables.get("/v1/configmaps").and_then(|t| t.first()).and_then(|c| known.texts.get(c.4)).cloned();
        let mut all = vec![name(&about.unwrap_or_default())];
        all.extend(custom.columns.iter().map(|c| {
            let about = if c.description.is_empty() {
                format!("Custom resource definition column (in JSONPath format): {}", c.path)
            } else {
                c.description.clone()
            };
            json!({"name": c.name, "type": c.kind, "format": c.format, "description": about, "priority": c.priority})
        }));
        if custom.columns.is_empty() {
            let about = "CreationTimestamp is a timestamp representing the server time when this object was created. It is not guaranteed to be set in happens-before order across separate operations. Clients may not set this value. It is represented in RFC3339 form and is in UTC.\n\nPopulated by the system. Read-only. Null for lists. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata";
            all.push(json!({"name": "Age", "type": "date", "format": "", "description": about, "priority": 0}));
        }
        return all;
    }
    let key = format!("{}/{}/{}", resource.gr.group, resource.version, resource.gr.resource);
    let list = known.tables.get(&key).map_or(&[][..], Vec::as_slice);
    list.iter()
        .map(|(name, kind, format, priority, text)| {
            json!({"name": name, "type": kind, "format": format, "description": known.texts.get(*text), "priority": priority})
        })
        .collect()
}

/// A table without rows.
pub fn head(resource: &Resource) -> Value {
    json!({"kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": {}, "columnDefinitions": definitions(resource), "rows": []})
}

/// A table that leaves its columns out, as later events of a watch do.
pub fn bare() -> Value {
    json!({"kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": {}, "columnDefinitions": null, "rows": []})
}

/// An object's metadata alone.
pub fn metadata_only(object: &Value) -> Value {
    json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": object.get("metadata")})
}

/// The row of an object.
pub fn row(resource: &Resource, object: &Value, include: Include, now: Timestamp) -> Value {
    let cells = match &resource.custom {
        Some(custom) => {
            let mut cells = vec![object.pointer("/metadata/name").cloned().unwrap_or_default()];
            match custom.columns.is_empty() {
                true => cells
                    .push(object.pointer("/metadata/creationTimestamp").map_or_else(|| "<unknown>".into(), |at| age::of(at, now).into())),
                false => cells.extend(custom.columns.iter().map(|c| path::cell(object, c, now))),
            }
            cells
        }
        None => cells::of(resource, &outgoing(resource, object), now),
    };
    let mut row = json!({"cells": cells});
    match include {
        Include::None => row["object"] = Value::Null,
        Include::Metadata => row["object"] = metadata_only(object),
        Include::Object => row["object"] = outgoing(resource, object),
    }
    if resource.kind == "Pod" {
        pods::condition(object, &mut row);
    }
    row
}
