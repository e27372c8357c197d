//! Placement over unlike devices: the programmes against brute force, and what must not change.

#![allow(clippy::unwrap_used)]

#[path = "placement/brute.rs"]
mod brute;
#[path = "placement/chains.rs"]
mod chains;
