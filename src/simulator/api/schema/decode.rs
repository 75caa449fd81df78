//! What Go's typed decoder and encoder do to an object: unknown fields go (and are told), values of the wrong type are refused,
//! zeros are left out or written as the struct tags say.

use std::collections::BTreeSet;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use super::{Habit, Node, Scalar, Shape};

/// What the decoder found.
#[derive(Debug, Default)]
pub struct Findings {
    /// Paths of fields that the kind does not have: `spec.replica`.
    pub unknown: Vec<String>,
    /// The first value of a wrong type: its path and what is wrong.
    pub wrong: Option<String>,
}

/// Brings an object into the form in which the API server keeps and writes it.
pub fn normalise(object: &mut Value, node: Node<'_>) -> Findings {
    let mut findings = Findings::default();
    if let Value::Object(members) = object {
        walk_map(members, node, "", &mut findings);
    }
    findings
}

fn walk_map(members: &mut Map<String, Value>, node: Node<'_>, path: &str, findings: &mut Findings) {
    let at = |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
    let names: Vec<String> = members.keys().cloned().collect();
    for name in names {
        if !node.allows(&name) {
            members.remove(&name);
            findings.unknown.push(at(&name));
        } else if let (Some(child), Some(value)) = (node.field(&name), members.get_mut(&name)) {
            if value.is_null() {
                members.remove(&name);
            } else {
                walk(value, child, &at(&name), findings);
            }
        }
    }
    for (name, child, habit) in node.fields() {
        match (habit, members.get(name)) {
            (Habit::Drop, Some(value)) if zero(value) => {
                members.remove(name);
            }
            (Habit::Empty, None) => {
                let mut fresh = Map::new();
                walk_map(&mut fresh, child, "", &mut Findings::default());
                members.insert(name.to_owned(), Value::Object(fresh));
            }
            (Habit::Null, None) => {
                members.insert(name.to_owned(), Value::Null);
            }
            (Habit::Zero, None) => {
                let fresh = match (child.shape(), child.scalar()) {
                    (Shape::Scalar, Some(Scalar::Text)) => Value::from(""),
                    (Shape::Scalar, Some(Scalar::Integer | Scalar::Number | Scalar::IntOrText)) => Value::from(0),
                    (Shape::Scalar, Some(Scalar::Boolean)) => Value::from(false),
                    (Shape::Scalar, Some(Scalar::Quantity)) => Value::from("0"),
                    _ => Value::Null,
                };
                members.insert(name.to_owned(), fresh);
            }
            _ => {}
        }
    }
}

fn zero(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(set) => !set,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
    }
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn walk(value: &mut Value, node: Node<'_>, path: &str, findings: &mut Findings) {
    let mut wrong = |value: &Value, wanted: &str| {
        if findings.wrong.is_none() {
            findings.wrong = Some(format!("json: cannot unmarshal {} into Go struct field {path} of type {wanted}", kind_of(value)));
        }
    };
    match node.shape() {
        Shape::Unknown => {}
        Shape::Map | Shape::AtomicMap => match value {
            Value::Object(members) => walk_map(members, node, path, findings),
            other => wrong(other, "map"),
        },
        Shape::List | Shape::Set | Shape::Keyed => match value {
            Value::Array(items) => {
                if let Some(child) = node.items() {
                    for (index, item) in items.iter_mut().enumerate() {
                        walk(item, child, &format!("{path}[{index}]"), findings);
                    }
                }
            }
            other => wrong(other, "slice"),
        },
        Shape::Scalar => scalar(value, node.scalar(), &mut wrong),
    }
}

fn scalar(value: &mut Value, scalar: Option<Scalar>, wrong: &mut dyn FnMut(&Value, &str)) {
    match (scalar, &*value) {
        (None, _)
        | (Some(Scalar::Text | Scalar::Bytes | Scalar::IntOrText | Scalar::Time), Value::String(_))
        | (Some(Scalar::Number), Value::Number(_))
        | (Some(Scalar::Boolean), Value::Bool(_)) => {}
        (Some(Scalar::Integer | Scalar::IntOrText), Value::Number(number)) => match number.as_i64() {
            Some(_) => {}
            // Go reads 2.0 into an integer field only when it is written without a fraction.
            None => wrong(value, "int32"),
        },
        (Some(Scalar::Quantity), Value::Number(number)) => *value = Value::from(canonical_quantity(&number.to_string())),
        (Some(Scalar::Quantity), Value::String(text)) => *value = Value::from(canonical_quantity(text)),
        (Some(Scalar::Text | Scalar::Bytes), _) => wrong(value, "string"),
        (Some(Scalar::Time), _) => wrong(value, "string"),
        (Some(Scalar::Boolean), _) => wrong(value, "bool"),
        (Some(Scalar::Integer | Scalar::IntOrText), _) => wrong(value, "int32"),
        (Some(Scalar::Number), _) => wrong(value, "float64"),
        (Some(Scalar::Quantity), _) => wrong(value, "resource.Quantity"),
    }
}

/// A quantity as `resource.Quantity` writes it back: no fraction, the largest suffix that loses nothing. What is none stays.
fn canonical_quantity(text: &str) -> String {
    const BINARY: [&str; 7] = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
    const DECIMAL: [(&str, i32); 9] = [("n", -9), ("u", -6), ("m", -3), ("", 0), ("k", 3), ("M", 6), ("G", 9), ("T", 12), ("P", 15)];
    let (negative, digits) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let end = digits.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(digits.len());
    let (number, suffix) = digits.split_at(end);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if number.is_empty() || whole.len() + fraction.len() > 24 {
        return text.to_owned();
    }
    let Ok(mut mantissa) = format!("{whole}{fraction}").parse::<i128>() else { return text.to_owned() };
    let sign = if negative && mantissa != 0 { "-" } else { "" };
    let scale = -i32::try_from(fraction.len()).unwrap_or(0);
    if let Some(mut power) = BINARY.iter().position(|s| *s == suffix && !s.is_empty()) {
        // Binary: value = mantissa × 10^scale × 1024^power; fractions move down the suffixes.
        let mut tens = 10i128.pow(scale.unsigned_abs());
        while mantissa % tens != 0 && power > 0 {
            mantissa *= 1024;
            power -= 1;
        }
        if mantissa % tens != 0 {
            mantissa = mantissa / tens * tens + tens;
        }
        mantissa /= tens;
        tens = 1024;
        while mantissa != 0 && mantissa % tens == 0 && power + 1 < BINARY.len() {
            mantissa /= tens;
            power += 1;
        }
        return format!("{sign}{mantissa}{}", BINARY.get(power).copied().unwrap_or_default());
    }
    let exponent = match suffix.strip_prefix(['e', 'E']).and_then(|e| e.parse::<i32>().ok()) {
        // Exponents are kept as they are written.
        Some(_) => return text.to_owned(),
        None => match DECIMAL.iter().find(|(s, _)| *s == suffix).map(|(_, e)| *e).or((suffix == "E").then_some(18)) {
            Some(exponent) => exponent,
            None => return text.to_owned(),
        },
    };
    if mantissa == 0 {
        return "0".to_owned();
    }
    let mut exponent = exponent + scale;
    while mantissa % 10 == 0 {
        mantissa /= 10;
        exponent += 1;
    }
    while exponent.rem_euclid(3) != 0 {
        mantissa *= 10;
        exponent -= 1;
    }
    let suffix = if exponent == 18 { Some("E") } else { DECIMAL.iter().find(|(_, e)| *e == exponent).map(|(s, _)| *s) };
    match suffix {
        Some(suffix) => format!("{sign}{mantissa}{suffix}"),
        None => text.to_owned(),
    }
}

/// Paths of fields that stand twice in the text of a JSON object: `spec.replicas`.
pub fn duplicate_fields(body: &[u8]) -> Vec<String> {
    let mut found = Vec::new();
    let mut deserializer = serde_json::Deserializer::from_slice(body);
    // A text that cannot be read is told of by the decoder proper.
    let _ = Duplicates { path: String::new(), found: &mut found }.deserialize(&mut deserializer);
    found
}

struct Duplicates<'a> {
    path: String,
    found: &'a mut Vec<String>,
}

impl<'de> DeserializeSeed<'de> for Duplicates<'_> {
    type Value = ();
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Duplicates<'_> {
    type Value = ();
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }
    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }
    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }
    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }
    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }
    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }
    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        let mut index = 0;
        while items.next_element_seed(Duplicates { path: format!("{}[{index}]", self.path), found: self.found })?.is_some() {
            index += 1;
        }
        Ok(())
    }
    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        let mut seen = BTreeSet::new();
        while let Some(name) = members.next_key::<String>()? {
            let path = if self.path.is_empty() { name.clone() } else { format!("{}.{name}", self.path) };
            if !seen.insert(name) && !self.found.contains(&path) {
                self.found.push(path.clone());
            }
            members.next_value_seed(Duplicates { path, found: self.found })?;
        }
        Ok(())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::super::builtin;
    use super::*;
    use rstest::rstest;
    use serde_json::json;

    #[test]
    fn an_object_comes_back_as_the_server_writes_it() {
        let mut object = json!({"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","labels":{}},"bogus":1,
            "spec":{"hostNetwork":false,"containers":[{"name":"a","imag":"x","resources":{"limits":{"cpu":"1000m"}}}]}});
        let findings = normalise(&mut object, builtin().kind("", "v1", "Pod").unwrap());
        assert_eq!(findings.unknown, ["bogus", "spec.containers[0].imag"]);
        assert!(findings.wrong.is_none());
        assert_eq!(
            object,
            json!({"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},
            "spec":{"containers":[{"name":"a","resources":{"limits":{"cpu":"1"}}}]},"status":{}})
        );
    }

    #[test]
    fn a_wrong_type_is_told_with_its_place() {
        let mut object = json!({"spec":{"replicas":"3"}});
        let findings = normalise(&mut object, builtin().kind("apps", "v1", "Deployment").unwrap());
        assert_eq!(findings.wrong.unwrap(), "json: cannot unmarshal string into Go struct field spec.replicas of type int32");
    }

    #[rstest]
    #[case("1000m", "1")]
    #[case("1.5", "1500m")]
    #[case("1.5Gi", "1536Mi")]
    #[case("1024Mi", "1Gi")]
    #[case("0", "0")]
    #[case("2000", "2k")]
    #[case("100Gi", "100Gi")]
    #[case("nonsense", "nonsense")]
    fn a_quantity_is_written_in_its_canonical_form(#[case] given: &str, #[case] wanted: &str) {
        assert_eq!(canonical_quantity(given), wanted);
    }

    #[test]
    fn fields_that_stand_twice_are_told() {
        assert_eq!(duplicate_fields(br#"{"a":1,"b":[{"c":1,"c":2}],"a":2}"#), ["b[0].c", "a"]);
    }
}
