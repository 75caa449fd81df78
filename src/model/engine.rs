//! Engines as facts: which server it is, what it answered, how loaded it is.

use std::collections::BTreeMap;
use std::fmt;

use jiff::Timestamp;

use super::{Evidence, Fact, Known, Subject, state::EngineState};

/// Which server runs in a replica.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EngineKind {
    /// vLLM, the V0 engine of old releases included.
    Vllm,
    /// SGLang.
    Sglang,
    /// Another server that speaks the OpenAI HTTP API.
    OpenAi,
}

impl EngineKind {
    /// The word of the public document.
    pub fn word(self) -> &'static str {
        match self {
            Self::Vllm => "vllm",
            Self::Sglang => "sglang",
            Self::OpenAi => "openai",
        }
    }

    /// Reads a label or config value: `vllm`, `SGLang`, `openai`.
    pub fn parse(word: &str) -> Option<Self> {
        match word.to_ascii_lowercase().as_str() {
            "vllm" => Some(Self::Vllm),
            "sglang" => Some(Self::Sglang),
            "openai" | "openai-compatible" => Some(Self::OpenAi),
            _ => None,
        }
    }

    /// The port on which it listens when nothing says otherwise.
    pub fn default_port(self) -> u16 {
        match self {
            Self::Vllm | Self::OpenAi => 8000,
            Self::Sglang => 30000,
        }
    }
}

impl fmt::Display for EngineKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Vllm => "vLLM",
            Self::Sglang => "SGLang",
            Self::OpenAi => "OpenAI-compatible server",
        })
    }
}

/// One HTTP exchange with an engine, a router, the API server or a proxy, as it was observed.
#[derive(Debug, Clone, PartialEq)]
pub struct HttpAnswer {
    /// Whom it asked.
    pub target: Subject,
    /// The port, where one was named.
    pub port: Option<u16>,
    /// `GET`, `POST` …
    pub method: String,
    /// Path with query.
    pub path: String,
    /// When the answer (or its absence) was observed.
    pub at: Timestamp,
    /// How long it took, milliseconds.
    pub latency_ms: Option<f64>,
    /// What came back.
    pub outcome: HttpOutcome,
}

/// What came back of an HTTP request.
#[derive(Debug, Clone, PartialEq)]
pub enum HttpOutcome {
    /// An answer.
    Answered {
        /// Status code.
        status: u16,
        /// Content type, empty where none was given.
        content_type: String,
        /// The body, bounded.
        body: String,
    },
    /// No answer: `connection refused`, `timeout` …
    Failed(HttpFailure),
}

/// Why no answer came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HttpFailure {
    /// The port is closed.
    Refused,
    /// Nothing came in time.
    Timeout,
    /// Anything else, in the words of who asked.
    Other(String),
}

impl fmt::Display for HttpFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused => f.write_str("connection refused"),
            Self::Timeout => f.write_str("timeout"),
            Self::Other(words) => f.write_str(words),
        }
    }
}

impl HttpAnswer {
    /// The status, if there was an answer.
    pub fn status(&self) -> Option<u16> {
        match &self.outcome {
            HttpOutcome::Answered { status, .. } => Some(*status),
            HttpOutcome::Failed(_) => None,
        }
    }

    /// The body, if there was an answer.
    pub fn body(&self) -> &str {
        match &self.outcome {
            HttpOutcome::Answered { body, .. } => body,
            HttpOutcome::Failed(_) => "",
        }
    }

    /// Path without query.
    pub fn route(&self) -> &str {
        self.path.split('?').next().unwrap_or_default()
    }

    /// The request in short: `GET :8000/health`. Secrets of its query are taken out.
    pub fn request(&self) -> String {
        super::text::tidied(match self.port {
            Some(port) => format!("{} :{port}{}", self.method, self.path),
            None => format!("{} {}", self.method, self.path),
        })
    }

    /// The outcome in short: `200`, `503`, `connection refused`.
    pub fn outcome_word(&self) -> String {
        match &self.outcome {
            HttpOutcome::Answered { status, .. } => status.to_string(),
            HttpOutcome::Failed(failure) => super::text::tidied(failure.to_string()),
        }
    }

    /// The exchange as evidence.
    pub fn evidence(&self) -> Evidence {
        let body = self.body().trim();
        let value = match body.is_empty() || body.len() > 160 {
            true => self.outcome_word(),
            false => format!("{} {body}", self.outcome_word()),
        };
        Evidence::new(&self.target, super::Place::Http(self.request()), super::text::tidy(&value), Some(self.at))
    }
}

/// A log of one container, oldest line first, bounded and already harmless and redacted.
#[derive(Debug, Clone, PartialEq)]
pub struct ContainerLog {
    /// The pod.
    pub pod: Subject,
    /// The container.
    pub container: String,
    /// Its lines.
    pub lines: Vec<String>,
    /// Of the run before the last restart: when that run ended.
    pub previous_at: Option<Timestamp>,
    /// Its exit code, where known.
    pub exit_code: Option<i64>,
}

/// Load of one engine rank (one value of the label `engine` or `dp_rank`).
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RankLoad {
    /// Requests in the batch.
    pub running: Option<f64>,
    /// Requests that wait.
    pub waiting: Option<f64>,
    /// Requests swapped out to host memory (V0 engine).
    pub swapped: Option<f64>,
    /// Share of the KV cache in use, 0..1.
    pub kv_usage: Option<f64>,
}

/// Percentiles and totals of one latency histogram, merged over all ranks.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Latency {
    /// Observations since the process started.
    pub count: f64,
    /// Sum of them, seconds, since the process started.
    pub sum: f64,
    /// 50th and 95th percentile between the last two samples, seconds; the reason where there are none.
    pub p50: Option<f64>,
    /// See `p50`.
    pub p95: Option<f64>,
    /// 99th.
    pub p99: Option<f64>,
}

/// LoRA adapters as the engine reports them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LoraLoad {
    /// Adapters with running requests.
    pub running: Vec<String>,
    /// Adapters that wait for a slot.
    pub waiting: Vec<String>,
    /// Slots.
    pub max: Option<f64>,
}

/// What one metric page says of an engine. Every value names its series and time; what the page lacks is unknown with a reason.
#[derive(Debug, Clone, PartialEq)]
pub struct EngineLoad {
    /// When the page was taken.
    pub at: Timestamp,
    /// Ranks by label value; a page without the label has the one rank `0`.
    pub ranks: BTreeMap<String, RankLoad>,
    /// Sum over ranks.
    pub running: Known<Fact<f64>>,
    /// Sum over ranks.
    pub waiting: Known<Fact<f64>>,
    /// Sum over ranks; only old engines have it.
    pub swapped: Option<Fact<f64>>,
    /// Mean over ranks, 0..1.
    pub kv_usage: Known<Fact<f64>>,
    /// Highest rank, 0..1.
    pub kv_usage_max: Known<Fact<f64>>,
    /// Counter: prompt tokens since start, all ranks.
    pub prompt_tokens: Known<Fact<f64>>,
    /// Counter: generated tokens since start, all ranks.
    pub generation_tokens: Known<Fact<f64>>,
    /// Counter: finished requests since start by finish reason, all ranks.
    pub finished: BTreeMap<String, f64>,
    /// Time to first token.
    pub ttft: Option<Latency>,
    /// Time between tokens.
    pub inter_token: Option<Latency>,
    /// Whole request.
    pub e2e: Option<Latency>,
    /// Rates between the last two pages, per second: name of the counter → rate. Empty before the second page.
    pub rates: BTreeMap<&'static str, Known<f64>>,
    /// Adapters.
    pub lora: Option<LoraLoad>,
    /// Sleep level as the page shows it: `Some(0)` is awake=0 with neither weights offloaded nor dropped.
    pub sleep: Option<Fact<SleepReading>>,
    /// Lines of the page that could not be read.
    pub unread: usize,
    /// Model names on the page.
    pub models: Vec<String>,
}

/// What the metrics say of sleep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SleepReading {
    /// Awake.
    Awake,
    /// Asleep; 0 is a pause or only the KV cache released.
    Asleep(u8),
    /// A wake or sleep call is in flight.
    Waking,
}

/// All that is known of one engine from itself (not from Kubernetes).
#[derive(Debug, Clone, PartialEq)]
pub struct EngineReport {
    /// Which server, and what shows it.
    pub kind: Known<EngineKind>,
    /// Its version.
    pub version: Known<Fact<String>>,
    /// What it says.
    pub state: EngineState,
    /// What proves the state; the first is the decisive one.
    pub evidence: Vec<Evidence>,
    /// The state in one sentence.
    pub why: String,
    /// Since when the state holds, where something tells.
    pub since: Option<Timestamp>,
    /// Its load, from the newest page; the reason where there is none.
    pub load: Known<EngineLoad>,
    /// Share of loading done, 0..1, where the log tells.
    pub progress: Option<Fact<f64>>,
    /// Seconds until loading is done, as the log itself predicts.
    pub eta_s: Option<Fact<f64>>,
    /// Times at which the log or answers show that a stage began.
    pub stages: BTreeMap<super::ladder::Stage, Fact<()>>,
    /// Whether sleep can be asked for, as far as answers tell: `Ok(false)` when its routes answer 404.
    pub sleep_routes: Known<Offer>,
    /// Whether token counters moved between the last two pages; the reason where that can not be judged.
    pub movement: Known<bool>,
    /// Set when it had work on two pages at least 20 s apart and no token moved between them. A finding waits for 60 s.
    pub stall: Option<Stall>,
    /// Ranks that have work and do not move, by their label, while another rank does.
    pub stalled_ranks: BTreeMap<String, Stall>,
    /// What the answers say of the served model's name, where both sides are known.
    pub model_name: Option<NameCheck>,
}

/// An engine, or one of its ranks, that has work and makes no token.
#[derive(Debug, Clone, PartialEq)]
pub struct Stall {
    /// When the first page of the row was taken: it has stood still at least since then.
    pub since: Timestamp,
    /// When the last page was taken.
    pub until: Timestamp,
    /// Running requests on the first and the last page.
    pub running: (f64, f64),
    /// Waiting requests on the first and the last page.
    pub waiting: (f64, f64),
    /// Counters that did not move, as the page names them, with their value.
    pub counters: Vec<(String, f64)>,
    /// Series that showed running and waiting, as the page names them.
    pub gauges: (String, String),
}

impl Stall {
    /// Whole seconds between the two pages: it has stood still for at least that long.
    pub fn seconds(&self) -> i64 {
        super::time::seconds_between(self.since, self.until)
    }
}

/// The name under which an engine should serve, beside the names it lists.
#[derive(Debug, Clone, PartialEq)]
pub struct NameCheck {
    /// Names that its flags give it.
    pub expected: Vec<String>,
    /// Names that `/v1/models` lists.
    pub listed: Vec<String>,
    /// The answer.
    pub evidence: Evidence,
}

impl NameCheck {
    /// Whether one of the expected names is listed. A path may be listed by its last part, and a part by its path: wrappers around the
    /// engine name a model by its folder.
    pub fn agrees(&self) -> bool {
        fn last(name: &str) -> &str {
            name.trim_end_matches('/').rsplit('/').next().unwrap_or(name)
        }
        self.expected.iter().any(|name| self.listed.iter().any(|listed| listed == name || last(listed) == last(name)))
    }
}

/// Whether something is offered, with its proof.
#[derive(Debug, Clone, PartialEq)]
pub struct Offer {
    /// Offered or not.
    pub offered: bool,
    /// What shows it.
    pub evidence: Evidence,
}
