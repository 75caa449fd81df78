//! What whole observations come to: recorded pages, the state tables of each engine, arbitrary input.

mod pages;
mod properties;
mod sglang;
mod states;
mod vllm;

use jiff::{SignedDuration, Timestamp};

use super::exposition::read;
use super::{MetricPage, Observed, report, wanted};
use crate::model::engine::{ContainerLog, EngineKind, EngineReport, HttpAnswer, HttpFailure, HttpOutcome};
use crate::model::object::Container;
use crate::model::object::pod::{ContainerState, ContainerStatus, Probe, ProbeKind};
use crate::model::unknown::unknown;
use crate::model::{Evidence, Known, Place, Subject};

/// The present of all scenes.
const NOW: &str = "2026-11-12T10:00:00Z";

fn at(seconds_ago: i64) -> Timestamp {
    NOW.parse::<Timestamp>().unwrap().checked_sub(SignedDuration::from_secs(seconds_ago)).unwrap()
}

fn recorded(name: &str) -> String {
    std::fs::read_to_string(format!("{}/tests/data/metrics/{name}", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

/// One engine to be judged.
#[derive(Clone)]
struct Scene {
    subject: Subject,
    kind: Known<(EngineKind, Evidence)>,
    container: Option<Container>,
    status: Option<ContainerStatus>,
    deleted_at: Option<Timestamp>,
    answers: Vec<HttpAnswer>,
    pages: Vec<MetricPage>,
    logs: Vec<ContainerLog>,
}

impl Scene {
    fn new() -> Self {
        Self {
            subject: Subject::pod("serving", "a"),
            kind: unknown("nothing tells which engine it is"),
            container: None,
            status: None,
            deleted_at: None,
            answers: Vec::new(),
            pages: Vec::new(),
            logs: Vec::new(),
        }
    }

    fn of(kind: EngineKind) -> Self {
        let subject = Subject::pod("serving", "a");
        let evidence = Evidence::new(&subject, Place::Field("spec.containers[engine].image".into()), "engine", None);
        Self { kind: Ok((kind, evidence)), ..Self::new() }
    }

    fn vllm() -> Self {
        Self::of(EngineKind::Vllm)
    }

    fn sglang() -> Self {
        Self::of(EngineKind::Sglang)
    }

    fn ask(mut self, request: &str, seconds_ago: i64, outcome: HttpOutcome) -> Self {
        let (method, path) = request.split_once(' ').unwrap_or(("GET", request));
        self.answers.push(HttpAnswer {
            target: self.subject.clone(),
            port: Some(8000),
            method: method.into(),
            path: path.into(),
            at: at(seconds_ago),
            latency_ms: Some(3.0),
            outcome,
        });
        self
    }

    fn says(self, request: &str, seconds_ago: i64, status: u16, body: &str) -> Self {
        self.ask(request, seconds_ago, HttpOutcome::Answered { status, content_type: String::new(), body: body.into() })
    }

    fn healthy(self) -> Self {
        self.says("/health", 0, 200, "")
    }

    fn refused(self, request: &str, seconds_ago: i64) -> Self {
        self.ask(request, seconds_ago, HttpOutcome::Failed(HttpFailure::Refused))
    }

    fn silent(self, request: &str, seconds_ago: i64) -> Self {
        self.ask(request, seconds_ago, HttpOutcome::Failed(HttpFailure::Timeout))
    }

    fn page(mut self, seconds_ago: i64, text: &str) -> Self {
        self.pages.push(MetricPage {
            subject: self.subject.clone(),
            port: Some(8000),
            path: "/metrics".into(),
            at: at(seconds_ago),
            page: read(text.as_bytes(), &wanted()).into(),
        });
        self
    }

    /// A vLLM page: running, waiting, generated tokens.
    fn load(self, seconds_ago: i64, running: u32, waiting: u32, generated: u32) -> Self {
        self.page(
            seconds_ago,
            &format!(
                "vllm:num_requests_running{{engine=\"0\"}} {running}\nvllm:num_requests_waiting{{engine=\"0\"}} {waiting}\n\
                 vllm:prompt_tokens_total{{engine=\"0\"}} 7\nvllm:generation_tokens_total{{engine=\"0\"}} {generated}\n"
            ),
        )
    }

    fn log(mut self, lines: &str) -> Self {
        self.logs.push(ContainerLog {
            pod: self.subject.clone(),
            container: "engine".into(),
            lines: lines.lines().map(str::to_owned).collect(),
            previous_at: None,
            exit_code: None,
        });
        self
    }

    fn init_log(mut self, lines: &str) -> Self {
        self = self.log(lines);
        self.logs.last_mut().unwrap().container = "storage-initializer".into();
        self
    }

    fn args(mut self, args: &[&str]) -> Self {
        let container = self.container.get_or_insert_with(|| Container { name: "engine".into(), ..Container::default() });
        container.args = args.iter().map(|arg| (*arg).to_owned()).collect();
        self
    }

    fn readiness(mut self, how: ProbeKind) -> Self {
        let container = self.container.get_or_insert_with(|| Container { name: "engine".into(), ..Container::default() });
        container.readiness = Some(Probe { how, initial_delay_s: 0, period_s: 10, timeout_s: 1, failure_threshold: 3 });
        self
    }

    fn state(mut self, state: ContainerState, ready: bool) -> Self {
        let name = "engine".into();
        self.status = Some(ContainerStatus { name, ready, started: Some(true), restarts: 0, image: String::new(), state, last: None });
        self
    }

    fn running_for(self, seconds: i64, ready: bool) -> Self {
        self.state(ContainerState::Running { since: Some(at(seconds)) }, ready)
    }

    fn deleted(mut self, seconds_ago: i64) -> Self {
        self.deleted_at = Some(at(seconds_ago));
        self
    }

    fn report(&self) -> EngineReport {
        report(&Observed {
            subject: &self.subject,
            kind: self.kind.clone(),
            container: self.container.as_ref(),
            status: self.status.as_ref(),
            deleted_at: self.deleted_at,
            answers: &self.answers,
            pages: &self.pages,
            logs: &self.logs,
            now: at(0),
        })
    }

    /// The state as one word, without the reason of UNKNOWN.
    fn word(&self) -> String {
        let report = self.report();
        assert!(!report.why.is_empty());
        report.state.to_string().split(" (").next().unwrap().to_owned()
    }
}

fn http_probe() -> ProbeKind {
    ProbeKind::Http { path: "/health".into(), port: "8000".into() }
}
