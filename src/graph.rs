//! The model as a graph of operators, in integers, independent of devices, plans and prices.

pub mod arch;
pub mod assembly;
pub mod cache;
pub mod checkpoint;
pub mod count;
pub mod dimensions;
pub mod draft;
pub mod image_inputs;
pub mod image_processor;
pub mod inspect;
pub mod mask;
pub mod model;
pub mod operator;
pub mod part;
pub mod rule;
pub mod tensor;
pub mod tower;
