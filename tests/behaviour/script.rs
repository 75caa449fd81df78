//! Scripts: what is asked, in order.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;
use serde_json::Value;

#[derive(Debug, Deserialize)]
pub(crate) struct Script {
    #[serde(skip)]
    pub(crate) name: String,
    /// What it shows.
    #[allow(dead_code)]
    about: String,
    pub(crate) steps: Vec<Step>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Step {
    /// `GET /api/v1/namespaces/{ns}/pods`.
    #[serde(rename = "do")]
    pub(crate) request: String,
    /// `admin`, `alice`, `nobody`, or a saved token.
    #[serde(rename = "as")]
    pub(crate) user: String,
    #[serde(rename = "type")]
    pub(crate) content_type: String,
    pub(crate) accept: String,
    pub(crate) headers: BTreeMap<String, String>,
    /// A JSON body.
    pub(crate) body: Value,
    /// A body as it is.
    pub(crate) text: String,
    /// Name → pointer into the answer.
    pub(crate) save: BTreeMap<String, String>,
    /// Repeat until the answer holds these values.
    pub(crate) until: BTreeMap<String, Value>,
    /// Only these parts of the answer are compared.
    pub(crate) only: Vec<String>,
    /// These parts are not.
    pub(crate) except: Vec<String>,
    /// Begin a watch under this name.
    pub(crate) watch: String,
    /// Read so many events of a watch.
    pub(crate) events: BTreeMap<String, usize>,
    /// Where the embedded API may differ.
    pub(crate) differs: Option<Differs>,
    /// Not part of the trace: setting up.
    pub(crate) quiet: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Differs {
    /// The name of the difference.
    pub(crate) id: String,
    /// Pointer → what the embedded API says there; null when it says nothing.
    pub(crate) embedded: BTreeMap<String, Value>,
}

impl Script {
    pub(crate) fn read(path: &Path) -> Self {
        let text = std::fs::read_to_string(path).unwrap();
        let mut script: Self = serde_saphyr::from_str(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        script.name = path.file_stem().unwrap().to_string_lossy().into_owned();
        script
    }

    pub(crate) fn differences(&self) -> Vec<String> {
        self.steps.iter().filter_map(|s| s.differs.as_ref()).map(|d| d.id.clone()).collect()
    }
}
