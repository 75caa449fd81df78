//! Findings: something wrong or risky, with its proof and what to do about it.
//!
//! Codes are a public vocabulary: a script that greps for one must find it in the next release too.

use std::fmt;

use serde::{Serialize, Serializer};

use super::{Evidence, Subject, text};

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Requests are lost or soon will be, or a rollout, scaling or drain can not go on.
    Critical,
    /// Capacity or safety is lost, nothing is broken yet.
    Warning,
    /// Worth knowing.
    Info,
}

impl Severity {
    /// The word shown.
    pub fn word(self) -> &'static str {
        match self {
            Self::Critical => "critical",
            Self::Warning => "warning",
            Self::Info => "info",
        }
    }
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.word())
    }
}

impl Serialize for Severity {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.word())
    }
}

macro_rules! codes {
    ($($variant:ident = $code:literal, $severity:ident, $says:literal;)+) => {
        /// The code of a finding.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Code { $(#[doc = $says] $variant),+ }

        impl Code {
            /// All codes, in the order of the catalogue.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The code as written.
            pub fn word(self) -> &'static str {
                match self { $(Self::$variant => $code),+ }
            }

            /// How bad it usually is.
            pub fn severity(self) -> Severity {
                match self { $(Self::$variant => Severity::$severity),+ }
            }

            /// What it says, in one line.
            pub fn says(self) -> &'static str {
                match self { $(Self::$variant => $says),+ }
            }
        }
    };
}

codes! {
    EngineHung = "engine-hung", Critical, "the process answers, has work, and no token moves";
    DeadEndpointInRotation = "dead-endpoint-in-rotation", Critical, "listed as ready, but the engine refuses, fails or does not answer";
    SleepingEndpointInRotation = "sleeping-endpoint-in-rotation", Critical, "an engine asleep still stands in the ready endpoints";
    HealthFalseNegative = "health-false-negative", Warning, "health or readiness fails while the engine does serve";
    ReadyButPortClosed = "ready-but-port-closed", Critical, "pod Ready (weak or no probe), the serving port does not answer";
    StatusContradiction = "status-contradiction", Warning, "an object says ready, what it stands for is not";
    ReadinessGateUnmet = "readiness-gate-unmet", Warning, "containers and engine are ready, a readiness gate of the pod is not";
    SelectorOverlap = "selector-overlap", Warning, "two workloads, Services or scale targets select the same pods";
    ReadyNotListed = "ready-not-listed", Warning, "pod Ready, no ready endpoint of its Service or pool";
    PortMismatch = "port-mismatch", Warning, "pool or Service targets a port that the pod does not open";
    SliceIncludesNotReady = "slice-includes-not-ready", Warning, "the slice says ready for pods that are not";
    RouterSeesFewer = "router-sees-fewer", Warning, "the router counts fewer endpoints than are listed";
    EppWithoutLeader = "epp-without-leader", Critical, "no endpoint picker replica leads";
    PoolNotAccepted = "pool-not-accepted", Critical, "no gateway accepts the pool";
    PoolSelectsNothing = "pool-selects-nothing", Critical, "the pool's selector matches no pod";
    RouterDown = "router-down", Critical, "no router (EPP) of the pool is there to answer; says what happens to requests now: what the proxy was seen to do counts before what the failure mode promises";
    RouterMetricsStale = "router-metrics-stale", Critical, "the router knows the endpoints but has no fresh engine metrics of them, so it holds or sheds requests that the engines could take";
    RouteNotAccepted = "route-not-accepted", Critical, "a gateway does not accept the route or can not resolve its backend";
    RoleDown = "role-down", Critical, "one role of a disaggregated model has no ready replica; says what still works and by which counter that is known";
    RolloutDeadlockNoSpareGpu = "rollout-deadlock-no-spare-gpu", Critical, "the surge pod can not be scheduled, the old one may not go first";
    RolloutDeadlockVolume = "rollout-deadlock-volume", Critical, "the new pod waits for a volume that the old pod holds";
    RolloutBlockedByAdmission = "rollout-blocked-by-admission", Critical, "pods of the rollout stay behind a scheduling gate (Kueue)";
    KilledWhileLoading = "killed-while-loading", Critical, "a liveness or startup probe kills the container before the model is loaded";
    ProbeKillsBusyEngine = "probe-kills-busy-engine", Critical, "liveness fails under load and the kubelet restarts an engine that serves";
    DeadlineShorterThanLoad = "deadline-shorter-than-load", Warning, "`progressDeadlineSeconds` is shorter than download and load take";
    DownloadStalled = "download-stalled", Warning, "the download of the model does not move any more";
    GroupRestartLoop = "group-restart-loop", Critical, "a multi-node group is made anew again and again before it is ready";
    MixedGroup = "mixed-group", Critical, "pods of one group come from different revisions or group keys, or a member was made anew while its group was not";
    FailedCanaryHoldsGpu = "failed-canary-holds-gpu", Warning, "an update failed or was aborted, its pods still hold GPUs";
    WaitingForPromotion = "waiting-for-promotion", Info, "the rollout pauses until a person promotes or aborts it";
    ChangeReverted = "change-reverted", Warning, "a change was undone by the owner of the field";
    RollbackTargetGone = "rollback-target-gone", Warning, "no earlier revision is left in the cluster";
    StaleObservedGeneration = "stale-observed-generation", Warning, "the status is of an older spec: what it says is not current";
    RolesOutOfStep = "roles-out-of-step", Critical, "prefill and decode of one model are at different revisions: a revision has Ready pods in the pool and lacks a Ready replica of another role";
    TwoWriters = "two-writers", Critical, "two controllers or people write the same number: two HPAs, HPA and KEDA, HPA and GitOps or apply, HPA and VariantAutoscaling";
    ReplicasFlapping = "replicas-flapping", Warning, "replicas go up and down again within minutes";
    ScaledAtWrongLevel = "scaled-at-wrong-level", Warning, "an autoscaler or a person scales a child whose parent object sets the number";
    ScaleTargetNotScalable = "scale-target-not-scalable", Critical, "the target's kind has no scale subresource";
    ScaleTargetWithoutSelector = "scale-target-without-selector", Critical, "`/scale` has no selector, so metrics of pods can't be read";
    HpaTargetMissing = "hpa-target-missing", Critical, "the object that the HPA scales does not exist";
    HpaMetricMissing = "hpa-metric-missing", Critical, "the HPA's metric has no value: autoscaling is off";
    MetricMissingReadAsZero = "metric-missing-read-as-zero", Critical, "an empty or missing series counts as 0 and steers scaling";
    HpaAtMax = "hpa-at-max", Warning, "the autoscaler wants its maximum or more";
    ScaleUpLost = "scale-up-lost", Warning, "more replicas are wanted than serve, for too long; says at which stage they are lost";
    OvershootRisk = "overshoot-risk", Warning, "the metric does not see replicas on their way, so more are asked for than the load needs";
    KedaPaused = "keda-paused", Info, "the ScaledObject is paused";
    KedaFallback = "keda-fallback", Warning, "the scaler fails, KEDA sets its fallback replicas";
    KedaHpaEdited = "keda-hpa-edited", Warning, "an HPA that KEDA owns was changed by hand, KEDA will write it back";
    NoWakeSignalAtZero = "no-wake-signal-at-zero", Critical, "scaled to zero, and its trigger has no value at zero";
    DeprecatedAutoscalerLeftover = "deprecated-autoscaler-leftover", Warning, "objects of a removed autoscaler are left over and do nothing (VariantAutoscaling)";
    ControllerDown = "controller-down", Critical, "a controller of the chain (KEDA, LWS, KServe, an adapter) does not run or lead: nothing that it moves converges, traffic that runs goes on; names who is hit";
    GraceTooShort = "grace-too-short", Warning, "the grace period ends before preStop and drain do";
    NoDrainOnSigterm = "no-drain-on-sigterm", Warning, "running requests are cut at SIGTERM";
    PdbBlocksDrain = "pdb-blocks-drain", Critical, "a PodDisruptionBudget lets no pod go, eviction will not pass by itself";
    StuckTerminating = "stuck-terminating", Warning, "a pod is Terminating long past its grace period";
    KvTransferPending = "kv-transfer-pending", Warning, "a prefill engine without a request of its own still holds KV that decode has not fetched: it is not drained";
    Fragmentation = "fragmentation", Warning, "enough GPUs are free, no allowed node has enough of them";
    GpuUnhealthy = "gpu-unhealthy", Warning, "the node has fewer allocatable GPUs than it should";
    NodeRejectsAllGpuPods = "node-rejects-all-gpu-pods", Critical, "a node takes GPU pods and fails each of them, or offers none";
    LeakedGpuMemory = "leaked-gpu-memory", Critical, "memory of a GPU is used by no pod that runs";
    IdleGpuHolder = "idle-gpu-holder", Info, "GPUs requested, no request served for a long time";
    ExporterWithoutPodLabels = "exporter-without-pod-labels", Warning, "the GPU exporter does not say which pod uses a device";
    MetricsUnreadable = "metrics-unreadable", Warning, "the metrics page can not be read, or lines of it can't";
    MetricRenamed = "metric-renamed", Warning, "something asks for a metric under a name that the engine no longer has";
    LoadImbalance = "load-imbalance", Info, "engines or replicas of one model are loaded very unevenly";
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.word())
    }
}

impl Serialize for Code {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.word())
    }
}

/// Something wrong or risky.
#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    /// Which.
    pub code: Code,
    /// How bad here.
    pub severity: Severity,
    /// Whom it is about; the first is the one to show.
    pub subjects: Vec<Subject>,
    /// One sentence.
    pub summary: String,
    /// What proves it; never empty.
    pub evidence: Vec<Evidence>,
    /// What may be done.
    pub remedies: Vec<String>,
    /// What would be wrong to do.
    pub not: Vec<String>,
}

impl Finding {
    /// A finding with the usual severity of its code and one piece of evidence.
    pub fn new(code: Code, subject: &Subject, summary: impl Into<String>, proof: Evidence) -> Self {
        Self {
            code,
            severity: code.severity(),
            subjects: vec![subject.clone()],
            summary: text::redacted(summary.into()),
            evidence: vec![proof],
            remedies: Vec::new(),
            not: Vec::new(),
        }
    }

    /// The same about one more subject.
    #[must_use]
    pub fn also(mut self, subject: &Subject) -> Self {
        if !self.subjects.contains(subject) {
            self.subjects.push(subject.clone());
        }
        self
    }

    /// The same with more proof.
    #[must_use]
    pub fn proof(mut self, evidence: Evidence) -> Self {
        if !self.evidence.contains(&evidence) {
            self.evidence.push(evidence);
        }
        self
    }

    /// The same with all this proof.
    #[must_use]
    pub fn proofs(self, evidence: impl IntoIterator<Item = Evidence>) -> Self {
        evidence.into_iter().fold(self, Self::proof)
    }

    /// The same with something that may be done.
    #[must_use]
    pub fn remedy(mut self, words: impl Into<String>) -> Self {
        self.remedies.push(text::redacted(words.into()));
        self
    }

    /// The same with something that would be wrong to do.
    #[must_use]
    pub fn not(mut self, words: impl Into<String>) -> Self {
        self.not.push(text::redacted(words.into()));
        self
    }

    /// The same with another severity.
    #[must_use]
    pub fn severe(mut self, severity: Severity) -> Self {
        self.severity = severity;
        self
    }

    /// The order in which findings are shown: worst first, then by code and subject.
    pub fn rank(&self) -> (Severity, Code, &[Subject]) {
        (self.severity, self.code, &self.subjects)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn codes_are_unique_and_worst_comes_first() {
        let words: BTreeSet<_> = Code::ALL.iter().map(|code| code.word()).collect();
        assert_eq!(words.len(), Code::ALL.len());
        assert!(Severity::Critical < Severity::Warning && Severity::Warning < Severity::Info);
        assert!(Code::ALL.iter().all(|code| !code.says().is_empty()));
    }
}
