//! The cells of pods: what STATUS, READY and RESTARTS say.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::super::kinds::{at, items, number, text};
use super::age;

/// A row of a pod that has ended says so beside its cells.
pub(super) fn condition(pod: &Value, row: &mut Value) {
    let what = match text(pod, &["status", "phase"]) {
        "Succeeded" => ("Succeeded", "The pod has completed successfully."),
        "Failed" => ("Failed", "The pod failed."),
        _ => return,
    };
    row["conditions"] = json!([{"type": "Completed", "status": "True", "reason": what.0, "message": what.1}]);
}

fn restartable(container: &Value) -> bool {
    text(container, &["restartPolicy"]) == "Always"
}

/// Ready, Status, Restarts.
pub(super) fn cells(pod: &Value, now: Timestamp) -> (String, String, String) {
    let phase = text(pod, &["status", "phase"]);
    let own = text(pod, &["status", "reason"]);
    let mut reason = if own.is_empty() { phase } else { own }.to_owned();
    if let Some(gated) = items(pod, &["status", "conditions"]).iter().find(|c| text(c, &["type"]) == "PodScheduled")
        && text(gated, &["reason"]) == "SchedulingGated"
    {
        reason = "SchedulingGated".to_owned();
    }
    let inits = items(pod, &["spec", "initContainers"]);
    let mut total = items(pod, &["spec", "containers"]).len();
    let (mut ready, mut restarts, mut sidecar_restarts) = (0usize, 0i64, 0i64);
    let (mut last_restart, mut last_sidecar): (Option<Timestamp>, Option<Timestamp>) = (None, None);
    total += inits.iter().filter(|c| restartable(c)).count();
    let ended = |status: &Value| -> Option<Timestamp> { text(status, &["lastState", "terminated", "finishedAt"]).parse().ok() };
    let mut starting = false;
    for (n, status) in items(pod, &["status", "initContainerStatuses"]).iter().enumerate() {
        let sidecar = inits.iter().any(|c| text(c, &["name"]) == text(status, &["name"]) && restartable(c));
        let count = number(status, &["restartCount"]).unwrap_or(0);
        restarts += count;
        last_restart = last_restart.max(ended(status));
        if sidecar {
            sidecar_restarts += count;
            last_sidecar = last_sidecar.max(ended(status));
        }
        let terminated = at(status, &["state", "terminated"]);
        let done = terminated.is_some_and(|t| number(t, &["exitCode"]).unwrap_or(0) == 0);
        let started = at(status, &["started"]) == Some(&json!(true));
        if done {
            continue;
        }
        if sidecar && started {
            if at(status, &["ready"]) == Some(&json!(true)) {
                ready += 1;
            }
            continue;
        }
        let waiting = text(status, &["state", "waiting", "reason"]);
        reason = match terminated {
            Some(t) if !text(t, &["reason"]).is_empty() => format!("Init:{}", text(t, &["reason"])),
            Some(t) => match number(t, &["signal"]).unwrap_or(0) {
                0 => format!("Init:ExitCode:{}", number(t, &["exitCode"]).unwrap_or(0)),
                signal => format!("Init:Signal:{signal}"),
            },
            None if !waiting.is_empty() && waiting != "PodInitializing" => format!("Init:{waiting}"),
            None => format!("Init:{n}/{}", inits.len()),
        };
        starting = true;
        break;
    }
    let initialized =
        items(pod, &["status", "conditions"]).iter().any(|c| text(c, &["type"]) == "Initialized" && text(c, &["status"]) == "True");
    if !starting || initialized {
        (restarts, last_restart) = (sidecar_restarts, last_sidecar);
        let mut running = false;
        for status in items(pod, &["status", "containerStatuses"]).iter().rev() {
            restarts += number(status, &["restartCount"]).unwrap_or(0);
            last_restart = last_restart.max(ended(status));
            let waiting = text(status, &["state", "waiting", "reason"]);
            let terminated = at(status, &["state", "terminated"]);
            if !waiting.is_empty() {
                reason = waiting.to_owned();
            } else if let Some(t) = terminated {
                reason = match (text(t, &["reason"]), number(t, &["signal"]).unwrap_or(0)) {
                    ("", 0) => format!("ExitCode:{}", number(t, &["exitCode"]).unwrap_or(0)),
                    ("", signal) => format!("Signal:{signal}"),
                    (why, _) => why.to_owned(),
                };
            } else if at(status, &["ready"]) == Some(&json!(true)) && at(status, &["state", "running"]).is_some() {
                running = true;
                ready += 1;
            }
        }
        if reason == "Completed" && running {
            let is_ready =
                items(pod, &["status", "conditions"]).iter().any(|c| text(c, &["type"]) == "Ready" && text(c, &["status"]) == "True");
            reason = if is_ready { "Running" } else { "NotReady" }.to_owned();
        }
    }
    let leaving = at(pod, &["metadata", "deletionTimestamp"]).is_some();
    if leaving && text(pod, &["status", "reason"]) == "NodeLost" {
        reason = "Unknown".to_owned();
    } else if leaving && !matches!(phase, "Failed" | "Succeeded") {
        reason = "Terminating".to_owned();
    }
    let shown = match last_restart {
        Some(last) if restarts > 0 => format!("{restarts} ({} ago)", age::short(now.as_second() - last.as_second())),
        _ => restarts.to_string(),
    };
    (format!("{ready}/{total}"), reason, shown)
}

/// `2/3` of the readiness gates, or `<none>`.
pub(super) fn gates(pod: &Value) -> String {
    let gates = items(pod, &["spec", "readinessGates"]);
    if gates.is_empty() {
        return "<none>".to_owned();
    }
    let open = gates.iter().filter(|gate| {
        let wanted = text(gate, &["conditionType"]);
        items(pod, &["status", "conditions"]).iter().any(|c| text(c, &["type"]) == wanted && text(c, &["status"]) == "True")
    });
    format!("{}/{}", open.count(), gates.len())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_crashing_pod_says_so() {
        let pod = json!({"spec":{"containers":[{"name":"a"}]},"status":{"phase":"Running","containerStatuses":[{"name":"a","restartCount":3,
            "state":{"waiting":{"reason":"CrashLoopBackOff"}},"lastState":{"terminated":{"finishedAt":"2026-01-01T00:00:00Z"}}}]}});
        let now = "2026-01-01T00:05:00Z".parse().unwrap();
        assert_eq!(cells(&pod, now), ("0/1".into(), "CrashLoopBackOff".into(), "3 (5m ago)".into()));
    }
}
