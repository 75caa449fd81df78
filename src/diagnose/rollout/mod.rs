//! Rollout: why an update does not come through, and what it leaves behind.

mod admission;
mod change_reverted;
mod deadline;
mod deadlock_gpu;
mod deadlock_volume;
mod download_stalled;
mod failed_canary;
mod group_loop;
mod killed_while_loading;
mod mixed_group;
mod probe_kills_busy;
mod promotion;
mod roles_out_of_step;
mod rollback_target;
mod stale_generation;

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
    Rule { codes: &[Code::GroupRestartLoop], check: group_loop::check },
    Rule { codes: &[Code::MixedGroup], check: mixed_group::check },
    Rule { codes: &[Code::FailedCanaryHoldsGpu], check: failed_canary::check },
    Rule { codes: &[Code::WaitingForPromotion], check: promotion::check },
    Rule { codes: &[Code::RollbackTargetGone], check: rollback_target::check },
    Rule { codes: &[Code::StaleObservedGeneration], check: stale_generation::check },
    Rule { codes: &[Code::ChangeReverted], check: change_reverted::check },
    Rule { codes: &[Code::RolesOutOfStep], check: roles_out_of_step::check },
];
