//! Drain and disruption: what a stop does to requests, and what keeps a pod or node from going.

mod grace_too_short;
mod kv_pending;
mod no_drain;
mod pdb_blocks;
mod settings;
mod stuck_terminating;

use super::Rule;
use crate::model::finding::Code;

/// The rules of this family.
pub const RULES: &[Rule] = &[
    Rule { codes: &[Code::GraceTooShort], check: grace_too_short::check },
    Rule { codes: &[Code::NoDrainOnSigterm], check: no_drain::check },
    Rule { codes: &[Code::PdbBlocksDrain], check: pdb_blocks::check },
    Rule { codes: &[Code::StuckTerminating], check: stuck_terminating::check },
    Rule { codes: &[Code::KvTransferPending], check: kv_pending::check },
];
