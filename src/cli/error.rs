//! What can end a command: what happened, to what, and what to do next.

use std::io;

use super::Exit;
use crate::sources::bundle::BundleError;

/// An error of a command.
#[derive(Debug, thiserror::Error)]
pub(super) enum CliError {
    /// No input was named.
    #[error("no bundle given: use --from DIR (a directory of kubectl output, metric pages and logs; see docs/bundles.md)")]
    NoInput,
    /// The bundle can not be read.
    #[error("{0}; see docs/bundles.md for what a bundle holds")]
    Bundle(#[from] BundleError),
    /// No model of that name.
    #[error("no model {name} in this input{}", hint(near))]
    UnknownModel {
        /// As asked for.
        name: String,
        /// Names that are near, or all there are.
        near: Vec<String>,
    },
    /// Several models of that name.
    #[error("{name} names several models: {}; say which with one of these names", candidates.join(", "))]
    AmbiguousModel {
        /// As asked for.
        name: String,
        /// Whole names.
        candidates: Vec<String>,
    },
    /// The output is closed: whoever read it has enough.
    #[error("the output is closed")]
    Closed,
    /// The output can not be written.
    #[error("the output can not be written: {0}; is the disk full?")]
    Output(io::Error),
    /// A document can not be written down.
    #[error("the document can not be written as {format}: {why}; use another -o")]
    Format {
        /// Which format.
        format: &'static str,
        /// Why.
        why: String,
    },
    /// The screen can not be shown.
    #[error("{0}")]
    Screen(String),
    /// The embedded cluster can not be served.
    #[error("{0}")]
    Cluster(String),
    /// A signal ended the screen.
    #[error("ended by a signal")]
    #[cfg_attr(not(feature = "tui"), allow(dead_code))]
    Signal(u8),
}

fn hint(near: &[String]) -> String {
    match near {
        [] => ": it has none".into(),
        near => format!("; there is {}", near.join(", ")),
    }
}

impl CliError {
    /// What to say on stderr; nothing for what is no failure.
    pub(super) fn words(&self) -> Option<String> {
        match self {
            Self::Closed | Self::Signal(_) => None,
            // Names in it come from the command line and from files: they meet the terminal here.
            other => Some(crate::model::text::clean(&other.to_string()).into_owned()),
        }
    }

    /// The exit code.
    pub(super) fn exit(&self) -> Exit {
        match self {
            Self::NoInput => Exit::Usage,
            Self::Bundle(_) => Exit::Input,
            Self::UnknownModel { .. } | Self::AmbiguousModel { .. } => Exit::Model,
            Self::Closed => Exit::Done,
            Self::Output(_) | Self::Format { .. } | Self::Screen(_) | Self::Cluster(_) => Exit::Output,
            Self::Signal(number) => Exit::Signal(*number),
        }
    }
}

impl From<io::Error> for CliError {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe { Self::Closed } else { Self::Output(error) }
    }
}
