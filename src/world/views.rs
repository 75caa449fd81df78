//! Views: what the API server let us read, so that "may not read" is never shown as "there is none".

use std::collections::BTreeMap;

use super::View;
use crate::model::engine::{HttpAnswer, HttpOutcome};
use crate::model::object::Catalogue;
use crate::model::state::ViewState;
use crate::model::value::Values;
use crate::model::{Subject, kind_of_resource};

/// The views that answers of the API server speak of.
pub fn views(objects: &Catalogue, answers: &[HttpAnswer]) -> BTreeMap<Subject, View> {
    // What was read shows itself: a view of the pods of each namespace, and of nodes.
    let mut views: BTreeMap<Subject, View> = BTreeMap::new();
    let mut rows: BTreeMap<String, (u32, jiff::Timestamp)> = BTreeMap::new();
    for (object, _) in objects.pods() {
        let row = rows.entry(format!("pods/{}", object.meta.namespace)).or_insert((0, object.seen));
        *row = (row.0.saturating_add(1), row.1.max(object.seen));
    }
    for (object, _) in objects.nodes() {
        let row = rows.entry("nodes".to_owned()).or_insert((0, object.seen));
        *row = (row.0.saturating_add(1), row.1.max(object.seen));
    }
    for (name, (count, seen)) in rows {
        let mut values = Values::default();
        values.know("existing", count, "objects read", seen);
        views.insert(Subject::view(&name), View { state: ViewState::Ok, why: vec![format!("{count} were read")], values });
    }
    for answer in answers.iter().filter(|answer| answer.method == "GET") {
        let Some((resource, namespace)) = collection(answer.route()) else { continue };
        let name = if namespace.is_empty() { resource.to_owned() } else { format!("{resource}/{namespace}") };
        views.insert(Subject::view(&name), view(objects, answer, resource, namespace));
    }
    views
}

/// The resource and namespace that a list path names: `/api/v1/namespaces/serving/pods` → (`pods`, `serving`). `None` for other paths.
fn collection(route: &str) -> Option<(&str, &str)> {
    let mut parts = route.trim_matches('/').split('/');
    match parts.next()? {
        "api" => {
            parts.next()?;
        }
        "apis" => {
            parts.next()?;
            parts.next()?;
        }
        _ => return None,
    }
    let rest: Vec<&str> = parts.collect();
    match rest.as_slice() {
        [resource] => Some((resource, "")),
        ["namespaces", namespace, resource] => Some((resource, namespace)),
        _ => None,
    }
}

fn view(objects: &Catalogue, answer: &HttpAnswer, resource: &str, namespace: &str) -> View {
    let message = serde_json::from_str::<serde_json::Value>(answer.body())
        .ok()
        .and_then(|body| Some(crate::model::text::tidy(body.get("message")?.as_str()?).to_string()));
    let said = message.map(|message| format!(": {message}")).unwrap_or_default();
    let place = if namespace.is_empty() { "at cluster scope".to_owned() } else { format!("in namespace {namespace}") };
    let (state, why) = match &answer.outcome {
        HttpOutcome::Answered { status: 200..=299, .. } => (ViewState::Ok, format!("{resource} {place} were read")),
        HttpOutcome::Answered { status: 401, .. } => (ViewState::LoginNeeded, format!("the API server does not know who asks{said}")),
        HttpOutcome::Answered { status: 403, .. } => (ViewState::NoPermission, format!("not allowed to list {resource} {place}{said}")),
        HttpOutcome::Answered { status, .. } => (ViewState::Unreachable, format!("listing {resource} {place} answered {status}{said}")),
        HttpOutcome::Failed(failure) => (ViewState::Unreachable, format!("listing {resource} {place}: {failure}")),
    };
    let mut values = Values::default();
    if state == ViewState::Ok {
        let kind = kind_of_resource(resource);
        let rows = objects
            .all()
            .filter(|(subject, object)| subject.kind() == kind && (namespace.is_empty() || object.meta.namespace == namespace));
        values.know("existing", u32::try_from(rows.count()).unwrap_or(u32::MAX), &answer.request(), answer.at);
    } else {
        values.lack("existing", why.clone());
    }
    View { state, why: vec![why], values }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case("/api/v1/nodes", Some(("nodes", "")))]
    #[case("/api/v1/namespaces/serving/pods", Some(("pods", "serving")))]
    #[case("/apis/apps/v1/namespaces/serving/deployments", Some(("deployments", "serving")))]
    #[case("/apis/apps/v1/deployments/", Some(("deployments", "")))]
    #[case("/api/v1/namespaces/serving/pods/a", None)]
    #[case("/version", None)]
    #[case("", None)]
    fn list_paths(#[case] route: &str, #[case] wanted: Option<(&str, &str)>) {
        assert_eq!(collection(route), wanted);
    }
}
