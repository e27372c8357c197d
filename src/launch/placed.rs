//! The processes of a placement: layers in stages on heterogeneous devices of one host or several.

use super::deployment::{Deployed, LaunchedRuntime, NODE, PoolLaunch, WorkerProgram};
use super::layer_split::shares_of_layers;
use super::settings::{LaunchModel, SettingValue, Settings, Variable, with_template};
use crate::serving::terms::Lengths;
use crate::spec::launch::{Launch, LaunchOption};
use crate::spec::role::Role;
use crate::spec::setting::Setting;

/// A stage of a placement.
#[derive(Clone, Debug, PartialEq)]
pub struct PlacedStage {
    /// Name of its device or group of devices.
    pub name: String,
    /// Number of its layers.
    pub layers: u64,
    /// The host of each of its devices, as a number.
    pub hosts: Vec<usize>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Placed {
    /// Its stages, the first layers first.
    pub stages: Vec<PlacedStage>,
    /// Layers whose experts are in host memory.
    pub host_experts: Vec<usize>,
    pub lengths: Lengths,
    /// Context limit of the model.
    pub max_context: Option<u64>,
    pub concurrency: u64,
    /// Tokens of a step.
    pub token_budget: u64,
    /// Share of the device memory in use.
    pub memory_share: f64,
    /// Whether a host in use has further devices.
    pub has_idle: bool,
    /// Id of the weight format.
    pub weights: String,
    /// Id of the KV format.
    pub kv: String,
}

/// A host of a placement with the names of its devices.
type PlacedHost = (usize, Vec<String>);

impl Placed {
    fn devices(&self) -> u64 {
        self.stages.iter().map(|stage| stage.hosts.len() as u64).sum()
    }

    /// Its hosts in the order of the stages, each with its devices.
    fn hosts(&self) -> Vec<PlacedHost> {
        let mut hosts: Vec<PlacedHost> = Vec::new();
        for stage in &self.stages {
            for host in &stage.hosts {
                match hosts.iter_mut().find(|(known, _)| known == host) {
                    Some((_, names)) => names.push(stage.name.clone()),
                    None => hosts.push((*host, vec![stage.name.clone()])),
                }
            }
        }
        hosts
    }

    /// Its devices by name, in the order of the layers.
    fn names(&self) -> Vec<String> {
        self.stages.iter().flat_map(|stage| stage.hosts.iter().map(|_| stage.name.clone())).collect()
    }

    /// Layers of each stage.
    fn layers(&self) -> Vec<u64> {
        self.stages.iter().map(|stage| stage.layers).collect()
    }

    /// The settings of the process that answers requests.
    fn settings(&self, model: &LaunchModel) -> Settings {
        use SettingValue::{Count, Counts, Real, Shares, Word};
        let mut settings = Settings::default();
        settings.formats(&self.weights, &self.kv, model);
        let tp = self.stages.first().map_or(1, |stage| stage.hosts.len() as u64);
        let (layers, pp) = (self.layers(), self.stages.len() as u64);
        settings.degree(Setting::Tp, tp);
        settings.degree(Setting::Pp, pp);
        if pp > 1 {
            settings.set(Setting::Pipeline, SettingValue::On(true));
            settings.set(Setting::StageLayers, Counts(layers.clone()));
            settings.set(Setting::TensorSplit, Shares(shares_of_layers(&layers)));
        } else if tp > 1 {
            settings.set(Setting::TensorSplit, Shares(vec![1.0; tp as usize]));
        }
        if self.devices() > 1 {
            let mode = if tp > 1 { "tensor" } else { "layer" };
            settings.set(Setting::SplitMode, Word(mode.to_owned()));
        }
        settings.set(Setting::MaxSequences, Count(self.concurrency));
        settings.set(Setting::TokenBudget, Count(self.token_budget));
        settings.set(Setting::MemoryShare, Real(self.memory_share));
        let context = with_template(self.lengths).min(self.max_context.unwrap_or(u64::MAX));
        settings.hold(self.lengths, context, self.concurrency);
        settings.set(Setting::GpuLayers, Word("all".to_owned()));
        if !self.host_experts.is_empty() {
            let layers: Vec<String> = self.host_experts.iter().map(usize::to_string).collect();
            settings.set(Setting::HostExpertLayers, Word(layers.join("|")));
        }
        settings
    }

    /// Parts of the placement that `launch` has no option for, with the nearest that it has.
    fn refused(&self, launch: &Launch) -> Vec<String> {
        let has = |setting| launch.settings.iter().any(|option| option.setting == setting);
        let mut refused = Vec::new();
        let groups: Vec<String> = self.stages.iter().map(|stage| stage.hosts.len().to_string()).collect();
        let shared = self.stages.iter().any(|stage| stage.hosts.len() > 1);
        let split = launch.settings.iter().find(|option| option.setting == Setting::SplitMode);
        let one_way = split.is_some() || launch.starter.is_some();
        if shared && one_way && self.stages.len() > 1 {
            let nearest = "its nearest is one split of all devices, by layer or by tensor";
            refused.push(format!("layers shared in some stages ({}): {nearest}", groups.join(", ")));
        } else if groups.iter().any(|devices| *devices != groups[0]) {
            let nearest = "its nearest is one tensor-parallel degree for all stages";
            refused.push(format!("stages of {} devices: {nearest}", groups.join(", ")));
        }
        let hosts = self.hosts();
        let ranked = launch.remote.is_none() && launch.request.is_none();
        if hosts.len() > 1 && shared && launch.remote.is_some() {
            refused.push("tensor parallelism over several hosts: its nearest is a split by layer".to_owned());
        }
        if hosts.len() > 1 && ranked && has(Setting::Hosts) {
            let mut order: Vec<usize> = self.stages.iter().flat_map(|stage| stage.hosts.clone()).collect();
            order.dedup();
            let even = hosts.iter().all(|(_, names)| names.len() == hosts[0].1.len());
            if !even || order.len() != hosts.len() {
                let each: Vec<String> = hosts.iter().map(|(_, names)| names.len().to_string()).collect();
                let nearest = "its nearest is as many successive stages on each host";
                refused.push(format!("{} devices on its hosts: {nearest}", each.join(" and ")));
            }
        }
        refused
    }
}

impl<'a> Deployed<'a> {
    pub fn placed(runtime: LaunchedRuntime<'a>, placed: &Placed, model: &LaunchModel) -> Deployed<'a> {
        let (launch, table) = runtime.own;
        let hosts = placed.hosts();
        let settings = placed.settings(model);
        let mut server = process("server".to_owned(), WorkerProgram::Server, placed.names(), settings);
        let mut devices_per_host = placed.devices();
        let (mut workers, mut remote) = (Vec::new(), None);
        if launch.request.is_some() {
            let first = hosts.first().map_or(1, |(_, names)| names.len() as u64);
            server.name = NODE.to_owned();
            server.replicas = hosts.len() as u64;
            (server.devices, devices_per_host) = (first, first);
            server.label = format!("one of {}", server.label);
        } else if let (Some(lender), true) = (runtime.remote, hosts.len() > 1) {
            let (_, own) = &hosts[0];
            server.label = own.join(" + ");
            server.device_names.clone_from(own);
            (server.devices, devices_per_host) = (own.len() as u64, own.len() as u64);
            server.leader.set(Setting::RemoteDevices, SettingValue::Variable(Variable::RpcServers));
            workers.extend(hosts[1..].iter().enumerate().map(|(at, host)| lending(at, host)));
            remote = Some(lender);
        } else if hosts.len() > 1 && launch.starter.is_some() {
            devices_per_host = 1;
        } else if hosts.len() > 1 {
            devices_per_host = placed.devices().div_ceil(hosts.len() as u64);
            ranks(&mut server, hosts.len() as u64);
        }
        let chosen = placed.devices() > 1 || placed.has_idle;
        if chosen && server.hosts == 1 && launch.devices.is_some() && launch.request.is_none() {
            server.leader.set(Setting::Devices, SettingValue::Variable(Variable::Devices));
        }
        workers.insert(0, server);
        let refused = placed.refused(launch).into_iter().chain(model.refused.clone()).collect();
        Deployed {
            launch,
            table,
            image: None,
            workers,
            devices_per_host,
            vendor: None,
            remote,
            instances: 1,
            refused,
        }
    }
}

/// A process on the devices of these names.
fn process(name: String, program: WorkerProgram, names: Vec<String>, leader: Settings) -> PoolLaunch {
    PoolLaunch {
        name,
        role: Role::Aggregated,
        replicas: 1,
        devices: names.len() as u64,
        hosts: 1,
        label: names.join(" + "),
        program,
        device_names: names,
        leader,
        follower: None,
    }
}

/// The process that lends the devices of the further host `at`.
fn lending(at: usize, (_, names): &PlacedHost) -> PoolLaunch {
    let name = if at == 0 { "rpc".to_owned() } else { format!("rpc-{}", at + 1) };
    process(name, WorkerProgram::Remote, names.clone(), Settings::default())
}

/// Adds what the hosts of a placement need to find each other, as ranks of one group.
fn ranks(server: &mut PoolLaunch, hosts: u64) {
    server.hosts = hosts;
    server.leader.set(Setting::Hosts, SettingValue::Count(hosts));
    server.leader.set(Setting::HostRank, SettingValue::Variable(Variable::HostRank));
    server.leader.set(Setting::FirstHost, SettingValue::Variable(Variable::FirstHost));
    let mut follower = server.leader.clone();
    follower.set(Setting::Follower, SettingValue::On(true));
    server.follower = Some(follower);
}

/// The values that a script needs from its user: devices in the order of the layers, and servers on further hosts.
pub fn orders(launch: &Launch, placed: &Placed) -> [String; 2] {
    let order = |names: &[String]| {
        let how = launch.devices.as_deref().unwrap_or("in this order");
        format!("{how}: {}", names.join(", "))
    };
    let lent = placed.hosts().iter().skip(1).map(|(_, names)| names.join(" + ")).collect::<Vec<_>>();
    let mut whole: Vec<String> = match launch.request {
        Some(_) => placed.hosts().iter().map(|(_, names)| names.join(" + ")).collect(),
        None => placed.names(),
    };
    if launch.starter.as_ref().is_some_and(|starter| starter.last_first) {
        whole.reverse();
    }
    let remote = launch.settings.iter().any(|one: &LaunchOption| one.setting == Setting::RemoteDevices);
    let servers = format!("HOST:PORT of these, with commas: {}", lent.join(", "));
    [order(&whole), if remote { servers } else { String::new() }]
}
