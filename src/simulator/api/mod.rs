//! The Kubernetes API: one store, served over HTTP(S) on loopback and in process as a `tower` service.

pub mod apply;
pub mod auth;
pub mod http;
pub mod kinds;
pub mod patch;
pub mod registry;
pub mod schema;
pub mod status;
pub mod store;
