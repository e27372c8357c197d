//! Placement over unlike devices: the programmes against brute force, and what must not change.

#[path = "placement/brute.rs"]
mod brute;
#[path = "placement/chains.rs"]
mod chains;
#[path = "placement/change.rs"]
mod change;
#[path = "placement/copies.rs"]
mod copies;
#[path = "placement/hosts.rs"]
mod hosts;
#[path = "placement/priced.rs"]
mod priced;
#[path = "placement/reasons.rs"]
mod reasons;
#[path = "placement/refused.rs"]
mod refused;
#[path = "placement/rigs.rs"]
mod rigs;
#[path = "placement/speed.rs"]
mod speed;
#[path = "placement/stopped.rs"]
mod stopped;
#[path = "placement/wide.rs"]
mod wide;
