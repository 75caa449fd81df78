//! What is served: built-in resources and those of CRDs, with versions, verbs, short names and subresources.
//!
//! Owns the list and its order. Must not know objects: see [`super::store`].

pub mod custom;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;

use super::schema::{Node, builtin};
use super::status::GroupResource;
pub use custom::Custom;

/// A subresource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sub {
    /// The kind that it speaks.
    pub kind: String,
    /// Group and version of that kind when they are others than the resource's.
    pub other: Option<(String, String)>,
    /// What can be done with it.
    pub verbs: Vec<String>,
}

/// One resource in one version.
#[derive(Debug, Clone)]
pub struct Resource {
    /// Its plural name and group.
    pub gr: GroupResource,
    /// The version.
    pub version: String,
    /// The kind.
    pub kind: String,
    /// The kind of a list.
    pub list_kind: String,
    /// The singular name.
    pub singular: String,
    /// Whether its objects live in namespaces.
    pub namespaced: bool,
    /// What can be done with it.
    pub verbs: Vec<String>,
    /// `po` for `pods`.
    pub short_names: Vec<String>,
    /// `all`.
    pub categories: Vec<String>,
    /// The hash of its stored version that discovery shows; may be empty.
    pub storage_hash: String,
    /// By name.
    pub subresources: BTreeMap<String, Sub>,
    /// The version of a CRD that declares it.
    pub custom: Option<Arc<Custom>>,
}

impl Resource {
    /// `apps/v1`, `v1`.
    pub fn api_version(&self) -> String {
        join(&self.gr.group, &self.version)
    }

    /// Where its objects are stored: Events of both groups are the same objects.
    pub fn stored(&self) -> GroupResource {
        match (self.gr.group.as_str(), self.gr.resource.as_str()) {
            ("events.k8s.io", "events") => GroupResource::new("", "events"),
            _ => self.gr.clone(),
        }
    }

    /// Group and version in which its objects are stored.
    pub fn stored_version(&self) -> (&str, &str) {
        match (self.gr.group.as_str(), self.gr.resource.as_str(), &self.custom) {
            ("events.k8s.io", "events", None) => ("", "v1"),
            ("autoscaling", "horizontalpodautoscalers", None) => ("autoscaling", "v2"),
            (_, _, Some(custom)) => (&self.gr.group, &custom.storage),
            _ => (&self.gr.group, &self.version),
        }
    }

    /// The type of its objects as requests carry them.
    pub fn node(&self) -> Option<Node<'_>> {
        match &self.custom {
            Some(custom) => custom.schema.kind(&self.gr.group, &self.version, &self.kind),
            None => builtin().kind(&self.gr.group, &self.version, &self.kind),
        }
    }

    /// The type of its objects as they are stored.
    pub fn stored_node(&self) -> Option<Node<'_>> {
        let (group, version) = self.stored_version();
        match &self.custom {
            Some(custom) => custom.schema.kind(group, &self.version, &self.kind),
            None => builtin().kind(group, version, &self.kind),
        }
    }

    /// Whether `/status` is a door of its own.
    pub fn has_status(&self) -> bool {
        self.subresources.contains_key("status")
    }
}

/// `apps/v1`, `v1`.
pub fn join(group: &str, version: &str) -> String {
    if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") }
}

/// All resources of one group in one version.
#[derive(Debug, Clone)]
pub struct GroupVersion {
    /// The group, empty for core.
    pub group: String,
    /// The version.
    pub version: String,
    /// Its resources.
    pub resources: Vec<Arc<Resource>>,
}

/// Everything that is served.
#[derive(Debug, Clone)]
pub struct Registry {
    versions: Vec<GroupVersion>,
}

#[derive(Deserialize)]
struct Listed {
    group: String,
    version: String,
    resources: Vec<Entry>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
    name: String,
    #[serde(default)]
    singular_name: String,
    namespaced: bool,
    kind: String,
    #[serde(default)]
    group: String,
    #[serde(default)]
    version: String,
    verbs: Vec<String>,
    #[serde(default)]
    short_names: Vec<String>,
    #[serde(default)]
    categories: Vec<String>,
    #[serde(default)]
    storage_version_hash: String,
}

impl Registry {
    /// The built-in resources.
    pub fn builtin() -> Self {
        let listed: Vec<Listed> = serde_json::from_str(include_str!("resources.json")).unwrap_or_default();
        Self { versions: listed.into_iter().map(group_version).collect() }
    }

    /// In the order of discovery.
    pub fn versions(&self) -> &[GroupVersion] {
        &self.versions
    }

    /// The resources of a group in a version.
    pub fn group_version(&self, group: &str, version: &str) -> Option<&GroupVersion> {
        self.versions.iter().find(|v| v.group == group && v.version == version)
    }

    /// A resource by plural name.
    pub fn resource(&self, group: &str, version: &str, plural: &str) -> Option<&Arc<Resource>> {
        self.group_version(group, version)?.resources.iter().find(|r| r.gr.resource == plural)
    }

    /// A resource by `apiVersion` and kind.
    pub fn of_kind(&self, api_version: &str, kind: &str) -> Option<&Arc<Resource>> {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        self.group_version(group, version)?.resources.iter().find(|r| r.kind == kind)
    }

    /// Any version of a resource by group and plural name.
    pub fn any_version(&self, gr: &GroupResource) -> Option<&Arc<Resource>> {
        self.versions.iter().filter(|v| v.group == gr.group).find_map(|v| v.resources.iter().find(|r| r.gr == *gr))
    }

    /// Every stored resource once: what namespaces and garbage collection walk over.
    pub fn stored(&self) -> Vec<Arc<Resource>> {
        let mut seen = std::collections::BTreeSet::new();
        let all = self.versions.iter().flat_map(|v| &v.resources);
        all.filter(|r| r.verbs.iter().any(|v| v == "list") && r.stored() == r.gr && seen.insert(r.gr.clone())).cloned().collect()
    }

    /// Serves what a CRD declares, in place of what it declared before.
    pub fn set_custom(&mut self, crd: &Value) {
        let group = super::kinds::text(crd, &["spec", "group"]).to_owned();
        let plural = super::kinds::text(crd, &["spec", "names", "plural"]).to_owned();
        self.remove_custom(&GroupResource::new(group, plural));
        for resource in custom::resources(crd) {
            let at = self.versions.iter().position(|v| v.group == resource.gr.group && v.version == resource.version);
            match at.and_then(|at| self.versions.get_mut(at)) {
                Some(there) => there.resources.push(Arc::new(resource)),
                None => self.versions.push(GroupVersion {
                    group: resource.gr.group.clone(),
                    version: resource.version.clone(),
                    resources: vec![Arc::new(resource)],
                }),
            }
        }
        custom::order(&mut self.versions);
    }

    /// Serves it no longer.
    pub fn remove_custom(&mut self, gr: &GroupResource) {
        for version in &mut self.versions {
            version.resources.retain(|r| r.custom.is_none() || r.gr != *gr);
        }
        self.versions.retain(|version| !version.resources.is_empty());
    }
}

fn group_version(listed: Listed) -> GroupVersion {
    let mut resources: Vec<Resource> = Vec::new();
    let mut subs: Vec<(String, String, Sub)> = Vec::new();
    for entry in listed.resources {
        if let Some((resource, sub)) = entry.name.split_once('/') {
            let other = (!entry.group.is_empty() || !entry.version.is_empty()).then(|| (entry.group.clone(), entry.version.clone()));
            subs.push((resource.to_owned(), sub.to_owned(), Sub { kind: entry.kind, other, verbs: entry.verbs }));
            continue;
        }
        resources.push(Resource {
            gr: GroupResource::new(listed.group.clone(), entry.name),
            version: listed.version.clone(),
            list_kind: format!("{}List", entry.kind),
            kind: entry.kind,
            singular: entry.singular_name,
            namespaced: entry.namespaced,
            verbs: entry.verbs,
            short_names: entry.short_names,
            categories: entry.categories,
            storage_hash: entry.storage_version_hash,
            subresources: BTreeMap::new(),
            custom: None,
        });
    }
    for (name, sub, what) in subs {
        if let Some(resource) = resources.iter_mut().find(|r| r.gr.resource == name) {
            resource.subresources.insert(sub, what);
        }
    }
    GroupVersion { group: listed.group, version: listed.version, resources: resources.into_iter().map(Arc::new).collect() }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn built_in_resources_know_their_doors() {
        let registry = Registry::builtin();
        let deployments = registry.resource("apps", "v1", "deployments").unwrap();
        assert!(deployments.has_status() && deployments.namespaced);
        assert_eq!(deployments.subresources["scale"].other, Some(("autoscaling".into(), "v1".into())));
        assert!(registry.of_kind("v1", "Pod").unwrap().node().is_some());
        let events = registry.resource("events.k8s.io", "v1", "events").unwrap();
        assert_eq!(events.stored(), GroupResource::new("", "events"));
    }
}
