//! What engines say about themselves: HTTP answers, metric pages and log phrases in, one [`EngineReport`] out.
//!
//! Owns names of metrics, routes and log phrases of each engine, by release. Must not know Kubernetes beyond the container it
//! runs in, do I/O, or decide what a finding is. Kubernetes' opinion (Ready) and the engine's never merge here.
//!
//! [`EngineReport`]: crate::model::engine::EngineReport

mod case;
mod detect;
mod drain;
pub mod exposition;
mod http;
pub mod input;
mod latency;
mod load;
pub mod logs;
mod moves;
mod names;
pub mod renames;
mod report;
mod series;
mod sleep;
#[cfg(test)]
mod tests;
mod verdict;

pub use detect::{is_engine_page, kind_of_page};
pub use drain::{DrainPromise, drain_promise};
pub use input::{MetricPage, Observed};
pub use logs::{LogReading, read as read_log};
pub use names::wanted;
pub use report::report;
