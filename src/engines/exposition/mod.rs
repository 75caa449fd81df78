//! The one place where Prometheus and OpenMetrics text pages are read.
//!
//! Owns: the line scanner, the name filter, the caps, the [`Page`] that comes out of it, histograms and
//! their arithmetic, and the [`raw`] view that hands clean lines to the crate `prometheus-parse`.
//! Must not: fetch pages, look at a clock, know any engine's metric names, or drop anything without counting it.
//!
//! A page is bytes from a stranger. Nothing in here fails on it: what cannot be read is counted, and the first
//! such lines are kept with their number and the reason ([`Page::unread`]). Label values stay as the page
//! wrote them (unescaped), so whoever draws them must make them safe for a terminal.
//!
//! ```
//! use modeldeck::engines::exposition::{Filter, read};
//!
//! let page = read(b"# TYPE vllm:num_requests_running gauge\nvllm:num_requests_running{engine=\"0\"} 3\n", &Filter::All);
//! let running: f64 = page.family("vllm:num_requests_running").map(|sample| sample.value()).sum();
//! assert_eq!(running, 3.0);
//! ```
mod build;
mod cursor;
mod filter;
mod histogram;
mod kind;
mod labels;
mod limits;
mod number;
mod page;
#[cfg(test)]
mod properties;
pub mod raw;
mod read;
mod scan;
mod store;
#[cfg(test)]
mod tests;
mod unread;
mod verdict;

pub use filter::Filter;
pub use histogram::{Bucket, Histogram, Histograms, LabelSet};
pub use kind::{Kind, Role};
pub use limits::Limits;
pub use page::{Counts, Family, Format, Page, Sample};
pub use read::{read, read_with};
pub use unread::{Reason, Unread, UnreadLine};
pub use verdict::{NotMetrics, Verdict};
