//! The Kubernetes API: one store, served over HTTP(S) on loopback and in process as a `tower` service.

pub mod answer;
pub mod apply;
pub mod auth;
pub mod cluster;
pub mod discovery;
mod furniture;
pub mod house;
pub mod http;
pub mod kinds;
pub mod patch;
pub mod registry;
pub mod schema;
pub mod state;
pub mod status;
pub mod store;
pub mod subresources;
pub mod table;
pub mod verbs;
