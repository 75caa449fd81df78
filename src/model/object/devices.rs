//! GPUs that containers and pods request.
//!
//! Owns which resource names stand for GPUs and how requests add up. Devices by resource claims (DRA) are in no request and not here.

use std::collections::{BTreeMap, BTreeSet};

use super::pod::{Container, PodSpec};

/// Whether a resource name stands for GPUs that a scheduler counts: whole cards or slices of them.
pub fn is_gpu_resource(name: &str) -> bool {
    matches!(name, "nvidia.com/gpu" | "amd.com/gpu" | "gpu.intel.com/i915" | "gpu.intel.com/xe" | "habana.ai/gaudi" | "nvidia.com/gpu.shared")
        || name.starts_with("nvidia.com/mig-")
}

impl Container {
    /// GPUs it requests, whole or sliced.
    pub fn gpus(&self) -> u32 {
        self.devices.iter().filter(|(name, _)| is_gpu_resource(name)).map(|(_, n)| *n).fold(0, u32::saturating_add)
    }
}

impl PodSpec {
    /// GPUs that it needs on one node: the sum over containers, or the largest init container where that is more.
    pub fn gpus(&self) -> u32 {
        let main = self.containers.iter().map(Container::gpus).fold(0, u32::saturating_add);
        let init = self.init_containers.iter().filter(|c| !c.sidecar).map(Container::gpus).max().unwrap_or(0);
        let sidecars = self.init_containers.iter().filter(|c| c.sidecar).map(Container::gpus).fold(0, u32::saturating_add);
        main.saturating_add(sidecars).max(init)
    }

    /// GPUs that it needs on one node by resource name, by the same rule.
    pub fn gpu_requests(&self) -> BTreeMap<String, u32> {
        let names: BTreeSet<&String> = self
            .containers
            .iter()
            .chain(&self.init_containers)
            .flat_map(|container| container.devices.keys())
            .filter(|name| is_gpu_resource(name))
            .collect();
        let of = |container: &Container, name: &str| container.devices.get(name).copied().unwrap_or(0);
        names
            .into_iter()
            .map(|name| {
                let kept = self.containers.iter().chain(self.init_containers.iter().filter(|c| c.sidecar));
                let sum = kept.map(|c| of(c, name)).fold(0, u32::saturating_add);
                let init = self.init_containers.iter().filter(|c| !c.sidecar).map(|c| of(c, name)).max().unwrap_or(0);
                (name.clone(), sum.max(init))
            })
            .filter(|(_, n)| *n > 0)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn container(gpus: u32, sidecar: bool) -> Container {
        Container { devices: BTreeMap::from([("nvidia.com/gpu".to_owned(), gpus), ("rdma/ib".to_owned(), 1)]), sidecar, ..Container::default() }
    }

    #[test]
    fn init_containers_count_by_the_largest_and_sidecars_by_sum() {
        let spec = PodSpec {
            containers: vec![container(2, false), container(1, false)],
            init_containers: vec![container(1, true), container(5, false), container(4, false)],
            ..PodSpec::default()
        };
        assert_eq!((spec.gpus(), spec.gpu_requests()), (5, BTreeMap::from([("nvidia.com/gpu".to_owned(), 5)])));
        let small = PodSpec { init_containers: vec![container(1, true), container(1, false)], ..spec };
        assert_eq!(small.gpus(), 4);
    }
}
