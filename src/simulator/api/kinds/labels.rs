//! Label selectors: the text form of requests and the object form of specs.
//!
//! Owns their reading and matching. The grammar is that of `k8s.io/apimachinery/pkg/labels` (1.36).

use std::collections::BTreeMap;

use serde_json::Value;

use super::super::status::{ApiError, ApiResult};

/// One requirement on labels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Need {
    /// The label is there.
    Exists(String),
    /// The label is not there.
    Absent(String),
    /// The label has one of the values.
    In(String, Vec<String>),
    /// The label has none of the values, or is not there.
    NotIn(String, Vec<String>),
    /// The label is a whole number above this.
    Above(String, i64),
    /// The label is a whole number below this.
    Below(String, i64),
}

/// All requirements of a selector; none selects everything.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LabelSelector(Vec<Need>);

impl LabelSelector {
    /// Reads the text form.
    ///
    /// # Errors
    /// 400 with what could not be parsed.
    pub fn parse(text: &str) -> ApiResult<Self> {
        let wrong = |why: String| ApiError::bad_request(format!("unable to parse requirement: {why}"));
        let mut needs = Vec::new();
        let mut rest = text.trim();
        while !rest.is_empty() {
            let end = top_comma(rest);
            let (part, tail) = rest.split_at(end);
            needs.push(need(part.trim()).map_err(wrong)?);
            rest = tail.strip_prefix(',').unwrap_or(tail).trim();
            if tail.starts_with(',') && rest.is_empty() {
                return Err(wrong("found '', expected: identifier after ','".to_owned()));
            }
        }
        Ok(Self(needs))
    }

    /// Reads `metav1.LabelSelector`; an absent one selects nothing and is `None`.
    pub fn of_object(selector: &Value) -> Option<Self> {
        let members = selector.as_object()?;
        let mut needs = Vec::new();
        for (key, value) in members.get("matchLabels").and_then(Value::as_object).into_iter().flatten() {
            needs.push(Need::In(key.clone(), vec![value.as_str().unwrap_or_default().to_owned()]));
        }
        for expression in members.get("matchExpressions").and_then(Value::as_array).into_iter().flatten() {
            let key = super::text(expression, &["key"]).to_owned();
            let values = super::items(expression, &["values"]).iter().filter_map(Value::as_str).map(str::to_owned).collect();
            needs.push(match super::text(expression, &["operator"]) {
                "In" => Need::In(key, values),
                "NotIn" => Need::NotIn(key, values),
                "Exists" => Need::Exists(key),
                _ => Need::Absent(key),
            });
        }
        Some(Self(needs))
    }

    /// Reads a plain map of labels, as Services have it.
    pub fn of_map(map: &Value) -> Self {
        let pairs = map.as_object().into_iter().flatten();
        Self(pairs.map(|(key, value)| Need::In(key.clone(), vec![value.as_str().unwrap_or_default().to_owned()])).collect())
    }

    /// Whether it selects everything.
    pub fn is_everything(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether labels fulfil all requirements.
    pub fn matches(&self, labels: Option<&Value>) -> bool {
        let value = |key: &str| labels.and_then(|l| l.get(key)).and_then(Value::as_str);
        let whole = |key: &str| value(key).and_then(|v| v.parse::<i64>().ok());
        self.0.iter().all(|need| match need {
            Need::Exists(key) => value(key).is_some(),
            Need::Absent(key) => value(key).is_none(),
            Need::In(key, values) => value(key).is_some_and(|v| values.iter().any(|wanted| wanted == v)),
            Need::NotIn(key, values) => value(key).is_none_or(|v| values.iter().all(|wanted| wanted != v)),
            Need::Above(key, bound) => whole(key).is_some_and(|v| v > *bound),
            Need::Below(key, bound) => whole(key).is_some_and(|v| v < *bound),
        })
    }

    /// The text form in the order of the keys, as scale subresources show it.
    pub fn shown(&self) -> String {
        let mut by_key: BTreeMap<&str, String> = BTreeMap::new();
        for need in &self.0 {
            let (key, shown) = match need {
                Need::Exists(key) => (key, key.clone()),
                Need::Absent(key) => (key, format!("!{key}")),
                Need::In(key, values) => match values.as_slice() {
                    [one] => (key, format!("{key}={one}")),
                    many => (key, format!("{key} in ({})", many.join(","))),
                },
                Need::NotIn(key, values) => (key, format!("{key} notin ({})", values.join(","))),
                Need::Above(key, bound) => (key, format!("{key}>{bound}")),
                Need::Below(key, bound) => (key, format!("{key}<{bound}")),
            };
            by_key.entry(key).and_modify(|seen| *seen = format!("{seen},{shown}")).or_insert(shown);
        }
        by_key.into_values().collect::<Vec<_>>().join(",")
    }
}

fn top_comma(text: &str) -> usize {
    let mut depth = 0usize;
    for (at, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => return at,
            _ => {}
        }
    }
    text.len()
}

fn need(part: &str) -> Result<Need, String> {
    let key = |key: &str| -> Result<String, String> {
        let key = key.trim();
        match super::validate::names::qualified_name(key) {
            errors if errors.is_empty() => Ok(key.to_owned()),
            errors => Err(format!("<nil>: Invalid value: {key:?}: {}", errors.join("; "))),
        }
    };
    let value = |value: &str| -> Result<String, String> {
        let value = value.trim();
        match super::validate::names::label_value(value) {
            errors if errors.is_empty() => Ok(value.to_owned()),
            errors => Err(format!("values[0][]: Invalid value: {value:?}: {}", errors.join("; "))),
        }
    };
    if let Some(absent) = part.strip_prefix('!') {
        return Ok(Need::Absent(key(absent)?));
    }
    if let Some((head, list)) = part.split_once('(') {
        let list = list.strip_suffix(')').ok_or_else(|| format!("found '{list}', expected: ',' or ')'"))?;
        let values = list.split(',').map(value).collect::<Result<Vec<_>, _>>()?;
        let mut words = head.split_whitespace();
        return match (words.next(), words.next(), words.next()) {
            (Some(name), Some("in"), None) => Ok(Need::In(key(name)?, values)),
            (Some(name), Some("notin"), None) => Ok(Need::NotIn(key(name)?, values)),
            (_, Some(word), _) => Err(format!("found '{word}', expected: in, notin, =, ==, !=, gt, lt")),
            _ => Err("found '(', expected: identifier".to_owned()),
        };
    }
    for (sign, not) in [("!=", true), ("==", false), ("=", false)] {
        if let Some((name, wanted)) = part.split_once(sign) {
            let (name, values) = (key(name)?, vec![value(wanted)?]);
            return Ok(if not { Need::NotIn(name, values) } else { Need::In(name, values) });
        }
    }
    for (sign, above) in [('>', true), ('<', false)] {
        if let Some((name, bound)) = part.split_once(sign) {
            let bound = bound.trim().parse().map_err(|_| "for 'Gt', 'Lt' operators, the value must be an integer".to_owned())?;
            return Ok(if above { Need::Above(key(name)?, bound) } else { Need::Below(key(name)?, bound) });
        }
    }
    match part.split_once(char::is_whitespace) {
        Some((_, word)) => Err(format!("found '{}', expected: in, notin, =, ==, !=, gt, lt", word.trim())),
        None => Ok(Need::Exists(key(part)?)),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use rstest::rstest;
    use serde_json::json;

    #[rstest]
    #[case("a=b", true)]
    #[case("a==b,c", true)]
    #[case("a!=b", false)]
    #[case("a in (x, b),!d", true)]
    #[case("a notin (b)", false)]
    #[case("n>4,n<6", true)]
    #[case("", true)]
    #[case("d", false)]
    fn selectors_select(#[case] text: &str, #[case] selected: bool) {
        let labels = json!({"a": "b", "c": "", "n": "5"});
        assert_eq!(LabelSelector::parse(text).unwrap().matches(Some(&labels)), selected);
    }

    #[rstest]
    #[case("a=b,")]
    #[case("a b c")]
    #[case("a in (b")]
    #[case("-=x")]
    #[case("a=b c")]
    fn what_is_no_selector_is_refused(#[case] text: &str) {
        assert_eq!(LabelSelector::parse(text).unwrap_err().code, 400);
    }

    #[test]
    fn the_object_form_shows_itself_as_text() {
        let selector = json!({"matchLabels":{"b":"1","a":"2"},"matchExpressions":[{"key":"c","operator":"In","values":["x","y"]}]});
        assert_eq!(LabelSelector::of_object(&selector).unwrap().shown(), "a=2,b=1,c in (x,y)");
    }
}
