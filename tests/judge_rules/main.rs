//! Tests the rules by which case bundles are judged, with small documents made up for the purpose.

#[path = "../support/judge/mod.rs"]
mod judge;

#[cfg(test)]
mod cases;
#[cfg(test)]
mod checks;
#[cfg(test)]
mod deferred;
#[cfg(test)]
mod documents;
#[cfg(test)]
mod runs;
#[cfg(test)]
mod words;

use serde_json::{Value, json};

/// The clock of the made-up documents.
const NOW: &str = "2026-03-01T12:00:00Z";
const POD: &str = "pod/lab/m-0";
const OTHER: &str = "pod/lab/m-1";

/// A document with one entry of everything.
fn sample() -> Value {
    json!({
        "schemaVersion": "1", "now": NOW, "source": "bundle",
        "subjects": {
            POD: {
                "state": "loading",
                "why": ["weights: 12 of 40 shards read"],
                "values": {
                    "waiting": {"value": 4, "at": NOW, "source": "sglang:num_queue_reqs"},
                    "progress": {"value": 0.3},
                    "engine": {"value": "sglang"},
                    "since": {"value": "2026-03-01T13:50:00+02:00"},
                    "kv-usage": {"unknown": "page was never read"},
                    "eta-s": {"unknown": " "},
                    "load-s": {"value": null},
                    "grace-s": {"value": 30, "unknown": "both"},
                    "awake": {"value": true},
                },
                "owners": [
                    {"field": "spec.replicas", "writer": "hpa/lab/m", "via": "scale"},
                    {"field": "spec.template", "writer": "helm", "via": "apply"},
                ],
                "actions": {
                    "drain": {"answer": "warn", "because": ["9 requests run"], "instead": ["wait 2 min"]},
                    "wake": {"answer": "refuse", "because": ["it is not asleep"]},
                },
            },
            OTHER: {"state": "serving"},
        },
        "findings": [
            {
                "code": "slow-load", "severity": "warning", "subjects": [POD, "node/n1"], "summary": "Loads since 600 s",
                "evidence": [{"object": POD, "at": NOW, "field": "spec.strategy.maxSurge", "value": 1}],
                "remedies": ["a faster volume"], "not": ["restart it"],
            },
            {"code": "slow-load", "subjects": [OTHER], "summary": "Loaded slowly, is over"},
        ],
    })
}
