//! The network between the nodes of a cluster: as a scenario states it, or the usual one of its devices.

use super::catalog::Catalog;
use crate::spec::cluster::{Cluster, System, Tier};
use crate::spec::device::Device;
use crate::spec::error::Error;
use crate::spec::link::Link;

/// Fix for a link that joins no nodes.
const LINKS: &str = "name a link between hosts, such as ethernet-100g or ib-ndr: `mantile-opt catalog links`";

impl Catalog {
    /// `host` with the usual network of `device`, where it states none.
    pub(super) fn with_usual_network(&self, host: System, device: &Device) -> Result<System, Error> {
        if host.network.is_some() {
            return Ok(host);
        }
        let network = Some(self.defaults()?.network(device).clone());
        Ok(System { network, ..host })
    }

    /// `cluster` with the network as `stated`: one port of that link for each device.
    pub(super) fn with_network(&self, cluster: Cluster, stated: Option<&str>) -> Result<Cluster, Error> {
        let Some(stated) = stated else { return Ok(cluster) };
        let link: Link = self.load(stated).map_err(|fault| Error { key: "network".into(), ..fault })?;
        if !link.joins_hosts {
            let found = format!("{}, which joins devices of one host", link.id);
            return Err(Error::new("network", found, "a link between hosts", LINKS));
        }
        let between = |tier: &&Tier| cluster.networked && tier.devices > cluster.devices_per_node;
        let Some(network) = cluster.tiers.last().filter(between) else {
            let found = format!("{}, and {} without a network", link.id, cluster.name);
            return Err(Error::new("network", found, "several nodes, such as 2x8xl40s", "omit it"));
        };
        if network.link == link.id {
            return Ok(cluster);
        }
        let latency = link.latency.unwrap_or_else(|| network.latency.clone());
        let topology = link.topology.unwrap_or(network.topology);
        let whole = Tier {
            link: link.id,
            bandwidth: link.bandwidth,
            latency,
            topology,
            in_switch_reduction: false,
            ..network.clone()
        };
        let mut tiers = cluster.tiers.clone();
        tiers.pop();
        tiers.push(whole);
        Ok(Cluster { tiers, ..cluster })
    }
}
