//! The map of the house, held: which module may use which, what pure modules must not touch, and where terminal and cluster
//! libraries may be named. Reads the sources as text, so that it needs nothing but this repository.

#![allow(clippy::unwrap_used, missing_docs)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// For each module of `src/` the modules of the house that it may name.
const MAY_USE: &[(&str, &[&str])] = &[
    ("model", &[]),
    ("systems", &["model"]),
    ("engines", &["model"]),
    ("world", &["model", "systems", "engines"]),
    ("diagnose", &["model", "systems", "engines", "world"]),
    ("sources", &["model", "systems", "engines", "world"]),
    // Never `systems` or `engines`: a mistake of the reader must not hide in what the reader is tested on.
    ("simulator", &["model"]),
    ("console", &["model", "systems", "engines", "world", "diagnose"]),
    ("cli", &["model", "systems", "engines", "world", "diagnose", "sources", "simulator", "console"]),
];

/// Modules that are functions of their arguments: no I/O, no clock, no randomness, no threads.
const PURE: &[&str] = &["model", "systems", "engines", "world", "diagnose"];

/// What a pure module must not name.
const IMPURE: &[&str] = &[
    "std::fs",
    "std::net",
    "std::process",
    "std::env",
    "std::io",
    "std::thread",
    "std::time::SystemTime",
    "std::time::Instant",
    "SystemTime::now",
    "Instant::now",
    "Timestamp::now",
    "Zoned::now",
    "tokio",
    "rand::",
    "getrandom",
    "reqwest",
    "hyper",
    "println!",
    "eprintln!",
    "print!(",
    "eprint!(",
];

/// Libraries and the only modules that may name them.
const CONFINED: &[(&str, &[&str])] = &[
    ("ratatui", &["console"]),
    ("crossterm", &["console"]),
    ("signal_hook", &["console"]),
    ("kube", &["sources", "actuate", "operator", "simulator"]),
    ("k8s_openapi", &["sources", "actuate", "operator", "simulator"]),
    ("prometheus_parse", &["engines"]),
    ("serde_saphyr", &["sources", "cli", "simulator"]),
    ("clap", &["cli"]),
    ("rustix", &["console", "cli"]),
];

fn files(dir: &Path, out: &mut Vec<PathBuf>) {
    let mut entries: Vec<_> = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    for path in entries {
        match path.is_dir() {
            true => files(&path, out),
            false if path.extension().is_some_and(|e| e == "rs") => out.push(path),
            false => {}
        }
    }
}

/// The code of a file without comments and without its test modules, line by line with line numbers.
fn code(text: &str) -> Vec<(usize, String)> {
    let mut out = Vec::new();
    let mut lines = text.lines().enumerate();
    while let Some((number, line)) = lines.next() {
        let bare = line.split("//").next().unwrap_or("");
        if line.trim_start().starts_with("//") || bare.trim().is_empty() {
            continue;
        }
        if line.trim_start().starts_with("#[cfg(test)]") {
            // A test module in place, a path attribute, or a module of its own: skipped to its end.
            let mut depth = 0i32;
            let mut opened = false;
            for (_, inner) in lines.by_ref() {
                depth += inner.matches('{').count() as i32 - inner.matches('}').count() as i32;
                opened |= inner.contains('{');
                if (opened && depth <= 0) || (!opened && inner.trim_end().ends_with(';')) {
                    break;
                }
            }
            continue;
        }
        out.push((number + 1, bare.to_owned()));
    }
    out
}

fn is_test_file(path: &Path) -> bool {
    let stem = path.file_stem().unwrap().to_string_lossy();
    stem == "tests"
        || stem.ends_with("_tests")
        || stem == "testkit"
        || stem == "properties"
        || stem == "fixture"
        || path.components().any(|part| part.as_os_str() == "tests" || part.as_os_str() == "fixtures")
}

/// Each product file as (module, path, code).
fn product() -> Vec<(String, PathBuf, Vec<(usize, String)>)> {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut all = Vec::new();
    files(&src, &mut all);
    all.into_iter()
        .filter(|path| !is_test_file(path))
        .map(|path| {
            let inner = path.strip_prefix(&src).unwrap().to_path_buf();
            let module = inner.components().next().unwrap().as_os_str().to_string_lossy().trim_end_matches(".rs").to_owned();
            let text = fs::read_to_string(&path).unwrap();
            (module, inner, code(&text))
        })
        .collect()
}

/// Whether `word` stands in `line` as a path of its own: not inside another identifier.
fn names(line: &str, word: &str) -> bool {
    line.match_indices(word).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        let after = line[at + word.len()..].chars().next();
        let ident = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
        !ident(before) && (word.ends_with(['(', ':', '!']) || !ident(after))
    })
}

#[test]
fn modules_know_only_those_above_them() {
    let may: BTreeMap<&str, BTreeSet<&str>> = MAY_USE.iter().map(|(m, uses)| (*m, uses.iter().copied().collect())).collect();
    let mut wrong = Vec::new();
    for (module, path, code) in product() {
        if module == "lib" || module == "main" {
            continue;
        }
        let Some(allowed) = may.get(module.as_str()) else {
            wrong.push(format!("{}: the module `{module}` is not on the map", path.display()));
            continue;
        };
        for (number, line) in code {
            for (other, _) in MAY_USE.iter().filter(|(other, _)| *other != module && !allowed.contains(other)) {
                if names(&line, &format!("crate::{other}")) || names(&line, &format!("modeldeck::{other}")) {
                    wrong.push(format!("src/{}:{number}: {module} must not know {other}: {}", path.display(), line.trim()));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn pure_modules_do_no_io_and_have_no_clock() {
    let mut wrong = Vec::new();
    for (module, path, code) in product().into_iter().filter(|(module, _, _)| PURE.contains(&module.as_str())) {
        for (number, line) in code {
            for word in IMPURE.iter().filter(|word| names(&line, word)) {
                wrong.push(format!("src/{}:{number}: {module} is pure and names {word}: {}", path.display(), line.trim()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn libraries_stay_where_they_belong() {
    let mut wrong = Vec::new();
    for (module, path, code) in product() {
        for (number, line) in code {
            for (library, places) in CONFINED.iter().filter(|(library, places)| {
                !places.contains(&module.as_str()) && (names(&line, &format!("{library}::")) || names(&line, &format!("use {library}")))
            }) {
                wrong.push(format!("src/{}:{number}: {library} belongs in {}: {}", path.display(), places.join(", "), line.trim()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_module_says_what_it_owns_and_no_file_is_too_long() {
    let mut wrong = Vec::new();
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut all = Vec::new();
    files(&src, &mut all);
    for path in all {
        let text = fs::read_to_string(&path).unwrap();
        let lines = text.lines().count();
        if lines > 600 {
            wrong.push(format!("{}: {lines} lines; split it by concept", path.display()));
        }
        if !is_test_file(&path) && !text.trim_start().starts_with("//!") {
            wrong.push(format!("{}: has no //! head", path.display()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_checks_themselves_see_what_they_look_for() {
    let text =
        "use crate::world::World;\n// use crate::cli::X;\n#[cfg(test)]\nmod tests {\n    use std::fs;\n}\nfn f() { std::fs::read(); }\n";
    let code = code(text);
    assert_eq!(code.iter().map(|(n, _)| *n).collect::<Vec<_>>(), [1, 7]);
    assert!(names(&code[0].1, "crate::world"));
    assert!(names(&code[1].1, "std::fs"));
    assert!(!names("use crate::worlds::X", "crate::world"));
    assert!(!names("my_tokio::x", "tokio"));
}
