//! kube's watcher on the embedded API behind faults, in virtual time: whatever happens on the way, it ends with exactly the server's
//! objects; and the same seed gives the same run, byte by byte.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, missing_docs)]

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt;
use futures::future::BoxFuture;
use http::{Request, Response};
use http_body_util::BodyExt;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::client::Body;
use kube::runtime::utils::Backoff;
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, Client};
use modeldeck::simulator::api::auth::User;
use modeldeck::simulator::api::cluster::{Cluster, Options};
use modeldeck::simulator::api::status::GroupResource;
use modeldeck::simulator::api::store::Range;
use modeldeck::simulator::faults::{Fault, Faults, Rule};
use modeldeck::simulator::ids::Ids;
use serde_json::json;
use sha2::{Digest, Sha256};
use tower::Service;

/// A wait without chance in it.
#[derive(Clone)]
struct Steady;

impl Iterator for Steady {
    type Item = Duration;
    fn next(&mut self) -> Option<Duration> {
        Some(Duration::from_millis(700))
    }
}

impl Backoff for Steady {
    fn reset(&mut self) {}
}

/// Writes down all requests and all bytes of answers.
#[derive(Clone)]
struct Recorded<S> {
    service: S,
    log: Arc<Mutex<Sha256>>,
}

impl<S, B> Service<Request<Body>> for Recorded<S>
where
    S: Service<Request<Body>, Response = Response<B>>,
    S::Future: Send + 'static,
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Send,
{
    type Response = Response<http_body_util::combinators::UnsyncBoxBody<Bytes, B::Error>>;
    type Error = S::Error;
    type Future = BoxFuture<'static, Result<Self::Response, S::Error>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.service.poll_ready(context)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        self.log.lock().unwrap().update(format!("{} {}\n", request.method(), request.uri()));
        let log = self.log.clone();
        let answer = self.service.call(request);
        Box::pin(async move {
            let log = log;
            Ok(answer.await?.map(|body| {
                body.map_frame(move |frame| {
                    if let Some(data) = frame.data_ref() {
                        log.lock().unwrap().update(data);
                    }
                    frame
                })
                .boxed_unsync()
            }))
        })
    }
}

fn rules(seed: u64) -> Vec<Rule> {
    let mut dice = Ids::new(seed ^ 0x5eed);
    let lines = dice.below(8) as u32;
    vec![
        Rule::on("watch=", Fault::Cut(1 + lines)).chance(300),
        Rule::on("watch=", Fault::Expire(lines)).chance(200),
        Rule::on("watch=", Fault::Slow(Duration::from_millis(300 + dice.below(3000)))).chance(400),
        Rule::on("continue=", Fault::Refuse(410)).chance(250),
        Rule::on("configmaps", Fault::Refuse([429, 500, 503, 504][dice.below(4) as usize])).chance(100),
        Rule::on("configmaps", Fault::LoseAnswer).chance(50),
        Rule::on("configmaps", Fault::Delay(Duration::from_secs(dice.below(20)))).chance(200),
    ]
}

type Objects = BTreeMap<(String, String), String>;

async fn run(seed: u64) -> (Objects, Objects, String, usize) {
    let cluster = Cluster::open(Options { seed, keep: 40, furnished: false, ..Options::default() });
    let config_maps = GroupResource::new("", "configmaps");
    let faults = Faults::new(seed, rules(seed));
    let admin = cluster.as_user(User::known("admin", &["system:masters"]));
    let log = Arc::new(Mutex::new(Sha256::new()));
    let service = Recorded { service: faults.before(admin), log: log.clone() };
    let client = Client::new(service, "default");
    let mut settings = watcher::Config::default().page_size(3).timeout(60);
    if seed % 2 == 1 {
        settings = watcher::Config::default().streaming_lists().timeout(60);
    }
    let seen = Arc::new(Mutex::new(Objects::new()));
    let watching = {
        let seen = seen.clone();
        let stream = watcher(Api::<ConfigMap>::all(client), settings).backoff(Steady);
        tokio::spawn(async move {
            let mut stream = std::pin::pin!(stream);
            let mut fresh = Objects::new();
            let key = |o: &ConfigMap| (o.metadata.namespace.clone().unwrap(), o.metadata.name.clone().unwrap());
            let version = |o: &ConfigMap| o.metadata.resource_version.clone().unwrap();
            while let Some(event) = stream.next().await {
                match event {
                    Ok(watcher::Event::Init) => fresh.clear(),
                    Ok(watcher::Event::InitApply(o)) => {
                        fresh.insert(key(&o), version(&o));
                    }
                    Ok(watcher::Event::InitDone) => *seen.lock().unwrap() = std::mem::take(&mut fresh),
                    Ok(watcher::Event::Apply(o)) => {
                        seen.lock().unwrap().insert(key(&o), version(&o));
                    }
                    Ok(watcher::Event::Delete(o)) => {
                        seen.lock().unwrap().remove(&key(&o));
                    }
                    Err(_) => {}
                }
            }
        })
    };
    let mut dice = Ids::new(seed);
    for _ in 0..120 {
        tokio::time::sleep(Duration::from_millis(dice.below(4000))).await;
        for _ in 0..=dice.below(4) {
            let name = format!("c{}", dice.below(14));
            cluster.change(|state| {
                let there = state.get(&config_maps, "default", &name).is_some();
                if there && dice.below(3) == 0 {
                    let object = (*state.get(&config_maps, "default", &name).unwrap()).clone();
                    state.take(&config_maps, object);
                } else {
                    let uid = state.ids.uid();
                    state.put(
                        &config_maps,
                        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": "default", "name": name, "uid": uid}}),
                    );
                }
            });
        }
    }
    let struck = faults.struck().len();
    faults.set(Vec::new());
    tokio::time::sleep(Duration::from_secs(700)).await;
    watching.abort();
    let truth = cluster.change(|state| {
        let list = state.store.list(&config_maps, Range::default());
        list.map(|(place, stored)| (place.clone(), stored.revision.to_string())).collect()
    });
    let seen = seen.lock().unwrap().clone();
    let hash = log.lock().unwrap().clone().finalize().iter().map(|b| format!("{b:02x}")).collect();
    (seen, truth, hash, struck)
}

fn virtually<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(work)
}

#[test]
fn the_watcher_ends_with_exactly_the_servers_objects_in_a_thousand_runs() {
    let mut struck = 0;
    for seed in 0..1000 {
        let (seen, truth, _, faults) = virtually(run(seed));
        assert_eq!(seen, truth, "seed {seed}");
        struck += faults;
    }
    assert!(struck > 10_000, "only {struck} faults in all runs");
}

#[test]
fn one_seed_is_one_run_in_every_process_and_another_seed_is_another() {
    // The test calls itself: the inner processes print what they did.
    if let Ok(seed) = std::env::var("MODELDECK_WATCHER_SEED") {
        println!("HASH {}", virtually(run(seed.parse().unwrap())).2);
        return;
    }
    let hash = |seed: u64| {
        let done = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "one_seed_is_one_run_in_every_process_and_another_seed_is_another", "--nocapture"])
            .env("MODELDECK_WATCHER_SEED", seed.to_string())
            .output()
            .unwrap();
        let text = String::from_utf8(done.stdout).unwrap();
        text.split("HASH ").nth(1).unwrap_or_else(|| panic!("{text}")).lines().next().unwrap().to_owned()
    };
    for seed in [7, 8] {
        assert_eq!(hash(seed), hash(seed), "seed {seed}");
    }
    assert_ne!(hash(7), hash(8));
}
