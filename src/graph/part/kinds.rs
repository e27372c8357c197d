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
    if kinds.len() as u64 != layers.value {
        let expected = format!("one entry for each of the {} layers", layers.value);
        return Err(Error::new(key, format!("a list of {}", kinds.len()), expected, COPY));
    }
    kinds_of(key, &kinds, names).map(Some)
}

/// Looks a word up in `kinds`.
pub fn kinds_of<T: Copy>(key: &str, kinds: &[String], names: &[(&str, T)]) -> Result<Vec<T>, Error> {
    let one = |(at, word): (usize, &String)| match names.iter().find(|(name, _)| name == word) {
        Some((_, kind)) => Ok(*kind),
        None => {
            let known: Vec<&str> = names.iter().map(|(name, _)| *name).collect();
            Err(Error::new(format!("{key}[{at}]"), word.as_str(), known.join(" or "), COPY))
        }
    };
    kinds.iter().enumerate().map(one).collect()
}

const COPY: &str = "copy the list from the model's config.json";

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
