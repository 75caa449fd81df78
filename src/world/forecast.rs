//! What a stop would do to running requests: grace period, preStop and the engine's own drain put together.
//!
//! Owns the arithmetic. The engine's promise comes from `engines`; what a rule makes of the forecast is the rule's.
//! Order at a stop (Kubernetes): preStop runs while the grace period already counts, then SIGTERM, then SIGKILL at its end.

use super::World;
use super::probes::engine_container;
use crate::engines::{DrainPromise, drain_promise};
use crate::model::engine::EngineKind;
use crate::model::object::pod::{Container, PreStop};
use crate::model::object::{PodSpec, Workload};
use crate::model::service::Replica;
use crate::model::unknown::unknown;
use crate::model::{Evidence, Known, Subject};
use crate::systems::recognise::engine_of;

/// Seconds that an engine needs to end after its last request.
pub const EXIT_S: i64 = 5;

/// The forecast of a stop of one pod.
#[derive(Debug, Clone, PartialEq)]
pub struct Forecast {
    /// Grace period, seconds.
    pub grace_s: i64,
    /// What runs before SIGTERM.
    pub pre_stop: Option<PreStop>,
    /// Seconds of it; 0 without one, unknown for a hook of which nobody knows how long it takes.
    pub pre_stop_s: Known<i64>,
    /// What the engine does at SIGTERM.
    pub promise: DrainPromise,
    /// Seconds that running requests get to finish.
    pub drain_s: Known<i64>,
    /// Grace period that would let preStop and the engine's own drain end, where those have an end of their own.
    pub needed_s: Known<i64>,
    /// What shows it.
    pub evidence: Vec<Evidence>,
}

impl Forecast {
    /// Whether requests are cut as soon as the stop begins: nothing drains and nothing waits.
    pub fn cuts_at_once(&self) -> bool {
        matches!(self.promise, DrainPromise::Cuts { .. }) && self.pre_stop.is_none()
    }

    /// Seconds between SIGTERM and SIGKILL.
    pub fn after_sigterm_s(&self) -> Known<i64> {
        Ok(self.grace_s.saturating_sub(self.pre_stop_s.clone()?).max(0))
    }
}

/// The forecast for a pod or a pod template. `prefix` is where its spec stands: empty for a pod, `spec.template.` for a template.
pub fn forecast(subject: &Subject, prefix: &str, spec: &PodSpec, container: &Container, kind: EngineKind) -> Forecast {
    let grace_s = spec.grace().clamp(0, 1 << 31);
    let promise = drain_promise(subject, kind, Some(container));
    let pre_stop = container.pre_stop.clone();
    let pre_stop_s: Known<i64> = match &pre_stop {
        None => Ok(0),
        Some(PreStop { sleep_s: Some(seconds), .. }) => Ok((*seconds).clamp(0, 1 << 31)),
        Some(hook) => unknown(format!("how long its preStop ({}) takes is not known", hook.what)),
    };
    let (drain_s, needed_s) = match (&promise, &pre_stop_s) {
        (DrainPromise::Unknown(why), _) => (Err(why.clone()), Err(why.clone())),
        (DrainPromise::Finishes { up_to_s: None, .. }, _) => {
            (Ok(grace_s), unknown("the engine finishes what it has without a limit of its own: the longest request decides"))
        }
        (_, Err(why)) => (Err(why.clone()), Err(why.clone())),
        (DrainPromise::Finishes { up_to_s: Some(limit), .. }, Ok(hook)) => {
            let whole = hook.saturating_add((*limit).max(0));
            (Ok(whole.min(grace_s)), Ok(whole.saturating_add(EXIT_S)))
        }
        (DrainPromise::Cuts { .. }, Ok(0)) => (Ok(0), unknown("nothing drains: a longer grace period changes nothing")),
        (DrainPromise::Cuts { .. }, Ok(hook)) => ((Ok((*hook).min(grace_s))), Ok(hook.saturating_add(EXIT_S))),
    };
    let set = if spec.grace_s.is_some() { "" } else { " (not set: the default)" };
    let mut evidence = vec![Evidence::field(subject, &format!("{prefix}spec.terminationGracePeriodSeconds"), format!("{grace_s}{set}"))];
    let hook = pre_stop.as_ref().map_or("none", |hook| hook.what.as_str());
    evidence.push(Evidence::field(subject, &format!("{prefix}spec.containers[{}].lifecycle.preStop", container.name), hook));
    evidence.extend(promise.evidence().iter().cloned());
    Forecast { grace_s, pre_stop, pre_stop_s, promise, drain_s, needed_s, evidence }
}

/// The forecast of a pod that runs an engine, by its own spec. `None` for pods whose engine is not known.
pub fn of_pod(world: &World, replica: &Replica) -> Option<Forecast> {
    let kind = replica.engine.as_ref().ok()?.kind.clone().ok()?;
    let (_, pod) = world.objects.pod(&replica.subject)?;
    let (container, _) = engine_container(world, replica)?;
    Some(forecast(&replica.subject, "", &pod.spec, container, kind))
}

/// The forecast of a workload's pods by its template. `None` where the template runs no engine that is known.
pub fn for_template(subject: &Subject, body: &Workload) -> Option<Forecast> {
    let (kind, name, _) = engine_of(subject, &body.template_labels, &body.template_annotations, &body.template)?;
    let container = body.template.containers.iter().chain(&body.template.init_containers).find(|container| container.name == name)?;
    Some(forecast(subject, "spec.template.", &body.template, container, kind))
}

/// Requests that a stop now would cut, where that is known: all that run or wait, when nothing drains them.
pub fn requests_lost(replica: &Replica, forecast: &Forecast) -> Known<f64> {
    let engine = replica.engine.as_ref().map_err(Clone::clone)?;
    let load = engine.load.as_ref().map_err(Clone::clone)?;
    let all = load.running.as_ref().map_err(Clone::clone)?.value + load.waiting.as_ref().map_err(Clone::clone)?.value;
    match &forecast.drain_s {
        _ if all == 0.0 => Ok(0.0),
        Ok(0) => Ok(all),
        Ok(seconds) => unknown(format!("those that take longer than {seconds} s: how long each still takes is not known")),
        Err(why) => Err(why.clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    fn of(kind: EngineKind, grace: Option<i64>, hook: Option<Option<i64>>, args: &[&str]) -> Forecast {
        let container = Container {
            name: "e".into(),
            image: "vllm:v0.30.0".into(),
            args: args.iter().map(|arg| (*arg).to_owned()).collect(),
            pre_stop: hook.map(|sleep_s| PreStop { sleep_s, what: "hook".into() }),
            ..Container::default()
        };
        let spec = PodSpec { containers: vec![container.clone()], grace_s: grace, ..PodSpec::default() };
        forecast(&Subject::pod("s", "a"), "", &spec, &container, kind)
    }

    #[rstest]
    #[case::default(EngineKind::Vllm, None, None, &[], Some(0), None)]
    #[case::hook_only(EngineKind::Vllm, Some(60), Some(Some(20)), &[], Some(20), Some(25))]
    #[case::hook_longer_than_grace(EngineKind::Vllm, None, Some(Some(300)), &[], Some(30), Some(305))]
    #[case::both(EngineKind::Vllm, None, Some(Some(15)), &["--shutdown-timeout", "120"], Some(30), Some(140))]
    #[case::enough(EngineKind::Vllm, Some(200), Some(Some(15)), &["--shutdown-timeout", "120"], Some(135), Some(140))]
    #[case::a_hook_nobody_knows(EngineKind::Vllm, None, Some(None), &["--shutdown-timeout", "120"], None, None)]
    #[case::until_grace_ends(EngineKind::Sglang, Some(90), Some(Some(10)), &[], Some(90), None)]
    #[case::an_unknown_server(EngineKind::OpenAi, None, None, &[], None, None)]
    fn arithmetic(
        #[case] kind: EngineKind,
        #[case] grace: Option<i64>,
        #[case] hook: Option<Option<i64>>,
        #[case] args: &[&str],
        #[case] drain: Option<i64>,
        #[case] needed: Option<i64>,
    ) {
        let forecast = of(kind, grace, hook, args);
        assert_eq!((forecast.drain_s.ok(), forecast.needed_s.ok()), (drain, needed));
    }

    #[test]
    fn numbers_of_strangers_do_not_overflow() {
        let forecast = of(EngineKind::Vllm, Some(i64::MAX), Some(Some(i64::MAX)), &["--shutdown-timeout", "99999999999999"]);
        assert!(forecast.drain_s.is_ok() && forecast.after_sigterm_s() == Ok(0));
    }
}
