//! The commands: arguments in, text or a document out, an exit code at the end.
//!
//! Owns the command line, how answers are written, and what each exit code means (`docs/exit-codes.md`). Must not judge: states and
//! findings come from `world` and `diagnose`.

mod args;
mod cluster;
mod completions;
pub mod document;
mod error;
mod exit;
mod explain;
mod findings;
mod load;
mod man;
mod open;
mod out;
mod select;
mod status;
mod table;
mod words;

use std::ffi::OsString;

use clap::{CommandFactory, Parser, Subcommand};

pub use exit::Exit;
use out::Out;

/// A terminal operations console for LLM serving on Kubernetes.
///
/// modeldeck says which replicas of a model really serve, which do not, and why: each number with its source, its age and what stands
/// between it and a request being answered.
#[derive(Debug, Parser)]
#[command(name = "modeldeck", version, after_help = exit::TABLE, arg_required_else_help = true, subcommand_required = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Status(status::Args),
    Explain(explain::Args),
    Findings(findings::Args),
    Open(open::Args),
    Cluster(cluster::Args),
    Completions(completions::Args),
    Man(man::Args),
}

/// Runs one command, with the arguments as the system gives them (the program's name first).
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> Exit {
    let mut out = Out::standard();
    let cli = match Cli::try_parse_from(arguments) {
        Ok(cli) => cli,
        Err(error) => return usage(&error, &mut out),
    };
    let ended = match cli.command {
        Command::Status(args) => status::run(&args, &mut out),
        Command::Explain(args) => explain::run(&args, &mut out),
        Command::Findings(args) => findings::run(&args, &mut out),
        Command::Open(args) => open::run(&args, &mut out),
        Command::Cluster(args) => cluster::run(&args, &mut out),
        Command::Completions(args) => completions::run(&args, &mut out),
        Command::Man(args) => man::run(&args, &mut out),
    };
    match ended.and_then(|exit| out.finish().map(|()| exit)) {
        Ok(exit) => exit,
        Err(error) => {
            if let Some(words) = error.words() {
                out.say(&format!("error: {words}"));
            }
            error.exit()
        }
    }
}

/// Help and versions go to stdout and are no failure; everything else that clap says is one.
fn usage(error: &clap::Error, out: &mut Out) -> Exit {
    let text = error.render().to_string();
    if error.use_stderr() {
        out.say(text.trim_end());
        return Exit::Usage;
    }
    match out.text(&text).and_then(|()| out.finish()) {
        Ok(()) => Exit::Done,
        Err(error) => error.exit(),
    }
}

/// The command line as completions and the man page describe it.
fn command() -> clap::Command {
    Cli::command()
}
