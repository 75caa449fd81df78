//! The embedded cluster behind a loopback socket: HTTP or HTTPS, with a kubeconfig to reach it.
//!
//! Owns connections and their limits. What is answered is [`super::api::cluster`]'s business.

mod kubeconfig;
mod tls;

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;

use super::api::auth::User;
use super::api::cluster::{Cluster, Peer};
use tls::Authority;

/// The most connections at a time; further ones wait.
const MOST_CONNECTIONS: usize = 4096;
/// How long a client may take for the head of a request or a TLS handshake.
const HEAD_TIME: Duration = Duration::from_secs(10);
/// The largest head of a request.
const LARGEST_HEAD: usize = 64 * 1024;
/// How long open requests get when the server stops.
const STOP_TIME: Duration = Duration::from_secs(2);

/// What can keep a cluster from being served.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// No socket.
    #[error("the cluster can not listen on 127.0.0.1: {0}; leave --port out to get a free one")]
    Listen(io::Error),
    /// No certificates.
    #[error("the cluster's certificates can not be made: {0}")]
    Certificates(String),
    /// The kubeconfig can not be written.
    #[error("kubeconfig {path} can not be written: {why}; name another file")]
    Kubeconfig {
        /// The file.
        path: String,
        /// Why.
        why: io::Error,
    },
}

/// A cluster that is served until this is stopped or dropped.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    authority: Option<Arc<Authority>>,
    admin_token: String,
    stop: watch::Sender<bool>,
    task: Option<JoinHandle<()>>,
}

impl Server {
    /// Serves a cluster over HTTPS (`secure`) or HTTP on a free port of 127.0.0.1, or on `port`.
    ///
    /// # Errors
    /// When there is no socket or no certificate to be had.
    pub async fn start(cluster: Cluster, secure: bool, port: u16) -> Result<Self, ServeError> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await.map_err(ServeError::Listen)?;
        let address = listener.local_addr().map_err(ServeError::Listen)?;
        let authority = match secure {
            true => Some(Arc::new(Authority::new()?)),
            false => None,
        };
        let acceptor = match &authority {
            Some(authority) => {
                let pem = authority.pem();
                cluster.change(|state| state.authority = pem);
                Some(TlsAcceptor::from(authority.server()?))
            }
            None => None,
        };
        let admin_token = cluster.change(|state| state.ids.suffix(32));
        cluster.add_token(admin_token.clone(), User::known("admin", &["system:masters"]));
        let (stop, stopped) = watch::channel(false);
        let task = tokio::spawn(accept(listener, cluster, acceptor, stopped));
        Ok(Self { address, authority, admin_token, stop, task: Some(task) })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// `https://127.0.0.1:PORT`.
    pub fn url(&self) -> String {
        let scheme = if self.authority.is_some() { "https" } else { "http" };
        format!("{scheme}://{}", self.address)
    }

    /// The certificate of the API's authority as PEM; empty over HTTP.
    pub fn authority(&self) -> String {
        self.authority.as_ref().map(|a| a.pem()).unwrap_or_default()
    }

    /// Certificate and key of a client as PEM: who it is stands in the certificate. `None` over HTTP.
    ///
    /// # Errors
    /// When the certificate can not be made.
    pub fn client(&self, name: &str, groups: &[&str]) -> Result<Option<(String, String)>, ServeError> {
        self.authority.as_ref().map(|a| a.client(name, groups)).transpose()
    }

    /// A kubeconfig for the administrator: by client certificate over HTTPS, by token over HTTP.
    ///
    /// # Errors
    /// When no client certificate can be made.
    pub fn kubeconfig(&self) -> Result<String, ServeError> {
        let client = self.client("kubernetes-admin", &["system:masters"])?;
        Ok(kubeconfig::text(&self.url(), &self.authority(), client.as_ref(), &self.admin_token))
    }

    /// Writes the kubeconfig to a file that only its owner can read.
    ///
    /// # Errors
    /// When it can not be written.
    pub fn write_kubeconfig(&self, path: &Path) -> Result<(), ServeError> {
        kubeconfig::write(path, &self.kubeconfig()?).map_err(|why| ServeError::Kubeconfig { path: path.display().to_string(), why })
    }

    /// Stops: no new connections, a moment for open requests, then the end.
    pub async fn stop(mut self) {
        self.stop.send_replace(true);
        if let Some(task) = self.task.take() {
            let _ = task.await;
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.send_replace(true);
    }
}

async fn accept(listener: TcpListener, cluster: Cluster, tls: Option<TlsAcceptor>, mut stopped: watch::Receiver<bool>) {
    let places = Arc::new(Semaphore::new(MOST_CONNECTIONS));
    let mut connections = tokio::task::JoinSet::new();
    loop {
        let Ok(place) = places.clone().acquire_owned().await else { break };
        tokio::select! {
            () = told(&mut stopped) => break,
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    let (cluster, tls, stopped) = (cluster.clone(), tls.clone(), stopped.clone());
                    connections.spawn(connection(stream, cluster, tls, stopped, place));
                }
                // Too many open files: wait until some are closed.
                Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
            },
        }
        while connections.try_join_next().is_some() {}
    }
    drop(listener);
    let _ = tokio::time::timeout(STOP_TIME, async { while connections.join_next().await.is_some() {} }).await;
    connections.shutdown().await;
}

async fn connection(
    stream: TcpStream,
    cluster: Cluster,
    tls: Option<TlsAcceptor>,
    stopped: watch::Receiver<bool>,
    _place: OwnedSemaphorePermit,
) {
    let _ = stream.set_nodelay(true);
    match tls {
        None => requests(TokioIo::new(stream), cluster, None, stopped).await,
        Some(tls) => {
            let Ok(Ok(stream)) = tokio::time::timeout(HEAD_TIME, tls.accept(stream)).await else { return };
            let peer = stream.get_ref().1.peer_certificates().and_then(<[_]>::first).and_then(|der| tls::user(der));
            requests(TokioIo::new(stream), cluster, peer.map(Peer), stopped).await;
        }
    }
}

async fn requests<I>(io: TokioIo<I>, cluster: Cluster, peer: Option<Peer>, mut stopped: watch::Receiver<bool>)
where
    I: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
{
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(HEAD_TIME).max_buf_size(LARGEST_HEAD);
    builder.http2().timer(TokioTimer::new()).max_header_list_size(LARGEST_HEAD as u32).max_concurrent_streams(1000);
    let service = tower::ServiceBuilder::new()
        .map_request(move |mut request: http::Request<hyper::body::Incoming>| {
            if let Some(peer) = &peer {
                request.extensions_mut().insert(peer.clone());
            }
            request
        })
        .service(cluster);
    let connection = builder.serve_connection_with_upgrades(io, TowerToHyperService::new(service));
    tokio::pin!(connection);
    tokio::select! {
        // A broken connection is the client's affair.
        _ = connection.as_mut() => {}
        () = told(&mut stopped) => {
            connection.as_mut().graceful_shutdown();
            let _ = connection.await;
        }
    }
}

async fn told(stopped: &mut watch::Receiver<bool>) {
    let _ = stopped.wait_for(|stop| *stop).await;
}
