//! Launch files: the settings of each worker, the commands that carry them, and the way back from a command to a plan.
//!
//! Writes and starts nothing. What an option is called is data (`hardware/launch`); what it is set to follows from the
//! priced deployment.

pub mod command;
pub mod read;
pub mod settings;
