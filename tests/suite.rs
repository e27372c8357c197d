//! Every integration test, in one binary: the library is linked once.

#![allow(clippy::unwrap_used, clippy::print_stderr, clippy::print_stdout)]
// Closed forms of tests are to agree, not to be equal to the last digit.
#![allow(clippy::disallowed_methods)]

#[path = "support/ask.rs"]
mod ask;
#[path = "support/cases.rs"]
mod cases;
#[path = "support/hostile.rs"]
mod doors;
#[path = "support/draw.rs"]
mod draw;
#[path = "support/source.rs"]
mod source;
#[path = "support/spoil.rs"]
mod spoil;

mod answers;
mod bench;
mod bundles;
mod calibrate;
mod capacity;
mod cli;
mod defaults;
mod detect;
mod duel;
mod estimate;
mod examples;
mod files;
mod finite;
mod fleet;
mod floor;
mod gguf;
mod hardware;
mod home;
mod hostile;
mod http;
mod images;
mod imports;
mod interactive;
mod launch;
mod laws;
mod limits;
mod machine;
mod metrics;
mod mock;
mod models;
mod names;
mod nearest;
mod objectives;
mod open_loop;
mod operation;
mod operators;
mod oracle;
mod overrides;
mod page;
mod permalinks;
mod pictures;
mod placement;
mod prices;
mod program;
mod properties;
mod published;
mod rates;
mod ratio;
mod readings;
mod records;
mod remedies;
mod replayed;
mod report;
mod requests;
mod rules;
mod runs;
mod sampled_replicas;
mod saved;
mod schedulers;
mod sessions;
mod simulated_figures;
mod simulated_sweep;
mod sizing;
mod starts;
mod static_batch;
mod store;
mod sweep;
mod tables;
mod tidy;
mod tiers;
mod traffic;
mod vary;
mod verify;
mod why;
mod workbook;
