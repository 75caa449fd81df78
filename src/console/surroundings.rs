//! What the console learns from its environment, once, at the start: colours, characters, where reports go.
//!
//! The only file of the console that reads environment variables; views get what it decided.

use std::path::PathBuf;

use super::theme::{Charset, Depth, Theme};

/// What was decided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Surroundings {
    /// Looks.
    pub theme: Theme,
    /// Folder for reports of internal errors; none where there is no home.
    pub state_dir: Option<PathBuf>,
    /// Debug builds only, for tests of the panic hook: fail after the first frame.
    pub fail_on_purpose: bool,
}

impl Surroundings {
    /// Reads the environment of this process.
    pub fn read() -> Self {
        Self::decide(|name| std::env::var_os(name).map(|value| value.to_string_lossy().into_owned()))
    }

    /// The same from any set of variables.
    ///
    /// `NO_COLOR` with any non-empty value (no-color.org) and a terminal without colours give no colour at all. ASCII where the
    /// locale (`LC_ALL`, else `LC_CTYPE`, else `LANG`) is not UTF-8, or where `MODELDECK_ASCII` is set and not `0`.
    pub fn decide(variable: impl Fn(&str) -> Option<String>) -> Self {
        let set = |name: &str| variable(name).filter(|value| !value.is_empty());
        let term = set("TERM").unwrap_or_default();
        let depth = match set("NO_COLOR") {
            Some(_) => Depth::None,
            None => depth_of(&term, &set("COLORTERM").unwrap_or_default()),
        };
        let locale = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(set).unwrap_or_default().to_ascii_lowercase();
        let utf8 = locale.contains("utf-8") || locale.contains("utf8");
        let ascii = set("MODELDECK_ASCII").is_some_and(|value| value != "0");
        let state_home = set("XDG_STATE_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
        let state_home = state_home.or_else(|| set("HOME").map(|home| PathBuf::from(home).join(".local/state")));
        Self {
            theme: Theme { depth, charset: if utf8 && !ascii { Charset::Unicode } else { Charset::Ascii } },
            state_dir: state_home.map(|home| home.join("modeldeck")),
            fail_on_purpose: cfg!(debug_assertions) && set("MODELDECK_TEST_PANIC").is_some(),
        }
    }
}

fn depth_of(term: &str, colorterm: &str) -> Depth {
    let term = term.to_ascii_lowercase();
    let plain = term.is_empty() || term == "dumb" || ["vt1", "vt2"].iter().any(|old| term.starts_with(old)) || term.ends_with("-mono");
    if plain {
        Depth::None
    } else if matches!(colorterm.to_ascii_lowercase().as_str(), "truecolor" | "24bit") || term.ends_with("-direct") {
        Depth::True
    } else if ["256", "kitty", "alacritty", "ghostty", "wezterm", "foot"].iter().any(|word| term.contains(word)) {
        Depth::Indexed
    } else {
        Depth::Sixteen
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    fn decide(variables: &[(&str, &str)]) -> Surroundings {
        Surroundings::decide(|name| variables.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned()))
    }

    #[rstest]
    #[case(&[("TERM", "xterm-256color"), ("COLORTERM", "truecolor")], Depth::True)]
    #[case(&[("TERM", "xterm-256color")], Depth::Indexed)]
    #[case(&[("TERM", "xterm")], Depth::Sixteen)]
    #[case(&[("TERM", "linux")], Depth::Sixteen)]
    #[case(&[("TERM", "dumb"), ("COLORTERM", "truecolor")], Depth::None)]
    #[case(&[("TERM", "vt100")], Depth::None)]
    #[case(&[], Depth::None)]
    #[case(&[("TERM", "xterm-256color"), ("COLORTERM", "truecolor"), ("NO_COLOR", "0")], Depth::None)]
    #[case(&[("TERM", "xterm-256color"), ("NO_COLOR", "")], Depth::Indexed)]
    fn depths(#[case] variables: &[(&str, &str)], #[case] depth: Depth) {
        assert_eq!(decide(variables).theme.depth, depth);
    }

    #[rstest]
    #[case(&[("LANG", "de_DE.UTF-8")], Charset::Unicode)]
    #[case(&[("LANG", "C.utf8")], Charset::Unicode)]
    #[case(&[("LANG", "de_DE.UTF-8"), ("LC_ALL", "C")], Charset::Ascii)]
    #[case(&[("LANG", "C"), ("LC_CTYPE", "UTF-8")], Charset::Unicode)]
    #[case(&[("LANG", "de_DE.UTF-8"), ("LC_ALL", "")], Charset::Unicode)]
    #[case(&[("LANG", "de_DE.ISO-8859-1")], Charset::Ascii)]
    #[case(&[], Charset::Ascii)]
    #[case(&[("LANG", "de_DE.UTF-8"), ("MODELDECK_ASCII", "1")], Charset::Ascii)]
    #[case(&[("LANG", "de_DE.UTF-8"), ("MODELDECK_ASCII", "0")], Charset::Unicode)]
    fn charsets(#[case] variables: &[(&str, &str)], #[case] charset: Charset) {
        assert_eq!(decide(variables).theme.charset, charset);
    }

    #[rstest]
    #[case(&[("XDG_STATE_HOME", "/s"), ("HOME", "/h")], Some("/s/modeldeck"))]
    #[case(&[("XDG_STATE_HOME", "relative"), ("HOME", "/h")], Some("/h/.local/state/modeldeck"))]
    #[case(&[], None)]
    fn state_dirs(#[case] variables: &[(&str, &str)], #[case] dir: Option<&str>) {
        assert_eq!(decide(variables).state_dir, dir.map(PathBuf::from));
    }
}
