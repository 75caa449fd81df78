//! modeldeck
pub mod engines;
