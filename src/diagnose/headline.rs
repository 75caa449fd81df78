//! The headline: the most important true sentence about a snapshot, the same on the screen and in the commands.
//!
//! Never says that all is well beyond what was asked and proven: what nobody asked is named as such.

use crate::model::finding::{Finding, Severity};
use crate::model::service::{ModelService, Replica};
use crate::model::state::{EngineState, WorkloadState};
use crate::world::World;

/// How the sentence is to be taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tone {
    /// Requests are lost or soon will be.
    Critical,
    /// Capacity or safety is lost.
    Warning,
    /// Worth knowing.
    Info,
    /// Nothing is known to be wrong, and not all is proven.
    Unproven,
    /// All that is wanted serves, by the engines' own word.
    Good,
}

/// The sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Headline {
    /// How it is to be taken.
    pub tone: Tone,
    /// One sentence without a full stop.
    pub text: String,
    /// Whether it is the first finding's.
    pub is_finding: bool,
}

/// How bad a state is, worst first; `None` for what lacks nothing that is known.
fn weight(state: WorkloadState) -> Option<u8> {
    match state {
        WorkloadState::Down => Some(0),
        WorkloadState::Blocked | WorkloadState::FailedUpdate => Some(1),
        WorkloadState::Degraded => Some(2),
        WorkloadState::RollingOut | WorkloadState::WaitingPromotion => Some(3),
        WorkloadState::Serving | WorkloadState::ScaledToZero | WorkloadState::Unknown => None,
    }
}

/// Who lacks something: the weight, who in words, the state, and why.
struct Short {
    weight: u8,
    who: String,
    state: WorkloadState,
    why: Vec<String>,
}

/// The headline of these model services and findings (worst finding first).
pub fn headline(world: &World, findings: &[&Finding], services: &[&ModelService]) -> Headline {
    let worst = findings.first();
    let short = services.iter().flat_map(|service| lacking(world, service)).min_by(|a, b| (a.weight, &a.who).cmp(&(b.weight, &b.who)));
    let critical = worst.filter(|finding| finding.severity == Severity::Critical);
    let serious = worst.filter(|finding| finding.severity != Severity::Info);
    let of_finding = |finding: &Finding| Headline {
        tone: match finding.severity {
            Severity::Critical => Tone::Critical,
            Severity::Warning => Tone::Warning,
            Severity::Info => Tone::Info,
        },
        text: finding.summary.clone(),
        is_finding: true,
    };
    // What is down outranks whatever is not critical; whatever lacks replicas outranks what is only worth knowing.
    match (critical, short, serious) {
        (Some(finding), _, _) => of_finding(finding),
        (None, Some(short), _) if short.state == WorkloadState::Down => of_short(&short),
        (None, _, Some(finding)) => of_finding(finding),
        (None, Some(short), None) => of_short(&short),
        // What is merely worth knowing must not hide that nothing was proven.
        (None, None, None) => match (quiet(world, services), worst) {
            (Headline { tone: Tone::Good, .. }, Some(finding)) => of_finding(finding),
            (quiet, _) => quiet,
        },
    }
}

fn of_short(short: &Short) -> Headline {
    let tone = if short.state == WorkloadState::Down { Tone::Critical } else { Tone::Warning };
    let why = if short.why.is_empty() { String::new() } else { format!(": {}", short.why.join("; ")) };
    Headline { tone, text: format!("{} is {}{why}", short.who, short.state.shout()), is_finding: false }
}

/// Roles and routers of a model that lack something, each with the first reason and that of the first replica that does not serve.
fn lacking<'a>(world: &'a World, service: &'a ModelService) -> impl Iterator<Item = Short> + 'a {
    let id = &service.claim.id;
    let name = move |what: &dyn std::fmt::Display| format!("{}/{} {what}", id.namespace, id.name);
    let roles = service.roles.iter().filter_map(move |role| {
        let weight = weight(role.state)?;
        let mut why: Vec<String> = role.why.first().cloned().into_iter().collect();
        let behind = role.replicas.iter().filter_map(|replica| world.replicas.get(replica)).find(|replica| !replica.state.serves());
        why.extend(behind.and_then(|replica| Some(format!("{}: {}", short_name(replica), replica.why.first()?))));
        Some(Short { weight, who: name(&role.kind), state: role.state, why })
    });
    let routers = service.claim.routers.iter().filter_map(move |router| {
        let view = world.workloads.get(router)?;
        let why = view.why.first().cloned().into_iter().collect();
        Some(Short { weight: weight(view.state)?, who: name(&format!("router {}", router.name())), state: view.state, why })
    });
    roles.chain(routers)
}

/// A replica's name; of a group with its number, since all groups of a set share the name.
fn short_name(replica: &Replica) -> String {
    match replica.subject.as_str().split_once("/group/") {
        Some((_, group)) => format!("{} group {group}", replica.subject.name()),
        None => replica.subject.name().to_owned(),
    }
}

/// No finding, and nothing that is known to lack.
fn quiet(world: &World, services: &[&ModelService]) -> Headline {
    let say = |tone, text: String| Headline { tone, text, is_finding: false };
    let inputs = world.problems.len();
    if inputs > 0 {
        let (n, verb) = if inputs == 1 { ("1 input".to_owned(), "it holds") } else { (format!("{inputs} inputs"), "they hold") };
        return say(Tone::Warning, format!("no finding, but {n} could not be read whole: what {verb} is not judged"));
    }
    if services.is_empty() {
        return match world.engines.len() {
            0 => say(Tone::Unproven, format!("no model service and no engine is seen in this {}", world.source)),
            n => say(Tone::Unproven, format!("no finding on {n} engine{} that belong to no model service", if n == 1 { "" } else { "s" })),
        };
    }
    let roles = || services.iter().flat_map(|service| &service.roles);
    let unknown = roles().filter(|role| role.funnel.wanted.is_err() || role.funnel.serving.is_err()).count();
    let serving: Vec<&Replica> =
        roles().flat_map(|role| &role.replicas).filter_map(|r| world.replicas.get(r)).filter(|replica| replica.state.serves()).collect();
    let proven = serving.iter().filter(|replica| replica.engine.as_ref().is_ok_and(|engine| engine.state == EngineState::Ready)).count();
    let models = if services.len() == 1 { "1 model".to_owned() } else { format!("{} models", services.len()) };
    let zero = roles().all(|role| role.state == WorkloadState::ScaledToZero);
    let mut text = match (zero, serving.len()) {
        (true, _) => {
            return say(Tone::Unproven, format!("{models} scaled to zero: no request is answered until something scales up"));
        }
        (false, 0) => format!("{models} seen, and none of their replicas was read"),
        (false, all) if proven < all => {
            format!("{all} replicas of {models} are Ready by Kubernetes' word, {proven} of them by their engine's own")
        }
        (false, all) => format!("{all} replicas of {models} serve, by their engines' own word"),
    };
    if unknown > 0 {
        text = format!("{text}; how many are wanted or serve is not known of {unknown} role{}", if unknown == 1 { "" } else { "s" });
    }
    let good = unknown == 0 && proven == serving.len() && !serving.is_empty();
    say(if good { Tone::Good } else { Tone::Unproven }, text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnose::testkit::{Judged, Kit};
    use serde_json::json;

    fn of(judged: &Judged) -> Headline {
        let findings: Vec<&Finding> = judged.findings.iter().collect();
        let services: Vec<&ModelService> = judged.world.services.values().collect();
        headline(&judged.world, &findings, &services)
    }

    fn set(replicas: u32) -> serde_json::Value {
        json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "w", "namespace": "s"},
            "spec": {"replicas": replicas}, "status": {"replicas": replicas, "readyReplicas": replicas}})
    }

    #[test]
    fn good_news_needs_the_engines_word() {
        let kit = || {
            let mut kit = Kit::new().serving_pod("a", true).owned("a", "StatefulSet", "w").object(set(1));
            // Without it a finding says that running requests would be cut.
            kit.change("pod/s/a", |pod| pod["spec"]["containers"][0]["args"] = json!(["--shutdown-timeout", "20"]));
            kit
        };
        assert_eq!(of(&kit().answer("a", "/health", Ok((200, ""))).build()).tone, Tone::Good);
        let not_asked = of(&kit().build());
        assert_eq!(not_asked.tone, Tone::Unproven);
        assert!(not_asked.text.contains("0 of them by their engine's own"), "{}", not_asked.text);
    }

    #[test]
    fn what_was_not_read_is_never_counted_as_zero() {
        let template = json!({"spec": {"containers": [{"name": "vllm", "image": "vllm"}]}});
        let mut unread = set(2);
        unread["spec"]["template"] = template;
        let text = of(&Kit::new().object(unread).build());
        assert_eq!(text.tone, Tone::Unproven);
        assert!(!text.text.contains("serves") && text.text.contains("none of their replicas was read"), "{}", text.text);
    }

    #[test]
    fn what_is_down_outranks_what_is_not_critical_and_says_why() {
        let down = of(&Kit::new().loading_pod("a").owned("a", "StatefulSet", "w").object(set(1)).build());
        assert_eq!((down.tone, down.is_finding), (Tone::Critical, false));
        assert!(down.text.contains("is DOWN") && down.text.contains("a: "), "{}", down.text);
    }

    #[test]
    fn nothing_seen_is_no_good_news() {
        assert_eq!(of(&Kit::new().build()).tone, Tone::Unproven);
    }
}
