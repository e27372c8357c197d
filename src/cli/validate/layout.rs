//! What a measured row says of its layout and load, and why some rows do not say enough.

use crate::validate::measured::{MeasuredDegrees, MeasuredRow};

/// Devices that the degrees of a row multiply to.
fn laid_out(row: &MeasuredRow) -> u64 {
    let of = |pool: &MeasuredDegrees| {
        let factors = [pool.workers.unwrap_or(1), pool.tp, pool.pp, pool.dp];
        factors.into_iter().fold(1, u64::saturating_mul)
    };
    row.pools.iter().map(of).fold(0, u64::saturating_add)
}

/// Devices of the whole deployment: as stated, else what the degrees multiply to.
pub(super) fn devices(row: &MeasuredRow) -> u64 {
    row.devices.unwrap_or(0).max(laid_out(row)).max(1)
}

/// Why a row does not say what was measured; nothing where it does.
pub(super) fn untold(row: &MeasuredRow) -> Result<u64, String> {
    if let Some(method) = &row.speculative {
        return Err(format!("speculative: {method}, and nobody knows how many guesses were accepted"));
    }
    let apart = row.pools.len() > 1;
    if apart && row.pools.iter().any(|pool| pool.workers.is_none()) {
        return Err("workers: not stated, so nobody knows the load of one".into());
    }
    let laid = laid_out(row);
    if let Some(stated) = row.devices.filter(|stated| *stated > 0 && *stated != laid) {
        let layout = match row.pools.iter().any(|pool| pool.stated) {
            true => format!("a layout of {laid}"),
            false => "no degrees".into(),
        };
        return Err(format!("devices: {stated} stated with {layout}, so nobody knows how all are used"));
    }
    row.concurrency.ok_or_else(|| "concurrency: not stated, so nobody knows the load".into())
}
