//! The types of single values: in columns of tables, and of keys that a sweep varies.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScalarKind {
    Text,
    Whole,
    Number,
}
