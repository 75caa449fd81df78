//! When two values are the same, and what an instant is.

use jiff::Timestamp;
use serde_json::Value;

use super::strict_json::Json;

/// An RFC 3339 instant in microseconds since 1970, or none.
pub(crate) fn instant(text: &str) -> Option<i64> {
    let shape = b"0000-00-00T00:00";
    let prefix = text.as_bytes().get(..shape.len())?;
    let fits = prefix.iter().zip(shape).all(|(is, form)| if *form == b'0' { is.is_ascii_digit() } else { is == form });
    // jiff takes more than RFC 3339: a zone name in brackets, a small z, the second 60
    let extra = text.contains(['[', 'z', ' ']) || text.get(shape.len()..)?.starts_with(":60");
    if !fits || extra {
        return None;
    }
    text.parse::<Timestamp>().ok().map(Timestamp::as_microsecond)
}

/// Whether two values are the same: numbers by value, instants by the moment they name, all else exactly.
pub(crate) fn same(found: &Json, wanted: &Value) -> bool {
    if let (Some(found), Some(wanted)) = (number(found), wanted.as_f64()) {
        return (found - wanted).abs() <= 1e-9 * wanted.abs().max(1.0);
    }
    match (found.text().and_then(instant), wanted.as_str().and_then(instant)) {
        (Some(found), Some(wanted)) => found == wanted,
        _ => found.to_value() == *wanted,
    }
}

/// The number that a value is, or none.
pub(crate) fn number(value: &Json) -> Option<f64> {
    if let Json::Number(number) = value { number.as_f64() } else { None }
}
