//! Reading fields of untrusted JSON: every wrong type becomes a problem with its path, never a panic and never a lost neighbour.
//!
//! Owns the cursor only; which fields an object has stands in the files beside this one.

use std::cell::RefCell;

use serde_json::Value;

use crate::model::{Known, Unknown, text, time};

/// Most problems kept of one object; more say nothing new.
const MAX_PROBLEMS: usize = 16;
/// Most elements read of one list or map; real ones are far smaller.
const MAX_ITEMS: usize = 10_000;

/// What stands at a path.
#[derive(Debug, Clone, PartialEq)]
pub enum Read<T> {
    /// Nothing, or null.
    Absent(String),
    /// A value of the right type.
    Is(T),
    /// A value of another type.
    Wrong(Unknown),
}

impl<T> Read<T> {
    /// The value; absence and a wrong type are unknown with their reason.
    pub fn known(self) -> Known<T> {
        match self {
            Self::Is(value) => Ok(value),
            Self::Absent(path) => Err(Unknown::because(format!("{path} is not set"))),
            Self::Wrong(why) => Err(why),
        }
    }

    /// The value, or what the API defaults to when it is absent; a wrong type stays unknown.
    pub fn or(self, default: T) -> Known<T> {
        match self {
            Self::Is(value) => Ok(value),
            Self::Absent(_) => Ok(default),
            Self::Wrong(why) => Err(why),
        }
    }

    /// The value where it is there; absence is `Ok(None)`.
    pub fn opt(self) -> Known<Option<T>> {
        match self {
            Self::Is(value) => Ok(Some(value)),
            Self::Absent(_) => Ok(None),
            Self::Wrong(why) => Err(why),
        }
    }

    /// The value, for fields where absence and nonsense mean the same (the nonsense is still among the problems).
    pub fn some(self) -> Option<T> {
        match self {
            Self::Is(value) => Some(value),
            _ => None,
        }
    }

    fn map<U>(self, change: impl FnOnce(T) -> U) -> Read<U> {
        match self {
            Self::Is(value) => Read::Is(change(value)),
            Self::Absent(path) => Read::Absent(path),
            Self::Wrong(why) => Read::Wrong(why),
        }
    }
}

/// A place in a JSON document, with the path that leads there.
#[derive(Clone)]
pub struct Field<'a> {
    value: Option<&'a Value>,
    path: String,
    problems: &'a RefCell<Vec<String>>,
}

impl<'a> Field<'a> {
    /// The root of a document. Problems met on the way are collected in `problems`.
    pub fn root(value: &'a Value, problems: &'a RefCell<Vec<String>>) -> Self {
        Self { value: Some(value), path: String::new(), problems }
    }

    /// The member of that name; absent below anything that is no object.
    pub fn get(&self, key: &str) -> Field<'a> {
        let path = if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) };
        let value = match self.value {
            Some(Value::Object(map)) => map.get(key),
            Some(Value::Null) | None => None,
            Some(other) => {
                self.wrong(other, "an object");
                None
            }
        };
        Field { value, path, problems: self.problems }
    }

    /// The member at a path of plain names: `at(&["spec", "template"])`.
    pub fn at(&self, path: &[&str]) -> Field<'a> {
        path.iter().fold(self.clone(), |field, key| field.get(key))
    }

    /// The path, for messages.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The raw JSON, if there is any.
    pub fn raw(&self) -> Option<&'a Value> {
        self.value.filter(|value| !value.is_null())
    }

    /// Whether something other than null stands here.
    pub fn is_set(&self) -> bool {
        self.raw().is_some()
    }

    fn wrong(&self, found: &Value, wanted: &str) -> Unknown {
        let kind = match found {
            Value::Null => "null",
            Value::Bool(_) => "a boolean",
            Value::Number(_) => "a number",
            Value::String(_) => "text",
            Value::Array(_) => "a list",
            Value::Object(_) => "an object",
        };
        let path = if self.path.is_empty() { "the document" } else { &self.path };
        let why = format!("{path} is {kind}, not {wanted}");
        let mut problems = self.problems.borrow_mut();
        if problems.len() < MAX_PROBLEMS && !problems.contains(&why) {
            problems.push(why.clone());
        }
        Unknown::because(why)
    }

    fn take<T>(&self, wanted: &str, take: impl FnOnce(&'a Value) -> Option<T>) -> Read<T> {
        match self.raw() {
            None => Read::Absent(self.path.clone()),
            Some(value) => match take(value) {
                Some(taken) => Read::Is(taken),
                None => Read::Wrong(self.wrong(value, wanted)),
            },
        }
    }

    /// A whole number.
    pub fn int(&self) -> Read<i64> {
        self.take("a whole number", |value| {
            value.as_i64().or_else(|| value.as_f64().filter(|f| f.fract() == 0.0 && f.abs() < 9e15).map(|f| f as i64))
        })
    }

    /// A count: a whole number from 0 to 4 billion.
    pub fn count(&self) -> Read<u32> {
        self.take("a count", |value| value.as_i64().and_then(|n| u32::try_from(n).ok()))
    }

    /// A boolean.
    pub fn flag(&self) -> Read<bool> {
        self.take("a boolean", Value::as_bool)
    }

    /// A short text such as a name or a reason: at most 253 characters, made harmless, secrets redacted.
    pub fn name(&self) -> Read<String> {
        self.take("text", Value::as_str).map(text::tidy_name)
    }

    /// The value of a label, made harmless but whole: two secrets that both read `[redacted]` would match. Whoever shows one takes the
    /// secrets out (`Evidence` and `Selector` do).
    fn label(&self) -> Read<String> {
        self.take("text", Value::as_str).map(text::clean_name)
    }

    /// Values of labels, as a selector lists them; see [`Field::labels`].
    pub fn label_values(&self) -> Vec<String> {
        self.items().iter().filter_map(|item| item.label().some()).collect()
    }

    /// A text for people: made harmless, secrets redacted, bounded.
    pub fn text(&self) -> Read<String> {
        self.take("text", Value::as_str).map(text::tidy)
    }

    /// A name or empty.
    pub fn name_or_empty(&self) -> String {
        self.name().some().unwrap_or_default()
    }

    /// A text or empty.
    pub fn text_or_empty(&self) -> String {
        self.text().some().unwrap_or_default()
    }

    /// An RFC 3339 instant.
    pub fn instant(&self) -> Read<jiff::Timestamp> {
        self.take("an RFC 3339 time", |value| value.as_str().and_then(time::instant))
    }

    /// Text or a number, as text: a port name or number, a percentage or a count, a resource quantity.
    pub fn int_or_text(&self) -> Read<String> {
        self.take("text or a number", |value| match value {
            Value::String(text) => Some(text::tidy_name(text)),
            Value::Number(number) => Some(number.to_string()),
            _ => None,
        })
    }

    /// The elements of a list, bounded; nothing where there is none.
    pub fn items(&self) -> Vec<Field<'a>> {
        match self.take("a list", Value::as_array) {
            Read::Is(list) => list
                .iter()
                .take(MAX_ITEMS)
                .enumerate()
                .map(|(i, value)| Field { value: Some(value), path: format!("{}[{i}]", self.path), problems: self.problems })
                .collect(),
            _ => Vec::new(),
        }
    }

    /// A list of names; elements of another type are left out and reported.
    pub fn names(&self) -> Vec<String> {
        self.items().iter().filter_map(|item| item.name().some()).collect()
    }

    /// The members of an object with their names, bounded.
    pub fn members(&self) -> Vec<(String, Field<'a>)> {
        match self.take("an object", Value::as_object) {
            Read::Is(map) => map
                .iter()
                .take(MAX_ITEMS)
                .map(|(key, value)| {
                    let path = format!("{}.{}", self.path, text::clean_name(key));
                    (text::clean_name(key), Field { value: Some(value), path, problems: self.problems })
                })
                .collect(),
            _ => Vec::new(),
        }
    }

    /// A map of names to short texts (labels, selectors). Secrets are not taken out here, because selectors must match.
    pub fn labels(&self) -> std::collections::BTreeMap<String, String> {
        self.members().into_iter().filter_map(|(key, field)| Some((key, field.label().some()?))).collect()
    }

    /// A map of names to texts (annotations): values of secret-looking names are left out.
    pub fn annotations(&self) -> std::collections::BTreeMap<String, String> {
        self.members()
            .into_iter()
            .filter(|(key, _)| key != "kubectl.kubernetes.io/last-applied-configuration")
            .filter_map(|(key, field)| {
                let value = if text::is_secret_name(&key) { "[redacted]".to_owned() } else { field.text().some()? };
                Some((key, value))
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_wrong_type_is_named_with_its_path_and_costs_no_neighbour() {
        let problems = RefCell::new(Vec::new());
        let doc = json!({"spec": {"replicas": "two", "paused": true, "list": [{"n": 1}, 3]}, "status": 7});
        let root = Field::root(&doc, &problems);
        assert_eq!(root.at(&["spec", "replicas"]).int().known().unwrap_err().why(), "spec.replicas is text, not a whole number");
        assert_eq!(root.at(&["spec", "paused"]).flag().known(), Ok(true));
        assert_eq!(root.at(&["spec", "gone"]).count().or(1), Ok(1));
        assert_eq!(root.at(&["spec", "gone"]).count().known().unwrap_err().why(), "spec.gone is not set");
        assert_eq!(root.at(&["status", "replicas"]).count().opt(), Ok(None));
        let list = root.at(&["spec", "list"]).items();
        assert_eq!(list.iter().filter_map(|item| item.get("n").count().some()).collect::<Vec<_>>(), [1]);
        let problems = problems.into_inner();
        assert!(problems.contains(&"status is a number, not an object".to_owned()), "{problems:?}");
        assert!(problems.contains(&"spec.list[1] is a number, not an object".to_owned()), "{problems:?}");
    }

    #[test]
    fn annotations_lose_secrets() {
        let problems = RefCell::new(Vec::new());
        let doc = json!({"a": {"x/api-key": "abc", "kubectl.kubernetes.io/last-applied-configuration": "{}", "n": "v"}});
        let read = Field::root(&doc, &problems).get("a").annotations();
        assert_eq!(read.get("x/api-key").map(String::as_str), Some("[redacted]"));
        assert_eq!(read.len(), 2);
    }
}
