//! Where a group of ranks sits on the interconnect: inside one tier, or across two.

use crate::spec::cluster::{Cluster, Topology};

/// Ranks that talk to one another, and over which tiers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RankGroup {
    /// Ranks.
    pub size: u64,
    /// How many of them share a unit of the inner tier; `size` where one tier holds all.
    pub inner: u64,
    /// Index of the tier that the inner ones talk over.
    pub inner_tier: usize,
    /// Index of the tier that holds all of them.
    pub outer_tier: usize,
}

/// What `plan` needs to know of a tier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TierShape {
    /// Devices inside one unit of it.
    pub devices: u64,
    /// How they are joined.
    pub topology: Topology,
    /// Its switches can add up.
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
    /// A group of `size` ranks that stand `stride` devices apart; `None` for a single rank.
    ///
    /// An instance starts at a multiple of its own size inside a domain, or of the domain, so the
    /// first rank stands at the start of every tier it spans.
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

    /// Groups of inner ranks.
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
