//! `controller-down`: a controller of the chain (KEDA, LWS, KServe, an adapter) does not run or lead. Nothing that it moves converges, while
//! traffic that runs goes on.
//!
//! Shown by its workload (no pod Ready, or scaled to zero), its Lease (not renewed for longer than it holds), its APIService, or answers of
//! the API that it serves.

use std::collections::BTreeMap;

use super::words::condition_proof;
use crate::model::finding::{Code, Finding};
use crate::model::object::meta::condition;
use crate::model::object::{Body, Condition, Lease, Object};
use crate::model::time::{seconds_between, span};
use crate::model::{Evidence, Place, Subject};
use crate::world::World;

/// A controller by its usual Deployment.
struct Known {
    /// Its Deployment's name begins with or ends in this.
    name: &'static str,
    /// Its Lease, where that does not carry its name.
    lease: &'static str,
    /// What stands still without it.
    moves: &'static str,
    /// Kinds that it serves.
    kinds: &'static [&'static str],
}

/// Names of the projects' own manifests and charts: KEDA 2.20, lws v0.10, KServe v0.20, prometheus-adapter v0.12 and others.
const KNOWN: &[Known] = &[
    Known { name: "keda-operator-metrics-apiserver", lease: "", moves: "HPAs of ScaledObjects get no metric", kinds: &["ScaledObject"] },
    Known { name: "keda-metrics-apiserver", lease: "", moves: "HPAs of ScaledObjects get no metric", kinds: &["ScaledObject"] },
    Known {
        name: "keda-operator",
        lease: "operator.keda.sh",
        moves: "no ScaledObject is evaluated, nothing wakes from zero or goes there",
        kinds: &["ScaledObject"],
    },
    Known { name: "keda-admission", lease: "", moves: "ScaledObjects are not checked, or can not be written", kinds: &["ScaledObject"] },
    Known {
        name: "prometheus-adapter",
        lease: "",
        moves: "HPAs on custom and external metrics get no value",
        kinds: &["HorizontalPodAutoscaler"],
    },
    Known {
        name: "lws-controller-manager",
        lease: "b8b2488c.x-k8s.io",
        moves: "no group of a LeaderWorkerSet is made, replaced or scaled",
        kinds: &["LeaderWorkerSet", "DisaggregatedSet"],
    },
    Known {
        name: "kserve-controller-manager",
        lease: "kserve-controller-manager-leader-lock",
        moves: "changes of InferenceServices are not carried out",
        kinds: &["InferenceService", "InferenceGraph"],
    },
    Known {
        name: "llmisvc-controller-manager",
        lease: "llminferenceservice-kserve-controller-manager-leader-lock",
        moves: "changes of LLMInferenceServices are not carried out",
        kinds: &["LLMInferenceService"],
    },
    Known {
        name: "aibrix-controller-manager",
        lease: "",
        moves: "PodAutoscalers, StormServices and adapters stand still",
        kinds: &["PodAutoscaler", "StormService", "ModelAdapter"],
    },
    Known {
        name: "kthena-controller-manager",
        lease: "",
        moves: "ModelServings and their autoscaling stand still",
        kinds: &["ModelServing", "AutoscalingPolicyBinding"],
    },
    Known {
        name: "ome-controller-manager",
        lease: "",
        moves: "changes of InferenceServices are not carried out",
        kinds: &["InferenceService"],
    },
    Known {
        name: "dynamo-operator-controller-manager",
        lease: "",
        moves: "DynamoGraphDeployments stand still",
        kinds: &["DynamoGraphDeployment"],
    },
    Known {
        name: "dynamo-platform-dynamo-operator",
        lease: "",
        moves: "DynamoGraphDeployments stand still",
        kinds: &["DynamoGraphDeployment"],
    },
    Known { name: "rbgs-controller-manager", lease: "", moves: "RoleBasedGroups stand still", kinds: &["RoleBasedGroup"] },
    Known {
        name: "kueue-controller-manager",
        lease: "c1f6bfd2.kueue.x-k8s.io",
        moves: "no gated pod is admitted",
        kinds: &["Workload", "ClusterQueue"],
    },
    Known {
        name: "kube-controller-manager",
        lease: "kube-controller-manager",
        moves: "no HPA computes, no Deployment makes pods, no EndpointSlice changes",
        kinds: &["HorizontalPodAutoscaler"],
    },
    Known {
        name: "workload-variant-autoscaler",
        lease: "",
        moves: "no number is published for its variants",
        kinds: &["VariantAutoscaling"],
    },
];

/// Seconds after the end of a Lease for which a slow renewal is forgiven.
const SLACK_S: i64 = 15;

pub(super) fn check(world: &World, out: &mut Vec<Finding>) {
    let mut found: BTreeMap<Subject, (&Known, Vec<String>, Vec<Evidence>)> = BTreeMap::new();
    let mut add = |subject: Subject, known: &'static Known, words: String, proof: Evidence| {
        let entry = found.entry(subject).or_insert_with(|| (known, Vec::new(), Vec::new()));
        entry.1.push(words);
        entry.2.push(proof);
    };
    let controllers: Vec<(&Object, &'static Known)> = controllers(world).collect();
    for (object, known) in &controllers {
        if let Some((words, proof)) = no_pod(world, object) {
            add(object.subject(), known, words, proof);
        }
    }
    // Each node has a Lease of its own, and none of them is a controller's.
    for (object, lease) in world.objects.leases().filter(|(object, _)| object.meta.namespace != "kube-node-lease") {
        let Some((subject, known)) = holder(&controllers, object, lease) else { continue };
        if let Some((words, proof)) = expired(world, object, lease) {
            add(subject, known, words, proof);
        }
    }
    for (subject, known, words, proof) in apis(world) {
        add(subject, known, words, proof);
    }
    out.extend(found.into_iter().filter_map(|(subject, (known, words, proofs))| finding(world, &subject, known, &words, proofs)));
}

fn known(name: &str) -> Option<&'static Known> {
    // The longest name decides: keda-operator is the beginning of its metrics server's name.
    KNOWN
        .iter()
        .filter(|known| {
            let begins = name.strip_prefix(known.name).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'));
            begins || name.strip_suffix(known.name).is_some_and(|rest| rest.ends_with('-'))
        })
        .max_by_key(|known| known.name.len())
}

fn controllers(world: &World) -> impl Iterator<Item = (&Object, &'static Known)> {
    let workloads = world.objects.workloads().filter(|(object, _)| object.meta.controller().is_none());
    workloads.filter_map(|(object, _)| Some((object, known(&object.meta.name)?)))
}

/// A controller's workload without a Ready pod.
fn no_pod(world: &World, object: &Object) -> Option<(String, Evidence)> {
    let Body::Workload(workload) = &object.body else { return None };
    let subject = object.subject();
    let asked = workload.replicas.clone().ok()?;
    if asked == 0 {
        return Some(("it is scaled to zero".into(), Evidence::field(&subject, "spec.replicas", "0").of_uid(&object.meta.uid)));
    }
    let view = world.workloads.get(&subject)?;
    let replicas: Vec<_> = view.replicas.iter().filter_map(|pod| world.replicas.get(pod)).collect();
    let ready = match (replicas.is_empty(), &workload.status) {
        (false, _) => u32::try_from(replicas.iter().filter(|pod| pod.pod_ready != Ok(false)).count()).unwrap_or(u32::MAX),
        (true, status) if status.replicas.is_some() || status.observed_generation.is_some() => status.ready.unwrap_or(0),
        _ => return None,
    };
    if ready > 0 {
        return None;
    }
    let restarts =
        replicas.iter().filter_map(|pod| world.objects.pod(&pod.subject)).map(|(_, pod)| pod.restarts()).fold(0, u32::saturating_add);
    let states: Vec<String> = replicas.iter().take(2).map(|pod| format!("{} {}", pod.subject.name(), pod.state)).collect();
    let more = match (states.is_empty(), restarts) {
        (true, _) => String::new(),
        (false, 0) => format!(" ({})", states.join(", ")),
        (false, n) => format!(" ({}, {n} restarts)", states.join(", ")),
    };
    Some((
        format!("none of its {asked} pods is Ready{more}"),
        Evidence::field(&subject, "status.readyReplicas", format!("0 of {asked}{more}")).of_uid(&object.meta.uid),
    ))
}

/// The controller that a Lease is of: by the Lease's name, or by the holder's (a pod of the workload).
fn holder(controllers: &[(&Object, &'static Known)], object: &Object, lease: &Lease) -> Option<(Subject, &'static Known)> {
    let name = object.meta.name.as_str();
    let by_lease = KNOWN.iter().find(|known| !known.lease.is_empty() && (known.lease == name));
    let by_name = known(name);
    let of = |known: &'static Known| {
        controllers
            .iter()
            .find(|(workload, its)| its.name == known.name && workload.meta.namespace == object.meta.namespace)
            .map(|(workload, _)| workload.subject())
    };
    if let Some(known) = by_lease.or(by_name) {
        return Some((of(known).unwrap_or_else(|| object.subject()), known));
    }
    controllers
        .iter()
        .find(|(workload, _)| {
            workload.meta.namespace == object.meta.namespace
                && lease.holder.strip_prefix(workload.meta.name.as_str()).is_some_and(|rest| rest.starts_with(['-', '_']))
        })
        .map(|(workload, known)| (workload.subject(), *known))
}

fn expired(world: &World, object: &Object, lease: &Lease) -> Option<(String, Evidence)> {
    let subject = object.subject();
    if lease.holder.is_empty() {
        let value = "nobody holds it".to_owned();
        return Some((format!("nobody holds its Lease {}", subject.name()), Evidence::field(&subject, "spec.holderIdentity", value)));
    }
    let renewed = lease.renewed?;
    let holds = lease.duration_s?.clamp(1, 1 << 20);
    let age = seconds_between(renewed, world.now);
    (age > holds.saturating_add(SLACK_S)).then(|| {
        let words = format!("its Lease {} (held for {holds} s) was last renewed {} ago", subject.name(), span(age));
        (words, Evidence::field(&subject, "spec.renewTime", renewed.to_string()).seen_at(Some(renewed)))
    })
}

/// Metrics APIs whose server is not there, by their APIService or by answers.
fn apis(world: &World) -> Vec<(Subject, &'static Known, String, Evidence)> {
    let mut out = Vec::new();
    for (subject, object) in world.objects.all() {
        let Body::Other(body) = &object.body else { continue };
        if object.kind != "APIService" || !object.meta.name.contains("metrics.k8s.io") {
            continue;
        }
        let Some(unavailable) = available(body).filter(Condition::is_false) else { continue };
        let (server, known) = server_of(world, body, subject);
        out.push((
            server,
            known,
            format!("the API {} that it serves is not available", object.meta.name),
            condition_proof(object, &unavailable),
        ));
    }
    for answer in world.answers.values().flatten() {
        let route = answer.route();
        let Some(api) =
            ["external.metrics.k8s.io", "custom.metrics.k8s.io"].into_iter().find(|api| route.starts_with(&format!("/apis/{api}")))
        else {
            continue;
        };
        if !matches!(answer.status(), Some(500 | 502 | 503 | 504)) {
            continue;
        }
        let service = world.objects.all().find(|(_, object)| object.kind == "APIService" && object.meta.name.ends_with(api));
        let named = Subject::object("apiservice", "", &format!("v1beta1.{api}"));
        let (server, known) = match service {
            Some((subject, Object { body: Body::Other(body), .. })) => server_of(world, body, subject),
            _ => server_by_name(world, api, &named),
        };
        out.push((server, known, format!("the API {api} answers {}", answer.outcome_word()), answer.evidence()));
    }
    out
}

fn available(body: &serde_json::Value) -> Option<Condition> {
    let problems = std::cell::RefCell::new(Vec::new());
    let root = crate::model::object::field::Field::root(body, &problems);
    condition(&Condition::read_all(&root.at(&["status", "conditions"])), "Available").cloned()
}

const ADAPTER: &Known = &Known { name: "", lease: "", moves: "HPAs on its metrics get no value", kinds: &["HorizontalPodAutoscaler"] };

/// The workload behind an APIService, by the Service that it names; the APIService itself where none was read.
fn server_of(world: &World, body: &serde_json::Value, api: &Subject) -> (Subject, &'static Known) {
    let word = |key: &str| body.get("spec").and_then(|spec| spec.get("service")?.get(key)?.as_str()).unwrap_or_default();
    let (namespace, name) = (word("namespace"), word("name"));
    let selector = world.objects.service(&Subject::object("service", namespace, name)).and_then(|(_, service)| service.selector.as_ref());
    let by_selector = world.objects.workloads().find(|(object, workload)| {
        object.meta.namespace == namespace
            && object.meta.controller().is_none()
            && selector.is_some_and(|selector| selector.matches(&workload.template_labels))
    });
    let by_name = || world.objects.workloads().find(|(object, _)| object.meta.namespace == namespace && object.meta.name == name);
    match by_selector.or_else(by_name) {
        Some((object, _)) => (object.subject(), known(&object.meta.name).unwrap_or(ADAPTER)),
        None => (api.clone(), known(name).unwrap_or(ADAPTER)),
    }
}

fn server_by_name(world: &World, api: &str, named: &Subject) -> (Subject, &'static Known) {
    let keda = api == "external.metrics.k8s.io" && world.objects.scaled_objects().next().is_some();
    let wanted = if keda { "metrics-apiserver" } else { "prometheus-adapter" };
    match controllers(world).find(|(_, known)| known.name.ends_with(wanted)) {
        Some((object, known)) => (object.subject(), known),
        None => (named.clone(), ADAPTER),
    }
}

fn finding(world: &World, subject: &Subject, known: &Known, words: &[String], proofs: Vec<Evidence>) -> Option<Finding> {
    let hit: Vec<&Subject> =
        world.objects.all().filter(|(_, object)| known.kinds.contains(&object.kind.as_str())).map(|(subject, _)| subject).collect();
    let names: Vec<&str> = hit.iter().take(6).map(|subject| subject.as_str()).collect();
    let who = match (names.is_empty(), hit.len().saturating_sub(names.len())) {
        (true, _) => String::new(),
        (false, 0) => format!("; hit: {}", names.join(", ")),
        (false, more) => format!("; hit: {} and {more} more", names.join(", ")),
    };
    let mut proofs = proofs.into_iter();
    let last = last_write(world, subject)
        .map(|(at, evidence)| (format!("; its last write was {} ago", span(seconds_between(at, world.now))), evidence));
    let (wrote, wrote_proof) = last.map_or((String::new(), None), |(words, evidence)| (words, Some(evidence)));
    let finding = Finding::new(
        Code::ControllerDown,
        subject,
        format!("{subject} does not run: {}; {}{wrote}. Traffic that runs goes on{who}", words.join("; "), known.moves),
        proofs.next()?,
    )
    .proofs(proofs)
    .proofs(wrote_proof);
    let finding = hit.iter().take(6).fold(finding, |finding, hit| finding.also(hit));
    Some(
        finding
            .remedy(format!("bring {subject} back: events and log of its pods, its image, its certificates, its leader election"))
            .not("change sizes or roll out through it before it runs: nothing would come of it, and all at once later"),
    )
}

/// When the controller last wrote something that was seen, by the times of its field manager.
fn last_write(world: &World, subject: &Subject) -> Option<(jiff::Timestamp, Evidence)> {
    let manager = match subject.name() {
        name if name.contains("keda-operator") => "keda",
        name if name.contains("lws") => "lws",
        _ => return None,
    };
    let all = world.objects.all().flat_map(|(subject, object)| object.meta.writers.iter().map(move |writer| (subject, writer)));
    all.filter(|(_, writer)| writer.manager == manager)
        .filter_map(|(subject, writer)| {
            let at = writer.time?;
            Some((at, Evidence::new(subject, Place::Field("metadata.managedFields".into()), format!("last write of {manager}"), Some(at))))
        })
        .max_by_key(|(at, _)| *at)
}

#[cfg(test)]
mod tests {
    use super::super::kit::scaled;
    use super::known;
    use crate::diagnose::testkit::Kit;
    use crate::model::finding::Code;
    use rstest::rstest;
    use serde_json::{Value, json};

    #[rstest]
    #[case("keda-operator", Some("keda-operator"))]
    #[case("keda-operator-metrics-apiserver", Some("keda-operator-metrics-apiserver"))]
    #[case("my-release-prometheus-adapter", Some("prometheus-adapter"))]
    #[case("qwen-a", None)]
    fn names(#[case] name: &str, #[case] wanted: Option<&str>) {
        assert_eq!(known(name).map(|known| known.name), wanted);
    }

    fn operator(asked: u32, ready: Option<u32>) -> Value {
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "keda-operator", "namespace": "keda"},
            "spec": {"replicas": asked, "selector": {"matchLabels": {"app": "keda-operator"}}},
            "status": {"observedGeneration": 1, "replicas": asked, "readyReplicas": ready}})
    }

    fn lease(renewed: &str) -> Value {
        json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "operator.keda.sh", "namespace": "keda"},
            "spec": {"holderIdentity": "keda-operator-x_1", "leaseDurationSeconds": 15, "renewTime": renewed}})
    }

    #[rstest]
    #[case::none_ready(vec![operator(1, None)], true)]
    #[case::scaled_to_zero(vec![operator(0, None)], true)]
    #[case::runs(vec![operator(1, Some(1)), lease("2026-11-12T09:59:58.000000Z")], false)]
    #[case::does_not_lead(vec![operator(1, Some(1)), lease("2026-11-12T09:40:00.000000Z")], true)]
    #[case::nothing_known(vec![], false)]
    fn keda(#[case] docs: Vec<Value>, #[case] fires: bool) {
        let world = docs.into_iter().fold(Kit::new().object(scaled("q")), Kit::object).build();
        assert_eq!(world.none(Code::ControllerDown), !fires, "{:#?}", world.findings);
        if fires {
            let finding = world.only(Code::ControllerDown);
            assert_eq!(finding.subjects[0].as_str(), "deployment/keda/keda-operator");
            assert!(finding.summary.contains("scaledobject/s/so"), "{}", finding.summary);
        }
    }

    #[rstest]
    #[case("False", true)]
    #[case("True", false)]
    fn a_metrics_api_without_server(#[case] status: &str, #[case] fires: bool) {
        let world = Kit::new()
            .object(json!({"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": {"name": "v1beta1.custom.metrics.k8s.io"},
                "spec": {"service": {"namespace": "monitoring", "name": "prometheus-adapter"}},
                "status": {"conditions": [{"type": "Available", "status": status, "reason": "MissingEndpoints"}]}}))
            .build();
        assert_eq!(world.none(Code::ControllerDown), !fires);
    }

    #[rstest]
    #[case(503, true)]
    #[case(404, false)]
    fn an_api_that_fails(#[case] status: u16, #[case] fires: bool) {
        let path = "/apis/external.metrics.k8s.io/v1beta1/namespaces/s/s0-prometheus";
        let world = Kit::new().object(scaled("q")).answer_from("apiserver", path, status, "").build();
        assert_eq!(world.none(Code::ControllerDown), !fires);
    }
}
