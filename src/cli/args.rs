//! Options that the reading commands share.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use jiff::Timestamp;

/// What is read.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Input")]
pub(super) struct Source {
    /// Read the bundle in this directory.
    #[arg(long, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    pub(super) from: Option<PathBuf>,

    #[command(flatten)]
    pub(super) clock: Clock,
}

/// The present.
#[derive(Debug, Clone, Args)]
pub(super) struct Clock {
    /// Take this as the present, as 2026-11-12T10:00:00Z; without it the newest time in the input counts.
    #[arg(long, value_name = "TIME")]
    pub(super) now: Option<Timestamp>,
}

/// What of it is shown, and how.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Output")]
pub(super) struct View {
    /// Show only this namespace.
    #[arg(short, long, value_name = "NAMESPACE")]
    pub(super) namespace: Option<String>,

    /// Format of the answer.
    #[arg(short, long, value_enum, default_value_t = Format::Table)]
    pub(super) output: Format,
}

/// A format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Format {
    /// Text for people.
    Table,
    /// The same with more columns and every piece of evidence.
    Wide,
    /// JSON for programs.
    Json,
    /// The same as YAML.
    Yaml,
}
