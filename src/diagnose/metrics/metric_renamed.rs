//! `metric-renamed`: something asks for a metric under a name that the engine no longer has.

use crate::engines::MetricPage;
use crate::engines::renames::{Rename, renames};
use crate::model::finding::{Code, Finding};
use crate::model::{Evidence, Place, Subject};
use crate::world::World;

/// Where a name is asked for.
struct Asked {
    who: Subject,
    target: Subject,
    path: String,
    text: String,
    /// Pages of any engine prove it, not only those of the target (a query is over everything).
    query: bool,
}

pub(super) fn check(world: &World, out: &mut Vec<Finding>) {
    for asked in asked(world) {
        let replicas: Vec<&Subject> = world
            .replicas
            .values()
            .filter(|replica| replica.workload.as_ref() == Some(&asked.target))
            .flat_map(|replica| &replica.pods)
            .collect();
        let of_target: Vec<&MetricPage> = replicas.iter().filter_map(|pod| world.pages.get(*pod)?.last()).collect();
        let pages: Vec<&MetricPage> = match of_target.is_empty() && asked.query {
            true => world.pages.values().filter_map(|pages| pages.last()).collect(),
            false => of_target,
        };
        for rename in renames() {
            if !names(&asked.text, rename.old) {
                continue;
            }
            if let Some(page) = pages.iter().find(|page| gone(page, rename)) {
                out.push(finding(&asked, rename, page));
                break;
            }
        }
    }
}

fn asked(world: &World) -> Vec<Asked> {
    let mut out = Vec::new();
    for (object, hpa) in world.objects.hpas() {
        for (i, metric) in hpa.metrics.iter().enumerate() {
            out.push(Asked {
                who: object.subject(),
                target: hpa.target.subject(&object.meta.namespace),
                path: format!("spec.metrics[{i}].{}.metric.name", metric.kind.to_ascii_lowercase()),
                text: metric.name.clone(),
                query: false,
            });
        }
    }
    for (object, scaled) in world.objects.scaled_objects() {
        for (i, trigger) in scaled.triggers.iter().enumerate().filter(|(_, trigger)| !trigger.query.is_empty()) {
            out.push(Asked {
                who: object.subject(),
                target: scaled.target.subject(&object.meta.namespace),
                path: format!("spec.triggers[{i}].metadata.query"),
                text: trigger.query.clone(),
                query: true,
            });
        }
    }
    out
}

/// Whether a text holds a metric name, whole: `vllm:gpu_cache_usage_perc`, or with `_` for the colon as adapters write it.
fn names(text: &str, metric: &str) -> bool {
    let plain = metric.replace(':', "_");
    [metric, plain.as_str()].into_iter().any(|name| {
        text.match_indices(name).any(|(at, _)| {
            let part = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric() || c == '_' || c == ':');
            let (before, after) = (text.get(..at).unwrap_or(""), text.get(at + name.len()..).unwrap_or(""));
            !part(before.chars().next_back()) && !part(after.chars().next())
        })
    })
}

/// Whether a page lacks the old name and has what stands in its place (where nothing does: has anything else of that engine).
fn gone(page: &MetricPage, rename: &Rename) -> bool {
    let has = |name: &str| page.page.family(name).next().is_some();
    let family = rename.old.strip_suffix("_bucket").or(rename.old.strip_suffix("_sum")).or(rename.old.strip_suffix("_count"));
    if has(rename.old) || family.is_some_and(has) {
        return false;
    }
    match rename.new {
        [] => {
            let engine = rename.old.split(':').next().unwrap_or_default();
            page.page.families().any(|family| family.name().split(':').next() == Some(engine))
        }
        new => new.iter().any(|new| has(new)),
    }
}

fn finding(asked: &Asked, rename: &Rename, page: &MetricPage) -> Finding {
    let new = rename.new.iter().find(|new| page.page.family(new).next().is_some()).copied();
    let there = new.map_or_else(|| "has nothing in its place".to_owned(), |new| format!("has {new}"));
    let finding = Finding::new(
        Code::MetricRenamed,
        &asked.who,
        format!(
            "{} asks for {}, a name that its engine no longer has ({}): the page of {} {there}",
            asked.who,
            rename.old,
            rename.when,
            page.subject.name()
        ),
        Evidence::field(&asked.who, &asked.path, asked.text.clone()),
    )
    .proof(Evidence::new(&page.subject, Place::Metric(rename.old.into()), "not on the page", Some(page.at)))
    .not("read a missing series as 0");
    match new {
        Some(new) => finding
            .proof(Evidence::new(&page.subject, Place::Metric(new.into()), "on the page", Some(page.at)))
            .remedy(format!("ask for {new} in {} (and in the adapter's rule or recording rule that feeds it)", asked.path)),
        None => {
            finding.remedy(format!("choose another metric in {}: the queue (num_requests_waiting) is there in every release", asked.path))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::names;
    use crate::diagnose::testkit::{Kit, vllm_page};
    use crate::model::finding::Code;
    use rstest::rstest;
    use serde_json::json;

    #[rstest]
    #[case("vllm:gpu_cache_usage_perc", true)]
    #[case("vllm_gpu_cache_usage_perc", true)]
    #[case("avg(vllm:gpu_cache_usage_perc{model_name=\"a\"})", true)]
    #[case("my_vllm:gpu_cache_usage_perc_avg", false)]
    #[case("vllm:kv_cache_usage_perc", false)]
    fn whole_names(#[case] text: &str, #[case] wanted: bool) {
        assert_eq!(names(text, "vllm:gpu_cache_usage_perc"), wanted);
    }

    #[rstest]
    #[case("vllm_gpu_cache_usage_perc", true)]
    #[case("vllm_kv_cache_usage_perc", false)]
    fn an_hpa_that_asks_for_the_old_name(#[case] name: &str, #[case] fires: bool) {
        let world = Kit::new()
            .pod_with("a", |_| ())
            .owned("a", "StatefulSet", "w")
            .page("a", 0, &vllm_page(1.0, 0.0, 5.0))
            .object(json!({"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "h", "namespace": "s"},
                "spec": {"scaleTargetRef": {"kind": "StatefulSet", "name": "w"}, "maxReplicas": 3,
                    "metrics": [{"type": "Pods", "pods": {"metric": {"name": name}, "target": {"averageValue": "700m"}}}]}}))
            .build();
        assert_eq!(world.none(Code::MetricRenamed), !fires, "{:?}", world.findings);
    }

    fn scaled(query: &str, target: &str) -> serde_json::Value {
        json!({"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject", "metadata": {"name": "so", "namespace": "s"},
            "spec": {"scaleTargetRef": {"kind": "StatefulSet", "name": target},
                "triggers": [{"type": "prometheus", "metadata": {"query": query, "threshold": "1"}}, {"type": "cpu", "metadata": {}}]}})
    }

    #[rstest]
    #[case::its_own_engines("avg(vllm:gpu_cache_usage_perc)", "w", true)]
    #[case::engines_of_anybody("avg(vllm:gpu_cache_usage_perc)", "another", true)]
    #[case::the_new_name("avg(vllm:kv_cache_usage_perc)", "w", false)]
    #[case::nothing_asked("", "w", false)]
    #[case::a_name_with_nothing_in_its_place("vllm:num_requests_swapped", "w", true)]
    #[case::another_engines_name("sglang:num_aborted_requests", "w", false)]
    fn a_query_that_asks_for_the_old_name(#[case] query: &str, #[case] target: &str, #[case] wanted: bool) {
        let world = Kit::new().pod_with("a", |_| ()).owned("a", "StatefulSet", "w").page("a", 0, &vllm_page(1.0, 0.0, 5.0));
        assert_eq!(!world.object(scaled(query, target)).build().none(Code::MetricRenamed), wanted);
    }

    #[test]
    fn an_engine_that_still_has_the_old_name_is_asked_rightly() {
        let both = vllm_page(1.0, 0.0, 5.0) + "vllm:gpu_cache_usage_perc{engine=\"0\"} 0.2\n";
        let world = Kit::new().pod_with("a", |_| ()).owned("a", "StatefulSet", "w").page("a", 0, &both);
        assert!(world.object(scaled("vllm:gpu_cache_usage_perc", "w")).build().none(Code::MetricRenamed));
        let histogram = vllm_page(1.0, 0.0, 5.0)
            + "# TYPE vllm:time_per_output_token_seconds histogram\nvllm:time_per_output_token_seconds_bucket{le=\"+Inf\"} 1\n\
               vllm:time_per_output_token_seconds_sum 1\nvllm:time_per_output_token_seconds_count 1\n\
               # TYPE vllm:inter_token_latency_seconds histogram\nvllm:inter_token_latency_seconds_bucket{le=\"+Inf\"} 1\n\
               vllm:inter_token_latency_seconds_sum 1\nvllm:inter_token_latency_seconds_count 1\n";
        let world = Kit::new().pod_with("a", |_| ()).owned("a", "StatefulSet", "w").page("a", 0, &histogram);
        assert!(world.object(scaled("rate(vllm:time_per_output_token_seconds_bucket[1m])", "w")).build().none(Code::MetricRenamed));
    }
}
