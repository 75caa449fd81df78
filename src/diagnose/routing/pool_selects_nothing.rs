//! `pool-selects-nothing`: the pool's selector matches no pod.
//!
//! A pool of a model that is scaled to zero is empty on purpose: the template of its workload still matches.

use crate::model::finding::{Code, Finding};
use crate::model::{Evidence, Subject};
use crate::world::World;

pub(super) fn check(world: &World, out: &mut Vec<Finding>) {
    for (object, pool) in world.objects.pools() {
        let subject = object.subject();
        let Some(selector) = &pool.selector else { continue };
        if world.fronts.get(&subject).is_none_or(|front| !front.selected.is_empty()) {
            continue;
        }
        let namespace = object.meta.namespace.as_str();
        let live = || world.objects.pods().filter(|(pod, body)| pod.meta.namespace == namespace && !body.has_ended());
        // Without any pod of the namespace nothing tells "there is none" from "none was read".
        let listed = world.views.get(&Subject::view(&format!("pods/{namespace}"))).or_else(|| world.views.get(&Subject::view("pods")));
        let read = listed.is_some_and(|view| view.state == crate::model::state::ViewState::Ok);
        if !read && live().next().is_none() {
            continue;
        }
        let makers: Vec<_> = world
            .objects
            .workloads()
            .filter(|(maker, body)| {
                maker.meta.namespace == namespace && maker.meta.controller().is_none() && selector.matches(&body.template_labels)
            })
            .collect();
        if !makers.is_empty() && makers.iter().all(|(_, body)| body.replicas == Ok(0)) {
            continue;
        }
        let mut finding = Finding::new(
            Code::PoolSelectsNothing,
            &subject,
            format!("no pod of {namespace} matches the selector of the pool {} ({selector})", subject.name()),
            Evidence::field(&subject, "spec.selector", selector.to_string()).of_uid(&object.meta.uid),
        );
        if makers.is_empty() {
            let router = world.pickers.get(&subject).map_or(&[][..], |picker| picker.pods.as_slice());
            // The pod that lacks least is most likely the one that was meant.
            let nearest = live()
                .filter(|(pod, _)| !router.contains(&pod.subject()))
                .map(|(pod, _)| (selector.missing(&pod.meta.labels), pod))
                .min_by_key(|(missing, pod)| {
                    (missing.len(), world.replicas.get(&pod.subject()).is_none_or(|r| r.engine.is_err()), pod.subject())
                });
            if let Some((missing, pod)) = nearest {
                finding.summary = format!("{}; {} comes nearest and lacks {}", finding.summary, pod.subject(), missing.join(", "));
                finding = finding
                    .proof(Evidence::field(&pod.subject(), "metadata.labels", selector.asked_of(&pod.meta.labels)).of_uid(&pod.meta.uid));
            }
            finding = finding
                .remedy("correct the selector of the pool, or put its labels on the template of the workload that was meant")
                .not("add replicas: pods without these labels get no request either");
        } else {
            for (maker, body) in makers {
                let asked = body.replicas.as_ref().map_or_else(ToString::to_string, u32::to_string);
                finding = finding.also(&maker.subject()).proof(Evidence::field(&maker.subject(), "spec.replicas", asked));
            }
            finding = finding.remedy("look why the workload makes no pods: quota, an admission webhook, a paused rollout");
        }
        out.push(finding);
    }
}

#[cfg(test)]
mod tests {
    use crate::diagnose::testkit::Kit;
    use crate::model::finding::Code;
    use serde_json::{Value, json};

    fn deployment(replicas: u32) -> Value {
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a", "namespace": "s"},
            "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": "z"}}, "template": {"metadata": {"labels": {"app": "z"}},
                "spec": {"containers": [{"name": "vllm", "image": "x/vllm-openai:1"}]}}}})
    }

    fn kit() -> Kit {
        Kit::new().pod_with("a", |_| ()).pool("p", |pool| pool["spec"]["selector"] = json!({"matchLabels": {"app": "z"}}))
    }

    #[test]
    fn fires_and_names_the_label_that_differs() {
        let finding = kit().build().only(Code::PoolSelectsNothing);
        assert!(finding.summary.contains("app=z (the pod has app=a)"), "{}", finding.summary);
    }

    #[test]
    fn fires_where_the_workload_should_have_pods() {
        assert!(kit().object(deployment(2)).build().only(Code::PoolSelectsNothing).subjects.len() == 2);
    }

    #[test]
    fn silent_at_zero_when_it_matches_and_when_no_pod_was_read() {
        assert!(kit().object(deployment(0)).build().none(Code::PoolSelectsNothing));
        assert!(Kit::new().pod_with("a", |_| ()).pool("p", |_| ()).build().none(Code::PoolSelectsNothing));
        let unread = Kit::new().pool("p", |pool| pool["spec"]["selector"] = json!({"matchLabels": {"app": "z"}}));
        assert!(unread.build().none(Code::PoolSelectsNothing));
    }
}
