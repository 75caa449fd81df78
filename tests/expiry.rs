//! What the embedded API says when the past is forgotten: 410 as an answer for pages, 410 in the stream for watches.
//!
//! The words are those of `k8s.io/apiserver` 1.36; a real server forgets only after minutes, so this is no script of the behaviour suite.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt, Full};
use modeldeck::simulator::api::auth::User;
use modeldeck::simulator::api::cluster::{Cluster, Options};
use serde_json::{Value, json};

async fn ask(cluster: &Cluster, method: &str, path: &str, body: Value) -> (u16, Value) {
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let request = Request::builder().method(method).uri(path).body(Full::new(Bytes::from(body))).unwrap();
    let answer = cluster.clone().answer(request).await;
    let code = answer.status().as_u16();
    let bytes = answer.into_body().collect().await.unwrap().to_bytes();
    // Of a watch the first line.
    let first = bytes.split(|b| *b == b'\n').next().unwrap();
    (code, serde_json::from_slice(if first.starts_with(b"{\"type\"") { first } else { &bytes }).unwrap())
}

const SECRETS: &str = "/api/v1/namespaces/default/secrets";

async fn cluster() -> Cluster {
    let cluster = Cluster::open(Options::default()).as_user(User::known("admin", &["system:masters"]));
    for name in ["a", "b", "c"] {
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}});
        assert_eq!(ask(&cluster, "POST", SECRETS, secret).await.0, 201);
    }
    cluster
}

fn forget(cluster: &Cluster) {
    cluster.change(|state| {
        let newest = state.store.revision();
        state.store.compact(newest);
    });
}

#[tokio::test(start_paused = true)]
async fn a_page_of_a_forgotten_list_is_410_with_the_token_to_go_on_without_it() {
    let cluster = cluster().await;
    let (_, first) = ask(&cluster, "GET", &format!("{SECRETS}?limit=1"), Value::Null).await;
    assert_eq!((&first["items"][0]["metadata"]["name"], &first["metadata"]["remainingItemCount"]), (&json!("a"), &json!(2)));
    let token = first["metadata"]["continue"].as_str().unwrap().to_owned();
    // Changed since: a consistent page shows it as it was.
    let change = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "b", "labels": {"new": "yes"}}});
    ask(&cluster, "PUT", &format!("{SECRETS}/b"), change).await;
    let (_, second) = ask(&cluster, "GET", &format!("{SECRETS}?limit=1&continue={token}"), Value::Null).await;
    assert_eq!(second["items"][0]["metadata"].get("labels"), None);
    assert_eq!(second["metadata"]["resourceVersion"], first["metadata"]["resourceVersion"]);
    forget(&cluster);
    let (code, expired) = ask(&cluster, "GET", &format!("{SECRETS}?limit=1&continue={token}"), Value::Null).await;
    assert_eq!((code, expired["reason"].as_str()), (410, Some("Expired")));
    assert!(expired["message"].as_str().unwrap().starts_with("The provided continue parameter is too old"));
    let token = expired["metadata"]["continue"].as_str().unwrap().to_owned();
    let (code, rest) = ask(&cluster, "GET", &format!("{SECRETS}?limit=5&continue={token}"), Value::Null).await;
    assert_eq!((code, rest["items"].as_array().unwrap().len()), (200, 2));
    assert_eq!(rest["items"][0]["metadata"]["labels"]["new"], "yes");
    let exact = format!("{SECRETS}?resourceVersion=3&resourceVersionMatch=Exact");
    assert_eq!(ask(&cluster, "GET", &exact, Value::Null).await.0, 410);
}

#[tokio::test(start_paused = true)]
async fn a_watch_from_a_forgotten_version_begins_well_and_tells_410_in_its_stream() {
    let cluster = cluster().await;
    forget(&cluster);
    let (code, event) = ask(&cluster, "GET", &format!("{SECRETS}?watch=true&resourceVersion=2"), Value::Null).await;
    assert_eq!((code, event["type"].as_str(), event["object"]["code"].as_u64()), (200, Some("ERROR"), Some(410)));
    assert!(event["object"]["message"].as_str().unwrap().starts_with("too old resource version: 2 ("));
}

#[tokio::test(start_paused = true)]
async fn a_version_that_is_yet_to_come_is_504_and_the_past_is_kept_for_five_minutes() {
    let cluster = cluster().await;
    let (code, status) = ask(&cluster, "GET", &format!("{SECRETS}?resourceVersion=999999"), Value::Null).await;
    assert_eq!((code, status["details"]["retryAfterSeconds"].as_u64()), (504, Some(1)));
    let then = cluster.change(|state| state.store.revision());
    let exact = format!("{SECRETS}?resourceVersion={then}&resourceVersionMatch=Exact");
    let change = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "b", "labels": {"new": "yes"}}});
    ask(&cluster, "PUT", &format!("{SECRETS}/b"), change).await;
    tokio::time::sleep(std::time::Duration::from_secs(290)).await;
    assert_eq!(ask(&cluster, "GET", &exact, Value::Null).await.0, 200);
    tokio::time::sleep(std::time::Duration::from_secs(20)).await;
    assert_eq!(ask(&cluster, "GET", &exact, Value::Null).await.0, 410);
}
