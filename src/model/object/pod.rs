//! Pods and their containers: the slim form.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::field::Field;
use super::meta::{Condition, Selector, condition};
use crate::model::{Known, text};

/// Environment variables whose value decides something that the house reports. Values of all others are dropped on arrival.
const READABLE_ENV: &[&str] = &[
    "VLLM_SERVER_DEV_MODE",
    "VLLM_LOGGING_LEVEL",
    "VLLM_KEEP_ALIVE_ON_ENGINE_DEATH",
    "VLLM_USE_RUST_FRONTEND",
    "SGLANG_HEALTH_CHECK_TIMEOUT",
    "SGLANG_ENABLE_HEALTH_ENDPOINT_GENERATION",
    "SGLANG_FORCE_SHUTDOWN",
    "NVIDIA_VISIBLE_DEVICES",
    "CUDA_VISIBLE_DEVICES",
];

/// A pod.
#[derive(Debug, Clone, PartialEq)]
pub struct Pod {
    /// The part that a pod template has as well.
    pub spec: PodSpec,
    /// Node it is bound to; empty before.
    pub node: String,
    /// `Pending`, `Running`, `Succeeded`, `Failed`, `Unknown`.
    pub phase: Known<String>,
    /// `status.reason`, such as `Evicted`, `UnexpectedAdmissionError`.
    pub reason: String,
    /// `status.message`.
    pub message: String,
    /// Conditions.
    pub conditions: Vec<Condition>,
    /// Address.
    pub ip: String,
    /// When the kubelet took it.
    pub started: Option<Timestamp>,
    /// States of the containers.
    pub containers: Vec<ContainerStatus>,
    /// States of the init containers.
    pub init_containers: Vec<ContainerStatus>,
}

/// The spec of a pod or a pod template.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PodSpec {
    /// Containers.
    pub containers: Vec<Container>,
    /// Init containers, sidecars among them.
    pub init_containers: Vec<Container>,
    /// Seconds between SIGTERM and SIGKILL; 30 where it is not set.
    pub grace_s: Option<i64>,
    /// Names of scheduling gates.
    pub scheduling_gates: Vec<String>,
    /// Condition types of readiness gates.
    pub readiness_gates: Vec<String>,
    /// Node selector.
    pub node_selector: BTreeMap<String, String>,
    /// Tolerations.
    pub tolerations: Vec<Toleration>,
    /// Claims of persistent volumes it mounts.
    pub claims: Vec<String>,
    /// On the node's network.
    pub host_network: bool,
    /// `priorityClassName`.
    pub priority_class: String,
    /// What `affinity.nodeAffinity` requires of a node at scheduling: any of these terms; empty requires nothing.
    pub required_nodes: Vec<Selector>,
    /// Names of `resourceClaims` (DRA): devices that no request counts.
    pub device_claims: Vec<String>,
}

/// One toleration.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Toleration {
    /// Key; empty tolerates every taint when the operator is `Exists`.
    pub key: String,
    /// `Equal` (the default) or `Exists`.
    pub operator: String,
    /// Value.
    pub value: String,
    /// Effect; empty for all.
    pub effect: String,
}

/// One container of a spec.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Container {
    /// Name.
    pub name: String,
    /// Image as asked for.
    pub image: String,
    /// `command`, secrets redacted.
    pub command: Vec<String>,
    /// `args`, secrets redacted.
    pub args: Vec<String>,
    /// Names of its variables, with the value of the few that are read.
    pub env: BTreeMap<String, Option<String>>,
    /// Declared ports.
    pub ports: Vec<ContainerPort>,
    /// Requested extended resources by name: `nvidia.com/gpu` → 8. Limits stand in where requests are absent, as the API defaults them.
    pub devices: BTreeMap<String, u32>,
    /// Liveness probe.
    pub liveness: Option<Probe>,
    /// Readiness probe.
    pub readiness: Option<Probe>,
    /// Startup probe.
    pub startup: Option<Probe>,
    /// What runs before SIGTERM.
    pub pre_stop: Option<PreStop>,
    /// `restartPolicy: Always` on an init container makes it a sidecar.
    pub sidecar: bool,
}

/// A declared port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContainerPort {
    /// Name; may be empty.
    pub name: String,
    /// Number.
    pub port: u16,
}

/// A probe.
#[derive(Debug, Clone, PartialEq)]
pub struct Probe {
    /// How it asks.
    pub how: ProbeKind,
    /// Seconds before the first.
    pub initial_delay_s: i64,
    /// Seconds between two.
    pub period_s: i64,
    /// Seconds for one.
    pub timeout_s: i64,
    /// Failures in a row that count.
    pub failure_threshold: i64,
}

/// How a probe asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProbeKind {
    /// GET of a path on a port (name or number).
    Http {
        /// Path.
        path: String,
        /// Port name or number.
        port: String,
    },
    /// A connection to a port.
    Tcp(String),
    /// A command in the container.
    Exec,
    /// gRPC health.
    Grpc,
    /// None of these could be read.
    Unknown,
}

/// What runs before SIGTERM is sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PreStop {
    /// Seconds it takes, where it is a plain sleep.
    pub sleep_s: Option<i64>,
    /// What it does, in short.
    pub what: String,
}

/// State of one container.
#[derive(Debug, Clone, PartialEq)]
pub struct ContainerStatus {
    /// Name.
    pub name: String,
    /// The kubelet's readiness verdict.
    pub ready: bool,
    /// The startup probe has passed (or there is none).
    pub started: Option<bool>,
    /// Restarts.
    pub restarts: u32,
    /// Image that runs.
    pub image: String,
    /// Its state now.
    pub state: ContainerState,
    /// How its last run ended.
    pub last: Option<Termination>,
}

/// State of a container now.
#[derive(Debug, Clone, PartialEq)]
pub enum ContainerState {
    /// Waits, with the reason: `ContainerCreating`, `ImagePullBackOff`, `CrashLoopBackOff`.
    Waiting {
        /// Reason.
        reason: String,
        /// Message.
        message: String,
    },
    /// Runs since.
    Running {
        /// Start.
        since: Option<Timestamp>,
    },
    /// Ended.
    Terminated(Termination),
    /// The status says nothing.
    Unknown,
}

/// How a run of a container ended.
#[derive(Debug, Clone, PartialEq)]
pub struct Termination {
    /// Exit code.
    pub exit_code: Option<i64>,
    /// Reason: `Error`, `OOMKilled`, `Completed`.
    pub reason: String,
    /// Start.
    pub started: Option<Timestamp>,
    /// End.
    pub finished: Option<Timestamp>,
}

impl Pod {
    /// Reads the body of a Pod.
    pub fn read(root: &Field) -> Self {
        let status = root.get("status");
        Self {
            spec: PodSpec::read(&root.get("spec")),
            node: root.at(&["spec", "nodeName"]).name_or_empty(),
            phase: status.get("phase").name().known(),
            reason: status.get("reason").name_or_empty(),
            message: status.get("message").text_or_empty(),
            conditions: Condition::read_all(&status.get("conditions")),
            ip: status.get("podIP").name_or_empty(),
            started: status.get("startTime").instant().some(),
            containers: status.get("containerStatuses").items().iter().map(ContainerStatus::read).collect(),
            init_containers: status.get("initContainerStatuses").items().iter().map(ContainerStatus::read).collect(),
        }
    }

    /// A condition by type.
    pub fn condition(&self, kind: &str) -> Option<&Condition> {
        condition(&self.conditions, kind)
    }

    /// The status of the container of that name, sidecars included.
    pub fn container(&self, name: &str) -> Option<&ContainerStatus> {
        self.containers.iter().chain(&self.init_containers).find(|status| status.name == name)
    }

    /// Restarts of all its containers.
    pub fn restarts(&self) -> u32 {
        self.containers.iter().map(|status| status.restarts).fold(0, u32::saturating_add)
    }

    /// Whether it has ended for good and holds nothing.
    pub fn has_ended(&self) -> bool {
        matches!(self.phase.as_deref(), Ok("Succeeded" | "Failed"))
    }
}

impl PodSpec {
    /// Reads a pod's or template's `spec`.
    pub fn read(field: &Field) -> Self {
        let containers = |name: &str| field.get(name).items().iter().map(Container::read).collect();
        Self {
            containers: containers("containers"),
            init_containers: containers("initContainers"),
            grace_s: field.get("terminationGracePeriodSeconds").int().some(),
            scheduling_gates: field.get("schedulingGates").items().iter().map(|gate| gate.get("name").name_or_empty()).collect(),
            readiness_gates: field
                .get("readinessGates")
                .items()
                .iter()
                .map(|gate| gate.get("conditionType").name_or_empty())
                .collect(),
            node_selector: field.get("nodeSelector").labels(),
            tolerations: field
                .get("tolerations")
                .items()
                .iter()
                .map(|item| Toleration {
                    key: item.get("key").name_or_empty(),
                    operator: item.get("operator").name_or_empty(),
                    value: item.get("value").name_or_empty(),
                    effect: item.get("effect").name_or_empty(),
                })
                .collect(),
            claims: field
                .get("volumes")
                .items()
                .iter()
                .filter_map(|volume| volume.get("persistentVolumeClaim").get("claimName").name().some())
                .collect(),
            host_network: field.get("hostNetwork").flag().some().unwrap_or(false),
            priority_class: field.get("priorityClassName").name_or_empty(),
            required_nodes: field
                .at(&["affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms"])
                .items()
                .iter()
                .filter_map(Selector::read)
                .collect(),
            device_claims: field.get("resourceClaims").items().iter().map(|claim| claim.get("name").name_or_empty()).collect(),
        }
    }

    /// Seconds between SIGTERM and SIGKILL.
    pub fn grace(&self) -> i64 {
        self.grace_s.unwrap_or(30)
    }

    /// All declared ports of the containers, sidecars included.
    pub fn ports(&self) -> impl Iterator<Item = &ContainerPort> {
        self.containers.iter().chain(self.init_containers.iter().filter(|c| c.sidecar)).flat_map(|c| &c.ports)
    }
}

impl Container {
    fn read(field: &Field) -> Self {
        let args = |name: &str| {
            let raw: Vec<String> =
                field.get(name).items().iter().filter_map(|item| item.raw()?.as_str().map(str::to_owned)).collect();
            text::redact_args(&raw)
        };
        let mut devices: BTreeMap<String, u32> = BTreeMap::new();
        for list in ["limits", "requests"] {
            for (name, quantity) in field.at(&["resources", list]).members() {
                if !name.contains('/') {
                    continue;
                }
                if let Some(count) = quantity.int_or_text().some().and_then(|text| text.parse().ok()) {
                    devices.insert(name, count);
                }
            }
        }
        Self {
            name: field.get("name").name_or_empty(),
            image: field.get("image").text_or_empty(),
            command: args("command"),
            args: args("args"),
            env: field
                .get("env")
                .items()
                .iter()
                .map(|item| {
                    let name = item.get("name").name_or_empty();
                    let value = READABLE_ENV.contains(&name.as_str()).then(|| item.get("value").text().some()).flatten();
                    (name, value)
                })
                .collect(),
            ports: field
                .get("ports")
                .items()
                .iter()
                .filter_map(|port| {
                    Some(ContainerPort {
                        name: port.get("name").name_or_empty(),
                        port: port.get("containerPort").count().some().and_then(|n| u16::try_from(n).ok())?,
                    })
                })
                .collect(),
            devices,
            liveness: Probe::read(&field.get("livenessProbe")),
            readiness: Probe::read(&field.get("readinessProbe")),
            startup: Probe::read(&field.get("startupProbe")),
            pre_stop: PreStop::read(&field.at(&["lifecycle", "preStop"])),
            sidecar: field.get("restartPolicy").name().some().as_deref() == Some("Always"),
        }
    }

    /// Command and args in one row of words; a single `sh -c` script is split at blanks.
    pub fn words(&self) -> Vec<&str> {
        self.command.iter().chain(&self.args).flat_map(|part| part.split_whitespace()).collect()
    }

    /// The value of a flag, as `--flag value` or `--flag=value`; `Some("")` where it stands alone.
    pub fn flag(&self, flag: &str) -> Option<&str> {
        let words = self.words();
        words.iter().enumerate().find_map(|(i, word)| {
            let rest = word.strip_prefix(flag)?;
            match rest.strip_prefix('=') {
                Some(value) => Some(value),
                None if rest.is_empty() => Some(words.get(i + 1).filter(|next| !next.starts_with("--")).copied().unwrap_or("")),
                None => None,
            }
        })
    }
}

impl Probe {
    fn read(field: &Field) -> Option<Self> {
        field.raw()?;
        let how = if field.get("httpGet").is_set() {
            let get = field.get("httpGet");
            ProbeKind::Http {
                path: get.get("path").text().some().unwrap_or_else(|| "/".into()),
                port: get.get("port").int_or_text().some().unwrap_or_default(),
            }
        } else if field.get("tcpSocket").is_set() {
            ProbeKind::Tcp(field.at(&["tcpSocket", "port"]).int_or_text().some().unwrap_or_default())
        } else if field.get("exec").is_set() {
            ProbeKind::Exec
        } else if field.get("grpc").is_set() {
            ProbeKind::Grpc
        } else {
            ProbeKind::Unknown
        };
        let number = |name: &str, default: i64| field.get(name).int().some().unwrap_or(default).clamp(0, 1 << 31);
        Some(Self {
            how,
            initial_delay_s: number("initialDelaySeconds", 0),
            period_s: number("periodSeconds", 10).max(1),
            timeout_s: number("timeoutSeconds", 1).max(1),
            failure_threshold: number("failureThreshold", 3).max(1),
        })
    }

    /// Seconds that a container that never answers is given: the delay, and the failures in a row.
    pub fn budget_s(&self) -> i64 {
        self.initial_delay_s + self.period_s * self.failure_threshold
    }

    /// What it asks, in short: `GET :8000/health`.
    pub fn shown(&self) -> String {
        match &self.how {
            ProbeKind::Http { path, port } => format!("GET :{port}{path}"),
            ProbeKind::Tcp(port) => format!("TCP :{port}"),
            ProbeKind::Exec => "a command".into(),
            ProbeKind::Grpc => "gRPC".into(),
            ProbeKind::Unknown => "in a way that could not be read".into(),
        }
    }
}

impl PreStop {
    fn read(field: &Field) -> Option<Self> {
        field.raw()?;
        if let Some(seconds) = field.at(&["sleep", "seconds"]).int().some() {
            return Some(Self { sleep_s: Some(seconds.max(0)), what: format!("sleep {seconds} s") });
        }
        if field.get("exec").is_set() {
            let raw: Vec<String> = field
                .at(&["exec", "command"])
                .items()
                .iter()
                .filter_map(|item| item.raw()?.as_str().map(str::to_owned))
                .collect();
            let line = text::tidy(&text::redact_args(&raw).join(" ")).to_string();
            return Some(Self { sleep_s: sleep_in(&line), what: line });
        }
        if field.get("httpGet").is_set() {
            return Some(Self { sleep_s: None, what: format!("GET {}", field.at(&["httpGet", "path"]).text_or_empty()) });
        }
        Some(Self { sleep_s: None, what: "a hook that could not be read".into() })
    }
}

/// Seconds of a `sleep N` in a shell line that does nothing else.
fn sleep_in(line: &str) -> Option<i64> {
    let mut words = line.split(|c: char| c.is_whitespace() || matches!(c, ';' | '"' | '\'')).filter(|w| !w.is_empty());
    words.find(|word| *word == "sleep" || word.ends_with("/sleep"))?;
    words.next()?.trim_end_matches('s').parse().ok().filter(|seconds| *seconds >= 0)
}

impl ContainerStatus {
    fn read(field: &Field) -> Self {
        let state = field.get("state");
        Self {
            name: field.get("name").name_or_empty(),
            ready: field.get("ready").flag().some().unwrap_or(false),
            started: field.get("started").flag().some(),
            restarts: field.get("restartCount").count().some().unwrap_or(0),
            image: field.get("image").text_or_empty(),
            state: if state.get("running").is_set() {
                ContainerState::Running { since: state.at(&["running", "startedAt"]).instant().some() }
            } else if state.get("terminated").is_set() {
                ContainerState::Terminated(Termination::read(&state.get("terminated")))
            } else if state.get("waiting").is_set() {
                ContainerState::Waiting {
                    reason: state.at(&["waiting", "reason"]).name_or_empty(),
                    message: state.at(&["waiting", "message"]).text_or_empty(),
                }
            } else {
                ContainerState::Unknown
            },
            last: field
                .at(&["lastState", "terminated"])
                .is_set()
                .then(|| Termination::read(&field.at(&["lastState", "terminated"]))),
        }
    }

    /// Since when it runs, if it runs.
    pub fn running_since(&self) -> Option<Option<Timestamp>> {
        match &self.state {
            ContainerState::Running { since } => Some(*since),
            _ => None,
        }
    }
}

impl Termination {
    fn read(field: &Field) -> Self {
        Self {
            exit_code: field.get("exitCode").int().some(),
            reason: field.get("reason").name_or_empty(),
            started: field.get("startedAt").instant().some(),
            finished: field.get("finishedAt").instant().some(),
        }
    }

    /// `exit 137 (OOMKilled)`.
    pub fn shown(&self) -> String {
        let code = self.exit_code.map_or_else(|| "exit code unknown".to_owned(), |code| format!("exit {code}"));
        if self.reason.is_empty() { code } else { format!("{code} ({})", self.reason) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;
    use serde_json::json;
    use std::cell::RefCell;

    fn container(doc: serde_json::Value) -> Container {
        let problems = RefCell::new(Vec::new());
        Container::read(&Field::root(&doc, &problems))
    }

    #[test]
    fn requests_win_over_limits_and_slices_count_as_gpus() {
        let c = container(json!({"name": "vllm", "resources": {"limits": {"nvidia.com/gpu": "8", "cpu": "4"},
            "requests": {"nvidia.com/gpu": 4, "nvidia.com/mig-1g.10gb": "2"}}}));
        assert_eq!(c.gpus(), 6);
        assert_eq!(c.devices.get("cpu"), None);
    }

    #[rstest]
    #[case(json!({"args": ["--shutdown-timeout", "20"]}), Some("20"))]
    #[case(json!({"args": ["--shutdown-timeout=20"]}), Some("20"))]
    #[case(json!({"command": ["sh", "-c", "vllm serve m --shutdown-timeout 20 --port 8000"]}), Some("20"))]
    #[case(json!({"args": ["--shutdown-timeout", "--port=1"]}), Some(""))]
    #[case(json!({"args": ["--shutdown-timeout-x=20"]}), None)]
    fn flags(#[case] doc: serde_json::Value, #[case] wanted: Option<&str>) {
        assert_eq!(container(doc).flag("--shutdown-timeout"), wanted);
    }

    #[test]
    fn values_of_variables_are_dropped_unless_they_decide_something() {
        let c = container(json!({"env": [{"name": "HF_TOKEN", "value": "hf_secret"}, {"name": "VLLM_SERVER_DEV_MODE", "value": "1"}]}));
        assert_eq!(c.env.get("HF_TOKEN"), Some(&None));
        assert_eq!(c.env.get("VLLM_SERVER_DEV_MODE"), Some(&Some("1".into())));
    }

    #[rstest]
    #[case("sh -c sleep 15", Some(15))]
    #[case("/bin/sleep 20s", Some(20))]
    #[case("curl localhost", None)]
    fn pre_stop(#[case] line: &str, #[case] wanted: Option<i64>) {
        assert_eq!(sleep_in(line), wanted);
    }

    #[test]
    fn probe_budget() {
        let c = container(json!({"livenessProbe": {"httpGet": {"path": "/health", "port": "http"}, "initialDelaySeconds": 120,
            "periodSeconds": 10, "failureThreshold": 5}}));
        let probe = c.liveness.unwrap();
        assert_eq!((probe.budget_s(), probe.shown().as_str()), (170, "GET :http/health"));
    }
}
