//! Serving systems: which objects are one model service, which roles it has, which workloads and pods belong to them.
//!
//! One file a system, each behind [`System`]. Pure: objects in, claims out. A claim says who belongs together and what shows it; how
//! many of them serve is counted in `world`.

pub mod owned;
pub mod owners;
pub mod plain;
pub mod recognise;
pub mod selection;
pub mod units;

use std::collections::{BTreeMap, BTreeSet};

use crate::model::Subject;
use crate::model::object::Catalogue;
use crate::model::service::Claim;
use units::{Unit, units};

/// What all adapters look at, gathered once.
pub struct Seen<'a> {
    /// All objects.
    pub objects: &'a Catalogue,
    /// Workloads and lone pods that run an engine.
    pub units: Vec<Unit>,
    /// Autoscalers by what they scale.
    pub autoscalers: BTreeMap<Subject, Vec<Subject>>,
}

impl<'a> Seen<'a> {
    /// Gathers it.
    pub fn new(objects: &'a Catalogue) -> Self {
        Self { objects, units: units(objects), autoscalers: objects.autoscalers() }
    }
}

/// A serving system's adapter.
pub trait System: Sync {
    /// Its name on screen and in `system/namespace/name`.
    fn name(&self) -> &'static str;

    /// The kinds that it reads, as (API group, kind). Sources watch the union.
    fn kinds(&self) -> &'static [(&'static str, &'static str)];

    /// The model services that it sees. What is in `taken` belongs to a system that was asked before and is left alone.
    fn claim(&self, seen: &Seen, taken: &BTreeSet<Subject>) -> Vec<Claim>;
}

/// All systems, in the order in which they are asked: a system's own objects first, plain last.
pub const SYSTEMS: &[&dyn System] = &[&owned::Owned, &plain::Plain];

/// All model services, in the order of their identity.
pub fn claims(objects: &Catalogue) -> Vec<Claim> {
    let seen = Seen::new(objects);
    let mut taken = BTreeSet::new();
    let mut claims = Vec::new();
    for system in SYSTEMS {
        let more = system.claim(&seen, &taken);
        for claim in &more {
            for role in &claim.roles {
                taken.extend(role.workloads.iter().cloned());
                taken.extend(role.replicas.iter().flat_map(|replica| replica.pods.iter().cloned()));
            }
        }
        claims.extend(more);
    }
    claims.sort_by(|a, b| a.id.cmp(&b.id));
    claims
}
