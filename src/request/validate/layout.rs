//! Layout and load of a measured row, and the reasons against incomplete rows.

use crate::validate::measured::{MeasuredDegrees, MeasuredRow};

fn devices_by_degrees(row: &MeasuredRow) -> u64 {
    let of = |pool: &MeasuredDegrees| {
        let factors = [pool.workers.unwrap_or(1), pool.tp, pool.pp, pool.dp];
        factors.into_iter().fold(1, u64::saturating_mul)
    };
    row.pools.iter().map(of).fold(0, u64::saturating_add)
}

/// Devices of the whole deployment: as given, else the product of the degrees.
pub(super) fn devices(row: &MeasuredRow) -> u64 {
    row.devices.unwrap_or(0).max(devices_by_degrees(row)).max(1)
}

/// Requests in flight, at least one under a rate; or the reason against an incomplete row.
pub(super) fn known_load(row: &MeasuredRow) -> Result<u64, String> {
    if let Some(method) = &row.speculative {
        return Err(format!("speculative: {method}, with unknown acceptance rate"));
    }
    let disaggregated = row.pools.len() > 1;
    if disaggregated && row.pools.iter().any(|pool| pool.workers.is_none()) {
        return Err("workers: missing, so the load per worker is unknown".into());
    }
    let placed = devices_by_degrees(row);
    if let Some(stated) = row.devices.filter(|stated| *stated > 0 && *stated != placed) {
        let layout = match row.pools.iter().any(|pool| pool.given) {
            true => format!("degrees for {placed}"),
            false => "no degrees".into(),
        };
        return Err(format!("devices: {stated} with {layout}, so the use of all devices is unknown"));
    }
    match (row.concurrency, &row.traffic) {
        (Some(requests), _) => Ok(requests),
        (None, Some(_)) if disaggregated => {
            Err("rate: not simulated for separate pools of prefill and decode".into())
        }
        // How many are in flight follows from the simulation.
        (None, Some(_)) => Ok(1),
        (None, None) => Err("concurrency: missing, and rate too, so the load is unknown".into()),
    }
}
