//! What an engine does with running requests when it is told to end.
//!
//! Owns the engines' own promises (vLLM `--shutdown-timeout`, SGLang's drain). Must not know preStop hooks or grace periods: those
//! are the pod's.

use crate::engines::detect::version_of_image;
use crate::model::engine::EngineKind;
use crate::model::object::Container;
use crate::model::{Evidence, Subject, Unknown};

/// What happens to running requests at SIGTERM.
#[derive(Debug, Clone, PartialEq)]
pub enum DrainPromise {
    /// It finishes them, for at most so many seconds; without a number until the grace period ends.
    Finishes {
        /// Seconds; absent where the engine sets no limit of its own.
        up_to_s: Option<i64>,
        /// What shows it.
        evidence: Vec<Evidence>,
    },
    /// It cuts them at once.
    Cuts {
        /// What shows it.
        evidence: Vec<Evidence>,
    },
    /// Not known.
    Unknown(Unknown),
}

impl DrainPromise {
    /// Whether something is known to finish the requests.
    pub fn finishes(&self) -> bool {
        matches!(self, Self::Finishes { .. })
    }

    /// What shows it.
    pub fn evidence(&self) -> &[Evidence] {
        match self {
            Self::Finishes { evidence, .. } | Self::Cuts { evidence } => evidence,
            Self::Unknown(_) => &[],
        }
    }
}

/// The promise of an engine of this kind in this container.
///
/// vLLM (measured on 0.32.0): without `--shutdown-timeout`, which is 0 by default and exists since 0.18, streams end at SIGTERM with
/// HTTP 200 and no error; with `N` it finishes for up to N seconds. SGLang (read in 0.5.23) finishes all it has, without a limit.
pub fn drain_promise(subject: &Subject, kind: EngineKind, container: Option<&Container>) -> DrainPromise {
    let Some(container) = container else { return DrainPromise::Unknown(Unknown::because("the container's flags are not known")) };
    let place = format!("spec.containers[{}]", container.name);
    match kind {
        EngineKind::Vllm => vllm(subject, container, &place),
        EngineKind::Sglang => sglang(subject, container, &place),
        EngineKind::OpenAi => DrainPromise::Unknown(Unknown::because("what this server does at SIGTERM is not known")),
    }
}

fn vllm(subject: &Subject, container: &Container, place: &str) -> DrainPromise {
    let args = format!("{place}.args");
    let flag = ["--shutdown-timeout", "--shutdown_timeout"].into_iter().find_map(|flag| container.flag(flag));
    let old = version_of_image(&container.image).filter(|version| before_0_18(version));
    let cuts = |value: String| DrainPromise::Cuts { evidence: vec![Evidence::field(subject, &args, value)] };
    match (flag, old) {
        (Some(_), Some(version)) => DrainPromise::Cuts {
            evidence: vec![Evidence::field(
                subject,
                &format!("{place}.image"),
                format!("vLLM {version} has no --shutdown-timeout (since 0.18)"),
            )],
        },
        (Some(value), None) => match value.trim().parse::<f64>() {
            Ok(seconds) if seconds > 0.0 && seconds.is_finite() => DrainPromise::Finishes {
                up_to_s: Some(seconds.min(1e9) as i64),
                evidence: vec![Evidence::field(subject, &args, format!("--shutdown-timeout {value}"))],
            },
            Ok(_) => cuts(format!("--shutdown-timeout {value}")),
            Err(_) => DrainPromise::Unknown(Unknown::because(format!("--shutdown-timeout {value:?} is not a number"))),
        },
        (None, _) if container.flag("--config").is_some() => {
            DrainPromise::Unknown(Unknown::because("flags may stand in the file that --config names"))
        }
        (None, _) => cuts("no --shutdown-timeout: the default 0 aborts at once".into()),
    }
}

fn sglang(subject: &Subject, container: &Container, place: &str) -> DrainPromise {
    for name in ["SGLANG_FORCE_SHUTDOWN", "SGL_FORCE_SHUTDOWN"] {
        match container.env.get(name) {
            Some(Some(value)) if matches!(value.trim().to_ascii_lowercase().as_str(), "1" | "true" | "yes" | "y" | "on") => {
                let field = format!("{place}.env[{name}]");
                return DrainPromise::Cuts { evidence: vec![Evidence::field(subject, &field, value.clone())] };
            }
            Some(None) => return DrainPromise::Unknown(Unknown::because(format!("the value of {name} is not known"))),
            _ => {}
        }
    }
    DrainPromise::Finishes {
        up_to_s: None,
        evidence: vec![Evidence::field(
            subject,
            &format!("{place}.env"),
            "no SGLANG_FORCE_SHUTDOWN: SGLang finishes what it has until the grace period ends",
        )],
    }
}

fn before_0_18(version: &str) -> bool {
    let mut parts = version.split('.').map(|part| part.chars().take_while(char::is_ascii_digit).collect::<String>().parse::<u32>().ok());
    matches!((parts.next().flatten(), parts.next().flatten()), (Some(0), Some(minor)) if minor < 18)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    fn container(image: &str, args: &[&str], env: &[(&str, Option<&str>)]) -> Container {
        Container {
            name: "engine".into(),
            image: image.into(),
            args: args.iter().map(|arg| (*arg).to_owned()).collect(),
            env: env.iter().map(|(name, value)| ((*name).to_owned(), value.map(str::to_owned))).collect(),
            ..Container::default()
        }
    }

    #[rstest]
    #[case::default(EngineKind::Vllm, "vllm:v0.19.0", &["--model", "m"], &[], "cuts")]
    #[case::seconds(EngineKind::Vllm, "vllm:v0.32.0", &["--shutdown-timeout", "20"], &[], "finishes 20")]
    #[case::equals(EngineKind::Vllm, "vllm", &["--shutdown-timeout=45"], &[], "finishes 45")]
    #[case::zero(EngineKind::Vllm, "vllm", &["--shutdown-timeout=0"], &[], "cuts")]
    #[case::too_old(EngineKind::Vllm, "vllm:v0.16.0", &["--shutdown-timeout=45"], &[], "cuts")]
    #[case::no_number(EngineKind::Vllm, "vllm", &["--shutdown-timeout=$(T)"], &[], "unknown")]
    #[case::file(EngineKind::Vllm, "vllm", &["--config", "/etc/vllm.yaml"], &[], "unknown")]
    #[case::sglang(EngineKind::Sglang, "sglang", &[], &[], "finishes until grace")]
    #[case::forced(EngineKind::Sglang, "sglang", &[], &[("SGLANG_FORCE_SHUTDOWN", Some("1"))], "cuts")]
    #[case::not_forced(EngineKind::Sglang, "sglang", &[], &[("SGLANG_FORCE_SHUTDOWN", Some("0"))], "finishes until grace")]
    #[case::hidden(EngineKind::Sglang, "sglang", &[], &[("SGL_FORCE_SHUTDOWN", None)], "unknown")]
    #[case::other(EngineKind::OpenAi, "tgi", &[], &[], "unknown")]
    fn promises(
        #[case] kind: EngineKind,
        #[case] image: &str,
        #[case] args: &[&str],
        #[case] env: &[(&str, Option<&str>)],
        #[case] wanted: &str,
    ) {
        let promise = drain_promise(&Subject::pod("s", "a"), kind, Some(&container(image, args, env)));
        let said = match &promise {
            DrainPromise::Finishes { up_to_s: Some(seconds), .. } => format!("finishes {seconds}"),
            DrainPromise::Finishes { up_to_s: None, .. } => "finishes until grace".into(),
            DrainPromise::Cuts { .. } => "cuts".into(),
            DrainPromise::Unknown(_) => "unknown".into(),
        };
        assert_eq!(said, wanted);
        assert_eq!(promise.evidence().is_empty(), wanted == "unknown");
    }

    #[test]
    fn without_a_container_nothing_is_known() {
        assert!(matches!(drain_promise(&Subject::pod("s", "a"), EngineKind::Vllm, None), DrainPromise::Unknown(_)));
    }
}
