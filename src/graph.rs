//! The model as a graph of operators, in integers. Knows nothing of devices, plans or prices.

pub mod model;
pub mod operator;
pub mod tensor;
