//! What Prometheus and the metrics APIs answered: an empty result is told apart from a measured 0.
//!
//! Prometheus HTTP API (`/api/v1/query`), external.metrics.k8s.io and custom.metrics.k8s.io. Must not ask, only read answers.

use serde_json::Value;

use super::World;
use crate::model::Known;
use crate::model::engine::HttpAnswer;
use crate::model::object::autoscale::quantity;
use crate::model::unknown::unknown;

/// What a query gave.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Given {
    /// No series at all: nobody exports it, which is no measured 0.
    NoSeries,
    /// A value: of several series their sum, as an autoscaler's query gives one.
    Value(f64),
}

/// One answer to a query.
#[derive(Debug, Clone)]
pub struct Answered<'a> {
    /// The exchange.
    pub answer: &'a HttpAnswer,
    /// What it gave; the reason where it could not be read or failed.
    pub given: Known<Given>,
}

impl World {
    /// The newest answer of a Prometheus to exactly this query, apart from white space.
    pub fn query(&self, query: &str) -> Option<Answered<'_>> {
        let wanted = squeeze(query);
        if wanted.is_empty() {
            return None;
        }
        let all = self.answers.values().flatten().filter(|answer| answer.route().ends_with("/api/v1/query"));
        let answer = all
            .filter(|answer| {
                let asked = answer.path.split_once('?').and_then(|(_, parameters)| parameter(parameters, "query"));
                asked.is_some_and(|asked| squeeze(&asked) == wanted)
            })
            .max_by_key(|answer| answer.at)?;
        Some(Answered { answer, given: prometheus(answer) })
    }

    /// The newest answer of the external or custom metrics API for this metric in a namespace.
    pub fn metrics_api(&self, namespace: &str, metric: &str) -> Option<Answered<'_>> {
        let place = format!("/namespaces/{namespace}/");
        let all = self.answers.values().flatten().filter(|answer| {
            let route = answer.route();
            (route.starts_with("/apis/external.metrics.k8s.io/") || route.starts_with("/apis/custom.metrics.k8s.io/"))
                && route.contains(&place)
                && route.rsplit('/').next().is_some_and(|last| decode(last) == metric)
        });
        let answer = all.max_by_key(|answer| answer.at)?;
        Some(Answered { answer, given: items(answer) })
    }
}

fn ok_body(answer: &HttpAnswer) -> Known<Value> {
    match answer.status() {
        Some(200) => serde_json::from_str(answer.body()).or_else(|_| unknown(format!("{} answered no JSON", answer.request()))),
        _ => unknown(format!("{} answered {}", answer.request(), answer.outcome_word())),
    }
}

fn prometheus(answer: &HttpAnswer) -> Known<Given> {
    let body = ok_body(answer)?;
    let data = body.get("data");
    let kind = data.and_then(|data| data.get("resultType")).and_then(Value::as_str).unwrap_or_default();
    let Some(result) = data.and_then(|data| data.get("result")).and_then(Value::as_array) else {
        return unknown(format!("{} answered without a result", answer.request()));
    };
    let number = |pair: &Value| pair.get(1)?.as_str()?.parse::<f64>().ok();
    match kind {
        "scalar" => result.get(1).and_then(Value::as_str).and_then(|text| text.parse().ok()).map(Given::Value),
        "vector" if result.is_empty() => Some(Given::NoSeries),
        "vector" => result.iter().map(|series| number(series.get("value")?)).sum::<Option<f64>>().map(Given::Value),
        _ => None,
    }
    .ok_or_else(|| crate::model::Unknown::because(format!("{} answered a {kind} that can not be read", answer.request())))
}

fn items(answer: &HttpAnswer) -> Known<Given> {
    let body = ok_body(answer)?;
    let Some(items) = body.get("items").and_then(Value::as_array) else {
        return unknown(format!("{} answered without items", answer.request()));
    };
    let number = |item: &Value| match item.get("value")? {
        Value::String(text) => quantity(text),
        other => other.as_f64(),
    };
    match items.as_slice() {
        [] => Ok(Given::NoSeries),
        some => some
            .iter()
            .map(number)
            .sum::<Option<f64>>()
            .map(Given::Value)
            .ok_or_else(|| crate::model::Unknown::because(format!("{} answered a value that is no quantity", answer.request()))),
    }
}

fn squeeze(query: &str) -> String {
    query.chars().filter(|c| !c.is_whitespace()).collect()
}

/// A parameter of a query string, decoded. A promQL text that was written without encoding is taken as it stands.
fn parameter(parameters: &str, name: &str) -> Option<String> {
    let start = parameters.match_indices(name).find(|(at, _)| {
        let before = parameters.get(..*at).unwrap_or_default();
        (before.is_empty() || before.ends_with('&')) && parameters.get(at + name.len()..).is_some_and(|rest| rest.starts_with('='))
    })?;
    let rest = parameters.get(start.0 + name.len() + 1..)?;
    let end = ["&time=", "&timeout=", "&step=", "&start=", "&end=", "&limit=", "&lookback_delta=", "&stats=", "&dedup="]
        .iter()
        .filter_map(|next| rest.find(next))
        .min()
        .unwrap_or(rest.len());
    Some(decode(rest.get(..end)?))
}

/// Percent-decoding; what is no escape stays as it stands. `+` is a space only where the text is encoded at all: raw PromQL adds with it.
fn decode(text: &str) -> String {
    let bytes = text.as_bytes();
    let hex = |at: usize| bytes.get(at).and_then(|b| char::from(*b).to_digit(16));
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    let mut escaped = false;
    while let Some(byte) = bytes.get(at) {
        match (byte, hex(at + 1), hex(at + 2)) {
            (b'%', Some(high), Some(low)) => {
                out.push(u8::try_from(high * 16 + low).unwrap_or(b'?'));
                escaped = true;
                at += 3;
            }
            _ => {
                out.push(*byte);
                at += 1;
            }
        }
    }
    if escaped && text.contains('+') && !text.contains(' ') {
        // Encoders write a real plus as %2B: every bare one is a space.
        return decode(&text.replace('+', " "));
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Subject;
    use crate::model::engine::HttpOutcome;
    use crate::world::Facts;
    use jiff::Timestamp;
    use rstest::rstest;

    fn world(path: &str, status: u16, body: &str) -> World {
        let answer = HttpAnswer {
            target: Subject::parse("prometheus"),
            port: None,
            method: "GET".into(),
            path: path.into(),
            at: Timestamp::UNIX_EPOCH,
            latency_ms: None,
            outcome: HttpOutcome::Answered { status, content_type: String::new(), body: body.into() },
        };
        World::build(Facts { answers: vec![answer], ..Facts::default() }, "bundle", Timestamp::UNIX_EPOCH)
    }

    const EMPTY: &str = r#"{"status":"success","data":{"resultType":"vector","result":[]}}"#;

    #[rstest]
    #[case("/api/v1/query?query=sum(a{b=\"c\"})", EMPTY, Some(Given::NoSeries))]
    #[case("/api/v1/query?query=sum%28a%7Bb%3D%22c%22%7D%29&time=3", EMPTY, Some(Given::NoSeries))]
    #[case(
        "/prom/api/v1/query?time=1&query=sum(a{b=%22c%22})",
        r#"{"data":{"resultType":"vector","result":[{"metric":{},"value":[1,"0"]}]}}"#,
        Some(Given::Value(0.0))
    )]
    #[case("/api/v1/query?query=sum(a{b=\"c\"})", r#"{"data":{"resultType":"scalar","result":[1,"7"]}}"#, Some(Given::Value(7.0)))]
    #[case("/api/v1/query?query=sum(a{b=\"c\"})", "nonsense", None)]
    fn queries(#[case] path: &str, #[case] body: &str, #[case] wanted: Option<Given>) {
        let world = world(path, 200, body);
        assert_eq!(world.query("sum( a{b=\"c\"} )").unwrap().given.ok(), wanted);
        assert!(world.query("sum(a)").is_none());
    }

    #[rstest]
    #[case(200, r#"{"items":[]}"#, Some(Given::NoSeries))]
    #[case(200, r#"{"items":[{"value":"1500m"}]}"#, Some(Given::Value(1.5)))]
    #[case(503, "", None)]
    fn metrics_apis(#[case] status: u16, #[case] body: &str, #[case] wanted: Option<Given>) {
        let world = world("/apis/external.metrics.k8s.io/v1beta1/namespaces/s/s0-prometheus?labelSelector=x", status, body);
        assert_eq!(world.metrics_api("s", "s0-prometheus").unwrap().given.ok(), wanted);
        assert!(world.metrics_api("t", "s0-prometheus").is_none());
    }

    #[rstest]
    #[case("a%2Bb", "a+b")]
    #[case("a+b", "a+b")]
    #[case("a+%2B+b", "a + b")]
    #[case("100%", "100%")]
    fn escapes(#[case] text: &str, #[case] wanted: &str) {
        assert_eq!(decode(text), wanted);
    }
}
