//! `completions`: completion scripts for shells.

use clap_complete::Shell;

use super::error::CliError;
use super::exit::Exit;
use super::out::Out;

/// Print a completion script for a shell.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The shell.
    #[arg(value_enum)]
    shell: Shell,
}

/// Prints the script.
pub(super) fn run(args: &Args, out: &mut Out) -> Result<Exit, CliError> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut super::command(), "modeldeck", &mut script);
    out.bytes(&script)?;
    Ok(Exit::Done)
}
