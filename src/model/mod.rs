//! The vocabulary of the house: plain types that every other module speaks.
//!
//! Owns the words of the product (replica, stage, funnel, finding, writer, evidence …) and the slim form of Kubernetes
//! objects. Must not do I/O, look at a clock, or judge: what the facts mean is decided in `engines`, `world` and `diagnose`.

pub mod engine;
pub mod evidence;
pub mod finding;
pub mod funnel;
pub mod ladder;
pub mod object;
pub mod service;
pub mod state;
pub mod subject;
pub mod text;
pub mod time;
pub mod unknown;
pub mod value;
pub mod writer;

pub use evidence::{Evidence, Fact, Place};
pub use finding::{Code, Finding, Severity};
pub use subject::{Subject, kind_of_resource};
pub use unknown::{Known, Unknown};
