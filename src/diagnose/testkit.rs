//! Small worlds for the tests of rules: pods in namespace `s` at 2026-11-12T10:00:00Z, with answers and pages.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::diagnose;
use crate::engines::MetricPage;
use crate::engines::exposition::{Filter, read};
use crate::model::Subject;
use crate::model::engine::{HttpAnswer, HttpFailure, HttpOutcome};
use crate::model::finding::{Code, Finding};
use crate::model::object::Object;
use crate::world::{Facts, World};

/// The present of all test worlds.
pub(crate) fn now() -> Timestamp {
    "2026-11-12T10:00:00Z".parse().unwrap()
}

/// Builds facts step by step.
pub(crate) struct Kit {
    objects: Vec<Value>,
    facts: Facts,
}

/// A world with its findings.
pub(crate) struct Judged {
    /// The world.
    #[allow(dead_code)]
    pub(crate) world: World,
    /// All findings.
    pub(crate) findings: Vec<Finding>,
}

impl Judged {
    /// The one finding of that code.
    pub(crate) fn only(&self, code: Code) -> Finding {
        let found: Vec<_> = self.findings.iter().filter(|finding| finding.code == code).collect();
        assert_eq!(found.len(), 1, "wanted one {code}, found {:#?}", self.findings);
        found[0].clone()
    }

    /// Whether there is none of that code.
    pub(crate) fn none(&self, code: Code) -> bool {
        self.findings.iter().all(|finding| finding.code != code)
    }
}

/// A page of a vLLM engine.
pub(crate) fn vllm_page(running: f64, waiting: f64, tokens: f64) -> String {
    let labels = r#"{engine="0",model_name="m"}"#;
    format!(
        "# TYPE vllm:num_requests_running gauge\nvllm:num_requests_running{labels} {running}\n\
         # TYPE vllm:num_requests_waiting gauge\nvllm:num_requests_waiting{labels} {waiting}\n\
         # TYPE vllm:kv_cache_usage_perc gauge\nvllm:kv_cache_usage_perc{labels} 0.2\n\
         # TYPE vllm:prompt_tokens_total counter\nvllm:prompt_tokens_total{labels} 100\n\
         # TYPE vllm:generation_tokens_total counter\nvllm:generation_tokens_total{labels} {tokens}\n"
    )
}

/// A page of an endpoint picker that knows these endpoints, with `fresh` of them fresh, and more lines.
pub(crate) fn epp_page(pool: &str, endpoints: &[&str], fresh: usize, more: &str) -> String {
    let known: String = endpoints
        .iter()
        .map(|name| format!("llm_d_epp_per_endpoint_queue_size{{name=\"{pool}\",model_server_endpoint=\"{name}\"}} 0\n"))
        .collect();
    format!("llm_d_epp_ready_endpoints{{name=\"{pool}\"}} {fresh}\n{known}{more}")
}

/// Conditions by type and status, without reasons.
pub(crate) fn conditions(list: &[(&str, &str)]) -> Value {
    list.iter().map(|(kind, status)| json!({"type": kind, "status": status, "lastTransitionTime": "2026-11-12T09:00:00Z"})).collect()
}

impl Kit {
    pub(crate) fn new() -> Self {
        Self { objects: Vec::new(), facts: Facts::default() }
    }

    /// Any object.
    pub(crate) fn object(mut self, object: Value) -> Self {
        self.objects.push(object);
        self
    }

    /// A Ready vLLM pod that has been up for two hours, changed by `change`.
    pub(crate) fn pod_with(self, name: &str, change: impl FnOnce(&mut Value)) -> Self {
        let mut pod = json!({"apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": name, "namespace": "s", "uid": format!("uid-{name}"), "creationTimestamp": "2026-11-12T07:50:00Z",
                "labels": {"app": "a"}},
            "spec": {"nodeName": "n1", "containers": [{"name": "vllm", "image": "x/vllm-openai:v0.19.0",
                "ports": [{"name": "http", "containerPort": 8000}]}]},
            "status": {"phase": "Running", "startTime": "2026-11-12T07:50:01Z",
                "conditions": [
                    {"type": "PodScheduled", "status": "True", "lastTransitionTime": "2026-11-12T07:50:00Z"},
                    {"type": "PodReadyToStartContainers", "status": "True", "lastTransitionTime": "2026-11-12T07:50:02Z"},
                    {"type": "ContainersReady", "status": "True", "lastTransitionTime": "2026-11-12T08:00:00Z"},
                    {"type": "Ready", "status": "True", "lastTransitionTime": "2026-11-12T08:00:00Z"}],
                "containerStatuses": [{"name": "vllm", "ready": true, "started": true, "restartCount": 0,
                    "state": {"running": {"startedAt": "2026-11-12T07:51:00Z"}}}]}});
        change(&mut pod);
        self.object(pod)
    }

    /// A vLLM pod that started a minute ago and is not Ready.
    pub(crate) fn loading_pod(self, name: &str) -> Self {
        self.pod_with(name, |pod| {
            pod["metadata"]["creationTimestamp"] = "2026-11-12T09:58:30Z".into();
            pod["status"]["conditions"] = json!([
                {"type": "PodScheduled", "status": "True", "lastTransitionTime": "2026-11-12T09:58:30Z"},
                {"type": "PodReadyToStartContainers", "status": "True", "lastTransitionTime": "2026-11-12T09:58:31Z"},
                {"type": "ContainersReady", "status": "False", "lastTransitionTime": "2026-11-12T09:58:30Z"},
                {"type": "Ready", "status": "False", "lastTransitionTime": "2026-11-12T09:58:30Z"}]);
            pod["status"]["containerStatuses"][0] = json!({"name": "vllm", "ready": false, "started": false, "restartCount": 0,
                "state": {"running": {"startedAt": "2026-11-12T09:59:00Z"}}});
        })
    }

    /// A Service `<name>` over this pod alone, whose slice says `ready` of it.
    pub(crate) fn service_listing(mut self, name: &str, ready: bool, publish: bool) -> Self {
        if let Some(pod) = self.objects.iter_mut().find(|object| object["metadata"]["name"] == name && object["kind"] == "Pod") {
            pod["metadata"]["labels"] = json!({"app": "a", "name": name});
        }
        self.object(json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name, "namespace": "s"},
                "spec": {"selector": {"name": name}, "ports": [{"port": 8000}], "publishNotReadyAddresses": publish}}))
            .object(json!({"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
                "metadata": {"name": format!("{name}-1"), "namespace": "s", "labels": {"kubernetes.io/service-name": name,
                    "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io"}},
                "endpoints": [{"addresses": ["10.0.0.1"], "conditions": {"ready": ready},
                    "targetRef": {"kind": "Pod", "name": name, "uid": format!("uid-{name}")}}], "ports": [{"port": 8000}]}))
    }

    /// A Ready pod behind a Service of its own.
    pub(crate) fn serving_pod(self, name: &str, listed: bool) -> Self {
        self.pod_with(name, |_| ()).service_listing(name, listed, false)
    }

    /// Makes a pod belong to a controller.
    pub(crate) fn owned(self, pod: &str, kind: &str, owner: &str) -> Self {
        self.owned_object(&format!("pod/s/{pod}"), kind, owner, "apps/v1")
    }

    /// Makes an object belong to a controller.
    pub(crate) fn owned_object(mut self, subject: &str, kind: &str, owner: &str, api_version: &str) -> Self {
        let found = self.objects.iter_mut().find(|object| {
            Subject::object(object["kind"].as_str().unwrap(), "s", object["metadata"]["name"].as_str().unwrap()).as_str() == subject
        });
        found.unwrap()["metadata"]["ownerReferences"] =
            json!([{"apiVersion": api_version, "kind": kind, "name": owner, "controller": true}]);
        self
    }

    /// Changes an object that is there.
    pub(crate) fn change(&mut self, subject: &str, change: impl FnOnce(&mut Value)) {
        let found = self.objects.iter_mut().find(|object| {
            Subject::object(object["kind"].as_str().unwrap(), "s", object["metadata"]["name"].as_str().unwrap()).as_str() == subject
        });
        change(found.unwrap());
    }

    /// Gives a pod other labels.
    pub(crate) fn relabelled(mut self, pod: &str, labels: Value) -> Self {
        self.change(&format!("pod/s/{pod}"), |pod| pod["metadata"]["labels"] = labels);
        self
    }

    /// Changes an object that is there, in passing.
    pub(crate) fn with(mut self, subject: &str, change: impl FnOnce(&mut Value)) -> Self {
        self.change(subject, change);
        self
    }

    /// An InferencePool over `app: a` with a picker Service `epp`, taken up by gateway `gw`.
    pub(crate) fn pool(self, name: &str, change: impl FnOnce(&mut Value)) -> Self {
        let mut pool = json!({"apiVersion": "inference.networking.k8s.io/v1", "kind": "InferencePool",
            "metadata": {"name": name, "namespace": "s", "creationTimestamp": "2026-11-01T00:00:00Z"},
            "spec": {"selector": {"matchLabels": {"app": "a"}}, "targetPorts": [{"number": 8000}],
                "endpointPickerRef": {"name": "epp", "port": {"number": 9002}}},
            "status": {"parents": [{"parentRef": {"name": "gw", "kind": "Gateway"}, "conditions": conditions(&[("Accepted", "True"), ("ResolvedRefs", "True")])}]}});
        change(&mut pool);
        self.object(pool)
    }

    /// An HTTPRoute from gateway `gw` to a pool, for all paths.
    pub(crate) fn route(self, name: &str, pool: &str, status: &[(&str, &str)]) -> Self {
        self.object(json!({"apiVersion": "gateway.networking.k8s.io/v1", "kind": "HTTPRoute", "metadata": {"name": name, "namespace": "s"},
            "spec": {"parentRefs": [{"name": "gw"}], "rules": [{"backendRefs": [
                {"group": "inference.networking.k8s.io", "kind": "InferencePool", "name": pool}]}]},
            "status": {"parents": [{"parentRef": {"name": "gw"}, "conditions": conditions(status)}]}}))
    }

    /// The Service `epp` alone.
    pub(crate) fn epp_service(self) -> Self {
        self.object(json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "epp", "namespace": "s"},
            "spec": {"selector": {"app": "epp"}, "ports": [{"port": 9002}]}}))
    }

    /// A pod of the picker (and its Service), Ready or not for an hour.
    pub(crate) fn epp(self, name: &str, ready: bool, change: impl FnOnce(&mut Value)) -> Self {
        let kit = if self.objects.iter().any(|object| object["metadata"]["name"] == "epp") { self } else { self.epp_service() };
        kit.pod_with(name, |pod| {
            pod["metadata"]["labels"] = json!({"app": "epp"});
            pod["spec"]["containers"][0] = json!({"name": "epp", "image": "x/llm-d-router-endpoint-picker:v0.10.0"});
            pod["status"]["containerStatuses"][0]["name"] = "epp".into();
            pod["status"]["containerStatuses"][0]["ready"] = ready.into();
            let status = if ready { "True" } else { "False" };
            for i in [2, 3] {
                pod["status"]["conditions"][i]["status"] = status.into();
                pod["status"]["conditions"][i]["lastTransitionTime"] = "2026-11-12T09:00:00Z".into();
            }
            change(pod);
        })
    }

    /// A node with that many GPUs.
    pub(crate) fn node(self, name: &str, gpus: u32, change: impl FnOnce(&mut Value)) -> Self {
        let mut node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}}, "spec": {},
            "status": {"capacity": {"nvidia.com/gpu": gpus.to_string()}, "allocatable": {"nvidia.com/gpu": gpus.to_string()},
                "conditions": conditions(&[("Ready", "True")])}});
        change(&mut node);
        self.object(node)
    }

    /// A pod that holds GPUs of a node.
    pub(crate) fn gpu_pod(self, name: &str, node: &str, gpus: u32, change: impl FnOnce(&mut Value)) -> Self {
        self.pod_with(name, |pod| {
            pod["spec"]["nodeName"] = node.into();
            pod["spec"]["containers"][0]["resources"] = json!({"limits": {"nvidia.com/gpu": gpus.to_string()}});
            change(pod);
        })
    }

    /// A pod that needs GPUs and that no node takes.
    pub(crate) fn waiting_pod(self, name: &str, gpus: u32, change: impl FnOnce(&mut Value)) -> Self {
        self.gpu_pod(name, "", gpus, |pod| {
            pod["spec"]["nodeName"] = Value::Null;
            pod["status"] = json!({"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable",
                "message": "0/2 nodes are available", "lastTransitionTime": "2026-11-12T09:30:00Z"}]});
            change(pod);
        })
    }

    /// A page of a node's GPU exporter at the present: index, MiB used, and the pod on each card (empty for none).
    pub(crate) fn exporter(mut self, node: &str, cards: &[(u32, u32, &str)]) -> Self {
        let text: String = cards
            .iter()
            .map(|(index, used, pod)| {
                let labels = format!("gpu=\"{index}\",UUID=\"GPU-{index}\",namespace=\"s\",pod=\"{pod}\"");
                format!(
                    "DCGM_FI_DEV_FB_USED{{{labels}}} {used}\nDCGM_FI_DEV_FB_FREE{{{labels}}} {}\nDCGM_FI_DEV_GPU_UTIL{{{labels}}} 50\n",
                    81_000 - used
                )
            })
            .collect();
        self.facts.exporters.push(MetricPage {
            subject: Subject::node(node),
            port: Some(9400),
            path: "/metrics".into(),
            at: now(),
            page: read(text.as_bytes(), &Filter::All).into(),
        });
        self
    }

    /// An answer of gateway `gw`, `offset` seconds from the present.
    pub(crate) fn proxy_answer(mut self, offset: i64, path: &str, status: u16) -> Self {
        self.facts.answers.push(HttpAnswer {
            target: Subject::object("gateway", "s", "gw"),
            port: None,
            method: "POST".into(),
            path: path.into(),
            at: now() + SignedDuration::from_secs(offset),
            latency_ms: Some(2.0),
            outcome: HttpOutcome::Answered { status, content_type: String::new(), body: String::new() },
        });
        self
    }

    /// The log of a container, oldest line first.
    pub(crate) fn log(mut self, pod: &str, container: &str, lines: &[&str]) -> Self {
        self.facts.logs.push(crate::model::engine::ContainerLog {
            pod: Subject::pod("s", pod),
            container: container.into(),
            lines: lines.iter().map(|line| (*line).to_owned()).collect(),
            previous_at: None,
            exit_code: None,
        });
        self
    }

    /// The log of a run that a restart ended at `ended`.
    pub(crate) fn previous_log(self, pod: &str, container: &str, ended: &str, lines: &[&str]) -> Self {
        let mut kit = self.log(pod, container, lines);
        if let Some(log) = kit.facts.logs.last_mut() {
            log.previous_at = Some(ended.parse().unwrap());
        }
        kit
    }

    /// A version of an object as a watch showed it at `at`.
    pub(crate) fn seen(mut self, at: &str, object: &Value) -> Self {
        let at = at.parse().unwrap();
        let object = Object::read(object, at).unwrap();
        self.facts.history.push(crate::world::facts::Change { at, event: "MODIFIED".into(), object });
        self
    }

    /// An event about an object of namespace `s`.
    pub(crate) fn event(self, kind: &str, name: &str, reason: &str, message: &str) -> Self {
        let n = self.objects.len();
        self.object(json!({"apiVersion": "v1", "kind": "Event", "metadata": {"name": format!("event-{n}"), "namespace": "s"},
            "reason": reason, "message": message, "count": 5, "firstTimestamp": "2026-11-12T09:30:00Z",
            "lastTimestamp": "2026-11-12T09:59:00Z", "involvedObject": {"kind": kind, "namespace": "s", "name": name}}))
    }

    /// An answer of a pod at the present: a status and body, or `connection refused`, `timeout`.
    pub(crate) fn answer(mut self, pod: &str, path: &str, outcome: Result<(u16, &str), &str>) -> Self {
        self.facts.answers.push(HttpAnswer {
            target: Subject::pod("s", pod),
            port: Some(8000),
            method: "GET".into(),
            path: path.into(),
            at: now(),
            latency_ms: Some(2.0),
            outcome: match outcome {
                Ok((status, body)) => HttpOutcome::Answered { status, content_type: "application/json".into(), body: body.into() },
                Err("connection refused") => HttpOutcome::Failed(HttpFailure::Refused),
                Err("timeout") => HttpOutcome::Failed(HttpFailure::Timeout),
                Err(other) => HttpOutcome::Failed(HttpFailure::Other(other.into())),
            },
        });
        self
    }

    /// A metric page of a pod, `offset` seconds from the present.
    pub(crate) fn page(mut self, pod: &str, offset: i64, text: &str) -> Self {
        self.facts.pages.push(MetricPage {
            subject: Subject::pod("s", pod),
            port: Some(8000),
            path: "/metrics".into(),
            at: now() + SignedDuration::from_secs(offset),
            page: read(text.as_bytes(), &Filter::All).into(),
        });
        self
    }

    /// The world of all that, with its findings.
    pub(crate) fn build(mut self) -> Judged {
        self.facts.objects = self.objects.iter().map(|object| Object::read(object, now()).unwrap()).collect();
        let world = World::build(self.facts, "bundle", now());
        let findings = diagnose(&world);
        Judged { world, findings }
    }
}

/// What rules about autoscaling need beside pods.
impl Kit {
    /// An answer of something that is no pod: `prometheus`, `apiserver`, `router`.
    pub(crate) fn answer_from(mut self, target: &str, path: &str, status: u16, body: &str) -> Self {
        self.facts.answers.push(HttpAnswer {
            target: Subject::parse(target),
            port: None,
            method: "GET".into(),
            path: path.into(),
            at: now(),
            latency_ms: Some(2.0),
            outcome: HttpOutcome::Answered { status, content_type: "application/json".into(), body: body.into() },
        });
        self
    }

    /// An object as a watch saw it some seconds before the present.
    pub(crate) fn seen_before(mut self, seconds: i64, object: &Value) -> Self {
        let at = now() - SignedDuration::from_secs(seconds);
        let object = Object::read(object, at).unwrap();
        self.facts.history.push(crate::world::facts::Change { at, event: "MODIFIED".into(), object });
        self
    }
}
