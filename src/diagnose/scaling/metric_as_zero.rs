//! `metric-missing-read-as-zero`: an empty or missing series counts as 0 and steers scaling.
//!
//! `or vector(0)` in a query is a habit and no fault by itself: it must be shown that the series is missing, or that the engines have work
//! while the autoscaler reads 0.

use super::words::metrics_in;
use crate::model::finding::{Code, Finding};
use crate::model::object::Object;
use crate::model::object::autoscale::Trigger;
use crate::model::{Evidence, Place, Subject};
use crate::world::World;
use crate::world::owners::replicas_of;
use crate::world::prometheus::Given;

pub(super) fn check(world: &World, out: &mut Vec<Finding>) {
    for (object, scaled) in world.objects.scaled_objects() {
        let target = scaled.target.subject(&object.meta.namespace);
        // At zero nothing exports anything: that is another finding.
        if scaled.paused || world.objects.get(&target).and_then(replicas_of) == Some(0) {
            continue;
        }
        for (i, trigger) in scaled.triggers.iter().enumerate().filter(|(_, trigger)| trigger.kind == "prometheus") {
            if let Some((proof, how)) = of_trigger(world, &target, trigger) {
                let path = format!("spec.triggers[{i}].metadata");
                out.push(finding(object, &target, &path, trigger, proof, how));
            }
        }
    }
    for (object, hpa) in world.objects.hpas().filter(|(_, hpa)| hpa.condition("ScalingActive").is_some_and(|active| active.is_true())) {
        let target = hpa.target.subject(&object.meta.namespace);
        for metric in hpa.current_metrics.iter().filter(|metric| metric.number == Some(0.0) && is_queue(&metric.name)) {
            if let Some(busy) = busy(world, &target, &metric.name) {
                let subject = object.subject();
                let summary = format!(
                    "{subject} reads {} as 0, while engines of {target} have requests: a missing series counts as an idle one",
                    metric.name
                );
                let proof = Evidence::new(
                    &subject,
                    Place::Field("status.currentMetrics".into()),
                    format!("{} is {}", metric.name, metric.value),
                    Some(object.seen),
                );
                out.push(
                    Finding::new(Code::MetricMissingReadAsZero, &subject, summary, proof)
                        .proof(busy)
                        .also(&target)
                        .remedy("correct the query or the adapter's rule that feeds the metric (names, labels, namespace), so that a missing series is an error")
                        .not("trust the scale-down that it asks for"),
                );
            }
        }
    }
}

/// What shows that a trigger reads a missing series as 0, and by which setting it does.
fn of_trigger(world: &World, target: &Subject, trigger: &Trigger) -> Option<(Evidence, &'static str)> {
    let filled = without_fill(&trigger.query);
    let answered = world.query(&trigger.query);
    match (&filled, answered.as_ref().and_then(|answered| answered.given.as_ref().ok())) {
        // The whole query gives nothing: KEDA takes that for 0 unless it is told to fail.
        (_, Some(Given::NoSeries)) if trigger.ignore_null => Some((answered?.answer.evidence(), "ignoreNullValues")),
        (Some(inner), given) => {
            let bare =
                world.query(inner).filter(|answered| answered.given == Ok(Given::NoSeries)).map(|answered| answered.answer.evidence());
            let reads_zero = given.is_none_or(|given| *given == Given::Value(0.0));
            let contradicted = || {
                let zero = matches!(given, Some(Given::Value(value)) if *value == 0.0);
                metrics_in(inner).into_iter().filter(|metric| zero && is_queue(metric)).find_map(|metric| busy(world, target, metric))
            };
            let gone = || metrics_in(inner).into_iter().find_map(|metric| not_on_pages(world, target, metric));
            bare.filter(|_| reads_zero).or_else(contradicted).or_else(|| gone().filter(|_| reads_zero)).map(|proof| (proof, "or vector(0)"))
        }
        _ => None,
    }
}

/// A query without its `or vector(0)`; `None` where it has none.
fn without_fill(query: &str) -> Option<String> {
    let squeezed: String = query.split_whitespace().collect::<Vec<_>>().join(" ");
    ["or vector(0)", "or on() vector(0)", "or on () vector(0)", "OR vector(0)", "OR on() vector(0)"]
        .into_iter()
        .find(|fill| squeezed.contains(fill))
        .map(|fill| squeezed.replace(fill, "").trim().trim_end_matches(')').trim().to_owned())
        .map(|inner| balance(&inner))
}

/// Gives back the brackets that were taken with the fill: `(a{…}` → `a{…}`, `sum(a` → `sum(a)`.
fn balance(query: &str) -> String {
    let open = query.matches('(').count().saturating_sub(query.matches(')').count());
    match query.strip_prefix('(') {
        Some(rest) if open == 1 => rest.to_owned(),
        _ => format!("{query}{}", ")".repeat(open)),
    }
}

/// Whether a metric counts requests in an engine.
fn is_queue(metric: &str) -> bool {
    ["num_requests_waiting", "num_requests_running", "num_queue_reqs", "num_running_reqs"].iter().any(|name| metric.contains(name))
}

/// An engine of the target that has requests of the kind that the metric counts.
fn busy(world: &World, target: &Subject, metric: &str) -> Option<Evidence> {
    let waits = metric.contains("waiting") || metric.contains("queue");
    world.replicas.values().filter(|replica| replica.workload.as_ref() == Some(target)).find_map(|replica| {
        let load = replica.engine.as_ref().ok()?.load.as_ref().ok()?;
        let fact = if waits { load.waiting.as_ref() } else { load.running.as_ref() }.ok()?;
        (fact.value > 0.0).then(|| {
            Evidence::new(&replica.subject, Place::Metric(fact.source.clone()), crate::diagnose::support::number(fact.value), Some(fact.at))
        })
    })
}

/// An engine's page that lacks the metric although it is of that engine.
fn not_on_pages(world: &World, target: &Subject, metric: &str) -> Option<Evidence> {
    let engine = metric.split_once(':')?.0;
    world.replicas.values().filter(|replica| replica.workload.as_ref() == Some(target)).find_map(|replica| {
        let page = world.pages.get(&replica.subject)?.last()?;
        let family = ["_bucket", "_sum", "_count"].iter().find_map(|part| metric.strip_suffix(part)).unwrap_or(metric);
        let has = |name: &str| page.page.family(name).next().is_some();
        let of_engine = page.page.families().any(|family| family.name().split(':').next() == Some(engine));
        (of_engine && !has(metric) && !has(family))
            .then(|| Evidence::new(&replica.subject, Place::Metric(metric.to_owned()), "not on the page", Some(page.at)))
    })
}

fn finding(object: &Object, target: &Subject, path: &str, trigger: &Trigger, proof: Evidence, how: &str) -> Finding {
    let subject = object.subject();
    let why = match how {
        "ignoreNullValues" => "an empty result counts as 0 (ignoreNullValues is true unless it is set to \"false\")",
        _ => "the query fills a missing series with 0 (or vector(0))",
    };
    Finding::new(
        Code::MetricMissingReadAsZero,
        &subject,
        format!("{subject} steers {target} by a series that is missing, and {why}: it scales down whatever the load is"),
        proof,
    )
    .proof(Evidence::field(&subject, &format!("{path}.query"), trigger.query.clone()).of_uid(&object.meta.uid))
    .proofs((how == "ignoreNullValues").then(|| Evidence::field(&subject, &format!("{path}.ignoreNullValues"), "true (the default)")))
    .also(target)
    .remedy("set ignoreNullValues: \"false\" on the trigger and give the ScaledObject a fallback, so that a missing series is an error and not an idle load")
    .remedy("correct the query (metric name, labels, namespace), and take \"or vector(0)\" out of it")
    .not("lower minReplicaCount before the series is there")
}

#[cfg(test)]
mod tests {
    use super::super::kit::{deployment, hpa, scaled};
    use super::without_fill;
    use crate::diagnose::testkit::{Kit, vllm_page};
    use crate::model::finding::Code;
    use rstest::rstest;

    const QUERY: &str = "sum(vllm:num_requests_waiting{m=\"a\"})";
    const EMPTY: &str = r#"{"data":{"resultType":"vector","result":[]}}"#;
    const ZERO: &str = r#"{"data":{"resultType":"vector","result":[{"metric":{},"value":[1,"0"]}]}}"#;

    #[rstest]
    #[case("sum(a) or vector(0)", Some("sum(a)"))]
    #[case("(sum(a)  or vector(0))", Some("sum(a)"))]
    #[case("sum(a or vector(0))", Some("sum(a)"))]
    #[case("sum(a)", None)]
    fn fills(#[case] query: &str, #[case] inner: Option<&str>) {
        assert_eq!(without_fill(query).as_deref(), inner);
    }

    #[rstest]
    #[case::no_series(2, QUERY, QUERY, EMPTY, None, true)]
    #[case::measured_zero(2, QUERY, QUERY, ZERO, None, false)]
    #[case::told_to_fail(2, QUERY, QUERY, EMPTY, Some("false"), false)]
    #[case::at_zero(0, QUERY, QUERY, EMPTY, None, false)]
    fn empty_results(
        #[case] replicas: u32,
        #[case] query: &str,
        #[case] asked: &str,
        #[case] body: &str,
        #[case] ignore: Option<&str>,
        #[case] fires: bool,
    ) {
        let mut doc = scaled(query);
        if let Some(ignore) = ignore {
            doc["spec"]["triggers"][0]["metadata"]["ignoreNullValues"] = ignore.into();
        }
        let path = format!("/api/v1/query?query={asked}");
        let world = Kit::new().object(deployment(replicas)).object(doc).answer_from("prometheus", &path, 200, body).build();
        assert_eq!(world.none(Code::MetricMissingReadAsZero), !fires);
    }

    #[rstest]
    #[case(9.0, true)]
    #[case(0.0, false)]
    fn a_filled_query_beside_a_busy_engine(#[case] waiting: f64, #[case] fires: bool) {
        let query = format!("{QUERY} or vector(0)");
        let world = Kit::new()
            .pod_with("p", |_| ())
            .owned("p", "Deployment", "a")
            .page("p", 0, &vllm_page(1.0, waiting, 5.0))
            .object(deployment(1))
            .object(scaled(&query))
            .answer_from("prometheus", &format!("/api/v1/query?query={query}"), 200, ZERO)
            .build();
        assert_eq!(world.none(Code::MetricMissingReadAsZero), !fires, "{:#?}", world.findings);
    }

    #[rstest]
    #[case("0", true)]
    #[case("7", false)]
    fn an_hpa_that_reads_zero_beside_a_busy_engine(#[case] value: &str, #[case] fires: bool) {
        let mut doc = hpa("h", "True", "ValidMetricFound", 1);
        doc["status"]["currentMetrics"][0]["pods"]["current"]["averageValue"] = value.into();
        let world = Kit::new()
            .pod_with("p", |_| ())
            .owned("p", "Deployment", "a")
            .page("p", 0, &vllm_page(1.0, 9.0, 5.0))
            .object(deployment(1))
            .object(doc)
            .build();
        assert_eq!(world.none(Code::MetricMissingReadAsZero), !fires);
    }
}
