//! `ready-not-listed`: the pod is Ready, and no ready endpoint of its Service or pool is it.

use crate::diagnose::support::{engine_pods, ready_proof};
use crate::model::Subject;
use crate::model::finding::{Code, Finding};
use crate::world::World;
use crate::world::listing::port_problem;

pub(super) fn check(world: &World, out: &mut Vec<Finding>) {
    for (replica, object, pod) in engine_pods(world) {
        if replica.pod_ready != Ok(true) || replica.listing.listed != Ok(false) {
            continue;
        }
        // Where the port is what keeps it out, that is a finding of its own.
        let by_port = replica
            .listing
            .fronts
            .iter()
            .filter_map(|front| world.objects.pool(front))
            .any(|(_, pool)| port_problem(pool, pod).is_some());
        if by_port {
            continue;
        }
        let selected = !replica.listing.fronts.is_empty();
        let fronts: Vec<Subject> = match selected {
            true => replica.listing.fronts.clone(),
            false => replica.listing.evidence.iter().map(|e| e.object.clone()).filter(|front| *front != replica.subject).collect(),
        };
        let mut finding = Finding::new(
            Code::ReadyNotListed,
            &replica.subject,
            format!("{} is Ready, but gets no request: {}", replica.subject.name(), replica.listing.why),
            ready_proof(object, pod),
        )
        .proofs(replica.listing.evidence.iter().cloned());
        for front in &fronts {
            finding = finding.also(front);
        }
        out.push(if selected {
            finding.remedy("look at the controller that writes the EndpointSlices (managed-by label): the selector matches, the endpoint is missing or not ready")
        } else {
            finding
                .remedy(format!("put the missing label on pod {} (and on the template of its workload, so that its successors have it)", replica.subject.name()))
                .remedy("or correct the selector, if the label was renamed on purpose")
        });
    }
}

#[cfg(test)]
mod tests {
    use crate::diagnose::testkit::Kit;
    use crate::model::finding::Code;
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

    #[test]
    fn silent_when_listed_or_when_nobody_selects_anything() {
        assert!(Kit::new().serving_pod("a", true).build().none(Code::ReadyNotListed));
        assert!(Kit::new().pod_with("a", |_| ()).build().none(Code::ReadyNotListed));
        assert!(Kit::new().loading_pod("a").build().none(Code::ReadyNotListed));
    }
}
