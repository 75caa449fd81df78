//! Kubernetes' protobuf envelope for the messages that kubectl's typed commands send.
//!
//! Owns a table of fields for each of those messages and one small reader. Everything else in protobuf is refused with 415.

use base64::Engine;
use serde_json::{Map, Value, json};

use super::super::status::{ApiError, ApiResult};

/// What a field holds.
#[derive(Clone, Copy)]
enum Holds {
    Text,
    Number,
    Flag,
    /// A message.
    Message(&'static [Field]),
    /// A list of texts.
    Texts,
    /// A list of messages.
    Messages(&'static [Field]),
    /// A map of texts.
    Map,
    /// `metav1.Time`.
    Time,
    /// `resource.Quantity`.
    Quantity,
}

type Field = (u64, &'static str, Holds);

use Holds::{Flag, Map as TextMap, Message, Messages, Number, Quantity, Text, Texts, Time};

const OWNER: &[Field] = &[
    (1, "kind", Text),
    (3, "name", Text),
    (4, "uid", Text),
    (5, "apiVersion", Text),
    (6, "controller", Flag),
    (7, "blockOwnerDeletion", Flag),
];
const METADATA: &[Field] = &[
    (1, "name", Text),
    (2, "generateName", Text),
    (3, "namespace", Text),
    (5, "uid", Text),
    (6, "resourceVersion", Text),
    (7, "generation", Number),
    (8, "creationTimestamp", Time),
    (11, "labels", TextMap),
    (12, "annotations", TextMap),
    (13, "ownerReferences", Messages(OWNER)),
    (14, "finalizers", Texts),
];
const RESOURCE_ATTRIBUTES: &[Field] = &[
    (1, "namespace", Text),
    (2, "verb", Text),
    (3, "group", Text),
    (4, "version", Text),
    (5, "resource", Text),
    (6, "subresource", Text),
    (7, "name", Text),
];
const PATH_ATTRIBUTES: &[Field] = &[(1, "path", Text), (2, "verb", Text)];
const OWN_ACCESS: &[Field] =
    &[(1, "resourceAttributes", Message(RESOURCE_ATTRIBUTES)), (2, "nonResourceAttributes", Message(PATH_ATTRIBUTES))];
const ACCESS: &[Field] = &[
    (1, "resourceAttributes", Message(RESOURCE_ATTRIBUTES)),
    (2, "nonResourceAttributes", Message(PATH_ATTRIBUTES)),
    (3, "user", Text),
    (4, "groups", Texts),
    (6, "uid", Text),
];
const DELETE: &[Field] = &[
    (1, "gracePeriodSeconds", Number),
    (2, "preconditions", Message(&[(1, "uid", Text), (2, "resourceVersion", Text)])),
    (3, "orphanDependents", Flag),
    (4, "propagationPolicy", Text),
    (5, "dryRun", Texts),
];
const TARGET_REF: &[Field] = &[(1, "kind", Text), (2, "name", Text), (3, "apiVersion", Text)];
const HPA_V1: &[Field] = &[
    (1, "scaleTargetRef", Message(TARGET_REF)),
    (2, "minReplicas", Number),
    (3, "maxReplicas", Number),
    (4, "targetCPUUtilizationPercentage", Number),
];
const METRIC_TARGET: &[Field] =
    &[(1, "type", Text), (2, "value", Quantity), (3, "averageValue", Quantity), (4, "averageUtilization", Number)];
const METRIC: &[Field] = &[(1, "type", Text), (4, "resource", Message(&[(1, "name", Text), (2, "target", Message(METRIC_TARGET))]))];
const HPA_V2: &[Field] = &[
    (1, "scaleTargetRef", Message(TARGET_REF)),
    (2, "minReplicas", Number),
    (3, "maxReplicas", Number),
    (4, "metrics", Messages(METRIC)),
];
const TOKEN: &[Field] = &[
    (1, "audiences", Texts),
    (3, "boundObjectRef", Message(&[(1, "kind", Text), (2, "apiVersion", Text), (3, "name", Text), (4, "uid", Text)])),
    (4, "expirationSeconds", Number),
];

fn message(api_version: &str, kind: &str) -> Option<Vec<Field>> {
    let with = |second: Field| Some(vec![(1, "metadata", Message(METADATA)), second]);
    match (api_version, kind) {
        ("authorization.k8s.io/v1", "SelfSubjectAccessReview") => with((2, "spec", Message(OWN_ACCESS))),
        ("authorization.k8s.io/v1", "SubjectAccessReview" | "LocalSubjectAccessReview") => with((2, "spec", Message(ACCESS))),
        ("authorization.k8s.io/v1", "SelfSubjectRulesReview") => with((2, "spec", Message(&[(1, "namespace", Text)]))),
        ("authentication.k8s.io/v1", "SelfSubjectReview") => Some(vec![(1, "metadata", Message(METADATA))]),
        ("authentication.k8s.io/v1", "TokenRequest") => with((2, "spec", Message(TOKEN))),
        ("autoscaling/v1", "HorizontalPodAutoscaler") => with((2, "spec", Message(HPA_V1))),
        ("autoscaling/v2", "HorizontalPodAutoscaler") => with((2, "spec", Message(HPA_V2))),
        ("policy/v1", "Eviction") => with((2, "deleteOptions", Message(DELETE))),
        (_, "DeleteOptions") => Some(DELETE.to_vec()),
        _ => None,
    }
}

/// Reads the envelope and the message in it.
///
/// # Errors
/// 400 for what is no envelope, 415 for a message that is not in the table.
pub fn decode(body: &[u8]) -> ApiResult<Value> {
    let wrong = || ApiError::bad_request("provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]");
    let unknown = body.strip_prefix(b"k8s\0").ok_or_else(wrong)?;
    let mut parts = Parts(unknown);
    let (mut api_version, mut kind, mut raw): (String, String, &[u8]) = (String::new(), String::new(), &[]);
    while let Some((number, wire)) = parts.next().map_err(|()| wrong())? {
        match (number, wire) {
            (1, Wire::Bytes(meta)) => {
                let read = fields(meta, &[(1, "apiVersion", Text), (2, "kind", Text)], 0).ok_or_else(wrong)?;
                let text = |name: &str| read.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
                (api_version, kind) = (text("apiVersion"), text("kind"));
            }
            (2, Wire::Bytes(bytes)) => raw = bytes,
            _ => {}
        }
    }
    let known = message(&api_version, &kind).ok_or_else(|| {
        ApiError::unsupported_media_type(format!("protobuf is not read for {kind} in {api_version:?}; send application/json"))
    })?;
    let mut object = fields(raw, &known, 0).ok_or_else(wrong)?;
    object.insert("apiVersion".into(), api_version.into());
    object.insert("kind".into(), kind.into());
    Ok(Value::Object(object))
}

enum Wire<'a> {
    Number(u64),
    Bytes(&'a [u8]),
    Other,
}

struct Parts<'a>(&'a [u8]);

impl<'a> Parts<'a> {
    fn varint(&mut self) -> Result<u64, ()> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let (first, rest) = self.0.split_first().ok_or(())?;
            self.0 = rest;
            value |= u64::from(first & 0x7f) << shift;
            if first & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(())
    }

    fn take(&mut self, length: u64) -> Result<&'a [u8], ()> {
        let (taken, rest) = usize::try_from(length).ok().and_then(|n| self.0.split_at_checked(n)).ok_or(())?;
        self.0 = rest;
        Ok(taken)
    }

    fn next(&mut self) -> Result<Option<(u64, Wire<'a>)>, ()> {
        if self.0.is_empty() {
            return Ok(None);
        }
        let key = self.varint()?;
        let wire = match key & 7 {
            0 => Wire::Number(self.varint()?),
            1 => self.take(8).map(|_| Wire::Other)?,
            2 => {
                let length = self.varint()?;
                Wire::Bytes(self.take(length)?)
            }
            5 => self.take(4).map(|_| Wire::Other)?,
            _ => return Err(()),
        };
        Ok(Some((key >> 3, wire)))
    }
}

fn text(bytes: &[u8]) -> Value {
    match std::str::from_utf8(bytes) {
        Ok(text) => text.into(),
        Err(_) => base64::engine::general_purpose::STANDARD.encode(bytes).into(),
    }
}

fn fields(bytes: &[u8], known: &[Field], depth: usize) -> Option<Map<String, Value>> {
    let mut object = Map::new();
    let mut parts = Parts(bytes);
    while let Some((number, wire)) = parts.next().ok()? {
        let Some((_, name, holds)) = known.iter().find(|(n, _, _)| *n == number) else { continue };
        let list = |object: &mut Map<String, Value>, value: Value| {
            if let Some(items) = object.entry(*name).or_insert_with(|| json!([])).as_array_mut() {
                items.push(value);
            }
        };
        match (holds, wire) {
            (Text, Wire::Bytes(b)) => {
                // Go writes empty texts; JSON leaves them out.
                if !b.is_empty() {
                    object.insert((*name).to_owned(), text(b));
                }
            }
            (Number, Wire::Number(n)) => {
                object.insert((*name).to_owned(), (n as i64).into());
            }
            (Flag, Wire::Number(n)) => {
                object.insert((*name).to_owned(), (n != 0).into());
            }
            (Message(inner), Wire::Bytes(b)) if depth < 16 => {
                object.insert((*name).to_owned(), Value::Object(fields(b, inner, depth + 1)?));
            }
            (Texts, Wire::Bytes(b)) => list(&mut object, text(b)),
            (Messages(inner), Wire::Bytes(b)) if depth < 16 => {
                let item = Value::Object(fields(b, inner, depth + 1)?);
                list(&mut object, item);
            }
            (TextMap, Wire::Bytes(b)) => {
                let pair = fields(b, &[(1, "k", Text), (2, "v", Text)], depth + 1)?;
                let of = |k: &str| pair.get(k).and_then(Value::as_str).unwrap_or_default().to_owned();
                if let Some(map) = object.entry(*name).or_insert_with(|| json!({})).as_object_mut() {
                    map.insert(of("k"), of("v").into());
                }
            }
            (Quantity, Wire::Bytes(b)) => {
                let quantity = fields(b, &[(1, "string", Text)], depth + 1)?;
                object.insert((*name).to_owned(), quantity.get("string").cloned().unwrap_or_else(|| "0".into()));
            }
            (Time, Wire::Bytes(b)) => {
                let seconds = fields(b, &[(1, "s", Number)], depth + 1)?;
                let at = seconds.get("s").and_then(Value::as_i64).and_then(|s| jiff::Timestamp::from_second(s).ok());
                if let Some(at) = at.filter(|at| at.as_second() > 0) {
                    object.insert((*name).to_owned(), crate::simulator::clock::seconds(at).into());
                }
            }
            _ => {}
        }
    }
    Some(object)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
        [&[(number << 3) | 2, bytes.len() as u8], bytes].concat()
    }

    #[test]
    fn a_review_is_read_and_what_is_cut_short_is_refused() {
        let attributes = [field(1, b"ns"), field(2, b"get"), field(5, b"pods")].concat();
        let raw = field(2, &field(1, &attributes));
        let meta = [field(1, b"authorization.k8s.io/v1"), field(2, b"SelfSubjectAccessReview")].concat();
        let body = [b"k8s\0".to_vec(), field(1, &meta), field(2, &raw)].concat();
        let review = decode(&body).unwrap();
        assert_eq!(review["spec"]["resourceAttributes"], json!({"namespace":"ns","verb":"get","resource":"pods"}));
        for cut in 0..body.len() {
            let _ = decode(&body[..cut]);
        }
        assert_eq!(decode(b"k8s\0\x0a\xff").unwrap_err().code, 400);
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_are_read_without_panic(bytes: Vec<u8>) {
            let _ = decode(&[b"k8s\0".to_vec(), bytes].concat());
        }
    }
}
