//! `router-metrics-stale`: the router knows the endpoints but has no fresh engine metrics of them.
//!
//! A stale endpoint counts as full, so the router holds or sheds requests that the engines could take (llm-d-router #2408, #2100), and
//! the means on its page freeze at their last value. What looks like load is a broken scrape path: more replicas would be stale too.

use crate::diagnose::support::{counted, number};
use crate::model::finding::{Code, Finding, Severity};
use crate::model::state::EngineState;
use crate::model::{Evidence, Place, Subject, time};
use crate::world::World;
use crate::world::flow::{Flow, grown};
use crate::world::proxy::answers_for;
use crate::world::router::RouterReading;

/// Oldest page that is believed, seconds.
const FRESH_S: i64 = 60;
/// Seconds after a pod became Ready in which it may be known and not yet fresh (counts are flushed every five).
const NOTICE_S: i64 = 10;

pub(super) fn check(world: &World, out: &mut Vec<Finding>) {
    for (subject, reading) in &world.routers {
        if !reading.from_leader || time::seconds_between(reading.at, world.now) > FRESH_S {
            continue;
        }
        let Some(stale) = Stale::of(world, reading) else { continue };
        out.push(stale.finding(world, subject, reading));
    }
}

/// Endpoints that the router knows, and how many of them it has fresh metrics of.
struct Stale {
    known: usize,
    fresh: usize,
    /// Pods behind them.
    pods: Vec<Subject>,
}

impl Stale {
    fn of(world: &World, reading: &RouterReading) -> Option<Self> {
        let endpoints = reading.endpoints.as_ref()?;
        let known = reading.ranks().filter(|known| *known > 0)?;
        let ready = reading.ready.as_ref().ok().map(|fact| fact.value.max(0.0) as usize);
        let by_detector = reading.flow.stale.map_or(0, |stale| stale.max(0.0) as usize);
        let fresh = ready.unwrap_or_else(|| known.saturating_sub(by_detector)).min(known);
        let lacking = known.saturating_sub(fresh);
        let namespace = reading.pod.namespace();
        let pods: Vec<Subject> = endpoints.keys().map(|pod| Subject::pod(namespace, pod)).collect();
        // An engine that is dead or asleep gives no metrics by right: that is its own finding, not the scrape path's.
        let explained: usize = endpoints
            .iter()
            .filter(|(pod, _)| {
                let pod = Subject::pod(namespace, pod);
                let engine = world.engines.get(&pod).map(|report| &report.state);
                let silent = matches!(engine, Some(EngineState::Dead | EngineState::Sleeping(_)));
                let new = world
                    .objects
                    .pod(&pod)
                    .and_then(|(_, body)| body.condition("Ready")?.since)
                    .is_some_and(|since| time::seconds_between(since, reading.at) <= NOTICE_S);
                silent || new
            })
            .map(|(_, ranks)| ranks.len())
            .sum();
        (lacking > explained).then_some(Self { known, fresh, pods })
    }

    fn finding(&self, world: &World, subject: &Subject, reading: &RouterReading) -> Finding {
        let flow = &reading.flow;
        let metric = |family: &str, value: String| Evidence::new(&reading.pod, Place::Metric(family.into()), value, Some(reading.at));
        let lacking = self.known.saturating_sub(self.fresh);
        let mut words = vec![format!(
            "the router of {} has no fresh metrics of {lacking} of the {} it knows",
            subject.name(),
            counted(self.known, "endpoint")
        )];
        let mut finding = Finding::new(
            Code::RouterMetricsStale,
            subject,
            String::new(),
            metric("llm_d_epp_ready_endpoints", format!("{} fresh of {} known", self.fresh, self.known)),
        )
        .also(&reading.pod);
        if let Some(stale) = flow.stale {
            finding = finding.proof(metric("llm_d_epp_flow_control_stale_endpoints", number(stale)));
        }
        if let Some(saturation) = flow.saturation.filter(|saturation| *saturation >= 1.0) {
            words.push(format!("so it counts itself saturated ({saturation:.1}) and sends nothing on"));
            finding = finding.proof(metric("llm_d_epp_flow_control_pool_saturation", format!("{saturation:.2} (1.0 and more closes it)")));
        } else if let Some(saturation) = flow.saturation {
            finding = finding.proof(metric("llm_d_epp_flow_control_pool_saturation", format!("saturation {saturation:.2}")));
        }
        let mut hurts = self.fresh == 0;
        for (said, proof, counts) in moves(reading) {
            words.extend(said);
            finding = finding.proof(proof);
            hurts |= counts;
        }
        if let Some(queue) = flow.queue {
            if queue > 0.0 {
                words.push(format!("{} held in the router", number(queue)));
            }
            finding = finding.proof(metric("llm_d_epp_flow_control_queue_size", format!("{} held", number(queue))));
        }
        if let Some(answer) = answers_for(&world.objects, &world.answers, subject).last().filter(|answer| answer.status() != Some(200)) {
            finding = finding.proof(answer.evidence());
            if answer.status() == Some(429) {
                words.push("callers get 429".into());
                hurts = true;
            }
        }
        if let Some((idle, proof)) = self.idle(world) {
            words.push(idle);
            finding = finding.proofs(proof);
        }
        if self.fresh == 0
            && let Some(means) = means(flow)
        {
            finding = finding.proof(metric(
                "llm_d_epp_average_queue_size",
                format!("{means}: of the past, frozen since no endpoint is fresh, no load of now"),
            ));
        }
        finding.summary = words.join(", ");
        let by_code = if hurts { Severity::Critical } else { Severity::Warning };
        finding
            .severe(by_code)
            .remedy("repair the path on which the router reads the engines' metrics: port and path of its scrape, network policy, TLS or token, name of the engine type (llm-d.ai/engine-type)")
            .remedy("read the router's log for failed scrapes; a restart of its leader clears a scrape loop that hangs, and loses what it holds")
            .not("scale out: new replicas would be stale as well, and the router's queue is no load signal while it sends nothing on")
    }

    /// Whether the engines themselves have nothing to do, by their own pages.
    fn idle(&self, world: &World) -> Option<(String, Vec<Evidence>)> {
        let loads: Vec<_> = self
            .pods
            .iter()
            .filter_map(|pod| {
                let load = world.engines.get(pod)?.load.as_ref().ok()?;
                Some((pod, load.running.as_ref().ok()?, load.waiting.as_ref().ok()?))
            })
            .collect();
        let idle = loads.iter().all(|(_, running, waiting)| running.value == 0.0 && waiting.value == 0.0);
        if loads.is_empty() || !idle {
            return None;
        }
        let proof = loads
            .iter()
            .take(4)
            .map(|(pod, running, waiting)| {
                let value = format!("running {}, waiting {}", number(running.value), number(waiting.value));
                Evidence::new(pod, Place::Metric(running.source.clone()), value, Some(running.at))
            })
            .collect();
        Some((
            format!("while {} idle", if loads.len() == 1 { "its engine is".into() } else { format!("{} engines are", loads.len()) }),
            proof,
        ))
    }
}

/// What moved between the last two pages: words, proof, and whether requests are lost by it.
fn moves(reading: &RouterReading) -> Vec<(Option<String>, Evidence, bool)> {
    let Some((before, earlier)) = &reading.earlier else { return Vec::new() };
    let flow = &reading.flow;
    let span = format!("between {before} and {}", reading.at);
    let proof = |family: &str, value: String| Evidence::new(&reading.pod, Place::Metric(family.into()), value, Some(reading.at));
    let mut out = Vec::new();
    let dispatched = grown(earlier.dispatched, flow.dispatched);
    if let Some(rejected) = grown(earlier.rejected_capacity, flow.rejected_capacity).filter(|n| *n > 0.0) {
        let sent = dispatched.map(|n| format!(" and {} dispatched", number(n))).unwrap_or_default();
        let words = format!("{} requests rejected for capacity (429, RejectedCapacity){sent} {span}", number(rejected));
        out.push((Some(words.clone()), proof("llm_d_epp_flow_control_requests_total", words), true));
    } else if let Some(dispatched) = dispatched {
        let words = format!("{} dispatched {span}", number(dispatched));
        out.push((None, proof("llm_d_epp_flow_control_requests_total", words), dispatched == 0.0 && flow.queue.is_some_and(|n| n > 0.0)));
    }
    if let Some(errors) = grown(earlier.poll_errors, flow.poll_errors).filter(|n| *n > 0.0) {
        let words = format!("{} scrapes of engines failed {span}", number(errors));
        out.push((Some(format!("{} of its scrapes failed", number(errors))), proof("llm_d_epp_datalayer_poll_errors_total", words), false));
    }
    out
}

fn means(flow: &Flow) -> Option<String> {
    let words: Vec<String> = [("queue", flow.mean_queue), ("running", flow.mean_running)]
        .into_iter()
        .filter_map(|(name, value)| Some(format!("{name} {}", value?)))
        .collect();
    (!words.is_empty()).then(|| format!("means of {}", words.join(" and ")))
}

#[cfg(test)]
mod tests {
    use crate::diagnose::testkit::{Kit, epp_page, vllm_page};
    use crate::model::finding::{Code, Severity};
    use rstest::rstest;

    fn kit() -> Kit {
        Kit::new().pod_with("a", |_| ()).pod_with("b", |_| ()).pool("p", |_| ()).epp("epp-1", true, |_| ())
    }

    const KNOWN: &[&str] = &["a-rank-0", "b-rank-0"];

    fn flow(rejected: u32, dispatched: u32, queue: u32) -> String {
        format!(
            "llm_d_epp_flow_control_requests_total{{outcome=\"RejectedCapacity\",inference_pool=\"p\"}} {rejected}\n\
             llm_d_epp_flow_control_requests_total{{outcome=\"Dispatched\",inference_pool=\"p\"}} {dispatched}\n\
             llm_d_epp_flow_control_queue_size{{inference_pool=\"p\"}} {queue}\n\
             llm_d_epp_flow_control_pool_saturation{{inference_pool=\"p\"}} 1\n"
        )
    }

    #[test]
    fn sheds_while_engines_idle() {
        let finding = kit()
            .page("epp-1", -60, &epp_page("p", KNOWN, 0, &flow(100, 40, 64)))
            .page("epp-1", 0, &epp_page("p", KNOWN, 0, &flow(460, 40, 64)))
            .page("a", 0, &vllm_page(0.0, 0.0, 10.0))
            .page("b", 0, &vllm_page(0.0, 0.0, 10.0))
            .build()
            .only(Code::RouterMetricsStale);
        assert_eq!(finding.severity, Severity::Critical);
        for word in ["360 requests rejected", "0 dispatched", "64 held", "saturated (1.0)", "2 engines are idle"] {
            assert!(finding.summary.contains(word), "{word}: {}", finding.summary);
        }
        assert!(finding.not.iter().any(|not| not.contains("replicas")));
    }

    #[rstest]
    #[case::all_fresh(KNOWN, 2, 0, false)]
    #[case::one_stale(KNOWN, 1, 0, true)]
    #[case::one_stale_on_an_old_page(KNOWN, 1, -300, false)]
    #[case::empty_pool(&[], 0, 0, false)]
    fn fresh_against_known(#[case] endpoints: &[&str], #[case] fresh: usize, #[case] offset: i64, #[case] fires: bool) {
        let world = kit().page("epp-1", offset, &epp_page("p", endpoints, fresh, "")).build();
        assert_eq!(!world.none(Code::RouterMetricsStale), fires, "{:?}", world.findings);
        if fires {
            assert_eq!(world.only(Code::RouterMetricsStale).severity, Severity::Warning);
        }
    }

    #[test]
    fn an_engine_that_is_dead_explains_its_silence() {
        let world = kit()
            .page("epp-1", 0, &epp_page("p", KNOWN, 1, ""))
            .answer("a", "/health", Err("connection refused"))
            .with("pod/s/a", |pod| pod["status"]["conditions"][3]["status"] = "True".into())
            .build();
        let dead = world.world.engines[&crate::model::Subject::pod("s", "a")].state == crate::model::state::EngineState::Dead;
        assert_eq!(world.none(Code::RouterMetricsStale), dead);
    }
}
