//! The loads of a measurement: every combination of lengths and of clients or rates.

use std::sync::Arc;

use super::trace::BenchTrace;
use crate::spec::error::Error;
use crate::spec::limits::{CONCURRENCY, ISL, OSL, RATE};
use crate::spec::run::{RunMethod, RunRecord, load_in_words};
use crate::spec::scenario::Scenario;
use crate::spec::vary::VariedKey;

/// A load.
#[derive(Clone, Debug, PartialEq)]
pub enum PointLoad {
    /// Clients, each of which sends its next request after its last answer.
    Clients(u64),
    /// Requests per second, and the coefficient of variation of the gaps between them.
    Rate { per_s: f64, variation: f64 },
    /// Requests at the times of a trace, with its lengths.
    Trace(Arc<BenchTrace>),
}

/// Lengths and a load.
#[derive(Clone, Debug, PartialEq)]
pub struct LoadPoint {
    /// Tokens of a prompt; of a trace, their mean.
    pub isl: u64,
    /// Tokens of an answer; of a trace, their mean.
    pub osl: u64,
    pub load: PointLoad,
}

/// A prepared list of loads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "cli", derive(clap::ValueEnum))]
pub enum BenchSuite {
    /// Two loads of short prompts: does it work?
    Smoke,
    /// Prompts of 256 to 8K tokens, 1 to 16 clients
    Standard,
    /// Prompts of 256 to 32K tokens, 1 to 32 clients
    Full,
}

impl BenchSuite {
    /// Prompt lengths, the length of answers, and clients.
    const fn grid(self) -> (&'static [u64], u64, &'static [u64]) {
        match self {
            BenchSuite::Smoke => (&[256], 32, &[1, 4]),
            BenchSuite::Standard => (&[256, 2048, 8192], 128, &[1, 4, 16]),
            BenchSuite::Full => (&[256, 2048, 8192, 32_768], 128, &[1, 2, 4, 8, 16, 32]),
        }
    }

    /// Its loads.
    pub fn points(self) -> Vec<LoadPoint> {
        let (prompts, osl, clients) = self.grid();
        let of =
            |isl: u64| clients.iter().map(move |of| LoadPoint { isl, osl, load: PointLoad::Clients(*of) });
        prompts.iter().copied().flat_map(of).collect()
    }
}

impl LoadPoint {
    /// Keys that a measurement can vary at a server that runs.
    pub const KEYS: [&str; 4] = ["isl", "osl", "concurrency", "rate"];

    /// The load of a trace.
    pub fn of_trace(trace: Arc<BenchTrace>) -> LoadPoint {
        let Scenario { isl, osl, .. } = trace.means();
        LoadPoint { isl: isl.unwrap_or(1), osl: osl.unwrap_or(1), load: PointLoad::Trace(trace) }
    }

    /// This load with every combination of the varied keys; the last key changes fastest.
    ///
    /// # Errors
    /// A key is none of a load, or varies both clients and a rate.
    pub fn varied(self, variation: f64, keys: &[VariedKey]) -> Result<Vec<LoadPoint>, Error> {
        let named = |name: &str| keys.iter().any(|one| one.key == name);
        if named("concurrency") && named("rate") {
            let fix = "vary one of them; measure the other in a second command";
            return Err(Error::new("vary", "both concurrency and rate", "clients, or a rate", fix));
        }
        let mut points = vec![self];
        for key in keys {
            let mut all = vec![];
            for point in points {
                for value in &key.values {
                    all.push(point.clone().with(&key.key, variation, value.as_f64())?);
                }
            }
            points = all;
        }
        Ok(points)
    }

    /// The load for which a server is started that all of these loads are sent to: the longest texts, and the most
    /// requests at a time.
    pub fn largest<'a>(points: impl Iterator<Item = &'a LoadPoint> + Clone) -> Option<LoadPoint> {
        let isl = points.clone().map(|point| point.isl).max()?;
        let osl = points.clone().map(|point| point.osl).max()?;
        let size = |load: &PointLoad| match load {
            PointLoad::Clients(clients) => *clients as f64,
            PointLoad::Rate { per_s, .. } => *per_s,
            PointLoad::Trace(trace) => trace.means().rate.unwrap_or(0.0),
        };
        let load = points.map(|point| &point.load).max_by(|a, b| size(a).total_cmp(&size(b)))?;
        Some(LoadPoint { isl, osl, load: load.clone() })
    }

    fn with(self, key: &str, variation: f64, value: Option<f64>) -> Result<LoadPoint, Error> {
        let unknown = || {
            let fix = "vary these keys; others with --launch, which starts a server for each of their values";
            let expected = format!("one of {}", LoadPoint::KEYS.join(", "));
            Error::new("vary", format!("`{key}`"), expected, fix)
        };
        let value = value.ok_or_else(unknown)?;
        let limit = match key {
            "isl" => ISL,
            "osl" => OSL,
            "concurrency" => CONCURRENCY,
            "rate" => RATE,
            _ => return Err(unknown()),
        };
        limit.check(key, value)?;
        Ok(match key {
            "isl" => LoadPoint { isl: value as u64, ..self },
            "osl" => LoadPoint { osl: value as u64, ..self },
            "concurrency" => LoadPoint { load: PointLoad::Clients(value as u64), ..self },
            _ => LoadPoint { load: PointLoad::Rate { per_s: value, variation }, ..self },
        })
    }

    /// Whether `record` is a run of this load, by the same interface.
    pub(super) fn is_of(&self, record: &RunRecord, protocol: &str) -> bool {
        let load = match &self.load {
            PointLoad::Clients(clients) => record.concurrency == Some(*clients),
            PointLoad::Rate { per_s, variation } => {
                (record.rate_per_s, record.arrival_variation) == (Some(*per_s), Some(*variation))
            }
            PointLoad::Trace(trace) => record.trace() == Some(&trace.described),
        };
        let same = |method: &RunMethod| {
            (method.isl, method.osl, method.protocol.as_str()) == (self.isl, self.osl, protocol)
        };
        load && record.method.as_ref().is_some_and(same)
    }

    /// Requests that are in flight at the same time, at most, where the load says so.
    pub fn clients(&self) -> Option<u64> {
        match self.load {
            PointLoad::Clients(clients) => Some(clients),
            PointLoad::Rate { .. } | PointLoad::Trace(_) => None,
        }
    }

    /// Requests per second, where the load is a rate.
    pub fn rate_per_s(&self) -> Option<f64> {
        match self.load {
            PointLoad::Rate { per_s, .. } => Some(per_s),
            PointLoad::Clients(_) | PointLoad::Trace(_) => None,
        }
    }

    /// The trace, where the load is one.
    pub(super) fn trace(&self) -> Option<&Arc<BenchTrace>> {
        match &self.load {
            PointLoad::Trace(trace) => Some(trace),
            PointLoad::Clients(_) | PointLoad::Rate { .. } => None,
        }
    }

    /// The load in words.
    pub fn load_text(&self) -> String {
        let plain = || load_in_words(self.clients(), self.rate_per_s());
        self.trace().map_or_else(plain, |trace| trace.described.words())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const POINT: LoadPoint = LoadPoint { isl: 100, osl: 10, load: PointLoad::Clients(1) };

    fn varied(texts: &[&str]) -> Result<Vec<LoadPoint>, Error> {
        let keys: Vec<VariedKey> = texts.iter().map(|text| VariedKey::parse(text).unwrap()).collect();
        POINT.varied(1.0, &keys)
    }

    #[test]
    fn every_combination_is_a_load_and_other_keys_are_refused() {
        let points = varied(&["isl=1k,2k", "concurrency=1..4*2"]).unwrap();
        let seen: Vec<_> = points.iter().map(|point| (point.isl, point.osl, point.clients())).collect();
        let of = |isl| [1, 2, 4].map(|clients| (isl, 10, Some(clients)));
        assert_eq!(seen, [of(1000), of(2000)].concat());
        let rates = varied(&["rate=0.5,2"]).unwrap();
        assert_eq!(rates[1].load, PointLoad::Rate { per_s: 2.0, variation: 1.0 });
        assert!(varied(&["tp=1,2"]).unwrap_err().fix.contains("--launch"));
        assert!(varied(&["model=x"]).unwrap_err().expected.contains("concurrency"));
        assert_eq!(varied(&["rate=1", "concurrency=1"]).unwrap_err().key, "vary");
        assert_eq!(BenchSuite::Standard.points().len(), 9);
    }
}
