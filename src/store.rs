//! Files, folders and the network: sources of catalogues, models and problems. Contains no formula.

mod agent_trace;
pub mod build_problem;
pub mod catalog;
pub mod check;
pub mod closed_output;
pub mod detect;
mod device_lookup;
mod device_name;
#[cfg(feature = "cli")]
mod download;
pub mod families;
pub mod fetch;
pub mod file;
pub mod folder;
mod foreign_hardware;
pub mod gguf;
pub mod gguf_config;
pub mod hardware;
pub mod host;
pub mod hub;
mod hub_gguf;
mod instances;
pub mod interrupt;
pub mod inventory;
pub mod kind;
pub mod launches;
mod lookup;
pub mod model;
mod model_lookup;
mod model_name;
mod network;
mod objective_choice;
mod overrides;
#[cfg(feature = "parquet")]
pub mod parquet;
mod parsed;
mod peer_to_peer;
#[cfg(feature = "png")]
pub mod png;
pub mod prediction_intervals;
pub mod processor;
#[cfg(feature = "cli")]
mod ranged_file;
pub mod resolved_scenario;
pub mod rig;
#[cfg(feature = "runs")]
pub mod runs;
mod runtime_choice;
pub mod runtime_id;
pub mod session_trace;
pub mod shipped;
mod speculation;
pub mod streamed_file;
pub mod traffic_trace;
pub mod unknown_keys;
pub mod used_files;
pub mod versions;
