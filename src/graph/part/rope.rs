//! Rotary position encoding: the base of its angles and the rotated part of a head, from the keys of the file.
//!
//! Neither changes a parameter or a cache; scaling for long contexts (`rope_scaling`) changes the angles alone.

use petgraph::graph::NodeIndex;
use serde_json::{Map, Value};

use crate::graph::assembly::Assembly;
use crate::graph::operator::{Operator, Split};
use crate::quantity::count::Count;
use crate::spec::error::Error;
use crate::spec::model::keys::Keys;

/// The rotation of a layer's queries and keys.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rope {
    /// Rotated elements of a head.
    pub rotary: Count,
    /// Base of the angles.
    pub theta: Count,
}

/// Defaults of a model class, and the keys of its files.
#[derive(Clone, Copy, Debug)]
pub struct RopeClass {
    /// Base of the angles.
    pub theta: u64,
    /// Rotated share of a head, as a fraction.
    pub share: [u64; 2],
    /// Keys of the base.
    pub names: &'static [&'static str],
    /// The entry of `rope_parameters` for layers of this kind, where it has one per kind.
    pub kind: &'static str,
}

impl RopeClass {
    /// The whole head with base 10000: Llama and most others (Su et al. 2021, 3.3).
    pub const WHOLE: RopeClass = RopeClass {
        theta: 10_000,
        share: [1, 1],
        names: &["rope_theta", "rotary_emb_base", "rope_freq_constant"],
        kind: "full_attention",
    };
    /// The whole head, in sliding layers of classes with an entry per kind of layer.
    pub const SLIDING: RopeClass = RopeClass { kind: "sliding_attention", ..RopeClass::WHOLE };
    /// A quarter of the head: GPT-NeoX, StableLM, Qwen3-Next.
    pub const QUARTER: RopeClass = RopeClass { share: [1, 4], ..RopeClass::WHOLE };
    /// Half of the head: Phi, GLM, Nemotron, Persimmon, RecurrentGemma, Bamba.
    pub const HALF: RopeClass = RopeClass { share: [1, 2], ..RopeClass::WHOLE };
}

/// Keys of the rotated share of a head.
const SHARES: [&str; 3] = ["partial_rotary_factor", "rotary_pct", "rope_pct"];

impl Rope {
    /// The keys of the file, or of its `rope_parameters`; those of the class where neither says anything.
    pub fn read(keys: &Keys<'_>, head_dim: Count, class: RopeClass) -> Result<Rope, Error> {
        let inside = keys.value("rope_parameters").and_then(Value::as_object);
        let inside = inside.map(|map| Keys::new(of_kind(map, class.kind)));
        let stated = |names: &[&'static str]| {
            let has =
                |place: &&Keys<'_>| names.iter().any(|name| place.value(name).is_some_and(|v| !v.is_null()));
            inside.iter().find(has).is_some()
        };
        let place = |names: &[&'static str]| match &inside {
            Some(inside) if stated(names) => inside,
            _ => keys,
        };
        let theta = place(class.names).base_of_angles(class.names, class.theta)?;
        Ok(Rope { rotary: rotary(place(&SHARES), head_dim, class.share)?, theta })
    }

    /// A rotation of all of `rotary`, with the base of the keys.
    pub fn of(keys: &Keys<'_>, rotary: Count, class: RopeClass) -> Result<Rope, Error> {
        Ok(Rope { rotary, ..Rope::read(keys, rotary, class)? })
    }

    /// Adds the rotation of `heads` heads of `head_dim` elements.
    pub fn assemble(
        &self,
        block: &mut Assembly,
        name: &'static str,
        from: NodeIndex,
        (heads, head_dim, split): (Count, Count, Split),
    ) -> NodeIndex {
        let Rope { rotary, theta } = *self;
        block.node(name, Operator::Rope { heads, rotary, head_dim, theta, split }, vec![], &[from])
    }
}

/// The parameters of layers of this kind, where there is an entry for each kind.
fn of_kind<'c>(map: &'c Map<String, Value>, kind: &str) -> &'c Map<String, Value> {
    map.get(kind).and_then(Value::as_object).unwrap_or(map)
}

/// Rotated elements of a head: their number, or the share of the head, rounded down as the classes do.
fn rotary(keys: &Keys<'_>, head_dim: Count, share: [u64; 2]) -> Result<Count, Error> {
    if let Some(stated) = keys.count_or_none("rotary_dim")? {
        return Ok(Count { value: stated.value.min(head_dim.value), ..stated });
    }
    let stated = SHARES.into_iter().find(|name| keys.value(name).is_some_and(|value| !value.is_null()));
    let [part, of] = match stated {
        Some(name) => keys.decimal(name)?,
        None => share,
    };
    if part == of {
        return Ok(head_dim);
    }
    let value = (head_dim.value * part / of).clamp(1, head_dim.value);
    let how =
        stated.map_or("head_dim × the class's share", |_| "head_dim × partial_rotary_factor, rounded down");
    Ok(Count::derived("rotary_dim", value, how))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, class: RopeClass) -> (u64, u64) {
        let map: Map<String, Value> = serde_json::from_str(text).unwrap();
        let rope = Rope::read(&Keys::new(&map), Count::config("head_dim", 192), class).unwrap();
        (rope.rotary.value, rope.theta.value)
    }

    #[test]
    fn base_and_share_are_those_of_the_file_or_of_the_class() {
        let whole = |text| read(text, RopeClass::WHOLE);
        assert_eq!(whole("{}"), (192, 10_000));
        assert_eq!(read("{}", RopeClass::HALF), (96, 10_000));
        assert_eq!(whole(r#"{"rope_theta": 1000000.0, "partial_rotary_factor": 0.334}"#), (64, 1_000_000));
        assert_eq!(whole(r#"{"rotary_dim": 64, "rotary_emb_base": 500000}"#), (64, 500_000));
        assert_eq!(
            whole(r#"{"rope_parameters": {"rope_theta": 8000000, "rope_type": "default"}}"#).1,
            8_000_000
        );
        let kinds = r#"{"rope_parameters": {
            "full_attention": {"partial_rotary_factor": 0.25, "rope_theta": 1000000.0},
            "sliding_attention": {"rope_theta": 10000.0}}}"#;
        assert_eq!(whole(kinds), (48, 1_000_000));
        assert_eq!(read(kinds, RopeClass { kind: "sliding_attention", ..RopeClass::WHOLE }), (192, 10_000));
    }

    #[test]
    fn a_base_that_is_no_number_is_refused_by_name() {
        let map: Map<String, Value> = serde_json::from_str(r#"{"rope_theta": "big"}"#).unwrap();
        let error = Rope::read(&Keys::new(&map), Count::config("head_dim", 8), RopeClass::WHOLE).unwrap_err();
        assert_eq!(error.key, "rope_theta");
    }
}
