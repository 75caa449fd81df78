//! `port-mismatch`: a pool or Service targets a port that the pod does not open.

use std::collections::BTreeSet;

use crate::diagnose::support::{engine_pods, ready_proof};
use crate::model::finding::{Code, Finding};
use crate::model::object::{Object, Pod, Service};
use crate::model::{Evidence, Subject};
use crate::world::World;
use crate::world::listing::{port_problem, served_ports};

pub(super) fn check(world: &World, out: &mut Vec<Finding>) {
    for (replica, object, pod) in engine_pods(world) {
        for front in &replica.listing.fronts {
            let problem = match (world.objects.pool(front), world.objects.service(front)) {
                (Some((_, pool)), _) => port_problem(pool, pod).map(|(wanted, served)| (wanted, served, "spec.targetPorts")),
                (None, Some((_, service))) => service_problem(service, pod).map(|(wanted, served)| (wanted, served, "spec.ports[].targetPort")),
                _ => None,
            };
            if let Some((wanted, served, path)) = problem {
                out.push(finding(&replica.subject, object, pod, front, &wanted, &served, path));
            }
        }
    }
}

fn finding(subject: &Subject, object: &Object, pod: &Pod, front: &Subject, wanted: &str, served: &str, path: &str) -> Finding {
    Finding::new(
        Code::PortMismatch,
        subject,
        format!("{front} sends requests to port {wanted} of {}, which serves {served}", subject.name()),
        Evidence::field(front, path, wanted),
    )
    .also(front)
    .proof(Evidence::field(subject, "spec.containers[].ports", served).of_uid(&object.meta.uid))
    .proof(ready_proof(object, pod))
    .remedy(format!("let the engine listen on {wanted}, or give pods on port {served} a {} of their own", front.kind()))
}

/// What a Service asks for and what the pod opens, when no port of the Service leads to one of the pod.
fn service_problem(service: &Service, pod: &Pod) -> Option<(String, String)> {
    let served = served_ports(pod);
    let names: BTreeSet<&str> = pod.spec.ports().map(|port| port.name.as_str()).filter(|name| !name.is_empty()).collect();
    if service.ports.is_empty() || served.is_empty() {
        return None;
    }
    let leads = service.ports.iter().any(|port| match port.target.parse::<u16>() {
        Ok(number) => served.contains(&number),
        Err(_) => names.contains(port.target.as_str()),
    });
    if leads {
        return None;
    }
    let wanted: Vec<&str> = service.ports.iter().map(|port| port.target.as_str()).collect();
    let mut opened: Vec<String> = served.iter().map(u16::to_string).collect();
    // A name that no container port has is best told beside the names that there are.
    if service.ports.iter().any(|port| port.target.parse::<u16>().is_err()) && !names.is_empty() {
        opened.push(format!("named {}", names.into_iter().collect::<Vec<_>>().join(", ")));
    }
    Some((wanted.join(", "), opened.join(", ")))
}

#[cfg(test)]
mod tests {
    use crate::diagnose::testkit::Kit;
    use crate::model::finding::Code;
    use rstest::rstest;
    use serde_json::{Value, json};

    fn pool(port: u16) -> Value {
        json!({"apiVersion": "inference.networking.k8s.io/v1", "kind": "InferencePool", "metadata": {"name": "p", "namespace": "s"},
            "spec": {"selector": {"matchLabels": {"app": "a"}}, "targetPorts": [{"number": port}]}})
    }

    fn service(target: Value) -> Value {
        json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "v", "namespace": "s"},
            "spec": {"selector": {"app": "a"}, "ports": [{"port": 80, "targetPort": target}]}})
    }

    #[rstest]
    #[case::pool(pool(8300), true)]
    #[case::pool_right(pool(8000), false)]
    #[case::service(service(json!(8300)), true)]
    #[case::service_right(service(json!(8000)), false)]
    #[case::service_by_name(service(json!("http")), false)]
    #[case::service_by_a_wrong_name(service(json!("https")), true)]
    fn targets(#[case] front: Value, #[case] fires: bool) {
        let world = Kit::new().pod_with("a", |_| ()).object(front).build();
        assert_eq!(world.none(Code::PortMismatch), !fires, "{:?}", world.findings);
    }

    #[test]
    fn a_pod_that_declares_no_port_may_open_any() {
        let world = Kit::new()
            .pod_with("a", |pod| pod["spec"]["containers"][0]["ports"] = json!([]))
            .object(pool(8300))
            .build();
        assert!(world.none(Code::PortMismatch));
    }

    #[test]
    fn a_port_given_as_a_flag_counts() {
        let world = Kit::new()
            .pod_with("a", |pod| pod["spec"]["containers"][0]["args"] = json!(["--port", "8300"]))
            .object(pool(8300))
            .build();
        assert!(world.none(Code::PortMismatch));
    }
}
