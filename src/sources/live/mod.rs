//! A live cluster: its API server, and the engines behind it.
//!
//! Owns how facts are asked for and how much of it is asked. Everything degrades part by part: what may not be read, does not answer or
//! is not there is said, and costs no neighbour. Nothing here can write: [`guard`] refuses every request that has an effect.

pub mod access;
pub mod clock;
pub mod guard;
pub mod login;
pub mod tally;
