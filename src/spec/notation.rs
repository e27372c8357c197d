//! The one-line plan notation: `prefill 2 x pp2 @1, decode 1 x tp2 @24, weights fp8, kv bf16`.
//!
//! [`PlanText`] prints and parses; printed text parses to the same plan. Independent of models: feasibility of a plan
//! is checked elsewhere.

use super::degree::{Degree, Degrees};
use crate::spec::offload::OffloadPart;
use crate::spec::role::Role;
use std::fmt;
use std::str::FromStr;

use super::error::Error;
use super::host_part::HostPart;
use super::limits::{CONCURRENCY, DEGREE, Limit};

#[derive(Clone, Debug, Default, PartialEq)]
pub struct PoolText {
    pub role: Role,
    /// Degrees of one replica, and the number of replicas.
    pub degrees: Degrees,
    /// Concurrency of each replica; derived from the traffic if absent.
    pub concurrency: Option<u64>,
}

/// A complete plan: everything that determines the metrics in addition to the problem.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PlanText {
    pub pools: Vec<PoolText>,
    /// Weight format; the first of the problem if absent.
    pub weights: Option<String>,
    /// Weight format of prefill workers, where it is another.
    pub prefill_weights: Option<String>,
    /// KV cache format; the first of the problem if absent.
    pub kv: Option<String>,
    /// Part offloaded to host memory.
    pub offload: Option<OffloadPart>,
    /// Part that the host's processor computes.
    pub host: Option<HostPart>,
}

impl PlanText {
    /// The plan without the concurrency of its pools, which then follows from the traffic.
    #[must_use]
    pub fn without_loads(mut self) -> PlanText {
        self.pools.iter_mut().for_each(|pool| pool.concurrency = None);
        self
    }

    /// Whether everything that determines the metrics is stated: formats, and the load of each pool that decodes. Then
    /// what is not named, such as a part in host memory, is not there.
    pub fn states_all(&self) -> bool {
        self.weights.is_some() && self.kv.is_some() && !self.leaves_load_open()
    }

    /// Whether a pool that decodes has no stated load.
    pub fn leaves_load_open(&self) -> bool {
        self.pools.iter().any(|pool| pool.concurrency.is_none() && pool.role != Role::Prefill)
    }
}

/// Maximum length of the text, in characters.
const MOST_TEXT: usize = 1 << 16;

/// The name of the weight format of prefill workers.
const PREFILL_WEIGHTS: &str = "prefill-weights";
const WORKS: [(&str, Role); 3] =
    [("prefill", Role::Prefill), ("decode", Role::Decode), ("both", Role::Aggregated)];
const OFFLOADED: [(&str, OffloadPart); 3] =
    [("layers", OffloadPart::Layers), ("experts", OffloadPart::Experts), ("kv", OffloadPart::Kv)];

impl fmt::Display for PoolText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let degrees = &self.degrees;
        write!(f, "{} x", degrees.replicas.unwrap_or(1))?;
        let mut any = degrees.sp == Some(true);
        for degree in Degree::stated() {
            let Some(number) = degrees.get(degree) else { continue };
            any = true;
            write!(f, " {}{number}", degree.key())?;
            if let Some(stages) = degrees.stages.as_ref().filter(|_| degree == Degree::Pp) {
                let stages: Vec<String> = stages.iter().map(u32::to_string).collect();
                write!(f, "[{}]", stages.join(","))?;
            }
        }
        if degrees.sp == Some(true) {
            f.write_str(" sp")?;
        }
        if !any {
            f.write_str(" tp1")?;
        }
        self.concurrency.map_or(Ok(()), |requests| write!(f, " @{requests}"))
    }
}

impl fmt::Display for PlanText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let disaggregated = self.pools.iter().any(|pool| pool.role != Role::Aggregated);
        let mut comma = "";
        for (name, work) in WORKS {
            for (at, pool) in self.pools.iter().filter(|pool| pool.role == work).enumerate() {
                match (at, disaggregated) {
                    (0, true) => write!(f, "{comma}{name} {pool}")?,
                    (0, false) => write!(f, "{comma}{pool}")?,
                    _ => write!(f, " + {pool}")?,
                }
                comma = ", ";
            }
        }
        let offload = OFFLOADED.iter().find(|(_, part)| Some(*part) == self.offload);
        let named = [
            ("weights", self.weights.as_deref()),
            (PREFILL_WEIGHTS, self.prefill_weights.as_deref()),
            ("kv", self.kv.as_deref()),
            ("offload", offload.map(|(name, _)| *name)),
        ];
        for (name, value) in named {
            let Some(value) = value else { continue };
            write!(f, "{comma}{name} {value}")?;
            comma = ", ";
        }
        self.host.map_or(Ok(()), |part| write!(f, "{comma}host {part}"))
    }
}

fn fault(found: impl Into<String>, expected: impl Into<String>) -> Error {
    let fix = "write e.g. `prefill 2 x pp2 @1, decode 1 x tp2 @24, weights fp8`";
    Error::new("plan", found, expected, fix)
}

/// A whole number within `limit`.
fn counted(text: &str, of: &str, limit: &Limit) -> Result<u64, Error> {
    let number = text.parse::<u64>().ok().filter(|number| limit.check_whole("plan", *number).is_ok());
    let expected = || format!("a whole number from 1 to {}", limit.most);
    number.ok_or_else(|| fault(format!("`{text}` as {of}"), expected()))
}

/// The parts of `text` between commas outside brackets.
fn split(text: &str) -> Vec<&str> {
    let mut depth = 0usize;
    let cut = |c: char| {
        match c {
            '[' => depth += 1,
            ']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        c == ',' && depth == 0
    };
    text.split(cut).map(str::trim).collect()
}

fn degree(word: &str, degrees: &mut Degrees) -> Result<(), Error> {
    if word == "sp" {
        degrees.sp = Some(true);
        return Ok(());
    }
    let (head, stages) = match word.split_once('[') {
        Some((head, stages)) => (head, Some(stages)),
        None => (word, None),
    };
    let at = head.find(|c: char| c.is_ascii_digit()).unwrap_or(head.len());
    let (name, number) = head.split_at(at);
    let known = Degree::stated().find(|degree| degree.key() == name);
    let Some((known, slot)) = known.and_then(|known| Some((known, degrees.get_mut(known)?))) else {
        let keys: Vec<&str> = Degree::stated().map(Degree::key).collect();
        let expected = format!("a degree, such as tp4 or pp2[20,12]: {} or sp", keys.join(", "));
        return Err(fault(format!("`{word}`"), expected));
    };
    if slot.replace(counted(number, name, &DEGREE)?).is_some() {
        return Err(fault(format!("{name} twice"), format!("{name} once in a pool")));
    }
    let Some(stages) = stages else { return Ok(()) };
    let inside = stages.strip_suffix(']').filter(|_| known == Degree::Pp);
    let inside =
        inside.ok_or_else(|| fault(format!("`{word}`"), "layers of each stage after pp: pp2[20,12]"))?;
    let layers = |text: &str| counted(text.trim(), "layers of a stage", &DEGREE).map(|layers| layers as u32);
    degrees.stages = Some(inside.split(',').map(layers).collect::<Result<_, _>>()?);
    Ok(())
}

/// Equal replicas: `2 x tp4 pp2[20,12] sp @24`.
fn pool(work: Role, text: &str) -> Result<PoolText, Error> {
    let mut found = PoolText { role: work, ..PoolText::default() };
    let (shape, load) = match text.split_once('@') {
        Some((shape, load)) => (shape.trim(), Some(load.trim())),
        None => (text.trim(), None),
    };
    found.concurrency = load.map(|load| counted(load, "concurrency", &CONCURRENCY)).transpose()?;
    let times = |c: char| c == 'x' || c == '×';
    let count = shape.split_once(times).filter(|(count, _)| count.trim().parse::<u64>().is_ok());
    let shape = match count {
        Some((count, shape)) => {
            found.degrees.replicas = Some(counted(count.trim(), "replicas", &DEGREE)?);
            shape
        }
        None => shape,
    };
    // Blanks inside brackets belong to the stages.
    let mut inside = false;
    let cut = |c: char| {
        inside = match c {
            '[' => true,
            ']' => false,
            _ => inside,
        };
        c.is_whitespace() && !inside
    };
    let words: Vec<&str> = shape.split(cut).filter(|word| !word.is_empty()).collect();
    if words.is_empty() {
        return Err(fault(format!("`{text}`"), "the parallel degrees of a replica, tp1 for one device"));
    }
    words.into_iter().try_for_each(|word| degree(word, &mut found.degrees))?;
    Ok(found)
}

impl FromStr for PlanText {
    type Err = Error;

    fn from_str(text: &str) -> Result<PlanText, Error> {
        if text.len() > MOST_TEXT {
            return Err(fault(format!("{} characters", text.len()), format!("at most {MOST_TEXT}")));
        }
        let mut plan = PlanText::default();
        for part in split(text) {
            let (first, rest) = part.split_once(char::is_whitespace).unwrap_or((part, ""));
            let rest = rest.trim();
            let id = |slot: &mut Option<String>| match slot.replace(rest.to_string()) {
                _ if rest.is_empty() => {
                    Err(fault(format!("`{part}`"), format!("{first} and the id of a format")))
                }
                Some(_) => {
                    Err(fault(format!("{first} twice"), format!("{first} once: one format for all pools")))
                }
                None => Ok(()),
            };
            match first {
                "weights" => id(&mut plan.weights)?,
                PREFILL_WEIGHTS => id(&mut plan.prefill_weights)?,
                "kv" => id(&mut plan.kv)?,
                "offload" => {
                    let known = OFFLOADED.iter().find(|(name, _)| *name == rest);
                    let expected = "offload layers, offload experts or offload kv";
                    let (_, part) = known.ok_or_else(|| fault(format!("`{part}`"), expected))?;
                    plan.offload = Some(*part);
                }
                "host" => {
                    let expected = "host experts N or host layers N, the first N layers of each stage";
                    let part = HostPart::parse(rest).ok_or_else(|| fault(format!("`{part}`"), expected))?;
                    if plan.host.replace(part).is_some() {
                        return Err(fault("host twice", "host once"));
                    }
                }
                _ => {
                    let work = WORKS.iter().find(|(name, _)| *name == first);
                    let (work, pools) = work.map_or((Role::Aggregated, part), |(_, work)| (*work, rest));
                    for one in pools.split('+') {
                        plan.pools.push(pool(work, one)?);
                    }
                }
            }
        }
        if plan.pools.is_empty() {
            return Err(fault(format!("`{text}`"), "at least one pool"));
        }
        Ok(plan)
    }
}

#[cfg(test)]
mod tests {
    use super::super::host_part::HostedTensors;
    use super::*;
    use proptest::prelude::*;

    const MOST: u64 = DEGREE.most as u64;

    fn degrees() -> impl Strategy<Value = Degrees> {
        let numbers = prop::collection::vec(prop::option::of(1..=MOST), Degree::stated().count());
        let stages = prop::option::of(prop::collection::vec(1u32..200, 1..9));
        (numbers, any::<bool>(), 1..=MOST, stages).prop_map(|(numbers, sp, replicas, stages)| {
            let mut degrees = Degrees { replicas: Some(replicas), ..Degrees::default() };
            for (degree, number) in Degree::stated().zip(numbers) {
                *degrees.get_mut(degree).unwrap() = number;
            }
            degrees.sp = sp.then_some(true);
            degrees.stages = stages.filter(|_| degrees.pp.is_some());
            // One device at least is written.
            let Degrees { pp, dp, cp, dcp, .. } = degrees;
            let plain = [pp, dp, cp, dcp].iter().all(Option::is_none) && !sp;
            degrees.tp = degrees.tp.or(plain.then_some(1));
            degrees
        })
    }

    fn plans() -> impl Strategy<Value = PlanText> {
        let pool = |work| {
            (degrees(), prop::option::of(1..=MOST)).prop_map(move |(degrees, concurrency)| PoolText {
                role: work,
                degrees,
                concurrency,
            })
        };
        let some = move |work| prop::collection::vec(pool(work), 0..4);
        let id = || prop::option::of("[a-z][a-z0-9_-]{0,12}");
        let offload = prop::option::of(prop::sample::select(&OFFLOADED[..]).prop_map(|(_, part)| part));
        let tensors = prop::sample::select(&HostedTensors::EACH[..]);
        let host =
            prop::option::of((tensors, 1u32..200).prop_map(|(tensors, layers)| HostPart { tensors, layers }));
        (some(Role::Prefill), some(Role::Decode), some(Role::Aggregated), (id(), id(), id()), (offload, host))
            .prop_filter_map(
                "no pool",
                |(prefill, decode, both, (weights, prefill_weights, kv), (offload, host))| {
                    let pools = [prefill, decode, both].concat();
                    let text = PlanText { pools, weights, prefill_weights, kv, offload, host };
                    (!text.pools.is_empty()).then_some(text)
                },
            )
    }

    proptest! {
        #[test]
        fn what_is_printed_parses_to_the_same_plan(plan in plans()) {
            let text = plan.to_string();
            let parsed: PlanText = text.parse().unwrap_or_else(|fault| panic!("{text}: {fault}"));
            prop_assert_eq!(&parsed, &plan, "{}", text);
        }

        #[test]
        fn no_text_is_a_fault_of_the_reader(text in "[ -~×]{0,80}") {
            let _ = text.parse::<PlanText>();
        }
    }

    #[test]
    fn a_plan_may_be_typed_as_people_type_it() {
        let same = |texts: &[&str]| {
            let plans: Vec<PlanText> = texts.iter().map(|text| text.parse().unwrap()).collect();
            plans.iter().for_each(|plan| assert_eq!(plan, &plans[0], "{texts:?}"));
        };
        same(&["2 x tp4 pp2[20, 12] @24", "2x tp4 pp2[20,12]@24", " 2 × tp4  pp2[20,12] @ 24 "]);
        same(&["prefill 2 x tp1 + 1 x tp2, decode 1 x tp4", "prefill 2x tp1+1x tp2, decode 1x tp4"]);
        same(&["both 1 x tp4, weights fp8, kv bf16", "1 x tp4 , kv bf16,weights fp8"]);
    }

    #[test]
    fn what_is_no_plan_is_refused_with_what_was_found() {
        for (text, found) in [
            ("", "``"),
            ("tq4", "`tq4`"),
            ("tp0", "`0` as tp"),
            ("tp4 tp2", "tp twice"),
            ("0 x tp4", "`0` as replicas"),
            ("tp4 @none", "`none` as concurrency"),
            ("tp2[4,4]", "`tp2[4,4]`"),
            ("pp2[4,", "`pp2[4,`"),
            ("tp4, weights", "`weights`"),
            ("tp4, kv a, kv b", "kv twice"),
            ("tp4, offload all", "`offload all`"),
            ("tp1, host experts", "`host experts`"),
            ("tp1, host kv 3", "`host kv 3`"),
            ("tp1, host experts 3, host layers 3", "host twice"),
            ("prefill", "``"),
            ("weights fp8", "`weights fp8`"),
        ] {
            let error = text.parse::<PlanText>().unwrap_err();
            assert_eq!((error.key.as_str(), error.found.as_str()), ("plan", found), "{text}");
        }
    }
}
