//! Prefill and decode workers that a runtime pairs with each other.

use super::decode_options::{DecodeOptionList, DecodeOptions};
use super::prefill_options::{PrefillOption, PrefillOptions};
use super::shape_cache::ShapeCache;
use crate::plan::rules::PairKey;

/// Prefill options, and lists of decode options that the runtime pairs with each of them.
pub type Sides<'a, 'q> = (Vec<&'a PrefillOption<'q>>, Vec<&'a DecodeOptionList>);

/// The largest sets of both sides in one format pair in which every prefill option pairs with every list.
pub fn sides<'a, 'q>(
    cache: &ShapeCache<'q>,
    formats: usize,
    prefill_options: &'a PrefillOptions<'q>,
    decode_options: &'a DecodeOptions,
) -> Vec<Sides<'a, 'q>> {
    let prefill_options: Vec<&PrefillOption> =
        prefill_options.iter().filter(|option| option.prepared.shape.formats == formats).collect();
    let mut lists: Vec<&DecodeOptionList> = decode_options
        .lists()
        .filter(|list| list.options.first().is_some_and(|one| one.formats == formats))
        .collect();
    lists.sort_by(|a, b| f64::from_bits(a.received).total_cmp(&f64::from_bits(b.received)));
    let suits = |option: &PrefillOption, list: &DecodeOptionList| {
        option.suits(cache.problem, cache.shapes, &list.options)
    };
    // The lists of each kind of prefill option; intersections of these are the lists that several kinds share.
    let mut kinds: Vec<PairKey> = prefill_options.iter().map(|option| option.key).collect();
    kinds.sort_unstable();
    kinds.dedup();
    let mut shared: Vec<Vec<usize>> = Vec::new();
    for kind in kinds {
        let Some(option) = prefill_options.iter().find(|option| option.key == kind) else { continue };
        let own: Vec<usize> = (0..lists.len()).filter(|at| suits(option, lists[*at])).collect();
        let both = |other: &Vec<usize>| other.iter().copied().filter(|at| own.contains(at)).collect();
        let more: Vec<Vec<usize>> = shared.iter().map(both).chain([own.clone()]).collect();
        for set in more {
            if !set.is_empty() && !shared.contains(&set) {
                shared.push(set);
            }
        }
    }
    let side = |set: Vec<usize>| {
        let lists: Vec<&DecodeOptionList> = set.into_iter().map(|at| lists[at]).collect();
        let prefill_options =
            prefill_options.iter().copied().filter(|option| lists.iter().all(|list| suits(option, list)));
        (prefill_options.collect(), lists)
    };
    shared.into_iter().map(side).collect()
}
