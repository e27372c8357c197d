//! The innermost tier that holds a prefill worker and the decode workers that it sends to.

use super::group::TierShape;

/// Workers of one pool: devices of each worker, and number of workers.
pub type PoolSize = (u64, u64);

/// Index of the tier that carries the KV cache from prefill to decode workers.
///
/// Pools that divide into equal groups, each inside one unit of a tier, transfer inside that unit: a router keeps
/// both phases of a request in one group. All other pools transfer over the outermost tier. 0 where there is no tier.
pub fn kv_tier(tiers: &[TierShape], pools: &[PoolSize]) -> usize {
    let Some((outermost, inner)) = tiers.split_last() else { return 0 };
    let unit = tiers[0].devices;
    let size = |pools: &[PoolSize]| -> u64 {
        // Workers that do not fill units evenly take whole ones.
        let even = pools.iter().all(|(one, _)| {
            let nested = pools.iter().all(|(two, _)| one.is_multiple_of(*two) || two.is_multiple_of(*one));
            nested && (unit.is_multiple_of(*one) || one.is_multiple_of(unit))
        });
        let devices: u64 = pools.iter().map(|(devices, count)| devices * count).sum();
        if even || devices <= unit {
            devices
        } else {
            pools.iter().map(|(devices, count)| devices.next_multiple_of(unit) * count).sum()
        }
    };
    let groups = pools.iter().map(|(_, count)| *count).fold(0, gcd);
    let holds = |tier: &TierShape| {
        let most = (outermost.devices / tier.devices).min(groups);
        (1..=most).filter(|count| groups.is_multiple_of(*count)).any(|count| {
            let group: Vec<PoolSize> = pools.iter().map(|(devices, all)| (*devices, all / count)).collect();
            size(&group) <= tier.devices
        })
    };
    inner.iter().position(holds).unwrap_or(inner.len())
}

/// The greatest common divisor.
pub fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// The least common multiple.
pub fn lcm(a: u64, b: u64) -> u64 {
    a / gcd(a, b).max(1) * b
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::cluster::Topology;

    fn tier(devices: u64) -> TierShape {
        TierShape { devices, topology: Topology::Switch, in_switch_reduction: false }
    }

    fn check(tiers: &[u64], pools: &[PoolSize], found: usize) {
        let tiers: Vec<TierShape> = tiers.iter().copied().map(tier).collect();
        assert_eq!(kv_tier(&tiers, pools), found, "{pools:?}");
    }

    #[test]
    fn equal_groups_stay_in_their_unit() {
        check(&[], &[(1, 1), (1, 1)], 0);
        check(&[8], &[(4, 1), (4, 1)], 0);
        check(&[8, 32], &[(4, 1), (4, 1)], 0);
        check(&[8, 32], &[(4, 4), (2, 8)], 0);
        // Five groups on four nodes; groups larger than a node; pools without a common divisor.
        check(&[8, 32], &[(4, 5), (2, 5)], 1);
        check(&[8, 32], &[(8, 2), (4, 2)], 1);
        check(&[8, 32], &[(4, 3), (4, 4)], 1);
        check(&[2, 8, 16], &[(1, 8), (1, 8)], 0);
        check(&[2, 8, 16], &[(2, 4), (4, 2)], 1);
    }

    #[test]
    fn workers_that_leave_gaps_take_whole_units() {
        check(&[2, 8, 16], &[(3, 1), (5, 1)], 2);
        check(&[8, 16], &[(3, 1), (5, 1)], 0);
    }
}
