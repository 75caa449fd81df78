//! What a path and a method ask for.
//!
//! Owns the rules of `k8s.io/apiserver/pkg/endpoints/request` (1.36): which verb, which resource, which name.

use super::super::kinds::fields::asked_name;
use super::Query;

/// A resource, an object or a subresource.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Target {
    /// The API group, empty for core.
    pub group: String,
    /// The version.
    pub version: String,
    /// The namespace, or empty.
    pub namespace: String,
    /// The plural name.
    pub resource: String,
    /// The object's name, or empty.
    pub name: String,
    /// The subresource, or empty.
    pub subresource: String,
    /// What follows the subresource, with slashes, for proxies.
    pub tail: String,
}

/// What is asked.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Asked {
    /// The verb as the authorizer sees it.
    pub verb: String,
    /// The resource; `None` for plain paths as `/version`.
    pub target: Option<Target>,
    /// The path as it came.
    pub path: String,
}

fn decoded(part: &str) -> String {
    // A plus is a plus in paths.
    let plain = part.replace('+', "%2B");
    form_urlencoded::parse(plain.as_bytes()).next().map(|(name, _)| name.into_owned()).unwrap_or_default()
}

/// Reads method, path and query.
pub fn asked(method: &str, path: &str, query: &Query) -> Asked {
    let plain = Asked { verb: method.to_lowercase(), target: None, path: path.to_owned() };
    let raw: Vec<&str> = path.trim_start_matches('/').split('/').collect();
    let trimmed: &[&str] = match raw.as_slice() {
        [head @ .., ""] => head,
        all => all,
    };
    let parts: Vec<String> = trimmed.iter().map(|p| decoded(p)).collect();
    let (group, version, rest) = match parts.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["api", version, _, ..] => (String::new(), (*version).to_owned(), 2),
        ["apis", group, version, _, ..] => ((*group).to_owned(), (*version).to_owned(), 3),
        _ => return plain,
    };
    let mut at = rest;
    let mut verb = match method {
        "POST" => "create",
        "GET" | "HEAD" => "get",
        "PUT" => "update",
        "PATCH" => "patch",
        "DELETE" => "delete",
        _ => "",
    }
    .to_owned();
    let part = |at: usize| parts.get(at).map(String::as_str).unwrap_or_default();
    if part(at) == "watch" && parts.len() > at + 1 {
        verb = "watch".to_owned();
        at += 1;
    }
    let mut target = Target { group, version, ..Target::default() };
    if part(at) == "namespaces" && parts.len() > at + 1 {
        target.namespace = part(at + 1).to_owned();
        // `/namespaces/x/status` is of the namespace; `/namespaces/x/pods` is in it.
        if parts.len() > at + 2 && !matches!(part(at + 2), "status" | "finalize") {
            at += 2;
        }
    }
    target.resource = part(at).to_owned();
    target.name = part(at + 1).to_owned();
    target.subresource = part(at + 2).to_owned();
    let tail_from = at + 3;
    if raw.len() > tail_from {
        target.tail = raw.get(tail_from..).map(|tail| format!("/{}", tail.join("/"))).unwrap_or_default();
    }
    if target.name.is_empty() {
        if verb == "get" {
            verb = if query.flag("watch") { "watch" } else { "list" }.to_owned();
        } else if verb == "delete" {
            verb = "deletecollection".to_owned();
        }
        if matches!(verb.as_str(), "list" | "watch" | "deletecollection")
            && let Some(name) = asked_name(query.get("fieldSelector"))
        {
            target.name = name;
        }
    }
    Asked { verb, target: Some(target), path: path.to_owned() }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case("GET", "/api/v1/pods", "", "list pods ns= name= sub=")]
    #[case("GET", "/api/v1/namespaces/a/pods", "watch=true", "watch pods ns=a name= sub=")]
    #[case("GET", "/api/v1/namespaces/a/pods/p/log", "", "get pods ns=a name=p sub=log")]
    #[case("GET", "/api/v1/namespaces/a", "", "get namespaces ns=a name=a sub=")]
    #[case("PUT", "/api/v1/namespaces/a/finalize", "", "update namespaces ns=a name=a sub=finalize")]
    #[case("DELETE", "/apis/apps/v1/namespaces/a/deployments", "", "deletecollection deployments ns=a name= sub=")]
    #[case("GET", "/api/v1/namespaces/a/pods", "fieldSelector=metadata.name%3Dx", "list pods ns=a name=x sub=")]
    #[case("POST", "/api/v1/namespaces/a/pods/p:80/proxy/v1/x", "", "create pods ns=a name=p:80 sub=proxy")]
    fn paths_are_read_as_kubernetes_reads_them(#[case] method: &str, #[case] path: &str, #[case] query: &str, #[case] expected: &str) {
        let asked = asked(method, path, &Query::parse(query));
        let t = asked.target.unwrap();
        assert_eq!(format!("{} {} ns={} name={} sub={}", asked.verb, t.resource, t.namespace, t.name, t.subresource), expected);
    }

    #[test]
    fn plain_paths_are_plain() {
        assert_eq!(asked("GET", "/version", &Query::default()).target, None);
        assert_eq!(asked("GET", "/apis/apps/v1", &Query::default()).target, None);
    }
}
