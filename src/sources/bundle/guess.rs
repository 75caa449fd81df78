//! A bundle without a manifest: what the files are by their names, so that it can be made by hand with `kubectl` and `curl`.
//!
//! The parts of a name are parted by `_`, which no Kubernetes name holds; `@20261112T100000Z` before the ending says when the file was
//! taken (else its own time does). `docs/bundles.md` has the table.

use jiff::Timestamp;

use super::folder::Folder;
use super::manifest::{Entry, FileKind, NAME};
use super::problem;
use crate::model::Subject;
use crate::model::text::clean_name;
use crate::world::InputProblem;

/// Files that a case directory holds beside its inputs.
const NOT_INPUT: &[&str] = &["expect.yaml", "checks.yaml", NAME];

/// The entries that the names make: objects first, so that short names of pods can be resolved by them.
pub(super) fn entries(folder: &Folder, problems: &mut Vec<InputProblem>) -> Vec<Entry> {
    let mut entries = Vec::new();
    for (name, is_folder) in folder.names() {
        if is_folder {
            problems.push(problem(name, "is a folder: only the files of the bundle itself are read"));
        } else if !NOT_INPUT.contains(&name.as_str()) {
            match by_name(&name) {
                Ok(Some(mut entry)) => {
                    let observed = !matches!(entry.kind, FileKind::Objects | FileKind::Kubeconfig | FileKind::Stderr);
                    if entry.at.is_none() && observed {
                        entry.at = folder.written(&name);
                    }
                    entries.push(entry);
                }
                Ok(None) => {}
                Err(why) => problems.push(problem(name, why)),
            }
        }
    }
    entries.sort_by_key(|entry| entry.kind != FileKind::Objects);
    entries
}

/// What the name of a file says. `Ok(None)` for what needs no word (a README), an error for what looks like input and is not clear.
fn by_name(name: &str) -> Result<Option<Entry>, String> {
    let Some((stem, ending)) = name.rsplit_once('.') else { return Ok(None) };
    let (stem, at) = match stem.rsplit_once('@') {
        Some((stem, time)) => {
            (stem, Some(time.parse::<Timestamp>().map_err(|_| format!("@{time} is no time (wanted is @20261112T100000Z)"))?))
        }
        None => (stem, None),
    };
    let text = matches!(ending, "txt" | "log" | "prom");
    let data = matches!(ending, "yaml" | "yml" | "json");
    let mut entry = match stem.split_once('-') {
        Some(("metrics", rest)) if text => metrics(name, rest)?,
        Some(("dcgm", node)) if text => Entry { subject: Some(Subject::node(&clean_name(node))), ..Entry::of(name, FileKind::Dcgm) },
        Some(("log", rest)) if text => log(name, rest)?,
        Some(("http", rest)) if text => answer(name, rest)?,
        _ if data && (stem == "kubeconfig" || stem.ends_with("kubeconfig")) => Entry::of(name, FileKind::Kubeconfig),
        _ if text && stem.ends_with("stderr") => Entry::of(name, FileKind::Stderr),
        // What it holds decides: objects, `responses`, `steps` or durations.
        _ if data => Entry::of(name, FileKind::Objects),
        _ if text => {
            return Err("its name does not say what it is: metrics-NAMESPACE_POD.txt, log-NAMESPACE_POD_CONTAINER.txt, \
                        dcgm-NODE.txt, http-NAMESPACE_POD_PORT_PATH.txt, or an entry in manifest.yaml"
                .into());
        }
        _ => return Ok(None),
    };
    entry.at = at;
    Ok(Some(entry))
}

/// `NAMESPACE_POD`, `NAMESPACE_POD_PORT`, or only the pod's name, which is looked up.
fn metrics(file: &str, rest: &str) -> Result<Entry, String> {
    let mut entry = Entry { path: Some("/metrics".into()), ..Entry::of(file, FileKind::Metrics) };
    let parts: Vec<&str> = rest.split('_').collect();
    match parts.as_slice() {
        [namespace, pod] => entry.subject = Some(pod_of(namespace, pod)?),
        [namespace, pod, port] => {
            entry.subject = Some(pod_of(namespace, pod)?);
            entry.port = Some(port.parse().map_err(|_| format!("{port} is no port: the name should be metrics-NAMESPACE_POD_PORT.txt"))?);
        }
        [name] if !name.is_empty() => entry.subject = Some(Subject::engine(&clean_name(name))),
        _ => return Err("its name should be metrics-NAMESPACE_POD.txt or metrics-NAMESPACE_POD_PORT.txt".into()),
    }
    Ok(entry)
}

/// `NAMESPACE_POD_CONTAINER`, and `_previous` for the run before the last restart.
fn log(file: &str, rest: &str) -> Result<Entry, String> {
    let parts: Vec<&str> = rest.split('_').collect();
    let (namespace, pod, container, previous) = match parts.as_slice() {
        [namespace, pod, container] => (namespace, pod, container, false),
        [namespace, pod, container, "previous"] => (namespace, pod, container, true),
        _ => return Err("its name should be log-NAMESPACE_POD_CONTAINER.txt, with _previous before the ending for an earlier run".into()),
    };
    if container.is_empty() {
        return Err("names no container: its name should be log-NAMESPACE_POD_CONTAINER.txt".into());
    }
    Ok(Entry {
        subject: Some(pod_of(namespace, pod)?),
        container: Some(clean_name(container).to_string()),
        previous,
        ..Entry::of(file, FileKind::Log)
    })
}

/// `NAMESPACE_POD_PORT_PATH`, the path without its first slash and with `+` for every other one.
fn answer(file: &str, rest: &str) -> Result<Entry, String> {
    let wanted = "its name should be http-NAMESPACE_POD_PORT_PATH.txt, with + for / in PATH";
    let mut parts = rest.splitn(4, '_');
    let (Some(namespace), Some(pod), Some(port), Some(path)) = (parts.next(), parts.next(), parts.next(), parts.next()) else {
        return Err(wanted.into());
    };
    Ok(Entry {
        subject: Some(pod_of(namespace, pod)?),
        port: Some(port.parse().map_err(|_| format!("{port} is no port: {wanted}"))?),
        path: Some(format!("/{}", path.replace('+', "/"))),
        ..Entry::of(file, FileKind::Answer)
    })
}

fn pod_of(namespace: &str, pod: &str) -> Result<Subject, String> {
    match namespace.is_empty() || pod.is_empty() {
        true => Err("names no namespace and pod (NAMESPACE_POD)".into()),
        false => Ok(Subject::pod(&clean_name(namespace), &clean_name(pod))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case("metrics-serving_qwen-a-0.txt", "metrics", "pod/serving/qwen-a-0", None, "/metrics")]
    #[case("metrics-serving_qwen-a-0_30000.txt", "metrics", "pod/serving/qwen-a-0", Some(30000), "/metrics")]
    #[case("metrics-qwen-a-0@20261112T100000Z.prom", "metrics", "engine/qwen-a-0", None, "/metrics")]
    #[case("dcgm-gpu-node-1.txt", "dcgm", "node/gpu-node-1", None, "")]
    #[case("log-serving_qwen-a-0_vllm.log", "log", "pod/serving/qwen-a-0", None, "")]
    #[case("http-serving_qwen-a-0_8000_v1+models.txt", "answer", "pod/serving/qwen-a-0", Some(8000), "/v1/models")]
    #[case("http-serving_qwen-a-0_8000_is_sleeping.txt", "answer", "pod/serving/qwen-a-0", Some(8000), "/is_sleeping")]
    fn names(#[case] name: &str, #[case] kind: &str, #[case] subject: &str, #[case] port: Option<u16>, #[case] path: &str) {
        let entry = by_name(name).unwrap().unwrap();
        assert_eq!((entry.kind.word(), entry.subject.unwrap().as_str()), (kind, subject));
        assert_eq!((entry.port, entry.path.unwrap_or_default().as_str()), (port, path));
        assert_eq!(entry.at.is_some(), name.contains('@'));
    }

    #[rstest]
    #[case("metrics-a_b_c.txt")]
    #[case("metrics-_b.txt")]
    #[case("metrics-a_b@noon.txt")]
    #[case("log-vllm.txt")]
    #[case("log-s_a_.txt")]
    #[case("http-s_a_health.txt")]
    #[case("notes.txt")]
    fn names_that_are_not_clear_say_what_would_be(#[case] name: &str) {
        assert!(!by_name(name).unwrap_err().is_empty());
    }

    #[test]
    fn other_files_need_no_word() {
        assert!(by_name("README.md").unwrap().is_none());
        assert!(by_name("LICENSE").unwrap().is_none());
        assert_eq!(by_name("objects.json").unwrap().unwrap().kind, FileKind::Objects);
        assert_eq!(by_name("my-kubeconfig.yaml").unwrap().unwrap().kind, FileKind::Kubeconfig);
        assert!(by_name("log-s_a_vllm_previous.txt").unwrap().unwrap().previous);
    }
}
