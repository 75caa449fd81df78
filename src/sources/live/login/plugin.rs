//! Login plugins (`exec` of a kubeconfig): run without the terminal, for a limited time, with their words kept.
//!
//! The protocol is `client.authentication.k8s.io` v1 and v1beta1. Must not let a plugin read our input or write on our screen: its stdin
//! is closed and both outputs are pipes, whatever `interactiveMode` says or leaves out.

use std::process::Stdio;
use std::time::Duration;

use jiff::Timestamp;
use kube::config::{Cluster, ExecConfig, ExecInteractiveMode};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::Command;

use crate::model::text;

/// How long a plugin may take.
const LIMIT: Duration = Duration::from_secs(30);
/// Most bytes of each of its outputs that are read.
const MAX_OUTPUT: u64 = 1 << 20;
/// Most characters of its last words that are shown.
const MAX_WORDS: usize = 300;

/// Why a plugin gave no credentials. Each names the plugin.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PluginError {
    /// The kubeconfig does not say what to run.
    #[error("the kubeconfig's exec section names no command")]
    NoCommand,
    /// It can only work with a terminal.
    #[error(
        "the login plugin {plugin} wants to ask you something (interactiveMode: Always): log in with kubectl in a shell, then try again"
    )]
    Interactive {
        /// The command.
        plugin: String,
    },
    /// It is not there, or may not be run.
    #[error("the login plugin {plugin} cannot be run: {why}{hint}")]
    NotRun {
        /// The command.
        plugin: String,
        /// What the system says.
        why: String,
        /// The kubeconfig's own hint.
        hint: String,
    },
    /// It failed.
    #[error("the login plugin {plugin} ended with {how}{words}", words = said(last))]
    Failed {
        /// The command.
        plugin: String,
        /// `exit code 1`, `signal 9`.
        how: String,
        /// The last line that it wrote to stderr, made harmless.
        last: String,
    },
    /// It took too long and was ended.
    #[error("the login plugin {plugin} did not end within {seconds} s and was stopped{words}", words = said(last))]
    TooSlow {
        /// The command.
        plugin: String,
        /// The limit.
        seconds: u64,
        /// The last line that it wrote to stderr.
        last: String,
    },
    /// What it wrote is no credential.
    #[error("the login plugin {plugin} gave no credential: {why}{words}", words = said(last))]
    NoCredential {
        /// The command.
        plugin: String,
        /// What is wrong with its answer.
        why: String,
        /// The last line that it wrote to stderr.
        last: String,
    },
}

fn said(last: &str) -> String {
    if last.is_empty() { String::new() } else { format!(": {last}") }
}

/// What a plugin gave. Not to be shown: it is a secret.
#[derive(Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Credential {
    pub(super) expiration_timestamp: Option<Timestamp>,
    pub(super) token: Option<String>,
    pub(super) client_certificate_data: Option<String>,
    pub(super) client_key_data: Option<String>,
}

/// Runs the plugin once.
pub(super) async fn run(exec: &ExecConfig, cluster: Option<&Cluster>) -> Result<Credential, PluginError> {
    run_for(exec, cluster, LIMIT).await
}

async fn run_for(exec: &ExecConfig, cluster: Option<&Cluster>, limit: Duration) -> Result<Credential, PluginError> {
    let path = exec.command.as_deref().filter(|command| !command.is_empty()).ok_or(PluginError::NoCommand)?;
    let plugin = text::clean_name(path.rsplit('/').next().unwrap_or(path));
    if exec.interactive_mode == Some(ExecInteractiveMode::Always) {
        return Err(PluginError::Interactive { plugin });
    }
    let version = exec.api_version.as_deref().unwrap_or("client.authentication.k8s.io/v1beta1");
    let mut command = Command::new(path);
    command.args(exec.args.iter().flatten()).env("KUBERNETES_EXEC_INFO", info(version, exec, cluster).to_string());
    for variable in exec.env.iter().flatten() {
        if let (Some(name), Some(value)) = (variable.get("name"), variable.get("value")) {
            command.env(name, value);
        }
    }
    // A process group of its own: what we are told by keys of the terminal is not for it.
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true).process_group(0);
    let not_run = |why: String| PluginError::NotRun {
        plugin: plugin.clone(),
        why,
        hint: exec.install_hint.as_deref().map(|hint| format!(" ({})", text::tidy(hint))).unwrap_or_default(),
    };
    let mut child = command.spawn().map_err(|error| not_run(error.to_string()))?;
    let (Some(stdout), Some(stderr)) = (child.stdout.take(), child.stderr.take()) else { return Err(not_run("it has no output".into())) };
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let ended = {
        let work = async { tokio::join!(child.wait(), keep(stdout, &mut out), keep(stderr, &mut err)).0 };
        tokio::time::timeout(limit, work).await
    };
    let last = last_line(&err);
    let status = match ended {
        Err(_) => {
            let _ = child.start_kill();
            return Err(PluginError::TooSlow { plugin, seconds: limit.as_secs(), last });
        }
        Ok(Err(error)) => return Err(not_run(error.to_string())),
        Ok(Ok(status)) => status,
    };
    if !status.success() {
        let how = match status.code() {
            Some(code) => format!("exit code {code}"),
            None => format!("signal {}", std::os::unix::process::ExitStatusExt::signal(&status).unwrap_or_default()),
        };
        return Err(PluginError::Failed { plugin, how, last });
    }
    read(&out, version).map_err(|why| PluginError::NoCredential { plugin, why, last })
}

/// Reads to the end, and keeps the first part: a plugin that writes without end is not held up by a full pipe.
async fn keep(mut from: impl AsyncRead + Unpin, into: &mut Vec<u8>) {
    let mut buffer = [0u8; 8192];
    while let Ok(read @ 1..) = from.read(&mut buffer).await {
        let room = usize::try_from(MAX_OUTPUT).unwrap_or(usize::MAX).saturating_sub(into.len());
        into.extend(buffer.iter().take(read.min(room)));
    }
}

/// The last line that says something, without colours and control characters, secrets taken out.
fn last_line(bytes: &[u8]) -> String {
    let all = String::from_utf8_lossy(bytes);
    let lines = all.lines().rev().map(text::tidy);
    let line = lines.map(|line| line.trim().to_owned()).find(|line| !line.is_empty()).unwrap_or_default();
    line.chars().take(MAX_WORDS).collect()
}

fn info(version: &str, exec: &ExecConfig, cluster: Option<&Cluster>) -> Value {
    let mut spec = json!({"interactive": false});
    if let Some(cluster) = cluster.filter(|_| exec.provide_cluster_info) {
        let config = cluster.extensions.iter().flatten().find(|e| e.name == "client.authentication.k8s.io/exec").map(|e| &e.extension);
        let members = [
            ("server", cluster.server.clone().map(Value::from)),
            ("certificate-authority-data", cluster.certificate_authority_data.clone().map(Value::from)),
            ("tls-server-name", cluster.tls_server_name.clone().map(Value::from)),
            ("insecure-skip-tls-verify", cluster.insecure_skip_tls_verify.map(Value::from)),
            ("proxy-url", cluster.proxy_url.clone().map(Value::from)),
            ("config", config.cloned()),
        ];
        spec["cluster"] = Value::Object(members.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect());
    }
    json!({"apiVersion": version, "kind": "ExecCredential", "spec": spec})
}

fn read(out: &[u8], version: &str) -> Result<Credential, String> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Answer {
        #[serde(default)]
        api_version: String,
        #[serde(default)]
        kind: String,
        status: Option<Credential>,
    }
    // serde's words would quote what it read, and that is a secret.
    let answer: Answer = serde_json::from_slice(out)
        .map_err(|error| format!("its output is no ExecCredential in JSON (line {}, column {})", error.line(), error.column()))?;
    if answer.kind != "ExecCredential" || answer.api_version != version {
        let (kind, given) = (text::clean_name(&answer.kind), text::clean_name(&answer.api_version));
        return Err(format!("it answered with {kind:.60} {given:.80}, the kubeconfig says ExecCredential {version}"));
    }
    let status = answer.status.ok_or("its answer has no status")?;
    match (&status.token, &status.client_certificate_data, &status.client_key_data) {
        (None, None, None) => Err("its answer has neither a token nor a client certificate".into()),
        (_, Some(_), None) | (_, None, Some(_)) => Err("its answer has a client certificate without a key, or a key without one".into()),
        _ => Ok(status),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A plugin that is a shell script.
    fn plugin(script: &str) -> (tempfile::TempDir, ExecConfig) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("fake-cloud-auth");
        std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        let exec = ExecConfig {
            command: Some(path.display().to_string()),
            api_version: Some("client.authentication.k8s.io/v1".into()),
            provide_cluster_info: true,
            ..ExecConfig::default()
        };
        (folder, exec)
    }

    async fn ran(script: &str) -> Result<Credential, PluginError> {
        let (_folder, exec) = plugin(script);
        let cluster = Cluster { server: Some("https://127.0.0.1:6443".into()), ..Cluster::default() };
        run_for(&exec, Some(&cluster), Duration::from_secs(5)).await
    }

    const TOKEN: &str = r#"{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"token":"t0p"}}"#;

    #[tokio::test]
    async fn a_token_is_read() {
        let given = ran(&format!("echo '{TOKEN}'")).await.unwrap_or_default();
        assert_eq!(given.token.as_deref(), Some("t0p"));
    }

    #[tokio::test]
    async fn it_has_no_terminal_and_knows_the_cluster() {
        let script = format!(
            "[ -t 0 ] || [ -t 1 ] || [ -t 2 ] && exit 3\nread line && exit 4\n\
             case \"$KUBERNETES_EXEC_INFO\" in *'\"interactive\":false'*) ;; *) exit 5;; esac\n\
             case \"$KUBERNETES_EXEC_INFO\" in *127.0.0.1:6443*) ;; *) exit 6;; esac\necho '{TOKEN}'"
        );
        assert_eq!(ran(&script).await.map(|given| given.token), Ok(Some("t0p".into())));
    }

    #[tokio::test]
    async fn b153_a_failure_keeps_its_last_words_harmless() {
        let error = ran(
            r"printf 'WARNING: cached credentials expired\n\033[31mERROR\033[0m token refresh failed: network unreachable\n\n' >&2; exit 1",
        )
        .await
        .map(drop)
        .unwrap_err();
        let words = error.to_string();
        assert!(words.contains("fake-cloud-auth") && words.contains("exit code 1"), "{words}");
        assert!(words.ends_with("token refresh failed: network unreachable"), "{words}");
        assert!(!words.contains('\u{1b}') && !words.contains("cached"), "{words}");
    }

    #[tokio::test]
    async fn what_is_no_credential_is_not_quoted() {
        for script in ["echo '{\"token\":\"s3cr3tvalue\"'", "echo s3cr3tvalue", "true"] {
            let error = ran(script).await.map(drop).unwrap_err().to_string();
            assert!(error.contains("gave no credential") && !error.contains("s3cr3tvalue"), "{error}");
        }
        let other = TOKEN.replace("/v1\"", "/v1beta1\"");
        let error = ran(&format!("echo '{other}'")).await.map(drop).unwrap_err().to_string();
        assert!(error.contains("client.authentication.k8s.io/v1beta1"), "{error}");
    }

    #[tokio::test]
    async fn one_that_hangs_or_floods_is_stopped() {
        let (_folder, exec) = plugin("echo waiting >&2; sleep 60");
        let error = run_for(&exec, None, Duration::from_millis(300)).await.map(drop).unwrap_err();
        assert!(matches!(&error, PluginError::TooSlow { last, .. } if last == "waiting"), "{error}");
        let error = ran("head -c 5000000 /dev/zero; head -c 5000000 /dev/zero >&2; exit 2").await.map(drop).unwrap_err();
        assert!(matches!(error, PluginError::Failed { .. }), "{error}");
    }

    #[tokio::test]
    async fn one_that_is_missing_or_wants_a_terminal_says_so() {
        let exec = ExecConfig { command: Some("no-such-plugin-here".into()), install_hint: Some("get it".into()), ..ExecConfig::default() };
        let error = run(&exec, None).await.map(drop).unwrap_err().to_string();
        assert!(error.contains("no-such-plugin-here cannot be run") && error.ends_with("(get it)"), "{error}");
        let (_folder, mut exec) = plugin("echo no");
        exec.interactive_mode = Some(ExecInteractiveMode::Always);
        assert!(matches!(run(&exec, None).await, Err(PluginError::Interactive { .. })));
    }
}
