//! Container logs: their last lines, harmless and redacted.

use jiff::Timestamp;

use super::draft::Draft;
use super::folder::Folder;
use super::manifest::Entry;
use crate::model::engine::ContainerLog;
use crate::model::object::{Body, Object};
use crate::model::{text, time};

/// Most bytes of a log that are read, from its end.
const MAX_BYTES: u64 = 2 << 20;
/// Most lines of a log that are kept, from its end.
const MAX_LINES: usize = 5_000;
/// Most characters of a line.
const MAX_CHARS: usize = 4_096;

/// A log whose run is perhaps not dated yet.
pub(super) struct RawLog {
    log: ContainerLog,
    /// Of an earlier run, whose end its pod tells.
    previous: bool,
    /// When it was taken.
    at: Option<Timestamp>,
}

/// Reads a log.
pub(super) fn take(folder: &Folder, entry: &Entry, draft: &mut Draft) {
    let Some(pod) = entry.subject.clone().filter(|subject| subject.kind() == "pod") else {
        return draft.trouble(&entry.file, "a log needs a pod as its subject: pod/NAMESPACE/NAME");
    };
    let content = match folder.tail(&entry.file, MAX_BYTES) {
        Ok(content) => content,
        Err(why) => return draft.trouble(&entry.file, why),
    };
    let all = content.text();
    // The first line of a tail is the rest of one that was cut.
    let whole = match content.left_out {
        0 => all.as_str(),
        _ => all.split_once('\n').map_or("", |(_, rest)| rest),
    };
    let lines = text::clean_block(whole, MAX_LINES, MAX_CHARS);
    let log = ContainerLog {
        pod,
        container: entry.container.clone().unwrap_or_default(),
        lines,
        previous_at: entry.previous_at,
        exit_code: entry.exit_code,
    };
    draft.logs.push(RawLog { log, previous: entry.previous, at: entry.at });
}

impl RawLog {
    /// When it was taken, or the time of its last line where lines begin with one (`kubectl logs --timestamps`).
    pub(super) fn newest(&self) -> Option<Timestamp> {
        let stamped = self.log.lines.iter().rev().take(20).find_map(|line| time::instant(line.split_whitespace().next()?));
        self.at.max(self.log.previous_at).max(stamped)
    }

    /// The log, with the end of its run as its pod tells it.
    pub(super) fn finish(mut self, objects: &[Object]) -> ContainerLog {
        if self.previous && self.log.previous_at.is_none() {
            let ended = objects.iter().rev().filter(|object| object.subject() == self.log.pod).find_map(|object| match &object.body {
                Body::Pod(pod) => pod.container(&self.log.container)?.last.clone(),
                _ => None,
            });
            self.log.previous_at = ended.as_ref().and_then(|ended| ended.finished).or(self.at);
            self.log.exit_code = self.log.exit_code.or(ended.and_then(|ended| ended.exit_code));
        }
        self.log
    }
}
