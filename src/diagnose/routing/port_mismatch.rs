//! `port-mismatch`: a pool or Service targets a port that the pod does not open. One finding for all pods of a front with the same ports.

use std::collections::{BTreeMap, BTreeSet};

use crate::diagnose::support::{engine_pods, named, nothing_left, ready_proof};
use crate::model::finding::{Code, Finding, Severity};
use crate::model::object::{Object, Pod, Service};
use crate::model::service::Replica;
use crate::model::{Evidence, Subject};
use crate::world::World;
use crate::world::listing::{port_problem, served_ports};

/// Most pods whose proof is shown; all are among the subjects.
const PODS_SHOWN: usize = 5;

type Entry<'a> = (&'a Replica, &'a Object, &'a Pod);

pub(super) fn check(world: &World, out: &mut Vec<Finding>) {
    let mut groups: BTreeMap<(&Subject, String, String), Vec<Entry>> = BTreeMap::new();
    // Pods to which no front of theirs leads.
    let mut cut: BTreeSet<Subject> = BTreeSet::new();
    for (replica, object, pod) in engine_pods(world) {
        let problems: Vec<_> = replica
            .listing
            .fronts
            .iter()
            .filter_map(|front| problem(world, front, pod).map(|(wanted, served)| (front, wanted, served)))
            .collect();
        if problems.len() == replica.listing.fronts.len() {
            cut.insert(replica.subject.clone());
        }
        for key in problems {
            groups.entry(key).or_default().push((replica, object, pod));
        }
    }
    for ((front, wanted, served), pods) in groups {
        out.extend(finding(world, front, &wanted, &served, &pods).map(|finding| {
            let all_cut = pods.iter().all(|(replica, _, _)| cut.contains(&replica.subject)) && nothing_left(world, &cut);
            if all_cut { finding.severe(Severity::Critical) } else { finding }
        }));
    }
}

fn problem(world: &World, front: &Subject, pod: &Pod) -> Option<(String, String)> {
    match (world.objects.pool(front), world.objects.service(front)) {
        (Some((_, pool)), _) => port_problem(pool, pod),
        (None, Some((_, service))) => service_problem(service, pod),
        _ => None,
    }
}

fn finding(world: &World, front: &Subject, wanted: &str, served: &str, pods: &[Entry]) -> Option<Finding> {
    let names: Vec<&str> = pods.iter().map(|(replica, _, _)| replica.subject.name()).collect();
    let (first, _, _) = pods.first()?;
    let path = if front.kind() == "inferencepool" { "spec.targetPorts" } else { "spec.ports[].targetPort" };
    let mut finding = Finding::new(
        Code::PortMismatch,
        &first.subject,
        format!(
            "{front} sends requests to port {wanted} of {}, which {} {served}",
            named(&names),
            if names.len() == 1 { "serves" } else { "serve" }
        ),
        Evidence::field(front, path, wanted),
    );
    for (replica, _, _) in pods {
        finding = finding.also(&replica.subject);
    }
    for (replica, object, pod) in pods.iter().take(PODS_SHOWN) {
        finding = finding
            .proof(Evidence::field(&replica.subject, "spec.containers[].ports", served).of_uid(&object.meta.uid))
            .proof(ready_proof(object, pod));
    }
    Some(finding.also(front).remedy(remedy(world, front, pods, wanted, served)))
}

/// A target by name is put right by names; one by number by another number.
fn remedy(world: &World, front: &Subject, pods: &[Entry], wanted: &str, served: &str) -> String {
    let service = world.objects.service(front).map(|(_, service)| service);
    let name =
        service.and_then(|service| service.ports.iter().map(|port| port.target.as_str()).find(|target| target.parse::<u16>().is_err()));
    let Some(name) = name else {
        return format!("let the engine listen on {wanted}, or give pods on port {served} a {} of their own", front.kind());
    };
    let ports: BTreeSet<String> = pods
        .iter()
        .flat_map(|(_, _, pod)| pod.spec.ports())
        .map(|port| if port.name.is_empty() { port.port.to_string() } else { format!("{} or {}", port.name, port.port) })
        .collect();
    let there = if ports.is_empty() { served.to_owned() } else { ports.into_iter().collect::<Vec<_>>().join(", ") };
    format!("name the container port {name} in the template of the workload, or point targetPort of {front} to {there}")
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
    use crate::model::finding::{Code, Severity};
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
    fn a_wrong_name_is_put_right_by_names() {
        let finding =
            Kit::new().pod_with("a", |_| ()).pod_with("b", |_| ()).object(service(json!("grpc"))).build().only(Code::PortMismatch);
        assert!(
            finding.remedies[0].contains("name the container port grpc") && finding.remedies[0].contains("to http or 8000"),
            "{finding:#?}"
        );
        assert!(!finding.remedies[0].contains("listen"), "{finding:#?}");
    }

    #[test]
    fn one_finding_for_all_pods_of_a_front_and_critical_when_none_is_left() {
        let finding = Kit::new().pod_with("a", |_| ()).pod_with("b", |_| ()).object(pool(8300)).build().only(Code::PortMismatch);
        let subjects: Vec<&str> = finding.subjects.iter().map(|s| s.as_str()).collect();
        assert_eq!(subjects, ["pod/s/a", "pod/s/b", "inferencepool/s/p"]);
        assert_eq!(finding.severity, Severity::Critical);
        let other = |pod: &mut Value| pod["spec"]["containers"][0]["ports"] = json!([{"containerPort": 8300}]);
        let some = Kit::new().pod_with("a", |_| ()).pod_with("b", other).object(pool(8300)).build().only(Code::PortMismatch);
        assert_eq!((some.severity, some.subjects.len()), (Severity::Warning, 2));
    }

    #[test]
    fn a_pod_that_declares_no_port_may_open_any() {
        let world = Kit::new().pod_with("a", |pod| pod["spec"]["containers"][0]["ports"] = json!([])).object(pool(8300)).build();
        assert!(world.none(Code::PortMismatch));
    }

    #[test]
    fn a_port_given_as_a_flag_counts() {
        let world =
            Kit::new().pod_with("a", |pod| pod["spec"]["containers"][0]["args"] = json!(["--port", "8300"])).object(pool(8300)).build();
        assert!(world.none(Code::PortMismatch));
    }

    #[test]
    fn a_service_before_a_pod_that_declares_no_port_is_not_judged() {
        let world = Kit::new().pod_with("a", |pod| pod["spec"]["containers"][0]["ports"] = json!([])).object(service(json!(8300))).build();
        assert!(world.none(Code::PortMismatch));
    }
}
