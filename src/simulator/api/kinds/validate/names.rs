//! The forms of names and labels, with the sentences of `k8s.io/apimachinery/pkg/util/validation` (1.36).
//!
//! Each function gives what is wrong, nothing when all is well.

use serde_json::{Map, Value};

use super::super::super::status::Cause;

const LABEL: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const LABEL_1035: &str = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";
const QUALIFIED: &str = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const LABEL_VALUE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";

fn longer(text: &str, most: usize) -> Option<String> {
    (text.len() > most).then(|| format!("must be no more than {most} bytes"))
}

fn framed(text: &str, inner: fn(u8) -> bool, edge: fn(u8) -> bool) -> bool {
    let bytes = text.as_bytes();
    let edges = bytes.first().zip(bytes.last()).is_some_and(|(first, last)| edge(*first) && edge(*last));
    edges && bytes.iter().all(|b| inner(*b))
}

fn lower(b: u8) -> bool {
    b.is_ascii_lowercase() || b.is_ascii_digit()
}

fn wide(b: u8) -> bool {
    b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.')
}

/// RFC 1123 label.
pub fn label(text: &str) -> Vec<String> {
    let fits = framed(text, |b| lower(b) || b == b'-', lower);
    let form = (!fits).then(|| if subdomain(text).is_empty() { "must not contain dots".to_owned() } else { LABEL.to_owned() });
    longer(text, 63).into_iter().chain(form).collect()
}

/// RFC 1123 subdomain.
pub fn subdomain(text: &str) -> Vec<String> {
    let fits = text.split('.').all(|part| framed(part, |b| lower(b) || b == b'-', lower));
    longer(text, 253).into_iter().chain((!fits).then(|| SUBDOMAIN.to_owned())).collect()
}

/// DNS-1035 label.
pub fn label_1035(text: &str) -> Vec<String> {
    let fits = framed(text, |b| lower(b) || b == b'-', lower) && text.bytes().next().is_some_and(|b| b.is_ascii_lowercase());
    longer(text, 63).into_iter().chain((!fits).then(|| LABEL_1035.to_owned())).collect()
}

/// A segment of a path, as names of RBAC objects are.
pub fn path_segment(text: &str) -> Vec<String> {
    if text == "." || text == ".." {
        return vec![format!("may not be '{text}'")];
    }
    ["/", "%"].iter().filter(|part| text.contains(**part)).map(|part| format!("may not contain '{part}'")).collect()
}

/// A label or annotation key: `prefix/name`.
pub fn qualified_name(text: &str) -> Vec<String> {
    let (prefix, name) = text.split_once('/').map_or((None, text), |(prefix, name)| (Some(prefix), name));
    let mut errors = Vec::new();
    if name.contains('/') {
        return vec![format!(
            "a qualified name must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        )];
    }
    match prefix {
        Some("") => errors.push("prefix part must be non-empty".to_owned()),
        Some(prefix) => errors.extend(subdomain(prefix).into_iter().map(|why| format!("prefix part {why}"))),
        None => {}
    }
    if name.is_empty() {
        errors.push("name part must be non-empty".to_owned());
    }
    errors.extend(longer(name, 63).map(|why| format!("name part {why}")));
    if !framed(name, wide, |b| b.is_ascii_alphanumeric()) {
        errors.push(QUALIFIED.to_owned());
    }
    errors
}

/// The value of a label.
pub fn label_value(text: &str) -> Vec<String> {
    let fits = text.is_empty() || framed(text, wide, |b| b.is_ascii_alphanumeric());
    longer(text, 63).into_iter().chain((!fits).then(|| LABEL_VALUE.to_owned())).collect()
}

/// The labels at a path.
pub fn labels(labels: Option<&Map<String, Value>>, path: &str, causes: &mut Vec<Cause>) {
    for (key, value) in labels.into_iter().flatten() {
        causes.extend(qualified_name(key).iter().map(|why| Cause::invalid(path, &Value::from(key.as_str()), why)));
        if let Some(value) = value.as_str() {
            causes.extend(label_value(value).iter().map(|why| Cause::invalid(path, &Value::from(value), why)));
        }
    }
}

/// The annotations at a path.
pub fn annotations(annotations: Option<&Map<String, Value>>, path: &str, causes: &mut Vec<Cause>) {
    let mut size = 0usize;
    for (key, value) in annotations.into_iter().flatten() {
        causes.extend(qualified_name(&key.to_lowercase()).iter().map(|why| Cause::invalid(path, &Value::from(key.as_str()), why)));
        size += key.len() + value.as_str().map_or(0, str::len);
    }
    if size > 256 * 1024 {
        causes.push(Cause::too_long(path, "", "may not be more than 262144 bytes"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case("a.b-c", true)]
    #[case("A", false)]
    #[case("a..b", false)]
    #[case("", false)]
    #[case("-a", false)]
    fn subdomains(#[case] text: &str, #[case] good: bool) {
        assert_eq!(subdomain(text).is_empty(), good);
    }

    #[rstest]
    #[case("a/b", true)]
    #[case("a.b/C_d", true)]
    #[case("/b", false)]
    #[case("a/b/c", false)]
    #[case("a b", false)]
    fn qualified_names(#[case] text: &str, #[case] good: bool) {
        assert_eq!(qualified_name(text).is_empty(), good);
    }
}
