//! Is this container an inference engine, and which? By label, command, image or name, in this order of trust.
//!
//! Owns the names under which engines are shipped. Must not ask the engine: that is `engines`.

use std::collections::BTreeMap;

use crate::model::engine::EngineKind;
use crate::model::object::{Container, PodSpec};
use crate::model::{Evidence, Subject};

/// Label (or annotation) by which a person says which engine a pod runs: `vllm`, `sglang`, `openai`; `none` says that it runs none.
pub const ENGINE_LABEL: &str = "serving.modeldeck.dev/engine";
/// llm-d's label for the same.
pub const LLM_D_ENGINE_LABEL: &str = "llm-d.ai/engine-type";

/// Names in an image or command that are no engine although they hold an engine's name: routers, exporters, sidecars, benchmarks.
const NOT_ENGINES: &[&str] = &[
    "router",
    "gateway",
    "epp",
    "endpoint-picker",
    "exporter",
    "sidecar",
    "proxy",
    "initializer",
    "loader",
    "controller",
    "operator",
    "benchmark",
    "bench",
    "downloader",
    "cache-server",
    "lmcache-server",
];

/// Image and container names, and commands, of engines.
const NAMES: &[(&str, EngineKind)] = &[
    ("vllm", EngineKind::Vllm),
    ("sglang", EngineKind::Sglang),
    ("llm-d-inference-sim", EngineKind::Vllm),
    ("llm-d-cuda", EngineKind::Vllm),
    ("text-generation-inference", EngineKind::OpenAi),
    ("llama.cpp", EngineKind::OpenAi),
    ("llama-server", EngineKind::OpenAi),
    ("llama-cpp", EngineKind::OpenAi),
    ("tensorrt-llm", EngineKind::OpenAi),
    ("tensorrtllm", EngineKind::OpenAi),
    ("trtllm", EngineKind::OpenAi),
    ("tritonserver", EngineKind::OpenAi),
    ("lmdeploy", EngineKind::OpenAi),
    ("ollama", EngineKind::OpenAi),
    ("infinity", EngineKind::OpenAi),
    ("mlc-llm", EngineKind::OpenAi),
];

/// Words of a command line that start an engine.
const COMMANDS: &[(&str, EngineKind)] = &[
    ("vllm.entrypoints", EngineKind::Vllm),
    ("sglang.launch_server", EngineKind::Sglang),
    ("sglang::launch_server", EngineKind::Sglang),
    ("llama-server", EngineKind::OpenAi),
    ("trtllm-serve", EngineKind::OpenAi),
    ("text-generation-launcher", EngineKind::OpenAi),
    ("lmdeploy", EngineKind::OpenAi),
];

/// The engine of a pod or template: which, in which container, and what shows it. `subject` is who the evidence is about.
pub fn engine_of(
    subject: &Subject,
    labels: &BTreeMap<String, String>,
    annotations: &BTreeMap<String, String>,
    spec: &PodSpec,
) -> Option<(EngineKind, String, Evidence)> {
    let said =
        [ENGINE_LABEL, LLM_D_ENGINE_LABEL].into_iter().find_map(|key| Some((key, labels.get(key).or_else(|| annotations.get(key))?)));
    if let Some((key, value)) = said {
        if value == "none" {
            return None;
        }
        if let Some(kind) = EngineKind::parse(value) {
            let container = main_container(spec).map(|c| c.name.clone()).unwrap_or_default();
            return Some((kind, container, Evidence::field(subject, &format!("metadata.labels[{key}]"), value.clone())));
        }
    }
    // Sidecars (init containers that keep running) may hold the engine as well; the one with GPUs comes first.
    let mut candidates: Vec<&Container> = spec.containers.iter().chain(spec.init_containers.iter().filter(|c| c.sidecar)).collect();
    candidates.sort_by_key(|c| std::cmp::Reverse(c.gpus()));
    let strong = candidates.iter().find_map(|c| {
        let (kind, path, value) = by_command(c).or_else(|| by_image(c)).or_else(|| by_name(c))?;
        Some((kind, c.name.clone(), Evidence::field(subject, &format!("spec.containers[{}].{path}", c.name), value)))
    });
    strong.or_else(|| {
        // A container that holds GPUs, names a model and opens a serving port is some server with the OpenAI API.
        candidates.iter().find_map(|c| {
            let model = c.flag("--served-model-name").or_else(|| c.flag("--model")).or_else(|| c.flag("--model-path"))?;
            let named = excluded(&c.image) || excluded(&c.name);
            (c.gpus() > 0 && !c.ports.is_empty() && !named).then(|| {
                let path = format!("spec.containers[{}].args", c.name);
                (EngineKind::OpenAi, c.name.clone(), Evidence::field(subject, &path, format!("--model {model}")))
            })
        })
    })
}

/// The container that does the work: the one with most GPUs, else the first.
pub fn main_container(spec: &PodSpec) -> Option<&Container> {
    let most = spec.containers.iter().map(Container::gpus).max().unwrap_or(0);
    spec.containers.iter().find(|c| c.gpus() == most)
}

/// The repository of an image without registry path, tag and digest: `vllm-openai`.
fn repository(image: &str) -> &str {
    let image = image.split('@').next().unwrap_or(image);
    let last = image.rsplit('/').next().unwrap_or(image);
    last.split(':').next().unwrap_or(last)
}

fn excluded(name: &str) -> bool {
    let name = repository(name).to_ascii_lowercase();
    NOT_ENGINES.iter().any(|word| name.split(['-', '_', '.']).any(|part| part == *word) || name.ends_with(word))
}

fn by_command(container: &Container) -> Option<(EngineKind, &'static str, String)> {
    let words = container.words();
    let excluded_word = |word: &str| NOT_ENGINES.iter().any(|no| word.contains(no));
    if let Some((kind, word)) = words.iter().find_map(|word| {
        let word = word.trim_matches(['"', '\'']);
        let (_, kind) = COMMANDS.iter().find(|(name, _)| word.contains(name))?;
        (!word.starts_with('-') && !excluded_word(word)).then(|| (*kind, word.to_owned()))
    }) {
        return Some((kind, "command", word));
    }
    // `vllm serve MODEL`, `sglang serve`.
    words.windows(2).find_map(|pair| {
        let [program, verb] = pair else { return None };
        let program = program.trim_matches(['"', '\'']).rsplit('/').next().unwrap_or_default();
        let kind = match program {
            "vllm" => EngineKind::Vllm,
            "sglang" => EngineKind::Sglang,
            "ollama" => EngineKind::OpenAi,
            _ => return None,
        };
        (*verb == "serve").then(|| (kind, "command", format!("{program} serve")))
    })
}

fn by_image(container: &Container) -> Option<(EngineKind, &'static str, String)> {
    let name = repository(&container.image).to_ascii_lowercase();
    if name.is_empty() || excluded(&name) {
        return None;
    }
    let (_, kind) = NAMES.iter().find(|(word, _)| name.contains(word))?;
    Some((*kind, "image", container.image.clone()))
}

fn by_name(container: &Container) -> Option<(EngineKind, &'static str, String)> {
    if excluded(&container.name) || excluded(&container.image) {
        return None;
    }
    let port = container.ports.iter().map(|port| port.name.as_str());
    let (name, kind) = std::iter::once(container.name.as_str())
        .chain(port)
        .find_map(|name| NAMES.iter().find(|(word, _)| name.eq_ignore_ascii_case(word)).map(|(_, kind)| (name, *kind)))?;
    Some((kind, "name", name.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::object::Object;
    use crate::model::object::{Body, Pod};
    use jiff::Timestamp;
    use rstest::rstest;
    use serde_json::{Value, json};

    fn pod(labels: Value, containers: Value) -> (BTreeMap<String, String>, Box<Pod>) {
        let doc = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "s", "labels": labels},
            "spec": {"containers": containers}});
        let object = Object::read(&doc, Timestamp::UNIX_EPOCH).unwrap();
        match object.body {
            Body::Pod(pod) => (object.meta.labels, pod),
            _ => panic!("not a pod"),
        }
    }

    fn engine(labels: Value, containers: Value) -> Option<(EngineKind, String)> {
        let (labels, pod) = pod(labels, containers);
        engine_of(&Subject::pod("s", "p"), &labels, &BTreeMap::new(), &pod.spec).map(|(kind, container, _)| (kind, container))
    }

    #[rstest]
    #[case::image(json!([{"name": "main", "image": "registry.local:5000/engines/vllm-openai:v0.19.0"}]), Some(EngineKind::Vllm))]
    #[case::image_of_a_fork(json!([{"name": "main", "image": "x/sglang@sha256:0"}]), Some(EngineKind::Sglang))]
    #[case::router_image(json!([{"name": "main", "image": "x/vllm-router:1"}]), None)]
    #[case::router_command(json!([{"name": "r", "image": "x/y", "command": ["python", "-m", "sglang_router.launch_router"]}]), None)]
    #[case::exporter(json!([{"name": "vllm-exporter", "image": "x/vllm-exporter"}]), None)]
    #[case::epp(json!([{"name": "epp", "image": "registry.local/router/llm-d-router-endpoint-picker:v0.10.0"}]), None)]
    #[case::command_wins_over_image(json!([{"name": "m", "image": "x/python", "args": ["-m", "sglang.launch_server"]}]), Some(EngineKind::Sglang))]
    #[case::shell(json!([{"name": "m", "image": "x", "command": ["sh", "-c", "exec vllm serve /models/a --port 8000"]}]), Some(EngineKind::Vllm))]
    #[case::container_name(json!([{"name": "sglang", "image": "internal/base:7"}]), Some(EngineKind::Sglang))]
    #[case::port_name(json!([{"name": "m", "image": "internal/base", "ports": [{"name": "vllm", "containerPort": 8000}]}]), Some(EngineKind::Vllm))]
    #[case::llama(json!([{"name": "m", "image": "ghcr.io/ggml-org/llama.cpp:server"}]), Some(EngineKind::OpenAi))]
    #[case::some_server(json!([{"name": "m", "image": "internal/x", "args": ["--model", "/m"], "ports": [{"containerPort": 80}],
        "resources": {"limits": {"nvidia.com/gpu": 1}}}]), Some(EngineKind::OpenAi))]
    #[case::a_web_server(json!([{"name": "nginx", "image": "nginx:1"}]), None)]
    #[case::nothing(json!([]), None)]
    fn recognised(#[case] containers: Value, #[case] wanted: Option<EngineKind>) {
        assert_eq!(engine(json!({}), containers).map(|(kind, _)| kind), wanted);
    }

    #[test]
    fn a_label_decides() {
        let plain = json!([{"name": "m", "image": "internal/x"}]);
        assert_eq!(engine(json!({"serving.modeldeck.dev/engine": "sglang"}), plain.clone()), Some((EngineKind::Sglang, "m".into())));
        assert_eq!(engine(json!({"serving.modeldeck.dev/engine": "none"}), json!([{"name": "vllm", "image": "vllm"}])), None);
        assert_eq!(engine(json!({"serving.modeldeck.dev/engine": "what"}), plain), None);
    }

    #[test]
    fn the_container_with_the_gpus_is_looked_at_first() {
        let two = json!([{"name": "vllm-metrics", "image": "x/vllm-openai"},
            {"name": "engine", "image": "x/sglang", "resources": {"limits": {"nvidia.com/gpu": 1}}}]);
        assert_eq!(engine(json!({}), two), Some((EngineKind::Sglang, "engine".into())));
    }
}
