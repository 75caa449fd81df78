//! Running a program: which ends count, and what it gets.
#![cfg(unix)]

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use rstest::rstest;

use crate::judge::run::{LIMIT, explain, finish};

fn shell(script: &str) -> Command {
    let mut command = Command::new("/bin/sh");
    command.args(["-c", script, "sh"]);
    command
}

#[rstest]
#[case::good("echo {}", "{}\n")]
#[case::findings_are_no_failure("echo {}; exit 3", "{}\n")]
#[case::stderr_does_not_matter("echo warning >&2; echo {}", "{}\n")]
#[case::no_input("cat; echo {}", "{}\n")]
#[case::much_output("head -c 300000 /dev/zero | tr '\\0' x", &"x".repeat(300_000))]
fn output_that_counts(#[case] script: &str, #[case] wanted: &str) {
    assert_eq!(finish(shell(script), LIMIT).as_deref(), Ok(wanted));
}

#[rstest]
#[case::panic("echo {}; echo 'thread panicked' >&2; exit 101", "101 (thread panicked)")]
#[case::not_found("echo {}; exit 127", "127")]
#[case::killed("echo {}; kill -9 $$", "signal: 9")]
#[case::not_utf8("printf '\\377'", "not UTF-8")]
fn output_that_does_not_count(#[case] script: &str, #[case] told: &str) {
    let found = finish(shell(script), LIMIT).unwrap_err();
    assert!(found.contains(told), "{found}");
}

#[test]
fn a_late_program_is_stopped() {
    let found = finish(shell("echo {}; exec sleep 600"), Duration::from_millis(50)).unwrap_err();
    assert!(found.contains("still running"), "{found}");
}

#[test]
fn a_program_that_does_not_exist() {
    let found = finish(Command::new("/no/such/program"), LIMIT).unwrap_err();
    assert!(found.contains("cannot run"), "{found}");
}

#[test]
fn the_program_gets_the_case_the_clock_and_a_home_of_its_own() {
    let script = r#"echo "$@ | $HOME | $XDG_STATE_HOME | ${KUBECONFIG-none}""#;
    let mut program = shell(script);
    program.env("KUBECONFIG", "/somewhere/kubeconfig");
    let printed = explain(program, Path::new("/data/T1"), "2026-03-01T12:00:00Z", Path::new("/tmp/h")).unwrap();
    let wanted = "explain --from /data/T1 --now 2026-03-01T12:00:00Z -o json | /tmp/h/ | /tmp/h/state | none\n";
    assert_eq!(printed, wanted);
}
