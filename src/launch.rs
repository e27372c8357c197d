//! Launch files: the settings of each worker, the commands that carry them, and the way back from a command to a plan.
//!
//! Writes and starts nothing. What an option is called is data (`hardware/launches`); what it is set to follows from the
//! priced deployment.

pub mod back;
pub mod command;
pub mod context;
pub mod deployment;
pub mod edit;
pub mod engine;
pub mod failure;
pub mod files;
mod images;
pub mod layer_split;
pub mod manifest;
mod module_options;
pub mod placed;
mod program_check;
pub mod published_flags;
pub mod read;
pub mod router;
pub mod scope;
pub mod settings;
pub mod settings_file;
pub mod shell;
pub mod slots;
