//! What a container's log says of the engine's start, its end and its downloads.
//!
//! Owns the reading of lines into one [`LogReading`]. A log is a hint: it is rotated, truncated, or silent under
//! `VLLM_LOGGING_LEVEL=WARNING`; readiness never comes from here alone. Must not fail on any bytes.

mod bar;
mod phrases;
mod phrases_sglang;
mod phrases_vllm;
mod reading;
mod stamp;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use jiff::Timestamp;

pub use bar::Bar;
pub use phrases::{Failure, Phase};
pub use reading::{Counted, Line, LogReading, Progress, Stuck};

use crate::model::engine::{ContainerLog, EngineKind};
use crate::model::{text, time};

/// How many states of progress are kept: the first, and the last of these.
const KEPT: usize = 64;
/// Bytes of a line that are looked at. SGLang prints its arguments as one line of many kilobytes.
const LINE: usize = 16 * 1024;

/// Reads one log. `kind` narrows the phrases to one engine's where it is known; `now` gives vLLM's times their year.
pub fn read(log: &ContainerLog, kind: Option<EngineKind>, now: Timestamp) -> LogReading {
    let mut reader = Reader {
        reading: LogReading {
            pod: log.pod.clone(),
            container: log.container.clone(),
            previous_at: log.previous_at,
            exit_code: log.exit_code,
            kind: None,
            phase: None,
            reached: BTreeMap::new(),
            latest: BTreeMap::new(),
            progress: Vec::new(),
            version: None,
            failure: None,
            remaining: None,
            last_at: None,
            lines: log.lines.len(),
        },
        wanted: kind,
        now,
    };
    for raw in &log.lines {
        // A bar redraws itself with carriage returns: one line may hold all its states.
        for piece in raw.split(['\r', '\n']) {
            reader.take(cut(piece, LINE));
        }
    }
    reader.reading
}

struct Reader {
    reading: LogReading,
    wanted: Option<EngineKind>,
    now: Timestamp,
}

impl Reader {
    fn take(&mut self, piece: &str) {
        let plain = without_colours(piece);
        let (at, line) = stamp::split(&plain, self.now);
        if line.trim().is_empty() {
            return;
        }
        let shown = Line { text: text::tidy(cut(line.trim(), 400)).to_string(), at, not_before: self.reading.last_at };
        self.reading.last_at = at.or(self.reading.last_at);
        if is_access_line(line) {
            return self.take_access(line, &shown);
        }
        let lower = line.to_ascii_lowercase();
        if let Some(version) = phrases_vllm::version(line, &lower).filter(|_| self.may_be(EngineKind::Vllm)) {
            self.reading.kind.get_or_insert(EngineKind::Vllm);
            self.reading.version.get_or_insert((version, shown.clone()));
        }
        if let Some(count) = phrases_sglang::remaining(&lower).filter(|_| self.may_be(EngineKind::Sglang)) {
            self.reading.remaining = Some((count, shown.clone()));
        }
        self.take_failure(line, &lower, &shown);
        if self.take_bars(line, &lower, &shown) {
            return;
        }
        match self.engine_phrase(&lower) {
            Some((kind, phase)) => {
                self.reading.kind.get_or_insert(kind);
                self.reach(phase, &shown);
            }
            None => self.take_download(line, &lower, &shown),
        }
    }

    /// uvicorn's access lines. Paths in them are strangers' text, so no phrase is looked for. vLLM's port opens only when all is
    /// ready; SGLang's opens before its warm-up.
    fn take_access(&mut self, line: &str, shown: &Line) {
        if self.wanted.or(self.reading.kind) == Some(EngineKind::Vllm) && line.contains("\" 200") {
            self.reach(Phase::Serving, shown);
        }
    }

    fn may_be(&self, kind: EngineKind) -> bool {
        self.wanted.is_none_or(|wanted| wanted == kind) && self.reading.kind.is_none_or(|found| found == kind)
    }

    /// The phrase of an engine. Shared words (`Application startup complete`) count for the engine that is known; while none is,
    /// only phrases that one engine alone has decide.
    fn engine_phrase(&self, lower: &str) -> Option<(EngineKind, Phase)> {
        let find = |kind, table: &phrases::Table<Phase>| Some((kind, self.may_be(kind).then(|| table.find(lower)).flatten()?));
        let vllm = find(EngineKind::Vllm, &phrases_vllm::TABLE);
        let sglang = find(EngineKind::Sglang, &phrases_sglang::TABLE);
        match (vllm, sglang) {
            (Some(_), Some(_)) => None,
            (one, other) => one.or(other),
        }
    }

    fn reach(&mut self, phase: Phase, line: &Line) {
        use Phase::*;
        let reading = &mut self.reading;
        reading.reached.entry(phase).or_insert_with(|| line.clone());
        reading.latest.insert(phase, line.clone());
        reading.phase = Some(match (reading.phase, phase) {
            // Ranks load side by side: a late one does not take the engine back.
            (Some(now), _) if phase <= Serving && now <= Serving => now.max(phase),
            // Access lines and throughput lines go on while it sleeps or drains.
            (Some(now @ (Asleep | Draining | Stopping | Failed)), Serving) => now,
            (Some(Awake), Serving) => Awake,
            // `[shutdown]` lines of several processes mix; the end is not undone.
            (Some(now @ (Stopping | Failed)), Draining) => now,
            // A new process inside the same container.
            (Some(Stopping | Failed), Started) => Started,
            (Some(now), _) if phase < Serving && now > Serving => now,
            _ => phase,
        });
        if phase == Started && reading.phase == Some(Started) {
            reading.failure = None;
        }
    }

    fn take_failure(&mut self, line: &str, lower: &str, shown: &Line) {
        // The end of a clean shutdown is full of errors of the dead engine: they mean nothing.
        if matches!(self.reading.phase, Some(Phase::Draining | Phase::Stopping)) {
            return;
        }
        if let Some(failure) = phrases::failure(line, lower) {
            self.reading.failure.get_or_insert((failure, shown.clone()));
            self.reach(Phase::Failed, shown);
        }
    }

    fn take_bars(&mut self, line: &str, lower: &str, shown: &Line) -> bool {
        let mut seen = false;
        for bar in bar::bars(line) {
            let Some(what) = counted(&bar.label) else { continue };
            seen = true;
            let left_s = bar.left_s.or_else(|| Some(bar.whole_s()? - bar.elapsed_s?));
            self.progressed(Progress {
                what,
                share: Some(bar.share),
                count: bar.count,
                label: text::tidy(cut(&named(&bar.label), 120)).to_string(),
                elapsed_s: bar.elapsed_s,
                left_s,
                line: shown.clone(),
            });
        }
        // A bar that was cut before its clock: `Loading safetensors checkpoint shards:  43% Completed | 26/60`.
        if !seen
            && lower.contains('%')
            && counted(lower) == Some(Counted::Shards)
            && let Some((count, Some(share))) = bar::count_in_words(line)
        {
            seen = true;
            let (what, line) = (Counted::Shards, shown.clone());
            self.progressed(Progress { what, share: Some(share), count, label: String::new(), elapsed_s: None, left_s: None, line });
        }
        seen
    }

    fn take_download(&mut self, line: &str, lower: &str, shown: &Line) {
        let Some(phase) = phrases::DOWNLOAD_TABLE.find(lower) else { return };
        if self.reading.phase.is_some_and(|phase| phase >= Phase::Loading) {
            return;
        }
        self.reach(phase, shown);
        if phase == Phase::Downloading
            && let Some((count, share)) = bar::count_in_words(line)
        {
            self.progressed(Progress {
                what: Counted::Download,
                share,
                count,
                label: String::new(),
                elapsed_s: None,
                left_s: bar::eta_in_words(lower),
                line: shown.clone(),
            });
        }
    }

    fn progressed(&mut self, mut progress: Progress) {
        let done = progress.share.is_some_and(|share| share >= 1.0);
        let phase = match progress.what {
            // One of many files at 100 % is not the end of the download.
            Counted::Download if done && progress.label.to_lowercase().contains("fetching") => Phase::Downloaded,
            Counted::Download => Phase::Downloading,
            Counted::Shards => Phase::Loading,
            Counted::WarmUp => Phase::Warming,
        };
        if progress.elapsed_s.is_none() {
            self.time_by_lines(&mut progress);
        }
        let line = progress.line.clone();
        self.reach(phase, &line);
        let kept = &mut self.reading.progress;
        if kept.len() > KEPT {
            kept.remove(1);
        }
        kept.push(progress);
    }

    /// Elapsed and left of a count without a clock, from the times of its first line and this one.
    fn time_by_lines(&self, progress: &mut Progress) {
        let same = |other: &&Progress| other.what == progress.what && other.label == progress.label;
        let Some(first) = self.reading.progress.iter().find(same) else { return };
        let (Some(from), Some(to), Some(before), Some(share)) = (first.line.at, progress.line.at, first.share, progress.share) else {
            return;
        };
        let seconds = time::seconds_between(from, to) as f64;
        if seconds > 0.0 && share > before {
            progress.left_s = progress.left_s.or(Some(seconds * (1.0 - share) / (share - before)));
            progress.elapsed_s = Some(seconds * share / (share - before));
        }
    }
}

/// `INFO:     10.0.0.1:52722 - "GET /health HTTP/1.1" 200 OK`.
fn is_access_line(line: &str) -> bool {
    line.contains(" HTTP/1.") && line.contains(" - \"")
}

/// A bar's label without the time and level that a logger puts before it: they differ on each line, the bar is one.
fn named(label: &str) -> String {
    let logger = |word: &&str| {
        let bare = word.trim_matches(|c: char| !c.is_ascii_alphanumeric());
        let level = matches!(bare.to_ascii_uppercase().as_str(), "INFO" | "WARN" | "WARNING" | "DEBUG" | "ERROR");
        let time = bare.starts_with(|c: char| c.is_ascii_digit()) && bare.chars().all(|c| c.is_ascii_digit() || "-:/.,+TZ".contains(c));
        level || time || bare.is_empty()
    };
    label.split_whitespace().skip_while(logger).collect::<Vec<_>>().join(" ")
}

/// What a bar counts, from the text before it.
fn counted(label: &str) -> Option<Counted> {
    let label = label.to_lowercase();
    let has = |parts: &[&str]| parts.iter().any(|part| label.contains(part));
    if has(&["downloading"]) {
        Some(Counted::Download)
    } else if has(&["checkpoint shards", "loading shards", "loading weights", "loading safetensors using"]) {
        Some(Counted::Shards)
    } else if has(&["captur", "compil", "warmup", "warming up", "warm up", "autotun"]) {
        Some(Counted::WarmUp)
    } else if has(&["fetching", "download", ".safetensors", ".gguf", ".bin", ".pt"]) {
        Some(Counted::Download)
    } else {
        None
    }
}

/// The version at the start of a text: digits, dots and what pre-releases add.
fn version_word(rest: &str) -> Option<String> {
    let word: String =
        rest.trim_start_matches('v').chars().take_while(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '+' | '-')).take(40).collect();
    let word = word.trim_end_matches(['.', '-', '+']).to_owned();
    (word.starts_with(|c: char| c.is_ascii_digit()) && word.contains('.')).then_some(word)
}

fn cut(text: &str, bytes: usize) -> &str {
    let mut end = bytes.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or_default()
}

/// The text without ANSI colour sequences, whole ones (`ESC[31m`).
fn without_colours(text: &str) -> std::borrow::Cow<'_, str> {
    if !text.contains('\u{1b}') {
        return text.into();
    }
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c != '\u{1b}' {
            out.push(c);
            continue;
        }
        if chars.next() == Some('[') {
            for end in chars.by_ref() {
                if end.is_ascii_alphabetic() {
                    break;
                }
            }
        }
    }
    out.into()
}
