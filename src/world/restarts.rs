//! Groups that are made anew: how often, and in what period.
//!
//! A group's pods have no restart count that outlives them, so the controller's events are the only memory. Source: lws v0.10.0, event
//! `RecreateGroup` ("Worker pod X failed, deleted leader pod Y to recreate group N"), on the set or on a pod.

use jiff::Timestamp;

use crate::model::object::{Body, Catalogue};
use crate::model::{Evidence, Place, Subject, time};
use crate::systems::owners::group_of;

/// How often a group was made anew.
#[derive(Debug, Clone, PartialEq)]
pub struct GroupRestarts {
    /// Times.
    pub count: u32,
    /// Mean seconds between two, where two times are known.
    pub period_s: Option<f64>,
    /// When it last happened.
    pub last: Option<Timestamp>,
    /// The events.
    pub evidence: Vec<Evidence>,
}

/// Restarts of a group (`leaderworkerset/ns/name/group/0`), from events that are still there. `None` where no event tells of any.
pub fn group_restarts(objects: &Catalogue, group: &Subject) -> Option<GroupRestarts> {
    let set = Subject::object(group.kind(), group.namespace(), group.name());
    let index = group.as_str().rsplit_once("/group/")?.1;
    let mut found = GroupRestarts { count: 0, period_s: None, last: None, evidence: Vec::new() };
    let mut first: Option<Timestamp> = None;
    for (_, object) in objects.all() {
        let Body::Event(event) = &object.body else { continue };
        if event.reason != "RecreateGroup" || !about(objects, &event.about, &set, group, &event.message, index) {
            continue;
        }
        found.count = found.count.saturating_add(event.count.max(1));
        first = [first, event.first.or(event.last)].into_iter().flatten().min();
        found.last = [found.last, event.last].into_iter().flatten().max();
        let value = format!("{} (seen {} times)", event.message, event.count.max(1));
        found.evidence.push(Evidence::new(&event.about, Place::Event(event.reason.clone()), value, event.last));
    }
    if found.count == 0 {
        return None;
    }
    found.period_s = first.zip(found.last).filter(|_| found.count > 1).and_then(|(first, last)| {
        let whole = time::seconds_between(first, last);
        (whole > 0).then(|| whole as f64 / f64::from(found.count - 1))
    });
    Some(found)
}

/// Whether an event speaks of this group: it names it, or it is about a pod of it.
fn about(objects: &Catalogue, about: &Subject, set: &Subject, group: &Subject, message: &str, index: &str) -> bool {
    let named = message.split_once("group ").is_some_and(|(_, rest)| rest.split(|c: char| !c.is_ascii_digit()).next() == Some(index));
    if about == set {
        return named;
    }
    match objects.get(about).and_then(group_of) {
        Some((of, _)) => of == *group,
        // A pod that is gone: its name starts with the set's, and the message names the group.
        None => {
            about.kind() == "pod"
                && about.namespace() == set.namespace()
                && named
                && about
                    .name()
                    .strip_prefix(set.name())
                    .is_some_and(|rest| rest.strip_prefix('-').is_some_and(|rest| rest.split('-').next() == Some(index)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnose::testkit::Kit;
    use rstest::rstest;
    use serde_json::json;

    #[rstest]
    #[case::on_the_set("LeaderWorkerSet", "m", "0", Some(4))]
    #[case::on_a_pod_that_is_gone("Pod", "m-0", "0", Some(4))]
    #[case::on_a_worker_that_is_gone("Pod", "m-0-1", "0", Some(4))]
    #[case::another_group("Pod", "m-0", "1", None)]
    #[case::another_set("LeaderWorkerSet", "x", "0", None)]
    fn counted(#[case] kind: &str, #[case] name: &str, #[case] group: &str, #[case] wanted: Option<u32>) {
        let event = json!({"apiVersion": "v1", "kind": "Event", "metadata": {"name": "e", "namespace": "s"}, "reason": "RecreateGroup",
            "message": "Worker pod m-0-1 failed, deleted leader pod m-0 to recreate group 0", "count": 4,
            "firstTimestamp": "2026-11-12T09:00:00Z", "lastTimestamp": "2026-11-12T09:15:00Z",
            "involvedObject": {"kind": kind, "namespace": "s", "name": name}});
        let world = Kit::new().object(event).build().world;
        let group = Subject::parse(&format!("leaderworkerset/s/m/group/{group}"));
        let found = group_restarts(&world.objects, &group);
        assert_eq!(found.as_ref().map(|found| found.count), wanted);
        assert_eq!(found.and_then(|found| found.period_s), wanted.map(|_| 300.0));
    }
}
