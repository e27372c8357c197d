//! Reasons of a runtime against a start that are neither words of its options, nor degrees, nor memory.

use super::start_memory::StartInputs;
use crate::spec::setting::Setting;
use crate::spec::start::{DtypeRule, ValueCacheRule};

/// The runtime's reasons against a launch; `native` is the dtype of the checkpoint, where it is known.
pub fn start_faults(of: &StartInputs, native: Option<&str>) -> Vec<String> {
    let rules = &of.launch.known.0.start;
    let native = native.map(|dtype| dtype.trim_start_matches("torch."));
    let dtype = rules.dtypes.iter().find(|rule| is_refused(of, rule, native));
    let dtype = dtype.map(|rule| format!("{}: {}", rule.words, rule.source));
    let values = rules.value_cache.as_ref().and_then(|rule| value_fault(of, rule));
    dtype.into_iter().chain(values).collect()
}

fn is_refused(of: &StartInputs, rule: &DtypeRule, native: Option<&str>) -> bool {
    let stated = of.launch.processes[0].read.settings.word(Setting::Dtype).filter(|word| *word != "auto");
    let dtype = stated.or(native.filter(|_| !rule.stated));
    rule.versions.as_ref().is_none_or(|range| range.holds(of.version))
        && rule.families.contains(&of.device.family)
        && dtype.is_some_and(|dtype| rule.dtypes.iter().any(|one| one == dtype))
}

fn value_fault(of: &StartInputs, rule: &ValueCacheRule) -> Option<String> {
    let words = of.words();
    // The last of several is the one that counts.
    let after = |options: &[String]| {
        let at = words.iter().rposition(|word| options.contains(word))?;
        Some(words.get(at + 1).map_or("", String::as_str))
    };
    let values = after(&rule.values).filter(|format| rule.quantised.iter().any(|one| one == format))?;
    let keys = after(&rule.keys).unwrap_or_default();
    let attention = after(&rule.attention).unwrap_or("auto");
    let has_kernel = keys == values && rule.with_same_keys.iter().any(|one| one == values);
    let here = rule.vendors.iter().any(|vendor| vendor == of.device.vendor.name());
    let is_without = match attention {
        word if rule.off.iter().any(|off| off == word) => true,
        "auto" => here && !has_kernel,
        _ => false,
    };
    is_without.then(|| format!("values of the cache in {values} without flash attention: {}", rule.source))
}
