//! What an engine's HTTP answers say, route by route.
//!
//! Owns routes and bodies of vLLM, SGLang and the servers that follow them. Must not decide a state: one answer alone never does
//! (`/health` is 200 while vLLM sleeps, `/v1/models` is 200 before SGLang is warm).

use jiff::Timestamp;
use serde_json::Value;

use crate::model::engine::{EngineKind, HttpAnswer, HttpOutcome};
use crate::model::{Evidence, Fact};

/// What came of asking an engine something, with the API server's proxy looked through: a proxy says "503" where the engine's
/// port is closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Got {
    /// A status of the engine itself.
    Status(u16),
    /// The port is closed.
    Refused,
    /// Nothing came in time, or the connection broke.
    Silent,
    /// Something between us and the engine refused or failed; it says nothing of the engine.
    NotItself,
}

/// Answers of one engine of its present run, oldest first.
pub(super) struct Answers<'a> {
    all: Vec<&'a HttpAnswer>,
}

impl<'a> Answers<'a> {
    /// Sorts the answers by time. Those from before `since`, when the container started, are of an earlier run and left out; so are
    /// those of a port that never answered while another did: somebody asked the wrong one.
    pub(super) fn of(answers: &'a [HttpAnswer], since: Option<Timestamp>) -> Self {
        let mut all: Vec<&HttpAnswer> = answers.iter().filter(|answer| since.is_none_or(|since| answer.at >= since)).collect();
        all.sort_by_key(|answer| answer.at);
        let open: Vec<u16> = all.iter().filter(|answer| matches!(got(answer), Got::Status(_))).filter_map(|answer| answer.port).collect();
        if !open.is_empty() {
            all.retain(|answer| answer.port.is_none_or(|port| open.contains(&port)));
        }
        Self { all }
    }

    /// All, oldest first.
    pub(super) fn iter(&self) -> impl DoubleEndedIterator<Item = &'a HttpAnswer> + '_ {
        self.all.iter().copied()
    }

    /// Answers to one of these routes, newest first.
    pub(super) fn newest_first<'b>(&'b self, routes: &'b [&str]) -> impl Iterator<Item = &'a HttpAnswer> + 'b {
        self.iter().rev().filter(|answer| routes.contains(&route(answer)))
    }

    /// The newest answer to one of these routes.
    pub(super) fn newest(&self, routes: &[&str]) -> Option<&'a HttpAnswer> {
        self.newest_first(routes).next()
    }

    /// The newest answer 200 to one of these routes whose body says something, read by `read`.
    pub(super) fn says<T>(&self, routes: &[&str], read: impl Fn(&HttpAnswer, &Value) -> Option<T>) -> Option<(T, &'a HttpAnswer)> {
        self.newest_first(routes).filter(|answer| answer.status() == Some(200)).find_map(|answer| {
            let body: Value = serde_json::from_str(answer.body()).ok()?;
            Some((read(answer, &body)?, answer))
        })
    }
}

/// The route without query and without a slash at its end.
pub(super) fn route(answer: &HttpAnswer) -> &str {
    let route = answer.route();
    if route.len() > 1 { route.trim_end_matches('/') } else { route }
}

/// What came back.
pub(super) fn got(answer: &HttpAnswer) -> Got {
    use crate::model::engine::HttpFailure::*;
    match &answer.outcome {
        HttpOutcome::Failed(Refused) => Got::Refused,
        HttpOutcome::Failed(Timeout) => Got::Silent,
        HttpOutcome::Failed(Other(words)) if words.to_ascii_lowercase().contains("refused") => Got::Refused,
        HttpOutcome::Failed(Other(words)) => {
            let words = words.to_ascii_lowercase();
            // Our own side: names, certificates, permissions.
            let ours = ["dns", "resolve", "certificate", "tls", "forbidden", "permission", "unauthorized", "not asked"];
            if ours.iter().any(|word| words.contains(word)) { Got::NotItself } else { Got::Silent }
        }
        HttpOutcome::Answered { status, body, .. } => {
            if body.contains("error trying to reach service") {
                return if body.contains("refused") { Got::Refused } else { Got::Silent };
            }
            let of_api_server = body.contains("\"kind\":\"Status\"") && body.contains("\"apiVersion\"");
            if of_api_server && *status >= 400 { Got::NotItself } else { Got::Status(*status) }
        }
    }
}

/// Routes that answer for the engine's health, of all servers that are known.
pub(super) const HEALTH: &[&str] = &["/health", "/health_generate", "/ping", "/healthz", "/v2/health/ready", "/readyz"];
/// SGLang's instant readiness, and that of vLLM's data-parallel supervisor.
pub(super) const READY: &[&str] = &["/ready"];
/// Routes that make the engine work: an answer 200 proves that it serves.
pub(super) const WORK: &[&str] = &["/v1/completions", "/v1/chat/completions", "/v1/embeddings", "/v1/responses", "/generate"];

/// `{"is_sleeping": true}`, of vLLM's `/is_sleeping`, and of llama.cpp's `/props`.
pub(super) fn is_sleeping(_: &HttpAnswer, body: &Value) -> Option<bool> {
    body.get("is_sleeping")?.as_bool()
}

/// `{"is_paused": true}`.
pub(super) fn is_paused(_: &HttpAnswer, body: &Value) -> Option<bool> {
    body.get("is_paused")?.as_bool()
}

/// The level that an answered POST /sleep gave: its body says it from 0.33 on, its query before; the default is 1.
pub(super) fn sleep_level(answer: &HttpAnswer) -> u8 {
    let body: Option<Value> = serde_json::from_str(answer.body()).ok();
    let told = body.as_ref().and_then(|body| body.get("level")?.as_u64());
    let asked = answer
        .path
        .split_once('?')
        .and_then(|(_, query)| query.split('&').find_map(|pair| pair.strip_prefix("level=")?.split(',').next()?.parse::<u64>().ok()));
    u8::try_from(told.or(asked).unwrap_or(1)).unwrap_or(1)
}

/// Ids of the list of models.
fn model_ids(_: &HttpAnswer, body: &Value) -> Option<Vec<String>> {
    let list = body.get("data")?.as_array()?;
    Some(list.iter().filter_map(|model| model.get("id")?.as_str()).take(256).map(crate::model::text::clean_name).collect())
}

/// Names that `/v1/models` lists, with the answer.
pub(super) fn models<'a>(answers: &Answers<'a>) -> Option<(Vec<String>, &'a HttpAnswer)> {
    answers.says(&["/v1/models"], model_ids)
}

/// The version that the engine gives of itself.
pub(super) fn version(answers: &Answers<'_>) -> Option<Fact<String>> {
    let routes = ["/version", "/server_info", "/get_server_info", "/api/version", "/info"];
    let (version, answer) = answers.says(&routes, |_, body| {
        // A version is one word; what stands behind it is something else.
        let word = body.get("version")?.as_str()?.split_whitespace().next()?;
        word.starts_with(|c: char| c.is_ascii_digit() || c == 'v').then(|| crate::model::text::tidy_name(word))
    })?;
    Some(Fact::new(version.trim_start_matches('v').to_owned(), answer.request(), answer.at))
}

/// Which server answers, by what only it would answer.
pub(super) fn kind(answers: &Answers<'_>) -> Option<(EngineKind, Evidence)> {
    let owner = |_: &HttpAnswer, body: &Value| {
        let list = body.get("data")?.as_array()?;
        list.iter().find_map(|model| match model.get("owned_by")?.as_str()? {
            "vllm" => Some(EngineKind::Vllm),
            "sglang" => Some(EngineKind::Sglang),
            "llamacpp" => Some(EngineKind::OpenAi),
            _ => None,
        })
    };
    if let Some((kind, answer)) = answers.says(&["/v1/models"], owner) {
        return Some((kind, answer.evidence()));
    }
    let by_body = |routes: &[&str], kind: EngineKind, member: &'static str| {
        answers.says(routes, move |_, body| body.get(member).map(|_| kind)).map(|(kind, answer)| (kind, answer.evidence()))
    };
    by_body(&["/get_server_info", "/server_info"], EngineKind::Sglang, "internal_states")
        .or_else(|| by_body(&["/model_info", "/get_model_info"], EngineKind::Sglang, "is_generation"))
        .or_else(|| by_body(&["/is_sleeping"], EngineKind::Vllm, "is_sleeping"))
        .or_else(|| by_body(&["/load"], EngineKind::Vllm, "server_load"))
        .or_else(|| by_body(&["/version"], EngineKind::Vllm, "version"))
        .or_else(|| by_body(&["/props"], EngineKind::OpenAi, "total_slots"))
        .or_else(|| {
            let (ids, answer) = models(answers)?;
            (!ids.is_empty()).then(|| (EngineKind::OpenAi, answer.evidence()))
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Subject;
    use crate::model::engine::HttpFailure;
    use rstest::rstest;

    fn answer(path: &str, at: i64, outcome: HttpOutcome) -> HttpAnswer {
        HttpAnswer {
            target: Subject::pod("serving", "a"),
            port: Some(8000),
            method: "GET".into(),
            path: path.into(),
            at: Timestamp::from_second(at).unwrap(),
            latency_ms: None,
            outcome,
        }
    }

    fn said(path: &str, at: i64, status: u16, body: &str) -> HttpAnswer {
        answer(path, at, HttpOutcome::Answered { status, content_type: String::new(), body: body.into() })
    }

    #[rstest]
    #[case(HttpOutcome::Failed(HttpFailure::Refused), Got::Refused)]
    #[case(HttpOutcome::Failed(HttpFailure::Timeout), Got::Silent)]
    #[case(HttpOutcome::Failed(HttpFailure::Other("connection reset by peer".into())), Got::Silent)]
    #[case(HttpOutcome::Failed(HttpFailure::Other("dial tcp: connect: connection refused".into())), Got::Refused)]
    #[case(HttpOutcome::Failed(HttpFailure::Other("tls: bad certificate".into())), Got::NotItself)]
    #[case(HttpOutcome::Answered { status: 503, content_type: String::new(), body: String::new() }, Got::Status(503))]
    #[case(HttpOutcome::Answered { status: 503, content_type: String::new(), body: r#"{"kind":"Status","apiVersion":"v1","message":"error trying to reach service: dial tcp 10.0.0.1:8000: connect: connection refused"}"#.into() }, Got::Refused)]
    #[case(HttpOutcome::Answered { status: 503, content_type: String::new(), body: "error trying to reach service: dial tcp 10.0.0.1:8000: i/o timeout".into() }, Got::Silent)]
    #[case(HttpOutcome::Answered { status: 403, content_type: String::new(), body: r#"{"kind":"Status","apiVersion":"v1","reason":"Forbidden"}"#.into() }, Got::NotItself)]
    fn a_proxy_is_looked_through(#[case] outcome: HttpOutcome, #[case] wanted: Got) {
        assert_eq!(got(&answer("/health", 1, outcome)), wanted);
    }

    #[rstest]
    #[case("/v1/models", r#"{"data":[{"id":"m","owned_by":"sglang"}]}"#, Some(EngineKind::Sglang))]
    #[case("/v1/models", r#"{"data":[{"id":"m","owned_by":"vllm"}]}"#, Some(EngineKind::Vllm))]
    #[case("/v1/models", r#"{"data":[{"id":"m","owned_by":"me"}]}"#, Some(EngineKind::OpenAi))]
    #[case("/version", r#"{"version":"0.19.0"}"#, Some(EngineKind::Vllm))]
    #[case("/get_server_info", r#"{"internal_states":[],"version":"0.5.12"}"#, Some(EngineKind::Sglang))]
    #[case("/v1/models", r#"{"data":"#, None)]
    #[case("/health", "", None)]
    fn kinds(#[case] path: &str, #[case] body: &str, #[case] wanted: Option<EngineKind>) {
        let all = [said(path, 1, 200, body)];
        assert_eq!(kind(&Answers::of(&all, None)).map(|(kind, _)| kind), wanted);
    }

    #[rstest]
    #[case("/sleep?level=2", "", 2)]
    #[case("/sleep", "", 1)]
    #[case("/sleep?mode=wait&level=0", "", 0)]
    #[case("/sleep?level=2", r#"{"status":"sleeping","level":1}"#, 1)]
    #[case("/sleep?level=9999", "", 1)]
    fn levels(#[case] path: &str, #[case] body: &str, #[case] wanted: u8) {
        assert_eq!(sleep_level(&said(path, 1, 200, body)), wanted);
    }

    #[test]
    fn the_newest_answer_counts_and_an_earlier_run_does_not() {
        let all = [
            said("/version", 9, 200, r#"{"version":"v2.0"}"#),
            said("/version", 5, 200, r#"{"version":"1.0"}"#),
            said("/version/", 12, 404, ""),
        ];
        assert_eq!(version(&Answers::of(&all, None)).unwrap().value, "2.0");
        assert_eq!(version(&Answers::of(&all, Some(Timestamp::from_second(10).unwrap()))), None);
    }
}
