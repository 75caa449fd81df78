//! GPUs: slots that nobody can use, cards that are gone, memory and slots that nobody needs.

mod exporter_without_pod_labels;
mod fragmentation;
mod idle_gpu_holder;
mod leaked_gpu_memory;
mod node_rejects;
mod unhealthy;

use super::Rule;
use crate::model::finding::Code;

/// The rules of this family.
pub const RULES: &[Rule] = &[
    Rule { codes: &[Code::Fragmentation], check: fragmentation::check },
    Rule { codes: &[Code::GpuUnhealthy], check: unhealthy::check },
    Rule { codes: &[Code::NodeRejectsAllGpuPods], check: node_rejects::check },
    Rule { codes: &[Code::LeakedGpuMemory], check: leaked_gpu_memory::check },
    Rule { codes: &[Code::IdleGpuHolder], check: idle_gpu_holder::check },
    Rule { codes: &[Code::ExporterWithoutPodLabels], check: exporter_without_pod_labels::check },
];
