//! ReplicaSets that are only named, as owners of pods that were read: their pods can be counted all the same.
//!
//! Whoever may not list ReplicaSets, or was given pods alone, still asks how many pods the canary and the stable revision have.

use std::collections::BTreeMap;

use super::WorkloadView;
use super::counts::{Wanted, count, shortage};
use crate::model::object::Catalogue;
use crate::model::service::Replica;
use crate::model::state::WorkloadState;
use crate::model::unknown::unknown;
use crate::model::{Evidence, Subject};

/// Counts of ReplicaSets that own pods and were not read. How many they should have is not known, so neither is their state.
pub fn only_named(objects: &Catalogue, replicas: &BTreeMap<Subject, Replica>) -> BTreeMap<Subject, WorkloadView> {
    let mut pods: BTreeMap<Subject, Vec<&Replica>> = BTreeMap::new();
    for replica in replicas.values().filter(|replica| replica.subject.kind() == "pod") {
        let Some((object, pod)) = objects.pod(&replica.subject) else { continue };
        let Some(owner) = object.meta.controller().filter(|owner| owner.kind == "ReplicaSet") else { continue };
        let subject = owner.subject(&object.meta.namespace);
        if objects.get(&subject).is_none() && !pod.has_ended() {
            pods.entry(subject).or_default().push(replica);
        }
    }
    pods.into_iter()
        .map(|(subject, of)| {
            let why = "the ReplicaSet was not read";
            let funnel = count(&of, Wanted { count: unknown(why), by: String::new() }, unknown(why), None);
            let mut words = vec![format!("{why}; its pods name it as their owner")];
            words.extend(shortage(&of));
            let evidence =
                of.iter().take(4).map(|replica| Evidence::field(&replica.subject, "metadata.ownerReferences", subject.as_str())).collect();
            let view = WorkloadView {
                replicas: of.iter().map(|replica| replica.subject.clone()).collect(),
                funnel,
                state: WorkloadState::Unknown,
                why: words,
                evidence,
                left_over: Vec::new(),
                proven: unknown(why),
            };
            (subject, view)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use crate::diagnose::testkit::Kit;
    use crate::model::Subject;
    use crate::model::state::WorkloadState;

    #[test]
    fn pods_of_a_set_that_was_not_read_are_counted() {
        let kit = Kit::new().pod_with("a", |_| ()).loading_pod("b").owned("a", "ReplicaSet", "w-1").owned("b", "ReplicaSet", "w-1");
        let world = kit.build().world;
        let view = world.workloads.get(&Subject::parse("replicaset/s/w-1")).unwrap();
        assert_eq!((view.funnel.existing.clone(), view.funnel.pod_ready.clone()), (Ok(2), Ok(1)));
        assert!(view.funnel.wanted.is_err());
        assert_eq!(view.state, WorkloadState::Unknown);
    }
}
