//! From what is known to text, JSON and tables. Knows nothing of files and terminals: it returns text.

pub mod answer;
pub mod bounds;
pub mod breakdown;
pub mod catalog;
pub mod constraint;
pub mod detail;
pub mod diff;
pub mod explain;
pub mod fleet;
pub mod graph;
pub mod help;
pub mod inspect;
pub mod number;
pub mod place;
pub mod plot;
pub mod recommend;
pub mod residuals;
pub mod result;
pub mod rows;
pub mod scatter;
pub mod schema;
pub mod shortage;
pub mod table;
pub mod text;
pub mod validation;
