//! From options to a snapshot and its findings.

use std::path::Path;

use jiff::Timestamp;

use super::args::Source;
use super::error::CliError;
use super::out::Out;
use crate::diagnose;
use crate::model::Finding;
use crate::sources::bundle::{self, NowFrom};
use crate::world::World;

/// Most problems of the input that are told one by one.
const MAX_TOLD: usize = 10;

/// A snapshot and what is wrong in it.
pub(super) struct Loaded {
    /// The snapshot.
    pub(super) world: World,
    /// The findings, worst first.
    pub(super) findings: Vec<Finding>,
}

/// Reads what the options name, and says on stderr what could not be read.
pub(super) fn load(source: &Source, out: &mut Out) -> Result<Loaded, CliError> {
    let dir = source.from.as_deref().ok_or(CliError::NoInput)?;
    load_dir(dir, source.clock.now, out)
}

/// Reads the bundle in a directory.
pub(super) fn load_dir(dir: &Path, now: Option<Timestamp>, out: &mut Out) -> Result<Loaded, CliError> {
    let bundle = bundle::read(dir, now)?;
    match bundle.now_from {
        NowFrom::Given => {}
        NowFrom::Newest => out.say(&format!("note: the present is {}, the newest time in the bundle; --now gives another", bundle.now)),
        NowFrom::FileTime => {
            out.say(&format!(
                "note: the present is {}, when the newest file was written: no time stands in the bundle; --now gives another",
                bundle.now
            ));
        }
    }
    for problem in bundle.facts.problems.iter().take(MAX_TOLD) {
        out.say(&format!("warning: {}: {}", problem.place, problem.what));
    }
    if let Some(more @ 1..) = bundle.facts.problems.len().checked_sub(MAX_TOLD) {
        out.say(&format!("warning: {more} more, all of them in `explain -o json` under problems"));
    }
    let world = World::build(bundle.facts, "bundle", bundle.now);
    let findings = diagnose::diagnose(&world);
    Ok(Loaded { world, findings })
}
