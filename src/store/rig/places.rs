//! The host of every device of a rig: devices on one link are on one host, unless that link joins hosts.

use super::{PlacedMember, ResolvedRig};
use crate::search::placement::price::PlacementProblem;
use crate::spec::error::Error;
use crate::spec::link::Link;
use crate::spec::rig::Rig;
use crate::store::catalog::Catalog;

/// A device of a rig in its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DevicePlace {
    /// Index of its member, as in [`ResolvedRig::names`].
    pub seat: usize,
    /// Number of its host.
    pub host: usize,
}

impl ResolvedRig {
    /// The devices of each member of a problem.
    pub fn places_of(&self, problem: &PlacementProblem) -> Vec<&[DevicePlace]> {
        let members = problem.members.iter().map(|member| {
            let from = member.first_device.min(self.places.len());
            let to = (from + member.devices as usize).min(self.places.len());
            &self.places[from..to]
        });
        members.collect()
    }
}

impl Catalog {
    pub(super) fn places(
        &self,
        rig: &Rig,
        seats: &[PlacedMember],
        names: &[String],
    ) -> Result<Vec<DevicePlace>, Error> {
        let seat = |(at, seat): (usize, &PlacedMember)| (0..seat.count).map(move |_| at);
        let owners: Vec<usize> = seats.iter().enumerate().flat_map(seat).collect();
        let mut hosts: Vec<usize> = (0..owners.len()).collect();
        let mut join = |same: &dyn Fn(usize) -> bool| {
            let all: Vec<usize> = (0..owners.len()).filter(|device| same(owners[*device])).collect();
            let known: Vec<usize> = all.iter().map(|device| hosts[*device]).collect();
            let Some(first) = known.iter().min().copied() else { return };
            hosts.iter_mut().filter(|host| known.contains(host)).for_each(|host| *host = first);
        };
        for host in rig.hosts.keys() {
            join(&|seat: usize| seats[seat].host.as_ref() == Some(host));
        }
        for (at, seat) in seats.iter().enumerate() {
            let own = seat.joined.as_ref().map(|tier| self.load::<Link>(&tier.link)).transpose()?;
            if own.is_some_and(|link| !link.joins_hosts) {
                join(&|seat: usize| seat == at);
            }
        }
        // One link may join thousands of pairs: each kind is looked up once.
        let kinds = rig.links.iter().map(|wire| Ok(self.load::<Link>(&wire.link)?.joins_hosts));
        let kinds: Vec<bool> = kinds.collect::<Result<_, Error>>()?;
        for (a, b, wire) in rig.edges(names)? {
            let kind = rig.links.iter().position(|own| std::ptr::eq(own, wire));
            if kind.is_some_and(|kind| !kinds[kind]) {
                join(&|seat: usize| seat == a || seat == b);
            }
        }
        Ok(owners.into_iter().zip(hosts).map(|(seat, host)| DevicePlace { seat, host }).collect())
    }
}
