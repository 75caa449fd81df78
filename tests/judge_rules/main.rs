//! Tests the rules by which case bundles are judged, with small documents made up for the purpose.

#[path = "../support/judge/mod.rs"]
mod judge;
