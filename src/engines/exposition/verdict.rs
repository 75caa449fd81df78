//! Whether a page is a metrics page at all. Proxies answer HTML, health endpoints answer JSON, a wrong port answers
//! anything, and all of that with status 200.
use super::page::Counts;
use super::scan::{Lines, Shape, body, shape};
use super::unread::Unread;

/// What a page is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// A metrics page. It may still have unread lines, or none of the families that were asked for.
    Metrics,
    /// Nothing but blank lines and comments: an exporter without any series answers so.
    Empty,
    /// Something else.
    NotMetrics(NotMetrics),
}

/// What it looks like instead.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotMetrics {
    /// It begins as HTML or XML does.
    #[error("it is an HTML or XML page")]
    Markup,
    /// It begins as a JSON document does.
    #[error("it is a JSON document")]
    Json,
    /// It begins as a gzip stream does: the answer was compressed and nobody unpacked it.
    #[error("it is compressed (gzip)")]
    Gzip,
    /// It holds bytes that no text has; a protobuf answer is one of these.
    #[error("it is binary")]
    Binary,
    /// Most of its lines are no metric lines.
    #[error("most of its lines are no metrics")]
    Text,
}

/// How many lines are looked at to judge a page of which nothing was kept.
const LOOKED_AT: usize = 200;
/// The most labels that a line is believed to have there.
const MOST_LABELS: usize = 1000;

/// Judges a page (`text` is the part of it that was read) by what was counted on it. Only when that says too little is
/// the beginning looked at again.
pub(super) fn judge(page: &[u8], text: &[u8], counts: &Counts, unread: &Unread) -> Verdict {
    let kept = counts.samples.saturating_add(counts.metadata);
    if kept > unread.count {
        return Verdict::Metrics;
    }
    // The filter kept little or nothing. Reading the beginning in full tells prose from metrics.
    let (mut good, mut bad) = (0_usize, 0_usize);
    let mut labels = Vec::new();
    let content = |shape: &Shape<'_>| !matches!(shape, Shape::Blank | Shape::Comment);
    let shapes = Lines::new(text).map(|(_, line)| shape(line, b"")).filter(content);
    for shape in shapes.take(LOOKED_AT) {
        labels.clear();
        let is_good = match shape {
            Shape::Blank | Shape::Comment | Shape::End | Shape::Meta { .. } => true,
            Shape::Bad(_) => false,
            Shape::Sample { rest, .. } => {
                matches!(body(rest, MOST_LABELS, &mut labels), Ok((None, _)))
            }
            Shape::Braces { rest } => {
                matches!(body(rest, MOST_LABELS, &mut labels), Ok((Some(_), _)))
            }
        };
        if is_good { good += 1 } else { bad += 1 }
    }
    match (good, bad) {
        (0, 0) if page.len() == text.len() => Verdict::Empty,
        _ if good > bad => Verdict::Metrics,
        _ => Verdict::NotMetrics(looks_like(page)),
    }
}

fn looks_like(page: &[u8]) -> NotMetrics {
    let head = page.get(..1024).unwrap_or(page);
    let start = head.trim_ascii_start();
    let start = start.strip_prefix(b"\xef\xbb\xbf").unwrap_or(start).trim_ascii_start();
    if page.starts_with(&[0x1f, 0x8b]) {
        NotMetrics::Gzip
    } else if head.iter().any(|byte| byte.is_ascii_control() && !byte.is_ascii_whitespace() && *byte != 0x1b) {
        NotMetrics::Binary
    } else {
        match start.first() {
            Some(b'<') => NotMetrics::Markup,
            Some(b'{' | b'[' | b'"') => NotMetrics::Json,
            _ => NotMetrics::Text,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engines::exposition::{Filter, read};
    use rstest::rstest;

    const NOT: fn(NotMetrics) -> Verdict = Verdict::NotMetrics;

    #[rstest]
    #[case("", Verdict::Empty)]
    #[case("\n \n", Verdict::Empty)]
    #[case("# nothing here\n", Verdict::Empty)]
    #[case("# EOF\n", Verdict::Metrics)]
    #[case("# TYPE a gauge\n", Verdict::Metrics)]
    #[case("a 1\n", Verdict::Metrics)]
    #[case("a 1\nb 2\nbroken\n", Verdict::Metrics)]
    #[case("<!DOCTYPE html>\n<html><body>Bad Gateway</body></html>\n", NOT(NotMetrics::Markup))]
    #[case("{\"status\":\"ok\"}", NOT(NotMetrics::Json))]
    #[case("{\n  \"status\": \"ok\"\n}\n", NOT(NotMetrics::Json))]
    #[case("[]", NOT(NotMetrics::Json))]
    #[case("\"ok\"", NOT(NotMetrics::Json))]
    #[case("404 page not found\n", NOT(NotMetrics::Text))]
    #[case("upstream connect error or disconnect/reset before headers\n", NOT(NotMetrics::Text))]
    #[case("a 1\nbroken\n", NOT(NotMetrics::Text))]
    #[case("INFO 12:00 something\nINFO 12:01 else\n", NOT(NotMetrics::Text))]
    #[case("\u{1f}\u{1}\u{0}\u{3}abc", NOT(NotMetrics::Binary))]
    fn verdicts(#[case] text: &str, #[case] wanted: Verdict) {
        for filter in [Filter::All, Filter::Names(&["vllm:x"]), Filter::Prefixes(&["up"])] {
            assert_eq!(*read(text.as_bytes(), &filter).verdict(), wanted, "{filter:?}");
        }
    }

    #[test]
    fn gzip_and_protobuf() {
        assert_eq!(*read(b"\x1f\x8b\x08\x00\x00", &Filter::All).verdict(), NOT(NotMetrics::Gzip));
        assert_eq!(*read(b"\x12\x0a\x04name\x00\xff", &Filter::All).verdict(), NOT(NotMetrics::Binary));
    }

    #[test]
    fn a_metrics_page_with_nothing_wanted_is_still_one() {
        let page = read(b"# HELP a b\n# TYPE a gauge\na{b=\"c\"} 1\n", &Filter::Names(&["other"]));
        assert_eq!(*page.verdict(), Verdict::Metrics);
        assert_eq!(page.samples().count(), 0);
    }
}
