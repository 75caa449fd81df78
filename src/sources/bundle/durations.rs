//! Learnt stage durations: a list of `model, engine, version, accelerator, stage, seconds`.

use serde_json::Value;

use super::draft::Draft;
use super::folder::Folder;
use super::manifest::Entry;
use super::{objects, yaml};
use crate::model::ladder::Stage;
use crate::model::text::clean_name;
use crate::world::LearntDuration;

/// Most bytes that are read.
const MAX_BYTES: u64 = 16 << 20;
/// Most samples that are kept of one entry.
const MAX_SAMPLES: usize = 1_000;
/// Longest stage that is believed: thirty days, in seconds.
const MAX_SECONDS: f64 = 2_592_000.0;

/// Reads a file of durations.
pub(super) fn take(folder: &Folder, entry: &Entry, draft: &mut Draft) {
    let Some(text) = objects::text_of(folder, &entry.file, MAX_BYTES, draft) else { return };
    for document in yaml::documents(&text) {
        let reading = yaml::read(&document);
        for (line, why) in reading.troubles {
            draft.trouble(format!("{}, line {line}", entry.file), why);
        }
        if let Some(value) = reading.value {
            entries(&value, &entry.file, draft);
        }
    }
}

/// Whether a document is a list of durations.
pub(super) fn are(value: &Value) -> bool {
    value.as_array().and_then(|items| items.first()).is_some_and(|item| item.get("stage").is_some() && item.get("seconds").is_some())
}

/// Takes the durations of one document.
pub(super) fn entries(value: &Value, place: &str, draft: &mut Draft) {
    let Some(items) = value.as_array() else {
        return draft.trouble(place, "is no list of durations");
    };
    for (number, item) in items.iter().enumerate() {
        let place = format!("{place}, entry {}", number + 1);
        match duration(item) {
            Ok(duration) => draft.durations.push(duration),
            Err(why) => draft.trouble(place, why),
        }
    }
}

fn duration(item: &Value) -> Result<LearntDuration, String> {
    let word = |key: &str| item.get(key).and_then(Value::as_str).map(|word| clean_name(word).to_string()).unwrap_or_default();
    let stage = word("stage");
    let stage = Stage::parse(&stage).ok_or_else(|| format!("{stage:?} is no stage"))?;
    let one = |value: &Value| value.as_f64().filter(|seconds| (0.0..=MAX_SECONDS).contains(seconds));
    let seconds: Vec<f64> = match item.get("seconds") {
        Some(Value::Array(list)) => list.iter().filter_map(one).take(MAX_SAMPLES).collect(),
        Some(value) => one(value).into_iter().collect(),
        None => Vec::new(),
    };
    if seconds.is_empty() {
        return Err("has no seconds that are numbers".into());
    }
    Ok(LearntDuration {
        model: word("model"),
        engine: word("engine"),
        version: word("version"),
        accelerator: word("accelerator"),
        stage,
        seconds,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn samples_that_are_no_durations_are_left_out() {
        let read = duration(&json!({"stage": "loading", "engine": "vllm", "seconds": [60, "x", -1, 1e12, 61.5]})).unwrap();
        assert_eq!((read.stage, read.seconds.as_slice(), read.model.as_str()), (Stage::Loading, [60.0, 61.5].as_slice(), ""));
        assert!(duration(&json!({"stage": "loading", "seconds": []})).is_err());
        assert!(duration(&json!({"stage": "lunch", "seconds": [1]})).is_err());
    }
}
