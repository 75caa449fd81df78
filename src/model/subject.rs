//! Names of things, as the public document and the screen write them: `pod/serving/qwen-a-0`, `node/gpu-1`, `fleet`.

use std::fmt;
use std::sync::Arc;

use serde::{Serialize, Serializer};

/// The name of one thing that can be spoken about: an object (`kind/namespace/name`, cluster-scoped `kind/name`), a part of
/// one (`leaderworkerset/ns/name/group/0`, `node/n/gpu/0`), an engine page that belongs to no pod (`engine/name`), a view
/// (`view/nodes`), or the whole (`fleet`). Kinds are lower-case singular; only HorizontalPodAutoscaler is short: `hpa`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Subject(Arc<str>);

impl Subject {
    /// An object. `namespace` is empty for a cluster-scoped one; `kind` as the API writes it or already short.
    pub fn object(kind: &str, namespace: &str, name: &str) -> Self {
        let kind = kind_word(kind);
        if namespace.is_empty() { Self(format!("{kind}/{name}").into()) } else { Self(format!("{kind}/{namespace}/{name}").into()) }
    }

    /// A pod.
    pub fn pod(namespace: &str, name: &str) -> Self {
        Self::object("pod", namespace, name)
    }

    /// A node.
    pub fn node(name: &str) -> Self {
        Self::object("node", "", name)
    }

    /// An engine whose page belongs to no pod.
    pub fn engine(name: &str) -> Self {
        Self(format!("engine/{name}").into())
    }

    /// A view of the console: `nodes`, or `pods/serving`.
    pub fn view(of: &str) -> Self {
        Self(format!("view/{of}").into())
    }

    /// Everything that is seen.
    pub fn fleet() -> Self {
        Self("fleet".into())
    }

    /// A part of this subject: `group/0`, `gpu/1/mig/2`.
    pub fn part(&self, part: &str) -> Self {
        Self(format!("{}/{part}", self.0).into())
    }

    /// A name as a manifest or a command line gives it; the kind is brought into its usual form.
    pub fn parse(text: &str) -> Self {
        match text.split_once('/') {
            Some((kind, rest)) => Self(format!("{}/{rest}", kind_word(kind)).into()),
            None => Self(text.into()),
        }
    }

    /// The whole name.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The kind word: what stands before the first slash.
    pub fn kind(&self) -> &str {
        self.0.split('/').next().unwrap_or_default()
    }

    /// Namespace of a namespaced object, else empty.
    pub fn namespace(&self) -> &str {
        let mut parts = self.0.split('/').skip(1);
        match (parts.next(), parts.next()) {
            (Some(namespace), Some(_)) if !matches!(self.kind(), "node" | "view" | "engine" | "fleet") => namespace,
            _ => "",
        }
    }

    /// The object's own name without kind and namespace; of a part, what follows the object's name is left out.
    pub fn name(&self) -> &str {
        let mut parts = self.0.split('/').skip(1);
        match (parts.next(), parts.next()) {
            (Some(_), Some(name)) if !self.namespace().is_empty() => name,
            (Some(name), _) => name,
            _ => &self.0,
        }
    }

    /// The name for a sentence: the object's name, and of a part what it is as well: `deepseek group 0`.
    pub fn called(&self) -> String {
        let head = if self.namespace().is_empty() { 2 } else { 3 };
        let part: Vec<&str> = self.0.split('/').skip(head).collect();
        if part.is_empty() { self.name().to_owned() } else { format!("{} {}", self.name(), part.join(" ")) }
    }
}

/// The kind as the document writes it: lower-case singular, and `hpa`.
pub fn kind_word(kind: &str) -> String {
    let lower = kind.to_ascii_lowercase();
    if lower == "horizontalpodautoscaler" { "hpa".into() } else { lower }
}

/// The kind word of a resource name as paths have it: `pods` → `pod`, `horizontalpodautoscalers` → `hpa`.
pub fn kind_of_resource(resource: &str) -> String {
    let lower = resource.to_ascii_lowercase();
    let singular = match lower.strip_suffix("ies") {
        Some(stem) => format!("{stem}y"),
        None if lower.ends_with("sses") || lower.ends_with("xes") => lower[..lower.len() - 2].to_owned(),
        None => lower.strip_suffix('s').unwrap_or(&lower).to_owned(),
    };
    kind_word(&singular)
}

impl fmt::Debug for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Serialize for Subject {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case(Subject::pod("s", "a"), "a")]
    #[case(Subject::object("leaderworkerset", "s", "m").part("group/0"), "m group 0")]
    #[case(Subject::node("n").part("gpu/1"), "n gpu 1")]
    #[case(Subject::fleet(), "fleet")]
    fn names_in_sentences(#[case] subject: Subject, #[case] wanted: &str) {
        assert_eq!(subject.called(), wanted);
    }

    #[rstest]
    #[case("pods", "pod")]
    #[case("ingresses", "ingress")]
    #[case("networkpolicies", "networkpolicy")]
    #[case("horizontalpodautoscalers", "hpa")]
    #[case("endpointslices", "endpointslice")]
    fn kinds_of_resources(#[case] resource: &str, #[case] wanted: &str) {
        assert_eq!(kind_of_resource(resource), wanted);
    }

    #[rstest]
    #[case(Subject::pod("serving", "qwen-a-0"), "pod/serving/qwen-a-0", "pod", "serving", "qwen-a-0")]
    #[case(Subject::node("gpu-1").part("gpu/0"), "node/gpu-1/gpu/0", "node", "", "gpu-1")]
    #[case(Subject::object("HorizontalPodAutoscaler", "s", "a"), "hpa/s/a", "hpa", "s", "a")]
    #[case(Subject::object("LeaderWorkerSet", "s", "m").part("group/0"), "leaderworkerset/s/m/group/0", "leaderworkerset", "s", "m")]
    #[case(Subject::fleet(), "fleet", "fleet", "", "fleet")]
    #[case(Subject::engine("old"), "engine/old", "engine", "", "old")]
    #[case(Subject::view("pods/serving"), "view/pods/serving", "view", "", "pods")]
    #[case(Subject::parse("HorizontalPodAutoscaler/s/a"), "hpa/s/a", "hpa", "s", "a")]
    fn names(#[case] subject: Subject, #[case] text: &str, #[case] kind: &str, #[case] namespace: &str, #[case] name: &str) {
        assert_eq!(subject.as_str(), text);
        assert_eq!((subject.kind(), subject.namespace(), subject.name()), (kind, namespace, name));
    }
}
