//! `dead-endpoint-in-rotation`: listed as ready, but the engine refuses, fails or does not answer.

use std::collections::BTreeSet;

use crate::diagnose::support::{engine_pods, label_is_held, last_answer, ready_proof, selector_of};
use crate::model::Subject;
use crate::model::engine::{HttpAnswer, HttpFailure, HttpOutcome};
use crate::model::finding::{Code, Finding};
use crate::model::object::Pod;
use crate::model::object::pod::ProbeKind;
use crate::model::state::EngineState;
use crate::world::World;
use crate::world::listing::served_ports;

/// Routes that answer for the engine itself.
const HEALTH: &[&str] = &["/health", "/health_generate", "/ready", "/ping"];

pub(super) fn check(world: &World, out: &mut Vec<Finding>) {
    for (replica, object, pod) in engine_pods(world) {
        let Ok(engine) = &replica.engine else { continue };
        if replica.listing.listed != Ok(true) {
            continue;
        }
        // Called Ready and in the endpoints, and the newest answer to a health check is none: whether it was ever up does not matter to
        // the request that is sent there.
        let silent = failed_health(world, &replica.subject).filter(|_| {
            replica.pod_ready == Ok(true) && !matches!(engine.state, EngineState::Ready | EngineState::Sleeping(_) | EngineState::Paused)
        });
        if engine.state != EngineState::Dead && silent.is_none() {
            continue;
        }
        let fronts: Vec<&str> = replica.listing.fronts.iter().map(|front| front.as_str()).collect();
        let Some(proof) = silent.map(|answer| answer.evidence()).or_else(|| engine.evidence.first().cloned()) else { continue };
        let finding = Finding::new(
            Code::DeadEndpointInRotation,
            &replica.subject,
            format!("{} is in the ready endpoints of {}, but {}", replica.subject.name(), fronts.join(" and "), engine.why),
            proof,
        )
        .proofs(replica.listing.evidence.iter().cloned())
        .proofs(engine.evidence.iter().cloned())
        .proof(ready_proof(object, pod));
        let finding = match free_label(world, &replica.subject, &replica.listing.fronts) {
            Some(key) => {
                finding.remedy(format!("take it out of selection: change its label {key}, by which {} selects it", fronts.join(" and ")))
            }
            None => finding.not("relabel it: its own workload selects by those labels, so the pod would be orphaned and keep its GPUs"),
        }
        .remedy("replace the replica: add one, wait until it serves, then delete this one");
        out.push(if probe_asks(pod) {
            finding
        } else {
            finding.remedy("give it a readiness probe that asks the engine itself (GET /health on the serving port)")
        });
    }
}

/// A label whose change takes a pod out of all its fronts and leaves it with its workload.
fn free_label(world: &World, pod: &Subject, fronts: &[Subject]) -> Option<String> {
    let mut keys = fronts.iter().map(|front| {
        let selector = selector_of(world, front);
        selector.map(|s| s.labels.keys().cloned().collect::<BTreeSet<String>>()).unwrap_or_default()
    });
    let first = keys.next()?;
    let common = keys.fold(first, |common, other| common.intersection(&other).cloned().collect());
    common.into_iter().find(|key| !label_is_held(world, pod, key))
}

/// Whether a readiness probe asks the engine already: an HTTP request for health on a port that the pod serves.
fn probe_asks(pod: &Pod) -> bool {
    let served = served_ports(pod);
    pod.spec.containers.iter().filter_map(|container| container.readiness.as_ref()).any(|probe| match &probe.how {
        ProbeKind::Http { path, port } => {
            let named = || pod.spec.ports().find(|declared| declared.name == *port).map(|declared| declared.port);
            let number = port.parse().ok().or_else(named);
            HEALTH.contains(&path.split('?').next().unwrap_or_default()) && number.is_some_and(|number| served.contains(&number))
        }
        _ => false,
    })
}

/// The newest answer to a health check, if it is a refusal, silence or a server's error.
fn failed_health<'a>(world: &'a World, subject: &Subject) -> Option<&'a HttpAnswer> {
    let newest = HEALTH.iter().filter_map(|route| last_answer(world, subject, route)).max_by_key(|answer| answer.at)?;
    let failed = match &newest.outcome {
        HttpOutcome::Answered { status, .. } => *status >= 500,
        HttpOutcome::Failed(failure) => matches!(failure, HttpFailure::Refused | HttpFailure::Timeout),
    };
    failed.then_some(newest)
}

#[cfg(test)]
mod tests {
    use crate::diagnose::testkit::Kit;
    use crate::model::finding::Code;

    #[test]
    fn fires_when_a_listed_engine_that_was_up_refuses() {
        let world = Kit::new().serving_pod("a", true).answer("a", "/health", Err("connection refused")).build();
        let finding = world.only(Code::DeadEndpointInRotation);
        assert!(finding.summary.contains("service/s/a"), "{}", finding.summary);
        assert!(finding.evidence.iter().any(|e| e.value.contains("connection refused")), "{:?}", finding.evidence);
    }

    #[rstest::rstest]
    #[case(Err("timeout"))]
    #[case(Ok((503, "")))]
    fn fires_when_a_pod_called_ready_does_not_answer(#[case] answer: Result<(u16, &'static str), &'static str>) {
        let world = Kit::new().serving_pod("a", true).answer("a", "/health", answer).build();
        assert!(!world.none(Code::DeadEndpointInRotation), "{:?}", world.world.replicas);
    }

    #[rstest::rstest]
    #[case::by_a_label_of_its_own("name", None, true, true)]
    #[case::by_the_label_of_its_workload("app", None, false, true)]
    #[case::by_the_label_of_its_group("leaderworkerset.sigs.k8s.io/name", None, false, true)]
    #[case::asked_already("name", Some(("/health", "http")), true, false)]
    #[case::asked_elsewhere("name", Some(("/health", "9000")), true, true)]
    fn remedies_fit_the_pod(#[case] key: &str, #[case] probe: Option<(&str, &str)>, #[case] relabel: bool, #[case] new_probe: bool) {
        let deployment = serde_json::json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d", "namespace": "s"},
            "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "a"}}, "template": {"metadata": {"labels": {"app": "a"}},
                "spec": {"containers": [{"name": "vllm", "image": "x/vllm-openai:1"}]}}}});
        let world = Kit::new()
            .object(deployment)
            .serving_pod("a", true)
            .owned("a", "Deployment", "d")
            .with("pod/s/a", |pod| {
                pod["metadata"]["labels"][key] = "a".into();
                if let Some((path, port)) = probe {
                    pod["spec"]["containers"][0]["readinessProbe"] = serde_json::json!({"httpGet": {"path": path, "port": port}});
                }
            })
            .with("service/s/a", |service| service["spec"]["selector"] = serde_json::json!({key: "a"}))
            .answer("a", "/health", Err("connection refused"))
            .build();
        let finding = world.only(Code::DeadEndpointInRotation);
        let says = |words: &str| finding.remedies.iter().any(|remedy| remedy.contains(words));
        assert_eq!((says(&format!("label {key}")), says("readiness probe")), (relabel, new_probe), "{finding:#?}");
        assert_eq!(finding.not.iter().any(|not| not.contains("relabel")), !relabel);
    }

    #[test]
    fn silent_while_tokens_move() {
        use crate::diagnose::testkit::vllm_page;
        let world = Kit::new()
            .serving_pod("a", true)
            .page("a", -60, &vllm_page(3.0, 0.0, 10.0))
            .page("a", 0, &vllm_page(3.0, 0.0, 500.0))
            .answer("a", "/health", Err("timeout"))
            .build();
        assert!(world.none(Code::DeadEndpointInRotation));
    }

    #[test]
    fn silent_when_it_answers_or_is_not_listed() {
        let fine = Kit::new().serving_pod("a", true).answer("a", "/health", Ok((200, "")));
        assert!(fine.build().none(Code::DeadEndpointInRotation));
        let unlisted = Kit::new().serving_pod("a", false).answer("a", "/health", Err("connection refused"));
        assert!(unlisted.build().none(Code::DeadEndpointInRotation));
    }

    #[test]
    fn fires_on_a_pod_called_ready_whose_engine_has_not_come_up_yet() {
        use crate::model::state::EngineState;
        let ready = |status: &'static str| {
            let mut kit = Kit::new().loading_pod("a").service_listing("a", true, false).answer("a", "/health", Err("connection refused"));
            kit.change("pod/s/a", |pod| pod["status"]["conditions"][3]["status"] = status.into());
            kit.build()
        };
        let world = ready("True");
        let engine = &world.world.engines[&crate::model::Subject::pod("s", "a")];
        assert_ne!(engine.state, EngineState::Dead, "nothing proves that it was ever up");
        assert!(!world.none(Code::DeadEndpointInRotation));
        // A slice that lists a pod that is not Ready is another finding.
        assert!(ready("False").none(Code::DeadEndpointInRotation));
    }
}
