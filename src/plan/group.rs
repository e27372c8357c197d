//! Placement of a group of ranks on the interconnect: inside one tier, or across two.

use crate::spec::cluster::{Cluster, Topology};

/// Ranks that communicate, and the tiers between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RankGroup {
    /// Number of ranks.
    pub size: u64,
    /// Ranks in one unit of the inner tier; `size` where one tier holds all.
    pub inner: u64,
    /// Index of the tier between the inner ranks.
    pub inner_tier: usize,
    /// Index of the tier that connects all ranks.
    pub outer_tier: usize,
}

/// Properties of a tier that sharding depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TierShape {
    /// Devices in one unit of the tier.
    pub devices: u64,
    /// Topology of its links.
    pub topology: Topology,
    /// Its switches can reduce.
    pub in_switch_reduction: bool,
}

/// The tiers of a cluster, innermost first.
pub fn tiers(cluster: &Cluster) -> Vec<TierShape> {
    let shape = |tier: &crate::spec::cluster::Tier| TierShape {
        devices: tier.devices,
        topology: tier.topology,
        in_switch_reduction: tier.in_switch_reduction,
    };
    cluster.tiers.iter().map(shape).collect()
}

impl RankGroup {
    /// A group of `size` ranks at a distance of `stride` devices; `None` for a single rank.
    ///
    /// An instance starts at a multiple of its own size inside a domain, or at a multiple of the domain. The first rank
    /// is therefore at the start of every tier of the group.
    pub fn place(size: u64, stride: u64, tiers: &[TierShape]) -> Option<RankGroup> {
        if size <= 1 {
            return None;
        }
        let reach = (size - 1) * stride + 1;
        let outer_tier =
            tiers.iter().position(|tier| tier.devices >= reach).unwrap_or(tiers.len().checked_sub(1)?);
        let within = |tier: &TierShape| tier.devices.div_ceil(stride).min(size);
        let inside = tiers[..outer_tier]
            .iter()
            .rposition(|tier| within(tier) > 1 && size.is_multiple_of(within(tier)));
        Some(match inside {
            Some(inner_tier) => RankGroup { size, inner: within(&tiers[inner_tier]), inner_tier, outer_tier },
            None => RankGroup { size, inner: size, inner_tier: outer_tier, outer_tier },
        })
    }

    /// Number of groups of inner ranks.
    pub fn outer(&self) -> u64 {
        self.size / self.inner
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(size: u64, stride: u64, inner: u64, tiers: (usize, usize)) {
        let shape = |devices| TierShape { devices, topology: Topology::Switch, in_switch_reduction: false };
        let group = RankGroup::place(size, stride, &[shape(8), shape(64)]).unwrap();
        assert_eq!(
            (group.inner, group.inner_tier, group.outer_tier),
            (inner, tiers.0, tiers.1),
            "{size} by {stride}"
        );
    }

    #[test]
    fn groups_sit_on_the_smallest_tier_that_holds_them() {
        check(8, 1, 8, (0, 0));
        check(4, 2, 4, (0, 0));
        check(16, 1, 8, (0, 1));
        check(8, 8, 8, (1, 1));
        check(4, 4, 2, (0, 1));
    }

    #[test]
    fn a_single_rank_is_no_group() {
        assert_eq!(RankGroup::place(1, 1, &[]), None);
        assert_eq!(RankGroup::place(2, 1, &[]), None);
    }
}
