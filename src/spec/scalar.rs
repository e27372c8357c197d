//! The types of single values: in columns of tables, and of keys that a sweep varies.

/// The type of a single value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScalarKind {
    Text,
    /// A whole number.
    Whole,
    Number,
}
