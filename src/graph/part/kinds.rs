//! The kind of each layer, from a list of names such as `layer_types`.
//!
//! Handles the shape of such lists, not the meaning of the kinds.

use crate::quantity::count::Count;
use crate::spec::error::Error;
use crate::spec::model::keys::Keys;

/// The kind of each of `layers` layers by the list under `key`; `names` maps its words to kinds. `None` without a list.
pub fn layer_kinds<T: Copy>(
    keys: &Keys<'_>,
    key: &'static str,
    layers: Count,
    names: &[(&str, T)],
) -> Result<Option<Vec<T>>, Error> {
    let Some(kinds) = keys.texts(key)? else { return Ok(None) };
    complete(key, kinds.len(), layers, COPY)?;
    kinds_of(key, &kinds, names, COPY).map(Some)
}

/// Returns an error unless a list under `key` has an entry for each layer; `fix` is its advice.
pub fn complete(key: &str, length: usize, layers: Count, fix: &str) -> Result<(), Error> {
    if length as u64 == layers.value {
        return Ok(());
    }
    let expected = format!("one entry for each of the {} layers", layers.value);
    Err(Error::new(key, format!("a list of {length}"), expected, fix))
}

/// Looks each of the words `kinds` under `key` up in `names`; `fix` is the advice for a strange one.
pub fn kinds_of<T: Copy>(
    key: &str,
    kinds: &[String],
    names: &[(&str, T)],
    fix: &str,
) -> Result<Vec<T>, Error> {
    let one = |(at, word): (usize, &String)| match names.iter().find(|(name, _)| name == word) {
        Some((_, kind)) => Ok(*kind),
        None => {
            let known: Vec<&str> = names.iter().map(|(name, _)| *name).collect();
            Err(Error::new(format!("{key}[{at}]"), word.as_str(), known.join(" or "), fix))
        }
    };
    kinds.iter().enumerate().map(one).collect()
}

/// A required list of 0 and 1 under `key`, one for each layer.
pub fn layer_switches(keys: &Keys<'_>, key: &'static str, layers: Count) -> Result<Vec<bool>, Error> {
    let numbers = keys.stated(key)?.numbers(key)?.unwrap_or_default();
    if numbers.len() as u64 == layers.value && numbers.iter().all(|number| *number <= 1) {
        return Ok(numbers.into_iter().map(|number| number == 1).collect());
    }
    let expected = format!("0 or 1 for each of the {} layers", layers.value);
    Err(Error::new(key, format!("a list of {}", numbers.len()), expected, COPY))
}

/// The advice for a list that does not fit the model.
pub const COPY: &str = "copy the list from the model's config.json";

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Map, Value};

    #[test]
    fn a_list_names_the_kind_of_each_layer_and_nothing_else() {
        let map: Map<String, Value> = serde_json::from_str(r#"{"layer_types": ["a", "b", "a"]}"#).unwrap();
        let keys = Keys::new(&map);
        let (three, four) = (Count::config("layers", 3), Count::config("layers", 4));
        let names = [("a", 1), ("b", 2)];
        assert_eq!(layer_kinds(&keys, "layer_types", three, &names).unwrap(), Some(vec![1, 2, 1]));
        assert_eq!(layer_kinds(&keys, "absent", three, &names).unwrap(), None);
        assert_eq!(layer_kinds(&keys, "layer_types", four, &names).unwrap_err().key, "layer_types");
        let error = layer_kinds(&keys, "layer_types", three, &[("a", 1)]).unwrap_err();
        assert_eq!(error.key, "layer_types[1]");
    }
}
