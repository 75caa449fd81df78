//! What a log came to: phases, progress, failures, each with its line.
//!
//! Owns the questions that rules ask of a log. Must not read lines: see [`super::read`].

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::{Failure, Phase};
use crate::model::engine::EngineKind;
use crate::model::{Evidence, Place, Subject, time};

/// One log of one run of one container, read.
#[derive(Debug, Clone, PartialEq)]
pub struct LogReading {
    /// The pod.
    pub pod: Subject,
    /// The container.
    pub container: String,
    /// Set for a run before the last restart: when it ended.
    pub previous_at: Option<Timestamp>,
    /// Its exit code, where known.
    pub exit_code: Option<i64>,
    /// Which engine wrote it, where a phrase tells.
    pub kind: Option<EngineKind>,
    /// What it had reached at its end.
    pub phase: Option<Phase>,
    /// The first line of each phase.
    pub reached: BTreeMap<Phase, Line>,
    /// The last line of each phase.
    pub latest: BTreeMap<Phase, Line>,
    /// States of progress, oldest first: the first of the log and the last 64.
    pub progress: Vec<Progress>,
    /// The engine's version, as it names it.
    pub version: Option<(String, Line)>,
    /// The first failure that it reports and did not recover from.
    pub failure: Option<(Failure, Line)>,
    /// SGLang's own count of requests left while it drains.
    pub remaining: Option<(f64, Line)>,
    /// The last line that bears a time.
    pub last_at: Option<Timestamp>,
    /// Number of lines.
    pub lines: usize,
}

/// A line that proves something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// Its text, made harmless and cut.
    pub text: String,
    /// The time that it bears.
    pub at: Option<Timestamp>,
    /// The time of the last line before it that bears one: it is not older than that.
    pub not_before: Option<Timestamp>,
}

impl Line {
    /// Its own time, else that of the line before.
    pub fn time(&self) -> Option<Timestamp> {
        self.at.or(self.not_before)
    }
}

/// What is being counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Counted {
    /// Files or bytes of the model on their way to the node.
    Download,
    /// Checkpoint shards on their way into memory.
    Shards,
    /// Graphs, compilation.
    WarmUp,
}

/// One state of progress.
#[derive(Debug, Clone, PartialEq)]
pub struct Progress {
    /// What it counts.
    pub what: Counted,
    /// Share done, 0..1, where the total is known.
    pub share: Option<f64>,
    /// The count as written: `23/37`, `61%`, `41.2 GiB`.
    pub count: String,
    /// What the bar names: two files that load side by side have two labels.
    pub label: String,
    /// Seconds since it began, as the log says.
    pub elapsed_s: Option<f64>,
    /// Seconds left, as the log says or as share and time give.
    pub left_s: Option<f64>,
    /// The line.
    pub line: Line,
}

impl Progress {
    /// Seconds that the whole takes.
    pub fn whole_s(&self) -> Option<f64> {
        Some(self.elapsed_s? + self.left_s?)
    }
}

/// A count that stood still over two or more lines.
#[derive(Debug, Clone, PartialEq)]
pub struct Stuck {
    /// The count.
    pub count: String,
    /// How many states showed it.
    pub lines: usize,
    /// Seconds between the first and the last of them, where times or the bar's own clock tell.
    pub seconds: Option<f64>,
    /// The first of them.
    pub first: Line,
    /// The last of them.
    pub last: Line,
}

impl LogReading {
    /// The newest state of progress.
    pub fn newest(&self) -> Option<&Progress> {
        self.progress.last()
    }

    /// The newest state of progress of one kind.
    pub fn newest_of(&self, what: Counted) -> Option<&Progress> {
        self.progress.iter().rev().find(|progress| progress.what == what)
    }

    /// Whether the download that it shows stands still at the end of the log: the last two or more states of the bar have one count
    /// below its total, or below 100 %.
    pub fn stuck(&self) -> Option<Stuck> {
        let last = self.newest().filter(|progress| progress.what == Counted::Download)?;
        if last.share.is_some_and(|share| share >= 1.0) {
            return None;
        }
        let row: Vec<&Progress> = self
            .progress
            .iter()
            .rev()
            .filter(|progress| progress.label == last.label)
            .take_while(|progress| progress.what == last.what && progress.count == last.count)
            .collect();
        let first = row.last().filter(|_| row.len() > 1)?;
        let by_clock = || Some(time::seconds_between(first.line.at?, last.line.at?) as f64);
        let by_bar = || Some(last.elapsed_s? - first.elapsed_s?);
        Some(Stuck {
            count: last.count.clone(),
            lines: row.len(),
            seconds: by_clock().or_else(by_bar),
            first: first.line.clone(),
            last: last.line.clone(),
        })
    }

    /// A line as evidence.
    pub fn evidence(&self, line: &Line) -> Evidence {
        Evidence::new(&self.pod, Place::Log(self.container.clone()), line.text.clone(), line.time())
    }
}
