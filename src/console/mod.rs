//! The screen: Fleet and Model pages over one snapshot, in a terminal that is always given back as it was.
//!
//! Data runs one way: a snapshot and its findings become a [`Scene`]; keys become [`action::Action`]s that change an [`App`]; [`frame::draw`]
//! makes cells of both, and is pure. Must not judge what is seen (`diagnose` does), block on a network, or write to a cluster.
//! `ratatui` and `crossterm` are used here and nowhere else; `theme` alone names colours, `surroundings` alone reads the environment,
//! `terminal` alone switches modes.

pub mod action;
pub mod app;
pub(crate) mod cells;
pub mod frame;
pub mod keymap;
pub(crate) mod pages;
mod run;
pub mod scene;
mod screen;
pub mod surroundings;
pub mod terminal;
pub mod theme;
pub(crate) mod widgets;
pub(crate) mod words;

#[cfg(test)]
pub(crate) mod fixture;
#[cfg(test)]
mod tests;

pub use app::App;
pub use run::{ConsoleError, Feed, open, run};
pub use scene::Scene;
