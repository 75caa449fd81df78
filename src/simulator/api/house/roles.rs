//! Cluster roles that are made of others by their labels (`aggregationRule`).

use std::sync::Arc;

use serde_json::{Value, json};

use super::super::kinds::items;
use super::super::kinds::labels::LabelSelector;
use super::super::state::State;
use super::super::status::GroupResource;
use super::super::store::Range;

/// Brings every aggregated role up to date.
pub(super) fn aggregate(state: &mut State) {
    let resource = GroupResource::new("rbac.authorization.k8s.io", "clusterroles");
    let roles: Vec<Arc<Value>> = state.store.list(&resource, Range::default()).map(|(_, s)| s.object.clone()).collect();
    for role in roles.iter().filter(|role| role.get("aggregationRule").is_some_and(|a| !a.is_null())) {
        let mut rules: Vec<Value> = Vec::new();
        for selector in items(role, &["aggregationRule", "clusterRoleSelectors"]) {
            let Some(selector) = LabelSelector::of_object(selector) else { continue };
            for other in &roles {
                if Arc::ptr_eq(role, other) || !selector.matches(other.pointer("/metadata/labels")) {
                    continue;
                }
                for rule in items(other, &["rules"]) {
                    if !rules.contains(rule) {
                        rules.push(rule.clone());
                    }
                }
            }
        }
        if items(role, &["rules"]) != rules.as_slice() {
            let mut role = (**role).clone();
            role["rules"] = json!(rules);
            state.put(&resource, role);
        }
    }
}
