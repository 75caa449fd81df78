//! What a router's page says of requests: held, sent on, turned away, and whether it could read its engines.
//!
//! Names are those of llm-d-router v0.10.0 and their deprecated twins (`docs/metrics.md` there). A family that is not on the page is `None`,
//! never 0: flow control may be off.

use crate::engines::exposition::Page;

/// Numbers of one page. Counters are since the process started.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Flow {
    /// Requests held at the router.
    pub queue: Option<f64>,
    /// Saturation of the pool as the router computes it; at 1.0 it sends nothing on. Exactly 1.0 may mean stale metrics.
    pub saturation: Option<f64>,
    /// Endpoints without fresh metrics, as its detector counts them.
    pub stale: Option<f64>,
    /// Scrapes of engines that failed.
    pub poll_errors: Option<f64>,
    /// Requests seen.
    pub requests: Option<f64>,
    /// Requests that failed.
    pub errors: Option<f64>,
    /// Requests in flight through it.
    pub running: Option<f64>,
    /// Sent on to an engine.
    pub dispatched: Option<f64>,
    /// Turned away for lack of capacity (429).
    pub rejected_capacity: Option<f64>,
    /// Turned away for lack of endpoints (503).
    pub rejected_no_endpoints: Option<f64>,
    /// Given up in the queue (TTL and others).
    pub evicted: Option<f64>,
    /// Mean queue of the engines. Frozen at its last value while no endpoint is fresh.
    pub mean_queue: Option<f64>,
    /// Mean of running requests of the engines. Frozen likewise.
    pub mean_running: Option<f64>,
    /// Requests that went to decode alone.
    pub decode_only: Option<f64>,
    /// Requests whose prefill went to a prefill engine.
    pub prefill_decode: Option<f64>,
}

impl Flow {
    /// Reads a page; series of other pools are left out.
    pub fn read(page: &Page, pool: &str) -> Self {
        let sum = |names: &[&str], keep: &dyn Fn(&crate::engines::exposition::Sample<'_>) -> bool| -> Option<f64> {
            names.iter().find_map(|name| {
                let own = |label: &str, sample: &crate::engines::exposition::Sample<'_>| sample.label(label).is_none_or(|of| of == pool);
                let mut samples = page.family(name).filter(|sample| own("inference_pool", sample) && own("name", sample)).peekable();
                samples.peek()?;
                let kept: Vec<f64> = samples.filter(|sample| keep(sample)).map(|sample| sample.value()).collect();
                Some(kept.into_iter().sum())
            })
        };
        let all = |names: &[&str]| sum(names, &|_| true);
        let outcome = |wanted: &'static str| {
            sum(&["llm_d_epp_flow_control_requests_total"], &|sample| {
                sample.label("outcome").is_some_and(|outcome| outcome == wanted || (wanted == "Evicted" && outcome.starts_with("Evicted")))
            })
        };
        let decision = |prefill: bool| {
            sum(
                &[
                    "llm_d_epp_disagg_decision_total",
                    "llm_d_inference_scheduler_disagg_decision_total",
                    "llm_d_epp_pd_decision_total",
                    "llm_d_inference_scheduler_pd_decision_total",
                ],
                &|sample| sample.label("decision_type").is_some_and(|kind| kind.contains("prefill") == prefill),
            )
        };
        // Newer routers have one series a stage (prefill, decode, effective): the fullest decides.
        let saturation =
            ["llm_d_epp_flow_control_pool_saturation", "inference_extension_flow_control_pool_saturation"].iter().find_map(|name| {
                page.family(name)
                    .filter(|sample| sample.label("inference_pool").is_none_or(|of| of == pool))
                    .map(|sample| sample.value())
                    .reduce(f64::max)
            });
        Self {
            queue: all(&["llm_d_epp_flow_control_queue_size", "inference_extension_flow_control_queue_size"]),
            saturation,
            stale: all(&["llm_d_epp_flow_control_stale_endpoints"]),
            poll_errors: all(&["llm_d_epp_datalayer_poll_errors_total", "llm_d_inference_scheduler_datalayer_poll_errors_total"]),
            requests: all(&["llm_d_epp_request_total", "inference_objective_request_total", "inference_model_request_total"]),
            errors: all(&[
                "llm_d_epp_request_error_total",
                "inference_objective_request_error_total",
                "inference_model_request_error_total",
            ]),
            running: all(&["llm_d_epp_request_running", "inference_objective_running_requests"]),
            dispatched: outcome("Dispatched"),
            rejected_capacity: outcome("RejectedCapacity"),
            rejected_no_endpoints: outcome("RejectedNoEndpoints"),
            evicted: outcome("Evicted"),
            mean_queue: all(&["llm_d_epp_average_queue_size", "inference_pool_average_queue_size"]),
            mean_running: all(&["llm_d_epp_average_running_requests", "inference_pool_average_running_requests"]),
            decode_only: decision(false),
            prefill_decode: decision(true),
        }
    }
}

/// By how much a counter grew between two pages; `None` where one of them lacks it, or where it fell (the process began anew).
pub fn grown(before: Option<f64>, now: Option<f64>) -> Option<f64> {
    let grown = now? - before?;
    (grown >= 0.0).then_some(grown)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engines::exposition::{Filter, read};

    #[test]
    fn a_family_that_is_absent_is_not_zero_and_an_outcome_that_is_absent_is() {
        let text = "# TYPE llm_d_epp_flow_control_requests_total counter\n\
            llm_d_epp_flow_control_requests_total{outcome=\"RejectedCapacity\",priority=\"0\",inference_pool=\"p\"} 3\n\
            llm_d_epp_flow_control_requests_total{outcome=\"RejectedCapacity\",priority=\"1\",inference_pool=\"p\"} 4\n\
            llm_d_epp_flow_control_requests_total{outcome=\"RejectedCapacity\",priority=\"0\",inference_pool=\"other\"} 90\n";
        let flow = Flow::read(&read(text.as_bytes(), &Filter::All), "p");
        assert_eq!((flow.rejected_capacity, flow.dispatched, flow.queue), (Some(7.0), Some(0.0), None));
    }

    #[test]
    fn growth_is_unknown_after_a_restart() {
        assert_eq!(grown(Some(1.0), Some(4.0)), Some(3.0));
        assert_eq!(grown(Some(9.0), Some(4.0)), None);
        assert_eq!(grown(None, Some(4.0)), None);
    }
}
