//! `open`: the screen on a bundle.

use std::path::PathBuf;

use super::args::Clock;
use super::error::CliError;
use super::exit::Exit;
use super::load::{Loaded, load_dir};
use super::out::Out;

/// Open the screen on a bundle.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Directory of the bundle.
    #[arg(value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    dir: PathBuf,

    #[command(flatten)]
    clock: Clock,
}

/// Opens the screen and returns when it is closed.
pub(super) fn run(args: &Args, out: &mut Out) -> Result<Exit, CliError> {
    let loaded = load_dir(&args.dir, args.clock.now, out)?;
    screen(loaded, args.dir.display().to_string())
}

#[cfg(feature = "tui")]
fn screen(loaded: Loaded, title: String) -> Result<Exit, CliError> {
    let Loaded { world, findings } = loaded;
    match crate::console::open(std::sync::Arc::new(world), findings, crate::model::text::clean_name(&title)) {
        Ok(()) => Ok(Exit::Done),
        Err(error) => match error.signal() {
            Some(number) => Err(CliError::Signal(u8::try_from(number).unwrap_or(u8::MAX))),
            None => Err(CliError::Screen(error.to_string())),
        },
    }
}

#[cfg(not(feature = "tui"))]
fn screen(_: Loaded, _: String) -> Result<Exit, CliError> {
    Err(CliError::Screen("this build has no screen; use `modeldeck status` or `modeldeck explain`".into()))
}
