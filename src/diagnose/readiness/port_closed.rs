//! `ready-but-port-closed`: the pod is Ready by a weak probe (or none), and its serving port does not answer.

use crate::diagnose::support::{engine_pods, ready_proof, refused};
use crate::model::finding::{Code, Finding};
use crate::model::object::pod::{Container, Probe, ProbeKind};
use crate::model::{Evidence, Subject};
use crate::world::World;

pub(super) fn check(world: &World, out: &mut Vec<Finding>) {
    for (replica, object, pod) in engine_pods(world) {
        if replica.pod_ready != Ok(true) {
            continue;
        }
        let Some(answer) = refused(world, &replica.subject) else { continue };
        let claimed = pod
            .spec
            .containers
            .iter()
            .find(|container| answer.port.is_none_or(|port| container.ports.iter().any(|declared| declared.port == port)));
        let Some(container) = claimed.or(pod.spec.containers.first()) else { continue };
        let Some(weak) = weakness(&replica.subject, container, answer.port) else { continue };
        let port = answer.port.map_or_else(|| "its serving port".to_owned(), |port| format!("port {port}"));
        out.push(
            Finding::new(
                Code::ReadyButPortClosed,
                &replica.subject,
                format!("{} is Ready, but {port} refuses connections: {}", replica.subject.name(), weak.value),
                answer.evidence(),
            )
            .proof(ready_proof(object, pod))
            .proof(weak)
            .remedy(format!("give container {} a readiness probe that asks the engine: GET /health on the serving port", container.name))
            .remedy("look at the engine's log: a vLLM port opens only when the model is loaded"),
        );
    }
}

/// Why readiness says nothing about the port, with where it stands. `None` when the readiness probe asks that very port.
fn weakness(subject: &Subject, container: &Container, port: Option<u16>) -> Option<Evidence> {
    let path = format!("spec.containers[{}].readinessProbe", container.name);
    let say = |words: String| Some(Evidence::field(subject, &path, words));
    let Some(Probe { how, .. }) = &container.readiness else {
        return say("it has no readiness probe".into());
    };
    let asked = match how {
        ProbeKind::Exec => return say("its readiness probe runs a command and does not ask the port".into()),
        ProbeKind::Unknown => return say("its readiness probe could not be read".into()),
        ProbeKind::Grpc => return None,
        ProbeKind::Http { port, .. } | ProbeKind::Tcp(port) => port,
    };
    let number =
        asked.parse::<u16>().ok().or_else(|| container.ports.iter().find(|declared| declared.name == *asked).map(|declared| declared.port));
    match (number, port) {
        (Some(asked), Some(port)) if asked != port => say(format!("its readiness probe asks port {asked} and not {port}")),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use crate::diagnose::testkit::Kit;
    use crate::model::finding::Code;
    use rstest::rstest;
    use serde_json::{Value, json};

    #[rstest]
    #[case::no_probe(Value::Null, true)]
    #[case::a_command(json!({"exec": {"command": ["true"]}}), true)]
    #[case::another_port(json!({"tcpSocket": {"port": 9000}}), true)]
    #[case::the_port_by_number(json!({"httpGet": {"path": "/health", "port": 8000}}), false)]
    #[case::the_port_by_name(json!({"httpGet": {"path": "/health", "port": "http"}}), false)]
    fn only_weak_probes(#[case] probe: Value, #[case] fires: bool) {
        let world = Kit::new()
            .pod_with("a", |pod| pod["spec"]["containers"][0]["readinessProbe"] = probe)
            .answer("a", "/health", Err("connection refused"))
            .build();
        assert_eq!(world.none(Code::ReadyButPortClosed), !fires);
    }

    #[test]
    fn silent_when_the_port_answers_or_the_pod_is_not_ready() {
        assert!(Kit::new().pod_with("a", |_| ()).answer("a", "/health", Ok((200, ""))).build().none(Code::ReadyButPortClosed));
        let loading = Kit::new().loading_pod("a").answer("a", "/health", Err("connection refused")).build();
        assert!(loading.none(Code::ReadyButPortClosed));
    }
}
