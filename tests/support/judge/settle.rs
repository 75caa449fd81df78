//! Sets outcomes against the deferred list: what is wrong, and the totals.

use std::collections::{BTreeMap, BTreeSet};

use super::cases::Outcome;
use super::deferred::{Deferred, place};

/// Counts of evaluated checks.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Totals {
    /// Cases of which all evaluated checks hold.
    pub(crate) whole: usize,
    /// Cases with at least one evaluated check.
    pub(crate) cases: usize,
    pub(crate) passed: usize,
    pub(crate) deferred: usize,
    pub(crate) failed: usize,
    /// Passed over: tests of their own.
    pub(crate) client: usize,
    /// Passed over: only a person can judge.
    pub(crate) reading: usize,
}

/// The result of a run over cases.
#[derive(Debug, Default)]
pub(crate) struct Settlement {
    /// By kind of case.
    pub(crate) kinds: BTreeMap<String, Totals>,
    /// Each a line for people; the run is good where there is none.
    pub(crate) faults: Vec<String>,
}

impl Settlement {
    /// Sets outcomes against the list. `known` are the ids of all cases on disk, also of those that were not run.
    pub(crate) fn of(outcomes: &[Outcome], deferred: &Deferred, known: &BTreeSet<String>) -> Self {
        let mut settled = Self::default();
        for outcome in outcomes {
            settled.add(outcome, deferred);
        }
        settled.strays(outcomes, deferred, known);
        let total = settled.total();
        if total.passed + total.deferred + total.failed == 0 {
            settled.faults.push("no check was evaluated".into());
        }
        settled
    }

    fn add(&mut self, outcome: &Outcome, deferred: &Deferred) {
        let totals = self.kinds.entry(outcome.kind.clone()).or_default();
        totals.client += outcome.client;
        totals.reading += outcome.reading.len();
        totals.cases += usize::from(!outcome.checks.is_empty());
        let whole = outcome.checks.iter().all(|check| check.verdict.is_ok());
        totals.whole += usize::from(whole && !outcome.checks.is_empty());
        let id = &outcome.id;
        if let Some(error) = &outcome.error {
            // a list of what the program cannot do yet is no excuse for a crash
            totals.failed += outcome.checks.len();
            self.faults.push(format!("{id}: all {} checks: {error}", outcome.checks.len()));
            return;
        }
        for check in &outcome.checks {
            let line = &check.line;
            match (&check.verdict, deferred.contains(id, line)) {
                (Ok(()), false) => totals.passed += 1,
                (Ok(()), true) => {
                    totals.passed += 1;
                    self.faults.push(format!("{id}: holds now, strike it from deferred.yaml: {line}"));
                }
                (Err(_), true) => totals.deferred += 1,
                (Err(found), false) => {
                    totals.failed += 1;
                    self.faults.push(format!("{id}: {line}, found: {found}"));
                }
            }
        }
    }

    /// Deferred entries that fit no evaluated check.
    fn strays(&mut self, outcomes: &[Outcome], deferred: &Deferred, known: &BTreeSet<String>) {
        for (case, line) in deferred.identities() {
            if !known.contains(case) {
                self.faults.push(format!("{case}: deferred.yaml names a case that does not exist: {line}"));
                continue;
            }
            let Some(outcome) = outcomes.iter().find(|outcome| outcome.id == *case) else {
                continue;
            };
            if outcome.checks.iter().any(|check| check.line == *line) {
                continue;
            }
            let same_place = outcome.checks.iter().find(|check| place(&check.line) == place(line));
            let there = same_place.map_or("nothing is evaluated".into(), |check| format!("{:?} stands", check.line));
            self.faults.push(format!("{case}: deferred.yaml has {line:?} where {there}"));
        }
    }

    /// The sum over kinds.
    pub(crate) fn total(&self) -> Totals {
        self.kinds.values().fold(Totals::default(), |sum, row| Totals {
            whole: sum.whole + row.whole,
            cases: sum.cases + row.cases,
            passed: sum.passed + row.passed,
            deferred: sum.deferred + row.deferred,
            failed: sum.failed + row.failed,
            client: sum.client + row.client,
            reading: sum.reading + row.reading,
        })
    }

    /// The totals as a table, and what was passed over.
    pub(crate) fn table(&self) -> String {
        let mut rows = vec![["kind", "cases", "passed", "deferred", "failed"].map(String::from)];
        let total = ("all".to_owned(), self.total());
        for (kind, row) in self.kinds.iter().chain([(&total.0, &total.1)]) {
            let counts = [row.passed, row.deferred, row.failed].map(|count| count.to_string());
            let [passed, deferred, failed] = counts;
            rows.push([kind.clone(), format!("{}/{}", row.whole, row.cases), passed, deferred, failed]);
        }
        let mut lines: Vec<_> = rows.iter().map(|[a, b, c, d, e]| format!("{a:<10}{b:>8}{c:>8}{d:>10}{e:>8}")).collect();
        let total = total.1;
        lines.push(format!("passed {} / deferred {} / failed {}", total.passed, total.deferred, total.failed));
        lines.push(format!(
            "client checks: {}, each is a test of its own, named by case id, in the suite that comes with live sources",
            total.client
        ));
        lines.push(format!("for a person to read: {}", total.reading));
        lines.join("\n")
    }
}
