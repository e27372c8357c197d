//! The host of devices when only their number is given: a shipped system, else one made of the device's own links.

use std::cmp::Reverse;
use std::sync::Arc;

use super::catalog::Catalog;
use super::hardware::Shorthand;
use super::kind::CatalogKind;
use crate::quantity::datum::Source;
use crate::spec::cluster::{PeerToPeer, System, Tier, Topology};
use crate::spec::defaults::Defaults;
use crate::spec::device::{Device, LAPTOP, UNIFIED};
use crate::spec::error::Error;
use crate::spec::figure::{ByteRate, Figure, Seconds};
use crate::spec::link::Link;

impl Catalog {
    /// The host of `short`: the device's own system if it has exactly that shape, else another that has, else the
    /// device's own if one node holds the devices, else the smallest that does, else one made of the device's links.
    /// For more devices than any node holds: a system with that number of nodes or racks, else the largest.
    pub(super) fn host(&self, device: &Device, short: &Shorthand<'_>) -> Result<System, Error> {
        let faulty = |fault: Error| fault.at_name(format!("hardware/devices/{}.json", device.id), "system");
        let own: Option<System> =
            device.system.as_deref().map(|id| self.load(id).map_err(faulty)).transpose()?;
        let same =
            |system: &System| in_nodes(system, device, short) == (system.nodes, system.devices_per_node);
        let holds = |system: &System| in_nodes(system, device, short).1 <= system.devices_per_node;
        if let Some(own) = own.as_ref().filter(|own| same(own)) {
            return Ok(own.clone());
        }
        let mut hosts: Vec<System> = Vec::new();
        let bridge = device.scale_up.as_ref().filter(|up| up.optional);
        let bridged = |system: &System| {
            bridge.is_some_and(|bridge| system.tiers.iter().any(|tier| tier.link == bridge.link))
        };
        for one in self.labelled(CatalogKind::Systems).iter() {
            if one.label.clone()?.device == device.id {
                hosts.push(Arc::unwrap_or_clone(self.read(&one.entry(self))?));
            }
        }
        hosts.retain(|system| !bridged(system));
        if let Some(exact) = hosts.iter().find(|system| same(system)) {
            return Ok(exact.clone());
        }
        if let Some(own) = own.as_ref().filter(|own| holds(own)) {
            return Ok(own.clone());
        }
        let smallest =
            hosts.iter().filter(|system| holds(system)).min_by_key(|s| (s.devices_per_node, s.nodes));
        if let Some(smallest) = smallest {
            return Ok(smallest.clone());
        }
        let plain = self.plain_host(device)?;
        if holds(&plain) {
            return Ok(plain);
        }
        let spread =
            |system: &&System| layout(system, device, short) == (system.nodes, system.devices_per_node);
        if let Some(exact) = hosts.iter().find(spread) {
            return Ok(exact.clone());
        }
        let all = own.into_iter().chain(hosts).chain([plain.clone()]);
        Ok(all.min_by_key(|system| Reverse(unit(system))).unwrap_or(plain))
    }

    /// A host with only the device's own links.
    pub(super) fn plain_host(&self, device: &Device) -> Result<System, Error> {
        let defaults = self.defaults()?;
        let mut tiers: Vec<Tier> = Vec::new();
        let slots = slots(device, &defaults);
        let unified = device.class == UNIFIED;
        if let Some(up) = device.scale_up.as_ref().filter(|up| up.domain > 1 && !up.optional) {
            let name = if unified { "network" } else { "node" };
            tiers.push(self.tier(name, &up.link, u64::from(up.domain), &up.bandwidth)?);
        }
        let joined = tiers.last().map_or(1, |tier| tier.devices);
        if let Some(host) = device.host_link.as_ref().filter(|_| slots > joined) {
            tiers.push(self.tier("node", &host.link, slots, &host.bandwidth)?);
            let inner = tiers.len() - 1;
            tiers[..inner].iter_mut().for_each(|tier| tier.name = "bridge".into());
        }
        let devices = tiers.last().map_or(1, |tier| tier.devices);
        Ok(System {
            id: format!("{}-plain", device.id),
            name: format!("{} in a generic host", device.name),
            device: device.id.clone(),
            devices_per_node: if unified { 1 } else { devices },
            nodes: if unified { devices } else { 1 },
            tiers,
            network: Some(defaults.network(device).clone()),
            host: defaults.host(device).cloned(),
            ..System::default()
        })
    }

    fn tier(
        &self,
        name: &str,
        link: &str,
        devices: u64,
        bandwidth: &Figure<ByteRate>,
    ) -> Result<Tier, Error> {
        let link: Link = self.load(link)?;
        let latency: Figure<Seconds> = link.latency.ok_or_else(|| {
            let fix =
                format!("add `latency` to your own hardware/links/{}.json, or write a system file", link.id);
            Error::new("latency", format!("none for {}", link.name), "the latency of a small message", fix)
                .in_file(format!("hardware/links/{}.json", link.id))
        })?;
        let text = format!("{devices} in one domain: {}", bandwidth.source.text);
        let source = Source { grade: bandwidth.source.grade, text: text.into() };
        Ok(Tier {
            name: name.into(),
            link: link.id,
            devices,
            bandwidth: Figure::new(bandwidth.value, source),
            latency,
            in_switch_reduction: false,
            topology: link.topology.unwrap_or(Topology::Ring),
            peer_to_peer: (link.topology == Some(Topology::Pcie)).then_some(PeerToPeer::Yes),
        })
    }
}

/// Devices in the PCIe slots of one host; none where the host link is not a bus with slots.
fn slots(device: &Device, defaults: &Defaults) -> u64 {
    let slotted = device.host_link.as_ref().is_some_and(|host| host.link.starts_with("pcie"));
    if slotted && ![UNIFIED, LAPTOP].contains(&device.class.as_str()) {
        defaults.pcie_devices.value as u64
    } else {
        0
    }
}

/// Nodes and devices per node of `short` in hosts like `system`'s. A fast domain across nodes (a rack) counts in
/// devices: 72 of GB200 are 18 nodes of 4.
fn in_nodes(system: &System, device: &Device, short: &Shorthand<'_>) -> (u64, u64) {
    let per_node = system.devices_per_node;
    // A machine that is one device is a node: two of them are two nodes.
    if device.memory.unified && per_node == 1 {
        return (short.nodes.saturating_mul(short.count), 1);
    }
    let domain = system.tiers.first().map_or(1, |tier| tier.devices);
    let spans = domain > per_node && short.count > per_node && short.count <= domain;
    if spans && per_node > 0 && short.count.is_multiple_of(per_node) {
        (short.nodes.saturating_mul(short.count / per_node), per_node)
    } else {
        (short.nodes, short.count)
    }
}

/// The same, and for more devices than a node or a rack, without a given number of nodes: whole nodes or racks.
pub(super) fn layout(system: &System, device: &Device, short: &Shorthand<'_>) -> (u64, u64) {
    let (nodes, count) = in_nodes(system, device, short);
    let per_node = system.devices_per_node;
    if !short.by_node && count > per_node && per_node > 0 && short.count.is_multiple_of(unit(system)) {
        return (short.count / per_node, per_node);
    }
    (nodes, count)
}

/// Devices per unit of a system: a node, or a fast domain across nodes (a rack) of whole nodes.
pub(super) fn unit(system: &System) -> u64 {
    let node = system.devices_per_node.max(1);
    let domain = system.tiers.first().map_or(1, |tier| tier.devices);
    if domain.is_multiple_of(node) { domain.max(node) } else { node }
}
