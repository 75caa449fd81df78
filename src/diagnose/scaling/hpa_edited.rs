//! `keda-hpa-edited`: an HPA that KEDA owns was changed by hand; KEDA compares it with the ScaledObject and writes it back.

use crate::model::finding::{Code, Finding};
use crate::model::object::{Hpa, Object, ScaledObject};
use crate::model::writer::Writer;
use crate::model::{Evidence, Subject};
use crate::world::World;

pub(super) fn check(world: &World, out: &mut Vec<Finding>) {
    for (object, hpa) in world.objects.hpas() {
        let target = hpa.target.subject(&object.meta.namespace);
        let subject = object.subject();
        let maker = world
            .scaling
            .get(&target)
            .and_then(|scaling| scaling.scalers.iter().find(|scaler| scaler.subject == subject)?.made_by.clone())
            .and_then(|maker| world.objects.scaled_object(&maker));
        let Some((made_by, scaled)) = maker else { continue };
        let differs = differences(hpa, scaled);
        let hand = by_hand(object);
        if differs.is_empty() && hand.is_none() {
            continue;
        }
        out.push(finding(object, &subject, &made_by.subject(), &differs, hand));
    }
}

/// What KEDA would set, beside what stands there: KEDA 2.20 makes no HPA with a minimum of 0.
fn differences(hpa: &Hpa, scaled: &ScaledObject) -> Vec<(&'static str, String)> {
    let mut out = Vec::new();
    let mut compare = |field, here: &crate::model::Known<u32>, there: Option<u32>, of: &str| {
        if let (Ok(here), Some(there)) = (here, there)
            && *here != there
        {
            out.push((field, format!("{here}, of the ScaledObject's {of} follows {there}")));
        }
    };
    compare("spec.minReplicas", &hpa.min, scaled.min.clone().ok().map(|min| min.max(1)), "minReplicaCount");
    compare("spec.maxReplicas", &hpa.max, scaled.max.clone().ok(), "maxReplicaCount");
    out
}

/// A field manager other than KEDA and the HPA controller that owns something of the spec.
fn by_hand(object: &Object) -> Option<&Writer> {
    object.meta.writers.iter().find(|writer| {
        let lower = writer.manager.to_ascii_lowercase();
        let keda = lower.starts_with("keda") || lower.contains("controller-manager");
        !keda && writer.subresource != "status" && writer.fields.iter().any(|field| field == "spec" || field.starts_with("spec."))
    })
}

fn finding(object: &Object, subject: &Subject, maker: &Subject, differs: &[(&'static str, String)], hand: Option<&Writer>) -> Finding {
    let who = hand
        .map(|writer| format!(" by {}{}", writer.manager, writer.time.map(|at| format!(" at {at}")).unwrap_or_default()))
        .unwrap_or_default();
    let what: Vec<String> = differs.iter().map(|(field, value)| format!("{field} is {value}")).collect();
    let what = if what.is_empty() { String::new() } else { format!(": {}", what.join("; ")) };
    let fields = hand.map(|writer| {
        let fields: Vec<&str> = writer.fields.iter().filter(|field| field.starts_with("spec")).map(String::as_str).collect();
        Evidence::field(subject, "metadata.managedFields", format!("{} owns {}", writer.manager, fields.join(", "))).seen_at(writer.time)
    });
    let mut proofs =
        differs.iter().map(|(field, value)| Evidence::field(subject, field, value.clone()).of_uid(&object.meta.uid)).chain(fields);
    let first = proofs.next().unwrap_or_else(|| Evidence::field(subject, "metadata.ownerReferences", maker.to_string()));
    Finding::new(
        Code::KedaHpaEdited,
        subject,
        format!("{subject} was changed{who}, and {maker}, which owns it, will write it back{what}"),
        first,
    )
    .proofs(proofs)
    .proof(Evidence::field(subject, "metadata.ownerReferences", maker.to_string()).of_uid(&object.meta.uid))
    .also(maker)
    .remedy(format!("make the change on {maker}: minReplicaCount, maxReplicaCount, triggers, advanced.horizontalPodAutoscalerConfig"))
    .not(format!("edit {subject} again"))
}

#[cfg(test)]
mod tests {
    use super::super::kit::{deployment, hpa, kedas, scaled};
    use crate::diagnose::testkit::Kit;
    use crate::model::finding::Code;
    use rstest::rstest;
    use serde_json::{Value, json};

    fn edited(field: &str, value: u32, mut doc: Value) -> Value {
        doc["spec"][field] = value.into();
        doc
    }

    fn managed(manager: &str, mut doc: Value) -> Value {
        doc["metadata"]["managedFields"] =
            json!([{"manager": manager, "operation": "Update", "fieldsV1": {"f:spec": {"f:maxReplicas": {}}}}]);
        doc
    }

    #[rstest]
    #[case::as_made(kedas("True", "", 2), false)]
    #[case::another_maximum(edited("maxReplicas", 12, kedas("True", "", 2)), true)]
    #[case::another_minimum(edited("minReplicas", 3, kedas("True", "", 2)), true)]
    #[case::by_kubectl(managed("kubectl-edit", kedas("True", "", 2)), true)]
    #[case::by_keda(managed("keda", kedas("True", "", 2)), false)]
    #[case::of_nobody(managed("kubectl-edit", edited("maxReplicas", 12, hpa("h", "True", "", 2))), false)]
    fn edits(#[case] doc: Value, #[case] fires: bool) {
        let world = Kit::new().object(deployment(2)).object(doc).object(scaled("q")).build();
        assert_eq!(world.none(Code::KedaHpaEdited), !fires, "{:#?}", world.findings);
    }
}
