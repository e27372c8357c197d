//! The parts of the time per output token, in the codes of the interface.

use schemars::JsonSchema;
use serde::Serialize;

use crate::plan::parallel::Phase;
use crate::report::detail::DeploymentDetail;
use crate::report::result::ReportedDeployment;
use crate::spec::error::Error;
use crate::spec::scenario::Scenario;
use crate::store::catalog::Catalog;

/// A limit of decode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BottleneckCode {
    /// The PCIe links: between devices, or to host memory.
    PcieBandwidth,
    /// Memory of the devices.
    VramCapacity,
    /// Bandwidth of device memory.
    VramBandwidth,
    /// Arithmetic.
    Compute,
    /// Links between devices that are not PCIe.
    InterconnectBandwidth,
    /// Kernel launches and the host's work.
    HostOverhead,
}

/// A share of the time per output token.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct BottleneckShare {
    /// The limit.
    pub code: BottleneckCode,
    /// Its share, percent.
    pub percent: f64,
}

impl BottleneckShare {
    pub fn words(&self) -> String {
        let part = match self.code {
            BottleneckCode::PcieBandwidth => "PCIe throughput limits",
            BottleneckCode::VramCapacity => "Device memory limits",
            BottleneckCode::VramBandwidth => "Bandwidth of device memory limits",
            BottleneckCode::Compute => "Arithmetic limits",
            BottleneckCode::InterconnectBandwidth => "The links between devices limit",
            BottleneckCode::HostOverhead => "Kernel launches and the host's work limit",
        };
        format!("{part} sustained decode: {:.0} % of the time per output token.", self.percent)
    }
}

/// Shares of a decode step, largest first; they add up to 100. Reads from host memory overlap the rest of the step:
/// their share is the time that they add.
pub(super) fn bottlenecks(
    known: &Catalog,
    scenario: &Scenario,
    deployment: &ReportedDeployment,
    detail: &DeploymentDetail,
) -> Result<Vec<BottleneckShare>, Error> {
    use BottleneckCode::{Compute, HostOverhead, InterconnectBandwidth, PcieBandwidth, VramBandwidth};
    let Some(step) = detail.phases.iter().find(|phase| phase.phase == Phase::Decode) else {
        return Ok(vec![]);
    };
    let offloads = deployment.memory.as_ref().is_some_and(|memory| memory.offloaded_bytes > 0.0);
    let streamed = if offloads { (step.time_ms - step.operators_ms).max(0.0) } else { 0.0 };
    let hardware = scenario.hardware.as_deref().map(|hardware| known.hardware(hardware)).transpose()?;
    let over_pcie =
        hardware.iter().flat_map(|cluster| &cluster.tiers).any(|tier| tier.link.starts_with("pcie"));
    let link = if over_pcie { PcieBandwidth } else { InterconnectBandwidth };
    let parts = [
        (Compute, step.compute_ms),
        (VramBandwidth, step.memory_ms),
        (link, step.communication_ms),
        (HostOverhead, step.overhead_ms),
        (PcieBandwidth, streamed),
    ];
    let all: f64 = parts.iter().map(|(_, time)| time).sum();
    let mut shares: Vec<BottleneckShare> = Vec::new();
    for (code, time) in parts {
        let percent = if all > 0.0 { 100.0 * time / all } else { 0.0 };
        match shares.iter_mut().find(|share| share.code == code) {
            Some(share) => share.percent += percent,
            None => shares.push(BottleneckShare { code, percent }),
        }
    }
    shares.retain(|share| share.percent > 0.0);
    shares.sort_by(|a, b| b.percent.total_cmp(&a.percent));
    Ok(shares)
}
