//! `change-reverted`: a change was undone by the owner of the field.
//!
//! Told from what a watch showed: managedFields alone forget the loser, since an Update takes the field from everybody else.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::model::finding::{Code, Finding};
use crate::model::object::{Body, Object, Workload};
use crate::model::writer::Writer;
use crate::model::{Evidence, Subject, text, time};
use crate::world::World;
use crate::world::facts::Change;
use crate::world::owners::is_person;

/// Seconds within which a field that is set back counts as undone rather than changed again.
const WITHIN_S: i64 = 600;
/// Most values compared of one object.
const MAX_LEAVES: usize = 400;

pub(super) fn check(world: &World, out: &mut Vec<Finding>) {
    for (subject, history) in &world.history {
        let versions: Vec<&Change> = history.iter().filter(|change| change.event != "DELETED").collect();
        let leaves: Vec<BTreeMap<String, String>> = versions.iter().map(|change| leaves(&change.object)).collect();
        let paths: BTreeSet<&String> = leaves.iter().flat_map(BTreeMap::keys).collect();
        // One finding for each pair of writers: a template changed in three places was changed once.
        let mut told: BTreeSet<(String, String)> = BTreeSet::new();
        for path in paths {
            let values: Vec<Option<&String>> = leaves.iter().map(|of| of.get(path)).collect();
            let Some(reverted) = reverted(&versions, path, &values) else { continue };
            if told.insert((reverted.setter.manager.clone(), reverted.undoer.manager.clone())) {
                out.push(finding(world, subject, path, &reverted));
            }
        }
    }
}

/// A value that was set and set back.
struct Reverted<'a> {
    before: Option<&'a String>,
    set_to: Option<&'a String>,
    setter: &'a Writer,
    set: &'a Change,
    undoer: &'a Writer,
    undone: &'a Change,
}

fn reverted<'a>(versions: &[&'a Change], path: &str, values: &[Option<&'a String>]) -> Option<Reverted<'a>> {
    let last = *values.last()?;
    for (i, pair) in values.windows(2).enumerate() {
        let [before, set_to] = *pair else { continue };
        if before == set_to || before != last {
            continue;
        }
        let at = i + 1;
        let Some(back) = values.iter().enumerate().skip(at + 1).find(|(_, value)| **value != set_to).map(|(j, _)| j) else { continue };
        if values.get(back) != Some(&before) {
            continue;
        }
        let (old, set, just, undone) = (versions.get(i)?, versions.get(at)?, versions.get(back - 1)?, versions.get(back)?);
        if time::seconds_between(set.at, undone.at) > WITHIN_S {
            continue;
        }
        let (Some(setter), Some(undoer)) = (writer(old, set, path), writer(just, undone, path)) else { continue };
        // Numbers that controllers write to and fro are flapping, which has a finding of its own.
        let counts = path == "spec.replicas" && !is_person(setter);
        if setter.manager != undoer.manager && !counts {
            return Some(Reverted { before, set_to, setter, set, undoer, undone });
        }
    }
    None
}

/// Who made the change from one version to the next: a manager that owns the path and has written since, else the only one that has.
fn writer<'a>(before: &Change, after: &'a Change, path: &str) -> Option<&'a Writer> {
    let had = |writer: &Writer| {
        before.object.meta.writers.iter().any(|old| old.manager == writer.manager && old.subresource == writer.subresource && old.time == writer.time)
    };
    let fresh: Vec<&Writer> = after.object.meta.writers.iter().filter(|writer| writer.subresource != "status" && !had(writer)).collect();
    match fresh.iter().filter(|writer| writer.owns(path)).max_by_key(|writer| writer.time) {
        Some(writer) => Some(writer),
        None if fresh.len() == 1 => fresh.first().copied(),
        None => None,
    }
}

/// The values of an object's spec by path.
fn leaves(object: &Object) -> BTreeMap<String, String> {
    let mut out = BTreeMap::new();
    match &object.body {
        Body::Workload(body) => workload(body, &mut out),
        Body::Other(body) => {
            if let Some(spec) = body.get("spec") {
                flatten("spec", spec, 0, &mut out);
            }
        }
        _ => {}
    }
    out
}

fn workload(body: &Workload, out: &mut BTreeMap<String, String>) {
    if let Ok(replicas) = &body.replicas {
        out.insert("spec.replicas".into(), replicas.to_string());
    }
    if body.paused {
        out.insert("spec.paused".into(), "true".into());
    }
    for (key, value) in &body.template_annotations {
        out.insert(format!("spec.template.metadata.annotations[{key}]"), value.clone());
    }
    for (key, value) in &body.template_labels {
        out.insert(format!("spec.template.metadata.labels[{key}]"), value.clone());
    }
    for container in body.template.containers.iter().chain(&body.template.init_containers) {
        let place = format!("spec.template.spec.containers[{}]", container.name);
        out.insert(format!("{place}.image"), container.image.clone());
        out.insert(format!("{place}.args"), container.words().join(" "));
    }
    if let Some(grace) = body.template.grace_s {
        out.insert("spec.template.spec.terminationGracePeriodSeconds".into(), grace.to_string());
    }
}

fn flatten(path: &str, value: &Value, depth: usize, out: &mut BTreeMap<String, String>) {
    if out.len() >= MAX_LEAVES || depth > 12 {
        return;
    }
    match value {
        Value::Object(map) => map.iter().for_each(|(key, inner)| flatten(&format!("{path}.{key}"), inner, depth + 1, out)),
        Value::Array(list) => list.iter().enumerate().for_each(|(i, inner)| flatten(&format!("{path}[{i}]"), inner, depth + 1, out)),
        Value::Null => {}
        other => {
            out.insert(path.to_owned(), other.as_str().map_or_else(|| other.to_string(), str::to_owned));
        }
    }
}

fn shown(value: Option<&String>) -> String {
    value.map_or_else(|| "nothing".to_owned(), |value| text::tidy(value).chars().take(80).collect())
}

fn finding(world: &World, subject: &Subject, path: &str, reverted: &Reverted) -> Finding {
    let owner = world.objects.owner_chain(subject).pop().or_else(|| {
        let of = reverted.undone.object.meta.controller()?;
        Some(of.subject(&reverted.undone.object.meta.namespace))
    });
    let above = owner.as_ref().map(|owner| format!(", for {owner}, which owns it")).unwrap_or_default();
    let at = |change: &Change, writer: &Writer| writer.time.unwrap_or(change.at);
    let (set, undone) = (at(reverted.set, reverted.setter), at(reverted.undone, reverted.undoer));
    let template = path.starts_with("spec.template");
    let effect = if template { "; the pod template is as before, so no new ReplicaSet stays and its pods are unchanged" } else { "" };
    let proof = |change: &Change, writer: &Writer, value: Option<&String>| {
        let words = format!("{} ({}) wrote {path} at {}: {}", writer.manager, writer.operation, time::clock(at(change, writer)), shown(value));
        Evidence::field(subject, "metadata.managedFields", words).seen_at(Some(at(change, writer))).of_uid(&change.object.meta.uid)
    };
    let done = if reverted.before.is_none() { "removed" } else { "set back" };
    let mut finding = Finding::new(
        Code::ChangeReverted,
        subject,
        format!(
            "{path} of {}, set by {} at {}, was {done} by {} at {}{above}{effect}",
            subject.name(), reverted.setter.manager, time::clock(set), reverted.undoer.manager, time::clock(undone)
        ),
        proof(reverted.set, reverted.setter, reverted.set_to),
    )
    .proof(proof(reverted.undone, reverted.undoer, reverted.before));
    if let Some(owner) = owner {
        finding = finding.also(&owner).remedy(format!("make the change on {owner}: what it says is written down to {subject}"));
    } else {
        finding = finding.remedy(format!("make the change where {} takes it from", reverted.undoer.manager));
    }
    finding.not("do it again in the same place: it is undone again")
}

#[cfg(test)]
mod tests {
    use crate::diagnose::testkit::Kit;
    use crate::model::finding::Code;
    use rstest::rstest;
    use serde_json::{Value, json};

    fn writer(manager: &str, at: &str, fields: Value) -> Value {
        json!({"manager": manager, "operation": "Update", "time": format!("2026-11-12T{at}Z"), "fieldsV1": fields})
    }

    fn version(replicas: u32, annotation: Option<&str>, writers: &[Value]) -> Value {
        let annotations = annotation.map_or(json!({}), |value| json!({"kubectl.kubernetes.io/restartedAt": value}));
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "w", "namespace": "s", "managedFields": writers,
            "ownerReferences": [{"apiVersion": "serving.kserve.io/v1beta1", "kind": "InferenceService", "name": "q", "controller": true}]},
            "spec": {"replicas": replicas, "template": {"metadata": {"annotations": annotations}}}, "status": {}})
    }

    fn seen(versions: &[(&str, Value)]) -> Kit {
        let last = versions.last().unwrap().1.clone();
        versions.iter().fold(Kit::new(), |kit, (at, object)| kit.seen(&format!("2026-11-12T{at}Z"), object)).object(last)
    }

    #[rstest]
    #[case::undone("09:58:01", "manager", None, true)]
    #[case::it_stays("09:58:01", "manager", Some("x"), false)]
    #[case::by_the_same_hand("09:58:01", "kubectl-rollout", None, false)]
    #[case::much_later("09:59:59", "manager", None, true)]
    fn a_restart(#[case] at: &str, #[case] by: &str, #[case] end: Option<&str>, #[case] fires: bool) {
        let template = json!({"f:spec": {"f:template": {}}});
        let annotation = json!({"f:spec": {"f:template": {"f:metadata": {"f:annotations": {"f:kubectl.kubernetes.io/restartedAt": {}}}}}});
        let kit = seen(&[
            ("09:00:00", version(2, None, &[writer("manager", "08:00:00", template.clone())])),
            ("09:58:00", version(2, Some("x"), &[writer("manager", "08:00:00", template.clone()), writer("kubectl-rollout", "09:58:00", annotation)])),
            (at, version(2, end, &[writer(by, at, template)])),
        ]);
        let world = kit.build();
        assert_eq!(world.none(Code::ChangeReverted), !fires);
        if fires {
            let finding = world.only(Code::ChangeReverted);
            assert!(finding.summary.contains("kubectl-rollout at 09:58:00") && finding.summary.contains("inferenceservice/s/q"), "{}", finding.summary);
        }
    }

    #[rstest]
    #[case::a_person_is_overruled("kubectl-edit", true)]
    #[case::controllers_to_and_fro("vpa", false)]
    fn a_number(#[case] by: &str, #[case] fires: bool) {
        let replicas = json!({"f:spec": {"f:replicas": {}}});
        let kit = seen(&[
            ("09:00:00", version(2, None, &[writer("manager", "08:00:00", replicas.clone())])),
            ("09:58:00", version(5, None, &[writer(by, "09:58:00", replicas.clone())])),
            ("09:58:20", version(2, None, &[writer("manager", "09:58:20", replicas)])),
        ]);
        assert_eq!(kit.build().none(Code::ChangeReverted), !fires);
    }
}
