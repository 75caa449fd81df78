//! `router-sees-fewer`: the router counts fewer endpoints than are listed.
//!
//! Compared in pods: an EPP counts ranks (`<pod>-rank-i`), which are mapped back first. Only a fresh page of the leader counts, and a pod
//! that became Ready just before the page was taken may still be missing from it.

use jiff::Timestamp;

use crate::diagnose::support::counted;
use crate::model::finding::{Code, Finding};
use crate::model::{Evidence, Place, Subject, time};
use crate::world::World;
use crate::world::listing::served_ports;
use crate::world::router::RouterReading;

/// Oldest page that is believed, seconds.
const FRESH_S: i64 = 60;
/// Seconds that a router may take to notice a Ready pod; measured well under one second, its counts are flushed every five.
const NOTICE_S: i64 = 10;
/// Annotations by which a pod opens only some of the pool's ports to its router.
const ACTIVE_PORTS: &[&str] = &["llm-d.ai/active-ports", "inference.networking.k8s.io/active-ports"];

pub(super) fn check(world: &World, out: &mut Vec<Finding>) {
    for (subject, reading) in &world.routers {
        if !reading.from_leader || time::seconds_between(reading.at, world.now) > FRESH_S {
            continue;
        }
        let Some(front) = world.fronts.get(subject) else { continue };
        let listed: Vec<&Subject> = front
            .selected
            .iter()
            .filter(|pod| world.replicas.get(*pod).is_some_and(|replica| replica.listing.listed == Ok(true)))
            .filter(|pod| ready_since(world, pod).is_none_or(|since| time::seconds_between(since, reading.at) > NOTICE_S))
            .collect();
        let missing: Vec<&Subject> = match &reading.endpoints {
            Some(endpoints) => listed.iter().copied().filter(|pod| !endpoints.contains_key(pod.name())).collect(),
            None => Vec::new(),
        };
        if !missing.is_empty() {
            out.push(lacks_pods(world, subject, reading, listed.len(), &missing));
        } else if let Some(finding) = fewer_ranks(world, subject, reading, &listed).or_else(|| fewer_in_all(subject, reading, &listed)) {
            out.push(finding);
        }
    }
}

fn ready_since(world: &World, pod: &Subject) -> Option<Timestamp> {
    world.objects.pod(pod)?.1.condition("Ready")?.since
}

fn lacks_pods(world: &World, subject: &Subject, reading: &RouterReading, listed: usize, missing: &[&Subject]) -> Finding {
    let counts = listed.saturating_sub(missing.len());
    let names: Vec<&str> = missing.iter().take(3).map(|pod| pod.name()).collect();
    let mut finding = Finding::new(
        Code::RouterSeesFewer,
        subject,
        format!("the router of {} counts {counts} of {listed} listed pods: it does not know {}", subject.name(), names.join(", ")),
        Evidence::new(
            &reading.pod,
            Place::Metric("endpoints".into()),
            reading.shape().unwrap_or_else(|| "names no endpoint".into()),
            Some(reading.at),
        ),
    )
    .also(&reading.pod)
    .proof(Evidence::field(subject, "spec.selector", format!("selects {listed} Ready pods that serve its port")));
    for pod in missing {
        if let Some((object, body)) = world.objects.pod(pod) {
            finding = finding.also(pod).proof(crate::diagnose::support::ready_proof(object, body));
        }
    }
    finding
        .remedy("compare the selector and namespace that the router was started with (--pool-name, --pool-namespace, --endpoint-selector) with the pool")
        .remedy("see that its ServiceAccount may watch pods of this namespace; a router pod that missed events is put right by its restart")
}

/// All pods are known, and some of them with fewer ranks than the pool targets and the pod opens.
fn fewer_ranks(world: &World, subject: &Subject, reading: &RouterReading, listed: &[&Subject]) -> Option<Finding> {
    let (_, pool) = world.objects.pool(subject)?;
    let endpoints = reading.endpoints.as_ref()?;
    let (pod, has, wanted) = listed.iter().find_map(|pod| {
        let (object, body) = world.objects.pod(pod)?;
        if ACTIVE_PORTS.iter().any(|key| object.meta.annotation(key).is_some()) {
            return None;
        }
        let served = served_ports(body);
        let wanted = pool.target_ports.iter().filter(|port| served.contains(port)).count();
        let has = endpoints.get(pod.name())?.len();
        (has < wanted).then_some((*pod, has, wanted))
    })?;
    Some(
        Finding::new(
            Code::RouterSeesFewer,
            subject,
            format!("the router of {} counts {has} of {} of {}", subject.name(), counted(wanted, "rank"), pod.name()),
            Evidence::new(&reading.pod, Place::Metric("endpoints".into()), reading.shape().unwrap_or_default(), Some(reading.at)),
        )
        .also(pod)
        .proof(Evidence::field(subject, "spec.targetPorts", format!("{wanted} ports that the pod opens")))
        .remedy("compare the pool's targetPorts with the ports that the router was started with"),
    )
}

/// The page names no endpoint and counts fewer than there are pods: routers older than the per-endpoint series.
fn fewer_in_all(subject: &Subject, reading: &RouterReading, listed: &[&Subject]) -> Option<Finding> {
    let ready = reading.ready.as_ref().ok().filter(|_| reading.endpoints.as_ref().is_none_or(|endpoints| endpoints.is_empty()))?;
    let wanted = listed.len();
    ((ready.value as usize) < wanted).then(|| {
        Finding::new(
            Code::RouterSeesFewer,
            subject,
            format!(
                "the router of {} counts {} ready, {} are listed",
                subject.name(),
                crate::diagnose::support::number(ready.value),
                counted(wanted, "pod")
            ),
            Evidence::new(&reading.pod, Place::Metric(ready.source.clone()), crate::diagnose::support::number(ready.value), Some(ready.at)),
        )
        .also(&reading.pod)
        .proofs(listed.iter().take(3).map(|pod| Evidence::field(pod, "metadata.labels", "matches the pool's selector")))
        .remedy("compare the selector that the router was started with with the pool, and its rights on pods")
    })
}

#[cfg(test)]
mod tests {
    use crate::diagnose::testkit::{Kit, epp_page};
    use crate::model::finding::Code;
    use rstest::rstest;
    use serde_json::json;

    fn kit() -> Kit {
        Kit::new().pod_with("a", |_| ()).pod_with("b", |_| ()).pool("p", |_| ()).epp("epp-1", true, |_| ())
    }

    #[rstest]
    #[case::all(&["a-rank-0", "b-rank-0"], 0, false)]
    #[case::one_is_missing(&["a-rank-0"], 0, true)]
    #[case::of_an_old_page(&["a-rank-0"], -300, false)]
    #[case::many_ranks_of_one(&["a-rank-0", "a-rank-1"], 0, true)]
    fn in_pods(#[case] endpoints: &[&str], #[case] offset: i64, #[case] fires: bool) {
        let world = kit().page("epp-1", offset, &epp_page("p", endpoints, endpoints.len(), "")).build();
        assert_eq!(!world.none(Code::RouterSeesFewer), fires, "{:?}", world.findings);
    }

    #[test]
    fn a_follower_is_not_asked() {
        let page = epp_page("p", &["a-rank-0"], 1, "leader_election_master_status{name=\"epp-s-p.llm-d.ai\"} 0\n");
        assert!(kit().epp("epp-2", false, |_| ()).page("epp-2", 0, &page).build().none(Code::RouterSeesFewer));
    }

    #[test]
    fn a_pod_that_has_just_become_ready_may_be_missing() {
        let world = kit()
            .pod_with("c", |pod| pod["status"]["conditions"][3]["lastTransitionTime"] = "2026-11-12T09:59:55Z".into())
            .page("epp-1", 0, &epp_page("p", &["a-rank-0", "b-rank-0"], 2, ""))
            .build();
        assert!(world.none(Code::RouterSeesFewer));
    }

    #[test]
    fn ranks_count_against_the_ports_that_the_pod_opens() {
        let ports = json!([{"containerPort": 8000}, {"containerPort": 8001}]);
        let kit = |active: bool| {
            Kit::new()
                .pod_with("a", |pod| {
                    pod["spec"]["containers"][0]["ports"] = ports.clone();
                    if active {
                        pod["metadata"]["annotations"] = json!({"llm-d.ai/active-ports": "8000"});
                    }
                })
                .pool("p", |pool| pool["spec"]["targetPorts"] = json!([{"number": 8000}, {"number": 8001}]))
                .epp("epp-1", true, |_| ())
                .page("epp-1", 0, &epp_page("p", &["a-rank-0"], 1, ""))
                .build()
        };
        assert!(kit(false).only(Code::RouterSeesFewer).summary.contains("1 of 2 ranks"));
        assert!(kit(true).none(Code::RouterSeesFewer));
    }
}
