//! Discovery: which groups, versions and resources there are, in the plain and in the aggregated form, and as much OpenAPI as
//! kubectl needs to write.
//!
//! Owns these documents. Must not read objects.

use serde_json::{Value, json};

use super::registry::{GroupVersion, Registry, Resource, Sub, join};

/// The version that is told: of the API that this one behaves as.
pub const VERSION: &str = "v1.36.3";

/// `/version`.
pub fn version() -> Value {
    json!({"major": "1", "minor": "36", "emulationMajor": "1", "emulationMinor": "36", "minCompatibilityMajor": "1",
        "minCompatibilityMinor": "35", "gitVersion": VERSION, "gitCommit": "modeldeck", "gitTreeState": "", "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "", "compiler": "", "platform": "modeldeck/embedded"})
}

/// `/api`.
pub fn api(host: &str) -> Value {
    json!({"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": host}]})
}

fn groups(registry: &Registry) -> Vec<(&str, Vec<&GroupVersion>)> {
    let mut groups: Vec<(&str, Vec<&GroupVersion>)> = Vec::new();
    for version in registry.versions() {
        match groups.iter_mut().find(|(name, _)| *name == version.group) {
            Some((_, versions)) => versions.push(version),
            None => groups.push((&version.group, vec![version])),
        }
    }
    groups
}

fn group(name: &str, versions: &[&GroupVersion]) -> Value {
    let shown = |v: &GroupVersion| json!({"groupVersion": join(&v.group, &v.version), "version": v.version});
    let all: Vec<Value> = versions.iter().map(|v| shown(v)).collect();
    json!({"name": name, "versions": all, "preferredVersion": all.first()})
}

/// `/apis`.
pub fn apis(registry: &Registry) -> Value {
    let groups: Vec<Value> = groups(registry).iter().filter(|(name, _)| !name.is_empty()).map(|(name, v)| group(name, v)).collect();
    json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
}

/// `/apis/GROUP`.
pub fn one_group(registry: &Registry, name: &str) -> Option<Value> {
    let groups = groups(registry);
    let (name, versions) = groups.iter().find(|(group, _)| *group == name && !name.is_empty())?;
    let mut document = group(name, versions);
    document["kind"] = "APIGroup".into();
    document["apiVersion"] = "v1".into();
    Some(document)
}

/// `/api/v1`, `/apis/GROUP/VERSION`.
pub fn resources(registry: &Registry, group: &str, version: &str) -> Option<Value> {
    let found = registry.group_version(group, version)?;
    let mut list = Vec::new();
    for resource in &found.resources {
        list.push(plain(resource));
        list.extend(subresources(resource).into_iter().map(|(name, sub)| plain_sub(resource, name, sub)));
    }
    let name = join(group, version);
    let mut document = json!({"kind": "APIResourceList", "groupVersion": name, "resources": list});
    if !group.is_empty() {
        document["apiVersion"] = "v1".into();
    }
    Some(document)
}

/// Of custom resources status comes before scale, of built-in ones all by name.
fn subresources(resource: &Resource) -> Vec<(&String, &Sub)> {
    match resource.custom {
        Some(_) => resource.subresources.iter().rev().collect(),
        None => resource.subresources.iter().collect(),
    }
}

fn plain(resource: &Resource) -> Value {
    let mut shown = json!({"name": resource.gr.resource, "singularName": resource.singular, "namespaced": resource.namespaced,
        "kind": resource.kind, "verbs": resource.verbs});
    for (field, list) in [("shortNames", &resource.short_names), ("categories", &resource.categories)] {
        if !list.is_empty() {
            shown[field] = json!(list);
        }
    }
    if !resource.storage_hash.is_empty() {
        shown["storageVersionHash"] = resource.storage_hash.clone().into();
    }
    shown
}

fn plain_sub(resource: &Resource, name: &str, sub: &Sub) -> Value {
    let mut shown = json!({"name": format!("{}/{name}", resource.gr.resource), "singularName": "", "namespaced": resource.namespaced,
        "kind": sub.kind, "verbs": sub.verbs});
    if let Some((group, version)) = &sub.other {
        shown["group"] = group.clone().into();
        shown["version"] = version.clone().into();
    }
    shown
}

/// `/api` or `/apis` in the aggregated form of a version (`v2`).
pub fn aggregated(registry: &Registry, core: bool, version: &str) -> Value {
    let items: Vec<Value> = groups(registry)
        .iter()
        .filter(|(name, _)| name.is_empty() == core)
        .map(|(name, versions)| {
            let metadata = if name.is_empty() { json!({}) } else { json!({"name": name}) };
            let versions: Vec<Value> = versions
                .iter()
                .map(|v| {
                    let resources: Vec<Value> = v.resources.iter().map(|r| aggregated_resource(r)).collect();
                    json!({"version": v.version, "freshness": "Current", "resources": resources})
                })
                .collect();
            json!({"metadata": metadata, "versions": versions})
        })
        .collect();
    json!({"kind": "APIGroupDiscoveryList", "apiVersion": format!("apidiscovery.k8s.io/{version}"), "metadata": {}, "items": items})
}

fn response_kind(resource: &Resource, kind: &str, other: Option<&(String, String)>) -> Value {
    // Built-in resources leave out the group that they share with the list; custom ones name it.
    let (group, version) = match (other, &resource.custom) {
        (Some((group, version)), _) => (group.as_str(), version.as_str()),
        (None, Some(_)) => (resource.gr.group.as_str(), resource.version.as_str()),
        (None, None) => ("", ""),
    };
    json!({"group": group, "version": version, "kind": kind})
}

fn aggregated_resource(resource: &Resource) -> Value {
    let scope = if resource.namespaced { "Namespaced" } else { "Cluster" };
    let mut shown = json!({"resource": resource.gr.resource, "responseKind": response_kind(resource, &resource.kind, None),
        "scope": scope, "singularResource": resource.singular, "verbs": resource.verbs});
    for (field, list) in [("shortNames", &resource.short_names), ("categories", &resource.categories)] {
        if !list.is_empty() {
            shown[field] = json!(list);
        }
    }
    if !resource.subresources.is_empty() {
        let subs = subresources(resource).into_iter().map(|(name, sub)| {
            json!({"subresource": name, "responseKind": response_kind(resource, &sub.kind, sub.other.as_ref()), "verbs": sub.verbs})
        });
        shown["subresources"] = Value::Array(subs.collect());
    }
    shown
}

fn openapi_path(version: &GroupVersion) -> String {
    if version.group.is_empty() { format!("api/{}", version.version) } else { format!("apis/{}/{}", version.group, version.version) }
}

/// `/openapi/v3`.
pub fn openapi_index(registry: &Registry) -> Value {
    let mut paths = serde_json::Map::new();
    for version in registry.versions() {
        let path = openapi_path(version);
        paths.insert(path.clone(), json!({"serverRelativeURL": format!("/openapi/v3/{path}")}));
    }
    json!({ "paths": paths })
}

/// `/openapi/v3/apis/GROUP/VERSION`: which kinds can be written and that unknown fields are told. No schemas: `kubectl explain` has
/// nothing to show.
pub fn openapi(registry: &Registry, group: &str, version: &str) -> Option<Value> {
    let found = registry.group_version(group, version)?;
    let mut paths = serde_json::Map::new();
    let options = ["dryRun", "fieldManager", "fieldValidation", "force"];
    let parameters: Vec<Value> =
        options.iter().map(|name| json!({"name": name, "in": "query", "schema": {"type": "string", "uniqueItems": true}})).collect();
    for resource in &found.resources {
        let home = if resource.namespaced { "/namespaces/{namespace}" } else { "" };
        let path = format!("/{}{home}/{}/{{name}}", openapi_path(found), resource.gr.resource);
        let kind = json!({"group": group, "version": version, "kind": resource.kind});
        let operation = json!({"x-kubernetes-action": "patch", "x-kubernetes-group-version-kind": kind, "parameters": parameters});
        paths.insert(path, json!({ "patch": operation }));
    }
    Some(json!({"openapi": "3.0.0", "info": {"title": "Kubernetes", "version": VERSION}, "paths": paths, "components": {"schemas": {}}}))
}
