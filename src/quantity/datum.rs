//! A number from outside, with where it came from.

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::unit::Unit;

/// How far a number may be trusted. Later is weaker; a result is as weak as its weakest leaf.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    schemars::JsonSchema,
    Default,
)]
#[serde(rename_all = "snake_case")]
pub enum Grade {
    /// Part of the question: the model's configuration, the plan, a flag.
    Stated,
    /// Read off the device or program itself.
    Read,
    /// The maker's data sheet, or a list price.
    #[default]
    Datasheet,
    /// Measured by somebody.
    Measured,
    /// The outcome of a fit to measurements.
    Fitted,
    /// Taken from the nearest thing known.
    Assumed,
}

impl fmt::Display for Grade {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Grade::Stated => "stated",
            Grade::Read => "read",
            Grade::Datasheet => "datasheet",
            Grade::Measured => "measured",
            Grade::Fitted => "fitted",
            Grade::Assumed => "assumed",
        })
    }
}

/// Where a number came from.
#[derive(Clone, Debug, PartialEq)]
pub struct Source {
    /// How far to trust it.
    pub grade: Grade,
    /// The text that leads there: an address, a key, a flag, a fit.
    pub text: Cow<'static, str>,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.grade, self.text)
    }
}

/// A number from outside. Without a source there is none.
#[derive(Clone, Debug, PartialEq)]
pub struct Datum {
    /// Its name in formulas, e.g. `hbm_bandwidth`.
    pub symbol: Cow<'static, str>,
    /// In base units.
    pub value: f64,
    /// Its unit.
    pub unit: Unit,
    /// Where it came from.
    pub source: Source,
}

impl Datum {
    /// A number that the user or the plan states.
    pub fn stated(symbol: &'static str, value: f64, unit: Unit, text: impl Into<Cow<'static, str>>) -> Datum {
        Datum {
            symbol: symbol.into(),
            value,
            unit,
            source: Source { grade: Grade::Stated, text: text.into() },
        }
    }

    /// The same number under another name.
    pub fn named(&self, symbol: impl Into<Cow<'static, str>>) -> Datum {
        Datum { symbol: symbol.into(), ..self.clone() }
    }
}

/// Declares a struct of figures, generic over how they are held, with a `map` from one way to another.
#[macro_export]
macro_rules! figures {
    ($(#[$doc:meta])* $Name:ident { $($(#[$fdoc:meta])* $field:ident),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        pub struct $Name<T> { $($(#[$fdoc])* pub $field: T,)* }

        impl<T> $Name<T> {
            /// The same figures, held another way.
            pub fn map<U>(&self, mut read: impl FnMut(&T) -> U) -> $Name<U> {
                $Name { $($field: read(&self.$field),)* }
            }
        }
    };
}
