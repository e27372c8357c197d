//! Laws of the answers over random questions. Each runs a few dozen cases by default; `PROPTEST_CASES` sets the number
//! of cases of all, which the nightly lane does.

mod answers;
mod commands;
mod evidence;
mod flags;
mod intervals;
mod names;
mod optimality;
mod physics;
mod placement;
mod purchase;
mod reasons;
mod scale_blocks;
mod servers;
mod shared_prefixes;
mod start_up;
mod text;
