//! The three patch kinds that name what changes: JSON Patch, merge patch and strategic merge patch.
//!
//! Owns their reading and their effect on one object. Must not know kinds, versions or who owns a field: see [`super::apply`].

mod json;
mod merge;
mod strategic;

pub use json::json_patch;
pub use merge::merge_patch;
pub use strategic::strategic_patch;

use serde_json::Value;

use super::status::{ApiError, ApiResult};

/// How deep the largest patch or object may nest; deeper ones are refused before anything walks them.
pub const DEEPEST: usize = 10_000;

/// Reads a patch body that must be an object. `who` is the Go type that the real server names in its error.
fn object_body(body: &[u8]) -> ApiResult<Value> {
    let value: Value = serde_json::from_slice(body).map_err(|error| ApiError::bad_request(format!("error decoding patch: {error}")))?;
    match value {
        Value::Object(_) => Ok(value),
        _ => Err(ApiError::bad_request("error decoding patch: json: cannot unmarshal into Go value of type map[string]interface {}")),
    }
}
