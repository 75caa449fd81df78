//! All that is known of one engine, sorted: the common ground of the rulings.
//!
//! Owns what belongs to the present run of the container and what proves that it had been up. Must not decide a state.

use jiff::Timestamp;

use super::http::{self, Answers, Got, HEALTH, READY, WORK};
use super::logs::{self, LogReading, Phase};
use super::moves::{self, Movement};
use super::names::Names;
use super::{MetricPage, Observed, detect, load};
use crate::model::engine::{EngineKind, EngineLoad, HttpAnswer};
use crate::model::object::pod::{Probe, ProbeKind};
use crate::model::{Evidence, Known, Place, time};

/// Seconds after which a container that never answered is no longer taken to load, when nothing else tells.
const LONGEST_LOAD_S: i64 = 3600;

/// One engine, sorted.
pub(super) struct Case<'a> {
    pub(super) observed: &'a Observed<'a>,
    /// Which engine, and what shows it.
    pub(super) kind: Known<(EngineKind, Evidence)>,
    /// Answers of this run.
    pub(super) answers: Answers<'a>,
    /// Usable pages of this run, oldest first, one for each instant.
    pub(super) pages: Vec<&'a MetricPage>,
    /// Logs, those of earlier runs too.
    pub(super) logs: Vec<LogReading>,
    /// What the pages say of movement.
    pub(super) movement: Movement,
    /// The load of the newest of these pages; unknown without one.
    pub(super) load: Known<EngineLoad>,
    /// What the newest health-like exchange says.
    pub(super) voice: Voice<'a>,
}

/// What the port says.
#[derive(Debug, Clone, Copy)]
pub(super) enum Voice<'a> {
    /// Healthy, by its own words.
    Healthy(&'a HttpAnswer),
    /// It answers that it is not well.
    Unwell(&'a HttpAnswer, u16),
    /// The port is closed.
    Closed(&'a HttpAnswer),
    /// No answer came.
    Silent(&'a HttpAnswer),
    /// It answers, but nothing that tells its health.
    Open(&'a HttpAnswer),
    /// Nobody asked.
    NotAsked,
}

impl<'a> Voice<'a> {
    /// The exchange.
    pub(super) fn answer(self) -> Option<&'a HttpAnswer> {
        match self {
            Self::Healthy(answer) | Self::Unwell(answer, _) | Self::Closed(answer) | Self::Silent(answer) | Self::Open(answer) => {
                Some(answer)
            }
            Self::NotAsked => None,
        }
    }
}

impl<'a> Case<'a> {
    /// Sorts what was observed.
    pub(super) fn of(observed: &'a Observed<'a>) -> Self {
        let since = observed.status.and_then(|status| status.running_since().flatten());
        let answers = Answers::of(observed.answers, since);
        let mut pages: Vec<&MetricPage> = observed
            .pages
            .iter()
            .filter(|page| since.is_none_or(|since| page.at >= since) && load::unusable(&page.page).is_none())
            .collect();
        pages.sort_by_key(|page| page.at);
        // Of two pages of one instant the later one in the input holds.
        pages.reverse();
        pages.dedup_by_key(|page| page.at);
        pages.reverse();
        let told =
            observed.kind.as_ref().ok().map(|(kind, _)| *kind).or_else(|| pages.last().and_then(|page| detect::kind_of_page(&page.page)));
        let logs: Vec<LogReading> = observed.logs.iter().map(|log| logs::read(log, told, observed.now)).collect();
        let kind = detect::kind(observed, &pages, &answers, &logs);
        let names = Names::of(kind.as_ref().map_or(EngineKind::OpenAi, |(kind, _)| *kind));
        let movement = moves::movement(&pages, names);
        let voice = voice(&answers);
        let load = load::read(&pages, kind.as_ref().map_or(EngineKind::OpenAi, |(kind, _)| *kind));
        Self { observed, kind, answers, pages, logs, movement, load, voice }
    }

    /// Which engine, where it is known.
    pub(super) fn engine(&self) -> Option<EngineKind> {
        self.kind.as_ref().ok().map(|(kind, _)| *kind)
    }

    /// The engine's name for a sentence.
    pub(super) fn name(&self) -> &'static str {
        match self.engine() {
            Some(EngineKind::Vllm) => "vLLM",
            Some(EngineKind::Sglang) => "SGLang",
            _ => "the engine",
        }
    }

    /// Whether this is a rank of a group that serves nobody itself: a headless vLLM opens no port, a follower of SGLang answers 200
    /// from a dummy server.
    pub(super) fn is_follower(&self) -> bool {
        let Some(container) = self.observed.container else { return false };
        let rank = || ["--node-rank", "--node_rank"].into_iter().find_map(|flag| container.flag(flag));
        match self.engine() {
            Some(EngineKind::Vllm) => container.flag("--headless").is_some(),
            Some(EngineKind::Sglang) => rank().and_then(|rank| rank.trim().parse::<u32>().ok()).is_some_and(|rank| rank > 0),
            _ => false,
        }
    }

    /// The log of the engine's present run.
    pub(super) fn log(&self) -> Option<&LogReading> {
        let current = || self.logs.iter().filter(|log| log.previous_at.is_none());
        let spec = self.observed.container.map(|container| &container.name);
        match spec.or(self.observed.status.map(|status| &status.name)) {
            Some(name) => current().find(|log| log.container == *name),
            None => current().find(|log| log.kind.is_some()).or_else(|| current().next()),
        }
    }

    /// Logs of other containers of the pod, of their present run: a download in an init container.
    pub(super) fn other_logs(&self) -> impl Iterator<Item = &LogReading> {
        let engine = self.log().map(|log| log.container.clone());
        self.logs.iter().filter(move |log| log.previous_at.is_none() && Some(&log.container) != engine.as_ref())
    }

    /// How far the engine's log says it is.
    pub(super) fn phase(&self) -> Option<Phase> {
        self.log().and_then(|log| log.phase)
    }

    /// The newest usable page, if it is at most so many seconds old.
    pub(super) fn fresh_page(&self, seconds: i64) -> Option<&'a MetricPage> {
        self.pages.last().copied().filter(|page| time::seconds_between(page.at, self.observed.now) <= seconds)
    }

    /// Whether tokens moved, by a page that is not much older than `at`: proof of life against a failed health check.
    pub(super) fn moved_around(&self, at: Timestamp) -> bool {
        self.movement.moved == Ok(true) && self.pages.last().is_some_and(|page| time::seconds_between(page.at, at) <= 60)
    }

    /// What proves that the engine had been up in this run before `at`. A port that is closed while the engine loads is normal;
    /// after it had been open it is not.
    pub(super) fn had_been_up(&self, at: Option<Timestamp>) -> Option<Evidence> {
        let earlier = |when: Timestamp| at.is_none_or(|at| when <= at);
        let by_answer = || {
            self.answers.iter().rev().filter(|answer| earlier(answer.at)).find(|answer| {
                let proves =
                    HEALTH.contains(&http::route(answer)) || READY.contains(&http::route(answer)) || WORK.contains(&http::route(answer));
                // vLLM opens its port only when all is ready (measured on 0.32.0).
                let opened = self.engine() == Some(EngineKind::Vllm) && matches!(http::got(answer), Got::Status(_));
                (proves && http::got(answer) == Got::Status(200)) || opened
            })
        };
        if let Some(answer) = by_answer() {
            return Some(answer.evidence());
        }
        if let Some(page) = self.pages.iter().rev().find(|page| earlier(page.at) && self.proves_up(page)) {
            return Some(Evidence::new(&page.subject, Place::Http(format!("GET {}", page.path)), "200", Some(page.at)));
        }
        if let Some((log, line)) = self.log().and_then(|log| Some((log, log.reached.get(&Phase::Serving)?))) {
            return Some(log.evidence(line));
        }
        let (status, container) = (self.observed.status?, self.observed.container);
        let asks = |probe: Option<&Probe>| probe.is_some_and(|probe| matches!(probe.how, ProbeKind::Http { .. } | ProbeKind::Tcp(_)));
        let field = |name: &str, value: &str| {
            Evidence::field(self.observed.subject, &format!("status.containerStatuses[{}].{name}", status.name), value)
        };
        if status.ready && asks(container.and_then(|container| container.readiness.as_ref())) {
            return Some(field("ready", "true"));
        }
        if status.started == Some(true) && asks(container.and_then(|container| container.startup.as_ref())) {
            return Some(field("started", "true"));
        }
        let since = status.running_since().flatten()?;
        let loading = self.phase().is_some_and(|phase| phase < Phase::Serving);
        (!loading && time::seconds_between(since, self.observed.now) > LONGEST_LOAD_S)
            .then(|| field("state.running.startedAt", &since.to_string()).seen_at(Some(since)))
    }

    /// SGLang answers /metrics before its warm-up request is done; more than one finished request shows that it was over.
    fn proves_up(&self, page: &MetricPage) -> bool {
        match self.engine() {
            Some(EngineKind::Sglang) => load::finished(&page.page, &super::names::SGLANG).values().sum::<f64>() > 1.0,
            _ => true,
        }
    }
}

/// The newest exchange that tells the health of the port. Routes that the engine does not have tell nothing.
fn voice<'a>(answers: &Answers<'a>) -> Voice<'a> {
    let tells = |answer: &&HttpAnswer| match http::got(answer) {
        Got::NotItself => false,
        Got::Status(status) => status == 200 || status >= 500,
        Got::Refused | Got::Silent => true,
    };
    let of = |answer: &'a HttpAnswer| match http::got(answer) {
        Got::Status(200) => Voice::Healthy(answer),
        Got::Status(status) => Voice::Unwell(answer, status),
        Got::Refused => Voice::Closed(answer),
        Got::Silent | Got::NotItself => Voice::Silent(answer),
    };
    let newest = |routes: &[&str]| answers.newest_first(routes).find(tells);
    let work = newest(WORK).filter(|answer| http::got(answer) == Got::Status(200));
    let health = match (newest(READY), newest(HEALTH)) {
        // /ready is the better word where both were asked at about the same time, unless only /health says that it is not well.
        (Some(ready), Some(health)) if ready.at >= health.at && http::got(health) == Got::Status(200) => Some(ready),
        (Some(ready), Some(health)) if ready.at > health.at => Some(ready),
        (ready, health) => health.or(ready),
    };
    let told = match (health, work) {
        (Some(health), Some(work)) if work.at > health.at => Some(work),
        (health, work) => health.or(work),
    };
    // A port that is closed is closed for every route; what was asked last counts.
    let last = answers.iter().rev().find(|answer| http::got(answer) != Got::NotItself);
    match (told, last) {
        (Some(told), Some(last)) if last.at > told.at && http::got(last) == Got::Refused => Voice::Closed(last),
        (Some(told), _) => of(told),
        (None, Some(last)) => match http::got(last) {
            Got::Status(_) => Voice::Open(last),
            // Some routes may take long; without any health answer silence says little, but it is all there is.
            _ => answers
                .iter()
                .rev()
                .find(|answer| matches!(http::got(answer), Got::Status(_)))
                .filter(|open| open.at >= last.at)
                .map_or_else(|| of(last), Voice::Open),
        },
        (None, None) => Voice::NotAsked,
    }
}
