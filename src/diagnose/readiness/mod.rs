//! Readiness and engine: where Kubernetes and the engine disagree about whether a replica serves.

mod dead_endpoint;
mod engine_hung;
mod health_false_negative;
mod port_closed;
mod readiness_gate;
mod selector_overlap;
mod sleeping_endpoint;
mod status_contradiction;

use super::Rule;
use crate::model::finding::Code;

/// The rules of this family.
pub const RULES: &[Rule] = &[
    Rule { codes: &[Code::EngineHung], check: engine_hung::check },
    Rule { codes: &[Code::DeadEndpointInRotation], check: dead_endpoint::check },
    Rule { codes: &[Code::SleepingEndpointInRotation], check: sleeping_endpoint::check },
    Rule { codes: &[Code::HealthFalseNegative], check: health_false_negative::check },
    Rule { codes: &[Code::ReadyButPortClosed], check: port_closed::check },
    Rule { codes: &[Code::StatusContradiction], check: status_contradiction::check },
    Rule { codes: &[Code::ReadinessGateUnmet], check: readiness_gate::check },
    Rule { codes: &[Code::SelectorOverlap], check: selector_overlap::check },
];
