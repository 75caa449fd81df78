//! What engines say about themselves: HTTP answers, metric pages and log phrases in, one [`EngineReport`] out.
//!
//! Owns names of metrics, routes and log phrases of each engine, by release. Must not know Kubernetes beyond the container it
//! runs in, do I/O, or decide what a finding is. Kubernetes' opinion (Ready) and the engine's never merge here.

pub mod exposition;
pub mod input;

pub use input::{MetricPage, Observed};
