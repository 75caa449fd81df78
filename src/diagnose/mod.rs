//! Rules: the snapshot in, findings out.
//!
//! Each rule is a small file of its own with the cases on which it must fire and those on which it must not. A rule reads only the
//! [`World`], states nothing that it can not prove with a piece of evidence, and never asks what another rule found.

pub mod drain;
pub mod gpu;
pub mod headline;
pub mod metrics;
pub mod readiness;
pub mod rollout;
pub mod routing;
pub mod scaling;
mod support;
#[cfg(test)]
pub(crate) mod testkit;

use crate::model::finding::{Code, Finding};
use crate::world::World;

/// One rule: the codes it can raise, and the function that looks.
pub struct Rule {
    /// Codes that it raises.
    pub codes: &'static [Code],
    /// Looks at the world and adds what it finds.
    pub check: fn(&World, &mut Vec<Finding>),
}

/// All rules, by family. A family's list stands in its own module.
pub const FAMILIES: &[&[Rule]] =
    &[readiness::RULES, routing::RULES, rollout::RULES, scaling::RULES, drain::RULES, gpu::RULES, metrics::RULES];

/// All findings, worst first; of two with the same code, subjects and summary one stays.
pub fn diagnose(world: &World) -> Vec<Finding> {
    let mut findings = Vec::new();
    for rule in FAMILIES.iter().flat_map(|family| family.iter()) {
        (rule.check)(world, &mut findings);
    }
    findings.sort_by(|a, b| a.rank().cmp(&b.rank()));
    findings.dedup_by(|a, b| a.code == b.code && a.subjects == b.subjects && a.summary == b.summary);
    findings
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn no_code_has_two_rules() {
        let mut seen = BTreeSet::new();
        for code in FAMILIES.iter().flat_map(|family| family.iter()).flat_map(|rule| rule.codes) {
            assert!(seen.insert(*code), "{code} has two rules");
        }
    }
}
