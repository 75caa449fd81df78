//! Rollout: why an update does not come through, and what it leaves behind.

mod admission;
mod deadline;
mod deadlock_gpu;
mod deadlock_volume;
mod download_stalled;
mod killed_while_loading;
mod probe_kills_busy;

use super::Rule;
use crate::model::finding::Code;

/// The rules of this family.
pub const RULES: &[Rule] = &[
    Rule { codes: &[Code::RolloutDeadlockNoSpareGpu], check: deadlock_gpu::check },
    Rule { codes: &[Code::RolloutDeadlockVolume], check: deadlock_volume::check },
    Rule { codes: &[Code::RolloutBlockedByAdmission], check: admission::check },
    Rule { codes: &[Code::KilledWhileLoading], check: killed_while_loading::check },
    Rule { codes: &[Code::ProbeKillsBusyEngine], check: probe_kills_busy::check },
    Rule { codes: &[Code::DeadlineShorterThanLoad], check: deadline::check },
    Rule { codes: &[Code::DownloadStalled], check: download_stalled::check },
];
