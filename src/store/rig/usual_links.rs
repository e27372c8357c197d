//! The links of a rig that states none: between each pair of devices, their usual one.
//!
//! The rule, in this order: the device link that both state, inside one of its domains; PCIe, where both are cards in
//! slots; else the network of `hardware/defaults.json` for the class of the devices.

use super::PlacedMember;
use crate::spec::device::Device;
use crate::spec::error::Error;
use crate::spec::figure::{ByteRate, Figure};
use crate::spec::link::Link;
use crate::spec::rig::{Rig, RigLink, RigTopology};
use crate::store::catalog::Catalog;

struct UsualLink {
    link: RigLink,
    /// Bytes per second.
    rate: f64,
    /// Why it is the usual one.
    why: &'static str,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct AssumedLinks {
    /// As flags, or between which devices where they differ.
    pub flags: Vec<String>,
    pub note: String,
}

impl Catalog {
    /// `rig` with the usual links where it states none, and what was assumed.
    pub(super) fn with_usual_links(
        &self,
        rig: Rig,
        seats: &[PlacedMember],
        names: &[String],
    ) -> Result<(Rig, Option<AssumedLinks>), Error> {
        if seats.len() < 2 || !rig.links.is_empty() {
            return Ok((rig, None));
        }
        let mut pairs = Vec::new();
        for b in 1..seats.len() {
            for a in 0..b {
                pairs.push((a, b, self.usual_link(seats, (a, b))?));
            }
        }
        let slowest = pairs.iter().min_by(|a, b| a.2.rate.total_cmp(&b.2.rate));
        let Some((_, _, slowest)) = slowest else { return Ok((rig, None)) };
        let same = |pair: &(usize, usize, UsualLink)| {
            pair.2.link.link == slowest.link.link && pair.2.rate.total_cmp(&slowest.rate).is_eq()
        };
        let one = rig.topology.is_some() || pairs.iter().all(same);
        if one {
            let mut flags = vec![format!("--link {}", slowest.link.link)];
            if rig.topology.is_none() {
                flags.push("--topology mesh".into());
            }
            let note = format!("link between the devices assumed: {}, {}", slowest.link.link, slowest.why);
            let topology = Some(rig.topology.unwrap_or(RigTopology::Mesh));
            let links = vec![slowest.link.clone()];
            return Ok((Rig { topology, links, ..rig }, Some(AssumedLinks { flags, note })));
        }
        let assumed = assumed(&pairs, names);
        let between = |(a, b, usual): (usize, usize, UsualLink)| RigLink {
            between: Some([names[a].clone(), names[b].clone()]),
            ..usual.link
        };
        let links = pairs.into_iter().map(between).collect();
        Ok((Rig { links, ..rig }, Some(assumed)))
    }

    fn usual_link(&self, seats: &[PlacedMember], (a, b): (usize, usize)) -> Result<UsualLink, Error> {
        let pair = [&seats[a].device, &seats[b].device];
        let (id, least, why) = match device_link(seats, (a, b)) {
            Some(found) => found,
            None => match bus(pair) {
                Some((id, rate)) => (id, Some(rate), "the PCIe slots of their data"),
                None => {
                    let defaults = self.defaults()?;
                    // The slower network of the two: a desk has no port for a data centre's.
                    let home = pair.iter().find(|device| device.is_at_desk() || device.is_machine());
                    let network = defaults.network(home.copied().unwrap_or(pair[0]));
                    (
                        network.link.clone(),
                        None,
                        "the usual network, for no interface is common to their data",
                    )
                }
            },
        };
        let link: Link = self.load(&id)?;
        let rate = least.filter(|rate| rate.value < link.bandwidth.value);
        Ok(UsualLink {
            rate: rate.as_ref().map_or(link.bandwidth.value, |rate| rate.value),
            link: RigLink { link: link.id, bandwidth: rate, ..RigLink::default() },
            why,
        })
    }
}

fn lower(a: &Figure<ByteRate>, b: &Figure<ByteRate>) -> Figure<ByteRate> {
    if b.value < a.value { b.clone() } else { a.clone() }
}

/// The link between devices that both state. Devices fill its domains in their order: one more never parts others.
fn device_link(
    seats: &[PlacedMember],
    (a, b): (usize, usize),
) -> Option<(String, Option<Figure<ByteRate>>, &'static str)> {
    let link = |at: usize| seats[at].device.scale_up.as_ref().filter(|up| !up.optional);
    let (own, other) = (link(a)?, link(b)?);
    let before = |at: usize| {
        let with = (0..at).filter(|seat| link(*seat).is_some_and(|up| up.link == own.link));
        with.map(|seat| seats[seat].count).sum::<u64>()
    };
    let domain = u64::from(own.domain.min(other.domain)).max(1);
    let joined = own.link == other.link && before(a) / domain == before(b) / domain;
    joined.then(|| {
        (own.link.clone(), Some(lower(&own.bandwidth, &other.bandwidth)), "the link that both state")
    })
}

/// The slower of the slots of two cards.
fn bus([a, b]: [&Device; 2]) -> Option<(String, Figure<ByteRate>)> {
    let slot = |device: &Device| {
        let card = !device.memory.unified && !device.is_module();
        device.host_link.clone().filter(|link| card && link.link.starts_with("pcie"))
    };
    let (own, other) = (slot(a)?, slot(b)?);
    let slower = if other.bandwidth.value < own.bandwidth.value { other } else { own };
    Some((slower.link, slower.bandwidth))
}

/// The links between unlike pairs in words: each link with the pairs that it joins, at most a few of them by name.
fn assumed(pairs: &[(usize, usize, UsualLink)], names: &[String]) -> AssumedLinks {
    const NAMED: usize = 3;
    let mut links: Vec<&UsualLink> = Vec::new();
    for (_, _, usual) in pairs {
        if !links.iter().any(|known| known.link.link == usual.link.link) {
            links.push(usual);
        }
    }
    let joined = |usual: &UsualLink| {
        let of: Vec<String> = pairs
            .iter()
            .filter(|(_, _, other)| other.link.link == usual.link.link)
            .map(|(a, b, _)| format!("{} and {}", names[*a], names[*b]))
            .collect();
        let rest = of.len().saturating_sub(NAMED);
        let more = if rest > 0 { format!(", {rest} more pairs") } else { String::new() };
        format!("{}{more}", of[..of.len().min(NAMED)].join(", "))
    };
    let each: Vec<(String, &UsualLink)> = links.iter().map(|usual| (joined(usual), *usual)).collect();
    let flags = each.iter().map(|(pairs, usual)| format!("{} between {pairs}", usual.link.link)).collect();
    let why: Vec<String> =
        each.iter().map(|(_, usual)| format!("{} is {}", usual.link.link, usual.why)).collect();
    AssumedLinks { flags, note: format!("links between the devices assumed: {}", why.join("; ")) }
}
