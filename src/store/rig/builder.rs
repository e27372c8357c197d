//! The placement problem of a rig: groups of devices with their machines, and the links between them.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ops::Range;
use std::rc::Rc;

use super::runtimes::RuntimeChoice;
use super::{PlacedMember, priced, shared};
use crate::cost::machine::PricedLink;
use crate::graph::model::ModelGraph;
use crate::quantity::datum::Datum;
use crate::search::hosting::usable_host_memory;
use crate::search::placement::price::{DeviceGroup, Disk, Hop, HostCapacity, PlacementProblem};
use crate::spec::error::Error;
use crate::spec::precision::FormatOption;
use crate::spec::rig::Rig;
use crate::spec::scenario::Scenario;
use crate::store::catalog::Catalog;
use crate::store::model::ResolvedModel;
use crate::store::resolved_scenario::ResolvedScenario;

/// The members of a rig while its problems are built.
pub(super) struct RigBuilder<'a> {
    pub(super) catalog: &'a Catalog,
    pub(super) scenario: &'a Scenario,
    pub(super) rig: &'a Rig,
    pub(super) model: (ResolvedModel, ModelGraph),
    pub(super) seats: &'a [PlacedMember],
    pub(super) runtimes: RuntimeChoice,
    /// Resolved members by index and number of devices that share a layer.
    pub(super) known: RefCell<HashMap<(usize, u64), Rc<ResolvedScenario>>>,
}

/// The parts of a placement problem that are the same for every way to share layers.
pub(super) struct RigFacts<'a> {
    pub(super) wires: Vec<(usize, usize, PricedLink<Datum>)>,
    pub(super) weights: &'a FormatOption,
    pub(super) kv: &'a FormatOption,
    pub(super) concurrency: u64,
    /// The model cannot be cut into stages.
    pub(super) uncut: bool,
}

impl RigBuilder<'_> {
    /// The member in seat `at` as a cluster of `devices` devices.
    pub(super) fn member(&self, at: usize, devices: u64) -> Result<Rc<ResolvedScenario>, Error> {
        let seat = &self.seats[at];
        if let Some(member) = self.known.borrow().get(&(seat.member, devices)) {
            return Ok(member.clone());
        }
        let own = Scenario { runtime: self.runtimes[at].clone(), objective: None, ..self.scenario.clone() };
        let cluster = seat.cluster(self.rig, devices)?;
        let member = Rc::new(ResolvedScenario::placed(self.catalog, &own, self.model.clone(), cluster)?);
        self.known.borrow_mut().insert((seat.member, devices), member.clone());
        Ok(member)
    }

    /// The groups of `degree` devices in seat `at`; `None` where the runtime or the model allows no such group.
    fn groups(
        &self,
        at: usize,
        degree: u64,
        facts: &RigFacts<'_>,
        offload: bool,
    ) -> Result<Option<Vec<DeviceGroup>>, Error> {
        let (seat, member) = (&self.seats[at], self.member(at, degree)?);
        let Some(plan) = shared(&member, (facts.weights, &facts.kv.format.id), degree) else {
            return Ok(None);
        };
        let number = |host: &Option<String>| self.rig.hosts.keys().position(|key| Some(key) == host.as_ref());
        let on_host: f64 =
            self.seats.iter().filter(|other| other.host == seat.host).map(|other| other.count as f64).sum();
        let host = member.cluster.host.as_ref().filter(|_| offload);
        let link = seat.device.host_link.as_ref().filter(|_| offload);
        let groups = seat.count / degree;
        // Devices that take part come first.
        let before = |other: &usize| *other < at && self.runtimes[*other].is_some();
        let place: u64 = (0..self.seats.len()).filter(before).map(|other| self.seats[other].count).sum();
        let group = |group: u64| -> Result<DeviceGroup, Error> {
            let name = if groups > 1 { format!("{}/{}", seat.name, group + 1) } else { seat.name.clone() };
            Ok(DeviceGroup {
                name,
                devices: degree,
                first_device: (place + group * degree) as usize,
                machine: member.machine(facts.weights, facts.kv)?,
                plan,
                shared_prefixes: member.shared_prefixes(),
                host_link: link.map(|link| link.bandwidth.datum("host_bandwidth")),
                host: host
                    .and_then(|host| {
                        Some((number(&seat.host)?, usable_host_memory(host.memory.as_ref()?.value)))
                    })
                    .map(|(number, bytes)| HostCapacity { number, bytes }),
                // Storage is not shared: each device has its part.
                disk: host.and_then(|host| {
                    let rate = host.storage_read.as_ref()?.datum("storage_read");
                    Some(Disk { rate, bytes: host.storage.as_ref()?.value / on_host })
                }),
            })
        };
        (0..groups).map(group).collect::<Result<Vec<_>, Error>>().map(Some)
    }

    /// Links between groups, in both directions: the rig's wires, and those inside a seat. `parts` has the groups of
    /// each seat.
    fn hops(&self, parts: &[Range<usize>], facts: &RigFacts<'_>) -> Vec<Hop> {
        let mut hops = Vec::new();
        if facts.uncut {
            return hops;
        }
        let mut join = |from: usize, to: usize, link: &PricedLink<Datum>| {
            hops.push(Hop { from, to, link: link.clone() });
            hops.push(Hop { from: to, to: from, link: link.clone() });
        };
        // Nodes beyond the seats are switches: one index after all groups and the seats left out.
        let count = parts.iter().map(|part| part.end).max().unwrap_or(0);
        let place = |node: usize| parts.get(node).cloned().unwrap_or(count..count + 1);
        for (a, b, link) in &facts.wires {
            place(*a).for_each(|a| place(*b).for_each(|b| join(a, b, link)));
        }
        for (seat, part) in self.seats.iter().zip(parts) {
            let inner = seat.joined.as_ref().map(priced);
            for (a, b) in part.clone().flat_map(|a| (a + 1..part.end).map(move |b| (a, b))) {
                inner.iter().for_each(|link| join(a, b, link));
            }
        }
        hops
    }

    /// The problem in which `degrees` devices of each seat share layers, where that is legal. Seats without a degree
    /// hold nothing; data still passes through them.
    pub(super) fn problem(
        &self,
        degrees: &[Option<u64>],
        facts: &RigFacts<'_>,
        offload: bool,
    ) -> Result<Option<PlacementProblem>, Error> {
        let Some(used) = degrees.iter().position(Option::is_some) else { return Ok(None) };
        let first = self.member(used, 1)?;
        if !first.graph.stores.is_empty() {
            let found = format!("{}, whose layers share weights", first.model.name);
            let fix =
                "name equal devices with --hardware: their pipeline stages each hold shared weights once";
            return Err(Error::new("model", found, "a model whose layers have weights of their own", fix));
        }
        let mut members = Vec::new();
        let mut parts: Vec<Option<Range<usize>>> = Vec::new();
        for (at, degree) in degrees.iter().enumerate() {
            let Some(degree) = degree else {
                parts.push(None);
                continue;
            };
            let Some(groups) = self.groups(at, *degree, facts, offload)? else { return Ok(None) };
            parts.push(Some(members.len()..members.len() + groups.len()));
            members.extend(groups);
        }
        let mut hubs = members.len()..;
        let mut hub = || {
            let at = hubs.next().unwrap_or_default();
            at..at + 1
        };
        let parts: Vec<Range<usize>> = parts.into_iter().map(|part| part.unwrap_or_else(&mut hub)).collect();
        let hops = self.hops(&parts, facts);
        let (graph, lengths, concurrency) = (first.graph.clone(), first.lengths(), facts.concurrency);
        Ok(Some(PlacementProblem { graph, members, hops, lengths, concurrency }))
    }
}
