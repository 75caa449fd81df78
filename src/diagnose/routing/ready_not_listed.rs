//! `ready-not-listed`: the pod is Ready, and no ready endpoint of its Service or pool is it. One finding for all pods that the same
//! fronts leave out for the same reason.

use std::collections::{BTreeMap, BTreeSet};

use crate::diagnose::support::{engine_pods, label_is_held, named, nothing_left, ready_proof, selector_of};
use crate::model::finding::{Code, Finding, Severity};
use crate::model::object::{Object, Pod};
use crate::model::service::Replica;
use crate::model::{Evidence, Subject};
use crate::world::World;
use crate::world::listing::port_problem;

/// Most pods whose proof is shown; all are among the subjects.
const PODS_SHOWN: usize = 5;

type Entry<'a> = (&'a Replica, &'a Object, &'a Pod);

pub(super) fn check(world: &World, out: &mut Vec<Finding>) {
    let mut groups: BTreeMap<(Vec<Subject>, bool, &str), Vec<Entry>> = BTreeMap::new();
    for (replica, object, pod) in engine_pods(world) {
        if replica.pod_ready != Ok(true) || replica.listing.listed != Ok(false) {
            continue;
        }
        // Where the port is what keeps it out, that is a finding of its own.
        let by_port =
            replica.listing.fronts.iter().filter_map(|front| world.objects.pool(front)).any(|(_, pool)| port_problem(pool, pod).is_some());
        if by_port {
            continue;
        }
        let selected = !replica.listing.fronts.is_empty();
        let fronts: Vec<Subject> = match selected {
            true => replica.listing.fronts.clone(),
            false => replica.listing.evidence.iter().map(|e| e.object.clone()).filter(|front| *front != replica.subject).collect(),
        };
        groups.entry((fronts, selected, replica.listing.why.as_str())).or_default().push((replica, object, pod));
    }
    for ((fronts, selected, why), pods) in groups {
        out.extend(finding(world, &fronts, selected, why, &pods));
    }
}

fn finding(world: &World, fronts: &[Subject], selected: bool, why: &str, pods: &[Entry]) -> Option<Finding> {
    let (first, object, pod) = pods.first()?;
    let names: Vec<&str> = pods.iter().map(|(replica, _, _)| replica.subject.name()).collect();
    let says = match pods.len() {
        1 => format!("{} is Ready, but gets no request: {why}", named(&names)),
        n => format!("{n} Ready pods get no request ({}): {why}", named(&names)),
    };
    let mut finding = Finding::new(Code::ReadyNotListed, &first.subject, says, ready_proof(object, pod));
    for (replica, _, _) in pods {
        finding = finding.also(&replica.subject);
    }
    for (replica, object, pod) in pods.iter().take(PODS_SHOWN) {
        finding = finding.proof(ready_proof(object, pod));
        finding = match selected {
            true => finding.proofs(replica.listing.evidence.iter().cloned()),
            // Only the labels that are asked for: the others say nothing here.
            false => {
                fronts.iter().filter_map(|front| Some((front, selector_of(world, front)?))).fold(finding, |finding, (front, selector)| {
                    finding.proof(Evidence::field(front, "spec.selector", selector.to_string())).proof(
                        Evidence::field(&replica.subject, "metadata.labels", selector.asked_of(&object.meta.labels))
                            .of_uid(&object.meta.uid),
                    )
                })
            }
        };
    }
    for front in fronts {
        finding = finding.also(front);
    }
    let subjects: BTreeSet<Subject> = pods.iter().map(|(replica, _, _)| replica.subject.clone()).collect();
    if nothing_left(world, &subjects) {
        finding = finding.severe(Severity::Critical);
    }
    Some(match selected {
        true => finding.remedy(
            "look at the controller that writes the EndpointSlices (managed-by label): the selector matches, the endpoint is missing or not ready",
        ),
        false => by_labels(world, fronts, first, object, &names, finding),
    })
}

/// What may be done where a selector asks for labels that the pods lack.
fn by_labels(world: &World, fronts: &[Subject], replica: &Replica, object: &Object, names: &[&str], finding: Finding) -> Finding {
    let lacks = |key: &String, value: &String| object.meta.labels.get(key) != Some(value);
    let asked: Vec<(&Subject, &String, &String)> = fronts
        .iter()
        .filter_map(|front| Some((front, selector_of(world, front)?)))
        .flat_map(|(front, selector)| selector.labels.iter().map(move |(key, value)| (front, key, value)))
        .filter(|(_, key, value)| lacks(key, value))
        .collect();
    let held: Vec<_> = asked.iter().filter(|(_, key, _)| label_is_held(world, &replica.subject, key)).collect();
    if held.is_empty() {
        return finding
            .remedy(format!("put the missing label on {} (and on the template of its workload, so that successors have it)", named(names)))
            .remedy("or correct the selector, if the label was renamed on purpose");
    }
    let mut fronts: Vec<&Subject> = held.iter().map(|(front, _, _)| *front).collect();
    fronts.dedup();
    let has = |key: &String| object.meta.labels.get(key).map_or_else(|| format!("no label {key}"), |value| format!("{key}={value}"));
    let fix: Vec<String> = held.iter().map(|(_, key, value)| format!("it asks for {key}={value}, the pods have {}", has(key))).collect();
    let front = fronts.iter().map(|front| front.as_str()).collect::<Vec<_>>().join(" and ");
    finding.remedy(format!("correct the selector of {front}: {}", fix.join("; "))).not(format!(
        "change the label {} on the pods: their own workload selects by it, so it would lose them and make others",
        held.iter().map(|(_, key, _)| key.as_str()).collect::<Vec<_>>().join(" and ")
    ))
}

#[cfg(test)]
mod tests {
    use crate::diagnose::testkit::Kit;
    use crate::model::finding::{Code, Severity};
    use serde_json::json;

    #[test]
    fn fires_when_the_slice_lacks_it() {
        let finding = Kit::new().serving_pod("a", true).serving_pod("b", false).build().only(Code::ReadyNotListed);
        assert!(finding.subjects.iter().any(|s| s.as_str() == "pod/s/b"));
    }

    #[test]
    fn fires_when_the_selector_asks_for_a_label_that_it_lacks() {
        let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a", "namespace": "s"},
            "spec": {"selector": {"app": "a", "track": "stable"}, "ports": [{"port": 8000}]}});
        let world = Kit::new().pod_with("a", |pod| pod["metadata"]["labels"] = json!({"app": "a"})).object(service).build();
        let finding = world.only(Code::ReadyNotListed);
        assert!(finding.summary.contains("track=stable"), "{}", finding.summary);
        assert!(finding.remedies.iter().any(|r| r.contains("label")));
    }

    /// Two Ready pods `app=llama` of a Deployment that selects by `app`, and a Service with a typo.
    fn typo() -> Kit {
        let deployment = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "llama", "namespace": "s"},
            "spec": {"replicas": 2, "selector": {"matchLabels": {"app": "llama"}}, "template": {"metadata": {"labels": {"app": "llama"}},
                "spec": {"containers": [{"name": "vllm", "image": "x/vllm-openai:1"}]}}}});
        let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "llama", "namespace": "s"},
            "spec": {"selector": {"app": "lama"}, "ports": [{"port": 8000}]}});
        let labels = |pod: &mut serde_json::Value| pod["metadata"]["labels"] = json!({"app": "llama", "token": "s3cr3t"});
        Kit::new().object(deployment).object(service).pod_with("a", labels).pod_with("b", labels).owned("a", "Deployment", "llama").owned(
            "b",
            "Deployment",
            "llama",
        )
    }

    #[test]
    fn a_typo_in_the_selector_is_one_critical_finding_that_tells_nobody_to_relabel() {
        let finding = typo().build().only(Code::ReadyNotListed);
        let subjects: Vec<&str> = finding.subjects.iter().map(|s| s.as_str()).collect();
        assert_eq!(subjects, ["pod/s/a", "pod/s/b", "service/s/llama"]);
        assert_eq!(finding.severity, Severity::Critical);
        assert!(
            finding.remedies.iter().all(|r| r.starts_with("correct the selector of service/s/llama: it asks for app=lama")),
            "{finding:#?}"
        );
        assert!(finding.not.iter().any(|not| not.contains("label app")), "{finding:#?}");
        assert!(finding.evidence.iter().all(|e| !e.value.contains("token")), "{finding:#?}");
    }

    #[test]
    fn where_others_of_the_role_are_listed_it_is_a_warning() {
        let slice = json!({"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
            "metadata": {"name": "v-1", "namespace": "s", "labels": {"kubernetes.io/service-name": "v"}},
            "endpoints": [{"addresses": ["10.0.0.1"], "conditions": {"ready": true}, "targetRef": {"kind": "Pod", "name": "a"}}]});
        let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "v", "namespace": "s"},
            "spec": {"selector": {"app": "llama"}, "ports": [{"port": 8000}]}});
        let finding = typo().with("service/s/llama", |object| *object = service).object(slice).build().only(Code::ReadyNotListed);
        assert_eq!((finding.severity, finding.subjects[0].as_str()), (Severity::Warning, "pod/s/b"));
    }

    #[test]
    fn silent_when_listed_or_when_nobody_selects_anything() {
        assert!(Kit::new().serving_pod("a", true).build().none(Code::ReadyNotListed));
        assert!(Kit::new().pod_with("a", |_| ()).build().none(Code::ReadyNotListed));
        assert!(Kit::new().loading_pod("a").build().none(Code::ReadyNotListed));
    }

    #[test]
    fn silent_on_a_pod_that_is_not_ready_and_on_one_that_only_the_port_keeps_out() {
        assert!(Kit::new().loading_pod("a").service_listing("a", false, false).build().none(Code::ReadyNotListed));
        let pool = json!({"apiVersion": "inference.networking.k8s.io/v1", "kind": "InferencePool", "metadata": {"name": "p", "namespace": "s"},
            "spec": {"selector": {"matchLabels": {"app": "a"}}, "targetPorts": [{"number": 9999}]}});
        assert!(Kit::new().pod_with("a", |_| ()).object(pool).build().none(Code::ReadyNotListed));
    }
}
