//! Prefill workers worth pairing with decode workers: the nondominated ones, and the sets of both that a runtime pairs
//! with each other.

use std::collections::BTreeMap;

use super::decode_options::{DecodeOption, DecodeOptionList, DecodeOptions};
use super::front_tree::{FrontNode, FrontRival, Ranks};
use super::point::WIDTH;
use super::problem::{Problem, Traffic};
use super::required_metrics::RequiredMetrics;
use super::shape::PreparedShape;
use super::shapes::Shapes;
use crate::plan::parallel::Phase;
use crate::plan::rules::PairKey;
use crate::quantity::num::Qty;
use crate::quantity::read::Plain;
use crate::serving::disaggregated::{link_rate, prefill_power, prefill_rate};
use crate::serving::residency::cache_per_sequence;

pub struct PrefillOption<'q> {
    /// Index of the instance configuration.
    pub index: usize,
    pub prepared: PreparedShape<'q>,
    /// Key of the decode workers that it pairs with.
    pub key: PairKey,
    /// Prompts per second per worker: the minimum of compute capacity and KV transfer capacity.
    pub rate: f64,
    /// Prompts per second at the planned utilisation.
    pub planned: f64,
    /// Prompts per second whose KV cache the links can send.
    pub links: f64,
    /// Power of an idle worker in W; 0 where unknown.
    pub idle: f64,
    /// Lower bound of the energy per prompt in addition to idle energy, in J; 0 where unknown.
    pub energy: f64,
    figures: Ranks,
}

impl PrefillOption<'_> {
    fn class(&self) -> PrefillClass {
        (self.prepared.shape.formats, self.key)
    }

    /// Whether `decode_options` use the same formats, and the runtime pairs them with this worker.
    pub fn suits(&self, problem: &Problem, shapes: &Shapes, decode_options: &[DecodeOption]) -> bool {
        let own = &self.prepared.shape;
        decode_options.first().is_some_and(|decode| {
            decode.formats == own.formats && problem.runtime.pairs(&own.plan, &shapes[decode.shape].plan)
        })
    }
}

/// Utilisation so low that no component of a device is at its limit.
const LITTLE: f64 = 1.0 / 1024.0;

/// Number of figures in which prefill workers are compared.
const FIGURES: usize = 9;

/// Key of the workers that are compared: their formats, and the decode workers that they pair with.
type PrefillClass = (usize, PairKey);

/// The prefill workers worth considering: nondominated among those of the same class.
#[derive(Default)]
pub struct PrefillOptions<'q> {
    /// By index of the configuration.
    options: BTreeMap<usize, PrefillOption<'q>>,
    /// The figures of these.
    fronts: BTreeMap<PrefillClass, FrontNode>,
}

impl<'q> PrefillOptions<'q> {
    pub fn iter(&self) -> impl Iterator<Item = &PrefillOption<'q>> {
        self.options.values()
    }

    /// Whether one of these is at least as good. Of equals the plainest is better, which has the lowest index.
    fn outdo(&self, option: &PrefillOption) -> bool {
        let rival = self.fronts.get(&option.class()).and_then(|known| known.rival(&option.figures, FIGURES));
        rival.is_some_and(|rival| match rival {
            FrontRival::Better(_) => true,
            FrontRival::Equal(index) => index < option.index,
        })
    }

    fn offer(&mut self, option: PrefillOption<'q>) {
        if self.outdo(&option) {
            return;
        }
        let known = self.fronts.entry(option.class()).or_insert(FrontNode::EMPTY);
        known.drop_dominated(&option.figures, FIGURES, &mut |index| {
            self.options.remove(&index);
        });
        known.add((option.figures, option.index), FIGURES);
        self.options.insert(option.index, option);
    }

    pub fn merge(&mut self, other: PrefillOptions<'q>) {
        other.options.into_values().for_each(|option| self.offer(option));
    }

    /// Examines one instance configuration. What one of `known` replaces is left out.
    pub fn explore(&mut self, prepared: PreparedShape<'q>, index: usize, known: Option<&PrefillOptions<'q>>) {
        let problem = prepared.problem;
        if problem.capacity().most(prepared.shape.plan.devices()) > 0 && prepared.shape.prefills(problem) {
            let option = prefill_option(prepared, index);
            if !known.is_some_and(|known| known.outdo(&option)) {
                self.offer(option);
            }
        }
    }
}

/// Prefill workers that sustain `given` requests per second, where each sustains `rate`.
pub fn workers_for(given: f64, rate: f64) -> u64 {
    (given / rate).ceil().max(1.0) as u64
}

fn prefill_option(prepared: PreparedShape<'_>, index: usize) -> PrefillOption<'_> {
    let (problem, shape, prompt) = (prepared.problem, &prepared.shape, &prepared.prompt);
    let machine = problem.formats[shape.formats].plain();
    let planned = prefill_rate(&Plain, &prepared.instance, machine, prompt).value();
    let sent = cache_per_sequence(&Plain, &prepared.instance, Phase::Prefill, problem.terms().isl, machine);
    let links = link_rate(&Plain, &prepared.instance, (machine, machine.outermost()), sent).value();
    let rate = planned.min(links);
    let drawn = |utilised: f64| {
        let devices = Qty::from(shape.plan.devices() as f64);
        let draw = problem.terms().power_draw.as_ref();
        draw.map_or(0.0, |draw| {
            prefill_power(&Plain, (&prepared.instance, machine, prompt), Qty::from(utilised), devices, draw)
                .value()
        })
    };
    // Power is concave in utilisation: above the chord from idle to busy, below the tangent at zero.
    let (idle, busy) = (drawn(0.0), drawn(1.0));
    let energy = (busy - idle) / planned;
    let slope = (drawn(LITTLE) - idle) / (planned * LITTLE);
    let required = RequiredMetrics::of(problem);
    // Of a given rate only the number of workers counts; their utilisation changes energy and power.
    let taken = match problem.traffic {
        Traffic::Rate(given) if !required.energy && !required.power => workers_for(given, rate) as f64,
        _ => 1.0 / rate,
    };
    let compared: [f64; FIGURES] = [
        shape.plan.devices() as f64,
        prompt.total.value(),
        prompt.slowest.value(),
        taken,
        sent.value(),
        idle,
        if required.energy { slope } else { 0.0 },
        // More prompts per second draw more power.
        if required.power { rate } else { 0.0 },
        prepared.prompt_context.filter(|_| required.context).map_or(0.0, |tokens| -tokens.value()),
    ];
    let mut figures = [0.0; WIDTH];
    figures[..FIGURES].copy_from_slice(&compared);
    let key = problem.runtime.pair_key(&shape.plan);
    PrefillOption { index, key, rate, planned, links, idle, energy, figures, prepared }
}

/// Prefill options, and lists of decode options that the runtime pairs with each of them.
pub type Sides<'a, 'q> = (Vec<&'a PrefillOption<'q>>, Vec<&'a DecodeOptionList>);

/// The largest sets of both sides in one format pair in which every prefill option pairs with every list.
pub fn sides<'a, 'q>(
    (problem, shapes): (&Problem, &Shapes),
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
    let suits =
        |option: &PrefillOption, list: &DecodeOptionList| option.suits(problem, shapes, &list.options);
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
