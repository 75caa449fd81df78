//! Rules: the snapshot in, findings out.
//!
//! Each rule is a small file of its own with the cases on which it must fire and those on which it must not. A rule reads only the
//! [`World`], states nothing that it can not prove with a piece of evidence, and never asks what another rule found.

use crate::model::finding::{Code, Finding};
use crate::world::World;

/// One rule: the codes it can raise, and the function that looks.
pub struct Rule {
    /// Codes that it raises.
    pub codes: &'static [Code],
    /// Looks at the world and adds what it finds.
    pub check: fn(&World, &mut Vec<Finding>),
}

/// All rules.
pub const RULES: &[Rule] = &[];

/// All findings, worst first; of two with the same code, subjects and summary one stays.
pub fn diagnose(world: &World) -> Vec<Finding> {
    let mut findings = Vec::new();
    for rule in RULES {
        (rule.check)(world, &mut findings);
    }
    findings.sort_by(|a, b| a.rank().cmp(&b.rank()));
    findings.dedup_by(|a, b| a.code == b.code && a.subjects == b.subjects && a.summary == b.summary);
    findings
}
