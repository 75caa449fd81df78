//! Scaling: who sets the number of replicas, whether that works, and whether it does what it is meant to.

mod at_max;
mod controller_down;
mod flapping;
mod hpa_edited;
mod keda_state;
#[cfg(test)]
mod kit;
mod leftover;
mod metric_as_zero;
mod metric_missing;
mod no_wake;
mod overshoot;
mod scale_up_lost;
mod target;
mod two_writers;
mod words;
mod wrong_level;

use super::Rule;
use crate::model::finding::Code;

/// The rules of this family.
pub const RULES: &[Rule] = &[
    Rule { codes: &[Code::TwoWriters], check: two_writers::check },
    Rule { codes: &[Code::ReplicasFlapping], check: flapping::check },
    Rule { codes: &[Code::ScaledAtWrongLevel], check: wrong_level::check },
    Rule { codes: &[Code::ScaleTargetNotScalable, Code::ScaleTargetWithoutSelector, Code::HpaTargetMissing], check: target::check },
    Rule { codes: &[Code::HpaMetricMissing], check: metric_missing::check },
    Rule { codes: &[Code::MetricMissingReadAsZero], check: metric_as_zero::check },
    Rule { codes: &[Code::HpaAtMax], check: at_max::check },
    Rule { codes: &[Code::ScaleUpLost], check: scale_up_lost::check },
    Rule { codes: &[Code::OvershootRisk], check: overshoot::check },
    Rule { codes: &[Code::KedaPaused, Code::KedaFallback], check: keda_state::check },
    Rule { codes: &[Code::KedaHpaEdited], check: hpa_edited::check },
    Rule { codes: &[Code::NoWakeSignalAtZero], check: no_wake::check },
    Rule { codes: &[Code::DeprecatedAutoscalerLeftover], check: leftover::check },
    Rule { codes: &[Code::ControllerDown], check: controller_down::check },
];
