//! The recent changes of one resource: what watches replay and snapshots undo.
//!
//! Owns how far back one can go. Must not grow without bound: the oldest changes go first, and who needs them is told so.

use std::collections::VecDeque;
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::Value;

use super::Place;

/// One change of one object.
#[derive(Debug, Clone)]
pub struct Change {
    /// The revision that it made.
    pub revision: u64,
    /// When.
    pub at: Timestamp,
    /// Of which object.
    pub place: Place,
    /// What was there before.
    pub old: Option<Arc<Value>>,
    /// What is there now; for a deleted object what it was at its end.
    pub object: Arc<Value>,
    /// The object is gone.
    pub gone: bool,
}

/// Answer to the question what changed.
#[derive(Debug)]
pub enum Since {
    /// These, in order.
    Changes(Vec<Arc<Change>>),
    /// The history no longer reaches back that far.
    Expired,
}

/// The changes of one resource, oldest first.
#[derive(Debug)]
pub struct History {
    changes: VecDeque<Arc<Change>>,
    keep: usize,
    /// Changes up to this revision may be missing.
    floor: u64,
}

impl History {
    /// Empty, complete from `floor` on.
    pub fn new(keep: usize, floor: u64) -> Self {
        Self { changes: VecDeque::new(), keep, floor }
    }

    /// Adds the newest change.
    pub fn push(&mut self, change: Change) {
        self.changes.push_back(Arc::new(change));
        while self.changes.len() > self.keep {
            if let Some(oldest) = self.changes.pop_front() {
                self.floor = oldest.revision;
            }
        }
    }

    /// Corrects what was before the newest change.
    pub(super) fn amend_old(&mut self, old: Arc<Value>) {
        if let Some(last) = self.changes.pop_back() {
            let mut change = Arc::unwrap_or_clone(last);
            change.old = Some(old);
            self.changes.push_back(Arc::new(change));
        }
    }

    fn first_after(&self, revision: u64) -> usize {
        self.changes.partition_point(|change| change.revision <= revision)
    }

    /// Changes after `revision`, at most `most`.
    pub fn since(&self, revision: u64, most: usize) -> Since {
        if revision < self.floor {
            return Since::Expired;
        }
        Since::Changes(self.changes.range(self.first_after(revision)..).take(most).cloned().collect())
    }

    /// The changes after `revision`, newest first; `None` when some are missing.
    pub fn back_to(&self, revision: u64) -> Option<impl Iterator<Item = &Arc<Change>>> {
        (revision >= self.floor).then(|| self.changes.range(self.first_after(revision)..).rev())
    }

    /// Forgets all changes up to `revision`.
    pub fn forget(&mut self, revision: u64) {
        let gone = self.first_after(revision);
        self.changes.drain(..gone);
        self.floor = self.floor.max(revision);
    }

    /// Forgets all changes before `at`.
    pub fn forget_before(&mut self, at: Timestamp) {
        let gone = self.changes.partition_point(|change| change.at < at);
        if let Some(last) = self.changes.drain(..gone).next_back() {
            self.floor = self.floor.max(last.revision);
        }
    }
}
