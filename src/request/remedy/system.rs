//! Other hardware and lower weight formats, for an infeasible problem.

use super::InfeasibleProblem;
use crate::report::flag::Flag;
use crate::report::relax::{ConflictReport, Remedy};
use crate::search::hosting::least_host_memory;
use crate::search::relax::{Stopped, answered, largest_below, more_memory};
use crate::search::sizing::weights;
use crate::spec::cluster::Cluster;
use crate::spec::device::Device;
use crate::spec::offload::OffloadPolicy;
use crate::spec::writer::shell_word;
use crate::store::hardware::Shorthand;
use crate::store::kind::CatalogKind;

/// Maximum factor on the number of devices, and on few devices the maximum number of devices.
const MOST_TIMES: u64 = 4;
/// See [`MOST_TIMES`].
const MOST_OF_FEW: u64 = 16;
/// Maximum number of other devices to try.
const MOST_OTHERS: usize = 4;
/// Most host memory of a node that is proposed, in GB: that of a server of eight devices in the catalogue.
const MOST_HOST_GIGABYTES: u64 = 2048;
/// Maximum number of other systems that are proposed.
const MOST_PROPOSED: usize = 2;

impl InfeasibleProblem<'_> {
    /// The fewest additional devices of the same kind, as a shorthand, that make the problem feasible; if the current
    /// devices do not fit the model (`bare`), the other conditions may be relaxed too.
    pub(super) fn larger(&self, bare: bool) -> Result<Option<Remedy>, Stopped> {
        let systems = self.systems()?;
        let flag = |at: usize| {
            let smaller = at.checked_sub(1).map(|below| systems[below].clone());
            vec![Flag::Hardware(systems[at].clone(), smaller)]
        };
        // Doubling steps, then the smallest number between the last two.
        let mut steps: Vec<usize> =
            (0..).map(|power| (1usize << power) - 1).take_while(|at| *at < systems.len()).collect();
        steps.extend(systems.len().checked_sub(1));
        steps.dedup();
        // More nodes serve what fewer serve: the last step fails first where all fail.
        if let Some(last) = steps.last().filter(|_| self.resolved.cluster.nodes > 1)
            && !self.works(&flag(*last))?
        {
            steps.clear();
        }
        let mut below = None;
        for at in steps {
            if !self.works(&flag(at))? {
                below = Some(at);
                continue;
            }
            let (mut short, mut enough) = (below.map_or(0, |below| below + 1), at);
            while short < enough {
                let middle = short + (enough - short) / 2;
                if self.works(&flag(middle))? { enough = middle } else { short = middle + 1 }
            }
            return self.confirmed(Some(flag(enough)));
        }
        // The added devices resolve no conflict by themselves, but the model may fit on them.
        let Some(last) = systems.len().checked_sub(1).filter(|_| bare) else { return Ok(None) };
        let flags = self.completed(flag(last))?;
        self.confirmed(flags)
    }

    /// Larger systems of the same device as shorthands, the fewest devices first.
    fn systems(&self) -> Result<Vec<String>, Stopped> {
        let cluster = &self.resolved.cluster;
        let (device, here) = (self.device(), cluster.devices());
        let most = here.saturating_mul(MOST_TIMES).max(MOST_OF_FEW);
        let there = |text: String| {
            self.watched()?;
            let found = self.catalog.hardware(&text).ok();
            let larger = |found: &Cluster| {
                found.device.id == cluster.device.id && found.devices() > here && found.devices() <= most
            };
            Ok(found.filter(larger).map(|found| (found.devices(), found.nodes, text)))
        };
        // Large systems grow by nodes, not by devices.
        let ones: Vec<u64> = if cluster.nodes == 1 { (1..=most.min(64)).collect() } else { vec![] };
        let ones = ones.into_iter().map(|count| there(format!("{count}x{device}")));
        let mut found: Vec<(u64, u64, String)> =
            ones.filter_map(Result::transpose).collect::<Result<_, _>>()?;
        let whole = found.iter().filter(|(_, nodes, _)| *nodes == 1).map(|(count, ..)| *count).max();
        let mut nodes = vec![cluster.devices_per_node];
        nodes.extend(whole.filter(|whole| *whole != cluster.devices_per_node));
        for held in nodes {
            let counts = (2..).take_while(|count| count * held <= most);
            let larger = counts.map(|count| there(format!("{count}x{held}x{device}")));
            found.extend(larger.filter_map(Result::transpose).collect::<Result<Vec<_>, Stopped>>()?);
        }
        found.sort();
        found.dedup_by_key(|(count, ..)| *count);
        Ok(found.into_iter().map(|(.., text)| text).collect())
    }

    /// The device as typed, where it was typed.
    fn device(&self) -> String {
        let id = &self.resolved.cluster.device.id;
        let typed = self.scenario.hardware.as_deref().and_then(|text| Shorthand::parse(text.trim()).ok());
        let same = |name: &str| self.catalog.device(name).is_ok_and(|device| device.id == *id);
        match typed.map(|short| short.device.to_string()) {
            Some(name) if same(&name) && !name.contains(char::is_whitespace) => name,
            _ => id.clone(),
        }
    }

    /// More memory per device, and the device with the smallest increase that makes the problem feasible, where memory
    /// is the bottleneck.
    pub(super) fn other_devices(&self, bare: bool, found: &mut ConflictReport) -> Result<(), Stopped> {
        found.more_memory_gb = more_memory(self.problems, self.control)?;
        if !bare && found.more_memory_gb.is_none() {
            return Ok(());
        }
        let cluster = &self.resolved.cluster;
        let size = |device: &Device| device.memory.capacity.as_ref().map(|capacity| capacity.value);
        let files = self.catalog.entries(CatalogKind::Devices).into_values();
        let all = files.filter_map(|file| self.catalog.load::<Device>(&file.id).ok());
        let mut larger: Vec<(f64, String)> = all
            .filter(|device| device.vendor == cluster.device.vendor && device.class == cluster.device.class)
            .filter_map(|device| Some((size(&device)?, device.id)))
            .filter(|(capacity, _)| size(&cluster.device).is_some_and(|here| *capacity > here))
            .collect();
        larger.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        let counted = |id: &str| match cluster.nodes {
            1 => format!("{}x{id}", cluster.devices_per_node),
            nodes => format!("{nodes}x{}x{id}", cluster.devices_per_node),
        };
        let named = larger.iter().map(|(_, id)| counted(id));
        let resolved = named.filter(|text| self.catalog.hardware(text).is_ok()).take(MOST_OTHERS);
        for text in resolved {
            let remedy = self.confirmed(Some(vec![Flag::Hardware(text, None)]))?;
            if let Some(remedy) = remedy {
                found.remedies.push(remedy);
                break;
            }
        }
        Ok(())
    }

    /// The smallest host memory that makes the problem feasible, where a part of the model may be in it. Where the devices
    /// do not hold the model otherwise (`bare`), other conditions may be relaxed too.
    pub(super) fn host_memory(&self, bare: bool) -> Result<Option<Remedy>, Stopped> {
        if self.problems.iter().all(|problem| problem.offload == OffloadPolicy::Never) {
            return Ok(None);
        }
        const GB: f64 = 1e9;
        let here = self.problems.iter().filter_map(|problem| problem.host_memory).fold(0.0, f64::max) / GB;
        let flag = |gigabytes: u64| vec![Flag::HostMemory(gigabytes)];
        if here >= MOST_HOST_GIGABYTES as f64 {
            return Ok(None);
        }
        // The memory of one request is a lower bound, and enough where no other condition needs more.
        let hosts = self.with_flags(&flag(MOST_HOST_GIGABYTES))?;
        let Some(bytes) = hosts.iter().filter_map(least_host_memory).reduce(f64::min) else {
            return Ok(None);
        };
        let least = ((bytes / GB).ceil() as u64).max(here as u64 + 1).min(MOST_HOST_GIGABYTES);
        if answered(&hosts, self.control)? {
            let fails = |gigabytes: u64| Ok(!self.works(&flag(gigabytes))?);
            let short = largest_below(least, MOST_HOST_GIGABYTES, fails)?;
            return self.confirmed(Some(flag(short.map_or(least, |short| short + 1))));
        }
        if !bare {
            return Ok(None);
        }
        let flags = self.completed(flag(least))?;
        self.confirmed(flags)
    }

    /// Other systems of the catalogue whose devices hold the weights, the smallest memory first.
    pub(super) fn other_systems(&self, found: &mut ConflictReport) -> Result<(), Stopped> {
        let needs = self.problems.iter().flat_map(weights).map(|(needed, _)| needed);
        let Some(least) = needs.reduce(f64::min) else {
            return Ok(());
        };
        let Ok(market) = self.catalog.inventory(&[]) else { return Ok(()) };
        let memory = |cluster: &Cluster| {
            let each = cluster.device.memory.capacity.as_ref().map_or(0.0, |capacity| capacity.value);
            each * cluster.devices() as f64
        };
        let here = &self.resolved.cluster.device.id;
        let mut others: Vec<(f64, String)> = market
            .systems
            .into_iter()
            .filter(|lot| lot.competes && lot.cluster.device.id != *here && memory(&lot.cluster) >= least)
            .map(|lot| (memory(&lot.cluster), lot.id))
            .filter(|(_, id)| self.catalog.hardware(id).is_ok())
            .collect();
        others.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        let mut proposed = 0;
        for (_, id) in others.into_iter().take(MOST_OTHERS) {
            let known =
                found.remedies.iter().any(|remedy| remedy.flags == format!("--hardware {}", shell_word(&id)));
            let remedy = if known { None } else { self.confirmed(Some(vec![Flag::Hardware(id, None)]))? };
            proposed += usize::from(remedy.is_some());
            found.remedies.extend(remedy);
            if proposed == MOST_PROPOSED {
                break;
            }
        }
        Ok(())
    }

    /// The first lower weight format that makes the problem feasible.
    pub(super) fn lower_formats(&self) -> Result<Option<Remedy>, Stopped> {
        for lower in &self.resolved.lower_formats {
            let remedy = self.confirmed(Some(vec![Flag::WeightFormat(lower.format.id.clone())]))?;
            if remedy.is_some() {
                return Ok(remedy);
            }
        }
        Ok(None)
    }
}
