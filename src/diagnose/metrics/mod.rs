//! Metrics: pages that can not be read, names that are gone, load that is uneven.

mod load_imbalance;
mod metric_renamed;
mod metrics_unreadable;

use super::Rule;
use crate::model::finding::Code;

/// The rules of this family.
pub const RULES: &[Rule] = &[
    Rule { codes: &[Code::MetricsUnreadable], check: metrics_unreadable::check },
    Rule { codes: &[Code::MetricRenamed], check: metric_renamed::check },
    Rule { codes: &[Code::LoadImbalance], check: load_imbalance::check },
];
