//! Eviction: a delete that asks the disruption budgets first.

use serde_json::{Value, json};

use super::super::http::body;
use super::super::kinds::labels::LabelSelector;
use super::super::kinds::{at, items, number, text};
use super::super::state::State;
use super::super::status::{ApiError, ApiResult, GroupResource};
use super::super::store::Range;
use super::super::verbs::delete::{Options, one};
use super::super::verbs::{Answer, Call, Served};

/// Serves a POST to `/eviction`.
///
/// # Errors
/// 429 when a budget forbids it, 500 when two budgets would have to be asked.
pub(super) fn evict(state: &mut State, call: &Call, resource: &Served) -> ApiResult<Answer> {
    let eviction = body::object(&call.content_type, &call.body, "Eviction")?;
    let (namespace, name) = (&call.target.namespace, &call.target.name);
    let given = text(&eviction, &["metadata", "name"]);
    if !given.is_empty() && given != name {
        return Err(ApiError::bad_request(format!("name in URL does not match name in Eviction object: {name} vs {given}")));
    }
    let Some(pod) = state.get(&resource.stored(), namespace, name) else {
        return Err(ApiError::not_found(&resource.gr, name));
    };
    let of = |path: &[&str]| text(&eviction, path).to_owned();
    let options = Options {
        grace: number(&eviction, &["deleteOptions", "gracePeriodSeconds"]),
        propagation: of(&["deleteOptions", "propagationPolicy"]),
        uid: of(&["deleteOptions", "preconditions", "uid"]),
        version: of(&["deleteOptions", "preconditions", "resourceVersion"]),
        dry: call.query.dry_run()? || items(&eviction, &["deleteOptions", "dryRun"]).iter().any(|v| v == "All"),
    };
    let phase = text(&pod, &["status", "phase"]);
    let free = matches!(phase, "Succeeded" | "Failed" | "Pending") || pod.pointer("/metadata/deletionTimestamp").is_some();
    if !free {
        ask(state, namespace, &pod, options.dry)?;
    }
    one(state, resource, namespace, name, &options)?;
    let done = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201});
    Ok(Answer { code: 201, object: done, warnings: Vec::new() })
}

fn ask(state: &mut State, namespace: &str, pod: &Value, dry: bool) -> ApiResult<()> {
    let budgets = GroupResource::new("policy", "poddisruptionbudgets");
    let labels = pod.pointer("/metadata/labels");
    let range = Range { namespace: Some(namespace), after: None };
    let matching: Vec<Value> = state
        .store
        .list(&budgets, range)
        .map(|(_, s)| (*s.object).clone())
        .filter(|b| at(b, &["spec", "selector"]).and_then(LabelSelector::of_object).is_some_and(|s| s.matches(labels)))
        .collect();
    let budget = match matching.as_slice() {
        [] => return Ok(()),
        [one] => one,
        _ => {
            return Err(ApiError::internal(
                "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.",
            ));
        }
    };
    let name = text(budget, &["metadata", "name"]).to_owned();
    let ready = items(pod, &["status", "conditions"]).iter().any(|c| text(c, &["type"]) == "Ready" && text(c, &["status"]) == "True");
    let count = |field: &str| number(budget, &["status", field]).unwrap_or(0);
    if !ready {
        let always = text(budget, &["spec", "unhealthyPodEvictionPolicy"]) == "AlwaysAllow";
        if always || (count("currentHealthy") >= count("desiredHealthy") && count("desiredHealthy") > 0) {
            return Ok(());
        }
    }
    let refuse = |why: String, after: Option<u32>| {
        let message = "Cannot evict pod as it would violate the pod's disruption budget.";
        let mut error = ApiError::new(429, "TooManyRequests", message)
            .with_details(json!({"causes": [{"reason": "DisruptionBudget", "message": why}]}));
        error.retry_after = after;
        error
    };
    if count("observedGeneration") < number(budget, &["metadata", "generation"]).unwrap_or(0) {
        return Err(refuse(format!("The disruption budget {name} is still being processed by the server."), Some(10)));
    }
    if count("disruptionsAllowed") < 1 {
        let why = format!(
            "The disruption budget {name} needs {} healthy pods and has {} currently",
            count("desiredHealthy"),
            count("currentHealthy")
        );
        return Err(refuse(why, None));
    }
    if dry {
        return Ok(());
    }
    let mut budget = budget.clone();
    budget["status"]["disruptionsAllowed"] = (count("disruptionsAllowed") - 1).into();
    let stamp = state.stamp();
    budget["status"]["disruptedPods"][text(pod, &["metadata", "name"])] = stamp.into();
    state.put(&budgets, budget);
    Ok(())
}
