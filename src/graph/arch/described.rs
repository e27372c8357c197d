//! Wrappers that are described in `wrappers.json`: the language model of a family with a builder, and encoders by their
//! tensors.
//!
//! A part of an encoder lists its tensors as `name shape`: `q_proj V V b` is a matrix from V to V elements with a bias,
//! `norm V` a scale. Shapes are expressions over the keys of the section. The number of positions is not described, so
//! an encoder has parameters here and no operations per image.

pub mod expression;

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;
use serde_json::{Map, Value};

use super::class_keys::of_part;
use super::mllama::lengthen;
use super::wrapper::{self, WrapperPaths, retied, wrap};
use super::{
    ARCHITECTURES, bert, deepseek, latent_variants, llama, llama_variants, moe_variants, moshi, muse, opt,
    switches,
};
use crate::graph::assembly::{Assembly, weight};
use crate::graph::image_processor::ImageProcessor;
use crate::graph::model::ModelGraph;
use crate::graph::operator::{Operator, Split};
use crate::graph::part::encoder::once;
use crate::graph::part::misfit;
use crate::graph::tensor::{TensorRole, Weight};
use crate::graph::tower::{Positions, Tower, TowerPart};
use crate::quantity::count::Count;
use crate::spec::error::Error;
use crate::spec::model::keys::Keys;
use crate::spec::model::value::fraction;
use expression::{Named, NamedValues, evaluate};

/// The file: wrappers by `model_type`, and parts that several encoders have.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrapperFile<'a> {
    #[serde(borrow)]
    wrappers: BTreeMap<&'a str, DescribedWrapper<'a>>,
    #[serde(borrow)]
    shared: BTreeMap<&'a str, Vec<DescribedPart<'a>>>,
}

/// A wrapper.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DescribedWrapper<'a> {
    /// The language model.
    #[serde(borrow)]
    text: DescribedLanguage<'a>,
    /// Key and default of the rows of the embedding that the head does not have.
    #[serde(borrow)]
    more_rows: Option<(&'a str, u64)>,
    /// Keys of the rows and the width of a head that is not tied: they must be those of the language model.
    #[serde(borrow)]
    head_sides: Option<[&'a str; 2]>,
    /// Keys of the wrapper without effect on shapes.
    #[serde(default)]
    #[serde(borrow)]
    ignored: Vec<&'a str>,
    /// Keys with the only supported value.
    #[serde(default)]
    #[serde(borrow)]
    only: BTreeMap<&'a str, Value>,
    #[serde(borrow)]
    towers: Vec<DescribedEncoder<'a>>,
}

/// The language model of a wrapper.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DescribedLanguage<'a> {
    /// Its section; none where its keys are those of the whole file.
    #[serde(borrow)]
    at: Option<&'a str>,
    /// The `model_type` of the section for class defaults, where it states none.
    class: &'a str,
    /// The builder for each `model_type` of the section.
    #[serde(borrow)]
    builders: BTreeMap<&'a str, &'a str>,
    /// Whether the head is tied where the section does not have the key; by default as its builder does.
    tied: Option<bool>,
    /// Whether its own key alone ties the head.
    #[serde(default)]
    alone: bool,
    /// Names of the language model and of its head.
    model: &'a str,
    head: &'a str,
    /// Keys of the section without effect on shapes.
    #[serde(default)]
    #[serde(borrow)]
    ignored: Vec<&'a str>,
    /// Keys with the only supported value.
    #[serde(default)]
    #[serde(borrow)]
    only: BTreeMap<&'a str, Value>,
}

/// An encoder with its projector.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DescribedEncoder<'a> {
    /// Modality.
    name: &'a str,
    /// Whether a file without the first section has no such encoder.
    #[serde(default)]
    optional: bool,
    #[serde(borrow)]
    sections: Vec<DescribedSection<'a>>,
    /// Names of further values, with their expressions, in order.
    #[serde(default, rename = "let")]
    #[serde(borrow)]
    derived: Vec<(&'a str, &'a str)>,
    #[serde(borrow)]
    parts: Vec<DescribedPart<'a>>,
}

/// The keys of an object of the file that an encoder reads.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DescribedSection<'a> {
    /// Its path, e.g. `vision_config`; empty for the file itself.
    at: &'a str,
    /// Name, key and default of each value. A missing default makes the key required.
    #[serde(borrow)]
    values: Vec<(&'a str, &'a str, Value)>,
    #[serde(default)]
    #[serde(borrow)]
    ignored: Vec<&'a str>,
    #[serde(default)]
    #[serde(borrow)]
    only: BTreeMap<&'a str, Value>,
}

/// Modules with equal tensors.
#[derive(Deserialize)]
#[serde(untagged)]
enum DescribedPart<'a> {
    /// Parts of `shared` by name, under a prefix: `siglip model.vision_tower`.
    Shared(&'a str),
    /// Its tensors.
    Own(#[serde(borrow)] OwnPart<'a>),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OwnPart<'a> {
    /// Prefix of its names.
    at: &'a str,
    /// How often it occurs with `*` of its prefix as `c`; once without it.
    copies: Option<&'a str>,
    /// Number of its layers; none for modules that occur once.
    #[serde(borrow)]
    times: Option<&'a str>,
    /// Which of the layers have it, by `i`.
    #[serde(borrow)]
    of: Option<&'a str>,
    /// Whether the model has it at all.
    #[serde(borrow)]
    when: Option<&'a str>,
    /// The tensors of a layer.
    #[serde(borrow)]
    tensors: Vec<&'a str>,
}

static FILE: LazyLock<WrapperFile<'static>> = LazyLock::new(|| {
    serde_json::from_str(include_str!("described/wrappers.json")).expect("the file is valid JSON")
});

/// The wrapper that `model_type` of the file names.
pub fn build(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    let stated = keys.text("model_type")?.unwrap_or_default();
    build_as(&stated, keys)
}

/// DeepSeek-OCR and DeepSeek-VL2 have one `model_type`: the encoder's name says which it is.
pub fn build_deepseek_vl2(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    let encoder = keys.section("vision_config")?.text("model_name")?;
    let deeplip = encoder.is_some_and(|encoder| encoder == "deeplip_b_l");
    build_as(if deeplip { "deepseek_vl_v2 deeplip" } else { "deepseek_vl_v2" }, keys)
}

/// The wrapper of this name.
fn build_as(name: &str, keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    let Some(wrapper) = FILE.wrappers.get(name) else {
        let fix = "copy model_type from the model's config.json";
        return Err(Error::new("model_type", name, "the model's own type", fix));
    };
    wrapper::set_prompt_aside(keys);
    accept(keys, &wrapper.ignored, &wrapper.only)?;
    let mut graph = language(keys, &wrapper.text)?;
    let towers = towers(keys, wrapper, &graph)?;
    if let Some([rows, width]) = wrapper.head_sides {
        keys.set_aside(&[rows, width]);
        for (key, expected) in [(rows, graph.vocab), (width, graph.hidden)] {
            let stated = keys.count_or_none(key)?.unwrap_or(expected);
            if !graph.tied && stated.value != expected.value {
                return Err(misfit(stated, format!("{} as in {}", expected.value, expected.symbol)));
            }
        }
    }
    if let Some((key, default)) = wrapper.more_rows {
        let more = keys.section(wrapper.text.at.unwrap_or_default())?.count_or(key, default)?;
        let rows =
            Count::derived("embedding_rows", graph.vocab.value + more.value, "vocab_size and further rows");
        lengthen(&mut graph.embedding, rows);
    }
    let DescribedLanguage { model, head, .. } = wrapper.text;
    Ok(wrap(graph, WrapperPaths { model, head, others: "" }, towers))
}

/// The encoders of the wrapper `name`, for a builder that reads the language model itself.
pub fn towers_of(name: &str, keys: &Keys<'_>, graph: &ModelGraph) -> Result<Vec<Tower>, Error> {
    let wrapper = FILE.wrappers.get(name).expect("the file has the wrapper");
    keys.set_aside(&wrapper.ignored);
    towers(keys, wrapper, graph)
}

/// Takes keys without effect on shapes, and keys with the only supported value.
fn accept(
    keys: &Keys<'_>,
    ignored: &[&'static str],
    only: &BTreeMap<&'static str, Value>,
) -> Result<(), Error> {
    keys.set_aside(ignored);
    only.iter().try_for_each(|(key, value)| keys.only(key, value).map(drop))
}

fn language(keys: &Keys<'_>, language: &DescribedLanguage<'static>) -> Result<ModelGraph, Error> {
    let Some(at) = language.at else {
        keys.set_aside(&language.ignored);
        let (_, build) = language.builders.values().find_map(|name| builder(name)).expect("a known builder");
        return build(keys);
    };
    let inside = keys.section(at)?;
    let stated = inside.text("model_type")?;
    let class = stated.as_deref().unwrap_or(language.class);
    let defaults = if of_part(class).is_empty() { of_part(language.class) } else { of_part(class) };
    let inside = inside.with_defaults(defaults);
    accept(&inside, &language.ignored, &language.only)?;
    let Some((model_type, build)) = language.builders.get(class).and_then(|name| builder(name)) else {
        let allowed: Vec<&str> = language.builders.keys().copied().collect();
        let fix = "report the model: this combination needs its own builder";
        return Err(Error::new(format!("{at}.model_type"), class, allowed.join(" or "), fix));
    };
    switches::set_aside(&inside, model_type);
    let mut graph = build(&inside)?;
    if let Some(tied) = language.tied.filter(|_| !inside.has("tie_word_embeddings")) {
        graph = retied(graph, tied);
    }
    if language.alone {
        keys.set_aside(&["tie_word_embeddings"]);
        return Ok(graph);
    }
    wrapper::tied(graph, keys, &inside)
}

type DescribedBuild = fn(&Keys<'_>) -> Result<ModelGraph, Error>;

/// Language models that occur in wrappers only, by the `model_type` of their section, or by a name where the whole
/// file has their keys.
static INNER: &[(&str, DescribedBuild)] = &[
    ("chameleon_text", llama_variants::build_chameleon),
    ("deepseek_vl_v2_text", deepseek::build_vl2),
    ("dots3_note_text", latent_variants::build_dots3),
    ("ernie4_5_vl_moe_text", moe_variants::build_ernie_vl),
    ("git_text", bert::build_git),
    ("hy_v4_vl_text", latent_variants::build_hunyuan),
    ("kosmos_2_5_text_model", opt::build_kosmos2_5),
    ("kosmos_2_text_model", opt::build_kosmos2),
    ("kyutai_text", moshi::build_kyutai),
    ("muse_glimmer_text", muse::build_glimmer),
    ("muse_spark_text", muse::build_spark),
    ("unlimited_ocr_text", deepseek::build_unlimited),
    ("voxtral_realtime_text", llama::build_voxtral_realtime),
];

/// The builder of this name: of a whole file, or of a section alone.
fn builder(name: &str) -> Option<(&'static str, DescribedBuild)> {
    let inner = INNER.iter().find(|(known, _)| *known == name).copied();
    let whole = || ARCHITECTURES.iter().find(|known| known.model_type == name);
    inner.or_else(|| whole().map(|known| (known.model_type, known.build)))
}

fn towers(
    keys: &Keys<'_>,
    wrapper: &DescribedWrapper<'static>,
    graph: &ModelGraph,
) -> Result<Vec<Tower>, Error> {
    let mut towers = vec![];
    for encoder in &wrapper.towers {
        towers.extend(tower(keys, encoder, graph)?);
    }
    Ok(towers)
}

fn tower(
    keys: &Keys<'_>,
    encoder: &DescribedEncoder<'static>,
    graph: &ModelGraph,
) -> Result<Option<Tower>, Error> {
    let number = |count: Count| Named::Number(i128::from(count.value));
    let mut values = NamedValues::from([
        ("text".to_owned(), number(graph.hidden)),
        ("text_layers".to_owned(), number(graph.layers)),
        ("text_vocab".to_owned(), number(graph.vocab)),
    ]);
    for (index, section) in encoder.sections.iter().enumerate() {
        match opened(keys, section.at)? {
            Some(inside) => read(&inside, section, &mut values)?,
            None if encoder.optional && index == 0 => return Ok(None),
            // An object inside an encoder's section has the class's values where it is missing.
            None if section.at.contains('.') => read(&Keys::new(&Map::new()), section, &mut values)?,
            None => keys.section(section.at).map(drop)?,
        }
    }
    for (name, text) in &encoder.derived {
        let value = evaluate(text, &values)?;
        values.insert((*name).to_owned(), Named::Number(value));
    }
    let mut parts = vec![];
    for described in &encoder.parts {
        match described {
            DescribedPart::Own(own) => parts.extend(copies(own, own.at, own.copies, &values)?),
            DescribedPart::Shared(words) => parts.extend(shared(words, &values)?),
        }
    }
    Ok(Some(Tower { name: encoder.name, parts, image_processor: ImageProcessor::Unknown }))
}

/// The keys at `path`; none where the file has no such object.
fn opened<'c>(keys: &Keys<'c>, path: &'static str) -> Result<Option<Keys<'c>>, Error> {
    let mut inside = keys.clone();
    for at in path.split('.').filter(|at| !at.is_empty()) {
        match inside.section_or_none(at)? {
            Some(section) => inside = section,
            None => return Ok(None),
        }
    }
    Ok(Some(inside))
}

/// Reads the values of a section.
fn read(keys: &Keys<'_>, section: &DescribedSection<'static>, values: &mut NamedValues) -> Result<(), Error> {
    if !section.at.is_empty() {
        keys.set_aside(&["model_type", "tie_word_embeddings"]);
    }
    accept(keys, &section.ignored, &section.only)?;
    for (name, key, default) in &section.values {
        // `key=word` is 1 where the key has the word, in a list for each of its entries; `key*1000` is a decimal number.
        let (key, word) = key.split_once('=').map_or((*key, None), |(key, word)| (key, Some(word)));
        // `key@inner` is a list of the numbers `inner` of an object by index, 0 where it has no entry.
        let (key, inner) = key.split_once('@').map_or((key, None), |(key, inner)| (key, Some(inner)));
        // `key/1` is the second number of a text such as `4/8`.
        let (key, part) = key.split_once('/').map_or((key, None), |(key, part)| (key, part.parse().ok()));
        let (key, scale) = key.split_once('*').map_or((key, None), |(key, scale)| (key, scale.parse().ok()));
        let stated = keys.value(key);
        let place = || format!("{}{}{key}", section.at, if section.at.is_empty() { "" } else { "." });
        let Some(found) = stated.or(Some(default).filter(|default| !default.is_null())) else {
            let fix = "copy the value from the model's config.json";
            return Err(Error::new(place(), "missing key", "a whole number", fix));
        };
        // No list where a list is expected is an empty one, and a list is no number.
        let found = if found.is_null() && default.is_array() { &EMPTY } else { found };
        let value = match (part, inner) {
            (Some(part), _) => found.as_str().and_then(|text| nth(text, part)),
            (None, Some(inner)) if found.is_object() => by_index(found, inner),
            _ if found.is_array() && default.is_number() => None,
            _ => named(found, word, scale),
        };
        let value = value.ok_or_else(|| {
            let fix = "copy the value from the model's config.json";
            Error::new(place(), found.to_string(), "a whole number up to 1000000000", fix)
        })?;
        values.insert((*name).to_owned(), value);
    }
    Ok(())
}

static EMPTY: Value = Value::Array(Vec::new());

/// The numbers `inner` of the entries of an object, by the index that names each.
fn by_index(value: &Value, inner: &str) -> Option<Named> {
    let mut numbers = vec![0; MOST_LAYERS as usize];
    for (index, entry) in value.as_object()? {
        let number = entry.get(inner).map_or(Some(0), Value::as_u64)?;
        let index: usize = index.parse().ok()?;
        *numbers.get_mut(index)? = i128::from(Some(number).filter(|number| *number <= MOST_ELEMENTS)?);
    }
    Some(Named::List(numbers))
}

/// A number of a text such as `4/8`.
fn nth(text: &str, part: usize) -> Option<Named> {
    text.split('/').nth(part)?.trim().parse().ok().map(Named::Number)
}

/// A value of a file as numbers: `null` and `false` are 0, a word is 1 where it is `word`.
fn named(value: &Value, word: Option<&str>, scale: Option<i128>) -> Option<Named> {
    let one = |value: &Value| match (value, word) {
        (Value::String(text), Some(word)) => Some(i128::from(text == word)),
        (Value::Null, _) => Some(0),
        (Value::Bool(flag), _) => Some(i128::from(*flag)),
        (Value::Number(_), _) if scale.is_some() => {
            let [above, below] = fraction("", value).ok()?;
            Some(i128::from(above) * scale? / i128::from(below))
        }
        (Value::Number(number), _) => {
            let whole = number.as_i64().map(i128::from)?;
            Some(whole).filter(|whole| whole.unsigned_abs() <= u128::from(MOST_ELEMENTS))
        }
        _ => None,
    };
    match value {
        // Only the length of a list of lists matters.
        Value::Array(values) if values.first().is_some_and(Value::is_array) => {
            Some(Named::List(vec![0; values.len()]))
        }
        Value::Array(values) => values.iter().map(one).collect::<Option<_>>().map(Named::List),
        value => one(value).map(Named::Number),
    }
}

/// The shared parts of `name prefix [copies] [?condition]`.
fn shared(words: &str, values: &NamedValues) -> Result<Vec<TowerPart>, Error> {
    let (words, condition) = words.split_once('?').map_or((words, None), |(words, when)| (words, Some(when)));
    if condition.map_or(Ok(1), |when| evaluate(when, values))? == 0 {
        return Ok(vec![]);
    }
    let mut words = words.split_whitespace();
    let (name, prefix) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let times = words.next();
    let mut parts = vec![];
    for own in FILE.shared.get(name).expect("the file has the part") {
        let DescribedPart::Own(own) = own else { continue };
        parts.extend(copies(own, &format!("{prefix}{}", own.at), times.or(own.copies), values)?);
    }
    Ok(parts)
}

/// A part under `prefix`, as often as `times` says, with `c` as the number in place of `*`.
fn copies(
    own: &OwnPart<'static>,
    prefix: &str,
    times: Option<&str>,
    values: &NamedValues,
) -> Result<Vec<TowerPart>, Error> {
    let Some(times) = times else { return Ok(part(own, prefix, values)?.into_iter().collect()) };
    let mut parts = vec![];
    for copy in 0..at_most(evaluate(times, values)?)? {
        let mut values = values.clone();
        values.insert("c".to_owned(), Named::Number(i128::from(copy)));
        parts.extend(part(own, &prefix.replacen('*', &copy.to_string(), 1), &values)?);
    }
    Ok(parts)
}

/// More layers than any model has.
const MOST_LAYERS: u32 = 2000;
/// More elements than a side of any tensor has.
const MOST_ELEMENTS: u64 = 1_000_000_000;

/// A number of layers or copies.
fn at_most(times: i128) -> Result<u32, Error> {
    u32::try_from(times).ok().filter(|times| *times <= MOST_LAYERS).ok_or_else(|| {
        Error::new(
            "",
            times.to_string(),
            format!("at most {MOST_LAYERS} layers"),
            "copy the number of layers from the model's config.json",
        )
    })
}

/// A part under `prefix`; none where the model does not have it.
fn part(own: &OwnPart<'static>, prefix: &str, values: &NamedValues) -> Result<Option<TowerPart>, Error> {
    if let Some(when) = own.when
        && evaluate(when, values)? == 0
    {
        return Ok(None);
    }
    let mut layers = vec![];
    if let Some(times) = own.times {
        for index in 0..at_most(evaluate(times, values)?)? {
            let mut values = values.clone();
            values.insert("i".to_owned(), Named::Number(i128::from(index)));
            if own.of.map_or(Ok(1), |of| evaluate(of, &values))? != 0 {
                layers.push(index);
            }
        }
        if layers.is_empty() {
            return Ok(None);
        }
    }
    let mut block = Assembly::default();
    let mut stream = None;
    for line in &own.tensors {
        for (operator, weights) in tensors(line, values)? {
            let input = match (&operator, stream) {
                (_, Some(stream)) => stream,
                (Operator::Linear { input, .. }, None) => block.input(*input),
                (operator, None) => block.input(operator.output()),
            };
            let name = if matches!(operator, Operator::Linear { .. }) { "matrix" } else { "tensor" };
            stream = Some(block.node(name, operator, weights, &[input]));
        }
    }
    if layers.is_empty() {
        return Ok(Some(once(block, "module", prefix, Positions::Open)));
    }
    let block = block.finish("encoder_layer", layers, vec![]);
    Ok(Some(TowerPart { prefix: prefix.to_owned(), block, positions: Positions::Open }))
}

/// The tensors of a line, as operators: `name dim … [b] [t] [?condition]`. `a|b` are several names, `t` is a table
/// without a product, `n` a matrix without a name's ending, `u` a buffer. The name `.` is the module itself.
fn tensors(line: &'static str, values: &NamedValues) -> Result<Vec<(Operator, Vec<Weight>)>, Error> {
    let (line, condition) = line.split_once('?').map_or((line, None), |(line, when)| (line, Some(when)));
    if let Some(when) = condition
        && evaluate(when, values)? == 0
    {
        return Ok(vec![]);
    }
    let mut words = line.split_whitespace();
    let names = words.next().unwrap_or_default();
    let (flags, shape): (Vec<&str>, Vec<&str>) = words.partition(|word| ["b", "t", "n", "u"].contains(word));
    let has = |flag: &str| flags.contains(&flag);
    let mut sides = vec![];
    for side in shape {
        let value = evaluate(side, values)?;
        match u64::try_from(value).ok().filter(|side| (1..=MOST_ELEMENTS).contains(side)) {
            Some(side) => sides.push(side),
            None => {
                let fix = "copy the widths from the model's config.json";
                return Err(Error::new("", format!("{value} for {side}"), "at least 1", fix));
            }
        }
    }
    let first = sides.first().copied().unwrap_or(1);
    let inner = sides.iter().skip(1).fold(1u64, |so_far, side| so_far.saturating_mul(*side));
    let of = |value: u64, how| Count::derived("encoder_width", value, how);
    let one = |name: &str| {
        let ending = if has("n") || has("u") { "" } else { ".weight" };
        let matrix = sides.len() > 1 && !has("t");
        let role = if sides.len() > 1 { TensorRole::Tower } else { TensorRole::Norm };
        let name = if name == "." { "" } else { name };
        let of_module = |ending: &str| format!("{name}{ending}").trim_start_matches('.').to_owned();
        let stored = weight(of_module(ending), sides.clone(), role);
        let mut weights = vec![Weight { buffer: has("u"), ..stored }];
        if has("b") {
            weights.push(weight(of_module(".bias"), vec![first], TensorRole::Bias));
        }
        let operator = if matrix {
            let (input, output) = (of(inner, "inner sides of the tensor"), of(first, "rows of the tensor"));
            Operator::Linear { input, output, split: Split::Replicate }
        } else {
            Operator::Add { width: of(first, "rows of the tensor") }
        };
        (operator, weights)
    };
    Ok(expanded(names).iter().map(|name| one(name)).collect())
}

/// The names of `a.(b|c).d`.
fn expanded(names: &str) -> Vec<String> {
    let Some((before, rest)) = names.split_once('(') else { return vec![names.to_owned()] };
    let (inside, after) = rest.split_once(')').expect("the file closes its parentheses");
    let one =
        |name: &str| expanded(after).into_iter().map(move |end| format!("{before}{name}{end}")).collect();
    inside.split('|').flat_map(|name| -> Vec<String> { one(name) }).collect()
}
