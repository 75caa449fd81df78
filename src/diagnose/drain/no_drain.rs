//! `no-drain-on-sigterm`: running requests are cut at SIGTERM.
//!
//! vLLM's default. Where requests are known to run it is a warning that names them; without that knowledge it is worth knowing.

use super::settings::{Settings, settings};
use crate::diagnose::support::number;
use crate::model::finding::{Code, Finding, Severity};
use crate::model::service::Replica;
use crate::model::{Evidence, Place};
use crate::world::World;

/// Most pods named in one finding.
const NAMED: usize = 8;

pub(super) fn check(world: &World, out: &mut Vec<Finding>) {
    for settings in settings(world).into_iter().filter(|settings| settings.forecast.cuts_at_once()) {
        let busy: Vec<(&Replica, f64, f64)> = settings.pods.iter().filter_map(|replica| requests(replica)).filter(|(_, running, waiting)| running + waiting > 0.0).collect();
        out.push(finding(&settings, &busy));
    }
}

/// Requests that run and wait on a pod's engine.
fn requests(replica: &Replica) -> Option<(&Replica, f64, f64)> {
    let load = replica.engine.as_ref().ok()?.load.as_ref().ok()?;
    Some((replica, load.running.as_ref().ok()?.value, load.waiting.as_ref().map_or(0.0, |fact| fact.value)))
}

fn finding(settings: &Settings, busy: &[(&Replica, f64, f64)]) -> Finding {
    let forecast = &settings.forecast;
    let grace = forecast.grace_s;
    let why = format!("no --shutdown-timeout and no preStop, so the engine aborts at once at SIGTERM; the grace period of {grace} s does not help");
    let shown: Vec<String> = busy
        .iter()
        .take(NAMED)
        .map(|(replica, running, waiting)| format!("{}: {} running and {} waiting", replica.subject.name(), number(*running), number(*waiting)))
        .collect();
    let lost: f64 = busy.iter().map(|(_, running, waiting)| running + waiting).sum();
    let words = match busy {
        [] => format!("a stop of a pod of {} cuts the requests that run: {why}", settings.subject.name()),
        _ => format!("a stop cuts requests of {} ({}; {} in all): {why}", settings.subject.name(), shown.join("; "), number(lost)),
    };
    let mut evidence = forecast.evidence.iter().rev().cloned();
    let first = evidence.next().unwrap_or_else(|| Evidence::field(&settings.subject, "spec.terminationGracePeriodSeconds", grace.to_string()));
    let mut finding = Finding::new(Code::NoDrainOnSigterm, &settings.subject, words, first).proofs(evidence);
    for (replica, ..) in busy.iter().take(NAMED) {
        finding = finding.also(&replica.subject);
        let load = replica.engine.as_ref().ok().and_then(|engine| engine.load.as_ref().ok());
        for fact in load.into_iter().flat_map(|load| [&load.running, &load.waiting]).filter_map(|fact| fact.as_ref().ok()) {
            finding = finding.proof(Evidence::new(&replica.subject, Place::Metric(fact.source.clone()), number(fact.value), Some(fact.at)));
        }
    }
    if busy.is_empty() {
        finding = finding.severe(Severity::Info);
    }
    finding
        .remedy("before a stop: take the pod out of rotation (out of the selection of its Service or pool) and wait until nothing runs")
        .remedy("for good: set --shutdown-timeout (vLLM 0.18 and newer), a preStop sleep for the time in which endpoints are taken out, and a grace period above both")
        .not("raise the grace period alone: the engine does not use it")
}

#[cfg(test)]
mod tests {
    use crate::diagnose::testkit::{Kit, vllm_page};
    use crate::model::finding::{Code, Severity};
    use serde_json::json;

    #[test]
    fn requests_that_would_be_lost_are_named() {
        let world = Kit::new().pod_with("a", |_| ()).page("a", 0, &vllm_page(5.0, 2.0, 10.0)).build();
        let finding = world.only(Code::NoDrainOnSigterm);
        assert_eq!(finding.severity, Severity::Warning);
        assert!(finding.summary.contains("5 running and 2 waiting; 7 in all"), "{}", finding.summary);
    }

    #[test]
    fn without_requests_it_is_only_worth_knowing() {
        let world = Kit::new().pod_with("a", |_| ()).page("a", 0, &vllm_page(0.0, 0.0, 10.0)).build();
        assert_eq!(world.only(Code::NoDrainOnSigterm).severity, Severity::Info);
    }

    #[test]
    fn silent_where_something_drains() {
        let flag = Kit::new().pod_with("a", |pod| pod["spec"]["containers"][0]["args"] = json!(["--shutdown-timeout", "20"]));
        assert!(flag.page("a", 0, &vllm_page(5.0, 2.0, 10.0)).build().none(Code::NoDrainOnSigterm));
        let hook = Kit::new().pod_with("a", |pod| pod["spec"]["containers"][0]["lifecycle"] = json!({"preStop": {"sleep": {"seconds": 20}}}));
        assert!(hook.build().none(Code::NoDrainOnSigterm));
        let sglang = Kit::new().pod_with("a", |pod| pod["spec"]["containers"][0]["image"] = "x/sglang:v0.5".into());
        assert!(sglang.build().none(Code::NoDrainOnSigterm));
    }
}
