//! Sets of instance sizes that fill a system by device count alone.

use super::capacity::{DeviceCapacity, SystemPart};

/// Instance sizes for a part of the system, and the number of such parts.
pub struct Fill {
    pub sizes: Vec<u64>,
    pub devices: u64,
    /// Number of such parts.
    pub times: u64,
}

/// The ways to fill a system with mixed instance sizes.
pub fn fills(capacity: &DeviceCapacity, sizes: &[u64]) -> Vec<Fill> {
    let inside = |part: SystemPart| {
        let sizes: Vec<u64> = sizes.iter().copied().filter(|size| *size <= part.devices).collect();
        let chains = chains(&sizes, part.unit, part.devices.div_ceil(part.unit));
        chains.into_iter().map(move |sizes| Fill { sizes, devices: part.devices, times: part.times })
    };
    capacity.parts().into_iter().flat_map(inside).filter(|fill| !fill.sizes.is_empty()).collect()
}

/// Sets of sizes that can be combined. Inside one domain every set can. Over several domains, sizes that divide each
/// other fill every domain without gaps, as do sizes that are whole domains.
pub fn chains(sizes: &[u64], domain: u64, domains: u64) -> Vec<Vec<u64>> {
    if domains == 1 {
        return vec![sizes.to_vec()];
    }
    let small: Vec<u64> = sizes.iter().copied().filter(|size| domain.is_multiple_of(*size)).collect();
    let whole = sizes.iter().copied().filter(|size| *size > domain && size.is_multiple_of(domain));
    let mut chains = Vec::new();
    extend(&mut vec![], &small, &mut chains);
    chains.iter_mut().for_each(|chain| chain.extend(whole.clone()));
    chains
}

fn extend(chain: &mut Vec<u64>, sizes: &[u64], chains: &mut Vec<Vec<u64>>) {
    let last = chain.last().copied().unwrap_or(0);
    let next: Vec<u64> =
        sizes.iter().copied().filter(|size| *size > last && (last == 0 || size % last == 0)).collect();
    let nearest = next.iter().filter(|size| !next.iter().any(|other| other < size && *size % other == 0));
    let nearest: Vec<u64> = nearest.copied().collect();
    if nearest.is_empty() {
        chains.push(chain.clone());
    }
    for size in nearest {
        chain.push(size);
        extend(chain, sizes, chains);
        chain.pop();
    }
}
