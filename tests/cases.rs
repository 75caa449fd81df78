//! Runs the binary on every case bundle of `tests/data/cases` and judges what it prints.
//!
//! What is right stands in the case files alone, what cannot be right yet in `tests/data/deferred.yaml`.
//! `MODELDECK_CASES=B001,B005` runs these cases only; `MODELDECK_CASES_REWRITE=1` writes the deferred list anew.

#[path = "support/judge/mod.rs"]
mod judge;

use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::Command;

use judge::cases::{self, Outcome};
use judge::deferred::Deferred;
use judge::run;
use judge::settle::Settlement;

fn outcomes(cases: &[cases::Case]) -> Result<Vec<Outcome>, String> {
    let mut outcomes = Vec::new();
    for case in cases {
        let home = tempfile::tempdir().map_err(|error| error.to_string())?;
        let program = Command::new(env!("CARGO_BIN_EXE_modeldeck"));
        outcomes.push(cases::judge(case, |dir, now| run::explain(program, dir, now, home.path())));
    }
    Ok(outcomes)
}

fn suite() -> Result<Settlement, String> {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    let mut cases = cases::find(&data.join("cases"))?;
    let known: BTreeSet<String> = cases.iter().map(|case| case.id.clone()).collect();
    if known.len() != cases.len() {
        return Err("two cases have the same id".into());
    }
    if let Ok(only) = std::env::var("MODELDECK_CASES") {
        cases = cases::select(cases, &only)?;
    }
    let file = data.join("deferred.yaml");
    let text = fs::read_to_string(&file).map_err(|error| format!("{}: {error}", file.display()))?;
    let mut deferred = Deferred::parse(&text).map_err(|error| format!("{}: {error}", file.display()))?;
    let outcomes = outcomes(&cases)?;
    let rewrite = std::env::var("MODELDECK_CASES_REWRITE").is_ok_and(|value| value == "1");
    let mut refused = Vec::new();
    if rewrite {
        (deferred, refused) = deferred.rewritten(&known, &outcomes);
        fs::write(&file, deferred.render()).map_err(|error| format!("{}: {error}", file.display()))?;
    }
    let mut settled = Settlement::of(&outcomes, &deferred, &known);
    if !refused.is_empty() {
        settled
            .faults
            .push(format!("{} of these stay out of deferred.yaml: in cases of their kind only actions may be deferred", refused.len()));
    }
    Ok(settled)
}

#[test]
fn every_check_holds_or_is_deferred() {
    let settled = suite().unwrap();
    // not captured by the test runner: the totals are wanted in a good run too
    writeln!(std::io::stderr(), "\n{}", settled.table()).unwrap();
    assert!(settled.faults.is_empty(), "{} faults:\n{}", settled.faults.len(), settled.faults.join("\n"));
}
