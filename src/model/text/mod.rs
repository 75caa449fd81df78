//! stub
#![allow(missing_docs)]
pub fn clean_name(raw: &str) -> String { raw.chars().filter(|c| !c.is_control()).take(253).collect() }
pub fn tidy(raw: &str) -> String { raw.chars().filter(|c| !c.is_control()).take(4096).collect() }
pub fn redact_args(args: &[String]) -> Vec<String> { args.iter().map(|a| tidy(a)).collect() }
pub fn is_secret_name(name: &str) -> bool { name.to_ascii_lowercase().contains("api-key") || name.to_ascii_lowercase().contains("apikey") }
