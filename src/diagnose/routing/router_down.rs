//! `router-down`: nobody is there to pick an endpoint for the pool's requests.
//!
//! What the proxy was seen to do counts before what the failure mode promises: FailOpen has failed in the field while leaders changed
//! (llm-d-router #2051), and a proxy may pass what FailClose should have dropped.

use crate::model::finding::{Code, Finding, Severity};
use crate::model::object::InferencePool;
use crate::model::{Evidence, Subject};
use crate::world::World;
use crate::world::epp::{Picker, meets};
use crate::world::proxy::Passing;

pub(super) fn check(world: &World, out: &mut Vec<Finding>) {
    for (subject, picker) in &world.pickers {
        let (Some(absent), Some((_, pool))) = (&picker.absent, world.objects.pool(subject)) else { continue };
        let Some(proof) = absent.first() else { continue };
        let mut finding = Finding::new(Code::RouterDown, subject, String::new(), proof.clone())
            .also(&picker.service)
            .proofs(absent.iter().cloned())
            .proof(Evidence::field(subject, "spec.endpointPickerRef.failureMode", pool.failure_mode.clone()));
        for workload in &picker.workloads {
            finding = finding.also(workload);
        }
        let why = why(world, picker);
        let (now, severity) = requests(world, subject, picker, pool, &mut finding);
        finding.summary = format!("no router of the pool {} answers: {why}; {now}", subject.name());
        out.push(advised(world, picker, finding.severe(severity)));
    }
}

/// Why nobody answers, from what its pods do.
fn why(world: &World, picker: &Picker) -> String {
    let asked_none =
        picker.workloads.iter().find(|workload| world.objects.workload(workload).is_some_and(|(_, body)| body.replicas == Ok(0)));
    match (picker.pods.as_slice(), asked_none) {
        ([], Some(workload)) => format!("{workload} asks for 0 replicas"),
        ([], None) => format!("{} has no ready endpoint and no pod of it is seen", picker.service),
        (pods, _) => {
            let doing: Vec<String> = pods
                .iter()
                .take(3)
                .map(|pod| {
                    let state = world.replicas.get(pod).map_or_else(
                        || "not Ready".to_owned(),
                        |replica| match replica.why.first() {
                            Some(why) => format!("{} ({why})", replica.state),
                            None => replica.state.to_string(),
                        },
                    );
                    format!("{} is {state}", pod.name())
                })
                .collect();
            format!("none of its {} is Ready, {}", crate::diagnose::support::counted(pods.len(), "pod"), doing.join(", "))
        }
    }
}

/// What happens to requests now, and how bad that is.
fn requests(world: &World, subject: &Subject, picker: &Picker, pool: &InferencePool, finding: &mut Finding) -> (String, Severity) {
    let mode = pool.failure_mode.as_str();
    match meets(&world.objects, &world.answers, subject, picker) {
        Passing::Passes(answer) => {
            finding.evidence.push(answer.evidence());
            let how = if mode == "FailOpen" { "the gateway picks any endpoint by itself" } else { "the proxy passes them all the same" };
            let words =
                format!("requests pass ({} at {}): {how}, without regard to load and cache ({mode})", answer.outcome_word(), answer.at);
            (words, Severity::Warning)
        }
        Passing::Fails(answer) => {
            finding.evidence.push(answer.evidence());
            let although = if mode == "FailOpen" { ", although its failure mode is FailOpen" } else { " (FailClose)" };
            (format!("requests fail: the proxy answered {} at {}{although}", answer.outcome_word(), answer.at), Severity::Critical)
        }
        Passing::Unseen if mode == "FailOpen" => (
            "its failure mode is FailOpen, which promises that the gateway picks any endpoint by itself; no answer of the proxy was seen"
                .into(),
            Severity::Critical,
        ),
        Passing::Unseen => (format!("its failure mode is {mode}: the gateway drops the requests"), Severity::Critical),
    }
}

fn advised(world: &World, picker: &Picker, finding: Finding) -> Finding {
    let asked_none =
        picker.workloads.iter().find(|workload| world.objects.workload(workload).is_some_and(|(_, body)| body.replicas == Ok(0)));
    let finding = match asked_none {
        Some(workload) => finding.remedy(format!("scale {workload} to 1 or more")),
        None => finding.remedy("bring a router pod up: read its log and its last exit, its config and its rights"),
    };
    finding
        .remedy("until then failureMode FailOpen on the pool lets the gateway pick endpoints by itself")
        .not("restart or scale the engines: they are not the cause")
}

#[cfg(test)]
mod tests {
    use crate::diagnose::testkit::Kit;
    use crate::model::finding::{Code, Severity};
    use rstest::rstest;
    use serde_json::{Value, json};

    fn kit(mode: &str, ready: bool) -> Kit {
        Kit::new()
            .pod_with("a", |_| ())
            .pool("p", |pool| pool["spec"]["endpointPickerRef"]["failureMode"] = mode.into())
            .route("r", "p", &[("Accepted", "True"), ("ResolvedRefs", "True")])
            .epp("epp-1", ready, |_| ())
    }

    #[rstest]
    #[case::open_and_passing("FailOpen", Some(200), Severity::Warning, "pass")]
    #[case::open_and_failing("FailOpen", Some(503), Severity::Critical, "although")]
    #[case::close_and_passing("FailClose", Some(200), Severity::Warning, "pass")]
    #[case::close_and_failing("FailClose", Some(503), Severity::Critical, "503")]
    #[case::open_and_unseen("FailOpen", None, Severity::Critical, "promises")]
    #[case::close_and_unseen("FailClose", None, Severity::Critical, "drops")]
    fn what_is_seen_counts_before_the_promise(
        #[case] mode: &str,
        #[case] status: Option<u16>,
        #[case] severity: Severity,
        #[case] word: &str,
    ) {
        let mut kit = kit(mode, false);
        if let Some(status) = status {
            kit = kit.proxy_answer(-2, "/v1/chat/completions", status);
        }
        let finding = kit.build().only(Code::RouterDown);
        assert_eq!(finding.severity, severity);
        assert!(finding.summary.contains(word), "{}", finding.summary);
    }

    #[test]
    fn an_answer_from_before_it_went_down_says_nothing() {
        let finding = kit("FailClose", false).proxy_answer(-7200, "/v1/chat/completions", 200).build().only(Code::RouterDown);
        assert_eq!(finding.severity, Severity::Critical);
    }

    #[test]
    fn fires_at_zero_replicas_without_any_pod() {
        let epp: Value = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "epp", "namespace": "s"},
            "spec": {"replicas": 0, "selector": {"matchLabels": {"app": "epp"}}, "template": {"metadata": {"labels": {"app": "epp"}}}}});
        let finding = Kit::new().pod_with("a", |_| ()).pool("p", |_| ()).epp_service().object(epp).build().only(Code::RouterDown);
        assert!(finding.summary.contains("0 replicas"), "{}", finding.summary);
        assert!(finding.subjects.iter().any(|subject| subject.as_str() == "deployment/s/epp"));
    }

    #[test]
    fn silent_when_one_answers_or_nothing_is_known_of_it() {
        assert!(kit("FailClose", true).build().none(Code::RouterDown));
        assert!(Kit::new().pool("p", |_| ()).build().none(Code::RouterDown));
        assert!(Kit::new().pool("p", |_| ()).epp_service().build().none(Code::RouterDown));
    }

    #[test]
    fn engines_behind_it_are_not_called_serving_where_requests_fail() {
        use crate::model::Subject;
        use crate::model::state::ReplicaState;
        let state = |kit: Kit| kit.build().world.replicas[&Subject::pod("s", "a")].state;
        assert_eq!(state(kit("FailClose", false)), ReplicaState::NotRouted);
        assert_eq!(state(kit("FailOpen", false)), ReplicaState::Serving);
        assert_eq!(state(kit("FailOpen", false).proxy_answer(-2, "/v1/chat/completions", 503)), ReplicaState::NotRouted);
    }
}
