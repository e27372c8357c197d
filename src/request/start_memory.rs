//! Memory that a server sets aside when it starts, beyond weights and cache: adapters, graphs, images in its profile.

use super::start_attention::PartialResults;
use super::start_pages::{CachePages, PageSettings};
use crate::graph::cache::Cache;
use crate::graph::model::{Block, ModelGraph, OperatorNode};
use crate::graph::operator::Operator;
use crate::graph::tensor::{TensorRole, Weight};
use crate::graph::tower::{Positions, TowerPart};
use crate::launch::back::ReadLaunch;
use crate::plan::adapters::adapter_width;
use crate::report::result::MemoryReport;
use crate::spec::degree::Degrees;
use crate::spec::device::Device;
use crate::spec::error::Error;
use crate::spec::format::NumberFormat;
use crate::spec::precision::ANY;
use crate::spec::rule::VersionRange;
use crate::spec::scenario::Scenario;
use crate::spec::setting::Setting;
use crate::spec::start::{ExpertPadding, StartRules};
use crate::store::catalog::Catalog;
use crate::store::model::ResolvedModel;

/// Bytes of an element of an adapter, and of an activation: servers keep them in 16 bits.
const HALF: u64 = 2;
/// The method of the checkpoint's own draft module.
const OWN_MODULE: &str = "mtp";
/// Sizes of graphs: every one of these, then in these steps.
const SMALL_GRAPHS: [u64; 3] = [1, 2, 4];
const GRAPH_STEPS: [(u64, u64, usize); 2] = [(8, 256, 8), (256, u64::MAX, 16)];

/// Keys of files of the catalogue.
const CAPACITY: &str = "device.memory.capacity";
const SAMPLER: &str = "runtime.memory.sampler";
const BUFFERS: &str = "runtime.memory.buffers";

/// The needs of a start beyond the memory of the plan.
#[derive(Clone, Debug, Default)]
pub struct StartNeeds {
    /// Values in place of those of the catalogue, by key.
    set: Vec<(&'static str, String)>,
    /// Share of the device memory, where the command states none.
    share: Option<f64>,
    /// Bytes of encoders that are not loaded, beyond those of the buffers.
    unloaded: f64,
    /// Bytes of the largest part of its start-up profile beyond the text: an image in the encoder, or all logits of a
    /// step.
    pub profile: f64,
    /// The blocks of the cache, where its layers are of several kinds.
    pub pages: Option<CachePages>,
    /// Sequences that need a block each.
    pub sequences: Option<u64>,
    /// The same, while graphs are profiled before there is a cache.
    pub in_profile: Option<u64>,
    /// Memory of attention after the cache.
    pub attention: Option<PartialResults>,
    /// Bytes of the largest copy while weights are loaded.
    pub copied: f64,
}

/// The inputs of a start.
pub struct StartInputs<'a> {
    pub launch: &'a ReadLaunch<'a>,
    pub graph: &'a ModelGraph,
    pub device: &'a Device,
    /// Version of the runtime; the newest if absent.
    pub version: Option<&'a str>,
    /// Weight format of the checkpoint, or of the question.
    pub weight_format: Option<String>,
}

/// Sets the memory of LoRA adapters in `stated`.
///
/// # Errors
/// The runtime is unknown.
pub fn reserve_adapters(catalog: &Catalog, of: &StartInputs, stated: &mut Scenario) -> Result<(), Error> {
    let bytes = of.adapters(degree(stated, |one| one.tp));
    if bytes > 0.0 {
        let (runtime, _) = catalog.runtime_by_id(&of.launch.known.0.id)?;
        let set = stated.set.get_or_insert_default();
        put(set, BUFFERS, format!("{:.0} B", runtime.memory.buffers.value + bytes));
    }
    Ok(())
}

/// The memory that a server sets aside when it starts, and its other needs.
///
/// # Errors
/// The runtime or a format is unknown.
pub fn start_needs(catalog: &Catalog, of: &StartInputs, stated: &Scenario) -> Result<StartNeeds, Error> {
    let rules = &of.launch.known.0.start;
    let (runtime, _) = catalog.runtime_by_id(stated.runtime.as_deref().unwrap_or(&of.launch.known.0.id))?;
    let (tp, pp) = (degree(stated, |one| one.tp), degree(stated, |one| one.pp));
    let usual = runtime.taken(of.device).max_batched_tokens.value as u64;
    let logits = rules.logits.as_ref().map_or(0.0, |one| {
        let tokens = stated.max_num_batched_tokens.unwrap_or(one.usual);
        tokens.saturating_mul(of.graph.vocab.value) as f64 * one.bytes.value
    });
    let element = match &of.weight_format {
        Some(format) => catalog.load::<NumberFormat>(format)?.bits_per_element.value,
        None => HALF as f64,
    };
    let matrices =
        of.padded(rules, tp, element) + of.kept(rules, tp, element) + of.module(rules, element, logits);
    let context = rules.context.as_ref().map(|one| if tp > 1 { &one.several } else { &one.one });
    let base = context.map_or(runtime.memory.buffers.value, |figure| figure.value);
    let more = of.adapters(tp)
        + of.graphs(rules, stated)
        + matrices
        + of.states(rules, stated, tp)
        + of.rotary(rules);
    let all = base + more - of.unloaded(rules, tp);
    let buffers = all.max(0.0);
    let share = rules.utilization.iter().find(|one| of.holds(one.versions.as_ref()));
    let pool = rules.pages.as_ref().filter(|pool| pp == 1 && of.holds(pool.versions.as_ref()));
    let settings = of.page_settings(catalog, stated, (tp, usual))?;
    let pages = pool.and_then(|pool| CachePages::of(of.graph, pool, &settings));
    let in_graphs = stated.max_num_seqs.filter(|_| !of.has(&rules.eager));
    let with =
        |range: Option<&VersionRange>| in_graphs.filter(|_| range.is_some_and(|one| one.holds(of.version)));
    let paged = pool.filter(|_| pages.is_some());
    let states = paged.filter(|_| pages.as_ref().is_some_and(|pages| pages.has_states));
    let most = rules.graphs.first().map_or(u64::MAX, |graphs| graphs.most_tokens);
    Ok(StartNeeds {
        set: of.overrides(rules, (buffers != runtime.memory.buffers.value).then_some(buffers)),
        share: share.map(|one| one.share.value).filter(|_| stated.gpu_memory_utilization.is_none()),
        unloaded: (-all).max(0.0),
        profile: of.encoder(rules, tp).max(logits),
        sequences: states.and_then(|pool| with(pool.sequences_in_blocks.as_ref())),
        in_profile: paged.and_then(|pool| with(pool.profiled_in_blocks.as_ref())).map(|one| one.min(most)),
        pages,
        attention: PartialResults::of(of, rules.attention_parts.as_ref(), tp),
        copied: of.copied(rules, tp),
    })
}

/// Elements of the routed experts of an operator of a block on a device, of all layers.
fn expert_elements(node: &OperatorNode, copies: u64, tp: u64) -> f64 {
    let experts =
        node.weights.iter().filter(|weight| weight.role == TensorRole::Expert).map(Weight::elements);
    (experts.sum::<u64>() * copies / tp) as f64
}

/// A degree of the workers that decode.
fn degree(stated: &Scenario, pick: fn(&Degrees) -> Option<u64>) -> u64 {
    let stated = stated.deployment.as_ref();
    stated.and_then(|one| pick(&one.both).or(pick(&one.decode))).unwrap_or(1)
}

/// Sets a key, in place of an earlier value.
fn put(set: &mut Vec<String>, key: &str, value: String) {
    set.retain(|one| one.split_once('=').is_none_or(|(known, _)| known != key));
    set.push(format!("{key}={value}"));
}

impl<'a> StartInputs<'a> {
    /// Those of a launch on a device, with a version of its runtime.
    pub fn of(
        launch: &'a ReadLaunch<'a>,
        (model, graph): &'a (ResolvedModel, ModelGraph),
        (device, version): (&'a Device, Option<&'a str>),
        stated: &Scenario,
    ) -> StartInputs<'a> {
        let own = match &model.named {
            Some(named) => Some(named.weight_format.as_str()),
            None => model.config.weight_format(),
        };
        let stated = stated.weight_format.as_deref().filter(|format| *format != ANY);
        let weight_format = stated.or(own).map(str::to_owned);
        StartInputs { launch, graph, device, version, weight_format }
    }

    /// Values in the files of device and runtime, in place of theirs.
    fn overrides(&self, rules: &StartRules, buffers: Option<f64>) -> Vec<(&'static str, String)> {
        let mut set = Vec::new();
        if let (Some(driver), Some(capacity)) = (&rules.driver, &self.device.memory.capacity)
            && driver.vendors.iter().any(|vendor| vendor == self.device.vendor.name())
            && !driver.except_families.contains(&self.device.family)
        {
            set.push((CAPACITY, format!("{:.0} B", capacity.value - driver.bytes.value)));
        }
        let sampler = rules.sampler.iter().find(|one| self.holds(one.versions.as_ref()));
        set.extend(sampler.map(|one| (SAMPLER, format!("{} B", one.bytes.value))));
        set.extend(buffers.map(|bytes| (BUFFERS, format!("{bytes:.0} B"))));
        set
    }

    fn holds(&self, versions: Option<&VersionRange>) -> bool {
        versions.is_none_or(|range| range.holds(self.version))
    }

    /// The words of the process that answers.
    pub(super) fn words(&self) -> &[String] {
        &self.launch.processes[0].process.words
    }

    fn has(&self, options: &[String]) -> bool {
        self.words().iter().any(|word| options.contains(word))
    }

    /// Whether the encoder is loaded and never run.
    fn is_without_images(&self, rules: &StartRules) -> bool {
        let Some(option) = &rules.image_limit else { return false };
        let limits = self.after(std::slice::from_ref(option));
        let limits = limits.and_then(|text| serde_json::from_str::<serde_json::Value>(text).ok());
        limits.is_some_and(|limits| limits.get("image").is_some_and(|image| image == 0))
    }

    /// Bytes of the matrices of LoRA adapters.
    fn adapters(&self, tp: u64) -> f64 {
        let settings = &self.launch.processes[0].read.settings;
        let count = |setting| settings.count(setting).or_else(|| self.launch.default_of(setting));
        let (true, Some(slots), Some(rank)) =
            (settings.is_on(Setting::Lora), count(Setting::LoraSlots), count(Setting::LoraRank))
        else {
            return 0.0;
        };
        adapter_width(self.graph, tp).saturating_mul(slots.saturating_mul(rank) * HALF) as f64
    }

    /// Bytes that padding adds to the routed experts of a device, whose elements have `bytes` each.
    fn padded(&self, rules: &StartRules, tp: u64, bytes: f64) -> f64 {
        let vendor = self.device.vendor.name();
        let holds = |one: &&ExpertPadding| {
            one.vendors.iter().any(|known| known == vendor)
                && self.weight_format.as_ref().is_some_and(|format| one.formats.contains(format))
        };
        let Some(rule) = rules.padding.iter().find(holds) else { return 0.0 };
        let up = |side: u64, step: u64| (side.next_multiple_of(step) as f64) / side as f64;
        let of_node = |(block, node, copies): (&Block, &OperatorNode, u64)| {
            let dims = block.graph.node_weights().find_map(|node| match &node.operator {
                Operator::Experts(dims) => Some((dims.hidden.value, dims.intermediate.value)),
                _ => None,
            });
            let Some((hidden, intermediate)) = dims else { return 0.0 };
            let shard = (intermediate / tp).max(1);
            let more = up(hidden, rule.hidden) * up(shard, rule.intermediate) - 1.0;
            expert_elements(node, copies, tp) * more
        };
        bytes * self.graph.stored_nodes().into_iter().map(of_node).sum::<f64>()
    }

    /// Bytes of experts that are kept as they were read, whose elements have `bytes` each.
    fn kept(&self, rules: &StartRules, tp: u64, bytes: f64) -> f64 {
        let is_kept = rules.kept.iter().any(|one| {
            self.holds(Some(&one.versions))
                && one.model_types.contains(&self.graph.model_type)
                && self.weight_format.as_ref().is_some_and(|format| one.formats.contains(format))
        });
        let stored = self.graph.stored_nodes().into_iter().filter(|_| is_kept);
        bytes * stored.map(|(_, node, copies)| expert_elements(node, copies, tp)).sum::<f64>()
    }

    /// Bytes of the checkpoint's own draft module, its cache and its logits.
    fn module(&self, rules: &StartRules, element: f64, logits: f64) -> f64 {
        let Some(rule) = &rules.draft_module else { return 0.0 };
        if !self.after(&rule.options).is_some_and(|word| rule.words.iter().any(|one| one == word)) {
            return 0.0;
        }
        let of_cache = |cache: &Cache| match cache {
            Cache::Heads { .. } => cache.elements_per_token(),
            _ => 0,
        };
        let caches = self.graph.blocks.iter().flat_map(|block| &block.caches);
        let width = caches.map(of_cache).max().unwrap_or(0);
        let context = self.launch.processes[0].read.settings.count(Setting::TotalContext).unwrap_or(0);
        self.graph.parameters().mtp as f64 * element
            + context.saturating_mul(width * rule.element_bytes) as f64
            + logits
    }

    /// Bytes of the rotary tables that layers have each for itself.
    fn rotary(&self, rules: &StartRules) -> f64 {
        let rule = rules.rotary.as_ref().filter(|rule| rule.model_types.contains(&self.graph.model_type));
        let (Some(rule), Some(positions)) = (rule, self.graph.max_context) else { return 0.0 };
        let of_block = |block: &Block| {
            let whole = block.graph.node_weights().find_map(|node| match &node.operator {
                Operator::Attention(dims) if dims.mask.limit().is_none() => Some(dims.v_head_dim.value),
                _ => None,
            });
            whole.unwrap_or(0) * block.layers.len() as u64
        };
        let widths: u64 = self.graph.blocks.iter().map(of_block).sum();
        positions.saturating_mul(widths * rule.element_bytes) as f64
    }

    /// Bytes of the largest table of embeddings on a device, which is there twice while it is loaded.
    fn copied(&self, rules: &StartRules, tp: u64) -> f64 {
        let vendor = self.device.vendor.name();
        let copies = rules.load.as_ref().is_some_and(|rule| {
            rule.vendors.iter().any(|known| known == vendor)
                && !rule.except_families.contains(&self.device.family)
        });
        let nodes = [&self.graph.embedding, &self.graph.head].into_iter().filter(|_| copies);
        let weights = nodes.flat_map(|block| block.graph.node_weights()).flat_map(|node| &node.weights);
        let tables = weights.filter(|one| matches!(one.role, TensorRole::Embedding | TensorRole::LmHead));
        (tables.map(Weight::elements).max().unwrap_or(0) * HALF / tp) as f64
    }

    /// The word after the first of these options.
    pub(super) fn after(&self, options: &[String]) -> Option<&str> {
        let words = self.words();
        let at = words.iter().position(|word| options.contains(word))?;
        words.get(at + 1).map(String::as_str)
    }

    /// Bytes of the slots of recurrent states.
    fn states(&self, rules: &StartRules, stated: &Scenario, tp: u64) -> f64 {
        let Some(rule) = &rules.states else { return 0.0 };
        let half = self.after(&rule.dtype).is_some_and(|word| rule.half.iter().any(|one| one == word));
        let of_cache = |cache: &Cache| match cache.local(tp) {
            Cache::State { name, elements, width, .. } if name != "cross_kv" => {
                elements.value * if half { HALF } else { width.bytes() }
            }
            _ => 0,
        };
        let each: u64 = self
            .graph
            .blocks
            .iter()
            .map(|block| block.caches.iter().map(of_cache).sum::<u64>() * block.layers.len() as u64)
            .sum();
        let [cached, uncached] = rule.each;
        let per_sequence = if self.has(&rule.uncached) { uncached } else { cached };
        // Without a number of sequences, the server divides what is left.
        let given =
            self.launch.processes[0].read.settings.count(Setting::MaxSequences).and(stated.max_num_seqs);
        let slots = self.after(&rule.slots).and_then(|word| word.parse::<u64>().ok());
        let slots = slots.or(given.map(|sequences| sequences * per_sequence)).unwrap_or(0);
        each.saturating_mul(slots) as f64
    }

    /// Draft tokens of a step.
    fn drafts(&self) -> u64 {
        self.launch.processes[0].read.settings.count(Setting::DraftTokens).unwrap_or(0)
    }

    /// Bytes of the graphs that are counted before the cache.
    fn graphs(&self, rules: &StartRules, stated: &Scenario) -> f64 {
        let Some(graphs) = rules.graphs.iter().find(|one| self.holds(one.versions.as_ref())) else {
            return 0.0;
        };
        let (Some(sequences), false) = (stated.max_num_seqs, self.has(&rules.eager)) else { return 0.0 };
        let decoded = sequences.saturating_mul(1 + self.drafts());
        let most = decoded.saturating_mul(2).min(graphs.most_tokens);
        let most = stated.max_num_batched_tokens.map_or(most, |tokens| tokens.min(most));
        let steps = GRAPH_STEPS.iter().flat_map(|&(from, to, step)| (from..to.min(most + 1)).step_by(step));
        let sizes = SMALL_GRAPHS.into_iter().filter(|size| *size <= most).chain(steps);
        // A graph of each size for steps with prompts, and one for steps without.
        let number: usize = sizes.map(|size| 1 + usize::from(size <= decoded)).sum();
        number as f64 * graphs.each.value
    }

    /// Bytes of encoders that are not loaded.
    fn unloaded(&self, rules: &StartRules, tp: u64) -> f64 {
        if !self.has(&rules.text_only) {
            return 0.0;
        }
        let parameters = self.graph.tower_parameters();
        (parameters * HALF / tp) as f64
    }

    /// Bytes of the activations of the largest item in the encoder: input, stream, and the feed-forward matrices before and
    /// after their activation.
    fn encoder(&self, rules: &StartRules, tp: u64) -> f64 {
        if self.has(&rules.text_only) || self.is_without_images(rules) {
            return 0.0;
        }
        let profile = rules.encoders.iter().find(|one| one.model_types.contains(&self.graph.model_type));
        let of = |part: &TowerPart| {
            let positions = match (part.positions, profile) {
                (Positions::Each(count), _) => count.value,
                (Positions::PerCell(each), Some(profile)) => each * profile.tokens,
                _ => return 0,
            };
            let widths = part.block.graph.node_weights().filter_map(|node| match &node.operator {
                Operator::Linear { input, output, .. } => Some((input.value, output.value)),
                _ => None,
            });
            let (stream, widest) = widths.fold((0, 0), |(stream, widest), (input, output)| {
                (stream.max(input.min(output)), widest.max(output))
            });
            positions * (2 * widest.div_ceil(tp) + 3 * stream)
        };
        let parts = self.graph.towers.iter().filter(|tower| tower.name == "vision");
        let most = parts.flat_map(|tower| &tower.parts).map(of).max().unwrap_or(0);
        let outputs = profile.map_or(0, |profile| profile.tokens * self.graph.hidden.value);
        ((most + outputs) * HALF) as f64
    }

    /// `usual`: the tokens of a step that the runtime takes here by itself.
    fn page_settings(
        &self,
        catalog: &Catalog,
        stated: &Scenario,
        (tp, usual): (u64, u64),
    ) -> Result<PageSettings, Error> {
        let settings = &self.launch.processes[0].read.settings;
        let element_bytes = match &stated.kv_format {
            Some(format) => catalog.load::<NumberFormat>(format)?.bits_per_element.value,
            None => HALF as f64,
        };
        let own = settings.word(Setting::DraftMethod) == Some(OWN_MODULE)
            && settings.word(Setting::DraftModel).is_none();
        Ok(PageSettings {
            tp,
            element_bytes,
            drafts: self.drafts(),
            draft_layers: u64::from(own && !self.graph.mtp.is_empty()),
            step_tokens: stated.max_num_batched_tokens.unwrap_or(usual),
            prefix_cache: !matches!(
                settings.get(Setting::PrefixCache),
                Some(crate::launch::settings::SettingValue::On(false))
            ),
        })
    }
}

/// The cache of a server, as its runtime counts it.
#[derive(Clone, Debug, Default)]
pub struct CountedCache {
    /// Its tokens: as many of the longest requests as it holds.
    pub tokens: u64,
    /// The longest request that it holds.
    pub longest: Option<u64>,
    /// The runtime's reasons against it.
    pub faults: Vec<String>,
}

impl StartNeeds {
    /// The problem with all that the server sets aside.
    pub fn applied(&self, scenario: &Scenario) -> Scenario {
        let mut scenario = scenario.clone();
        scenario.gpu_memory_utilization = scenario.gpu_memory_utilization.or(self.share);
        for (key, value) in &self.set {
            put(scenario.set.get_or_insert_default(), key, value.clone());
        }
        scenario
    }

    /// The same with what its profile takes more than the activations of the text.
    pub fn profiled(&self, scenario: &Scenario, memory: &MemoryReport) -> Option<Scenario> {
        let more = self.profile - memory.activations_bytes;
        let mut scenario = scenario.clone();
        put(scenario.set.get_or_insert_default(), BUFFERS, format!("{:.0} B", memory.buffers_bytes + more));
        (more > 0.0).then_some(scenario)
    }

    /// The fault where weights do not fit next to the copy of the largest one.
    pub fn load_fault(&self, memory: &MemoryReport) -> Option<String> {
        let gib = |bytes: f64| bytes / (1u64 << 30) as f64;
        let loaded = memory.weights_bytes + memory.buffers_bytes;
        (self.copied > 0.0 && loaded + self.copied > memory.capacity_bytes).then(|| {
            format!(
                "a table of embeddings of {:.2} GiB is on the device twice while it is loaded, and {:.2} GiB are left next \
                 to weights and buffers",
                gib(self.copied),
                gib((memory.capacity_bytes - loaded).max(0.0))
            )
        })
    }

    /// The cache in the memory that a plan leaves, for requests of at most `longest` tokens; `None` where every layer keeps
    /// all tokens.
    pub fn counted(&self, memory: &MemoryReport, longest: Option<u64>) -> Option<CountedCache> {
        let pages = self.pages.as_ref()?;
        let rest = memory.weights_bytes - self.unloaded + memory.activations_bytes + memory.buffers_bytes;
        let free = (memory.usable_bytes - rest).max(0.0);
        let blocks = (free / pages.block_bytes) as u64;
        let fits = pages.longest(blocks.saturating_sub(1));
        let longest = longest.or(fits).unwrap_or(1);
        let each = pages.blocks(longest).max(1);
        let gib = |bytes: f64| bytes / (1u64 << 30) as f64;
        let mut faults = Vec::new();
        if each > blocks {
            let most = fits.map_or("none".to_owned(), |tokens| format!("at most {tokens} tokens"));
            faults.push(format!(
                "max-model-len is {longest} tokens, for which the KV cache needs {each} blocks of {:.1} MiB, {:.2} GiB, \
                 and {:.2} GiB are left: one request of {most}",
                gib(pages.block_bytes) * 1024.0,
                gib(each as f64 * pages.block_bytes),
                gib(free)
            ));
        }
        if let Some(sequences) = self.sequences.filter(|sequences| *sequences > blocks) {
            faults.push(format!(
                "max-num-seqs is {sequences}, and the cache has {blocks} blocks: each sequence of a graph needs one for \
                 its state"
            ));
        }
        let profiled = self.in_profile.map(|sequences| sequences as f64 * pages.block_bytes);
        let loaded = memory.capacity_bytes - memory.weights_bytes;
        if let Some(profiled) = profiled.filter(|profiled| *profiled > loaded) {
            faults.push(format!(
                "graphs are profiled with a cache of {:.2} GiB, a block for each sequence, and {:.2} GiB are left after \
                 the weights",
                gib(profiled),
                gib(loaded.max(0.0))
            ));
        }
        Some(CountedCache {
            tokens: (blocks as f64 / each as f64 * longest as f64) as u64,
            longest: fits,
            faults,
        })
    }
}
