//! Where facts come from: bundles (a directory of recorded facts) and live clusters.
//!
//! Owns reading, and the caps that keep reading bounded. Must not judge: what facts mean is decided in `engines`, `world` and
//! `diagnose`.

pub mod bundle;
pub mod live;
