//! The caps that keep a hostile or broken page small. Each one that bites is counted in the page, and none is fatal.

/// How much of a page is read and kept. [`Limits::default`] is what the program uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of a page that are read; the rest is told by `Page::bytes_beyond`.
    pub page_bytes: usize,
    /// Bytes of a line; a longer line is unread.
    pub line_bytes: usize,
    /// Samples that are kept; each further one is unread.
    pub samples: usize,
    /// Families that are kept; a line that would begin a further one is unread.
    pub families: usize,
    /// Labels of one sample; a sample with more is unread.
    pub labels: usize,
    /// Unread lines that are listed with their text; all are counted.
    pub listed: usize,
}

impl Default for Limits {
    /// 32 MiB a page, 64 KiB a line, 200,000 samples, 20,000 families, 128 labels, 20 listed lines.
    /// For comparison: vLLM 0.33 with 4 engine ranks has 1,576 samples in 76 families, so 16 ranks have some 6,000.
    fn default() -> Self {
        Self { page_bytes: 32 << 20, line_bytes: 64 << 10, samples: 200_000, families: 20_000, labels: 128, listed: 20 }
    }
}
