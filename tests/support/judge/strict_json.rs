//! JSON as it was printed: objects keep the order of their keys, and none has a key twice.
//!
//! serde_json's own value would keep the last of two equal keys and hide the mistake, and it sorts keys;
//! the order matters where words of a check run over two fields (`field` and `value` of an evidence).

use std::collections::BTreeSet;
use std::fmt;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Number, Value};

/// A JSON value.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Json {
    Null,
    Bool(bool),
    Number(Number),
    Text(String),
    List(Vec<Json>),
    Object(Members),
}

/// The members of an object in the order of the text.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Members(Vec<(String, Json)>);

impl Members {
    pub(crate) fn get(&self, key: &str) -> Option<&Json> {
        self.iter().find(|(name, _)| *name == key).map(|(_, value)| value)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &Json)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value))
    }

    pub(crate) fn values(&self) -> impl Iterator<Item = &Json> {
        self.0.iter().map(|(_, value)| value)
    }
}

impl Json {
    /// A member of an object; none for anything else.
    pub(crate) fn get(&self, key: &str) -> Option<&Json> {
        self.members()?.get(key)
    }

    pub(crate) fn members(&self) -> Option<&Members> {
        if let Json::Object(members) = self { Some(members) } else { None }
    }

    pub(crate) fn list(&self) -> Option<&[Json]> {
        if let Json::List(list) = self { Some(list) } else { None }
    }

    pub(crate) fn text(&self) -> Option<&str> {
        if let Json::Text(text) = self { Some(text) } else { None }
    }

    /// The same as serde_json's value, to compare with what a check asks for.
    pub(crate) fn to_value(&self) -> Value {
        match self {
            Json::Null => Value::Null,
            Json::Bool(flag) => Value::Bool(*flag),
            Json::Number(number) => Value::Number(number.clone()),
            Json::Text(text) => Value::from(text.as_str()),
            Json::List(list) => list.iter().map(Json::to_value).collect(),
            Json::Object(members) => members.iter().map(|(name, value)| (name.to_owned(), value.to_value())).collect(),
        }
    }
}

impl fmt::Display for Json {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.to_value().fmt(out)
    }
}

/// Parses one JSON value; fails for repeated keys at any depth and for text around the value.
pub(crate) fn parse(text: &str) -> Result<Json, String> {
    serde_json::from_str::<Strict>(text).map(|strict| strict.0).map_err(|error| error.to_string())
}

struct Strict(Json);

impl<'de> Deserialize<'de> for Strict {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        OneKeyEach.deserialize(deserializer).map(Strict)
    }
}

struct OneKeyEach;

impl<'de> DeserializeSeed<'de> for OneKeyEach {
    type Value = Json;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Json, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for OneKeyEach {
    type Value = Json;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a JSON value")
    }

    fn visit_unit<E: Error>(self) -> Result<Json, E> {
        Ok(Json::Null)
    }

    fn visit_bool<E: Error>(self, flag: bool) -> Result<Json, E> {
        Ok(Json::Bool(flag))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Json, E> {
        Ok(Json::Number(number.into()))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Json, E> {
        Ok(Json::Number(number.into()))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Json, E> {
        Number::from_f64(number).map(Json::Number).ok_or_else(|| E::custom("a number that is not finite"))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Json, E> {
        Ok(Json::Text(text.to_owned()))
    }

    fn visit_string<E: Error>(self, text: String) -> Result<Json, E> {
        Ok(Json::Text(text))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut parts: A) -> Result<Json, A::Error> {
        let mut list = Vec::new();
        while let Some(part) = parts.next_element_seed(OneKeyEach)? {
            list.push(part);
        }
        Ok(Json::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut parts: A) -> Result<Json, A::Error> {
        let mut members: Vec<(String, Json)> = Vec::new();
        let mut keys = BTreeSet::new();
        while let Some(key) = parts.next_key::<String>()? {
            let value = parts.next_value_seed(OneKeyEach)?;
            if !keys.insert(key.clone()) {
                return Err(A::Error::custom(format!("key {key:?} stands twice in one object")));
            }
            members.push((key, value));
        }
        Ok(Json::Object(Members(members)))
    }
}
