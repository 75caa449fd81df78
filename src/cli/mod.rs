//! The commands.
pub mod document;
