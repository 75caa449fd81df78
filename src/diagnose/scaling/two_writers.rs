//! `two-writers`: two controllers or people write the same number of replicas.
//!
//! A ScaledObject and the HPA that it made are one. Who states a number in a file (GitOps, helm, apply) is a writer beside an autoscaler,
//! because its next run sets the number again; losers leave managedFields, so what a watch saw before counts.

use super::leftover::reads_removed_metric;
use super::words::{condition_proof, stays};
use crate::model::finding::{Code, Finding, Severity};
use crate::model::object::Object;
use crate::model::{Evidence, Subject};
use crate::world::World;
use crate::world::owners::{ReplicaWrite, is_person, replicas_of, states_fields};
use crate::world::scaling::{Scaler, ScalerKind, Scaling, Works};

/// One of those who write.
struct Hand {
    /// In words, with what it writes.
    words: String,
    /// The object, if there is one.
    subject: Option<Subject>,
    /// The field manager, if it is one.
    manager: Option<String>,
    proof: Evidence,
}

pub(super) fn check(world: &World, out: &mut Vec<Finding>) {
    for (target, scaling) in &world.scaling {
        let autos: Vec<&Scaler> = scaling.roots().filter(|root| writes(world, root)).collect();
        let live: Vec<&Scaler> = autos.iter().copied().filter(|root| scaling_works(scaling, root)).collect();
        let mut hands: Vec<Hand> = autos.iter().map(|root| automatic(world, target, scaling, root)).collect();
        let variants = variants(world, target, scaling, &autos);
        let files = if live.is_empty() { Vec::new() } else { stated(world, target) };
        let people = if live.is_empty() { Vec::new() } else { undone_people(world, target) };
        let only_variants = hands.len() == 1 && files.is_empty() && people.is_empty();
        hands.extend(variants);
        hands.extend(files);
        hands.extend(people);
        if hands.len() >= 2 {
            out.push(finding(world, target, scaling, &hands, only_variants));
        }
    }
    for target in world.history.keys().filter(|target| !world.scaling.contains_key(*target)) {
        if let Some(hands) = alternating(world, target) {
            out.push(by_hand(target, &hands));
        }
    }
}

/// Whether an autoscaler writes the number, or would as soon as the other is gone.
fn writes(world: &World, root: &Scaler) -> bool {
    let fails = world
        .objects
        .hpa(&root.subject)
        .and_then(|(_, hpa)| hpa.condition("ScalingActive"))
        .is_some_and(|active| active.reason.starts_with("FailedGet"));
    let inert = root.works == Ok(Works::Off) && fails && reads_removed_metric(world, &root.subject);
    root.kind != ScalerKind::Variant && root.works != Ok(Works::Paused) && !inert
}

/// Whether it steers now: one whose metric is missing leaves the number to whoever states it.
fn scaling_works(scaling: &Scaling, root: &Scaler) -> bool {
    let made = scaling.made(&root.subject).next();
    made.map_or(&root.works, |made| &made.works) != &Ok(Works::Off)
}

fn automatic(world: &World, target: &Subject, scaling: &Scaling, root: &Scaler) -> Hand {
    let made = scaling.made(&root.subject).next();
    let wish = |subject: &Subject| {
        let desired = world.objects.hpa(subject)?.1.trusted_desired().ok()?;
        Some(format!("; wants {desired}"))
    };
    let words = match (root.kind, made) {
        (ScalerKind::Hpa, _) => format!("{} (kube-controller-manager, scale{})", root.subject, wish(&root.subject).unwrap_or_default()),
        (_, Some(hpa)) => {
            format!("{} via {} (kube-controller-manager, scale{})", root.subject, hpa.subject, wish(&hpa.subject).unwrap_or_default())
        }
        (ScalerKind::Keda, None) => format!("{} (keda, scale)", root.subject),
        _ => root.subject.to_string(),
    };
    let proof = Evidence::field(&root.subject, "spec.scaleTargetRef", target.to_string());
    Hand { words, subject: Some(root.subject.clone()), manager: None, proof }
}

/// VariantAutoscalings that live beside an autoscaler that does not read their number: their wake-up from zero writes `/scale`.
fn variants(world: &World, target: &Subject, scaling: &Scaling, autos: &[&Scaler]) -> Vec<Hand> {
    if autos.is_empty() || autos.iter().any(|auto| reads_removed_metric(world, &auto.subject)) {
        return Vec::new();
    }
    let fresh = |scaler: &&Scaler| {
        scaler.kind == ScalerKind::Variant
            && super::leftover::last_run(world, &scaler.subject).is_some_and(|run| super::leftover::is_fresh(world, run))
    };
    scaling
        .scalers
        .iter()
        .filter(fresh)
        .map(|scaler| Hand {
            words: format!("{} (wakes it from zero through /scale, and nobody reads the number it publishes)", scaler.subject),
            subject: Some(scaler.subject.clone()),
            manager: None,
            proof: Evidence::field(&scaler.subject, "spec.scaleTargetRef", target.to_string()),
        })
        .collect()
}

/// Those who state the number in a file, now or as a watch saw it before.
fn stated(world: &World, target: &Subject) -> Vec<Hand> {
    let Some(object) = world.objects.get(target).filter(|object| object.meta.controller().is_none()) else { return Vec::new() };
    let writes = world.replica_writes(target);
    let mut hands: Vec<Hand> = Vec::new();
    let mut add = |manager: &str, words: String, proof: Evidence| {
        if !hands.iter().any(|hand| hand.manager.as_deref() == Some(manager)) {
            hands.push(Hand { words, subject: None, manager: Some(manager.to_owned()), proof });
        }
    };
    for write in writes.iter().rev() {
        for writer in write.writers.iter().filter(|writer| states_fields(writer) && !world.explained(target, writer)) {
            let at = writer.time.unwrap_or(write.at);
            let proof = Evidence::field(target, "spec.replicas", format!("{} by {}", write.replicas, writer.manager)).seen_at(Some(at));
            add(&writer.manager, format!("{} ({}; wrote {} at {at})", writer.manager, writer.operation, write.replicas), proof);
        }
    }
    for writer in present(object).filter(|writer| states_fields(writer) && !world.explained(target, writer)) {
        let number = replicas_of(object).map(|n| format!("; states {n}")).unwrap_or_default();
        let proof =
            Evidence::field(target, "metadata.managedFields", format!("{} ({}) owns spec.replicas", writer.manager, writer.operation))
                .seen_at(writer.time);
        add(&writer.manager, format!("{} ({}{number})", writer.manager, writer.operation), proof);
    }
    if let Some(n) = object.meta.applied_replicas {
        let place = "metadata.annotations[kubectl.kubernetes.io/last-applied-configuration]";
        let proof = Evidence::field(target, place, format!("spec.replicas: {n}"));
        add("kubectl-client-side-apply", format!("kubectl apply (its last applied configuration states replicas: {n})"), proof);
    }
    hands
}

fn present(object: &Object) -> impl Iterator<Item = &crate::model::writer::Writer> {
    object.meta.writers.iter().filter(|writer| writer.subresource != "status" && writer.fields.contains("spec.replicas"))
}

/// People whose number an autoscaler undid while a watch looked on.
fn undone_people(world: &World, target: &Subject) -> Vec<Hand> {
    let writes = world.replica_writes(target);
    let mut hands: Vec<Hand> = Vec::new();
    for pair in writes.windows(2) {
        let [by_person, after] = pair else { continue };
        let undone = after.writers.iter().any(|writer| world.explained(target, writer));
        for writer in
            by_person.writers.iter().filter(|writer| undone && !by_person.first && is_person(writer) && !after.writers.contains(writer))
        {
            if !hands.iter().any(|hand| hand.manager.as_deref() == Some(&writer.manager)) {
                let words = format!("{} (wrote {} at {}, undone at {})", writer.manager, by_person.replicas, by_person.at, after.at);
                let value = format!("{} by {}, then {}", by_person.replicas, writer.manager, after.replicas);
                let proof = Evidence::field(target, "spec.replicas", value).seen_at(Some(by_person.at));
                hands.push(Hand { words, subject: None, manager: Some(writer.manager.clone()), proof });
            }
        }
    }
    hands
}

/// Without an autoscaler: managers that took the number from each other and back.
fn alternating(world: &World, target: &Subject) -> Option<Vec<ReplicaWrite>> {
    let writes = world.replica_writes(target);
    let names = |write: &ReplicaWrite| -> Vec<String> { write.writers.iter().map(|writer| writer.manager.clone()).collect() };
    let back = writes.windows(3).find(|three| {
        let [a, b, c] = three else { return false };
        a.replicas == c.replicas && !b.writers.is_empty() && !c.writers.is_empty() && names(b) != names(c)
    })?;
    Some(back.to_vec())
}

fn by_hand(target: &Subject, writes: &[ReplicaWrite]) -> Finding {
    let one = |write: &ReplicaWrite| {
        let who: Vec<&str> = write.writers.iter().map(|writer| writer.manager.as_str()).collect();
        format!("{} by {} at {}", write.replicas, if who.is_empty() { "nobody known".to_owned() } else { who.join(", ") }, write.at)
    };
    let words: Vec<String> = writes.iter().map(one).collect();
    let proof = |write: &ReplicaWrite| Evidence::field(target, "spec.replicas", one(write)).seen_at(Some(write.at));
    let first = writes.first().map_or_else(|| Evidence::field(target, "spec.replicas", ""), proof);
    Finding::new(Code::TwoWriters, target, format!("spec.replicas of {target} is written by several: {}", words.join(", then ")), first)
        .proofs(writes.iter().skip(1).map(proof))
        .remedy("let one of them decide spec.replicas: change the number where it is stated, or take it out there")
        .not("write a third value: it is undone too")
}

fn finding(world: &World, target: &Subject, scaling: &Scaling, hands: &[Hand], mild: bool) -> Finding {
    let words: Vec<&str> = hands.iter().map(|hand| hand.words.as_str()).collect();
    let ambiguous = scaling.scalers.iter().find_map(|scaler| {
        let (object, hpa) = world.objects.hpa(&scaler.subject)?;
        hpa.condition("ScalingActive").filter(|active| active.reason == "AmbiguousSelector").map(|active| condition_proof(object, active))
    });
    let effect = match &ambiguous {
        Some(_) => format!(": the HPAs have stopped (AmbiguousSelector), {}", stays(world, target)),
        None => String::new(),
    };
    let summary = format!("spec.replicas of {target} has {} writers: {}{effect}", hands.len(), words.join("; "));
    let mut proofs = hands.iter().map(|hand| hand.proof.clone());
    let Some(first) = proofs.next() else {
        return Finding::new(Code::TwoWriters, target, summary, Evidence::field(target, "spec.replicas", ""));
    };
    let mut finding = Finding::new(Code::TwoWriters, target, summary, first).proofs(proofs).proofs(ambiguous);
    if mild && hands.len() == 2 && has_variant(hands) {
        finding = finding.severe(Severity::Warning);
    }
    let autos: Vec<&Subject> = hands.iter().filter_map(|hand| hand.subject.as_ref()).collect();
    finding = autos.iter().fold(finding, |finding, subject| finding.also(subject));
    if autos.len() >= 2 {
        let keda = autos.iter().find(|subject| subject.kind() == "scaledobject");
        let drop: Vec<String> =
            autos.iter().filter(|subject| Some(**subject) != keda.copied()).map(|subject| format!("delete {subject}")).collect();
        finding = finding.remedy(match keda {
            Some(keda) => {
                format!("remove one of them: {}, and keep {keda} (its triggers can take over the other's metric)", drop.join(", "))
            }
            None => format!("remove one of them: {} (one HPA may ask for several metrics: the largest wish wins)", drop.join(", or ")),
        });
        for hpa in scaling.scalers.iter().filter(|scaler| scaler.made_by.is_some()) {
            let maker = hpa.made_by.as_ref().map_or_else(String::new, Subject::to_string);
            finding = finding.not(format!("edit or delete {}: {maker} writes it back", hpa.subject));
        }
    }
    for manager in hands.iter().filter_map(|hand| hand.manager.as_deref()) {
        finding = finding.remedy(take_out(manager));
    }
    finding.not("write a third value with kubectl scale: it is undone")
}

fn has_variant(hands: &[Hand]) -> bool {
    hands.iter().any(|hand| hand.subject.as_ref().is_some_and(|subject| subject.kind() == "variantautoscaling"))
}

/// How to take the number out of what a tool states.
fn take_out(manager: &str) -> String {
    let lower = manager.to_ascii_lowercase();
    let alone = "first see that the autoscaler owns the field: an applier that stops stating a field it alone owns resets it to 1";
    if lower.starts_with("argocd") || lower.starts_with("argo-cd") {
        format!(
            "take replicas out of the manifest in Git, or let Argo CD ignore it (ignoreDifferences on /spec/replicas with RespectIgnoreDifferences=true); {alone}"
        )
    } else if lower.starts_with("kustomize-controller") || lower.starts_with("flux") {
        format!("take replicas out of the manifest in Git that Flux applies; {alone}")
    } else if lower.starts_with("helm") {
        format!("take replicas out of the chart's template where autoscaling is on (and out of the values in Git); {alone}")
    } else if lower == "kubectl" || lower.starts_with("kubectl-") && !lower.contains("apply") {
        "set the bounds of the autoscaler instead of the number of replicas".to_owned()
    } else {
        format!("take replicas out of what {manager} applies; {alone}")
    }
}

#[cfg(test)]
mod tests {
    use super::super::kit::{deployment, hpa, kedas, scaled, written};
    use crate::diagnose::testkit::Kit;
    use crate::model::finding::Code;
    use rstest::rstest;
    use serde_json::{Value, json};

    fn kit(docs: Vec<Value>) -> Kit {
        docs.into_iter().fold(Kit::new(), Kit::object)
    }

    fn applied(replicas: u32) -> Value {
        let mut doc = deployment(replicas);
        doc["metadata"]["annotations"] = json!({"kubectl.kubernetes.io/last-applied-configuration": r#"{"spec":{"replicas":2}}"#});
        doc
    }

    fn paused() -> Value {
        let mut doc = scaled("q");
        doc["metadata"]["annotations"] = json!({"autoscaling.keda.sh/paused": "true"});
        doc
    }

    #[rstest]
    #[case::two_hpas(vec![deployment(2), hpa("h", "False", "AmbiguousSelector", 0), hpa("g", "False", "AmbiguousSelector", 0)], true)]
    #[case::hpa_and_keda(vec![deployment(2), hpa("h", "True", "", 2), kedas("True", "", 3), scaled("q")], true)]
    #[case::keda_alone(vec![written(2, "keda", "Update", "scale"), kedas("True", "", 2), scaled("q")], false)]
    #[case::hpa_alone(vec![written(2, "kube-controller-manager", "Update", "scale"), hpa("h", "True", "", 2)], false)]
    #[case::hpa_and_git(vec![written(2, "argocd-controller", "Apply", ""), hpa("h", "True", "", 2)], true)]
    #[case::hpa_and_helm(vec![written(2, "helm", "Update", ""), hpa("h", "True", "", 2)], true)]
    #[case::hpa_and_apply(vec![applied(4), hpa("h", "True", "", 4)], true)]
    #[case::an_hpa_that_does_nothing_and_git(vec![written(2, "argocd-controller", "Apply", ""), hpa("h", "False", "FailedGetPodsMetric", 0)], false)]
    #[case::git_alone(vec![written(2, "argocd-controller", "Apply", "")], false)]
    #[case::paused_keda_and_hpa(vec![deployment(2), hpa("h", "True", "", 2), paused()], false)]
    #[case::a_person_once(vec![written(2, "kubectl", "Update", "scale"), hpa("h", "True", "", 2)], false)]
    fn who_writes(#[case] docs: Vec<Value>, #[case] fires: bool) {
        let world = kit(docs).build();
        assert_eq!(world.none(Code::TwoWriters), !fires, "{:#?}", world.findings);
    }

    #[test]
    fn what_a_watch_saw_counts() {
        let scale = written(4, "kube-controller-manager", "Update", "scale");
        let world = kit(vec![scale.clone(), hpa("h", "True", "", 4)])
            .seen_before(100, &scale)
            .seen_before(60, &written(2, "argocd-controller", "Apply", ""))
            .seen_before(40, &scale)
            .build();
        let finding = world.only(Code::TwoWriters);
        for word in ["argocd-controller", "wrote 2", "wants 4", "hpa/s/h"] {
            assert!(finding.summary.contains(word), "{}", finding.summary);
        }
    }

    #[rstest]
    #[case("kubectl", true)]
    #[case("kube-controller-manager", false)]
    fn a_person_who_is_undone(#[case] manager: &str, #[case] fires: bool) {
        let scale = written(4, "kube-controller-manager", "Update", "scale");
        let world = kit(vec![scale.clone(), hpa("h", "True", "", 4)])
            .seen_before(100, &scale)
            .seen_before(60, &written(9, manager, "Update", "scale"))
            .seen_before(45, &scale)
            .build();
        assert_eq!(world.none(Code::TwoWriters), !fires);
    }

    #[test]
    fn two_tools_without_an_autoscaler() {
        let git = written(4, "argocd-controller", "Apply", "");
        let person = written(2, "kubectl-edit", "Update", "");
        let world = kit(vec![git.clone()]).seen_before(100, &git).seen_before(60, &person).seen_before(40, &git).build();
        assert_eq!(world.only(Code::TwoWriters).subjects[0].as_str(), "deployment/s/a");
        let world = kit(vec![person.clone()]).seen_before(100, &git).seen_before(60, &person).build();
        assert!(world.none(Code::TwoWriters));
    }
}
