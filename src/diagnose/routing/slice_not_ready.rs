//! `slice-includes-not-ready`: an EndpointSlice says ready for pods that are not.

use crate::diagnose::support::ready_proof;
use crate::model::finding::{Code, Finding};
use crate::model::{Evidence, Subject};
use crate::world::World;

pub(super) fn check(world: &World, out: &mut Vec<Finding>) {
    for (object, slice) in world.objects.slices() {
        let namespace = &object.meta.namespace;
        let service = Subject::object("service", namespace, &slice.service);
        let front = world.objects.service(&service).map(|(_, service)| service);
        let published = front.is_some_and(|service| service.publish_not_ready);
        // Members of a group find each other through a headless Service that publishes everybody on purpose; where requests come in
        // through another front, nobody takes it for readiness.
        let discovery = front.is_some_and(|service| service.headless && service.publish_not_ready);
        let wrong: Vec<_> = slice
            .endpoints
            .iter()
            .filter(|endpoint| endpoint.ready)
            .filter_map(|endpoint| world.objects.pod(&Subject::pod(namespace, endpoint.pod.as_deref()?)))
            .filter(|(_, pod)| pod.condition("Ready").is_some_and(|ready| !ready.is_true()))
            .filter(|(pod, _)| {
                let fronts = world.replicas.get(&pod.subject()).map_or(0, |replica| replica.listing.fronts.len());
                !(discovery && fronts > 0 && !world.replicas.get(&pod.subject()).is_some_and(|r| r.listing.fronts.contains(&service)))
            })
            .collect();
        let Some((first, _)) = wrong.first() else { continue };
        let subject = object.subject();
        let names: Vec<&str> = wrong.iter().take(3).map(|(pod, _)| pod.meta.name.as_str()).collect();
        let (cause, proof): (String, Option<Evidence>) = if published {
            (
                format!("{service} has publishNotReadyAddresses: true"),
                Some(Evidence::field(&service, "spec.publishNotReadyAddresses", "true")),
            )
        } else if slice.managed_by.is_empty() || slice.managed_by == "endpointslice-controller.k8s.io" {
            // What the slice and the pods' Ready conditions say is proof enough: nothing tells when the slice was written.
            ("the slice is behind its pods".to_owned(), None)
        } else {
            (
                format!("it is written by {}", slice.managed_by),
                Some(Evidence::field(&subject, "metadata.labels[endpointslice.kubernetes.io/managed-by]", slice.managed_by.clone())),
            )
        };
        let mut finding = Finding::new(
            Code::SliceIncludesNotReady,
            &subject,
            format!(
                "{subject} lists {} as ready, and {}: {cause}",
                names.join(", "),
                if wrong.len() == 1 { "that pod is not Ready" } else { "those pods are not Ready" }
            ),
            Evidence::field(&subject, &format!("endpoints[{}].conditions.ready", first.meta.name), "true"),
        )
        .proofs(
            wrong
                .iter()
                .skip(1)
                .take(2)
                .map(|(pod, _)| Evidence::field(&subject, &format!("endpoints[{}].conditions.ready", pod.meta.name), "true")),
        )
        .proofs(proof)
        .proofs(wrong.iter().take(3).map(|(pod, body)| ready_proof(pod, body)));
        for (pod, _) in &wrong {
            finding = finding.also(&pod.subject());
        }
        out.push(if published {
            finding
                .remedy(format!("set publishNotReadyAddresses to false on {service}, or send requests through a Service of their own"))
                .not("count the addresses of this slice as capacity")
        } else {
            finding.remedy("look at the controller that writes the slice: the pods' readiness has changed since")
        });
    }
}

#[cfg(test)]
mod tests {
    use crate::diagnose::testkit::Kit;
    use crate::model::finding::Code;

    #[test]
    fn fires_with_its_cause() {
        let world = Kit::new().loading_pod("a").service_listing("a", true, true).build();
        let finding = world.only(Code::SliceIncludesNotReady);
        assert_eq!(finding.subjects[0].as_str(), "endpointslice/s/a-1");
        assert!(finding.summary.contains("publishNotReadyAddresses"), "{}", finding.summary);
        let behind = Kit::new().loading_pod("a").service_listing("a", true, false).build().only(Code::SliceIncludesNotReady);
        assert!(behind.summary.contains("behind"), "{}", behind.summary);
        // Proof is what stands in the input, and no more: the endpoint, and the pod's condition with its time.
        let shown: Vec<String> = behind.evidence.iter().map(|e| e.place.to_string()).collect();
        assert_eq!(shown, ["endpoints[a].conditions.ready", "condition Ready"]);
        assert!(behind.evidence[1].at.is_some());
    }

    #[test]
    fn silent_when_slice_and_pod_agree() {
        assert!(Kit::new().loading_pod("a").service_listing("a", false, true).build().none(Code::SliceIncludesNotReady));
        assert!(Kit::new().serving_pod("a", true).build().none(Code::SliceIncludesNotReady));
    }
}
