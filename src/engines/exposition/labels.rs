//! The label block `{…}` of a sample line, escapes and quoted names included. Owns: [`Text`], the raw piece of a line
//! that may hold escapes, and the reader of a block. Copies nothing.
use super::cursor::Cursor;
use super::unread::Reason;
use std::borrow::Cow;

/// A name or value as it stands on the page, without its quotes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Text<'a> {
    /// The bytes between the quotes, or of the bare name.
    pub(super) raw: &'a [u8],
    /// Whether `raw` holds a backslash.
    pub(super) escaped: bool,
}

impl<'a> Text<'a> {
    /// A bare name, in which no escapes are possible.
    pub(super) const fn bare(raw: &'a [u8]) -> Self {
        Self { raw, escaped: false }
    }

    /// The text that is meant: `\\`, `\"` and `\n` resolved, any other backslash left as it is (as Prometheus does),
    /// bytes that are no UTF-8 replaced by U+FFFD.
    pub(super) fn meaning(&self) -> Cow<'a, str> {
        if !self.escaped {
            return String::from_utf8_lossy(self.raw);
        }
        let mut out = Vec::with_capacity(self.raw.len());
        let mut rest = self.raw;
        while let Some(at) = memchr::memchr(b'\\', rest) {
            let (before, after) = rest.split_at_checked(at).unwrap_or((rest, &[]));
            out.extend_from_slice(before);
            let (put, width): (&[u8], usize) = match after.get(1) {
                Some(b'\\') => (b"\\", 2),
                Some(b'"') => (b"\"", 2),
                Some(b'n') => (b"\n", 2),
                _ => (b"\\", 1),
            };
            out.extend_from_slice(put);
            rest = after.get(width..).unwrap_or(&[]);
        }
        out.extend_from_slice(rest);
        Cow::Owned(String::from_utf8_lossy(&out).into_owned())
    }
}

/// One label as it stands on the page.
#[derive(Debug, Clone, Copy)]
pub(super) struct RawLabel<'a> {
    pub(super) name: Text<'a>,
    pub(super) value: Text<'a>,
}

/// Reads the block at `cursor`, which stands on its `{`, and leaves the cursor behind the `}`.
///
/// The labels go to `out`, at most `limit` of them. What is returned is the metric's name if it stands in the block as a
/// quoted string of its own: `{"http.status",method="GET"} 7`.
pub(super) fn block<'a>(cursor: &mut Cursor<'a>, limit: usize, out: &mut Vec<RawLabel<'a>>) -> Result<Option<Text<'a>>, Reason> {
    let mut metric = None;
    if !cursor.take(b'{') {
        return Err(Reason::Labels);
    }
    loop {
        cursor.blanks();
        if cursor.take(b'}') {
            return Ok(metric);
        }
        let (name, quoted) = match cursor.peek() {
            Some(b'"') => (quoted(cursor)?, true),
            Some(b':') => return Err(Reason::LabelName),
            _ => (Text::bare(cursor.name().ok_or(Reason::LabelName)?), false),
        };
        cursor.blanks();
        if cursor.take(b'=') {
            // A colon is for metric names only, unless the name is quoted.
            if !quoted && memchr::memchr(b':', name.raw).is_some() {
                return Err(Reason::LabelName);
            }
            cursor.blanks();
            let value = quoted_value(cursor)?;
            if out.len() >= limit {
                return Err(Reason::TooManyLabels);
            }
            out.push(RawLabel { name, value });
        } else if quoted && metric.is_none() && !name.raw.is_empty() {
            metric = Some(name);
        } else {
            return Err(Reason::Labels);
        }
        cursor.blanks();
        match cursor.peek() {
            Some(b',') => cursor.take(b','),
            Some(b'}') => continue,
            _ => return Err(Reason::Labels),
        };
    }
}

fn quoted_value<'a>(cursor: &mut Cursor<'a>) -> Result<Text<'a>, Reason> {
    match cursor.peek() {
        Some(b'"') => quoted(cursor),
        _ => Err(Reason::Labels),
    }
}

/// Reads a quoted string; the cursor stands on its first quote.
pub(super) fn quoted<'a>(cursor: &mut Cursor<'a>) -> Result<Text<'a>, Reason> {
    cursor.take(b'"');
    let body = cursor.0;
    let mut length = 0_usize;
    let mut escaped = false;
    loop {
        let rest = body.get(length..).unwrap_or(&[]);
        let at = memchr::memchr2(b'"', b'\\', rest).ok_or(Reason::OpenQuote)?;
        length = length.saturating_add(at);
        if rest.get(at) == Some(&b'"') {
            break;
        }
        escaped = true;
        length = length.saturating_add(2);
    }
    let raw = cursor.take_bytes(length);
    cursor.take(b'"');
    Ok(Text { raw, escaped })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    /// The metric's name, the labels, and what follows the block.
    type Told = (Option<String>, Vec<(String, String)>, String);

    fn read(text: &str) -> Result<Told, Reason> {
        let mut cursor = Cursor(text.as_bytes());
        let mut out = Vec::new();
        let metric = block(&mut cursor, 3, &mut out)?.map(|name| name.meaning().into_owned());
        let pairs = out.iter().map(|l| (l.name.meaning().into_owned(), l.value.meaning().into_owned())).collect();
        Ok((metric, pairs, String::from_utf8_lossy(cursor.0).into_owned()))
    }

    #[rstest]
    #[case("{}", None, &[], "")]
    #[case("{ } 1", None, &[], " 1")]
    #[case(r#"{a="b"}"#, None, &[("a", "b")], "")]
    #[case(r#"{ a = "b" , c="d", } 1"#, None, &[("a", "b"), ("c", "d")], " 1")]
    #[case(r#"{a="x}y,z=1{"}"#, None, &[("a", "x}y,z=1{")], "")]
    #[case(r#"{a="q\"q\\",b="l\nl",c="\t\x"}"#, None, &[("a", "q\"q\\"), ("b", "l\nl"), ("c", "\\t\\x")], "")]
    #[case(r#"{"http.status",method="GET"} 7"#, Some("http.status"), &[("method", "GET")], " 7")]
    #[case(r#"{method="GET","http.status"} 7"#, Some("http.status"), &[("method", "GET")], " 7")]
    #[case(r#"{"service.name"="epp"}"#, None, &[("service.name", "epp")], "")]
    #[case(r#"{a=""}"#, None, &[("a", "")], "")]
    fn good(#[case] text: &str, #[case] metric: Option<&str>, #[case] pairs: &[(&str, &str)], #[case] rest: &str) {
        let (got_metric, got_pairs, got_rest) = read(text).unwrap();
        assert_eq!(got_metric.as_deref(), metric);
        let got: Vec<(&str, &str)> = got_pairs.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
        assert_eq!(got, pairs);
        assert_eq!(got_rest, rest);
    }

    #[rstest]
    #[case("{", Reason::LabelName)]
    #[case("{,}", Reason::LabelName)]
    #[case(r#"{a="b",,}"#, Reason::LabelName)]
    #[case(r#"{a="b" c="d"}"#, Reason::Labels)]
    #[case(r#"{a="b"#, Reason::OpenQuote)]
    #[case(r#"{a="b\"}"#, Reason::OpenQuote)]
    #[case(r#"{a=b}"#, Reason::Labels)]
    #[case(r#"{a}"#, Reason::Labels)]
    #[case(r#"{a:b="c"}"#, Reason::LabelName)]
    #[case(r#"{1a="c"}"#, Reason::LabelName)]
    #[case(r#"{a.b="c"}"#, Reason::Labels)]
    #[case(r#"{"m","n"}"#, Reason::Labels)]
    #[case(r#"{""}"#, Reason::Labels)]
    #[case(r#"{a="1",b="2",c="3",d="4"}"#, Reason::TooManyLabels)]
    fn bad(#[case] text: &str, #[case] reason: Reason) {
        assert_eq!(read(text), Err(reason));
    }

    #[test]
    fn bytes_that_are_no_utf8_are_replaced() {
        let text = Text { raw: b"a\xff\\n", escaped: true };
        assert_eq!(text.meaning(), "a\u{fffd}\n");
    }
}
