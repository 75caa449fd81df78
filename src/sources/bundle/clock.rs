//! The present of a bundle: given, or the newest time that anything in it was seen at.

use jiff::Timestamp;
use serde_json::Value;

use super::draft::Draft;
use crate::model::time::instant;

/// Who said what the present is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NowFrom {
    /// Whoever asked.
    Given,
    /// The newest time seen in the bundle.
    Newest,
    /// No time stands in the bundle: the newest file's.
    FileTime,
}

/// Fields whose times lie in the past of whoever wrote the object. Deadlines (`deletionTimestamp`, `notAfter`) are none of them.
const PAST: &[&str] = &[
    "creationTimestamp",
    "lastTransitionTime",
    "lastUpdateTime",
    "lastProbeTime",
    "lastHeartbeatTime",
    "lastScaleTime",
    "lastTimestamp",
    "firstTimestamp",
    "eventTime",
    "lastObservedTime",
    "renewTime",
    "acquireTime",
    "startTime",
    "startedAt",
    "finishedAt",
    "time",
];

/// How deep an object is searched for times.
const MAX_DEPTH: usize = 32;

/// The present, and who says so. `None` where nothing tells a time.
pub(super) fn present(given: Option<Timestamp>, draft: &Draft, newest_file: Option<Timestamp>) -> Option<(Timestamp, NowFrom)> {
    if let Some(now) = given {
        return Some((now, NowFrom::Given));
    }
    let mut newest: Option<Timestamp> = None;
    let mut see = |at: Option<Timestamp>| newest = newest.max(at);
    draft.times.iter().for_each(|at| see(Some(*at)));
    draft.answers.iter().for_each(|timed| see(timed.at));
    draft.pages.iter().chain(&draft.exporters).for_each(|timed| see(timed.at));
    draft.history.iter().for_each(|change| see(Some(change.at)));
    draft.logs.iter().for_each(|log| see(log.newest()));
    draft.objects.iter().for_each(|timed| see(timed.at));
    match newest {
        Some(at) => Some((at, NowFrom::Newest)),
        None => newest_file.map(|at| (at, NowFrom::FileTime)),
    }
}

/// The newest time of the past that stands in an object.
pub(super) fn newest_in(value: &Value) -> Option<Timestamp> {
    search(value, 0)
}

fn search(value: &Value, depth: usize) -> Option<Timestamp> {
    if depth > MAX_DEPTH {
        return None;
    }
    match value {
        Value::Object(map) => map
            .iter()
            .filter_map(|(key, inner)| match inner {
                Value::String(text) if PAST.contains(&key.as_str()) => instant(text),
                _ => search(inner, depth + 1),
            })
            .max(),
        Value::Array(list) => list.iter().filter_map(|inner| search(inner, depth + 1)).max(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn deadlines_are_not_the_present() {
        let pod = json!({"metadata": {"creationTimestamp": "2026-11-12T09:00:00Z", "deletionTimestamp": "2026-11-12T11:00:00Z"},
            "status": {"conditions": [{"lastTransitionTime": "2026-11-12T09:30:00Z"}, {"lastTransitionTime": "soon"}]}});
        assert_eq!(newest_in(&pod), instant("2026-11-12T09:30:00Z"));
        assert_eq!(newest_in(&json!("2026-11-12T09:30:00Z")), None);
    }

    #[test]
    fn what_is_given_counts_before_what_is_seen() {
        let at = instant("2026-11-12T09:30:00Z").unwrap();
        let draft = Draft { times: vec![at], ..Draft::default() };
        assert_eq!(present(Some(Timestamp::UNIX_EPOCH), &draft, None), Some((Timestamp::UNIX_EPOCH, NowFrom::Given)));
        assert_eq!(present(None, &draft, Some(Timestamp::MAX)), Some((at, NowFrom::Newest)));
        assert_eq!(present(None, &Draft::default(), Some(at)), Some((at, NowFrom::FileTime)));
        assert_eq!(present(None, &Draft::default(), None), None);
    }
}
