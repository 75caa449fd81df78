//! Puts lines together into the store of a page: which family a sample belongs to, and texts kept once.
use super::filter::Wanted;
use super::kind::{Kind, Role, split_ending};
use super::labels::{RawLabel, Text};
use super::limits::Limits;
use super::scan::{Meta, Tail};
use super::store::{FamilyRecord, LabelSpan, SampleRecord, Span, Store};
use super::unread::Reason;

/// A page in the making.
pub(super) struct Builder<'f> {
    store: Store,
    wanted: Wanted<'f>,
    limits: Limits,
    /// One for each family in the store.
    marks: Vec<Mark>,
}

/// What is to be known of a family only while the page is read.
#[derive(Debug, Clone, Copy, Default)]
struct Mark {
    /// It had a TYPE line.
    typed: bool,
    /// The family that has its samples, if it was declared under a name that they do not have
    /// (OpenMetrics `foo` for `foo_total`).
    goes_by: Option<u32>,
}

/// Where the samples with one name go.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    family: u32,
    role: Role,
    name: Span,
}

impl<'f> Builder<'f> {
    pub(super) fn new(wanted: Wanted<'f>, limits: Limits) -> Self {
        Self { store: Store::default(), wanted, limits, marks: Vec::new() }
    }

    /// Whether lines with this name, in a sample or in metadata, are worth reading on.
    pub(super) fn wants(&self, name: &str) -> bool {
        self.wanted.line(name)
    }

    /// Takes in a TYPE, HELP or UNIT line of a family that may be wanted. Says whether the page is OpenMetrics by it.
    pub(super) fn declare(&mut self, meta: Meta, name: &str, rest: &[u8]) -> Result<bool, Reason> {
        let kind = match meta {
            Meta::Type => Kind::from_word(rest).ok_or(Reason::Metadata)?,
            Meta::Help | Meta::Unit => Kind::Untyped,
        };
        let id = self.family_id(name, Kind::Untyped)?;
        let text = match meta {
            Meta::Type => Span::default(),
            Meta::Help | Meta::Unit => self.keep(Text { raw: rest, escaped: memchr::memchr(b'\\', rest).is_some() }, None),
        };
        let at = id as usize;
        let (Some(family), Some(mark)) = (self.store.families.get_mut(at), self.marks.get_mut(at)) else {
            return Err(Reason::TooManyFamilies);
        };
        match meta {
            Meta::Type if mark.typed && family.kind != kind => return Err(Reason::TypeAgain),
            Meta::Type => {
                family.kind = kind;
                mark.typed = true;
            }
            Meta::Help => family.help = family.help.or(Some(text)),
            Meta::Unit => family.unit = family.unit.or(Some(text)),
        }
        Ok(meta == Meta::Unit || kind.only_openmetrics())
    }

    /// Where samples of this name go; `None` if their family is not wanted after all.
    pub(super) fn place(&mut self, name: &str) -> Result<Option<Place>, Reason> {
        let (family_name, kind, role, parent) = self.belongs(name);
        if !self.wanted.family(family_name) {
            return Ok(None);
        }
        let family = self.family_id(family_name, kind)?;
        if let Some(parent) = parent {
            self.inherit(family, parent);
        }
        Ok(Some(Place { family, role, name: self.keep(Text::bare(name.as_bytes()), None) }))
    }

    /// The family of a sample name: its name and kind, the sample's role, and the declared family that it takes its
    /// metadata from if that goes by another name. An own TYPE line wins over the ending; an ending counts only if the
    /// base was declared with a kind that has it.
    fn belongs<'n>(&self, name: &'n str) -> (&'n str, Kind, Role, Option<u32>) {
        let ending = split_ending(name);
        let own = self.declared(name);
        if let Some((base, ending)) = ending {
            let parent = self.declared(base).filter(|(_, kind)| ending.kinds.contains(kind));
            if ending.role == Role::Created {
                // Text pages declare it as a gauge of its own, beside `foo` or `foo_total`. Declared as anything else it
                // is what it says: `jobs_created` may well count jobs.
                let gauge = own.is_none_or(|(_, kind)| matches!(kind, Kind::Gauge | Kind::Untyped));
                let counter = || self.declared(&format!("{base}_total")).filter(|(_, kind)| kind.has_created());
                if gauge && (parent.is_some() || counter().is_some()) {
                    return (name, Kind::Gauge, Role::Created, None);
                }
            } else if let (None, Some((id, kind))) = (own, parent) {
                return match ending.in_family_name {
                    true => (name, kind, ending.role, Some(id)),
                    false => (base, kind, ending.role, None),
                };
            }
        }
        (name, own.map_or(Kind::Untyped, |(_, kind)| kind), Role::Value, None)
    }

    /// A family that had a TYPE line.
    fn declared(&self, name: &str) -> Option<(u32, Kind)> {
        let id = *self.store.index.get(name)?;
        let mark = self.marks.get(id as usize)?;
        self.store.families.get(id as usize).filter(|_| mark.typed).map(|family| (id, family.kind))
    }

    fn family_id(&mut self, name: &str, kind: Kind) -> Result<u32, Reason> {
        if let Some(id) = self.store.index.get(name) {
            return Ok(*id);
        }
        let id = self.store.families.len();
        if id >= self.limits.families {
            return Err(Reason::TooManyFamilies);
        }
        let number = u32::try_from(id).map_err(|_| Reason::TooManyFamilies)?;
        self.store.families.push(FamilyRecord { kind, help: None, unit: None, start: 0, len: 0 });
        self.marks.push(Mark::default());
        self.store.index.insert(name.into(), number);
        Ok(number)
    }

    fn inherit(&mut self, family: u32, parent: u32) {
        let Some(from) = self.store.families.get(parent as usize).copied() else {
            return;
        };
        if let Some(to) = self.store.families.get_mut(family as usize) {
            to.help = to.help.or(from.help);
            to.unit = to.unit.or(from.unit);
        }
        if let Some(mark) = self.marks.get_mut(parent as usize) {
            mark.goes_by = Some(family);
        }
    }

    /// Takes in a sample.
    pub(super) fn sample(&mut self, place: Place, labels: &[RawLabel<'_>], tail: &Tail) -> Result<(), Reason> {
        if self.store.samples.len() >= self.limits.samples {
            return Err(Reason::TooManySamples);
        }
        let (texts_before, labels_before) = (self.store.texts.len(), self.store.labels.len());
        let before = self.store.samples.last().map_or((0, 0), |last| (last.labels_start, last.labels_len));
        for (position, label) in labels.iter().enumerate() {
            // Neighbours mostly differ in one label, so what stood at the same place before is the first guess.
            let guess = (position < before.1 as usize)
                .then(|| self.store.labels.get((before.0 as usize).saturating_add(position)).copied())
                .flatten();
            let name = self.keep(label.name, guess.map(|label| label.name));
            let value = self.keep(label.value, guess.map(|label| label.value));
            self.store.labels.push(LabelSpan { name, value });
        }
        if !self.sort_labels(labels_before) {
            self.store.labels.truncate(labels_before);
            self.store.texts.truncate(texts_before);
            return Err(Reason::DuplicateLabel);
        }
        let (Ok(labels_start), Ok(labels_len)) = (u32::try_from(labels_before), u32::try_from(labels.len())) else {
            return Err(Reason::TooManyLabels);
        };
        self.store.samples.push(SampleRecord {
            name: place.name,
            value: tail.value,
            stamp: tail.stamp,
            labels_start,
            labels_len,
            family: place.family,
            role: place.role,
        });
        if let Some(family) = self.store.families.get_mut(place.family as usize) {
            family.len = family.len.saturating_add(1);
        }
        Ok(())
    }

    /// Sorts the labels from `start` on by name; says whether no name is there twice.
    fn sort_labels(&mut self, start: usize) -> bool {
        let texts = &self.store.texts;
        let name = |label: &LabelSpan| texts.get(label.name.start as usize..label.name.end as usize).unwrap_or_default();
        let Some(labels) = self.store.labels.get_mut(start..) else {
            return true;
        };
        if labels.is_sorted_by(|a, b| name(a) < name(b)) {
            return true;
        }
        labels.sort_unstable_by(|a, b| name(a).cmp(name(b)));
        labels.is_sorted_by(|a, b| name(a) < name(b))
    }

    /// Keeps a text, or uses `guess` again if it is the same text.
    fn keep(&mut self, text: Text<'_>, guess: Option<Span>) -> Span {
        if let Some(guess) = guess
            && !text.escaped
            && self.store.text(guess).as_bytes() == text.raw
        {
            return guess;
        }
        let start = self.store.texts.len();
        match std::str::from_utf8(text.raw) {
            Ok(plain) if !text.escaped => self.store.texts.push_str(plain),
            _ => self.store.texts.push_str(&text.meaning()),
        }
        // The page cap keeps all texts well below 4 GiB; see `read_with`.
        let span = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
        Span { start: span(start), end: span(self.store.texts.len()) }
    }

    /// Gives each family its samples. A family without any stays if the page declared it, unless its samples go by
    /// another name or it is not wanted.
    pub(super) fn finish(mut self) -> Store {
        let (families, marks, wanted) = (&mut self.store.families, &self.marks, &self.wanted);
        let has_samples = |id: u32| families.get(id as usize).is_some_and(|family| family.len > 0);
        self.store.index.retain(|name, id| {
            let (Some(family), Some(mark)) = (families.get(*id as usize), marks.get(*id as usize)) else {
                return false;
            };
            let declared = (mark.typed || family.help.is_some()) && !mark.goes_by.is_some_and(has_samples);
            family.len > 0 || (declared && wanted.declared(name, family.kind))
        });
        let mut start = 0_u32;
        for family in families.iter_mut() {
            family.start = start;
            start = start.saturating_add(std::mem::take(&mut family.len));
        }
        self.store.order = vec![0; self.store.samples.len()];
        for (number, sample) in self.store.samples.iter().enumerate() {
            let Some(family) = families.get_mut(sample.family as usize) else {
                continue;
            };
            let at = family.start.saturating_add(family.len) as usize;
            family.len = family.len.saturating_add(1);
            if let (Some(slot), Ok(number)) = (self.store.order.get_mut(at), u32::try_from(number)) {
                *slot = number;
            }
        }
        self.store
    }
}
