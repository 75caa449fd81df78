//! modeldeck: a terminal operations console for LLM serving on Kubernetes.
//!
//! Data runs one way, and each module knows only those above it in this list (`tests/architecture.rs` holds it):
//!
//! | module | owns |
//! |---|---|
//! | [`model`] | the vocabulary: plain types, no I/O |
//! | [`systems`] | which objects are a model service, its roles and workloads |
//! | [`engines`] | what engines say: HTTP answers, metric pages, log phrases |
//! | [`world`] | the immutable snapshot made of all facts |
//! | [`diagnose`] | rules: the snapshot in, findings out |
//! | [`sources`] | where facts come from |
//! | [`simulator`] | the embedded cluster |
//! | [`console`] | the screen |
//! | [`cli`] | the commands |
//!
//! `model`, `systems`, `engines`, `world` and `diagnose` are pure: no I/O, no clock (time is an argument), no randomness.

pub mod cli;
#[cfg(feature = "tui")]
pub mod console;
pub mod diagnose;
pub mod engines;
pub mod model;
pub mod simulator;
pub mod sources;
pub mod systems;
pub mod world;
