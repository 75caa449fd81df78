//! `cluster`: the embedded cluster, served alone until a signal ends it.

use std::path::PathBuf;

use tokio::signal::unix::{SignalKind, signal};

use super::error::CliError;
use super::exit::Exit;
use super::out::Out;
use crate::simulator::api::cluster::{Cluster, Options};
use crate::simulator::serve::Server;

/// Serve a Kubernetes API of modeldeck's own on this machine, until Ctrl-C.
///
/// It has no nodes and runs nothing: what is written there stays there until it ends.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// File to write the kubeconfig to.
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    kubeconfig: PathBuf,

    /// HTTP instead of HTTPS.
    #[arg(long)]
    insecure: bool,

    /// Port of 127.0.0.1; a free one without it.
    #[arg(long, value_name = "PORT", default_value_t = 0, hide_default_value = true)]
    port: u16,

    /// Seed of all uids and generated names.
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,
}

/// Serves until SIGINT or SIGTERM.
pub(super) fn run(args: &Args, out: &mut Out) -> Result<Exit, CliError> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(async {
        let mut interrupt = signal(SignalKind::interrupt())?;
        let mut terminate = signal(SignalKind::terminate())?;
        let cluster = Cluster::open(Options { seed: args.seed, start: jiff::Timestamp::now(), ..Options::default() });
        let failed = |error: crate::simulator::serve::ServeError| CliError::Cluster(error.to_string());
        let server = Server::start(cluster, !args.insecure, args.port).await.map_err(failed)?;
        server.write_kubeconfig(&args.kubeconfig).map_err(failed)?;
        out.line(&format!("serving {} (kubeconfig {})", server.url(), args.kubeconfig.display()))?;
        out.finish()?;
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
        server.stop().await;
        Ok(Exit::Done)
    })
}
