//! `stale-observed-generation`: the status is of an older spec, so what it says is not current.

use crate::model::finding::{Code, Finding};
use crate::model::object::{Body, Object};
use crate::model::{Evidence, time};
use crate::world::World;

/// Seconds that a controller may take to see a change before it is a finding.
const GRACE_S: i64 = 15;

pub(super) fn check(world: &World, out: &mut Vec<Finding>) {
    for (subject, object) in world.objects.all() {
        let Some(generation) = object.meta.generation else { continue };
        let Some((path, observed)) = observed(object).filter(|(_, observed)| *observed < generation) else { continue };
        let written = object.meta.writers.iter().filter(|writer| writer.subresource != "status").filter_map(|writer| writer.time).max();
        let age = written.map(|at| time::seconds_between(at, world.now));
        if age.is_some_and(|age| age < GRACE_S) {
            continue;
        }
        let since = age.map(|age| format!(", though the spec was written {} ago", time::span(age))).unwrap_or_default();
        let mut finding = Finding::new(
            Code::StaleObservedGeneration,
            subject,
            format!("the status of {subject} is of generation {observed}, its spec of {generation}: what the status says is not current{since}"),
            Evidence::field(subject, path, observed.to_string()).of_uid(&object.meta.uid),
        )
        .proof(Evidence::field(subject, "metadata.generation", generation.to_string()).seen_at(written));
        if let Some(writer) = object.meta.writers.iter().filter(|writer| writer.subresource != "status").max_by_key(|writer| writer.time) {
            finding = finding.proof(Evidence::field(subject, "metadata.managedFields", format!("{} wrote last", writer.manager)).seen_at(writer.time));
        }
        out.push(
            finding
                .remedy("look whether the controller of this object runs and leads: it has not seen the change")
                .remedy("count its pods instead of believing its status")
                .not("take a ready or healthy status for the new spec's"),
        );
    }
}

/// The generation that the status speaks of, and where it says so.
fn observed(object: &Object) -> Option<(&'static str, i64)> {
    let path = "status.observedGeneration";
    match &object.body {
        Body::Workload(body) => Some((path, body.status.observed_generation?)),
        Body::Other(body) => {
            let value = body.pointer("/status/observedGeneration")?;
            Some((path, value.as_i64().or_else(|| value.as_str()?.parse().ok())?))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use crate::diagnose::testkit::Kit;
    use crate::model::finding::Code;
    use rstest::rstest;
    use serde_json::{Value, json};

    fn object(api: &str, kind: &str, generation: Value, observed: Value, written: &str) -> Value {
        json!({"apiVersion": api, "kind": kind, "metadata": {"name": "w", "namespace": "s", "generation": generation,
            "managedFields": [{"manager": "kubectl", "operation": "Update", "time": written, "fieldsV1": {"f:spec": {}}}]},
            "spec": {"replicas": 0}, "status": {"observedGeneration": observed}})
    }

    #[rstest]
    #[case::behind("apps/v1", "Deployment", json!(5), json!(4), "2026-11-12T09:00:00Z", true)]
    #[case::a_custom_resource("serving.kserve.io/v1beta1", "InferenceService", json!(5), json!(4), "2026-11-12T09:00:00Z", true)]
    #[case::as_text("argoproj.io/v1alpha1", "Rollout", json!(12), json!("11"), "2026-11-12T09:00:00Z", true)]
    #[case::current("apps/v1", "Deployment", json!(5), json!(5), "2026-11-12T09:00:00Z", false)]
    #[case::not_said("apps/v1", "Deployment", json!(5), Value::Null, "2026-11-12T09:00:00Z", false)]
    #[case::changed_just_now("apps/v1", "Deployment", json!(5), json!(4), "2026-11-12T09:59:55Z", false)]
    fn generations(#[case] api: &str, #[case] kind: &str, #[case] generation: Value, #[case] observed: Value, #[case] written: &str, #[case] fires: bool) {
        let world = Kit::new().object(object(api, kind, generation, observed, written)).build();
        assert_eq!(world.none(Code::StaleObservedGeneration), !fires);
    }
}
