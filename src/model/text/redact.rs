//! Taking secrets out of a text: values of secret names, tokens of well-known shapes, user info in URLs, private keys.
//!
//! Errs towards taking out too much. Must stay cheap on texts that hold nothing: most do.

use std::borrow::Cow;

use super::names::is_secret_name;

/// What stands in place of a secret.
pub const REDACTED: &str = "[redacted]";

/// Beginnings of tokens by which their issuers mark them, and how many characters at least must follow.
const TOKEN_SHAPES: &[(&str, usize)] = &[
    ("sk-", 16),
    ("hf_", 16),
    ("ghp_", 16),
    ("gho_", 16),
    ("ghs_", 16),
    ("ghu_", 16),
    ("github_pat_", 16),
    ("glpat-", 16),
    ("xoxb-", 10),
    ("xoxp-", 10),
    ("xoxa-", 10),
    ("nvapi-", 16),
    ("ya29.", 16),
    ("AIza", 30),
    ("AKIA", 16),
    ("ASIA", 16),
    ("eyJ", 24),
    ("dckr_pat_", 16),
    ("npm_", 20),
    ("pypi-", 20),
];

/// Query parameters that sign a URL.
const SIGNED_PARAMETERS: &[&str] = &[
    "x-amz-signature",
    "x-amz-credential",
    "x-amz-security-token",
    "x-goog-signature",
    "x-goog-credential",
    "awsaccesskeyid",
    "signature",
    "sig",
    "access_token",
    "api_key",
    "apikey",
    "key",
    "token",
];

/// The text with secrets replaced by [`REDACTED`]. A text without any is borrowed. Doing it twice changes nothing.
pub fn redact(text: &str) -> Cow<'_, str> {
    if !suspicious(text) {
        return Cow::Borrowed(text);
    }
    let mut spans: Vec<(usize, usize)> = Vec::new();
    private_keys(text, &mut spans);
    url_secrets(text, &mut spans);
    named_values(text, &mut spans);
    schemes(text, &mut spans);
    shapes(text, &mut spans);
    if spans.is_empty() { Cow::Borrowed(text) } else { Cow::Owned(replace(text, spans)) }
}

/// A cheap look: whether any of the marks is there by which the rules below begin.
fn suspicious(text: &str) -> bool {
    let bytes = text.as_bytes();
    if bytes.len() < 6 {
        return false;
    }
    let marks: &[&[u8]] = &[
        b"key",
        b"pass",
        b"secret",
        b"token",
        b"auth",
        b"cred",
        b"cookie",
        b"bearer",
        b"basic",
        b"dsn",
        b"pwd",
        b"://",
        b"-----begin",
        b"data",
        b"connection",
        b"signature",
        b"sig=",
        b"sk-",
        b"hf_",
        b"gh",
        b"github_",
        b"glpat",
        b"xox",
        b"nvapi",
        b"ya29",
        b"aiza",
        b"akia",
        b"asia",
        b"eyj",
        b"dckr_",
        b"npm_",
        b"pypi-",
    ];
    // First letters of the marks, so that most positions cost one look.
    const FIRST: &[u8] = b"kpstacdb:-hgxnye";
    bytes.iter().enumerate().any(|(i, b)| {
        let b = b.to_ascii_lowercase();
        FIRST.contains(&b) && marks.iter().any(|mark| bytes.get(i..i + mark.len()).is_some_and(|part| part.eq_ignore_ascii_case(mark)))
    })
}

fn replace(text: &str, mut spans: Vec<(usize, usize)>) -> String {
    spans.sort_unstable();
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    for (start, end) in spans {
        if start < at {
            at = at.max(end);
            continue;
        }
        if text.get(start..end) == Some(REDACTED) {
            continue;
        }
        out.push_str(text.get(at..start).unwrap_or_default());
        out.push_str(REDACTED);
        at = end;
    }
    out.push_str(text.get(at..).unwrap_or_default());
    out
}

/// From the first line of a private key to its last, or to the end of the text.
fn private_keys(text: &str, spans: &mut Vec<(usize, usize)>) {
    for (start, _) in text.match_indices("-----BEGIN") {
        let rest = text.get(start..).unwrap_or_default();
        let head = rest.get(..80.min(rest.len())).or_else(|| rest.get(..rest.len().min(40))).unwrap_or(rest);
        if !head.contains("PRIVATE KEY") {
            continue;
        }
        let end = rest.find("-----END").and_then(|end| {
            let tail = rest.get(end + 8..)?;
            Some(end + 8 + tail.find("-----")? + 5)
        });
        spans.push((start, start + end.unwrap_or(rest.len())));
    }
}

/// `scheme://user:password@host`, and parameters that sign a URL.
fn url_secrets(text: &str, spans: &mut Vec<(usize, usize)>) {
    for (at, _) in text.match_indices("://") {
        let start = at + 3;
        let rest = text.get(start..).unwrap_or_default();
        let end = rest.find(|c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '<' | '>')).unwrap_or(rest.len());
        let url = rest.get(..end).unwrap_or_default();
        let authority_end = url.find(['/', '?', '#']).unwrap_or(url.len());
        // A password may hold a slash that nobody escaped: the last @ before the query counts.
        let before_query = url.split(['?', '#']).next().unwrap_or_default();
        let user = url.get(..authority_end).and_then(|authority| authority.rfind('@')).or_else(|| {
            let at = before_query.rfind('@')?;
            before_query.get(..at)?.contains(':').then_some(at)
        });
        if let Some(user_end) = user.filter(|end| *end > 0) {
            spans.push((start, start + user_end));
        }
        let Some(query) = url.find('?') else { continue };
        let mut offset = query + 1;
        for pair in url.get(query + 1..).unwrap_or_default().split(['&', ';', '#']) {
            if let Some((name, value)) = pair.split_once('=') {
                let secret = SIGNED_PARAMETERS.iter().any(|known| name.eq_ignore_ascii_case(known)) || is_secret_name(name);
                if secret && !value.is_empty() {
                    let from = start + offset + name.len() + 1;
                    spans.push((from, from + value.len()));
                }
            }
            offset += pair.len() + 1;
        }
    }
}

fn is_name_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.')
}

/// `name=value`, `name: value`, `"name":"value"`, `--name value` where the name is secret.
fn named_values(text: &str, spans: &mut Vec<(usize, usize)>) {
    let mut at = 0;
    while let Some(rest) = text.get(at..) {
        let Some(from) = rest.find(is_name_char) else { return };
        let start = at + from;
        let word = text.get(start..).unwrap_or_default();
        let len = word.find(|c| !is_name_char(c)).unwrap_or(word.len());
        let name = word.get(..len).unwrap_or_default();
        at = start + len;
        if !is_secret_name(name) {
            continue;
        }
        let after = text.get(at..).unwrap_or_default();
        let Some(value_at) = value_start(after, name.starts_with("--")) else { continue };
        let value = after.get(value_at..).unwrap_or_default();
        let length = value_length(value, name);
        if length > 0 && !is_harmless(value.get(..length).unwrap_or_default()) {
            spans.push((at + value_at, at + value_at + length));
            at += value_at + length;
        }
    }
}

/// Where the value begins after a name: past quotes, blanks and one `=` or `:`. A flag may be parted from its value by a blank alone.
fn value_start(after: &str, flag: bool) -> Option<usize> {
    let quote = after.len() - after.trim_start_matches(['"', '\'', '\\']).len();
    let rest = after.get(quote..)?;
    let blanks = rest.len() - rest.trim_start().len();
    let sign = rest.get(blanks..)?;
    if let Some(value) = sign.strip_prefix(['=', ':']) {
        // `key:=value`, `key: value`, `"key": "value"`.
        let value = value.strip_prefix('=').unwrap_or(value);
        return Some(after.len() - value.trim_start().len());
    }
    let parted = blanks > 0 && !sign.starts_with('-') && (flag || quote == 0 && looks_random(sign));
    parted.then(|| after.len() - sign.len())
}

/// Whether the first word of a text looks like a password or a token and not like a word of prose or the name of an object: after
/// `password` and a blank either may follow.
fn looks_random(text: &str) -> bool {
    let quoted = text.trim_start_matches(['"', '\'', '\\']);
    let word = quoted.get(..value_length(quoted, "")).unwrap_or_default().trim_end_matches(['\\', '.', ';', ':']);
    let has = |what: fn(char) -> bool| word.chars().any(what);
    // Names of objects are words in lower case, parted by dashes and dots.
    let like_a_name = !has(|c| c.is_ascii_uppercase()) && has(|c| matches!(c, '-' | '.' | '/'));
    let turns = word.chars().zip(word.chars().skip(1)).filter(|(a, b)| a.is_ascii_lowercase() != b.is_ascii_lowercase()).count();
    let mixed = has(|c| c.is_ascii_digit()) && has(|c| c.is_ascii_alphabetic());
    word.len() >= 8 && !like_a_name && (mixed || word.len() >= 16 && turns >= 6)
}

/// How long a value is: to its closing quote, else to the next blank, comma or bracket. `Authorization` and `Cookie` take the line.
fn value_length(value: &str, name: &str) -> usize {
    let name = name.to_ascii_lowercase();
    let escaped = value.strip_prefix("\\\"");
    if let Some(inner) = escaped {
        return 2 + inner.find("\\\"").map_or(inner.len(), |end| end + 2);
    }
    for quote in ['"', '\''] {
        if let Some(inner) = value.strip_prefix(quote) {
            let mut backslash = false;
            for (i, c) in inner.char_indices() {
                if c == quote && !backslash {
                    return 1 + i + 1;
                }
                backslash = c == '\\' && !backslash;
            }
            return value.len();
        }
    }
    if name.ends_with("authorization") || name.ends_with("cookie") {
        return value.find(['"', '\'', '\n', '\r']).unwrap_or(value.len());
    }
    value.find(|c: char| c.is_whitespace() || matches!(c, ',' | '"' | '\'' | ')' | '}' | ']' | '&' | '|')).unwrap_or(value.len())
}

/// Values that are none: a placeholder, a boolean, a reference to where the secret is kept, what is redacted already.
fn is_harmless(value: &str) -> bool {
    let bare = value.trim_matches(['"', '\'', '\\']);
    bare.is_empty()
        || value.starts_with("[redacted")
        || bare.starts_with("[redacted")
        || bare.starts_with('$')
        || bare.starts_with('{')
        || bare.starts_with('[')
        || matches!(
            bare.to_ascii_lowercase().as_str(),
            "true" | "false" | "none" | "null" | "nil" | "unset" | "required" | "missing" | "invalid"
        )
}

/// `Bearer X`, `Basic X`.
fn schemes(text: &str, spans: &mut Vec<(usize, usize)>) {
    let lower = text.to_ascii_lowercase();
    for (scheme, least) in [("bearer ", 8), ("basic ", 12)] {
        for (at, _) in lower.match_indices(scheme) {
            let start = at + scheme.len();
            let word_before = text.get(..at).and_then(|before| before.chars().next_back()).is_some_and(|c| c.is_ascii_alphanumeric());
            let rest = text.get(start..).unwrap_or_default();
            let length = rest.find(|c: char| !(c.is_ascii_alphanumeric() || "-._~+/=".contains(c))).unwrap_or(rest.len());
            let token = rest.get(..length).unwrap_or_default();
            // Prose has words after "basic": a token has a digit, an upper-case letter inside, or padding.
            let looks = token.len() >= least && token.chars().skip(1).any(|c| c.is_ascii_digit() || c.is_ascii_uppercase() || c == '=');
            if !word_before && looks {
                spans.push((start, start + length));
            }
        }
    }
}

/// Tokens by their shape alone.
fn shapes(text: &str, spans: &mut Vec<(usize, usize)>) {
    for (shape, least) in TOKEN_SHAPES {
        for (at, _) in text.match_indices(shape) {
            let before = text.get(..at).and_then(|before| before.chars().next_back());
            if before.is_some_and(|c| c.is_ascii_alphanumeric()) {
                continue;
            }
            let rest = text.get(at + shape.len()..).unwrap_or_default();
            let length =
                rest.find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '+' | '/' | '='))).unwrap_or(rest.len());
            let body = rest.get(..length).unwrap_or_default();
            // A JSON Web Token is three parts; the shape `eyJ` alone is any base64 of JSON.
            let enough = body.len() >= *least
                && !(shape.ends_with('-') && like_an_object(body))
                && (*shape != "eyJ" || body.contains('.') || body.len() >= 60);
            let mixed = body.chars().any(|c| c.is_ascii_digit()) || body.len() >= 30;
            if enough && mixed {
                spans.push((at, at + shape.len() + length));
            }
        }
    }
}

/// Whether what follows `sk-` or `pypi-` is the rest of an object's name, as in `sk-learn-6d4f9c7b8-x2x9z`: short words in lower case.
fn like_an_object(body: &str) -> bool {
    !body.chars().any(|c| c.is_ascii_uppercase() || c == '_') && body.split(['-', '.']).all(|word| word.len() < 12)
}

#[cfg(test)]
#[path = "redact_tests.rs"]
mod tests;
