//! Defaults of workloads.

use serde_json::{Value, json};

use super::super::{map_mut, text};
use super::{default, each, pods, text_default};

/// Fills in a workload of apps/v1 or a ReplicationController.
pub(super) fn fill(kind: &str, object: &mut Value) {
    if let Some(spec) = map_mut(object, &["spec", "template", "spec"]) {
        pods::spec(spec);
    }
    if kind != "DaemonSet"
        && let Some(spec) = map_mut(object, &["spec"])
    {
        default(spec, "replicas", json!(1));
    }
    match kind {
        "Deployment" => {
            numbers(object, &[("revisionHistoryLimit", 10), ("progressDeadlineSeconds", 600)]);
            text_default(object, &["spec", "strategy"], "type", "RollingUpdate");
            if text(object, &["spec", "strategy", "type"]) == "RollingUpdate"
                && let Some(rolling) = map_mut(object, &["spec", "strategy", "rollingUpdate"])
            {
                default(rolling, "maxUnavailable", json!("25%"));
                default(rolling, "maxSurge", json!("25%"));
            }
        }
        "StatefulSet" => {
            numbers(object, &[("revisionHistoryLimit", 10)]);
            text_default(object, &["spec"], "podManagementPolicy", "OrderedReady");
            text_default(object, &["spec", "updateStrategy"], "type", "RollingUpdate");
            if text(object, &["spec", "updateStrategy", "type"]) == "RollingUpdate"
                && let Some(rolling) = map_mut(object, &["spec", "updateStrategy", "rollingUpdate"])
            {
                default(rolling, "partition", json!(0));
            }
            text_default(object, &["spec", "persistentVolumeClaimRetentionPolicy"], "whenDeleted", "Retain");
            text_default(object, &["spec", "persistentVolumeClaimRetentionPolicy"], "whenScaled", "Retain");
            if let Some(spec) = map_mut(object, &["spec"]) {
                for claim in each(spec, "volumeClaimTemplates") {
                    let mut claim_object = Value::Object(std::mem::take(claim));
                    text_default(&mut claim_object, &["spec"], "volumeMode", "Filesystem");
                    text_default(&mut claim_object, &["status"], "phase", "Pending");
                    text_default(&mut claim_object, &[], "kind", "PersistentVolumeClaim");
                    text_default(&mut claim_object, &[], "apiVersion", "v1");
                    if let Value::Object(members) = claim_object {
                        *claim = members;
                    }
                }
            }
        }
        "DaemonSet" => {
            numbers(object, &[("revisionHistoryLimit", 10)]);
            text_default(object, &["spec", "updateStrategy"], "type", "RollingUpdate");
            if text(object, &["spec", "updateStrategy", "type"]) == "RollingUpdate"
                && let Some(rolling) = map_mut(object, &["spec", "updateStrategy", "rollingUpdate"])
            {
                default(rolling, "maxUnavailable", json!(1));
                default(rolling, "maxSurge", json!(0));
            }
        }
        _ => {}
    }
}

fn numbers(object: &mut Value, defaults: &[(&str, i64)]) {
    if let Some(spec) = map_mut(object, &["spec"]) {
        for (name, value) in defaults {
            default(spec, name, json!(value));
        }
    }
}

/// Fills in the Job spec at a path.
pub(super) fn job(object: &mut Value, path: &[&str]) {
    let pod: Vec<&str> = path.iter().copied().chain(["template", "spec"]).collect();
    if let Some(spec) = map_mut(object, &pod) {
        pods::spec(spec);
    }
    let Some(spec) = map_mut(object, path) else { return };
    if !spec.contains_key("completions") && !spec.contains_key("parallelism") {
        spec.insert("completions".into(), json!(1));
    }
    default(spec, "parallelism", json!(1));
    default(spec, "backoffLimit", json!(6));
    default(spec, "completionMode", json!("NonIndexed"));
    default(spec, "suspend", json!(false));
    default(spec, "podReplacementPolicy", json!("TerminatingOrFailed"));
    default(spec, "manualSelector", json!(false));
}

/// Fills in a CronJob.
pub(super) fn cron_job(object: &mut Value) {
    text_default(object, &["spec"], "concurrencyPolicy", "Allow");
    let Some(spec) = map_mut(object, &["spec"]) else { return };
    default(spec, "suspend", json!(false));
    default(spec, "successfulJobsHistoryLimit", json!(3));
    default(spec, "failedJobsHistoryLimit", json!(1));
    if let Some(spec) = map_mut(object, &["spec", "jobTemplate", "spec", "template", "spec"]) {
        pods::spec(spec);
    }
}
