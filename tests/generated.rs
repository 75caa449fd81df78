//! Checked-in files that the binary makes: the manual page and completions. `MODELDECK_BLESS=1` writes them anew.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::Path;
use std::process::Command;

const FILES: &[(&str, &[&str])] = &[
    ("docs/man/modeldeck.1", &["man"]),
    ("docs/completions/modeldeck.bash", &["completions", "bash"]),
    ("docs/completions/_modeldeck", &["completions", "zsh"]),
    ("docs/completions/modeldeck.fish", &["completions", "fish"]),
];

#[test]
fn generated_files_are_what_the_binary_prints() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let bless = std::env::var("MODELDECK_BLESS").is_ok_and(|value| value == "1");
    for (file, arguments) in FILES {
        let output = Command::new(env!("CARGO_BIN_EXE_modeldeck")).args(*arguments).output().unwrap();
        assert!(output.status.success() && !output.stdout.is_empty(), "{arguments:?}");
        let path = root.join(file);
        if bless {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, &output.stdout).unwrap();
        }
        let there = fs::read(&path).unwrap_or_default();
        assert!(
            there == output.stdout,
            "{file} is not what `modeldeck {}` prints: MODELDECK_BLESS=1 cargo test --test generated",
            arguments.join(" ")
        );
    }
}
