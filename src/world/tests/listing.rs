//! Which pods a Service or a pool picks.

use rstest::rstest;
use serde_json::{Value, json};

use crate::diagnose::testkit::{Judged, Kit};
use crate::model::Subject;
use crate::model::service::Listing;

fn pool(selector: Value, status: Value) -> Value {
    json!({"apiVersion": "inference.networking.k8s.io/v1", "kind": "InferencePool", "metadata": {"name": "p", "namespace": "s"},
        "spec": {"selector": {"matchLabels": selector}, "targetPorts": [{"number": 8000}], "endpointPickerRef": {"name": "epp"}}, "status": status})
}

fn listing(world: &Judged, pod: &str) -> Listing {
    world.world.replicas.get(&Subject::pod("s", pod)).unwrap().listing.clone()
}

#[test]
fn a_pool_needs_no_slice_and_leaves_out_what_is_not_ready() {
    let world = Kit::new().pod_with("a", |_| ()).loading_pod("b").object(pool(json!({"app": "a"}), json!({}))).build();
    assert_eq!(listing(&world, "a").listed, Ok(true));
    assert_eq!(listing(&world, "b").listed, Ok(false));
    assert!(listing(&world, "a").routed.unwrap_err().why().contains("was not asked"));
    let front = world.world.fronts.get(&Subject::parse("inferencepool/s/p")).unwrap();
    assert_eq!((front.selected.len(), front.ready.len(), front.usable.as_ref().unwrap().len()), (2, 1, 1));
    assert!(front.serves_engines);
}

#[rstest]
#[case::taken_up_by_nobody(json!({"parents": []}), Ok(false))]
#[case::refused(json!({"parents": [{"parentRef": {"name": "g"}, "conditions": [{"type": "Accepted", "status": "False", "reason": "X"}]}]}), Ok(false))]
#[case::accepted(json!({"parents": [{"parentRef": {"name": "g"}, "conditions": [{"type": "Accepted", "status": "True"}]}]}), Err(()))]
#[case::no_status(json!({}), Err(()))]
fn a_pool_that_no_gateway_sends_to_routes_nothing(#[case] status: Value, #[case] wanted: Result<bool, ()>) {
    let world = Kit::new().pod_with("a", |_| ()).object(pool(json!({"app": "a"}), status)).build();
    assert_eq!(listing(&world, "a").listed, Ok(true));
    assert_eq!(listing(&world, "a").routed.map_err(|_| ()), wanted);
}

#[test]
fn the_routers_page_tells_whom_it_counts_by_rank() {
    let epp = |kit: Kit, page: &str| {
        kit.pod_with("a", |_| ())
            .pod_with("b", |_| ())
            .object(pool(json!({"app": "a"}), json!({})))
            .object(json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "epp", "namespace": "s"}, "spec": {"selector": {"app": "epp"}}}))
            .object(json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "router", "namespace": "s", "labels": {"app": "epp"}},
                "spec": {"nodeName": "n", "containers": [{"name": "epp", "image": "x/epp"}]}, "status": {"phase": "Running"}}))
            .page("router", 0, page)
            .build()
    };
    let page = "llm_d_epp_per_endpoint_queue_size{name=\"p\",model_server_endpoint=\"a-rank-0\"} 0\n\
                llm_d_epp_per_endpoint_queue_size{name=\"p\",model_server_endpoint=\"a-rank-1\"} 0\n\
                llm_d_epp_ready_endpoints{name=\"p\"} 2\n";
    let world = epp(Kit::new(), page);
    assert_eq!(listing(&world, "a").routed, Ok(true));
    assert_eq!(listing(&world, "b").routed, Ok(false));
    assert_eq!(world.world.routers.values().next().unwrap().ranks(), Some(2));
    // A router that only counts names nobody; one that counts none names none.
    let world = epp(Kit::new(), "llm_d_epp_ready_endpoints{name=\"p\"} 2\n");
    assert!(listing(&world, "a").routed.is_err());
    let world = epp(Kit::new(), "llm_d_epp_ready_endpoints{name=\"p\"} 0\n");
    assert_eq!(listing(&world, "a").routed, Ok(false));
    let world = epp(Kit::new(), "llm_d_epp_ready_endpoints{name=\"another\"} 2\n");
    assert!(world.world.routers.is_empty());
}

#[rstest]
#[case::ready(true, Ok(true))]
#[case::not_ready(false, Ok(false))]
fn a_service_is_what_its_slices_say(#[case] ready: bool, #[case] wanted: Result<bool, ()>) {
    let world = Kit::new().serving_pod("a", ready).build();
    assert_eq!(listing(&world, "a").listed.map_err(|_| ()), wanted);
}

#[test]
fn without_slices_nothing_is_known() {
    let service =
        json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "v", "namespace": "s"}, "spec": {"selector": {"app": "a"}}});
    let world = Kit::new().pod_with("a", |_| ()).object(service).build();
    assert!(listing(&world, "a").listed.unwrap_err().why().contains("EndpointSlice"));
}

#[test]
fn an_endpoint_of_an_earlier_pod_of_the_same_name_is_not_this_pod() {
    let mut kit = Kit::new().serving_pod("a", true);
    kit.change("endpointslice/s/a-1", |slice| slice["endpoints"][0]["targetRef"]["uid"] = "another".into());
    assert_eq!(listing(&kit.build(), "a").listed, Ok(false));
}

#[test]
fn ready_in_one_slice_of_two_is_ready() {
    let second = json!({"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
        "metadata": {"name": "a-0", "namespace": "s", "labels": {"kubernetes.io/service-name": "a"}},
        "endpoints": [{"conditions": {"ready": false}, "targetRef": {"kind": "Pod", "name": "a", "uid": "uid-a"}}]});
    assert_eq!(listing(&Kit::new().serving_pod("a", true).object(second).build(), "a").listed, Ok(true));
}

#[test]
fn a_headless_service_beside_another_does_not_count() {
    let headless = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "h", "namespace": "s"},
        "spec": {"selector": {"app": "a"}, "clusterIP": "None"}});
    let world = Kit::new().serving_pod("a", true).object(headless).build();
    assert_eq!(listing(&world, "a").fronts, [Subject::parse("service/s/a")]);
}

#[test]
fn a_pod_that_its_models_pool_does_not_select_is_not_listed() {
    let world = Kit::new()
        .pod_with("a", |pod| pod["metadata"]["labels"] = json!({"app": "a", "in": "yes"}))
        .pod_with("b", |pod| pod["metadata"]["labels"] = json!({"app": "a"}))
        .owned("a", "StatefulSet", "w")
        .owned("b", "StatefulSet", "w")
        .object(pool(json!({"in": "yes"}), json!({})))
        .build();
    let b = listing(&world, "b");
    assert_eq!((b.listed, b.routed), (Ok(false), Ok(false)));
    assert!(b.why.contains("in=yes"), "{}", b.why);
}

#[rstest]
#[case::fits(json!([{"port": 80, "targetPort": 8000}]), json!([{"name": "http", "containerPort": 8000}]), None)]
#[case::astray(json!([{"port": 80, "targetPort": 9999}]), json!([{"name": "http", "containerPort": 8000}]), Some("service/s/a sends to port 9999, the pod opens 8000"))]
#[case::named(json!([{"port": 80, "targetPort": "http"}]), json!([{"name": "http", "containerPort": 8000}]), None)]
#[case::named_astray(json!([{"port": 80, "targetPort": "api"}]), json!([{"name": "http", "containerPort": 8000}]), Some("service/s/a sends to port api, the pod opens 8000"))]
#[case::one_of_two(json!([{"port": 80, "targetPort": 9999}, {"port": 8000}]), json!([{"name": "http", "containerPort": 8000}]), None)]
#[case::nothing_declared(json!([{"port": 80, "targetPort": 9999}]), json!([]), None)]
fn a_target_port_that_the_pod_does_not_open_reaches_nothing(#[case] ports: Value, #[case] opens: Value, #[case] wanted: Option<&str>) {
    let kit = Kit::new().serving_pod("a", true).with("service/s/a", |service| service["spec"]["ports"] = ports);
    let world = kit.with("pod/s/a", |pod| pod["spec"]["containers"][0]["ports"] = opens).build();
    let listing = listing(&world, "a");
    assert_eq!(listing.listed, Ok(true));
    assert_eq!((listing.routed == Ok(false)).then_some(listing.why.as_str()), wanted);
    let state = world.world.replicas.get(&Subject::pod("s", "a")).unwrap().state;
    assert_eq!(state == crate::model::state::ReplicaState::NotRouted, wanted.is_some(), "{state}");
}
