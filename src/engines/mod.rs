//! What engines, routers and exporters say about themselves, read into plain values. Pure: no I/O, no clock.
pub mod exposition;
