//! The list of checks that wait for a later capability: reading it, writing it, keeping it true.
//!
//! The file groups by capability, then by case; one line is one check, as [`super::cases::line`] writes it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use serde_json::Value;

use super::cases::Outcome;

/// Kinds of cases whose checks may not be deferred, actions apart.
const FIRM_KINDS: &[&str] = &["readiness", "metrics"];

const HEAD: &str = "\
# Checks of tests/data/cases that wait for something modeldeck cannot do yet, by capability and case.
# A line: place in checks.yaml, fingerprint of what the check asks for, type, what it is about, on which subject.
# tests/cases.rs fails when a check that is not here fails, when one that is here holds, and when a line fits no check.
# MODELDECK_CASES_REWRITE=1 cargo test --test cases writes this file from what fails; read the difference before you commit it.
";

/// Case id and line of a check.
pub(crate) type Identity = (String, String);

/// Deferred checks and the capability that each waits for.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Deferred(BTreeMap<Identity, String>);

impl Deferred {
    /// Reads the file's text. Fails for other shapes and for a check that stands twice.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let root: Value = serde_saphyr::from_str(text).map_err(|error| error.to_string())?;
        let mut entries = BTreeMap::new();
        for (capability, cases) in root.as_object().ok_or("not a mapping of capabilities")? {
            for (case, lines) in cases.as_object().ok_or_else(|| format!("{capability}: not a mapping of cases"))? {
                let lines = lines.as_array().filter(|lines| !lines.is_empty());
                for line in lines.ok_or_else(|| format!("{capability}: {case}: not a list of checks"))? {
                    let line = line.as_str().ok_or_else(|| format!("{capability}: {case}: {line} is no line"))?;
                    if entries.insert((case.clone(), line.to_owned()), capability.clone()).is_some() {
                        return Err(format!("{case}: stands twice: {line}"));
                    }
                }
            }
        }
        Ok(Self(entries))
    }

    /// The file's text.
    pub(crate) fn render(&self) -> String {
        let mut groups: BTreeMap<&str, BTreeMap<&str, Vec<&str>>> = BTreeMap::new();
        for ((case, line), capability) in &self.0 {
            groups.entry(capability).or_default().entry(case).or_default().push(line);
        }
        let mut text = HEAD.to_owned();
        if groups.is_empty() {
            text.push_str("{}\n");
        }
        for (capability, cases) in groups {
            let _ = writeln!(text, "{}:", scalar(capability));
            for (case, mut lines) in cases {
                lines.sort_by_key(|line| place(line));
                let _ = writeln!(text, "  {}:", scalar(case));
                for line in lines {
                    let _ = writeln!(text, "  - {}", scalar(line));
                }
            }
        }
        text
    }

    pub(crate) fn contains(&self, case: &str, line: &str) -> bool {
        self.0.contains_key(&(case.to_owned(), line.to_owned()))
    }

    /// All entries in the order of cases.
    pub(crate) fn identities(&self) -> impl Iterator<Item = &Identity> {
        self.0.keys()
    }

    /// What the list must be for these outcomes: entries of cases that were not run, or gave no document, stay;
    /// each other failing check is deferred. Also gives the failing checks that may not be deferred.
    pub(crate) fn rewritten(&self, known: &BTreeSet<String>, outcomes: &[Outcome]) -> (Self, Vec<Identity>) {
        let judged: BTreeSet<_> = outcomes.iter().filter(|o| o.error.is_none()).map(|o| o.id.as_str()).collect();
        let stays = |case: &String| known.contains(case) && !judged.contains(case.as_str());
        let mut entries: BTreeMap<_, _> =
            self.0.iter().filter(|((case, _), _)| stays(case)).map(|(id, to)| (id.clone(), to.clone())).collect();
        let mut refused = Vec::new();
        for outcome in outcomes.iter().filter(|outcome| outcome.error.is_none()) {
            for check in outcome.checks.iter().filter(|check| check.verdict.is_err()) {
                let identity = (outcome.id.clone(), check.line.clone());
                if !check.is_action && FIRM_KINDS.contains(&outcome.kind.as_str()) {
                    refused.push(identity);
                    continue;
                }
                let by_rule = if check.is_action { "actions" } else { &outcome.kind };
                let capability = self.0.get(&identity).map_or(by_rule, String::as_str).to_owned();
                entries.insert(identity, capability);
            }
        }
        (Self(entries), refused)
    }
}

/// The number at the start of a line.
pub(crate) fn place(line: &str) -> u32 {
    line.split(' ').next().and_then(|number| number.parse().ok()).unwrap_or(u32::MAX)
}

/// A text as a YAML scalar, in quotes only where it could be read otherwise.
fn scalar(text: &str) -> String {
    let plain = text.chars().all(|c| c.is_ascii_alphanumeric() || " /._|+-".contains(c))
        && text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text.contains(|c: char| c.is_ascii_alphabetic());
    if plain { text.to_owned() } else { format!("'{}'", text.replace('\'', "''")) }
}
