//! What a log line can mean, and the phrases that any container's log may hold (downloads, failures).
//!
//! Owns the order of phases and the matching. The engines' own phrases stand in [`super::phrases_vllm`] and
//! [`super::phrases_sglang`]. Must not be anchored to line starts: prefixes, colours and formatters differ by release and user.

use std::sync::LazyLock;

use memchr::memmem::Finder;

/// What a line shows to be reached. The order of the starting phases is the order in which they come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Phase {
    /// The process is up.
    Started,
    /// It begins to load; a download may still come first.
    LoadBegin,
    /// The model is being fetched.
    Downloading,
    /// The model is on disk.
    Downloaded,
    /// Weights are being read.
    Loading,
    /// Weights are in: compiling, sizing the KV cache, capturing graphs, first request.
    Warming,
    /// It serves.
    Serving,
    /// It went to sleep.
    Asleep,
    /// It woke up.
    Awake,
    /// It was told to end and finishes what it has.
    Draining,
    /// It was told to end and cuts what it has, or has finished.
    Stopping,
    /// It failed for good.
    Failed,
}

/// Why an engine failed, as far as its log tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Failure {
    /// GPU memory was taken by something else before it started.
    MemoryTaken,
    /// GPU memory ran out.
    OutOfMemory,
    /// No room is left for a KV cache of the wanted length.
    NoKvCache,
    /// The engine's core or scheduler process died.
    CoreDied,
    /// Ranks of a group did not find each other, or a collective failed.
    Group,
    /// The model could not be fetched.
    Download,
    /// A disk is full.
    DiskFull,
    /// Its flags or the model's files are not accepted.
    Settings,
    /// The GPU or its driver failed.
    Device,
}

impl Failure {
    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Self::MemoryTaken => "GPU memory was already taken when it started",
            Self::OutOfMemory => "GPU memory ran out",
            Self::NoKvCache => "no GPU memory is left for the KV cache",
            Self::CoreDied => "the engine's core process died",
            Self::Group => "the ranks of its group did not come together",
            Self::Download => "the model could not be fetched",
            Self::DiskFull => "a disk is full",
            Self::Settings => "its flags or the model's files are not accepted",
            Self::Device => "the GPU or its driver failed",
        }
    }
}

/// One phrase: all its parts, in lower case, stand in the line in this order.
pub(super) struct Phrase {
    pub(super) phase: Phase,
    pub(super) parts: &'static [&'static str],
}

pub(super) const fn p(phase: Phase, parts: &'static [&'static str]) -> Phrase {
    Phrase { phase, parts }
}

/// Phrases made ready for asking thousands of lines: a log is read again whenever it grows.
pub(super) struct Table<T: 'static> {
    rows: Vec<Row<T>>,
}

struct Row<T> {
    first: Finder<'static>,
    rest: &'static [&'static str],
    means: T,
}

impl<T: Copy> Table<T> {
    fn new(phrases: impl Iterator<Item = (T, &'static [&'static str])>) -> Self {
        let row = |(means, parts): (T, &'static [&'static str])| {
            let (first, rest) = parts.split_first()?;
            Some(Row { first: Finder::new(first), rest, means })
        };
        Self { rows: phrases.filter_map(row).collect() }
    }

    pub(super) fn of(phrases: &'static [Phrase]) -> Table<Phase> {
        Table::new(phrases.iter().map(|phrase| (phrase.phase, phrase.parts)))
    }

    /// The meaning of the first phrase whose parts all stand in the line, in their order.
    pub(super) fn find(&self, lower: &str) -> Option<T> {
        self.rows.iter().find(|row| row.matches(lower)).map(|row| row.means)
    }
}

impl<T> Row<T> {
    fn matches(&self, lower: &str) -> bool {
        let Some(at) = self.first.find(lower.as_bytes()) else { return false };
        let mut after = lower.get(at + self.first.needle().len()..).unwrap_or_default();
        self.rest.iter().all(|part| match after.find(part) {
            Some(at) => {
                after = after.get(at + part.len()..).unwrap_or_default();
                true
            }
            None => false,
        })
    }
}

static FAILURE_TABLE: LazyLock<Table<Failure>> = LazyLock::new(|| Table::new(FAILURES.iter().copied()));

/// Downloads, ready for asking.
pub(super) static DOWNLOAD_TABLE: LazyLock<Table<Phase>> = LazyLock::new(|| Table::<Phase>::of(DOWNLOADS));

/// Downloads, as init containers and hubs write them (KServe's storage initializer, Hugging Face, gsutil, AWS CLI, ModelScope).
const DOWNLOADS: &[Phrase] = &[
    p(Phase::Downloaded, &["successfully copied"]),
    p(Phase::Downloaded, &["successfully downloaded"]),
    p(Phase::Downloaded, &["downloaded successfully"]),
    p(Phase::Downloaded, &["download complete"]),
    p(Phase::Downloaded, &["download finished"]),
    p(Phase::Downloaded, &["download done"]),
    p(Phase::Downloaded, &["finished downloading"]),
    p(Phase::Downloaded, &["model downloaded"]),
    p(Phase::Downloaded, &["all files downloaded"]),
    p(Phase::Downloading, &["initializing, args: src_uri"]),
    p(Phase::Downloading, &["copying contents of"]),
    p(Phase::Downloading, &["copying gs://"]),
    p(Phase::Downloading, &["copying s3://"]),
    p(Phase::Downloading, &["download: s3://"]),
    p(Phase::Downloading, &["fetching", "files"]),
    p(Phase::Downloading, &["downloading"]),
    p(Phase::Downloading, &["download started"]),
    p(Phase::Downloading, &["download progress"]),
    p(Phase::Downloading, &["downloaded"]),
    p(Phase::Downloading, &["pulling model"]),
    p(Phase::Downloading, &["completed", "file(s) remaining"]),
];

/// Failures. A line that its engine calls INFO, WARNING or DEBUG never counts: advice quotes these words.
const FAILURES: &[(Failure, &[&str])] = &[
    (Failure::MemoryTaken, &["free memory on device", "less than desired gpu memory utilization"]),
    (Failure::NoKvCache, &["no available memory for the cache blocks"]),
    (Failure::NoKvCache, &["larger than the available kv cache memory"]),
    (Failure::NoKvCache, &["larger than the maximum number of tokens that can be stored in kv cache"]),
    (Failure::NoKvCache, &["not enough memory. please try to increase --mem-fraction-static"]),
    (Failure::OutOfMemory, &["cuda out of memory"]),
    (Failure::OutOfMemory, &["hip out of memory"]),
    (Failure::OutOfMemory, &["outofmemoryerror"]),
    (Failure::Device, &["illegal memory access"]),
    (Failure::Device, &["unspecified launch failure"]),
    (Failure::Device, &["no cuda gpus are available"]),
    (Failure::Device, &["cuda driver", "insufficient"]),
    (Failure::Device, &["uncorrectable ecc error"]),
    (Failure::Device, &["no kernel image is available"]),
    (Failure::Group, &["diststoreerror"]),
    (Failure::Group, &["timed out", "waiting for clients"]),
    (Failure::Group, &["ncclsystemerror"]),
    (Failure::Group, &["ncclunhandledcudaerror"]),
    (Failure::Group, &["nccl error"]),
    (Failure::DiskFull, &["no space left on device"]),
    (Failure::Download, &["gatedrepoerror"]),
    (Failure::Download, &["repositorynotfounderror"]),
    (Failure::Download, &["localentrynotfounderror"]),
    (Failure::Download, &["is not a local folder and is not a valid model identifier"]),
    (Failure::Download, &["failed to fetch model"]),
    (Failure::Settings, &["error: unrecognized arguments"]),
    (Failure::Settings, &["error: argument --"]),
    (Failure::Settings, &["validation error for"]),
    (Failure::Settings, &["cannot find any model weights"]),
    (Failure::CoreDied, &["enginecore failed to start"]),
    (Failure::CoreDied, &["engine core initialization failed"]),
    (Failure::CoreDied, &["enginecore encountered a fatal error"]),
    (Failure::CoreDied, &["enginecore encountered an issue"]),
    (Failure::CoreDied, &["enginedeaderror"]),
    (Failure::CoreDied, &["died unexpectedly"]),
    (Failure::CoreDied, &["initialization failed"]),
    (Failure::CoreDied, &["sigquit received"]),
    (Failure::CoreDied, &["received sigquit"]),
    (Failure::CoreDied, &["scheduler hit an exception"]),
    (Failure::CoreDied, &["rank", "scheduler is dead"]),
];

/// The failure that a line reports.
pub(super) fn failure(line: &str, lower: &str) -> Option<Failure> {
    let failure = FAILURE_TABLE.find(lower)?;
    let head: String = line.chars().take(120).collect();
    if ["INFO", "WARNING", "WARN", "DEBUG"].iter().any(|level| has_word(&head, level)) {
        return None;
    }
    if ["falling back", "fall back", "retry", "if you "].iter().any(|mild| lower.contains(mild)) {
        return None;
    }
    Some(failure)
}

fn has_word(text: &str, word: &str) -> bool {
    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').any(|part| part == word)
}
