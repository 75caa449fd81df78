//! Who we are and where the API server is: kubeconfigs in all their forms, or the account of the pod that we run in.
//!
//! Owns the way from files and environment to a client that is ready to ask. Credentials stay in the client; nothing of them is kept in
//! an error or a name here.

mod no_proxy;
mod plugin;

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use http::{HeaderName, HeaderValue};
use jiff::Timestamp;
use kube::client::ClientBuilder;
use kube::config::{AuthInfo, KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use serde_json::json;

pub use plugin::PluginError;

use super::guard::ReadOnly;
use super::tally::{Counting, Tally};
use crate::model::text;

/// How long a connection may take to come about.
const CONNECT: Duration = Duration::from_secs(10);

/// What the command line says about the cluster.
#[derive(Debug, Clone, Default)]
pub struct Wish {
    /// `--kubeconfig`; without it `KUBECONFIG`, then `~/.kube/config`, then the pod's own account.
    pub kubeconfig: Option<PathBuf>,
    /// `--context`; without it the kubeconfig's current one.
    pub context: Option<String>,
    /// `--as`.
    pub user: Option<String>,
    /// `--as-group`.
    pub groups: Vec<String>,
}

/// A client with what is known of it.
#[derive(Clone)]
pub struct Session {
    /// Ready to ask, read-only, counted.
    pub client: Client,
    /// Name of the context; `in-cluster` for a pod's account.
    pub context: String,
    /// Address of the API server.
    pub server: String,
    /// Namespace of the context.
    pub namespace: String,
    /// Whether we run in a pod of the cluster.
    pub in_cluster: bool,
    /// When its credentials end.
    pub valid_until: Option<Timestamp>,
    /// Files that it was made from, with the time of their last change.
    pub files: Vec<(PathBuf, Option<SystemTime>)>,
}

/// Why there is no client.
#[derive(Debug, thiserror::Error)]
pub enum LoginError {
    /// Nothing says where a cluster is.
    #[error("no cluster: there is no kubeconfig ({0}) and this is no pod; give one with --kubeconfig, or a bundle with --from")]
    NoCluster(String),
    /// A kubeconfig can not be read.
    #[error("the kubeconfig {place} cannot be used: {why}")]
    Kubeconfig {
        /// Which.
        place: String,
        /// Why.
        why: String,
    },
    /// No such context.
    #[error("the kubeconfig {place} has no context {name}{there}", there = contexts(known))]
    NoContext {
        /// Which kubeconfig.
        place: String,
        /// As asked for.
        name: String,
        /// Those that there are.
        known: Vec<String>,
    },
    /// The login plugin gave nothing.
    #[error(transparent)]
    Plugin(#[from] PluginError),
    /// The client can not be built.
    #[error("no client for {server}: {why}")]
    Client {
        /// The API server.
        server: String,
        /// Why.
        why: String,
    },
}

fn contexts(known: &[String]) -> String {
    if known.is_empty() { "; it has none".into() } else { format!("; there is {}", known.join(", ")) }
}

/// Makes a client as the wish says. Runs the login plugin if the kubeconfig has one.
///
/// # Errors
/// When no kubeconfig fits, its context is incomplete, or its plugin gives no credential.
pub async fn login(wish: &Wish, tally: &Tally) -> Result<Session, LoginError> {
    // Only one library here brings cryptography; where another were linked too, rustls would not choose by itself.
    #[allow(deprecated)] // ring has no post-quantum key exchange: said by the name, and no concern of a console's reads.
    let _ = tokio_rustls::rustls::crypto::ring::default_provider().install_default();
    let (place, found) = read(wish)?;
    match found {
        Some(kubeconfig) => by_kubeconfig(wish, &place, kubeconfig, tally).await,
        None => in_cluster(wish, &place, tally),
    }
}

/// The kubeconfig, all files merged, and where it is.
fn read(wish: &Wish) -> Result<(String, Option<Kubeconfig>), LoginError> {
    if let Some(path) = &wish.kubeconfig {
        let place = shown(path);
        let read = Kubeconfig::read_from(path).map_err(|error| LoginError::Kubeconfig { place: place.clone(), why: why(&error) })?;
        return Ok((place, Some(read)));
    }
    if let Some(list) = std::env::var_os("KUBECONFIG").filter(|list| !list.is_empty()) {
        let place = text::tidy(&list.to_string_lossy());
        return match Kubeconfig::from_env() {
            Ok(found) => Ok((place, found)),
            Err(error) => Err(LoginError::Kubeconfig { place, why: why(&error) }),
        };
    }
    let home = std::env::var_os("HOME").map(PathBuf::from).unwrap_or_default().join(".kube/config");
    let place = shown(&home);
    if !home.is_file() {
        return Ok((place, None));
    }
    let read = Kubeconfig::read_from(&home).map_err(|error| LoginError::Kubeconfig { place: place.clone(), why: why(&error) })?;
    Ok((place, Some(read)))
}

fn shown(path: &Path) -> String {
    text::tidy(&path.display().to_string())
}

/// The words of an error and of what is below it, as long as they add something.
fn why(error: &dyn std::error::Error) -> String {
    let mut words = error.to_string();
    let mut at = error.source();
    while let Some(inner) = at {
        let more = inner.to_string();
        if !words.contains(&more) {
            words = format!("{words}: {more}");
        }
        at = inner.source();
    }
    // Of a YAML error the first line has the place; the others quote the file, which has secrets.
    text::tidy(words.lines().next().unwrap_or_default())
}

async fn by_kubeconfig(wish: &Wish, place: &str, mut kubeconfig: Kubeconfig, tally: &Tally) -> Result<Session, LoginError> {
    let bad = |why: String| LoginError::Kubeconfig { place: place.to_owned(), why };
    let name = wish.context.clone().or_else(|| kubeconfig.current_context.clone().filter(|name| !name.is_empty()));
    let known: Vec<String> = kubeconfig.contexts.iter().map(|context| text::clean_name(&context.name)).collect();
    let Some(name) = name else {
        return Err(bad(format!("it has no current-context; say which with --context{}", contexts(&known))));
    };
    let context = kubeconfig.contexts.iter().find(|context| context.name == name).and_then(|context| context.context.clone());
    let Some(context) = context else {
        return Err(LoginError::NoContext { place: place.to_owned(), name: text::clean_name(&name), known });
    };
    let cluster = kubeconfig.clusters.iter().find(|cluster| cluster.name == context.cluster).and_then(|cluster| cluster.cluster.clone());
    let user = kubeconfig.auth_infos.iter_mut().find(|user| Some(&user.name) == context.user.as_ref());
    let mut files = Vec::new();
    let mut valid_until = None;
    let mut headers = impersonation(wish, user.as_ref().and_then(|user| user.auth_info.as_ref()))?;
    if let Some(auth) = user.and_then(|user| user.auth_info.as_mut()) {
        if let Some(provider) = &auth.auth_provider {
            let name = text::clean_name(&provider.name);
            return Err(bad(format!("user of context {name}: auth-provider is gone from Kubernetes since 1.26; use an exec plugin")));
        }
        let named = [&auth.client_certificate, &auth.client_key, &auth.token_file];
        files.extend(named.into_iter().flatten().map(PathBuf::from));
        if let Some(exec) = auth.exec.take() {
            let given = plugin::run(&exec, cluster.as_ref()).await?;
            valid_until = given.expiration_timestamp;
            fill(auth, &given).map_err(bad)?;
        }
    }
    files.extend(cluster.as_ref().and_then(|cluster| cluster.certificate_authority.as_ref()).map(PathBuf::from));
    files.extend(place.split(':').map(PathBuf::from));
    let own_proxy = cluster.as_ref().is_some_and(|cluster| cluster.proxy_url.as_deref().is_some_and(|url| !url.is_empty()));
    let options = KubeConfigOptions { context: Some(name.clone()), ..KubeConfigOptions::default() };
    let mut config = Config::from_custom_kubeconfig(kubeconfig, &options).await.map_err(|error| bad(why(&error)))?;
    // A proxy-url of the kubeconfig always holds, as with kubectl; one of the environment where NO_PROXY does not say otherwise.
    let no_proxy = ["NO_PROXY", "no_proxy"].iter().find_map(|name| std::env::var(name).ok()).unwrap_or_default();
    if !own_proxy && no_proxy::covers(&no_proxy, &config.cluster_url) {
        config.proxy_url = None;
    }
    config.headers.append(&mut headers);
    // A user of the command line is in the headers; the kubeconfig's own would be a second.
    session(config, text::clean_name(&name), false, valid_until, files, tally)
}

/// Puts what a plugin gave where a kubeconfig would have it.
fn fill(auth: &mut AuthInfo, given: &plugin::Credential) -> Result<(), String> {
    use base64::Engine;
    let encode = |text: &Option<String>| text.as_ref().map(|text| base64::engine::general_purpose::STANDARD.encode(text));
    let made: AuthInfo = serde_json::from_value(json!({
        "token": given.token,
        "client-certificate-data": encode(&given.client_certificate_data),
        "client-key-data": encode(&given.client_key_data),
    }))
    .map_err(|_| "what its login plugin gave cannot be used")?;
    auth.token = made.token.or_else(|| auth.token.take());
    auth.client_certificate_data = made.client_certificate_data.or_else(|| auth.client_certificate_data.take());
    auth.client_key_data = made.client_key_data.or_else(|| auth.client_key_data.take());
    Ok(())
}

/// Headers that ask to be taken for somebody else (`as` of a kubeconfig, `--as`). kube 5.0 reads the fields and does not send them.
fn impersonation(wish: &Wish, auth: Option<&AuthInfo>) -> Result<Vec<(HeaderName, HeaderValue)>, LoginError> {
    let mut pairs: Vec<(String, String)> = Vec::new();
    let mut push = |name: &str, value: &str| pairs.push((name.to_owned(), value.to_owned()));
    if let Some(user) = &wish.user {
        push("impersonate-user", user);
        wish.groups.iter().for_each(|group| push("impersonate-group", group));
    } else if let Some(auth) = auth
        && let Some(user) = &auth.impersonate
    {
        push("impersonate-user", user);
        auth.impersonate_groups.iter().flatten().for_each(|group| push("impersonate-group", group));
        auth.impersonate_uid.iter().for_each(|uid| push("impersonate-uid", uid));
        for (key, values) in auth.impersonate_user_extra.iter().flatten() {
            let key: String = form_urlencoded::byte_serialize(key.to_ascii_lowercase().as_bytes()).collect();
            values.iter().for_each(|value| push(&format!("impersonate-extra-{key}"), value));
        }
    }
    let header = |(name, value): (String, String)| {
        let pair = name.parse::<HeaderName>().ok().zip(value.parse::<HeaderValue>().ok());
        pair.ok_or_else(|| LoginError::Kubeconfig {
            place: "and the command line".into(),
            why: format!("{} {} cannot be sent as a header", text::clean_name(&name), text::clean_name(&value)),
        })
    };
    pairs.into_iter().map(header).collect()
}

fn in_cluster(wish: &Wish, place: &str, tally: &Tally) -> Result<Session, LoginError> {
    if wish.context.is_some() || std::env::var_os("KUBERNETES_SERVICE_HOST").is_none() {
        return Err(LoginError::NoCluster(place.to_owned()));
    }
    let mut config =
        Config::incluster().map_err(|error| LoginError::Client { server: "the cluster of this pod".into(), why: why(&error) })?;
    config.headers.append(&mut impersonation(wish, None)?);
    session(config, "in-cluster".into(), true, None, Vec::new(), tally)
}

fn session(
    mut config: Config,
    context: String,
    in_cluster: bool,
    valid_until: Option<Timestamp>,
    files: Vec<PathBuf>,
    tally: &Tally,
) -> Result<Session, LoginError> {
    // Retries are ours: the library would repeat any verb.
    config.default_retry = false;
    config.connect_timeout = Some(CONNECT);
    let server = text::tidy(&config.cluster_url.to_string());
    let namespace = text::clean_name(&config.default_namespace);
    let builder = ClientBuilder::try_from(config).map_err(|error| LoginError::Client { server: server.clone(), why: why(&error) })?;
    let client = builder.with_layer(&Counting(tally.clone())).with_layer(&ReadOnly).build();
    let files = files.into_iter().map(|path| (path.clone(), changed(&path))).collect();
    Ok(Session { client, context, server, namespace, in_cluster, valid_until, files })
}

/// When a file last changed.
fn changed(path: &Path) -> Option<SystemTime> {
    std::fs::metadata(path).ok()?.modified().ok()
}

impl Session {
    /// Whether any file that it was made from has changed since: a certificate was renewed, another context chosen.
    pub fn is_outdated(&self) -> bool {
        self.files.iter().any(|(path, then)| changed(path) != *then)
    }

    /// A session over a service in this process: the embedded cluster, also in virtual time. The boundary and the counts are the same.
    pub fn over<S, B>(service: S, tally: &Tally) -> Self
    where
        S: tower::Service<http::Request<kube::client::Body>, Response = http::Response<B>> + Send + 'static,
        S::Future: Send + 'static,
        S::Error: Into<tower::BoxError>,
        B: http_body::Body<Data = bytes::Bytes> + Send + 'static,
        B::Error: Into<tower::BoxError>,
    {
        let client = ClientBuilder::new(service, "default").with_layer(&Counting(tally.clone())).with_layer(&ReadOnly).build();
        Self {
            client,
            context: "embedded".into(),
            server: "in this process".into(),
            namespace: "default".into(),
            in_cluster: false,
            valid_until: None,
            files: Vec::new(),
        }
    }
}
