//! From a rig to a placement problem: each member as a cluster of its own, all in the same formats.
//!
//! Contains no formula: members are resolved one by one, as any other hardware.

mod builder;
mod places;

use std::cell::RefCell;
use std::rc::Rc;

use builder::{RigBuilder, RigFacts};
pub use places::DevicePlace;

use super::catalog::{Catalog, read_entry};
use super::model::ResolvedModel;
use super::resolved_scenario::ResolvedScenario;
use crate::cost::machine::PricedLink;
use crate::plan::infeasible::Infeasible;
use crate::plan::legal::{LegalLimits, caches, check, has_experts};
use crate::plan::parallel::ParallelPlan;
use crate::quantity::datum::Datum;
use crate::search::placement::price::PlacementProblem;
use crate::spec::cluster::{Cluster, System, Tier, Topology};
use crate::spec::device::{Device, Price};
use crate::spec::error::Error;
use crate::spec::format::NumberFormat;
use crate::spec::link::Link;
use crate::spec::precision::FormatOption;
use crate::spec::rig::{Rig, RigLink, RigMember};
use crate::spec::runtime::Runtime;
use crate::spec::scenario::{OffloadMode, Scenario};
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
    /// The rig.
    pub rig: Rig,
    /// The resolved model.
    pub model: ResolvedModel,
    /// The name of each member.
    pub names: Vec<String>,
    /// The device of each.
    pub devices: Vec<Device>,
    /// The runtime of each.
    pub runtimes: Vec<Runtime>,
    /// Every device in its place, in the order of the members.
    pub places: Vec<DevicePlace>,
    /// Id of the weight format that the model's own checkpoint has, or that comes first.
    pub own_weights: String,
    /// The weight format of all members.
    pub weights: FormatOption,
    /// The KV format of all members.
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
    /// Resolves `rig` for `scenario`, with `concurrency` concurrent requests.
    ///
    /// # Errors
    /// A fault in the rig or the scenario, or no common format or runtime.
    pub fn resolve(
        catalog: &Catalog,
        scenario: &Scenario,
        rig: Rig,
        concurrency: u64,
    ) -> Result<ResolvedRig, Error> {
        let name = scenario.model.as_deref().unwrap_or(super::resolved_scenario::DEFAULT_MODEL);
        let model = catalog.built(name)?;
        let seats = catalog.seats(&rig)?;
        let names: Vec<String> = seats.iter().map(|seat| seat.name.clone()).collect();
        let wires = catalog.wires(&rig, &names)?;
        let places = catalog.places(&rig, &seats, &names)?;
        let runtimes = catalog.runtimes(&seats, scenario)?;
        let known = RefCell::default();
        let builder = RigBuilder { catalog, scenario, rig: &rig, model, seats, runtimes, known };
        let seats = &builder.seats;
        let single: Vec<Rc<ResolvedScenario>> =
            (0..seats.len()).map(|at| builder.member(at, 1)).collect::<Result<_, Error>>()?;
        let first = single.first().ok_or_else(|| Error::new("members", "none", "a device", "name one"))?;
        let weights = common("weight-format", &single, |member| &member.weight_formats)?;
        let kv = common("kv-format", &single, |member| &member.kv_formats)?;
        let own_weights = first.weight_formats.first().map_or(String::new(), |own| own.format.id.clone());
        let infeasible = caches(&first.graph, &ParallelPlan { pp: 2, ..ParallelPlan::SINGLE }).err();
        let facts = RigFacts { wires, weights: &weights, kv: &kv, concurrency, uncut: infeasible.is_some() };
        let ways = ways(seats);
        let all = |offload: bool| -> Result<Vec<PlacementProblem>, Error> {
            ways.iter().filter_map(|degrees| builder.problem(degrees, &facts, offload).transpose()).collect()
        };
        let host = rig.hosts.values().any(|host| host.memory.is_some());
        let policy = scenario.offload.unwrap_or_default();
        let offloaded = if host && policy != OffloadMode::Never { all(true)? } else { vec![] };
        let always = policy == OffloadMode::Always && !offloaded.is_empty();
        let problems = if always { offloaded.clone() } else { all(false)? };
        let devices = seats.iter().map(|seat| seat.device.clone()).collect();
        let runtimes = single.iter().map(|member| (*member.runtime).clone()).collect();
        let model = builder.model.0;
        Ok(ResolvedRig {
            rig,
            model,
            names,
            devices,
            runtimes,
            places,
            own_weights,
            weights,
            kv,
            problems,
            offloaded,
            infeasible,
        })
    }
}

/// The first format of the first member that all others support.
fn common(
    key: &str,
    members: &[Rc<ResolvedScenario>],
    of: impl Fn(&ResolvedScenario) -> &Vec<FormatOption>,
) -> Result<FormatOption, Error> {
    let has = |problem: &ResolvedScenario, id: &str| of(problem).iter().any(|choice| choice.format.id == id);
    let first = members
        .iter()
        .flat_map(|problem| of(problem))
        .find(|choice| members.iter().all(|problem| has(problem, &choice.format.id)));
    first.cloned().ok_or_else(|| {
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
        scales: weights.format.block.map(|block| (block, roles)),
        runtime: (!rules.lifted).then_some((&rules, kv)),
    };
    let plan = |moe_tp, ep| ParallelPlan { tp: degree, moe_tp, ep, ..ParallelPlan::SINGLE };
    let plans = if experts { [plan(degree, 1), plan(1, degree)] } else { [plan(1, 1), plan(degree, 1)] };
    plans.into_iter().find(|plan| check(&problem.graph, plan, &limits).is_ok())
}

/// Devices that share a layer in each seat: every divisor of its count, in all combinations.
fn ways(seats: &[PlacedMember]) -> Vec<Vec<u64>> {
    let mut ways: Vec<Vec<u64>> = vec![vec![]];
    for seat in seats {
        let degrees: Vec<u64> = (1..=seat.count).filter(|degree| seat.count % degree == 0).collect();
        let more = ways.iter().flat_map(|way| degrees.iter().map(|&d| [way.as_slice(), &[d]].concat()));
        ways = more.take(MOST_WAYS).collect();
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
            aliases: vec![],
            device: self.device.id.clone(),
            devices_per_node: devices,
            nodes: 1,
            tiers: tier.into_iter().collect(),
            network: None,
            host: self.host.as_ref().and_then(|host| rig.hosts.get(host)).cloned(),
            power: None,
            price: Price::default(),
            rented_only: false,
            notes: None,
        };
        Cluster::build(&system, self.device.clone(), 1, devices)
    }
}

impl Catalog {
    /// The rig that `text` refers to: the path of a file, or a name.
    ///
    /// # Errors
    /// It does not exist, or its file is faulty.
    pub fn rig(&self, text: &str) -> Result<Rig, Error> {
        match self.is_local(text, CatalogKind::Rigs) {
            true => self.local_rig(),
            false => self.load_or_read(text),
        }
    }

    /// Whether `text` names a rig of the catalogue.
    pub fn has_rig(&self, text: &str) -> bool {
        if self.is_local(text, CatalogKind::Rigs) {
            return self.is_local_rig();
        }
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

    /// The runtime of each seat: the requested one, its own, the common default, one that runs on all, or else each
    /// device's default. A requested weight format must be supported.
    fn runtimes(&self, seats: &[PlacedMember], scenario: &Scenario) -> Result<Vec<String>, Error> {
        if let Some(named) = &scenario.runtime {
            return Ok(vec![named.clone(); seats.len()]);
        }
        let asked = scenario.weight_format.as_deref().filter(|name| *name != "any");
        let format = asked.map(|name| self.load::<NumberFormat>(name)).transpose()?;
        let runs = |runtime: &Runtime| format.as_ref().is_none_or(|f| runtime.weight_formats.contains(&f.id));
        let mut defaults = Vec::new();
        for seat in seats {
            let cluster = seat.cluster(&Rig::default(), 1)?;
            defaults.push(self.runtime(seat.runtime.as_deref(), &cluster)?);
        }
        let free: Vec<usize> = (0..seats.len()).filter(|&at| seats[at].runtime.is_none()).collect();
        let same = free.windows(2).all(|pair| defaults[pair[0]].id == defaults[pair[1]].id);
        let good = free.iter().all(|&at| runs(&defaults[at]));
        let mut chosen: Vec<String> = defaults.into_iter().map(|runtime| runtime.id.clone()).collect();
        if same && good {
            return Ok(chosen);
        }
        let mut all: Vec<Runtime> = Vec::new();
        for file in self.entries(CatalogKind::Runtimes).into_values() {
            let runtime: Runtime = read_entry(&file)?;
            if runs(&runtime) && free.iter().all(|&at| runtime.runs_on(&seats[at].device)) {
                all.push(runtime);
            }
        }
        // The runtime with the most vendors is the most likely to join heterogeneous devices.
        if let Some(widest) = all.into_iter().max_by_key(|runtime| runtime.vendors.len()) {
            free.iter().for_each(|&at| chosen[at] = widest.id.clone());
        }
        Ok(chosen)
    }
}
