//! GPU occupancy from nodes, pods and recorded exporter pages.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use rstest::rstest;
use serde_json::{Value, json};

use crate::engines::MetricPage;
use crate::engines::exposition::{Filter, read};
use crate::model::Subject;
use crate::model::object::{Catalogue, Object};
use crate::world::gpu::{Gpus, Sharing, devices};

fn now() -> Timestamp {
    "2026-11-12T10:00:00Z".parse().unwrap()
}

fn page(node: &str, text: &str) -> MetricPage {
    MetricPage {
        subject: Subject::node(node),
        port: None,
        path: "/metrics".into(),
        at: now(),
        page: Arc::new(read(text.as_bytes(), &Filter::All)),
    }
}

fn catalogue(objects: &[Value]) -> Catalogue {
    Catalogue::new(objects.iter().map(|object| Arc::new(Object::read(object, now()).unwrap())))
}

fn gpus(objects: &[Value], exporter: &str) -> Gpus {
    let exporters = BTreeMap::from([(Subject::node("n"), vec![page("n", exporter)])]);
    Gpus::read(&catalogue(objects), &exporters, &BTreeMap::new(), &BTreeMap::new(), now())
}

fn node(labels: Value, resources: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n", "labels": labels}, "status": {"capacity": resources, "allocatable": resources}})
}

fn pod(name: &str, resource: &str, count: u32) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "s"},
        "spec": {"nodeName": "n", "containers": [{"name": "vllm", "image": "x/vllm-openai", "resources": {"limits": {resource: count.to_string()}}}]},
        "status": {"phase": "Running"}})
}

#[test]
fn a_card_in_turns_counts_once_and_tells_nothing_of_a_pod() {
    let labels = json!({"nvidia.com/gpu.count": "1", "nvidia.com/gpu.replicas": "4", "nvidia.com/gpu.product": "NVIDIA-L40S-SHARED"});
    let line = |pod: &str| format!("DCGM_FI_DEV_GPU_UTIL{{gpu=\"0\",UUID=\"GPU-a\",namespace=\"s\",pod=\"{pod}\"}} 63\n");
    let objects = [node(labels, json!({"nvidia.com/gpu": "4"})), pod("a", "nvidia.com/gpu", 1), pod("b", "nvidia.com/gpu", 1)];
    let gpus = gpus(&objects, &(line("a") + &line("b")));
    let on = &gpus.nodes[&Subject::node("n")];
    assert_eq!((on.physical.as_ref().unwrap().0, on.free(), on.requested()), (1, Ok(2), Ok(2)));
    assert_eq!(on.sharing.as_ref().unwrap().0, Sharing::TimeSlicing { per_card: 4 });
    let card = &gpus.devices[&Subject::node("n").part("gpu/0")];
    assert_eq!(card.util.as_ref().unwrap().value, 0.63);
    assert!(gpus.util_of(&Subject::pod("s", "a")).unwrap().is_err());
}

#[test]
fn an_exporter_that_tells_pods_apart_gives_each_its_own() {
    let line = |pod: &str, util: u32| format!("DCGM_FI_DEV_GPU_UTIL{{gpu=\"0\",UUID=\"GPU-a\",namespace=\"s\",pod=\"{pod}\"}} {util}\n");
    let gpus = gpus(&[node(json!({}), json!({"nvidia.com/gpu": "1"}))], &(line("a", 20) + &line("b", 30)));
    assert_eq!(gpus.devices[&Subject::node("n").part("gpu/0")].util.as_ref().unwrap().value, 0.5);
    assert_eq!(gpus.util_of(&Subject::pod("s", "a")), Some(Ok(0.2)));
}

#[test]
fn slices_are_keyed_below_their_card() {
    let text = include_str!("../../../tests/data/metrics/dcgm-exporter-4.5-h100-mig-made.txt");
    let mixed = json!({"nvidia.com/gpu": "0", "nvidia.com/mig-3g.40gb": "1", "nvidia.com/mig-2g.20gb": "1", "nvidia.com/mig-1g.10gb": "1"});
    let gpus = gpus(&[node(json!({}), mixed), pod("p", "nvidia.com/mig-3g.40gb", 1)], text);
    let slice = |id: u32| &gpus.devices[&Subject::node("n").part(&format!("gpu/0/mig/{id}"))];
    assert_eq!(slice(1).held_by, Ok(vec![Subject::pod("llm", "phi-4-mig-0")]));
    assert_eq!(slice(13).held_by, Ok(vec![]));
    assert!(slice(1).util.is_err() && slice(1).active.is_ok());
    let on = &gpus.nodes[&Subject::node("n")];
    assert_eq!((on.capacity(), on.free(), on.free_of("nvidia.com/mig-3g.40gb"), on.physical.as_ref().unwrap().0), (3, Ok(2), Ok(0), 1));
}

#[rstest]
#[case(include_str!("../../../tests/data/metrics/dcgm-exporter-4.5-h100x8-pods-made.txt"), 8)]
#[case(include_str!("../../../tests/data/metrics/dcgm-exporter-head-lowercase-hostname-made.txt"), 2)]
#[case(include_str!("../../../tests/data/metrics/amd-device-metrics-exporter-mini.txt"), 0)]
#[case(include_str!("../../../tests/data/metrics/vllm-0.33.0.txt"), 0)]
fn recorded_pages(#[case] text: &str, #[case] cards: usize) {
    let read = devices::read(&Catalogue::default(), &Subject::node("n"), &page("n", text));
    assert_eq!(read.len(), cards, "{:?}", read.keys());
}

#[test]
fn a_mark_for_not_supported_is_no_measure_and_exported_labels_name_the_workload() {
    let text = "DCGM_FI_DEV_FB_USED{gpu=\"0\",UUID=\"GPU-a\",pod=\"dcgm-x\",namespace=\"gpu\",exported_pod=\"a\",exported_namespace=\"s\"} 9223372036854775794\n";
    let gpus = gpus(&[node(json!({}), json!({"nvidia.com/gpu": "1"}))], text);
    let card = &gpus.devices[&Subject::node("n").part("gpu/0")];
    assert!(card.memory_used.is_err());
    assert_eq!(card.held_by, Ok(vec![Subject::pod("s", "a")]));
}

#[rstest]
#[case::slices_of_one_strategy(json!({"nvidia.com/gpu.product": "NVIDIA-H100-MIG-1g.10gb", "nvidia.com/gpu.count": "7"}), None)]
#[case::labelled(json!({"nvidia.com/gpu.count": "8"}), Some(8))]
#[case::unlabelled(json!({}), Some(7))]
#[case::shared_without_a_count(json!({"nvidia.com/gpu.replicas": "7"}), None)]
fn cards_behind_slots(#[case] labels: Value, #[case] wanted: Option<u32>) {
    let gpus = gpus(&[node(labels, json!({"nvidia.com/gpu": "7"}))], "");
    assert_eq!(gpus.nodes[&Subject::node("n")].physical.as_ref().ok().map(|(cards, _)| *cards), wanted);
}

#[test]
fn without_nodes_nothing_is_zero() {
    let gpus = Gpus::read(&Catalogue::default(), &BTreeMap::new(), &BTreeMap::new(), &BTreeMap::new(), now());
    assert!(gpus.total(|node| Ok(node.capacity())).is_err());
}

proptest::proptest! {
    /// Whatever nodes and pods there are: a pod can take something exactly where a block is large enough, and never more than is free.
    #[test]
    fn usable_is_what_fits(nodes in proptest::collection::vec((0_u32..9, 0_u32..9, proptest::bool::ANY), 0..6), needed in 1_u32..9) {
        let mut objects: Vec<Value> = nodes.iter().enumerate().map(|(i, (has, _, cordoned))| {
            json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": format!("n{i}")}, "spec": {"unschedulable": cordoned},
                "status": {"capacity": {"nvidia.com/gpu": "8"}, "allocatable": {"nvidia.com/gpu": has.to_string()}}})
        }).collect();
        for (i, (_, held, _)) in nodes.iter().enumerate().filter(|(_, (_, held, _))| *held > 0) {
            let mut holder = pod(&format!("h{i}"), "nvidia.com/gpu", *held);
            holder["spec"]["nodeName"] = format!("n{i}").into();
            objects.push(holder);
        }
        let mut waits = pod("w", "nvidia.com/gpu", needed);
        waits["spec"]["nodeName"] = Value::Null;
        waits["status"] = json!({"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]});
        objects.push(waits);
        let facts = crate::world::Facts { objects: objects.iter().map(|object| Object::read(object, now()).unwrap()).collect(), ..Default::default() };
        let world = crate::world::World::build(facts, "bundle", now());
        let waiting = &world.gpu.waiting[&Subject::pod("s", "w")];
        proptest::prop_assert_eq!(waiting.usable.is_err(), nodes.is_empty());
        if let (Ok(usable), Ok(largest), Ok(free)) = (&waiting.usable, &waiting.largest_block, world.gpu.total(crate::world::gpu::NodeGpus::free)) {
            proptest::prop_assert_eq!(*usable > 0, *largest >= needed);
            proptest::prop_assert!(*usable <= free && *largest <= free);
            let fragmented = crate::diagnose::diagnose(&world).iter().any(|finding| finding.code == crate::model::finding::Code::Fragmentation);
            proptest::prop_assert_eq!(fragmented, *largest < needed && free >= needed);
        }
    }
}
