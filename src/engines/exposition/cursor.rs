//! A cursor over the bytes of one line. Owns: the few moves that the scanner is made of. Never panics, never copies.

/// A space or a tab: the only blanks inside a line that the format knows.
pub(super) const fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

/// May stand in an unquoted metric name after the first byte; the first byte must also be no digit.
pub(super) const fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b':')
}

/// Takes blanks off both ends, and carriage returns off the right one (CRLF pages).
pub(super) fn trim(mut text: &[u8]) -> &[u8] {
    while let [first, rest @ ..] = text
        && is_blank(*first)
    {
        text = rest;
    }
    while let [rest @ .., last] = text
        && (is_blank(*last) || *last == b'\r')
    {
        text = rest;
    }
    text
}

/// What is still to be read of a line.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cursor<'a>(pub(super) &'a [u8]);

impl<'a> Cursor<'a> {
    /// The next byte, left where it is.
    pub(super) fn peek(&self) -> Option<u8> {
        self.0.first().copied()
    }

    /// Takes `wanted` if it comes next, and says whether it did.
    pub(super) fn take(&mut self, wanted: u8) -> bool {
        match self.0 {
            [first, rest @ ..] if *first == wanted => {
                self.0 = rest;
                true
            }
            _ => false,
        }
    }

    /// Steps over blanks, and says whether there were any.
    pub(super) fn blanks(&mut self) -> bool {
        !self.take_while(is_blank).is_empty()
    }

    /// Takes the bytes for which `keep` holds; may be none.
    pub(super) fn take_while(&mut self, keep: impl Fn(u8) -> bool) -> &'a [u8] {
        let end = self.0.iter().position(|byte| !keep(*byte)).unwrap_or(self.0.len());
        self.take_bytes(end)
    }

    /// Takes the next `count` bytes, or what there is.
    pub(super) fn take_bytes(&mut self, count: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at_checked(count).unwrap_or((self.0, &[]));
        self.0 = rest;
        taken
    }

    /// Takes all up to the next blank or the end; may be nothing.
    pub(super) fn token(&mut self) -> &'a [u8] {
        self.take_while(|byte| !is_blank(byte))
    }

    /// Takes an unquoted name, which begins with no digit; `None` if there is none here.
    pub(super) fn name(&mut self) -> Option<&'a [u8]> {
        match self.peek() {
            Some(first) if is_name_byte(first) && !first.is_ascii_digit() => Some(self.take_while(is_name_byte)),
            _ => None,
        }
    }
}
