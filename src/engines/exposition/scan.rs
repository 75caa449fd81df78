//! What one line is. Owns: cutting a page into lines, telling comments, metadata and samples apart, and reading what
//! follows a sample's name. Copies nothing and decides nothing about what is kept.
use super::cursor::{Cursor, is_blank, is_name_byte, trim};
use super::labels::{RawLabel, Text, block, quoted};
use super::number::{Stamp, value};
use super::unread::Reason;

/// The lines of a page with their numbers from 1. A page that does not end with a newline has its rest as last line.
pub(super) struct Lines<'a> {
    rest: &'a [u8],
    number: u64,
}

impl<'a> Lines<'a> {
    pub(super) const fn new(page: &'a [u8]) -> Self {
        Self { rest: page, number: 0 }
    }
}

impl<'a> Iterator for Lines<'a> {
    type Item = (u64, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let end = memchr::memchr(b'\n', self.rest).unwrap_or(self.rest.len());
        let (line, rest) = self.rest.split_at_checked(end)?;
        self.rest = rest.get(1..).unwrap_or(&[]);
        self.number = self.number.saturating_add(1);
        Some((self.number, line))
    }
}

/// Which of the lines about a family it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Meta {
    Type,
    Help,
    Unit,
}

/// What a line is, as far as its beginning tells.
#[derive(Debug, Clone, Copy)]
pub(super) enum Shape<'a> {
    Blank,
    Comment,
    /// `# EOF`, the end of an OpenMetrics page.
    End,
    /// `# TYPE name rest`, and so on; the rest is trimmed.
    Meta {
        meta: Meta,
        name: Text<'a>,
        rest: &'a [u8],
    },
    /// A sample whose name is known; the rest begins with a blank or `{`.
    Sample {
        name: &'a [u8],
        rest: Cursor<'a>,
    },
    /// A sample that begins with `{`: its name is a quoted string in there.
    Braces {
        rest: Cursor<'a>,
    },
    Bad(Reason),
}

/// Tells what a line is. `last_name` is the name of the sample before, which is mostly this one's too.
pub(super) fn shape<'a>(line: &'a [u8], last_name: &[u8]) -> Shape<'a> {
    let line = trim(line);
    match line.first() {
        None => return Shape::Blank,
        Some(b'#') => return hash(Cursor(line.get(1..).unwrap_or(&[]))),
        Some(b'{') => return Shape::Braces { rest: Cursor(line) },
        Some(_) => {}
    }
    let mut rest = Cursor(line);
    let name = match line.get(last_name.len()) {
        Some(next) if !last_name.is_empty() && !is_name_byte(*next) && line.starts_with(last_name) => rest.take_bytes(last_name.len()),
        _ => rest.name().unwrap_or(&[]),
    };
    match rest.peek() {
        _ if name.is_empty() => Shape::Bad(Reason::Name),
        Some(next) if is_blank(next) || next == b'{' => Shape::Sample { name, rest },
        Some(_) => Shape::Bad(Reason::Name),
        None => Shape::Bad(Reason::NoValue),
    }
}

/// A line that begins with `#`, which is taken already.
fn hash<'a>(mut rest: Cursor<'a>) -> Shape<'a> {
    if !rest.blanks() {
        return Shape::Comment;
    }
    let meta = match rest.token() {
        b"TYPE" => Meta::Type,
        b"HELP" => Meta::Help,
        b"UNIT" => Meta::Unit,
        b"EOF" if rest.0.is_empty() => return Shape::End,
        _ => return Shape::Comment,
    };
    rest.blanks();
    let name = match rest.peek() {
        // `# HELP` alone is an allowed comment; a TYPE line that tells no type is not.
        None if meta == Meta::Type => return Shape::Bad(Reason::Metadata),
        None => return Shape::Comment,
        Some(b'"') => quoted(&mut rest).ok().filter(|name| !name.raw.is_empty()),
        Some(_) => rest.name().map(Text::bare),
    };
    let Some(name) = name else {
        return Shape::Bad(Reason::Metadata);
    };
    match (rest.blanks(), rest.0.is_empty()) {
        (false, false) => Shape::Bad(Reason::Metadata),
        (_, true) if meta == Meta::Type => Shape::Bad(Reason::Metadata),
        _ => Shape::Meta { meta, name, rest: rest.0 },
    }
}

/// What follows a sample's labels.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Tail {
    pub(super) value: f64,
    pub(super) stamp: Option<Stamp>,
    /// Whether an exemplar follows (`# {…} 0.3`). It is not read: a broken exemplar costs nothing.
    pub(super) exemplar: bool,
}

/// Reads labels (into `labels`, at most `limit`) and tail of a sample. Returns the quoted name in the block, if any.
pub(super) fn body<'a>(mut rest: Cursor<'a>, limit: usize, labels: &mut Vec<RawLabel<'a>>) -> Result<(Option<Text<'a>>, Tail), Reason> {
    rest.blanks();
    let name = match rest.peek() {
        Some(b'{') => block(&mut rest, limit, labels)?,
        _ => None,
    };
    rest.blanks();
    Ok((name, tail(rest)?))
}

fn tail(mut rest: Cursor<'_>) -> Result<Tail, Reason> {
    let token = rest.token();
    if token.is_empty() {
        return Err(Reason::NoValue);
    }
    let value = value(token).ok_or(Reason::Value)?;
    rest.blanks();
    let stamp = match rest.peek() {
        None | Some(b'#') => None,
        Some(_) => Some(Stamp::read(rest.token()).ok_or(Reason::Timestamp)?),
    };
    rest.blanks();
    match rest.peek() {
        None => Ok(Tail { value, stamp, exemplar: false }),
        Some(b'#') => Ok(Tail { value, stamp, exemplar: true }),
        Some(_) => Err(Reason::Trailing),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[test]
    fn lines_are_numbered_and_a_last_one_without_newline_counts() {
        let lines: Vec<_> = Lines::new(b"a\n\nb").collect();
        assert_eq!(lines, [(1, &b"a"[..]), (2, &b""[..]), (3, &b"b"[..])]);
        assert_eq!(Lines::new(b"a\n").count(), 1);
        assert_eq!(Lines::new(b"").count(), 0);
    }

    fn told(line: &str, last: &str) -> String {
        match shape(line.as_bytes(), last.as_bytes()) {
            Shape::Meta { meta, name, rest } => {
                format!("{meta:?}({}|{})", name.meaning(), String::from_utf8_lossy(rest))
            }
            Shape::Sample { name, rest } => {
                format!("{}|{}", String::from_utf8_lossy(name), String::from_utf8_lossy(rest.0))
            }
            Shape::Braces { .. } => "Braces".to_owned(),
            other => format!("{other:?}"),
        }
    }

    #[rstest]
    #[case("", "Blank")]
    #[case(" \t\r", "Blank")]
    #[case("#", "Comment")]
    #[case("# a comment", "Comment")]
    #[case("#TYPE a gauge", "Comment")]
    #[case("# HELP", "Comment")]
    #[case("# EOF", "End")]
    #[case("# EOF now", "Comment")]
    #[case("# TYPE a gauge", "Type(a|gauge)")]
    #[case("  #\tTYPE   vllm:a \t gauge \r", "Type(vllm:a|gauge)")]
    #[case(r#"# TYPE "a.b" gauge"#, "Type(a.b|gauge)")]
    #[case("# HELP a some text  here", "Help(a|some text  here)")]
    #[case("# HELP a", "Help(a|)")]
    #[case("# UNIT a_seconds seconds", "Unit(a_seconds|seconds)")]
    #[case("# TYPE", "Bad(Metadata)")]
    #[case("# TYPE a", "Bad(Metadata)")]
    #[case("# TYPE a.b gauge", "Bad(Metadata)")]
    #[case(r#"# TYPE "a.b gauge"#, "Bad(Metadata)")]
    #[case("a 1", "a| 1")]
    #[case("vllm:a{x=\"y\"} 1", "vllm:a|{x=\"y\"} 1")]
    #[case(r#"{"a.b"} 1"#, "Braces")]
    #[case("a", "Bad(NoValue)")]
    #[case("a.b 1", "Bad(Name)")]
    #[case("1a 1", "Bad(Name)")]
    #[case("é 1", "Bad(Name)")]
    #[case("<html>", "Bad(Name)")]
    fn shapes(#[case] line: &str, #[case] wanted: &str) {
        // Whatever stood on the line before, the answer is the same.
        for last in ["", "a", "vllm:a", "vllm:ab", "v"] {
            assert_eq!(told(line, last), wanted, "after {last:?}");
        }
    }

    #[rstest]
    #[case(" 1", 1.0, None, false)]
    #[case("{} 1 ", 1.0, None, false)]
    #[case("{a=\"b\"}1", 1.0, None, false)]
    #[case("\t1\t5", 1.0, Some(Stamp::Whole(5)), false)]
    #[case(" 1 5.5", 1.0, Some(Stamp::Seconds(5.5)), false)]
    #[case(" 1 # {trace_id=\"a\"} 0.3 1.5", 1.0, None, true)]
    #[case(" 1 7 # broken", 1.0, Some(Stamp::Whole(7)), true)]
    fn tails(#[case] rest: &str, #[case] value: f64, #[case] stamp: Option<Stamp>, #[case] exemplar: bool) {
        let (name, tail) = body(Cursor(rest.as_bytes()), 9, &mut Vec::new()).unwrap();
        assert!(name.is_none());
        assert_eq!(tail, Tail { value, stamp, exemplar });
    }

    #[rstest]
    #[case("{}", Reason::NoValue)]
    #[case(" # {a=\"b\"} 1", Reason::Value)]
    #[case(" one", Reason::Value)]
    #[case(" 1 one", Reason::Timestamp)]
    #[case(" 1 2 3", Reason::Trailing)]
    #[case(" 1 2 three", Reason::Trailing)]
    fn bad_tails(#[case] rest: &str, #[case] reason: Reason) {
        assert_eq!(body(Cursor(rest.as_bytes()), 9, &mut Vec::new()).map(|_| ()), Err(reason));
    }
}
