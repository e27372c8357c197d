//! Sliding windows: the layers of a model with sliding-window attention.
//!
//! Parses the configuration keys. The cost of a window is computed elsewhere.

use super::kinds::complete;
use crate::quantity::count::Count;
use crate::spec::error::Error;
use crate::spec::model::keys::Keys;

/// The window of each layer for models with one window in all layers or none: Mistral, Mixtral, Phi-3.
///
/// `default` is the class's default for a missing key; `null` means no window.
pub fn uniform_window(keys: &Keys<'_>, default: Option<u64>) -> Result<Option<Count>, Error> {
    match default {
        Some(default) if !keys.has("sliding_window") => {
            Ok(Some(Count::class_default("sliding_window", default)))
        }
        _ => keys.count_or_none("sliding_window"),
    }
}

const FIX: &str = "copy layer_types and its neighbours from the model's config.json";

/// The window of each of `layers` by `layer_types`. Without the key, `sliding` selects the layers.
pub fn interleaved_windows(
    keys: &Keys<'_>,
    layers: Count,
    window: Option<Count>,
    sliding: impl Fn(u64) -> bool,
) -> Result<Vec<Option<Count>>, Error> {
    let Some(types) = keys.texts("layer_types")? else {
        return Ok((0..layers.value).map(|layer| window.filter(|_| sliding(layer))).collect());
    };
    let refuse = |key: &str, found: &str, expected: &str| Error::new(key, found, expected, FIX);
    complete("layer_types", types.len(), layers, FIX)?;
    let one = |(at, kind): (usize, &String)| match (kind.as_str(), window) {
        ("full_attention", _) => Ok(None),
        ("sliding_attention", Some(window)) => Ok(Some(window)),
        ("sliding_attention", None) => {
            Err(refuse("sliding_window", "no window", "a window for the sliding layers"))
        }
        (other, _) => {
            Err(refuse(&format!("layer_types[{at}]"), other, "full_attention or sliding_attention"))
        }
    };
    types.iter().enumerate().map(one).collect()
}

/// The windows of models with one full layer after every `pattern - 1` sliding ones, unless `layer_types` is given.
///
/// `window` and `pattern` are the class's defaults of `sliding_window` and `sliding_window_pattern`.
pub fn patterned_windows(
    keys: &Keys<'_>,
    layers: Count,
    window: u64,
    pattern: u64,
) -> Result<Vec<Option<Count>>, Error> {
    let pattern = match keys.count_or_none("sliding_window_pattern")? {
        Some(stated) => stated.value,
        None => pattern,
    };
    let window = uniform_window(keys, Some(window))?;
    interleaved_windows(keys, layers, window, |layer| !(layer + 1).is_multiple_of(pattern))
}

/// The windows of Qwen models: off unless `use_sliding_window` is set, then from layer `max_window_layers` on.
pub fn qwen_windows(keys: &Keys<'_>, layers: Count) -> Result<Vec<Option<Count>>, Error> {
    keys.set_aside(&["sliding_window", "max_window_layers", "layer_types"]);
    let on = keys.flag("use_sliding_window", false)?;
    let window = if on { keys.count_or_none("sliding_window")? } else { None };
    if window.is_none() {
        return without_windows(keys, layers);
    }
    let first = keys.count("max_window_layers")?;
    interleaved_windows(keys, layers, window, |layer| layer >= first.value)
}

/// No windows. `layer_types` must not contradict this.
pub fn without_windows(keys: &Keys<'_>, layers: Count) -> Result<Vec<Option<Count>>, Error> {
    let slides = keys.texts("layer_types")?.into_iter().flatten().any(|kind| kind == "sliding_attention");
    if slides {
        return Err(Error::new(
            "layer_types",
            "sliding_attention, without a window: use_sliding_window is false, or sliding_window null",
            "full_attention in every layer",
            "switch use_sliding_window on and set sliding_window, or list every layer as full_attention",
        ));
    }
    interleaved_windows(keys, layers, None, |_| false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Map, Value};

    fn map(text: &str) -> Map<String, Value> {
        serde_json::from_str(text).unwrap()
    }

    fn sizes(windows: Vec<Option<Count>>) -> Vec<u64> {
        windows.into_iter().map(|window| window.map_or(0, |window| window.value)).collect()
    }

    const FOUR: Count = Count::config("num_hidden_layers", 4);

    #[test]
    fn qwen_windows_are_off_unless_switched_on_and_begin_at_max_window_layers() {
        let off = map(r#"{"sliding_window": 9, "max_window_layers": 2, "use_sliding_window": false}"#);
        assert_eq!(sizes(qwen_windows(&Keys::new(&off), FOUR).unwrap()), [0, 0, 0, 0]);
        let on = map(r#"{"sliding_window": 9, "max_window_layers": 3, "use_sliding_window": true}"#);
        assert_eq!(sizes(qwen_windows(&Keys::new(&on), FOUR).unwrap()), [0, 0, 0, 9]);
    }

    #[test]
    fn null_means_no_window_and_absence_the_default_of_the_class() {
        let (null, absent) = (map(r#"{"sliding_window": null}"#), map("{}"));
        assert_eq!(uniform_window(&Keys::new(&null), Some(4096)).unwrap(), None);
        assert_eq!(uniform_window(&Keys::new(&absent), Some(4096)).unwrap().map(|w| w.value), Some(4096));
        assert_eq!(uniform_window(&Keys::new(&absent), None).unwrap(), None);
    }

    #[test]
    fn layer_types_rule_where_they_are_stated() {
        let keys = map(r#"{"layer_types":
            ["full_attention", "sliding_attention", "sliding_attention", "full_attention"]}"#);
        let window = Some(Count::config("sliding_window", 7));
        let windows = interleaved_windows(&Keys::new(&keys), FOUR, window, |_| true).unwrap();
        assert_eq!(sizes(windows), [0, 7, 7, 0]);
        assert!(interleaved_windows(&Keys::new(&keys), FOUR, None, |_| true).is_err());
        let five = Count::config("num_hidden_layers", 5);
        assert!(interleaved_windows(&Keys::new(&keys), five, window, |_| true).is_err());
    }
}
