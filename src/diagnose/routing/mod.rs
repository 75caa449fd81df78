//! Routing: what stands between a Ready replica and a request.

mod epp_without_leader;
mod pool_not_accepted;
mod pool_selects_nothing;
mod port_mismatch;
mod proof;
mod ready_not_listed;
mod role_down;
mod route_not_accepted;
mod router_down;
mod router_metrics_stale;
mod router_sees_fewer;
mod slice_not_ready;

use super::Rule;
use crate::model::finding::Code;

/// The rules of this family.
pub const RULES: &[Rule] = &[
    Rule { codes: &[Code::ReadyNotListed], check: ready_not_listed::check },
    Rule { codes: &[Code::PortMismatch], check: port_mismatch::check },
    Rule { codes: &[Code::SliceIncludesNotReady], check: slice_not_ready::check },
    Rule { codes: &[Code::PoolNotAccepted], check: pool_not_accepted::check },
    Rule { codes: &[Code::PoolSelectsNothing], check: pool_selects_nothing::check },
    Rule { codes: &[Code::RouteNotAccepted], check: route_not_accepted::check },
    Rule { codes: &[Code::RouterDown], check: router_down::check },
    Rule { codes: &[Code::RouterSeesFewer], check: router_sees_fewer::check },
    Rule { codes: &[Code::RouterMetricsStale], check: router_metrics_stale::check },
    Rule { codes: &[Code::RoleDown], check: role_down::check },
    Rule { codes: &[Code::EppWithoutLeader], check: epp_without_leader::check },
];
