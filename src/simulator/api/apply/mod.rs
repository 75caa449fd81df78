//! Who manages which field: `metadata.managedFields` and server-side apply.
//!
//! Owns the sets of fields and their bookkeeping. Must not decide who may write.

mod entries;
mod merge;
mod set;

pub use entries::{Writer, manager_from_user_agent, metadata_node, owns, same_but_times, track_update};
pub use merge::{apply, untyped};
