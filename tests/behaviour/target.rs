//! Where scripts run: the embedded API in process, or a real server.

use std::sync::Mutex;

use http::{HeaderMap, Request};
use http_body_util::BodyExt;
use kube::Client;
use kube::client::{Body, ConfigExt};
use modeldeck::simulator::api::auth::User;
use modeldeck::simulator::api::cluster::{Cluster, Options};

use crate::bugs::{Bug, Buggy};

pub(crate) struct Target {
    client: Client,
    real: bool,
    /// Runs on one real server must not share namespaces.
    pub(crate) lock: Mutex<()>,
}

pub(crate) struct Answer {
    pub(crate) code: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Body,
}

impl Target {
    /// A fresh embedded cluster with the users of the real one.
    pub(crate) async fn embedded(bug: Option<Bug>) -> Self {
        let cluster = Cluster::open(Options { start: jiff::Timestamp::now(), ..Options::default() });
        cluster.add_token("admin-token", User::known("admin", &["system:masters"]));
        cluster.add_token("alice-token", User::known("alice", &["developers", "team-a"]));
        cluster.add_token("bob-token", User::known("bob", &["developers"]));
        let client = Client::new(Buggy { cluster: cluster.clone(), bug }, "default");
        Self { client, real: false, lock: Mutex::new(()) }
    }

    /// The real server of `tests/cluster/run`, if there is one.
    pub(crate) async fn real() -> Option<Self> {
        let url = std::env::var("MODELDECK_CLUSTER_SERVER").ok()?;
        let mut config = kube::Config::new(url.parse().unwrap());
        config.accept_invalid_certs = true;
        // kube's own stack asks again after a 429; what the server says first is what is looked at here.
        let https = config.rustls_https_connector().unwrap();
        let hyper = hyper_util::client::legacy::Client::builder(hyper_util::rt::TokioExecutor::new()).build(https);
        let client = Client::new(tower::ServiceBuilder::new().layer(config.base_uri_layer()).service(hyper), "default");
        Some(Self { client, real: true, lock: Mutex::new(()) })
    }

    pub(crate) fn is_embedded(&self) -> bool {
        !self.real
    }

    pub(crate) async fn send(&self, request: Request<Vec<u8>>) -> Answer {
        let asked = format!("{} {}", request.method(), request.uri());
        let sent = self.client.send(request.map(Body::from));
        let response = tokio::time::timeout(PATIENCE, sent).await.unwrap_or_else(|_| panic!("{asked}: no answer")).unwrap();
        let (parts, body) = response.into_parts();
        Answer { code: parts.status.as_u16(), headers: parts.headers, body }
    }
}

/// How long an answer may take.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(20);

/// The whole body as text.
pub(crate) async fn whole(body: Body) -> String {
    let bytes = tokio::time::timeout(PATIENCE, body.collect()).await.expect("a body that does not end").unwrap().to_bytes();
    String::from_utf8_lossy(&bytes).into_owned()
}
