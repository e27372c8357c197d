//! The model as a graph of operators, in integers. Knows nothing of devices, plans or prices.

pub mod arch;
pub mod assembly;
pub mod cache;
pub mod checkpoint;
pub mod count;
pub mod draft;
pub mod inspect;
pub mod model;
pub mod operator;
pub mod part;
pub mod reach;
pub mod rule;
pub mod seen;
pub mod sight;
pub mod tensor;
pub mod tower;
