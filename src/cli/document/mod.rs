//! The explain document: everything that is known, by subject, and the findings. A public, versioned schema
//! (`docs/schema/explain-v1.json`).
//!
//! Owns which value stands on which subject. Must not judge: states and findings come from `world` and `diagnose`.

mod autoscaler;
mod engine;
mod entry;
mod fleet;
mod front;
mod names;
mod node;
mod owners;
mod replica;
mod rollout;
mod scope;
mod service;
#[cfg(test)]
mod tests;
mod view;
mod workload;

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde::Serialize;

use entry::Subjects;
pub(crate) use entry::evidence;
pub use entry::{Entry, Ownership, Shown};
pub(crate) use scope::Index;

use crate::model::service::ServiceId;
use crate::model::{Finding, Subject};
use crate::world::{InputProblem, World};

/// Version of the schema. A new one is due only when something that a reader may rely on goes.
pub const SCHEMA_VERSION: &str = "1";

/// Everything that is known.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Document {
    schema_version: &'static str,
    now: Timestamp,
    source: &'static str,
    subjects: Subjects,
    findings: Vec<Shown>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    problems: Vec<Trouble>,
}

/// An input that could not be read.
#[derive(Debug, Clone, Serialize)]
struct Trouble {
    place: String,
    what: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    about: Option<Subject>,
}

impl From<&InputProblem> for Trouble {
    fn from(problem: &InputProblem) -> Self {
        Self { place: problem.place.clone(), what: problem.what.clone(), about: problem.about.clone() }
    }
}

impl Document {
    /// The document of a world and its findings.
    pub fn new(world: &World, findings: &[Finding]) -> Self {
        let mut subjects = Subjects::default();
        names::add(world, &mut subjects);
        service::add(world, &mut subjects);
        workload::add(world, &mut subjects);
        replica::add(world, &mut subjects);
        engine::add(world, &mut subjects);
        front::add(world, &mut subjects);
        autoscaler::add(world, &mut subjects);
        node::add(world, &mut subjects);
        rollout::add(world, &mut subjects);
        view::add(world, &mut subjects);
        fleet::add(world, &mut subjects);
        owners::add(world, &mut subjects);
        for subject in findings.iter().flat_map(|finding| &finding.subjects) {
            subjects.at(subject);
        }
        Self {
            schema_version: SCHEMA_VERSION,
            now: world.now,
            source: world.source,
            subjects,
            findings: findings.iter().map(Shown::from).collect(),
            problems: world.problems.iter().map(Trouble::from).collect(),
        }
    }

    /// The part of it that is about these model services.
    pub fn about(world: &World, findings: &[Finding], services: &BTreeSet<&ServiceId>) -> Self {
        let scope = scope::of(world, services);
        let findings: Vec<Finding> = Index::new(findings).within(&scope).into_iter().cloned().collect();
        let mut document = Self::new(world, &findings);
        let named: BTreeSet<&Subject> = findings.iter().flat_map(|finding| &finding.subjects).chain(&scope).collect();
        document.subjects.keep(|subject| named.contains(subject));
        document
    }

    /// The entry of a subject.
    pub fn subject(&self, subject: &Subject) -> Option<&Entry> {
        self.subjects.get(subject)
    }
}
