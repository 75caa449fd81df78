//! Routing: what stands between a Ready replica and a request.

mod port_mismatch;
mod ready_not_listed;
mod slice_not_ready;

use super::Rule;
use crate::model::finding::Code;

/// The rules of this family.
pub const RULES: &[Rule] = &[
    Rule { codes: &[Code::ReadyNotListed], check: ready_not_listed::check },
    Rule { codes: &[Code::PortMismatch], check: port_mismatch::check },
    Rule { codes: &[Code::SliceIncludesNotReady], check: slice_not_ready::check },
];
