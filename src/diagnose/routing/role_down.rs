//! `role-down`: one role of a disaggregated model has no ready replica; says what still works and by which counter that is known.
//!
//! Without prefill a decode engine may compute prompts itself, slower: the router's decisions and the engines' prompt tokens by source
//! show whether it does. Without decode nothing is answered.

use std::collections::BTreeSet;

use crate::diagnose::support::{counted, number};
use crate::model::finding::{Code, Finding};
use crate::model::service::{ModelService, Role, RoleKind};
use crate::model::{Evidence, Place, Subject};
use crate::world::World;
use crate::world::flow::grown;
use crate::world::prompts::{LOCAL, TRANSFER};

pub(super) fn check(world: &World, out: &mut Vec<Finding>) {
    for service in world.services.values() {
        let split: Vec<&Role> =
            service.roles.iter().filter(|role| matches!(role.kind, RoleKind::Prefill | RoleKind::Decode | RoleKind::Encode)).collect();
        for role in &split {
            // A role that nobody wants is empty on purpose; a model of which no role is ready is down as a whole.
            let wanted = role.funnel.wanted != Ok(0) || !role.replicas.is_empty();
            let others = split.iter().any(|other| other.kind != role.kind && ready(world, other) > 0);
            if wanted && others && known(world, role) && ready(world, role) == 0 {
                out.extend(finding(world, service, role, &split));
            }
        }
    }
}

fn ready(world: &World, role: &Role) -> usize {
    role.replicas.iter().filter(|replica| world.replicas.get(*replica).is_some_and(|replica| replica.pod_ready == Ok(true))).count()
}

/// Whether it is known of each replica whether it is Ready, and whether any were left unread.
fn known(world: &World, role: &Role) -> bool {
    role.funnel.existing.is_ok()
        && role.replicas.iter().all(|replica| world.replicas.get(replica).is_some_and(|replica| replica.pod_ready.is_ok()))
}

fn finding(world: &World, service: &ModelService, role: &Role, split: &[&Role]) -> Option<Finding> {
    let owner = owner(world, service, split);
    let counts: Vec<String> = split.iter().map(|other| format!("{} {}", other.kind, ready(world, other))).collect();
    let mut proofs: Vec<Evidence> = Vec::new();
    for other in split {
        for workload in &other.workloads {
            let wanted = other.funnel.wanted.as_ref().map_or_else(ToString::to_string, u32::to_string);
            let value = format!("{} of {wanted} {} ready", ready(world, other), other.kind);
            proofs.push(Evidence::field(workload, "status.readyReplicas", value));
        }
    }
    for pod in role.replicas.iter().flat_map(|replica| world.replicas.get(replica).into_iter().flat_map(|r| r.pods.first())).take(3) {
        if let Some((object, body)) = world.objects.pod(pod) {
            proofs.push(crate::diagnose::support::ready_proof(object, body));
        }
    }
    let mut summary = format!("no {} replica of {} is ready (ready: {})", role.kind, service.claim.id.name, counts.join(", "));
    if let Some(doing) = role
        .replicas
        .iter()
        .filter_map(|replica| world.replicas.get(replica))
        .find_map(|replica| Some(format!("{} is {}: {}", replica.subject.name(), replica.state, replica.why.first()?)))
    {
        summary = format!("{summary}; {doing}");
    }
    let (still, shown) = still_works(world, service, role, split);
    proofs.extend(shown);
    let mut proofs = proofs.into_iter();
    let mut finding = Finding::new(Code::RoleDown, &owner, format!("{summary}; {still}"), proofs.next()?).proofs(proofs);
    for subject in service.claim.fronts.iter().filter(|front| front.kind() == "inferencepool").chain(&role.workloads) {
        finding = finding.also(subject);
    }
    finding = finding.remedy(format!("bring a {} replica up: {}", role.kind, role.why.first().map_or("look at its pods", String::as_str)));
    Some(match role.kind {
        RoleKind::Prefill => finding.not("scale decode for its longer time to first token: it is doing prefill's work"),
        _ => finding,
    })
}

/// The object above the workloads of all roles, else the one by which the model was found.
fn owner(world: &World, service: &ModelService, split: &[&Role]) -> Subject {
    let chains: Vec<BTreeSet<Subject>> =
        split.iter().flat_map(|role| &role.workloads).map(|workload| world.objects.owner_chain(workload).into_iter().collect()).collect();
    let common = chains.first().and_then(|first| {
        let first_chain = split.iter().flat_map(|role| &role.workloads).next().map(|workload| world.objects.owner_chain(workload))?;
        first_chain.into_iter().rfind(|owner| first.contains(owner) && chains.iter().all(|chain| chain.contains(owner)))
    });
    common.unwrap_or_else(|| service.claim.found_by.object.clone())
}

/// What still works without that role, and what shows it.
fn still_works(world: &World, service: &ModelService, role: &Role, split: &[&Role]) -> (String, Vec<Evidence>) {
    let mut words: Vec<String> = Vec::new();
    let mut proofs = Vec::new();
    for reading in service.claim.fronts.iter().filter_map(|front| world.routers.get(front)) {
        let Some((before, earlier)) = &reading.earlier else { continue };
        let flow = &reading.flow;
        let mut proof = |family: &str, value: String| {
            proofs.push(Evidence::new(&reading.pod, Place::Metric(family.into()), format!("{value} since {before}"), Some(reading.at)));
        };
        if let Some(alone) = grown(earlier.decode_only, flow.decode_only).filter(|n| *n > 0.0) {
            let both = grown(earlier.prefill_decode, flow.prefill_decode)
                .map(|n| format!(", {} by prefill and decode", number(n)))
                .unwrap_or_default();
            words.push(format!("the router sent {} by decode alone{both}", counted_requests(alone)));
            proof("llm_d_epp_disagg_decision_total", format!("decode +{}{both}", number(alone)));
        }
        if let (Some(seen), errors) = (grown(earlier.requests, flow.requests), grown(earlier.errors, flow.errors)) {
            let failed = errors.unwrap_or(0.0);
            if seen > 0.0 || failed > 0.0 {
                words.push(format!("{} of {} failed", number(failed), counted_requests(seen)));
                proof("llm_d_epp_request_error_total", format!("+{} of +{} requests", number(failed), number(seen)));
            }
        }
    }
    let (mut local, mut handed, mut any) = (0.0, 0.0, false);
    for pod in split.iter().filter(|other| other.kind == RoleKind::Decode).flat_map(|other| &other.replicas) {
        let pod = world.replicas.get(pod).and_then(|replica| replica.pods.first()).unwrap_or(pod);
        let Some(sources) = world.prompts.get(pod) else { continue };
        let of = |source: &str| sources.grown.get(source).copied().unwrap_or(0.0);
        any = true;
        local += of(LOCAL);
        handed += of(TRANSFER);
        let value = format!("{LOCAL} +{}, {TRANSFER} +{} since {}", number(of(LOCAL)), number(of(TRANSFER)), sources.from);
        proofs.push(Evidence::new(pod, Place::Metric("vllm:prompt_tokens_by_source_total".into()), value, Some(sources.until)));
    }
    if any && role.kind == RoleKind::Prefill {
        words.push(format!("decode computed {} prompt tokens itself and was handed {}", number(local), number(handed)));
    }
    let head = match (&role.kind, words.is_empty(), any && local > 0.0) {
        (RoleKind::Prefill, true, _) => {
            "whether decode takes prompts by itself is not known: no two pages of the router or of decode engines show it"
        }
        (RoleKind::Prefill, false, true) => "requests are still answered, slower: decode does the prefill as well",
        (RoleKind::Prefill, false, false) => "what is seen of requests",
        (RoleKind::Decode, _, _) => "no request is answered: only decode makes tokens",
        (_, _, _) => "text requests do without it, those with images do not",
    };
    if words.is_empty() { (head.into(), proofs) } else { (format!("{head} ({})", words.join(", ")), proofs) }
}

fn counted_requests(n: f64) -> String {
    if n == 1.0 { counted(1, "request") } else { format!("{} requests", number(n)) }
}

#[cfg(test)]
mod tests {
    use crate::diagnose::testkit::{Kit, epp_page};
    use crate::model::finding::Code;
    use rstest::rstest;
    use serde_json::{Value, json};

    fn role(name: &str, role: &str, replicas: u32) -> Value {
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": "s", "labels": {"llm-d.ai/role": role}},
            "spec": {"replicas": replicas, "selector": {"matchLabels": {"r": role}}, "template": {"metadata": {"labels": {"r": role, "app": "a", "llm-d.ai/role": role}},
                "spec": {"containers": [{"name": "vllm", "image": "x/vllm-openai:v0.33.0"}]}}},
            "status": {"replicas": replicas, "updatedReplicas": replicas}})
    }

    fn kit(prefill_ready: bool, decode_ready: bool) -> Kit {
        let labels = |role: &'static str, ready: bool| {
            move |pod: &mut Value| {
                pod["metadata"]["labels"] = json!({"app": "a", "r": role, "llm-d.ai/role": role});
                if !ready {
                    pod["status"]["conditions"][3]["status"] = "False".into();
                }
            }
        };
        Kit::new()
            .pool("p", |_| ())
            .epp("epp-1", true, |_| ())
            .object(role("p", "prefill", 1))
            .object(role("d", "decode", 1))
            .pod_with("p-1", labels("prefill", prefill_ready))
            .pod_with("d-1", labels("decode", decode_ready))
            .owned("p-1", "Deployment", "p")
            .owned("d-1", "Deployment", "d")
    }

    #[rstest]
    #[case::both(true, true, None)]
    #[case::prefill(false, true, Some("no prefill replica"))]
    #[case::decode(true, false, Some("no decode replica"))]
    #[case::neither(false, false, None)]
    fn by_ready_replicas(#[case] prefill: bool, #[case] decode: bool, #[case] says: Option<&str>) {
        let world = kit(prefill, decode).build();
        match says {
            Some(words) => assert!(world.only(Code::RoleDown).summary.contains(words), "{:?}", world.findings),
            None => assert!(world.none(Code::RoleDown), "{:?}", world.findings),
        }
    }

    #[test]
    fn what_still_works_is_known_by_counters() {
        let epp = |alone: u32, seen: u32| {
            epp_page(
                "p",
                &["d-1-rank-0"],
                1,
                &format!(
                    "llm_d_epp_disagg_decision_total{{decision_type=\"decode-only\"}} {alone}\nllm_d_epp_disagg_decision_total{{decision_type=\"prefill-decode\"}} 7\n\
                 llm_d_epp_request_total{{model_name=\"m\"}} {seen}\nllm_d_epp_request_error_total{{model_name=\"m\"}} 0\n"
                ),
            )
        };
        let engine = |local: u32| {
            format!(
                "vllm:num_requests_running{{engine=\"0\"}} 1\nvllm:prompt_tokens_by_source_total{{engine=\"0\",source=\"local_compute\"}} {local}\n\
                 vllm:prompt_tokens_by_source_total{{engine=\"0\",source=\"external_kv_transfer\"}} 900\n"
            )
        };
        let finding = kit(false, true)
            .page("epp-1", -60, &epp(10, 20))
            .page("epp-1", 0, &epp(52, 62))
            .page("d-1", -60, &engine(1000))
            .page("d-1", 0, &engine(5000))
            .build()
            .only(Code::RoleDown);
        for words in [
            "still answered",
            "42 requests by decode alone",
            "0 of 42 requests failed",
            "computed 4000 prompt tokens itself and was handed 0",
        ] {
            assert!(finding.summary.contains(words), "{words}: {}", finding.summary);
        }
    }
}
