//! Routers of pools from recorded pages: whose page counts, and what is on it.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::engines::MetricPage;
use crate::engines::exposition::{Filter, read};
use crate::model::Subject;
use crate::model::object::{Catalogue, Object};
use crate::world::{epp, router};

const HEALTHY: &str = include_str!("../../../tests/data/metrics/epp-v0.10.0-healthy-3-endpoints.txt");
const STALE: &str = include_str!("../../../tests/data/metrics/epp-v0.10.0-one-endpoint-stale.txt");
const STANDBY: &str = include_str!("../../../tests/data/metrics/epp-v0.10.0-standby-follower.txt");
const EMPTY: &str = include_str!("../../../tests/data/metrics/epp-v0.10.0-pool-empty-waking.txt");

fn now() -> Timestamp {
    "2026-11-12T10:00:00Z".parse().unwrap()
}

fn reading(pages: &[(&str, &str)], more: &[Value]) -> router::RouterReading {
    let mut objects = vec![
        json!({"apiVersion": "inference.networking.k8s.io/v1", "kind": "InferencePool", "metadata": {"name": "optimized-baseline", "namespace": "s"},
            "spec": {"selector": {"matchLabels": {"app": "a"}}, "endpointPickerRef": {"name": "epp"}}}),
        json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "epp", "namespace": "s"}, "spec": {"selector": {"app": "epp"}}}),
    ];
    for (pod, _) in pages {
        objects.push(json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": pod, "namespace": "s", "labels": {"app": "epp"}},
            "spec": {"containers": [{"name": "epp", "image": "x/epp"}]}, "status": {"phase": "Running"}}));
    }
    objects.extend(more.iter().cloned());
    let objects = Catalogue::new(objects.iter().map(|object| Arc::new(Object::read(object, now()).unwrap())));
    let pages: BTreeMap<Subject, Vec<MetricPage>> = pages
        .iter()
        .map(|(pod, text)| {
            let subject = Subject::pod("s", pod);
            let page = MetricPage {
                subject: subject.clone(),
                port: None,
                path: "/metrics".into(),
                at: now(),
                page: Arc::new(read(text.as_bytes(), &Filter::All)),
            };
            (subject, vec![page])
        })
        .collect();
    let pickers = epp::pickers(&objects, &pages, now());
    router::routers(&objects, &pickers, &pages).remove(&Subject::object("inferencepool", "s", "optimized-baseline")).unwrap()
}

#[test]
fn the_leaders_page_counts_and_replicas_are_not_added_up() {
    let both = reading(&[("a", STANDBY), ("b", HEALTHY)], &[]);
    assert_eq!((both.pod.name(), both.from_leader, both.ranks()), ("b", true, Some(3)));
    assert!(!reading(&[("a", STANDBY)], &[]).from_leader);
}

#[test]
fn the_lease_decides_over_the_gauge() {
    let lease = json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "epp-s-optimized-baseline.llm-d.ai", "namespace": "s"},
        "spec": {"holderIdentity": "a_1", "leaseDurationSeconds": 15, "renewTime": "2026-11-12T09:59:58Z"}});
    assert_eq!(reading(&[("a", HEALTHY), ("b", STALE)], &[lease]).pod.name(), "a");
}

#[test]
fn what_is_on_the_page() {
    let stale = reading(&[("a", STALE)], &[]);
    assert_eq!((stale.flow.stale, stale.flow.queue, stale.flow.saturation), (Some(1.0), Some(4.0), Some(0.83)));
    assert_eq!((stale.ready.as_ref().unwrap().value, stale.ranks()), (2.0, Some(3)));
    let empty = reading(&[("a", EMPTY)], &[]);
    assert_eq!((empty.ranks(), empty.flow.rejected_no_endpoints, empty.flow.evicted), (Some(0), Some(1.0), Some(3.0)));
}
