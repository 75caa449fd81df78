//! `hpa-target-missing`, `scale-target-not-scalable`, `scale-target-without-selector`: what an autoscaler scales can not be scaled.
//!
//! Shown by the autoscaler's own conditions, or by the API server's answer to `GET …/scale`. A forbidden `/scale` is none of the three.

use serde_json::Value;

use super::words::{condition_proof, stays};
use crate::model::engine::HttpAnswer;
use crate::model::finding::{Code, Finding};
use crate::model::object::{Condition, Object};
use crate::model::{Evidence, Subject};
use crate::world::World;
use crate::world::scale_api::scale_of;

/// Kinds that have no scale subresource whatever their name: Kubernetes 1.36, lws v0.10.0.
const NOT_SCALABLE: &[&str] = &["DaemonSet", "Pod", "Job", "DisaggregatedSet"];

/// An autoscaler with what it scales and the conditions in which it would complain.
struct Case<'a> {
    object: &'a Object,
    kind: &'a str,
    target: Subject,
    /// A condition that says that the target can not be reached.
    unreachable: Option<&'a Condition>,
    /// A condition that says that `/scale` has no selector.
    selector: Option<&'a Condition>,
    answer: Option<&'a HttpAnswer>,
}

pub(super) fn check(world: &World, out: &mut Vec<Finding>) {
    for (object, hpa) in world.objects.hpas() {
        let target = hpa.target.subject(&object.meta.namespace);
        judge(
            world,
            &Case {
                object,
                kind: &hpa.target.kind,
                answer: world.scale_answer(&target),
                unreachable: hpa.condition("AbleToScale").filter(|able| able.is_false() && able.reason == "FailedGetScale"),
                selector: hpa.condition("ScalingActive").filter(|active| active.is_false() && active.reason == "InvalidSelector"),
                target,
            },
            out,
        );
    }
    for (object, scaled) in world.objects.scaled_objects() {
        let target = scaled.target.subject(&object.meta.namespace);
        judge(
            world,
            &Case {
                object,
                kind: &scaled.target.kind,
                answer: world.scale_answer(&target),
                unreachable: scaled.condition("Ready").filter(|ready| ready.is_false() && ready.reason == "ScaledObjectCheckFailed"),
                selector: None,
                target,
            },
            out,
        );
    }
}

fn judge(world: &World, case: &Case, out: &mut Vec<Finding>) {
    let who = case.object.subject();
    if let Some((missing, proof)) = unreachable(world, case) {
        out.push(if missing { target_missing(world, case, &who, proof) } else { not_scalable(world, case, &who, proof) });
        return;
    }
    let empty = case.answer.filter(|answer| selector_of(answer).is_some_and(|selector| selector.is_empty()));
    let is_hpa = who.kind() == "hpa";
    if case.selector.is_some() || (is_hpa && empty.is_some()) {
        out.push(without_selector(world, case, &who, empty));
    }
}

/// Whether the target is missing (true) or there and not scalable (false), with what shows it.
fn unreachable(world: &World, case: &Case) -> Option<(bool, Evidence)> {
    let there = world.objects.get(&case.target).is_some();
    let condition =
        case.unreachable.and_then(|condition| Some((verdict(&condition.message, there)?, condition_proof(case.object, condition))));
    if condition.is_some() {
        return condition;
    }
    if let Some(answer) = case.answer.filter(|answer| answer.status() == Some(404)) {
        let message = serde_json::from_str::<Value>(answer.body()).ok().and_then(|body| Some(body.get("message")?.as_str()?.to_owned()));
        let text = message.unwrap_or_else(|| "the server could not find the requested resource".into());
        return Some((verdict(&text, there).unwrap_or(!there), answer.evidence()));
    }
    (there && NOT_SCALABLE.contains(&case.kind))
        .then(|| (false, Evidence::field(&case.object.subject(), "spec.scaleTargetRef.kind", case.kind)))
}

/// Reads a message: `deployments.apps "x" not found` is a missing object; a resource or kind that the server does not know, or that lacks
/// the subresource, is one that can not be scaled. `None` for anything else (forbidden, timeouts).
fn verdict(message: &str, there: bool) -> Option<bool> {
    let lower = message.to_ascii_lowercase();
    if ["forbidden", "unauthorized", "timeout", "deadline"].iter().any(|word| lower.contains(word)) {
        return None;
    }
    let kind_unknown = [
        "could not find the requested resource",
        "no matches for kind",
        "no kind",
        "unable to determine resource",
        "invalid api version",
        "scale subresource",
        "/scale subresource",
        "does not have a scale",
        "not scalable",
        "isn't scalable",
        "doesn't expose",
    ];
    if kind_unknown.iter().any(|words| lower.contains(words)) {
        return Some(false);
    }
    let gone =
        lower.contains("not found") || lower.contains("doesn't exist") || lower.contains("does not exist") || lower.contains("notfound");
    gone.then_some(!there)
}

fn target_missing(world: &World, case: &Case, who: &Subject, proof: Evidence) -> Finding {
    let target = &case.target;
    let alike: Vec<String> = world
        .objects
        .workloads()
        .filter(|(object, _)| object.meta.namespace == target.namespace() && object.meta.controller().is_none())
        .map(|(object, _)| object.subject().to_string())
        .take(4)
        .collect();
    let finding =
        Finding::new(Code::HpaTargetMissing, who, format!("{who} scales {target}, which does not exist: nothing is scaled"), proof)
            .proof(Evidence::field(who, "spec.scaleTargetRef", target.to_string()).of_uid(&case.object.meta.uid))
            .also(target)
            .remedy(format!("create {target}, or point spec.scaleTargetRef of {who} at what should be scaled (kind, name and apiVersion)"));
    match alike.is_empty() {
        true => finding,
        false => finding.remedy(format!("workloads of this namespace: {}", alike.join(", "))),
    }
}

fn not_scalable(world: &World, case: &Case, who: &Subject, proof: Evidence) -> Finding {
    let target = &case.target;
    let finding = Finding::new(
        Code::ScaleTargetNotScalable,
        who,
        format!("{who} can not scale {target}: its kind has no scale subresource (or not in that apiVersion); {}", stays(world, target)),
        proof,
    )
    .proof(
        Evidence::field(who, "spec.scaleTargetRef", format!("{} of {}", target, case.object.meta.namespace)).of_uid(&case.object.meta.uid),
    )
    .also(target);
    match case.kind {
        "DisaggregatedSet" => finding.remedy(format!("scale DisaggregatedSetRoleScaler {}-<role>, with scaling.mode: External on the role", target.name())),
        _ => finding.remedy(format!("scale an object that has /scale (the workload that {target} makes, if nobody else sets its replicas), or correct the apiVersion")),
    }
}

/// `status.selector` of a Scale; empty where it is absent. `None` where the answer is no Scale.
fn selector_of(answer: &HttpAnswer) -> Option<String> {
    let scale = scale_of(answer)?;
    Some(scale.get("status").and_then(|status| status.get("selector")).and_then(Value::as_str).unwrap_or_default().to_owned())
}

fn without_selector(world: &World, case: &Case, who: &Subject, empty: Option<&HttpAnswer>) -> Finding {
    let target = &case.target;
    let reason = if case.selector.is_some() { " (InvalidSelector)" } else { "" };
    let summary = format!(
        "{who} scales {target}, whose scale subresource (/scale) has an empty status.selector: metrics of pods can not be read, autoscaling is off{reason}, {}",
        stays(world, target)
    );
    let mut proofs = case.selector.map(|condition| condition_proof(case.object, condition)).into_iter().chain(empty.map(|answer| {
        Evidence { value: format!("200, status.selector is empty: {}", crate::model::text::tidy(answer.body())), ..answer.evidence() }
    }));
    let first = proofs.next().unwrap_or_else(|| Evidence::field(who, "spec.scaleTargetRef", target.to_string()));
    Finding::new(Code::ScaleTargetWithoutSelector, target, summary, first)
        .proofs(proofs)
        .also(who)
        .remedy(format!(
            "the owner of the CRD of {target} sets subresources.scale.labelSelectorPath in the CustomResourceDefinition, and its controller fills that status field"
        ))
        .not(format!("change the metrics of {who}: no metric of pods can work without a selector"))
}

#[cfg(test)]
mod tests {
    use super::super::kit::{deployment, hpa};
    use super::verdict;
    use crate::diagnose::testkit::Kit;
    use crate::model::finding::Code;
    use rstest::rstest;
    use serde_json::{Value, json};

    #[rstest]
    #[case("the HPA controller was unable to get the target's current scale: deployments.apps \"a\" not found", false, Some(true))]
    #[case("deployments/scale.apps \"a\" not found", false, Some(true))]
    #[case("the server could not find the requested resource", true, Some(false))]
    #[case("no matches for kind \"Foo\" in group \"x.io\"", false, Some(false))]
    #[case("forbidden: User \"x\" cannot get resource \"foos/scale\"", true, None)]
    #[case("etcd is slow", true, None)]
    fn messages(#[case] message: &str, #[case] there: bool, #[case] missing: Option<bool>) {
        assert_eq!(verdict(message, there), missing);
    }

    fn failing(message: &str) -> Value {
        let mut doc = hpa("h", "True", "", 2);
        doc["status"]["conditions"][0] = json!({"type": "AbleToScale", "status": "False", "reason": "FailedGetScale", "message": message});
        doc
    }

    #[test]
    fn a_target_that_is_not_there() {
        let world = Kit::new().object(failing("deployments.apps \"a\" not found")).build();
        assert_eq!(world.only(Code::HpaTargetMissing).subjects[0].as_str(), "hpa/s/h");
        assert!(world.none(Code::ScaleTargetNotScalable));
        assert!(Kit::new().object(deployment(2)).object(hpa("h", "True", "", 2)).build().none(Code::HpaTargetMissing));
        // Not read is not missing.
        assert!(Kit::new().object(hpa("h", "True", "", 2)).build().none(Code::HpaTargetMissing));
    }

    const SCALE: &str = "/apis/apps/v1/namespaces/s/deployments/a/scale";

    #[rstest]
    #[case(404, r#"{"kind":"Status","message":"the server could not find the requested resource"}"#, true)]
    #[case(403, r#"{"kind":"Status","message":"forbidden"}"#, false)]
    #[case(200, r#"{"kind":"Scale","status":{"selector":"app=a"}}"#, false)]
    fn a_target_without_scale(#[case] status: u16, #[case] body: &str, #[case] fires: bool) {
        let world = Kit::new().object(deployment(2)).object(hpa("h", "True", "", 2)).answer_from("apiserver", SCALE, status, body).build();
        assert_eq!(world.none(Code::ScaleTargetNotScalable), !fires, "{:#?}", world.findings);
        assert!(world.none(Code::HpaTargetMissing));
    }

    #[rstest]
    #[case("InvalidSelector", None, true)]
    #[case("", Some(r#"{"kind":"Scale","status":{"replicas":2}}"#), true)]
    #[case("", Some(r#"{"kind":"Scale","status":{"replicas":2,"selector":"app=a"}}"#), false)]
    #[case("FailedGetPodsMetric", None, false)]
    fn a_scale_without_selector(#[case] reason: &str, #[case] body: Option<&str>, #[case] fires: bool) {
        let kit = Kit::new().object(deployment(2)).object(hpa("h", if reason.is_empty() { "True" } else { "False" }, reason, 0));
        let kit = match body {
            Some(body) => kit.answer_from("apiserver", SCALE, 200, body),
            None => kit,
        };
        let world = kit.build();
        assert_eq!(world.none(Code::ScaleTargetWithoutSelector), !fires, "{:#?}", world.findings);
    }
}
