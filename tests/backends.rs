//! What stands behind pods of the embedded API: logs, proxied requests, forwarded ports, by kube's own client over HTTPS.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::sync::Arc;

use bytes::Bytes;
use futures::future::BoxFuture;
use futures::{AsyncBufReadExt, FutureExt, TryStreamExt};
use http::{Request, Response};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{LogParams, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use modeldeck::simulator::api::cluster::{Cluster, Options};
use modeldeck::simulator::api::status::{ApiError, ApiResult};
use modeldeck::simulator::api::subresources::backends::{Backend, Bodies, LogOptions, Wire};
use modeldeck::simulator::serve::Server;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// Logs three lines, answers with what it was asked, and shouts back what a port is told.
struct Engine;

fn stream(chunks: Vec<String>) -> Bodies {
    Box::pin(futures::stream::iter(chunks.into_iter().map(Bytes::from)))
}

impl Backend for Engine {
    fn log(&self, pod: Arc<Value>, options: LogOptions) -> BoxFuture<'static, ApiResult<Bodies>> {
        async move {
            let name = pod["metadata"]["name"].as_str().unwrap().to_owned();
            let lines: Vec<String> = (1..=3).map(|n| format!("{name}/{} line {n}\n", options.container)).collect();
            let skip = lines.len().saturating_sub(options.tail.map_or(usize::MAX, |t| usize::try_from(t).unwrap()));
            Ok(stream(lines.into_iter().skip(skip).collect()))
        }
        .boxed()
    }

    fn proxy(&self, pod: Arc<Value>, port: u16, request: Request<Bytes>) -> BoxFuture<'static, ApiResult<Response<Bodies>>> {
        async move {
            assert!(request.headers().get("authorization").is_none(), "credentials of the API went to a pod");
            let text = format!("{} {} {port} {}", request.method(), request.uri(), pod["status"]["podIP"].as_str().unwrap_or("?"));
            Ok(Response::builder().status(203).header("x-engine", "yes").body(stream(vec![text])).unwrap())
        }
        .boxed()
    }

    fn connect(&self, _: Arc<Value>, port: u16) -> BoxFuture<'static, ApiResult<Box<dyn Wire>>> {
        async move {
            if port == 1 {
                return Err(ApiError::internal("connection refused"));
            }
            let (near, mut far) = tokio::io::duplex(1024);
            tokio::spawn(async move {
                let mut buffer = [0u8; 1024];
                while let Ok(read) = far.read(&mut buffer).await {
                    if read == 0 || far.write_all(&buffer[..read].to_ascii_uppercase()).await.is_err() {
                        break;
                    }
                }
            });
            Ok(Box::new(near) as Box<dyn Wire>)
        }
        .boxed()
    }
}

async fn pod(client: &Client) -> Api<Pod> {
    let pods: Api<Pod> = Api::namespaced(client.clone(), "default");
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"},
        "spec": {"nodeName": "n", "containers": [{"name": "c", "image": "i", "ports": [{"containerPort": 8000}]}]}});
    pods.create(&PostParams::default(), &serde_json::from_value(pod).unwrap()).await.unwrap();
    let status = json!({"status": {"phase": "Running", "podIP": "10.1.2.3"}});
    pods.patch_status("p", &PatchParams::default(), &Patch::Merge(status)).await.unwrap();
    pods
}

async fn served(backend: bool) -> (Server, Client) {
    let cluster = Cluster::open(Options { start: jiff::Timestamp::now(), ..Options::default() });
    if backend {
        cluster.set_backend(Arc::new(Engine));
    }
    let server = Server::start(cluster, true, 0).await.unwrap();
    let config: kube::config::Kubeconfig = serde_json::from_str(&server.kubeconfig().unwrap()).unwrap();
    let config = kube::Config::from_custom_kubeconfig(config, &kube::config::KubeConfigOptions::default()).await.unwrap();
    let client = Client::try_from(config).unwrap();
    (server, client)
}

#[tokio::test]
async fn logs_come_whole_by_their_end_and_as_a_stream() {
    let (server, client) = served(true).await;
    let pods = pod(&client).await;
    assert_eq!(pods.logs("p", &LogParams::default()).await.unwrap(), "p/c line 1\np/c line 2\np/c line 3\n");
    let tail = LogParams { tail_lines: Some(1), ..LogParams::default() };
    assert_eq!(pods.logs("p", &tail).await.unwrap(), "p/c line 3\n");
    let lines: Vec<String> = pods.log_stream("p", &LogParams::default()).await.unwrap().lines().try_collect().await.unwrap();
    assert_eq!(lines.len(), 3);
    let other = LogParams { container: Some("x".into()), ..LogParams::default() };
    assert!(pods.logs("p", &other).await.unwrap_err().to_string().contains("container x is not valid for pod p"));
    server.stop().await;
}

#[tokio::test]
async fn a_proxied_request_reaches_the_port_without_the_apis_credentials() {
    let (server, client) = served(true).await;
    pod(&client).await;
    for (name, port) in [("p:9000", 9000), ("p", 8000), ("http:p:", 8000)] {
        let request =
            Request::builder().uri(format!("/api/v1/namespaces/default/pods/{name}/proxy/v1/models?x=1")).body(Vec::new()).unwrap();
        assert_eq!(client.request_text(request).await.unwrap(), format!("GET /v1/models?x=1 {port} 10.1.2.3"));
    }
    server.stop().await;
}

#[tokio::test]
async fn ports_are_forwarded_both_ways_and_a_closed_one_says_so() {
    let (server, client) = served(true).await;
    let pods = pod(&client).await;
    let mut forwarder = pods.portforward("p", &[8000, 1]).await.unwrap();
    let mut stream = forwarder.take_stream(8000).unwrap();
    stream.write_all(b"hello").await.unwrap();
    let mut answer = [0u8; 5];
    stream.read_exact(&mut answer).await.unwrap();
    assert_eq!(&answer, b"HELLO");
    let error = forwarder.take_error(1).unwrap().await.unwrap();
    assert!(error.contains("connection refused"), "{error}");
    drop(stream);
    forwarder.abort();
    server.stop().await;
}

#[tokio::test]
async fn without_a_backend_nothing_answers_and_that_is_said() {
    let (server, client) = served(false).await;
    let pods = pod(&client).await;
    let error = pods.logs("p", &LogParams::default()).await.unwrap_err().to_string();
    assert!(error.contains("nothing answers on the node of pod"), "{error}");
    server.stop().await;
}
