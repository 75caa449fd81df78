//! modeldeck
