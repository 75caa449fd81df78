//! Pieces that pages are made of. They know text, columns and lines, and no word of the domain.

pub(crate) mod columns;
pub(crate) mod document;
