//! The hosts and devices of every replica of a deployment.

use serde::Serialize;

use super::deployment::{Deployed, PoolLaunch, WorkerProgram};

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ReplicaSlot {
    pub worker: String,
    /// Its number in the pool, from 0.
    pub replica: u64,
    pub hosts: Vec<u64>,
    pub first_device: u64,
    pub devices: u64,
    /// The port on which it listens, on its first host.
    pub port: u64,
    pub transfer_port: u64,
}

impl ReplicaSlot {
    /// Its devices on each host, as numbers with commas.
    pub fn device_ids(&self) -> Vec<String> {
        (self.first_device..self.first_device + self.devices).map(|device| device.to_string()).collect()
    }
}

/// Ports between the pools of a deployment.
const POOL_PORTS: u64 = 100;
/// Ports between the transfers of two replicas: more than a replica has data-parallel ranks on a host.
pub const TRANSFER_PORTS: u64 = 64;

/// The first port of a pool: the runtime's own, or one after the router's.
pub fn first_port(deployed: &Deployed, pool: usize) -> u64 {
    let own = u64::from(deployed.launch.port);
    if deployed.launch.request.is_some() {
        return own;
    }
    if let (Some((remote, _)), WorkerProgram::Remote) = (deployed.remote, deployed.workers[pool].program) {
        return u64::from(remote.port);
    }
    let servers = deployed.workers.iter().filter(|worker| worker.program == WorkerProgram::Server);
    let routed = servers.map(|worker| worker.replicas).sum::<u64>() > 1;
    if routed { own + POOL_PORTS * (pool as u64 + 1) } else { own }
}

pub fn first_transfer_port(deployed: &Deployed, pool: usize) -> u64 {
    let before = deployed.workers[..pool].iter().map(|worker| ports(deployed, worker)).sum::<u64>();
    u64::from(deployed.launch.transfer_port.unwrap_or_default()) + before * TRANSFER_PORTS
}

/// Number of ports that the replicas of a pool take. Those of a host follow each other, so that they differ in the
/// remainder of their numbers.
pub fn ports(deployed: &Deployed, worker: &PoolLaunch) -> u64 {
    let on_a_host = match (worker.program, worker.hosts) {
        // Nodes that find each other: one on every host.
        _ if deployed.launch.request.is_some() => 1,
        (WorkerProgram::Remote, _) => worker.replicas,
        (WorkerProgram::Server, 1) => deployed.devices_per_host / worker.devices.max(1),
        (WorkerProgram::Server, _) => 1,
    };
    on_a_host.clamp(1, worker.replicas.max(1))
}

/// Maximum number of replicas that are listed one by one. The command of a router, which names each of them in some 100
/// bytes, is one argument of a shell in a container: at most 128 KiB, see execve(2).
pub const MOST_LISTED: u64 = 512;

pub fn lists_replicas(deployed: &Deployed) -> bool {
    deployed.workers.iter().map(|worker| worker.replicas).sum::<u64>() <= MOST_LISTED
}

/// The replicas that files list, and the number of hosts of all: whole hosts for replicas that need several, the next
/// free devices for the others. Of pools with too many replicas the first ones.
pub fn slots(deployed: &Deployed) -> (Vec<ReplicaSlot>, u64) {
    let each = deployed.devices_per_host;
    let lists_all = lists_replicas(deployed);
    let mut slots = Vec::new();
    let (mut host, mut used) = (0, 0);
    for (pool, worker) in deployed.workers.iter().enumerate() {
        let ports = ports(deployed, worker);
        for replica in 0..worker.replicas {
            let own_host = worker.hosts > 1 || worker.program == WorkerProgram::Remote;
            if used > 0 && (own_host || used + worker.devices > each) {
                (host, used) = (host + 1, 0);
            }
            if lists_all || replica == 0 {
                let number = replica % ports;
                slots.push(ReplicaSlot {
                    worker: worker.name.clone(),
                    replica,
                    hosts: (host..host + worker.hosts).collect(),
                    first_device: used,
                    devices: worker.devices.div_ceil(worker.hosts),
                    port: first_port(deployed, pool) + number,
                    transfer_port: first_transfer_port(deployed, pool) + number * TRANSFER_PORTS,
                });
            }
            if worker.hosts > 1 {
                host += worker.hosts;
            } else {
                used += worker.devices;
            }
        }
    }
    (slots, host + u64::from(used > 0))
}
