//! Requests as Kubernetes reads them: paths, queries, accepted forms, bodies.
//!
//! Owns the reading and its errors. Must not decide or answer.

pub mod accept;
pub mod body;
pub mod protobuf;
pub mod query;
pub mod target;

pub use accept::{Accept, Shape};
pub use query::Query;
pub use target::{Asked, Target, asked};
