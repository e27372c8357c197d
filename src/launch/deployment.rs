//! The processes of a deployment: for each pool its command, on the first host of a replica and on further ones.

use crate::spec::role::Role;
use std::collections::BTreeSet;

use super::command::{LaunchCommand, Word, WrittenOption, WrittenVariable, command};
use super::settings::{LaunchModel, SettingValue, Settings, Variable, served_context, settings};
use super::slots::ReplicaSlot;
use crate::search::candidate::{Candidate, PoolPlan};
use crate::search::problem::Problem;
use crate::spec::launch::{ContainerImage, Launch, LaunchVariable, ScalingMetrics};
use crate::spec::option_table::OptionTable;
use crate::spec::setting::Setting;

/// Name of processes that find each other.
pub(super) const NODE: &str = "node";

/// Where a process listens, and who sets it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Surroundings {
    /// A command line by itself: the runtime's own address and port.
    Bare,
    /// A script: address and port are variables.
    Script,
    /// A container: every address, and the runtime's port.
    Container,
}

/// The launch of a runtime with its options.
#[derive(Clone, Copy, Debug)]
pub struct LaunchedRuntime<'a> {
    pub own: (&'a Launch, &'a OptionTable),
    /// The same of the program that lends the devices of further hosts.
    pub remote: Option<(&'a Launch, &'a OptionTable)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkerProgram {
    /// The runtime's own.
    Server,
    /// The one that lends the devices of a further host.
    Remote,
}

#[derive(Clone, Debug)]
pub struct PoolLaunch {
    /// Its name among the pools: `server`, `prefill`, `decode`, with a number where one is not enough.
    pub name: String,
    pub role: Role,
    pub replicas: u64,
    pub devices: u64,
    pub hosts: u64,
    /// Degrees above 1, as a label.
    pub label: String,
    pub program: WorkerProgram,
    /// Names of the devices of every replica, where they differ.
    pub device_names: Vec<String>,
    pub(super) leader: Settings,
    pub(super) follower: Option<Settings>,
}

impl PoolLaunch {
    /// Attention data-parallel ranks of a host, where the runtime counts them by host; else 1.
    pub fn local_dp(&self) -> u64 {
        self.leader.count(Setting::LocalDp).unwrap_or(1)
    }

    /// The devices of a replica, on each host: their names, or else numbers.
    pub fn device_ids(&self, slot: &ReplicaSlot) -> Vec<String> {
        let names = self.device_names.chunks(self.devices.max(1) as usize).nth(slot.replica as usize);
        names.map_or_else(|| slot.device_ids(), <[String]>::to_vec)
    }

    pub fn settings(&self) -> &Settings {
        &self.leader
    }
}

#[derive(Clone, Debug)]
pub struct Deployed<'a> {
    pub launch: &'a Launch,
    pub table: &'a OptionTable,
    /// The container image for the devices, if one is known.
    pub image: Option<&'a ContainerImage>,
    pub workers: Vec<PoolLaunch>,
    pub devices_per_host: u64,
    /// Vendor of the devices, where all have one.
    pub vendor: Option<&'static str>,
    /// The program that lends the devices of further hosts.
    pub remote: Option<(&'a Launch, &'a OptionTable)>,
    /// Models on the processes, where a request places them.
    pub instances: u64,
    /// Settings of the plan that the runtime does not have in any option, with the nearest that it has.
    pub refused: Vec<String>,
}

impl<'a> Deployed<'a> {
    /// The processes of a candidate, each pool with its model.
    pub fn new(
        LaunchedRuntime { own: (launch, table), remote }: LaunchedRuntime<'a>,
        problem: &Problem,
        candidate: &Candidate,
        models: &[LaunchModel],
    ) -> Deployed<'a> {
        let vendor = problem.cluster.device.vendor.name();
        let image = launch.images.iter().find(|image| image.vendors.iter().any(|known| known == vendor));
        let devices_per_host = problem.cluster.devices_per_node.max(1);
        let mut workers: Vec<PoolLaunch> = Vec::new();
        let context = served_context(problem, candidate);
        for (pool, model) in candidate.pools.iter().zip(models) {
            let all = settings(problem, candidate, (pool, context), model);
            let mut worker = worker(launch, pool, all, devices_per_host);
            let number = 1 + workers.iter().filter(|known| known.role == pool.role).count();
            if number > 1 {
                worker.name = format!("{}-{number}", worker.name);
            }
            workers.push(worker);
        }
        let instances = candidate.pools.iter().map(|pool| pool.replicas).sum();
        let of_models: BTreeSet<&String> = models.iter().filter_map(|model| model.refused.as_ref()).collect();
        let mut refused: Vec<String> = of_models.into_iter().cloned().collect();
        if launch.request.is_some() && workers.len() > 1 {
            refused.push("replicas of several shapes: its nearest is replicas of one".to_owned());
        }
        let remote = remote.filter(|_| workers.iter().any(|worker| worker.hosts > 1));
        if remote.is_some() {
            refused.extend(lend(launch, &mut workers, devices_per_host));
        }
        let (vendor, image) = (Some(vendor), image.filter(|_| remote.is_none()));
        Deployed { launch, table, image, workers, devices_per_host, vendor, remote, instances, refused }
    }

    /// The values that a script of like hosts needs from its user: devices in the order of the layers, and servers on
    /// further hosts. Empty where no host lends any.
    pub fn lending_orders(&self) -> [String; 2] {
        let lenders = || self.workers.iter().filter(|worker| worker.program == WorkerProgram::Remote);
        let (Some(server), Some(_)) = (self.workers.first(), lenders().next()) else {
            return [String::new(), String::new()];
        };
        let how = self.launch.devices.as_deref().unwrap_or("in this order");
        let own = format!("{} of this host", server.devices);
        let each = [own].into_iter().chain(lenders().map(|one| format!("{} of {}", one.devices, one.name)));
        let names: Vec<&str> = lenders().map(|one| one.name.as_str()).collect();
        [
            format!("{how}: {}", each.collect::<Vec<_>>().join(", ")),
            format!("HOST:PORT of these, with commas: {}", names.join(", ")),
        ]
    }

    /// Devices in use.
    pub fn devices(&self) -> u64 {
        self.workers.iter().map(|worker| worker.replicas * worker.devices).sum()
    }

    pub fn is_on_one_host(&self) -> bool {
        self.devices() <= self.devices_per_host
    }

    /// The command of the first host of a worker.
    pub fn leader(&self, worker: &PoolLaunch, surroundings: Surroundings) -> LaunchCommand {
        self.command(worker, &worker.leader, surroundings)
    }

    /// The command of its further hosts, if there are any.
    pub fn follower(&self, worker: &PoolLaunch, surroundings: Surroundings) -> Option<LaunchCommand> {
        worker.follower.as_ref().map(|settings| self.command(worker, settings, surroundings))
    }

    fn command(&self, worker: &PoolLaunch, settings: &Settings, surroundings: Surroundings) -> LaunchCommand {
        let mut settings = settings.clone();
        let own = (self.launch, self.table);
        let (launch, table) = match worker.program {
            WorkerProgram::Server => own,
            WorkerProgram::Remote => self.remote.unwrap_or(own),
        };
        let listens = match surroundings {
            Surroundings::Bare => None,
            Surroundings::Script => Some([Variable::Host, Variable::Port].map(SettingValue::Variable)),
            Surroundings::Container => {
                let port = SettingValue::Count(u64::from(launch.port));
                Some([SettingValue::Word("0.0.0.0".into()), port])
            }
        };
        if let Some([address, port]) = listens {
            settings.set(Setting::Address, address);
            settings.set(Setting::Port, port);
        }
        let mut written = command(launch, table, &settings);
        if !written.yaml.is_empty() {
            settings.set(Setting::YamlFile, SettingValue::Word(format!("{}.yaml", worker.name)));
            written = command(launch, table, &settings);
        }
        // A script is itself started on every device.
        if let (Some(ranks), false) =
            (&launch.ranks, surroundings == Surroundings::Bare || written.starter.is_empty())
        {
            written.starter = ranks.program.iter().cloned().map(Word::Text).collect();
        }
        written.environment.extend(self.environment(launch));
        let metrics = self.scaling().filter(|_| surroundings == Surroundings::Container);
        written.options.extend(metrics.and_then(|metrics| metrics.option.as_ref()).map(|option| {
            WrittenOption {
                words: vec![Word::Text(option.clone())],
                why: "metrics, by which replicas are added and removed".to_owned(),
            }
        }));
        written
    }

    /// Variables that the measurements on these devices had set.
    fn environment(&self, launch: &Launch) -> Vec<WrittenVariable> {
        let own =
            |one: &&LaunchVariable| self.vendor.is_some_and(|own| one.vendors.iter().any(|name| name == own));
        let written = |one: &LaunchVariable| WrittenVariable {
            name: one.name.clone(),
            word: Word::Text(one.value.clone()),
            why: one.why.clone(),
        };
        launch.environment.iter().filter(own).map(written).collect()
    }

    /// The metrics by which like replicas are added and removed, where there are several. A router of prefill and decode
    /// workers lists them all.
    pub fn scaling(&self) -> Option<&ScalingMetrics> {
        let several = matches!(self.workers.as_slice(), [one] if one.replicas > 1);
        self.launch.scaling.as_ref().filter(|_| several)
    }

    /// Plan settings for which the runtime has no option, each once.
    pub fn missing(&self) -> Vec<String> {
        let mut missing: Vec<String> =
            self.workers.iter().flat_map(|worker| self.leader(worker, Surroundings::Bare).missing).collect();
        missing.extend(self.refused.clone());
        missing.sort();
        missing.dedup();
        missing
    }
}

/// The processes of a pool with the settings of its plan.
fn worker(launch: &Launch, pool: &PoolPlan, leader: Settings, devices_per_host: u64) -> PoolLaunch {
    let devices = pool.plan.devices();
    let hosts = devices.div_ceil(devices_per_host);
    let name = match pool.role {
        Role::Aggregated => "server",
        Role::Prefill => "prefill",
        Role::Decode => "decode",
    };
    let mut worker = PoolLaunch {
        name: name.to_owned(),
        role: pool.role,
        replicas: pool.replicas,
        devices,
        hosts,
        label: pool.plan.label(),
        program: WorkerProgram::Server,
        device_names: vec![],
        leader,
        follower: None,
    };
    if launch.request.is_some() {
        // One process on every host; the request gives the model to several of them.
        worker.name = NODE.to_owned();
        worker.replicas *= hosts;
        worker.devices = worker.devices.div_ceil(hosts);
        worker.hosts = 1;
    } else if launch.starter.is_some() {
        // One command starts the processes of all hosts.
        worker.hosts = 1;
    } else if hosts > 1 && launch.remote.is_none() {
        spread(launch, &mut worker, pool, devices_per_host);
    }
    worker
}

/// Gives the devices of further hosts to the process that answers, by processes that lend them; the reason where the
/// runtime cannot.
fn lend(launch: &Launch, workers: &mut Vec<PoolLaunch>, devices_per_host: u64) -> Option<String> {
    let [server] = workers.as_mut_slice() else {
        return Some("pools over several hosts: its nearest is one".to_owned());
    };
    if server.replicas > 1 {
        return Some("replicas over several hosts: its nearest is one replica".to_owned());
    }
    let (devices, hosts) = (server.devices, server.hosts);
    (server.devices, server.hosts) = (devices_per_host, 1);
    server.leader.set(Setting::RemoteDevices, SettingValue::Variable(Variable::RpcServers));
    if launch.devices.is_some() {
        server.leader.set(Setting::Devices, SettingValue::Variable(Variable::Devices));
    }
    let lender = |at: u64| PoolLaunch {
        name: if at == 1 { "rpc".to_owned() } else { format!("rpc-{at}") },
        role: Role::Aggregated,
        replicas: 1,
        devices: devices_per_host.min(devices - at * devices_per_host),
        hosts: 1,
        label: format!("host {}", at + 1),
        program: WorkerProgram::Remote,
        device_names: vec![],
        leader: Settings::default(),
        follower: None,
    };
    workers.extend((1..hosts).map(lender));
    None
}

/// Adds what the hosts of a replica need to find each other. Attention data-parallel ranks that fit in a host are
/// processes of their own where the runtime starts them so; other ranks are one group over all hosts.
fn spread(launch: &Launch, worker: &mut PoolLaunch, pool: &PoolPlan, devices_per_host: u64) {
    use SettingValue::{Count, On};
    let (plan, hosts) = (&pool.plan, worker.hosts);
    if launch.ranks.is_some() {
        worker.leader.set(Setting::Hosts, Count(hosts));
        worker.leader.set(Setting::HostedRanks, Count(worker.devices));
        return;
    }
    let by_rank = launch.settings.iter().any(|option| option.setting == Setting::LocalDp);
    let ranks = by_rank && plan.dp > 1 && plan.devices() / plan.dp <= devices_per_host;
    let mut follower = worker.leader.clone();
    for settings in [&mut worker.leader, &mut follower] {
        if ranks {
            settings.set(Setting::LocalDp, Count(plan.dp.div_ceil(hosts)));
            settings.set(Setting::DpAddress, SettingValue::Variable(Variable::FirstHost));
        } else {
            settings.set(Setting::Hosts, Count(hosts));
            settings.set(Setting::HostRank, SettingValue::Variable(Variable::HostRank));
            settings.set(Setting::FirstHost, SettingValue::Variable(Variable::FirstHost));
        }
    }
    if ranks {
        follower.set(Setting::FirstDpRank, SettingValue::Variable(Variable::FirstDpRank));
    }
    follower.set(Setting::Follower, On(true));
    worker.follower = Some(follower);
}
