//! Peer-to-peer on PCIe as a scenario states it: the bus of a cluster with the figures of that kind.

use super::catalog::Catalog;
use crate::quantity::datum::Source;
use crate::spec::cluster::{Cluster, PeerToPeer, Tier, Topology};
use crate::spec::defaults::StagedRate;
use crate::spec::error::Error;
use crate::spec::figure::Figure;
use crate::spec::link::Link;

impl Catalog {
    /// `cluster` with the bus as `stated`. Other links stay as they are.
    pub(super) fn with_peer_to_peer(
        &self,
        cluster: Cluster,
        stated: Option<PeerToPeer>,
    ) -> Result<Cluster, Error> {
        let on_bus = |tier: &&Tier| tier.topology == Topology::Pcie;
        let (Some(stated), Some(bus)) = (stated, cluster.tiers.iter().rfind(on_bus)) else {
            return Ok(cluster);
        };
        if bus.peer_to_peer == Some(stated) {
            return Ok(cluster);
        }
        let link: Link = self.load(&bus.link)?;
        let latency = link.latency.clone().unwrap_or_else(|| bus.latency.clone());
        let whole = Tier { bandwidth: link.bandwidth, latency, peer_to_peer: Some(stated), ..bus.clone() };
        let place = |tier: &Tier| (tier.devices <= whole.devices, tier.topology == Topology::Pcie);
        let inside = cluster.tiers.iter().filter(|tier| place(tier) == (true, false));
        let outside = cluster.tiers.iter().filter(|tier| !place(tier).0);
        let inner: Vec<Tier> = inside.cloned().collect();
        let joined = inner.last().map_or(1, |tier| tier.devices);
        let buses = match stated {
            PeerToPeer::No => staged(&whole, joined, &self.defaults()?.staged),
            PeerToPeer::Yes | PeerToPeer::Switch => vec![whole.clone()],
        };
        let tiers = inner.into_iter().chain(buses).chain(outside.cloned()).collect();
        Ok(Cluster { tiers, ..cluster })
    }
}

/// The levels of a bus without peer-to-peer beyond the `joined` devices of the tier inside it: the more devices, the less
/// of the link's rate is left for each.
fn staged(bus: &Tier, joined: u64, rates: &[StagedRate]) -> Vec<Tier> {
    let mut levels: Vec<Tier> = Vec::new();
    for (at, rate) in rates.iter().enumerate() {
        let last = at + 1 == rates.len();
        let devices = if last { bus.devices } else { rate.devices.min(bus.devices) };
        if devices <= levels.last().map_or(joined, |level| level.devices) {
            continue;
        }
        let (grade, text) = (rate.rate.source.grade, &rate.rate.source.text);
        let source = Source {
            grade: grade.max(bus.bandwidth.source.grade),
            text: format!("{}; {text}", bus.bandwidth.source.text).into(),
        };
        let name = if devices == bus.devices { bus.name.clone() } else { format!("{devices} devices") };
        let bandwidth = Figure::new(bus.bandwidth.value * rate.rate.value, source);
        levels.push(Tier { name, devices, bandwidth, ..bus.clone() });
    }
    levels
}
