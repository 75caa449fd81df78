//! Reads a page from first to last line. Owns the counting of lines: each is a sample, metadata, unwanted, a comment,
//! blank or unread.
use super::build::{Builder, Place};
use super::filter::{Filter, Wanted};
use super::labels::{RawLabel, Text};
use super::limits::Limits;
use super::page::{Counts, Format, Page};
use super::scan::{Lines, Meta, Shape, body, shape};
use super::unread::{Reason, Unread};
use super::verdict;

/// Spans into a page's texts are 32 bits; replaced bytes may treble a page's size.
const MOST_PAGE_BYTES: usize = 1 << 30;

/// Reads a metrics page, with the program's own limits. Never fails: see [`Page::verdict`] and [`Page::unread`].
pub fn read(page: &[u8], filter: &Filter<'_>) -> Page {
    read_with(page, filter, &Limits::default())
}

/// Reads a metrics page with these limits. A page of more than `limits.page_bytes` is read up to the last line
/// that ends before there.
pub fn read_with(page: &[u8], filter: &Filter<'_>, limits: &Limits) -> Page {
    let most = limits.page_bytes.min(MOST_PAGE_BYTES);
    let text = match page.split_at_checked(most) {
        Some((head, beyond)) if !beyond.is_empty() => {
            let end = memchr::memrchr(b'\n', head).map_or(0, |at| at.saturating_add(1));
            head.get(..end).unwrap_or(head)
        }
        _ => page,
    };
    let mut reader = Reader {
        builder: Builder::new(Wanted::new(filter), *limits),
        limits,
        counts: Counts::default(),
        unread: Unread::default(),
        format: Format::Text,
        ended: false,
        last: Last { name: b"", place: Ok(None) },
        labels: Vec::new(),
    };
    for (number, line) in Lines::new(text) {
        if let Err(reason) = reader.line(line) {
            reader.unread.add(number, reason, line, limits.listed);
        }
        reader.counts.lines = number;
    }
    let whole_last_line = text.is_empty() || text.ends_with(b"\n") || reader.ended;
    let verdict = verdict::judge(page, text, &reader.counts, &reader.unread);
    Page {
        store: reader.builder.finish(),
        unread: reader.unread,
        counts: reader.counts,
        format: reader.format,
        verdict,
        bytes: text.len(),
        bytes_beyond: page.len().saturating_sub(text.len()),
        whole_last_line,
    }
}

/// The name of the sample before and what was found out about it: most samples have the name of the one before.
struct Last<'a> {
    name: &'a [u8],
    place: Result<Option<Place>, Reason>,
}

struct Reader<'a, 'r> {
    builder: Builder<'r>,
    limits: &'r Limits,
    counts: Counts,
    unread: Unread,
    format: Format,
    /// Whether the line before was `# EOF`.
    ended: bool,
    last: Last<'a>,
    /// Scratch, empty between lines.
    labels: Vec<RawLabel<'a>>,
}

impl<'a> Reader<'a, '_> {
    /// Reads and counts a line; an error is for the caller to count.
    fn line(&mut self, line: &'a [u8]) -> Result<(), Reason> {
        self.ended = false;
        if line.len() > self.limits.line_bytes {
            return Err(Reason::LineTooLong);
        }
        let counter = match shape(line, self.last.name) {
            Shape::Sample { name, rest } => {
                // Looking up where a name belongs is the dear part of a line that is not wanted.
                if name != self.last.name {
                    self.last = Last { name, place: self.place(name) };
                }
                match self.last.place? {
                    None => &mut self.counts.unwanted,
                    Some(place) => {
                        self.labels.clear();
                        let (second_name, tail) = body(rest, self.limits.labels, &mut self.labels)?;
                        if second_name.is_some() {
                            return Err(Reason::Labels);
                        }
                        self.builder.sample(place, &self.labels, &tail)?;
                        self.counts.exemplars += u64::from(tail.exemplar);
                        &mut self.counts.samples
                    }
                }
            }
            Shape::Braces { rest } => {
                self.labels.clear();
                let (name, tail) = body(rest, self.limits.labels, &mut self.labels)?;
                let name = name.ok_or(Reason::NoName)?.meaning();
                match self.place(name.as_bytes())? {
                    None => &mut self.counts.unwanted,
                    Some(place) => {
                        self.builder.sample(place, &self.labels, &tail)?;
                        self.counts.exemplars += u64::from(tail.exemplar);
                        &mut self.counts.samples
                    }
                }
            }
            Shape::Meta { meta, name, rest } => match self.metadata(meta, name, rest)? {
                true => &mut self.counts.metadata,
                false => &mut self.counts.unwanted,
            },
            Shape::End => {
                self.format = Format::OpenMetrics;
                self.ended = true;
                &mut self.counts.metadata
            }
            Shape::Comment => &mut self.counts.comments,
            Shape::Blank => &mut self.counts.blank,
            Shape::Bad(reason) => return Err(reason),
        };
        *counter = counter.saturating_add(1);
        Ok(())
    }

    fn place(&mut self, name: &[u8]) -> Result<Option<Place>, Reason> {
        let name = std::str::from_utf8(name).map_err(|_| Reason::Name)?;
        if self.builder.wants(name) { self.builder.place(name) } else { Ok(None) }
    }

    /// Says whether the line's family may be wanted.
    fn metadata(&mut self, meta: Meta, name: Text<'a>, rest: &[u8]) -> Result<bool, Reason> {
        let name = name.meaning();
        if !self.builder.wants(&name) {
            return Ok(false);
        }
        // A new type may change where a name belongs.
        self.last = Last { name: b"", place: Ok(None) };
        if self.builder.declare(meta, &name, rest)? {
            self.format = Format::OpenMetrics;
        }
        Ok(true)
    }
}
