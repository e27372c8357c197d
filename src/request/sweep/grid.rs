//! The points of a sweep: the Cartesian product of its varied keys over a scenario.

use std::fmt::{self, Write};

use serde_json::{Map, Value};

use crate::request::simulate::SimulatedTraffic;
use crate::spec::deployment::Deployment;
use crate::spec::error::Error;
use crate::spec::json_fault::{PlainFault, plain};
use crate::spec::limits::POINTS;
use crate::spec::scenario::Scenario;
use crate::spec::value_reader::from_value;
use crate::spec::vary::{VariedKey, path, put};

/// Keys that exclude each other: a varied one replaces the other.
const EXCLUSIVE: [[&str; 2]; 2] = [["rate", "concurrency"], ["concurrency", "rate"]];

/// Keys whose values lead to files of the catalogue or of the user, or replace constants in them.
const NAMES: [&str; 13] = [
    "model",
    "hardware",
    "host",
    "network",
    "objective",
    "workload",
    "draft",
    "runtime",
    "weight_format",
    "prefill_weight_format",
    "decode_weight_format",
    "kv_format",
    "set",
];

/// Scenarios by number.
pub struct SweepGrid {
    scenario: Scenario,
    template: Value,
    axes: Vec<VariedKey>,
    paths: Vec<Vec<String>>,
    points: u64,
}

impl SweepGrid {
    /// Reads the varied keys.
    ///
    /// # Errors
    /// A key or value is faulty, a key comes twice, or there are too many points.
    pub fn new(scenario: &Scenario, vary: &[String]) -> Result<SweepGrid, Error> {
        SweepGrid::of(scenario, vary.iter().map(|text| VariedKey::parse(text)).collect::<Result<_, _>>()?)
    }

    /// The same of keys that are read.
    ///
    /// # Errors
    /// A key comes twice, there are too many points, or there is no key.
    pub fn of(scenario: &Scenario, axes: Vec<VariedKey>) -> Result<SweepGrid, Error> {
        let fault = |found: String, expected: &str, fix: &str| Err(Error::new("vary", found, expected, fix));
        if axes.is_empty() {
            let fix = "add e.g. `--vary tp=1,2,4,8` or `--vary isl=1k..64k*2`";
            return fault("no key".to_owned(), "at least one varied key", fix);
        }
        let has = |key: &str| axes.iter().filter(|axis| axis.key == key).count();
        if let Some(twice) = axes.iter().find(|axis| has(&axis.key) > 1) {
            return fault(format!("`{}` twice", twice.key), "each key once", "list all values in one --vary");
        }
        if has("rate") > 0 && has("concurrency") > 0 {
            let fix = "vary one of them: each determines the other";
            return fault("both rate and concurrency".to_owned(), "one of them", fix);
        }
        let product = axes.iter().try_fold(1u64, |all, axis| all.checked_mul(axis.values.len() as u64));
        let points = product.unwrap_or(u64::MAX);
        POINTS.check("vary", points as f64)?;
        let paths = axes.iter().map(|axis| path(&axis.key)).collect::<Result<Vec<_>, _>>()?;
        let mut template = serde_json::to_value(scenario).expect("a scenario has only text keys");
        for [varied, other] in EXCLUSIVE {
            if let (true, Value::Object(keys)) = (has(varied) > 0, &mut template) {
                keys.remove(other);
            }
        }
        Ok(SweepGrid { scenario: scenario.clone(), template, axes, paths, points })
    }

    pub fn scenario(&self) -> &Scenario {
        &self.scenario
    }

    pub fn axes(&self) -> &[VariedKey] {
        &self.axes
    }

    pub fn points(&self) -> u64 {
        self.points
    }

    /// Whether the deployment of every point is given.
    pub fn is_pinned(&self) -> bool {
        let given = self.scenario.deployment.as_ref().is_some_and(Deployment::is_stated);
        given || self.paths.iter().any(|path| path.len() > 1)
    }

    /// Index of the value of each key at a point; the last key changes fastest.
    fn indices(&self, point: u64) -> Vec<usize> {
        let mut rest = point;
        let mut indices = vec![0; self.axes.len()];
        for (index, axis) in indices.iter_mut().zip(&self.axes).rev() {
            let values = axis.values.len() as u64;
            *index = (rest % values) as usize;
            rest /= values;
        }
        indices
    }

    pub fn values(&self, point: u64) -> Map<String, Value> {
        let pairs = self.axes.iter().zip(self.indices(point));
        pairs.map(|(axis, at)| (axis.key.clone(), axis.values[at].clone())).collect()
    }

    pub fn at(&self, point: u64) -> Result<Scenario, Error> {
        let mut scenario = self.template.clone();
        for ((axis, path), at) in self.axes.iter().zip(&self.paths).zip(self.indices(point)) {
            put(&mut scenario, path, axis.values[at].clone());
        }
        read(scenario)
    }

    /// The scenario with each name that a key takes, one at a time.
    pub fn named(&self) -> impl Iterator<Item = Result<Scenario, Error>> + '_ {
        let named = |key: &str| NAMES.contains(&key);
        let pairs = self.axes.iter().zip(&self.paths).filter(move |(axis, _)| named(&axis.key));
        let each = pairs.flat_map(|(axis, path)| axis.values.iter().map(move |value| (path, value)));
        let first = std::iter::once(self.at(0));
        first.chain(each.map(|(path, value)| {
            let mut scenario = self.template.clone();
            put(&mut scenario, path, value.clone());
            read(scenario)
        }))
    }

    /// Fingerprint of the sweep in hexadecimal digits: of the version of the program, the scenario, the varied keys, the
    /// traffic of points that are simulated, and of all that `resolved` hands on of each scenario of [`named`](SweepGrid::named). Names are not enough: a model
    /// whose file was edited is another one.
    pub(super) fn fingerprint(
        &self,
        traffic: Option<&SimulatedTraffic>,
        resolved: impl Fn(&Scenario, &mut dyn FnMut(&dyn fmt::Debug)),
    ) -> Result<String, Error> {
        let parts = (env!("CARGO_PKG_VERSION"), &self.template, &self.axes);
        let mut hash = Fnv::new();
        hash.add(serde_json::to_string(&parts).expect("a scenario has only text keys").as_bytes());
        if let Some(traffic) = traffic {
            hash.add(serde_json::to_string(traffic).expect("traffic has only text keys").as_bytes());
        }
        for scenario in self.named() {
            resolved(&scenario?, &mut |part| writeln!(hash, "{part:?}").expect("a hash takes any text"));
        }
        Ok(format!("{:016x}", hash.0))
    }
}

fn read(scenario: Value) -> Result<Scenario, Error> {
    from_value::<Scenario>(&scenario).map_err(|fault| {
        let PlainFault { found, expected, .. } = plain(&fault.message, "a scenario");
        let expected = expected.unwrap_or_else(|| "a scenario".to_owned());
        Error::new("vary", found, expected, "correct the values of the varied keys")
    })
}

/// FNV-1a in 64 bits (Fowler, Noll, Vo 1991) of what is written: stable over versions and machines.
struct Fnv(u64);

impl Fnv {
    const fn new() -> Fnv {
        Fnv(0xcbf2_9ce4_8422_2325)
    }

    fn add(&mut self, bytes: &[u8]) {
        const PRIME: u64 = 0x0000_0100_0000_01b3;
        self.0 = bytes.iter().fold(self.0, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(PRIME));
    }
}

impl fmt::Write for Fnv {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.add(text.as_bytes());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_has_the_published_values() {
        let published =
            [("", 0xcbf2_9ce4_8422_2325), ("a", 0xaf63_dc4c_8601_ec8c), ("foobar", 0x8594_4171_f739_67e8)];
        for (text, value) in published {
            let mut hash = Fnv::new();
            text.chars().for_each(|letter| hash.add(letter.to_string().as_bytes()));
            assert_eq!(hash.0, value, "{text}");
        }
    }
}
