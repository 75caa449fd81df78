//! `epp-without-leader`: the pickers of a pool elect a leader, and none leads.
//!
//! A standby that is not Ready is well; only when nobody holds the Lease, and nobody is Ready, does no request get picked.

use super::proof::mode_words;
use crate::model::finding::{Code, Finding};
use crate::model::{Evidence, Place, time};
use crate::world::World;

pub(super) fn check(world: &World, out: &mut Vec<Finding>) {
    for (subject, picker) in &world.pickers {
        let (Some(election), Some((_, pool))) = (&picker.election, world.objects.pool(subject)) else { continue };
        let Err(unknown) = &picker.leader else { continue };
        // Without any pod there is nobody who could lead: that is a router that is down, and told as such.
        if !picker.ready.is_empty() || picker.pods.is_empty() {
            continue;
        }
        // Nothing but pods that are not Ready: a Lease that was not seen may be held by one that has yet to get Ready.
        let proof = match &picker.lease {
            Some(lease) => lease.evidence(),
            None => match picker.absent.as_ref().and_then(|absent| absent.first()) {
                Some(proof) => proof.clone(),
                None => continue,
            },
        };
        let lost = match picker.lease.as_ref() {
            Some(lease) if lease.holder.is_empty() => format!("{} has no holder", lease.subject),
            Some(lease) => match (lease.expired_s, lease.renewed) {
                (Some(past), Some(at)) => {
                    format!("{} was last renewed at {at} by {} and ran out {} ago", lease.subject, lease.holder_pod(), time::span(past))
                }
                _ => unknown.to_string(),
            },
            None => unknown.to_string(),
        };
        let mut finding = Finding::new(
            Code::EppWithoutLeader,
            subject,
            format!(
                "no endpoint picker of the pool {} leads: {lost}, and none of its {} is Ready; {}",
                subject.name(),
                crate::diagnose::support::counted(picker.pods.len(), "pod"),
                mode_words(pool)
            ),
            proof,
        )
        .also(&picker.service)
        .proof(election.clone());
        for workload in &picker.workloads {
            finding = finding.also(workload);
        }
        for (object, pod) in picker.pods.iter().filter_map(|pod| world.objects.pod(pod)).take(4) {
            if let Some(ready) = pod.condition("Ready") {
                finding = finding.proof(
                    Evidence::new(&object.subject(), Place::Condition("Ready".into()), ready.shown(), ready.since).of_uid(&object.meta.uid),
                );
            }
        }
        out.push(
            finding
                .remedy("look why no replica takes the Lease: its rights on leases in this namespace, its log, its connection to the API server")
                .remedy("delete the pod that held the Lease last if it hangs: a standby takes over")
                .not("take the standbys' Ready=False for the fault: only a leader is ever Ready"),
        );
    }
}

#[cfg(test)]
mod tests {
    use crate::diagnose::testkit::Kit;
    use crate::model::finding::Code;
    use rstest::rstest;
    use serde_json::{Value, json};

    fn kit(ready: bool) -> Kit {
        Kit::new().pod_with("a", |_| ()).pool("p", |_| ()).epp("epp-1", ready, |_| ()).epp("epp-2", false, |_| ())
    }

    fn lease(holder: &str, renewed: &str) -> Value {
        json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "epp-s-p.llm-d.ai", "namespace": "s"},
            "spec": {"holderIdentity": holder, "leaseDurationSeconds": 15, "renewTime": renewed}})
    }

    #[rstest]
    #[case::held("epp-1_x", "2026-11-12T09:59:58Z", true, false)]
    #[case::ran_out("epp-1_x", "2026-11-12T09:50:00Z", false, true)]
    #[case::no_holder("", "2026-11-12T09:59:58Z", false, true)]
    #[case::held_by_one_that_is_gone("epp-9_x", "2026-11-12T09:59:50Z", false, true)]
    #[case::held_and_on_its_way("epp-1_x", "2026-11-12T09:59:58Z", false, false)]
    fn by_lease(#[case] holder: &str, #[case] renewed: &str, #[case] ready: bool, #[case] fires: bool) {
        let world = kit(ready).object(lease(holder, renewed)).build();
        assert_eq!(!world.none(Code::EppWithoutLeader), fires, "{:?}", world.findings);
    }

    #[test]
    fn silent_where_nobody_elects() {
        assert!(kit(false).build().none(Code::EppWithoutLeader));
    }

    #[test]
    fn standbys_are_well_and_the_workload_serves() {
        use crate::model::Subject;
        use crate::model::state::{ReplicaState, WorkloadState};
        let deployment = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "epp", "namespace": "s"},
            "spec": {"replicas": 2, "selector": {"matchLabels": {"app": "epp"}}, "template": {"metadata": {"labels": {"app": "epp"}}}},
            "status": {"replicas": 2, "updatedReplicas": 2, "readyReplicas": 1, "conditions": [
                {"type": "Available", "status": "False", "reason": "MinimumReplicasUnavailable"},
                {"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded"}]}});
        let world = kit(true)
            .object(lease("epp-1_x", "2026-11-12T09:59:58Z"))
            .object(deployment)
            .owned("epp-1", "Deployment", "epp")
            .owned("epp-2", "Deployment", "epp")
            .build()
            .world;
        let view = &world.workloads[&Subject::object("deployment", "s", "epp")];
        assert_eq!(view.state, WorkloadState::Serving, "{view:?}");
        assert!(view.why.iter().any(|why| why.contains("ProgressDeadlineExceeded")), "{:?}", view.why);
        assert_eq!(world.replicas[&Subject::pod("s", "epp-2")].state, ReplicaState::EngineReady);
    }
}
