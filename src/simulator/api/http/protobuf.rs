//! Kubernetes' protobuf envelope, as kubectl's typed commands send it. Answers are always JSON, which those clients take.
//!
//! Owns one reader over a table of messages that `tests/cluster/schema/protobuf` makes from the `.proto` files (1.36).

use std::collections::BTreeMap;
use std::sync::OnceLock;

use base64::Engine;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::super::status::{ApiError, ApiResult};

/// The deepest nesting that is read.
const DEEPEST: usize = 64;

#[derive(Deserialize)]
struct Table {
    kinds: BTreeMap<String, usize>,
    messages: Vec<BTreeMap<u64, (String, String)>>,
}

fn table() -> &'static Table {
    static TABLE: OnceLock<Table> = OnceLock::new();
    TABLE.get_or_init(|| {
        serde_json::from_str(include_str!("protobuf.json")).unwrap_or(Table { kinds: BTreeMap::new(), messages: Vec::new() })
    })
}

fn message(api_version: &str, kind: &str) -> Option<usize> {
    if kind == "DeleteOptions" {
        return table().kinds.get("/v1/DeleteOptions").copied();
    }
    let name = if api_version.contains('/') { format!("{api_version}/{kind}") } else { format!("/{api_version}/{kind}") };
    table().kinds.get(&name).copied()
}

/// Reads the envelope and the message in it.
///
/// # Errors
/// 400 for what is no envelope or is cut short, 415 for a kind that is not in the table.
pub fn decode(body: &[u8]) -> ApiResult<Value> {
    let prefix = || ApiError::bad_request("provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]");
    let wrong = || ApiError::bad_request("unable to decode the protobuf message: unexpected EOF or wire type");
    let mut parts = Parts(body.strip_prefix(b"k8s\0").ok_or_else(prefix)?);
    let (mut api_version, mut kind, mut raw): (String, String, &[u8]) = (String::new(), String::new(), &[]);
    while let Some((number, wire)) = parts.next().ok_or_else(wrong)? {
        match (number, wire) {
            (1, Wire::Bytes(meta)) => {
                let mut meta = Parts(meta);
                while let Some((number, wire)) = meta.next().ok_or_else(wrong)? {
                    match (number, wire) {
                        (1, Wire::Bytes(b)) => api_version = String::from_utf8_lossy(b).into_owned(),
                        (2, Wire::Bytes(b)) => kind = String::from_utf8_lossy(b).into_owned(),
                        _ => {}
                    }
                }
            }
            (2, Wire::Bytes(bytes)) => raw = bytes,
            _ => {}
        }
    }
    let known = message(&api_version, &kind).ok_or_else(|| {
        ApiError::unsupported_media_type(format!("protobuf is not read for {kind:?} in {api_version:?}; send application/json"))
    })?;
    let mut object = read(raw, known, 0).ok_or_else(wrong)?;
    object.insert("apiVersion".into(), api_version.into());
    object.insert("kind".into(), kind.into());
    Ok(Value::Object(object))
}

enum Wire<'a> {
    Number(u64),
    Bytes(&'a [u8]),
    Double(f64),
    Other,
}

struct Parts<'a>(&'a [u8]);

impl<'a> Parts<'a> {
    fn varint(&mut self) -> Option<u64> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let (first, rest) = self.0.split_first()?;
            self.0 = rest;
            value |= u64::from(first & 0x7f) << shift;
            if first & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }

    fn take(&mut self, length: u64) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(usize::try_from(length).ok()?)?;
        self.0 = rest;
        Some(taken)
    }

    /// The next field: `None` when the bytes are broken, `Some(None)` at their end.
    #[allow(clippy::option_option)]
    fn next(&mut self) -> Option<Option<(u64, Wire<'a>)>> {
        if self.0.is_empty() {
            return Some(None);
        }
        let key = self.varint()?;
        let wire = match key & 7 {
            0 => Wire::Number(self.varint()?),
            1 => Wire::Double(f64::from_le_bytes(self.take(8)?.try_into().ok()?)),
            2 => {
                let length = self.varint()?;
                Wire::Bytes(self.take(length)?)
            }
            5 => self.take(4).map(|_| Wire::Other)?,
            _ => return None,
        };
        Some(Some((key >> 3, wire)))
    }
}

fn read(bytes: &[u8], message: usize, depth: usize) -> Option<Map<String, Value>> {
    if depth > DEEPEST {
        return None;
    }
    let fields = table().messages.get(message)?;
    let mut object = Map::new();
    let mut parts = Parts(bytes);
    while let Some((number, wire)) = parts.next()? {
        let Some((name, holds)) = fields.get(&number) else { continue };
        if let Some(inner) = holds.strip_prefix('[') {
            let item = value(&wire, inner, depth)?;
            if let Some(list) = object.entry(name.clone()).or_insert_with(|| json!([])).as_array_mut() {
                list.push(item);
            }
        } else if let Some(inner) = holds.strip_prefix('{') {
            let Wire::Bytes(pair) = wire else { return None };
            let (key, item) = entry(pair, inner, depth)?;
            if let Some(map) = object.entry(name.clone()).or_insert_with(|| json!({})).as_object_mut() {
                map.insert(key, item);
            }
        } else if let Some(inner) = holds.strip_prefix('<') {
            if let Value::Object(members) = value(&wire, inner, depth)? {
                object.extend(members);
            }
        } else {
            let found = value(&wire, holds, depth)?;
            // Go writes empty texts and times for what JSON leaves out.
            if !(found.is_null() || (holds == "s" && found == "")) {
                object.insert(name.clone(), found);
            }
        }
    }
    Some(object)
}

fn entry(pair: &[u8], holds: &str, depth: usize) -> Option<(String, Value)> {
    let (mut key, mut item) = (String::new(), None);
    let mut parts = Parts(pair);
    while let Some((number, wire)) = parts.next()? {
        match (number, wire) {
            (1, Wire::Bytes(b)) => key = String::from_utf8_lossy(b).into_owned(),
            (2, wire) => item = Some(value(&wire, holds, depth)?),
            _ => {}
        }
    }
    Some((key, item.unwrap_or_else(|| if holds == "Q" { "0".into() } else { "".into() })))
}

fn value(wire: &Wire<'_>, holds: &str, depth: usize) -> Option<Value> {
    Some(match (holds, wire) {
        ("s", Wire::Bytes(b)) => std::str::from_utf8(b).ok()?.into(),
        ("y", Wire::Bytes(b)) => base64::engine::general_purpose::STANDARD.encode(b).into(),
        ("i", Wire::Number(n)) => (*n as i64).into(),
        ("b", Wire::Number(n)) => (*n != 0).into(),
        ("d", Wire::Double(d)) => (*d).into(),
        ("T" | "M", Wire::Bytes(b)) => {
            let (seconds, nanos) = numbers(b)?;
            match jiff::Timestamp::new(seconds, i32::try_from(nanos).ok()?) {
                Ok(at) if seconds > 0 && holds == "T" => crate::simulator::clock::seconds(at).into(),
                Ok(at) if seconds > 0 => crate::simulator::clock::micros(at).into(),
                _ => Value::Null,
            }
        }
        ("D", Wire::Bytes(b)) => {
            let (nanos, _) = numbers(b)?;
            format!("{}s", nanos / 1_000_000_000).into()
        }
        ("Q", Wire::Bytes(b)) => match first_text(b)? {
            text if text.is_empty() => "0".into(),
            text => text.into(),
        },
        ("I", Wire::Bytes(b)) => {
            let (mut kind, mut number, mut text) = (0, 0, String::new());
            let mut parts = Parts(b);
            while let Some((field, wire)) = parts.next()? {
                match (field, wire) {
                    (1, Wire::Number(n)) => kind = n,
                    (2, Wire::Number(n)) => number = n as i64,
                    (3, Wire::Bytes(b)) => text = String::from_utf8_lossy(b).into_owned(),
                    _ => {}
                }
            }
            if kind == 1 { text.into() } else { number.into() }
        }
        ("R", Wire::Bytes(b)) => {
            let raw = first_bytes(b)?;
            serde_json::from_slice(raw).unwrap_or(Value::Null)
        }
        (list, Wire::Bytes(b)) if list.starts_with('L') => {
            let mut items = Vec::new();
            let mut parts = Parts(b);
            while let Some((_, wire)) = parts.next()? {
                items.push(value(&wire, list.get(1..)?, depth + 1)?);
            }
            items.into()
        }
        (message, Wire::Bytes(b)) => Value::Object(read(b, message.parse().ok()?, depth + 1)?),
        _ => return None,
    })
}

/// The first two numbers of a message.
fn numbers(bytes: &[u8]) -> Option<(i64, i64)> {
    let (mut first, mut second) = (0, 0);
    let mut parts = Parts(bytes);
    while let Some((field, wire)) = parts.next()? {
        match (field, wire) {
            (1, Wire::Number(n)) => first = n as i64,
            (2, Wire::Number(n)) => second = n as i64,
            _ => {}
        }
    }
    Some((first, second))
}

fn first_bytes(bytes: &[u8]) -> Option<&[u8]> {
    let mut parts = Parts(bytes);
    while let Some((field, wire)) = parts.next()? {
        if let (1, Wire::Bytes(b)) = (field, wire) {
            return Some(b);
        }
    }
    Some(&[])
}

fn first_text(bytes: &[u8]) -> Option<String> {
    first_bytes(bytes).map(|b| String::from_utf8_lossy(b).into_owned())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
        [&[(number << 3) | 2, bytes.len() as u8], bytes].concat()
    }

    fn envelope(api_version: &str, kind: &str, raw: &[u8]) -> Vec<u8> {
        let meta = [field(1, api_version.as_bytes()), field(2, kind.as_bytes())].concat();
        [b"k8s\0".to_vec(), field(1, &meta), field(2, raw)].concat()
    }

    #[test]
    fn a_review_is_read_and_what_is_cut_short_is_refused() {
        let attributes = [field(1, b"ns"), field(2, b"get"), field(5, b"pods")].concat();
        let body = envelope("authorization.k8s.io/v1", "SelfSubjectAccessReview", &field(2, &field(1, &attributes)));
        let review = decode(&body).unwrap();
        assert_eq!(review["spec"]["resourceAttributes"], json!({"namespace":"ns","verb":"get","resource":"pods"}));
        for cut in 0..body.len() {
            let _ = decode(&body[..cut]);
        }
        assert_eq!(decode(b"k8s\0\x0a\xff").unwrap_err().code, 400);
        assert_eq!(decode(&envelope("x/v1", "Y", b"")).unwrap_err().code, 415);
    }

    #[test]
    fn inline_messages_maps_quantities_and_ports_are_read() {
        // A container: resources.limits {cpu: "1"}, ports[0] {containerPort: 80}; a volume with an inline emptyDir.
        let limit = field(1, &[field(1, b"cpu"), field(2, &field(1, b"1"))].concat());
        let container = [field(1, b"c"), field(8, &limit), field(6, &[0x18, 80])].concat();
        let volume = [field(1, b"v"), field(2, &field(2, b""))].concat();
        let pod = field(2, &[field(1, &volume), field(2, &container)].concat());
        let pod = decode(&envelope("v1", "Pod", &pod)).unwrap();
        assert_eq!(pod["spec"]["volumes"], json!([{"name":"v","emptyDir":{}}]));
        let container = json!([{"name":"c","resources":{"limits":{"cpu":"1"}},"ports":[{"containerPort":80}]}]);
        assert_eq!(pod["spec"]["containers"], container);
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_are_read_without_panic(bytes: Vec<u8>) {
            let _ = decode(&[b"k8s\0".to_vec(), bytes.clone()].concat());
            let _ = decode(&envelope("v1", "Pod", bytes.get(..100).unwrap_or(&bytes)));
        }
    }
}
