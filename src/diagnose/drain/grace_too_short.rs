//! `grace-too-short`: the grace period ends before preStop and drain do.

use super::settings::{Settings, settings};
use crate::engines::DrainPromise;
use crate::model::finding::{Code, Finding};
use crate::model::{Evidence, Place};
use crate::world::World;
use crate::world::forecast::EXIT_S;

/// Most pods named in one finding.
const NAMED: usize = 8;

pub(super) fn check(world: &World, out: &mut Vec<Finding>) {
    for settings in settings(world) {
        out.extend(by_settings(&settings).or_else(|| by_requests(&settings)));
    }
}

/// The time that preStop and the engine's own drain may take is longer than the grace period.
fn by_settings(settings: &Settings) -> Option<Finding> {
    let forecast = &settings.forecast;
    let needed = forecast.needed_s.clone().ok()?;
    let whole = needed.saturating_sub(EXIT_S);
    if forecast.grace_s > whole {
        return None;
    }
    let hook = forecast.pre_stop_s.clone().unwrap_or(0);
    let own = match &forecast.promise {
        DrainPromise::Finishes { up_to_s: Some(seconds), .. } => *seconds,
        _ => 0,
    };
    let parts = match (hook, own) {
        (0, own) => format!("shutdown timeout {own} s"),
        (hook, 0) => format!("preStop {hook} s"),
        (hook, own) => format!("preStop {hook} s and shutdown timeout {own} s"),
    };
    let left = forecast.after_sigterm_s().unwrap_or(0);
    let effect = if own == 0 {
        format!("preStop is cut off, and SIGKILL comes after {} s in all", forecast.grace_s)
    } else if left == 0 {
        "SIGKILL comes before the engine is even told to end, so all running requests are lost".into()
    } else {
        format!("SIGKILL comes {left} s after SIGTERM, so requests that take longer than {left} s are lost")
    };
    let grace = forecast.grace_s;
    Some(
        finding(
            settings,
            format!("the grace period of {} is {grace} s, and its drain may take {whole} s ({parts}): {effect}", settings.subject.name()),
        )
        .remedy(format!("set terminationGracePeriodSeconds to {needed} or more where the template is owned (a change rolls the pods)"))
        .remedy("or shorten the drain to what requests need")
        .not("rely on the shutdown timeout alone: the grace period counts from the start of preStop, and its end is final"),
    )
}

/// The engine drains until the grace period ends, and its requests take longer than that.
fn by_requests(settings: &Settings) -> Option<Finding> {
    let forecast = &settings.forecast;
    if !matches!(forecast.promise, DrainPromise::Finishes { up_to_s: None, .. }) {
        return None;
    }
    let left = forecast.after_sigterm_s().ok()?;
    let (replica, load, longest) = settings
        .pods
        .iter()
        .filter_map(|replica| {
            let load = replica.engine.as_ref().ok()?.load.as_ref().ok()?;
            Some((*replica, load, load.e2e.as_ref()?.p99?))
        })
        .max_by(|a, b| a.2.total_cmp(&b.2))?;
    if longest <= left as f64 {
        return None;
    }
    let needed = (longest.min(1e9) as i64).saturating_add(forecast.pre_stop_s.clone().unwrap_or(0)).saturating_add(EXIT_S);
    let words = format!(
        "the grace period of {} is {} s, and its longest requests take {longest:.0} s (99th percentile): those that run longer than {left} s after SIGTERM are lost with SIGKILL",
        settings.subject.name(),
        forecast.grace_s
    );
    let proof = Evidence::new(
        &replica.subject,
        Place::Metric("e2e_request_latency_seconds".into()),
        format!("99th percentile {longest:.1} s"),
        Some(load.at),
    );
    Some(
        finding(settings, words)
            .proof(proof)
            .remedy(format!("set terminationGracePeriodSeconds to {needed} or more where the template is owned")),
    )
}

fn finding(settings: &Settings, words: String) -> Finding {
    let mut evidence = settings.forecast.evidence.iter().cloned();
    let first = evidence
        .next()
        .unwrap_or_else(|| Evidence::field(&settings.subject, "spec.terminationGracePeriodSeconds", settings.forecast.grace_s.to_string()));
    let finding = Finding::new(Code::GraceTooShort, &settings.subject, words, first).proofs(evidence);
    settings.pods.iter().take(NAMED).fold(finding, |finding, replica| finding.also(&replica.subject))
}

#[cfg(test)]
mod tests {
    use crate::diagnose::testkit::Kit;
    use crate::model::finding::Code;
    use rstest::rstest;
    use serde_json::{Value, json};

    fn template(grace: Value, sleep: Value, timeout: Option<&str>) -> Value {
        let args: Vec<&str> = timeout.map_or(vec![], |timeout| vec!["--shutdown-timeout", timeout]);
        json!({"terminationGracePeriodSeconds": grace, "containers": [{"name": "vllm", "image": "x/vllm-openai:v0.19.0", "args": args,
            "lifecycle": if sleep.is_null() { Value::Null } else { json!({"preStop": {"sleep": {"seconds": sleep}}}) }}]})
    }

    #[rstest]
    #[case::both(json!(30), json!(15), Some("120"), true)]
    #[case::enough(json!(200), json!(15), Some("120"), false)]
    #[case::exactly(json!(135), json!(15), Some("120"), true)]
    #[case::the_default_grace(Value::Null, Value::Null, Some("60"), true)]
    #[case::a_hook_alone(json!(30), json!(60), None, true)]
    #[case::nothing_drains(json!(30), Value::Null, None, false)]
    fn templates(#[case] grace: Value, #[case] sleep: Value, #[case] timeout: Option<&str>, #[case] fires: bool) {
        let spec = template(grace, sleep, timeout);
        let world = Kit::new()
            .object(json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "w", "namespace": "s"}, "spec": {"template": {"spec": spec}}}))
            .build();
        assert_eq!(world.none(Code::GraceTooShort), !fires, "{:?}", world.findings);
    }

    #[test]
    fn a_pod_without_its_workload_speaks_for_itself() {
        let spec = template(json!(30), json!(15), Some("120"));
        let world = Kit::new().pod_with("a", |pod| pod["spec"] = spec).build();
        let finding = world.only(Code::GraceTooShort);
        assert_eq!(finding.subjects[0].as_str(), "pod/s/a");
        assert!(finding.summary.contains("15 s after SIGTERM"), "{}", finding.summary);
    }
}
