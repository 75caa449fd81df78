//! The deferred list: what makes a run good, and how the list is written anew.

use std::collections::BTreeSet;

use rstest::rstest;

use crate::judge::cases::{Judged, Outcome};
use crate::judge::deferred::Deferred;
use crate::judge::settle::{Settlement, Totals};

/// Lines that begin with `+` hold, with `-` fail; ` action ` makes an action of it.
fn outcome(id: &str, kind: &str, checks: &[&str]) -> Outcome {
    let judged = |check: &&str| Judged {
        line: check[1..].to_owned(),
        is_action: check.contains(" action "),
        verdict: if check.starts_with('+') { Ok(()) } else { Err("something else".into()) },
    };
    let checks = checks.iter().map(judged).collect();
    Outcome { id: id.into(), kind: kind.into(), error: None, checks, client: 0, reading: vec![] }
}

fn list(text: &str) -> Deferred {
    Deferred::parse(text).unwrap()
}

fn known(ids: &[&str]) -> BTreeSet<String> {
    ids.iter().map(|id| (*id).to_owned()).collect()
}

const LIST: &str = "scale:\n  T1:\n  - 1 aa state on fleet\n  - 2 bb value running on fleet\n";

#[rstest]
#[case::all_as_listed(&["-1 aa state on fleet", "-2 bb value running on fleet", "+3 cc words on fleet"], &[])]
#[case::fails_and_is_not_listed(
    &["-1 aa state on fleet", "-2 bb value running on fleet", "-3 cc words on fleet"],
    &["T1: 3 cc words on fleet, found: something else"]
)]
#[case::listed_and_holds(
    &["+1 aa state on fleet", "-2 bb value running on fleet"],
    &["T1: holds now, strike it from deferred.yaml: 1 aa state on fleet"]
)]
#[case::edited(
    &["-1 aa state on fleet", "+2 dd value waiting on fleet"],
    &["T1: deferred.yaml has \"2 bb value running on fleet\" where \"2 dd value waiting on fleet\" stands"]
)]
#[case::gone(
    &["-1 aa state on fleet"],
    &["T1: deferred.yaml has \"2 bb value running on fleet\" where nothing is evaluated"]
)]
fn faults_of_a_run(#[case] checks: &[&str], #[case] wanted: &[&str]) {
    let settled = Settlement::of(&[outcome("T1", "scale", checks)], &list(LIST), &known(&["T1"]));
    assert_eq!(settled.faults, wanted);
}

#[test]
fn a_list_is_no_excuse_for_a_crash() {
    let mut crashed = outcome("T1", "scale", &["-1 aa state on fleet", "-2 bb value running on fleet"]);
    crashed.error = Some("no document: exit status 101".into());
    let settled = Settlement::of(&[crashed], &list(LIST), &known(&["T1"]));
    assert_eq!(settled.faults, ["T1: all 2 checks: no document: exit status 101"]);
    assert_eq!(settled.total().failed, 2);
}

#[test]
fn cases_that_are_not_run_are_left_alone_unless_they_do_not_exist() {
    let ran = [outcome("T2", "scale", &["+1 aa state on fleet"])];
    let faults = |ids: &[&str]| Settlement::of(&ran, &list(LIST), &known(ids)).faults.len();
    assert_eq!(faults(&["T1", "T2"]), 0);
    assert_eq!(faults(&["T2"]), 2);
}

#[test]
fn a_run_without_checks_is_not_good() {
    let settled = Settlement::of(&[outcome("T1", "scale", &[])], &list("{}"), &known(&["T1"]));
    assert_eq!(settled.faults, ["no check was evaluated"]);
}

#[test]
fn totals_are_counted_by_kind() {
    let mut first = outcome("T1", "scale", &["-1 aa state on fleet", "-2 bb value running on fleet", "+3 x", "-4 x"]);
    first.client = 2;
    first.reading = vec!["read me".into()];
    let outcomes = [first, outcome("T2", "gpu", &["+1 x", "+2 x"]), outcome("T3", "gpu", &[])];
    let settled = Settlement::of(&outcomes, &list(LIST), &known(&["T1", "T2", "T3"]));
    let scale = Totals { whole: 0, cases: 1, passed: 1, deferred: 2, failed: 1, client: 2, reading: 1 };
    let gpu = Totals { whole: 1, cases: 1, passed: 2, ..Totals::default() };
    let all = Totals { whole: 1, cases: 2, passed: 3, deferred: 2, failed: 1, client: 2, reading: 1 };
    assert_eq!((settled.kinds["scale"], settled.kinds["gpu"], settled.total()), (scale, gpu, all));
    let table = settled.table();
    assert!(table.contains("passed 3 / deferred 2 / failed 1") && table.contains("client checks: 2,"), "{table}");
}

#[rstest]
#[case::list("- T1")]
#[case::no_cases("scale: T1")]
#[case::no_lines("scale:\n  T1: []")]
#[case::line_is_a_number("scale:\n  T1:\n  - 1")]
#[case::twice("scale:\n  T1: [1 aa state]\ngpu:\n  T1: [1 aa state]")]
#[case::twice_in_one("scale:\n  T1: [1 aa state, 1 aa state]")]
#[case::capability_twice("scale:\n  T1: [1 aa state]\nscale:\n  T2: [1 aa state]")]
#[case::not_yaml("scale: [")]
fn not_a_list(#[case] text: &str) {
    assert!(Deferred::parse(text).is_err());
}

#[test]
fn the_list_reads_as_it_was_written() {
    let text = "routing:\n  T1:\n  - 2 bb finding a|b on pod/lab/m-0 and 2 more\n  - 10 cc owner spec.replicas on fleet\n";
    let hard = "  '1':\n  - '1 00 words on pod/lab/it''s: # odd'\n";
    let written = list(&format!("{text}{hard}")).render();
    assert!(written.starts_with('#') && written.ends_with(&format!("routing:\n{hard}{}", &text[9..])), "{written}");
    assert_eq!(list(&written), list(&format!("{text}{hard}")));
    assert_eq!(list(&Deferred::default().render()), Deferred::default());
}

#[test]
fn rewriting_defers_what_may_be_deferred() {
    let mut crashed = outcome("T4", "scale", &["-1 x"]);
    crashed.error = Some("no document".into());
    let outcomes = [
        outcome("T1", "readiness", &["-1 aa state on fleet", "-2 bb action drain on fleet", "+3 cc words on fleet"]),
        outcome("T2", "gpu", &["-1 aa state on fleet", "-2 bb action drain on fleet", "+3 cc words on fleet"]),
        outcome("T3", "metrics", &["-1 aa value running on fleet"]),
        crashed,
    ];
    let old = list("cards:\n  T2: [1 aa state on fleet, 3 cc words on fleet]\nscale:\n  T4: [1 old x]\n  T5: [1 old x]\n  T6: [1 old x]\n");
    let (new, refused) = old.rewritten(&known(&["T1", "T2", "T3", "T4", "T5"]), &outcomes);
    let wanted = list(
        "actions:\n  T1: [2 bb action drain on fleet]\n  T2: [2 bb action drain on fleet]\n\
         cards:\n  T2: [1 aa state on fleet]\nscale:\n  T4: [1 old x]\n  T5: [1 old x]\n",
    );
    assert_eq!(new, wanted);
    let refused: Vec<_> = refused.iter().map(|(case, line)| (case.as_str(), line.as_str())).collect();
    assert_eq!(refused, [("T1", "1 aa state on fleet"), ("T3", "1 aa value running on fleet")]);
    let (fresh, _) = Deferred::default().rewritten(&known(&["T2"]), &outcomes[1..2]);
    assert_eq!(fresh, list("actions:\n  T2: [2 bb action drain on fleet]\ngpu:\n  T2: [1 aa state on fleet]\n"));
}
