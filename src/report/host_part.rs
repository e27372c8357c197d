//! The part of a deployment that the host's processor computes: in words, and as flags of its runtime.

use super::number::gib;
use super::result::ReportedDeployment;
use crate::spec::host_part::{HostPart, HostedTensors};
use crate::spec::notation::PlanText;

/// The part of a deployment, from its notation.
pub fn part(deployment: &ReportedDeployment) -> Option<HostPart> {
    deployment.notation.parse::<PlanText>().ok()?.host
}

/// The part in words, with the flags that set it: `, experts of 30 layers (45.2 GiB) on the host (--n-cpu-moe 30)`.
pub fn words(deployment: &ReportedDeployment, runtime: &str) -> Option<String> {
    let part = part(deployment)?;
    let bytes = deployment.memory.as_ref().map_or(0.0, |memory| memory.host_bytes);
    let stages = &deployment.plan.prefill.stages;
    let counts: Vec<u32> = stages.iter().map(|layers| part.layers.min(*layers)).collect();
    let layers: u32 = counts.iter().sum();
    let what = match part.tensors {
        HostedTensors::Experts => "experts of ",
        HostedTensors::Layers => "",
    };
    let plural = if layers == 1 { "" } else { "s" };
    let flags = flags(runtime, part, stages).map_or_else(String::new, |flags| format!(" ({flags})"));
    Some(format!(", {what}{layers} layer{plural} ({}) on the host{flags}", gib(bytes)))
}

/// The flags of `runtime` that place `part` of a model cut into `stages`; `None` where it has none for it.
///
/// llama.cpp: <https://github.com/ggml-org/llama.cpp/blob/master/tools/server/README.md>. `-ngl` counts the output as a
/// layer; `--n-cpu-moe` and `-ot` name layers from the first.
pub fn flags(runtime: &str, part: HostPart, stages: &[u32]) -> Option<String> {
    if !["llama.cpp", "ik_llama.cpp"].contains(&runtime) {
        return None;
    }
    let all: u32 = stages.iter().sum();
    match (part.tensors, stages) {
        (HostedTensors::Layers, [_]) => Some(format!("-ngl {}", all - part.layers.min(all) + 1)),
        (HostedTensors::Layers, _) => None,
        (HostedTensors::Experts, [_]) if runtime == "llama.cpp" => {
            Some(format!("--n-cpu-moe {}", part.layers))
        }
        (HostedTensors::Experts, _) => {
            let mut from = 0;
            let mut named: Vec<String> = Vec::new();
            for layers in stages {
                named.extend((from..from + part.layers.min(*layers)).map(|layer| layer.to_string()));
                from += layers;
            }
            Some(format!("-ot 'blk\\.({})\\.ffn_.*_exps.*=CPU'", named.join("|")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_are_those_of_the_runtime() {
        let experts = HostPart { tensors: HostedTensors::Experts, layers: 3 };
        let layers = HostPart { tensors: HostedTensors::Layers, layers: 12 };
        assert_eq!(flags("llama.cpp", experts, &[36]).as_deref(), Some("--n-cpu-moe 3"));
        assert_eq!(flags("llama.cpp", layers, &[32]).as_deref(), Some("-ngl 21"));
        let split = "-ot 'blk\\.(0|1|2|4|5)\\.ffn_.*_exps.*=CPU'";
        assert_eq!(flags("llama.cpp", experts, &[4, 2]).as_deref(), Some(split));
        assert_eq!(
            flags("ik_llama.cpp", experts, &[3]).as_deref(),
            Some("-ot 'blk\\.(0|1|2)\\.ffn_.*_exps.*=CPU'")
        );
        assert_eq!(flags("llama.cpp", layers, &[16, 16]), None);
        assert_eq!(flags("vllm", experts, &[36]), None);
    }
}
