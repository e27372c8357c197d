//! From what is known to text, JSON and tables. Knows nothing of files and terminals: it returns text.

pub mod answer;
pub mod breakdown;
pub mod catalog;
pub mod explain;
pub mod help;
pub mod inspect;
pub mod result;
pub mod rows;
pub mod schema;
pub mod table;
pub mod text;
