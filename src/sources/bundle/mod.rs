//! Bundles: a directory of objects, HTTP answers, metric pages and logs, read into [`Facts`].
//!
//! With a `manifest.yaml` the manifest says what each file is; without one the files' names and contents do (`docs/bundles.md`). What
//! can not be read is an [`InputProblem`] of its own and costs no neighbour. Secrets are never kept: texts go through `model::text`,
//! kubeconfigs and plugin output are not opened at all. Must not write, follow a path out of the directory, or judge.

mod clock;
mod cut;
mod draft;
mod durations;
mod folder;
mod guess;
mod http;
mod logs;
mod manifest;
mod objects;
mod pages;
#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;
mod watch;
mod yaml;

use std::path::{Path, PathBuf};

use jiff::Timestamp;

pub use clock::NowFrom;
use draft::Draft;
use folder::Folder;
use manifest::Entry;
pub use manifest::FileKind;

use crate::model::text;
use crate::world::{Facts, InputProblem};

/// A bundle as read.
#[derive(Debug, Clone)]
pub struct Bundle {
    /// Everything that could be read; what could not stands in its `problems`.
    pub facts: Facts,
    /// The present.
    pub now: Timestamp,
    /// Who said so.
    pub now_from: NowFrom,
    /// Each file that was looked at, in the order of reading, with what it was taken for.
    pub files: Vec<(String, FileKind)>,
}

/// A bundle that can not be read as a whole.
#[derive(Debug, thiserror::Error)]
pub enum BundleError {
    /// There is no such directory, or it may not be read.
    #[error("cannot read the bundle {}: {source}", dir.display())]
    Unreadable {
        /// The directory.
        dir: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// It is a file.
    #[error("{} is not a directory: a bundle is a directory of files", dir.display())]
    NotADirectory {
        /// What was named.
        dir: PathBuf,
    },
    /// Nothing in it could be used.
    #[error("{} holds nothing that can be read as a bundle: {why}", dir.display())]
    Nothing {
        /// The directory.
        dir: PathBuf,
        /// What is missing.
        why: String,
    },
}

/// Reads the bundle in `dir`. `now` is the present; where it is not given, the newest time seen in the bundle is.
///
/// # Errors
/// Only where nothing at all can be read. Everything smaller is a problem in the facts.
pub fn read(dir: &Path, now: Option<Timestamp>) -> Result<Bundle, BundleError> {
    let folder = Folder::open(dir)?;
    let mut draft = Draft::default();
    let (entries, by_name) = match manifest::read(&folder, &mut draft.problems) {
        Some(entries) => (entries, false),
        None => (guess::entries(&folder, &mut draft.problems), true),
    };
    let mut files = Vec::new();
    for entry in &entries {
        files.push((entry.file.clone(), entry.kind));
        take(&folder, entry, &entries, &mut draft);
    }
    if by_name && draft.is_empty() {
        let why = match draft.problems.first() {
            Some(problem) => format!("{}: {}", problem.place, problem.what),
            None => "it has no manifest.yaml and no file of Kubernetes objects, answers, metrics or logs".into(),
        };
        return Err(BundleError::Nothing { dir: dir.to_owned(), why });
    }
    let Some((now, now_from)) = clock::present(now, &draft, folder.newest()) else {
        return Err(BundleError::Nothing { dir: dir.to_owned(), why: "nothing in it tells a time; give one with --now".into() });
    };
    Ok(Bundle { facts: draft.finish(now), now, now_from, files })
}

/// Reads one file into the draft.
fn take(folder: &Folder, entry: &Entry, all: &[Entry], draft: &mut Draft) {
    match entry.kind {
        FileKind::Objects => objects::take(folder, entry, draft),
        FileKind::Http => http::take(folder, entry, all, draft),
        FileKind::Answer => http::take_curl(folder, entry, draft),
        FileKind::Watch => watch::take(folder, entry, draft),
        FileKind::Metrics | FileKind::Dcgm => pages::take(folder, entry, draft),
        FileKind::Log => logs::take(folder, entry, draft),
        FileKind::Durations => durations::take(folder, entry, draft),
        // They are about the client, may hold credentials, and say nothing of the cluster.
        FileKind::Kubeconfig | FileKind::Stderr => {}
    }
}

/// A problem of one file.
fn problem(place: impl Into<String>, what: impl Into<String>) -> InputProblem {
    // File names are somebody else's text too.
    InputProblem { place: text::tidy(&place.into()), what: text::tidy(&what.into()), about: None }
}
