//! Custom resources: what one version of a CRD declares.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use super::super::kinds::{at, items, text};
use super::super::schema::{Schema, of_crd};
use super::super::status::GroupResource;
use super::{GroupVersion, Resource, Sub};

/// Paths of the scale subresource: `.spec.replicas`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScalePaths {
    /// `specReplicasPath`.
    pub spec: String,
    /// `statusReplicasPath`.
    pub status: String,
    /// `labelSelectorPath`, may be empty.
    pub selector: String,
}

/// A printer column of a CRD.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// The heading.
    pub name: String,
    /// `string`, `integer`, `number`, `boolean`, `date`.
    pub kind: String,
    /// A format, may be empty.
    pub format: String,
    /// What it is.
    pub description: String,
    /// 0 is always shown.
    pub priority: i64,
    /// Where the value is: `.status.readyReplicas`.
    pub path: String,
}

/// One version of a CRD.
#[derive(Debug)]
pub struct Custom {
    /// The CRD's name.
    pub crd: String,
    /// The version in which objects are stored.
    pub storage: String,
    /// The types of this version.
    pub schema: Schema,
    /// The scale subresource.
    pub scale: Option<ScalePaths>,
    /// The columns of its table.
    pub columns: Vec<Column>,
    /// Fields that select (`.spec.color`).
    pub selectable: Vec<String>,
}

const VERBS: [&str; 8] = ["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"];

fn strings(value: &Value, path: &[&str]) -> Vec<String> {
    items(value, path).iter().filter_map(Value::as_str).map(str::to_owned).collect()
}

/// What a CRD serves, one resource for each served version.
pub fn resources(crd: &Value) -> Vec<Resource> {
    let group = text(crd, &["spec", "group"]);
    let names = |field: &str| text(crd, &["spec", "names", field]).to_owned();
    let versions = items(crd, &["spec", "versions"]);
    let is = |version: &Value, field: &str| at(version, &[field]) == Some(&Value::Bool(true));
    let storage = versions.iter().find(|v| is(v, "storage")).map(|v| text(v, &["name"])).unwrap_or_default();
    versions
        .iter()
        .filter(|version| is(version, "served"))
        .map(|version| {
            let name = text(version, &["name"]);
            let schema = of_crd(group, name, &names("kind"), at(version, &["schema", "openAPIV3Schema"]));
            let door = |verbs: &[&str]| verbs.iter().map(|v| (*v).to_owned()).collect::<Vec<_>>();
            let mut subresources = BTreeMap::new();
            if at(version, &["subresources", "status"]).is_some() {
                subresources
                    .insert("status".to_owned(), Sub { kind: names("kind"), other: None, verbs: door(&["get", "patch", "update"]) });
            }
            let scale = at(version, &["subresources", "scale"]).map(|scale| ScalePaths {
                spec: text(scale, &["specReplicasPath"]).to_owned(),
                status: text(scale, &["statusReplicasPath"]).to_owned(),
                selector: text(scale, &["labelSelectorPath"]).to_owned(),
            });
            if scale.is_some() {
                let other = Some(("autoscaling".to_owned(), "v1".to_owned()));
                subresources.insert("scale".to_owned(), Sub { kind: "Scale".into(), other, verbs: door(&["get", "patch", "update"]) });
            }
            Resource {
                gr: GroupResource::new(group, names("plural")),
                version: name.to_owned(),
                kind: names("kind"),
                list_kind: Some(names("listKind")).filter(|k| !k.is_empty()).unwrap_or_else(|| format!("{}List", names("kind"))),
                singular: Some(names("singular")).filter(|s| !s.is_empty()).unwrap_or_else(|| names("kind").to_lowercase()),
                namespaced: text(crd, &["spec", "scope"]) == "Namespaced",
                verbs: door(&VERBS),
                short_names: strings(crd, &["spec", "names", "shortNames"]),
                categories: strings(crd, &["spec", "names", "categories"]),
                storage_hash: storage_hash(group, storage, &names("kind")),
                subresources,
                custom: Some(Arc::new(Custom {
                    crd: text(crd, &["metadata", "name"]).to_owned(),
                    storage: storage.to_owned(),
                    schema,
                    scale,
                    columns: items(version, &["additionalPrinterColumns"]).iter().map(column).collect(),
                    selectable: items(version, &["selectableFields"]).iter().map(|f| text(f, &["jsonPath"]).to_owned()).collect(),
                })),
            }
        })
        .collect()
}

/// What tells clients that two versions are stored in the same form.
fn storage_hash(group: &str, version: &str, kind: &str) -> String {
    use base64::Engine;
    use sha2::Digest;
    let digest = sha2::Sha256::digest(format!("{group}/{version}/{kind}"));
    base64::engine::general_purpose::STANDARD.encode(digest.get(..8).unwrap_or_default())
}

fn column(column: &Value) -> Column {
    let of = |field: &str| text(column, &[field]).to_owned();
    let priority = super::super::kinds::number(column, &["priority"]).unwrap_or(0);
    Column { name: of("name"), kind: of("type"), format: of("format"), description: of("description"), priority, path: of("jsonPath") }
}

/// Puts groups of CRDs behind the built-in ones by name, their versions by Kubernetes' order of versions.
pub fn order(versions: &mut [GroupVersion]) {
    let start = versions.iter().position(|v| v.resources.iter().all(|r| r.custom.is_some())).unwrap_or(versions.len());
    if let Some(tail) = versions.get_mut(start..) {
        tail.sort_by(|a, b| a.group.cmp(&b.group).then_with(|| by_version(&a.version, &b.version)));
        for version in tail {
            version.resources.sort_by(|a, b| a.gr.cmp(&b.gr));
        }
    }
}

/// Newest and most stable first: v2, v1, v1beta2, v1beta1, v1alpha1, then what is no version by name.
pub fn by_version(a: &str, b: &str) -> Ordering {
    match (rank(a), rank(b)) {
        (Some(a), Some(b)) => b.cmp(&a),
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        (None, None) => a.cmp(b),
    }
}

fn rank(version: &str) -> Option<(u8, u32, u32)> {
    let rest = version.strip_prefix('v')?;
    let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    let (major, tail) = rest.split_at(end);
    let major = major.parse().ok()?;
    match tail {
        "" => Some((2, major, 0)),
        tail => {
            let (stage, minor) = tail.strip_prefix("beta").map(|m| (1, m)).or_else(|| tail.strip_prefix("alpha").map(|m| (0, m)))?;
            Some((stage, major, minor.parse().ok()?))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_ordered_as_kubernetes_orders_them() {
        let mut versions = vec!["v1alpha1", "v1beta1", "v2", "foo", "v1", "v1beta2"];
        versions.sort_by(|a, b| by_version(a, b));
        assert_eq!(versions, ["v2", "v1", "v1beta2", "v1beta1", "v1alpha1", "foo"]);
    }
}
