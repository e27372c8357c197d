//! Utilisation, energy and cost of a simulated run, by the formulas of `estimate`.

use super::priced_plan::PricedPlan;
use crate::quantity::num::Qty;
use crate::report::result::ReportedDeployment;
use crate::report::simulated_figures::{PoolUtilization, SimulatedCost, SimulatedEnergy};
use crate::search::metered_clock::MeteredClock;
use crate::search::simulated_pool::InstanceClock;
use crate::serving::economy::facility_watts;
use crate::serving::utilization::{mbu, mfu};
use crate::spec::defaults::HOUR;
use crate::traffic::replica_use::PoolUse;
use crate::traffic::run::{DeploymentSettings, PoolSettings, RunTotals};

const MILLION: f64 = 1e6;

/// How far the replicas of each pool were used.
pub(super) fn utilization(
    plan: &PricedPlan,
    (settings, totals): (&DeploymentSettings, &RunTotals),
    clock: &MeteredClock,
) -> Vec<PoolUtilization> {
    let pools = settings.pools.iter().zip(&totals.uses).zip(&plan.clocks().pools).enumerate();
    let one = |(at, ((pool, used), instance)): (usize, ((&PoolSettings, &PoolUse), &InstanceClock))| {
        let (work, held) = (clock.work(at), used.held_s.max(f64::MIN_POSITIVE));
        let chip = &instance.machine.chip;
        PoolUtilization {
            role: pool.role,
            busy: used.busy_s / held,
            kv_used_mean: used.kv_used_s / held,
            kv_used_max: used.kv_used_most,
            mfu: mfu(Qty::from(work.flops), chip, Qty::from(held)).value(),
            mbu: mbu(Qty::from(work.bytes), chip, Qty::from(held)).value(),
        }
    };
    pools.map(one).collect()
}

/// Energy over the whole run; `None` where the power of the devices is unknown.
pub(super) fn energy(plan: &PricedPlan, totals: &RunTotals, clock: &MeteredClock) -> Option<SimulatedEnergy> {
    let mut joules = 0.0;
    let mut device_seconds = 0.0;
    for (at, (used, pool)) in totals.uses.iter().zip(&plan.clocks().pools).enumerate() {
        let (work, devices) = (clock.work(at), pool.instance.plan.devices() as f64);
        let idle_s = (used.held_s - work.steps_s).max(0.0);
        joules += devices * (work.joules + clock.idle_watts(at)? * idle_s);
        device_seconds += devices * used.held_s;
    }
    let lasted = totals.lasted_s.max(f64::MIN_POSITIVE);
    let (watts, devices) = (joules / lasted, device_seconds / lasted);
    let of_facility = plan.clock().terms.facility;
    Some(SimulatedEnergy {
        joules,
        watts,
        facility_watts: of_facility
            .map(|of| facility_watts(Qty::from(devices), Some(Qty::from(watts)), of).value()),
        joules_per_output_token: joules / totals.output_tokens.max(1) as f64,
        wh_per_request: joules / HOUR / totals.answered.max(1) as f64,
    })
}

/// The devices that were held, and their cost. `priced` has the devices of the `planned` replicas and their price.
pub(super) fn cost(totals: &RunTotals, priced: &ReportedDeployment, planned: u64) -> SimulatedCost {
    let devices_of_each = priced.devices as f64 / planned.max(1) as f64;
    let device_hours = totals.replica_seconds * devices_of_each / HOUR;
    let usd_per_hour = priced.metrics.as_ref().and_then(|metrics| metrics.usd_per_hour);
    let usd = usd_per_hour.map(|usd| usd / priced.devices as f64 * device_hours);
    let per_mtok = |tokens: u64| usd.map(|usd| usd / (tokens.max(1) as f64 / MILLION));
    SimulatedCost {
        device_hours,
        usd,
        usd_per_mtok: per_mtok(totals.output_tokens),
        usd_per_mtok_total: per_mtok(totals.output_tokens + totals.prompt_tokens),
    }
}
