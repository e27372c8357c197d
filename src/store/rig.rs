//! From a rig to a placement problem: each member as a cluster of its own, all in the same formats.
//!
//! Contains no formula: members are resolved one by one, as any other hardware.

mod builder;
mod places;
mod runtimes;
mod usual_links;

use crate::spec::offload::OffloadPolicy;
use std::cell::RefCell;
use std::rc::Rc;

use builder::{RigBuilder, RigFacts};
pub use places::DevicePlace;
use runtimes::RuntimeChoice;
pub use usual_links::AssumedLinks;

use super::catalog::{Catalog, is_path};
use super::model::ResolvedModel;
use super::resolved_scenario::ResolvedScenario;
use crate::cost::machine::PricedLink;
use crate::plan::infeasible::Infeasible;
use crate::plan::legal::{LegalLimits, caches, check, has_experts};
use crate::plan::parallel::ParallelPlan;
use crate::plan::scale_blocks::BlockLimits;
use crate::quantity::datum::Datum;
use crate::search::placement::price::PlacementProblem;
use crate::spec::cluster::{Cluster, System, Tier, Topology};
use crate::spec::device::Device;
use crate::spec::error::Error;
use crate::spec::evidence::MemberRecord;
use crate::spec::link::Link;
use crate::spec::precision::FormatOption;
use crate::spec::rig::{Rig, RigLink, RigMember};
use crate::spec::runtime::Runtime;
use crate::spec::scenario::Scenario;
use crate::store::kind::CatalogKind;

/// A device, or a group of equal devices, in its place in a rig.
#[derive(Clone, Debug)]
struct PlacedMember {
    /// Index of its member: seats of one member differ only in their names.
    member: usize,
    name: String,
    device: Device,
    count: u64,
    joined: Option<Tier>,
    runtime: Option<String>,
    host: Option<String>,
}

/// A resolved rig, with the problem of each of its members.
#[derive(Clone, Debug)]
pub struct ResolvedRig {
    pub rig: Rig,
    pub model: ResolvedModel,
    /// The name of each member; those that no runtime of `runtimes` drives come last.
    pub names: Vec<String>,
    #[cfg_attr(not(feature = "internals"), allow(dead_code))]
    pub devices: Vec<Device>,
    /// The runtime of each that takes part.
    pub runtimes: Vec<Runtime>,
    /// Every device in its place, in the order of the members.
    pub places: Vec<DevicePlace>,
    /// The measurements near each that takes part.
    pub records: Vec<MemberRecord>,
    /// The links that the rig does not state.
    pub assumed: Option<AssumedLinks>,
    pub weights: FormatOption,
    pub kv: FormatOption,
    /// One problem for every way to share layers inside groups; the first shares no layer.
    pub problems: Vec<PlacementProblem>,
    /// The same with offload to host memory, where there is any.
    pub offloaded: Vec<PlacementProblem>,
    /// The reason that the model cannot be cut into stages, if so.
    pub infeasible: Option<Infeasible>,
}

/// Maximum number of ways to share layers inside groups.
const MOST_WAYS: usize = 64;

impl ResolvedRig {
    /// Resolves `rig` for `scenario`, with `concurrency` concurrent requests, in the way that uses the most devices.
    pub fn resolve(
        catalog: &Catalog,
        scenario: &Scenario,
        rig: Rig,
        concurrency: u64,
    ) -> Result<ResolvedRig, Error> {
        let all = ResolvedRig::resolve_each(catalog, scenario, rig, concurrency)?;
        let none = || Error::new("members", "none", "a device", "name one");
        all.into_iter().next().ok_or_else(none)
    }

    /// The same in every way: with each runtime that is the default of some device, on the devices that it runs on.
    pub fn resolve_each(
        catalog: &Catalog,
        scenario: &Scenario,
        rig: Rig,
        concurrency: u64,
    ) -> Result<Vec<ResolvedRig>, Error> {
        let name = scenario.model.as_deref().unwrap_or(super::resolved_scenario::DEFAULT_MODEL);
        let model = catalog.built(name)?;
        let seats = catalog.seats(&rig)?;
        let names: Vec<String> = seats.iter().map(|seat| seat.name.clone()).collect();
        let (rig, assumed) = catalog.with_usual_links(rig, &seats, &names)?;
        let wires = catalog.wires(&rig, &names)?;
        let places = catalog.places(&rig, &seats, &names)?;
        let parts = RigParts { rig: &rig, seats: &seats, wires: &wires, places: &places, assumed: &assumed };
        let resolved = |scenario: &Scenario, runtimes: RuntimeChoice| {
            let (known, model) = (RefCell::default(), model.clone());
            let builder = RigBuilder { catalog, scenario, rig: &rig, model, seats: &seats, runtimes, known };
            ResolvedRig::of(&builder, &parts, concurrency)
        };
        let (mut found, mut fault) = (Vec::new(), None);
        let choices = catalog.runtime_choices(&seats, scenario)?;
        for runtimes in &choices {
            match resolved(scenario, runtimes.clone()) {
                Ok(resolved) => found.push(resolved),
                Err(why) => fault = fault.or(Some(why)),
            }
        }
        // A device alone, in the format of all, has runtimes that another may not share: one more device takes nothing
        // away.
        if let Some(format) = found.first().map(|joined: &ResolvedRig| joined.weights.format.id.clone()) {
            let scenario = Scenario { weight_format: Some(format), ..scenario.clone() };
            for runtimes in alone(&choices) {
                found.extend(resolved(&scenario, runtimes).ok());
            }
        }
        match fault {
            Some(fault) if found.is_empty() => Err(fault),
            _ => Ok(found),
        }
    }

    /// The rig with the runtimes of `builder`.
    fn of(builder: &RigBuilder, parts: &RigParts, concurrency: u64) -> Result<ResolvedRig, Error> {
        let (rig, seats) = (parts.rig, parts.seats);
        let (used, left_out): (Vec<usize>, Vec<usize>) =
            (0..seats.len()).partition(|&at| builder.runtimes[at].is_some());
        let single: Vec<Rc<ResolvedScenario>> =
            used.iter().map(|&at| builder.member(at, 1)).collect::<Result<_, Error>>()?;
        let first = single.first().ok_or_else(|| Error::new("members", "none", "a device", "name one"))?;
        let weights = common("weight-format", &single, |member| &member.weight_formats)?;
        let kv = common("kv-format", &single, |member| &member.kv_formats)?;
        let infeasible = caches(&first.graph, &ParallelPlan { pp: 2, ..ParallelPlan::SINGLE }).err();
        let wires = parts.wires.to_vec();
        let facts = RigFacts { wires, weights: &weights, kv: &kv, concurrency, uncut: infeasible.is_some() };
        let ways = ways(builder, &used);
        let all = |offload: bool| -> Result<Vec<PlacementProblem>, Error> {
            ways.iter().filter_map(|degrees| builder.problem(degrees, &facts, offload).transpose()).collect()
        };
        let host = rig.hosts.values().any(|host| host.memory.is_some());
        let policy = builder.scenario.offload.unwrap_or_default();
        let offloaded = if host && policy != OffloadPolicy::Never { all(true)? } else { vec![] };
        let always = policy == OffloadPolicy::Always && !offloaded.is_empty();
        let problems = if always { offloaded.clone() } else { all(false)? };
        let record = |(&at, member): (&usize, &Rc<ResolvedScenario>)| MemberRecord {
            name: seats[at].name.clone(),
            device: seats[at].device.id.clone(),
            intervals: member.prediction_intervals(&weights.format.id),
            kinds: member.kinds(),
        };
        let records = used.iter().zip(&single).map(record).collect();
        let order = || used.iter().chain(&left_out).copied();
        let place = |seat: usize| {
            let at = order().position(|one| one == seat).unwrap_or(seat);
            let own = parts.places.iter().filter(move |place| place.seat == seat);
            own.map(move |place| DevicePlace { seat: at, ..*place })
        };
        Ok(ResolvedRig {
            rig: rig.clone(),
            model: builder.model.0.clone(),
            names: order().map(|at| seats[at].name.clone()).collect(),
            devices: order().map(|at| seats[at].device.clone()).collect(),
            runtimes: single.iter().map(|member| (*member.runtime).clone()).collect(),
            places: order().flat_map(place).collect(),
            records,
            assumed: parts.assumed.clone(),
            weights,
            kv,
            problems,
            offloaded,
            infeasible,
        })
    }

    /// The names of the devices that its runtimes do not drive.
    pub fn left_out(&self) -> &[String] {
        self.names.get(self.runtimes.len()..).unwrap_or_default()
    }

    /// Whether one runtime drives all of its devices.
    pub fn has_one_runtime(&self) -> bool {
        self.runtimes.windows(2).all(|pair| pair[0].id == pair[1].id)
    }
}

/// The choices in which one device takes part, of all that are not listed.
fn alone(choices: &[RuntimeChoice]) -> Vec<RuntimeChoice> {
    let mut found: Vec<RuntimeChoice> = Vec::new();
    for (choice, at) in choices.iter().flat_map(|choice| (0..choice.len()).map(move |at| (choice, at))) {
        let one: RuntimeChoice =
            choice.iter().enumerate().map(|(seat, id)| id.clone().filter(|_| seat == at)).collect();
        if one.iter().any(Option::is_some) && !choices.contains(&one) && !found.contains(&one) {
            found.push(one);
        }
    }
    found
}

/// The parts of a rig that are the same for every choice of runtimes.
struct RigParts<'a> {
    rig: &'a Rig,
    seats: &'a [PlacedMember],
    wires: &'a [(usize, usize, PricedLink<Datum>)],
    places: &'a [DevicePlace],
    assumed: &'a Option<AssumedLinks>,
}

/// The format that all members support: the one nearest to the front of their lists, where each has its usual one.
fn common(
    key: &str,
    members: &[Rc<ResolvedScenario>],
    of: impl Fn(&ResolvedScenario) -> &Vec<FormatOption>,
) -> Result<FormatOption, Error> {
    let place =
        |problem: &ResolvedScenario, id: &str| of(problem).iter().position(|choice| choice.format.id == id);
    // The order of the members changes nothing: the farthest place of a format counts, then the sum, then its id.
    let rank = |choice: &FormatOption| {
        let places: Option<Vec<usize>> =
            members.iter().map(|problem| place(problem, &choice.format.id)).collect();
        places.map(|places| (places.iter().max().copied(), places.iter().sum::<usize>()))
    };
    let known = members.first().into_iter().flat_map(|problem| of(problem));
    let ranked = known.filter_map(|choice| Some((rank(choice)?, choice)));
    let found =
        ranked.min_by(|(a, one), (b, other)| a.cmp(b).then_with(|| one.format.id.cmp(&other.format.id)));
    found.map(|(_, choice)| choice.clone()).ok_or_else(|| {
        let each = |problem: &ResolvedScenario| {
            let ids: Vec<&str> = of(problem).iter().map(|choice| choice.format.id.as_str()).collect();
            format!("{} on {}", ids.join(" or "), problem.cluster.device.id)
        };
        let found = members.iter().map(|problem| each(problem)).collect::<Vec<_>>().join(", ");
        let fix = format!("set a --{key} that all support, or one --runtime for all");
        Error::new(key, found, "one format that every device supports", fix)
    })
}

/// The plan in which `degree` devices share a layer, where the runtime and the model allow one.
fn shared(
    problem: &ResolvedScenario,
    (weights, kv): (&FormatOption, &str),
    degree: u64,
) -> Option<ParallelPlan> {
    let rules = problem.rules();
    let experts = has_experts(&problem.graph);
    let roles = crate::cost::machine_builder::quantised(&weights.format, !experts);
    let limits = LegalLimits {
        devices: degree,
        domain: degree,
        block: u64::MAX,
        scales: weights.format.block.map(|block| BlockLimits { block, roles, format: &weights.format.id }),
        runtime: (!rules.lifted).then_some((&rules, kv)),
    };
    let one = ParallelPlan { tp: degree, ..ParallelPlan::SINGLE };
    let plans =
        if experts { [one.with_experts(1), one.with_experts(degree)] } else { [one, one.without_experts()] };
    plans.into_iter().find(|plan| check(&problem.graph, plan, &limits).is_ok())
}

/// Devices that share a layer in each seat in use: every divisor of its count, in all combinations; and each seat alone.
fn ways(builder: &RigBuilder, used: &[usize]) -> Vec<Vec<Option<u64>>> {
    let seats = builder.seats;
    let none = vec![None; seats.len()];
    let degrees = |at: usize| {
        let count = seats[at].count;
        (1..=count).filter(move |degree| count.is_multiple_of(*degree))
    };
    let mut ways = vec![none.clone()];
    fn with(way: &[Option<u64>], at: usize, degree: u64) -> Vec<Option<u64>> {
        let mut way = way.to_vec();
        way[at] = Some(degree);
        way
    }
    for &at in used {
        let more = ways.iter().flat_map(|way| degrees(at).map(move |degree| with(way, at, degree)));
        ways = more.take(MOST_WAYS).collect();
    }
    // Most runtimes have one degree for all stages: a group that shares layers may be alone.
    for &at in used.iter().filter(|_| used.len() > 1) {
        ways.extend(degrees(at).skip(1).map(|degree| with(&none, at, degree)));
    }
    ways
}

fn priced(tier: &Tier) -> PricedLink<Datum> {
    PricedLink {
        bandwidth: tier.bandwidth.datum(format!("{}_bandwidth", tier.link)),
        latency: tier.latency.datum(format!("{}_latency", tier.link)),
    }
}

impl PlacedMember {
    /// This number of its devices, without the others.
    fn cluster(&self, rig: &Rig, devices: u64) -> Result<Cluster, Error> {
        let tier = self.joined.as_ref().filter(|_| devices > 1).map(|tier| tier.joining(devices));
        let system = System {
            id: self.device.id.clone(),
            name: self.device.name.clone(),
            device: self.device.id.clone(),
            devices_per_node: devices,
            nodes: 1,
            tiers: tier.into_iter().collect(),
            host: self.host.as_ref().and_then(|host| rig.hosts.get(host)).cloned(),
            ..System::default()
        };
        Cluster::build(&system, self.device.clone(), 1, devices)
    }
}

impl Catalog {
    /// The rig that `text` refers to: the path of a file, or a name.
    pub fn rig(&self, text: &str) -> Result<Rig, Error> {
        match self.is_local(text, CatalogKind::Rigs) {
            true => self.local_rig(),
            false => self.load_or_read(text).map_err(|fault| {
                if is_path(text) || self.hardware(text).is_err() {
                    return fault;
                }
                let found = format!("`{}`, a system of equal devices", text.trim());
                let fix = "use `optimize` or `estimate`, the questions about systems";
                Error::new("rig", found, CatalogKind::Rigs.expected(), fix)
            }),
        }
    }

    /// Whether `text` names a rig of the catalogue, or unlike devices (`4090+3090`).
    pub fn has_rig(&self, text: &str) -> bool {
        if self.is_local(text, CatalogKind::Rigs) {
            return self.is_local_rig();
        }
        self.names_rig(text) || self.unlike(text).is_some()
    }

    /// Whether a rig of the catalogue has this name.
    pub fn names_rig(&self, text: &str) -> bool {
        self.find(CatalogKind::Rigs, text).is_ok()
    }

    fn seats(&self, rig: &Rig) -> Result<Vec<PlacedMember>, Error> {
        let within = |at: usize, fault: Error| {
            let key = format!("members[{at}].{}", if fault.key.is_empty() { "device" } else { &fault.key });
            Error { key, ..fault }
        };
        let mut devices = Vec::new();
        for (at, post) in rig.members.iter().enumerate() {
            let device = self.device(&post.device).map_err(|miss| within(at, miss.into()))?;
            devices.push(device);
        }
        let name = |post: &RigMember| {
            let at = rig.members.iter().position(|other| std::ptr::eq(other, post));
            at.map_or_else(|| post.device.clone(), |at| devices[at].id.clone())
        };
        let mut names = rig.names(name).into_iter();
        let mut seats = Vec::new();
        for (at, (post, device)) in rig.members.iter().zip(&devices).enumerate() {
            let joined = post.joined.as_ref().map(|wire| self.wire(wire)).transpose();
            let joined = joined.map_err(|fault| within(at, fault))?;
            let members = if joined.is_some() { 1 } else { post.count };
            for name in names.by_ref().take(members as usize) {
                seats.push(PlacedMember {
                    member: at,
                    name,
                    device: device.clone(),
                    count: if joined.is_some() { post.count } else { 1 },
                    joined: joined.clone(),
                    runtime: post.runtime.clone(),
                    host: post.host.clone(),
                });
            }
        }
        Ok(seats)
    }

    /// A connection, with missing figures from its link.
    fn wire(&self, wire: &RigLink) -> Result<Tier, Error> {
        let link: Link = self.load(&wire.link)?;
        let latency = wire.latency.clone().or(link.latency).ok_or_else(|| {
            let fix = "add `latency` next to `link`";
            Error::new("latency", format!("none for {}", link.name), "the latency of a small message", fix)
        })?;
        Ok(Tier {
            name: link.name.clone(),
            link: link.id,
            devices: 2,
            bandwidth: wire.bandwidth.clone().unwrap_or(link.bandwidth),
            latency,
            in_switch_reduction: false,
            topology: link.topology.unwrap_or(Topology::Switch),
            peer_to_peer: None,
        })
    }

    fn wires(&self, rig: &Rig, names: &[String]) -> Result<Vec<(usize, usize, PricedLink<Datum>)>, Error> {
        // One link may join thousands of pairs in a mesh: each is looked up once.
        let priced = |wire: &RigLink| Ok::<_, Error>(priced(&self.wire(wire)?));
        let links: Vec<_> = rig.links.iter().map(priced).collect::<Result<_, Error>>()?;
        let edges = rig.edges(names)?.into_iter();
        let place = |wire: &RigLink| rig.links.iter().position(|own| std::ptr::eq(own, wire));
        Ok(edges.filter_map(|(a, b, wire)| Some((a, b, links.get(place(wire)?)?.clone()))).collect())
    }
}
