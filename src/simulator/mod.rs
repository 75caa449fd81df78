//! The embedded cluster: a Kubernetes API server of our own, in real or in virtual time.
//!
//! It owns what it serves and nothing else: it never reads what [`crate::systems`] and [`crate::engines`] know, so that a mistake of
//! the reader cannot hide in the thing that the reader is tested on.

pub mod api;
pub mod clock;
pub mod faults;
pub mod ids;
pub mod serve;
