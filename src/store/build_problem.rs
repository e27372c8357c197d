//! From a resolved scenario to the search problem: machines in every format pair, prices, power, traffic.

use std::sync::Arc;

use super::catalog::Catalog;
use super::kind::measured_kinds;
use super::prediction_intervals::model_key;
use super::resolved_scenario::ResolvedScenario;
use crate::cost::machine::Machine;
use crate::cost::machine_builder::MachineBuilder;
use crate::plan::legal::has_experts;
use crate::quantity::datum::Datum;
use crate::quantity::unit::COUNT;
use crate::search::plan_space::PlanSpace;
use crate::search::problem::{Formats, Problem, Traffic};
use crate::serving::economy::{Bill, Facility, Owned, PowerDraw};
use crate::serving::terms::{LongestRequest, WorkloadInputs};
use crate::spec::constant::{AttentionKind, CalibrationKey};
use crate::spec::correction::CellCorrection;
use crate::spec::device::PriceRange;
use crate::spec::error::Error;
use crate::spec::evidence::{KindQuery, MeasuredKinds};
use crate::spec::figure::{Dollars, Figure};
use crate::spec::format::NumberFormat;
use crate::spec::precision::FormatOption;
use crate::spec::price::{PriceBasis, PricePart};
use crate::spec::runtime::{MemoryQuantiles, RequestsAtStart};
use crate::spec::scenario::Scenario;

impl ResolvedScenario {
    /// The search problem.
    pub fn problem(&self) -> Result<Problem, Error> {
        self.problem_on(|weights| {
            let Some(kv) = self.kv_formats.first() else { return Ok(vec![]) };
            let each: Vec<&NumberFormat> = self.kv_formats.iter().map(|kv| &kv.format).collect();
            self.builder(weights, kv).machines(&each)
        })
    }

    /// The same with the lengths, load and SLOs of `scenario`, which differs from this one in nothing else.
    pub fn with_traffic(&self, catalog: &Catalog, scenario: &Scenario) -> Result<ResolvedScenario, Error> {
        let (objective, workload) =
            catalog.objective_and_workload(scenario, self.cluster.device.is_home())?;
        let resolved = ResolvedScenario { objective, workload, ..self.clone() };
        resolved.prompt_fits()?;
        Ok(resolved)
    }

    /// The search problem on the machines of another one, which differs only in lengths, load and SLOs.
    pub fn problem_as(&self, other: &Problem) -> Result<Problem, Error> {
        self.problem_on(|weights| {
            let of = |kv: &FormatOption| {
                let same = |pair: &&Formats| pair.weights == weights.format.id && pair.kv == kv.format.id;
                match other.formats.iter().find(same) {
                    Some(pair) => Ok(pair.machine.clone()),
                    None => self.machine(weights, kv),
                }
            };
            self.kv_formats.iter().map(of).collect()
        })
    }

    fn problem_on(
        &self,
        machines: impl Fn(&FormatOption) -> Result<Vec<Machine<Datum>>, Error>,
    ) -> Result<Problem, Error> {
        let mut formats = Vec::new();
        for weights in &self.weight_formats {
            for (kv, machine) in self.kv_formats.iter().zip(machines(weights)?) {
                let mut pair = Formats::new(&weights.format, &kv.format, machine);
                if let Some(prefill) =
                    self.prefill_weights.as_ref().filter(|one| one.format.id != pair.weights)
                {
                    pair = pair.with_prefill(&prefill.format, self.machine(prefill, kv)?);
                }
                pair.intervals = Some(self.prediction_intervals(&weights.format.id));
                pair.memory_quantiles = self.memory_quantiles(&weights.format.id);
                formats.push(pair);
            }
        }
        if formats.is_empty() {
            let found = format!(
                "{}, which supports no weight or KV format on {}",
                self.runtime.name, self.cluster.device.name
            );
            let fix = "name a --weight-format and a --kv-format that it supports, or another --runtime";
            return Err(Error::new("weight-format", found, "a supported format", fix));
        }
        let mut problem = Problem::new(
            Arc::clone(&self.graph),
            self.cluster.clone(),
            &self.runtime,
            formats,
            self.workload_inputs(),
            self.traffic(),
            self.objective.limits,
            (self.objective.optimize.clone(), self.objective.pareto.clone()),
        )
        .with_runtime(self.rules());
        if self.stated_axes {
            problem = problem.over_axes(&self.objective.pareto);
        }
        problem.custom_router = self.custom_router;
        problem.most_sequences = self.max_num_seqs;
        problem.bill_bounds = self.bill_bounds();
        problem.offload = self.offload;
        problem.space = self.plan_space();
        Ok(problem.at_confidence(self.confidence))
    }

    /// The kinds of deployments that were measured, nearest to the question; `None` where models of its class never were.
    pub(super) fn kinds(&self) -> Option<MeasuredKinds> {
        let device = &self.cluster.device;
        let query = KindQuery {
            runtime: &self.runtime.id,
            vendor: device.vendor.name(),
            class: &device.class,
            experts: has_experts(&self.graph),
            drafts: self.graph.draft.is_some(),
        };
        MeasuredKinds::nearest(measured_kinds(), &query)
    }

    /// The plans that may be the answer.
    fn plan_space(&self) -> PlanSpace {
        PlanSpace {
            mode: self.mode,
            without: self.without,
            kinds: self.kinds(),
            rule: self.evidence,
            measured_only: false,
            most_degrees: None,
        }
    }

    /// Cost of a device on the basis of the scenario, where its price is known.
    pub fn bill(&self) -> Option<Bill<Datum>> {
        match self.economics.basis {
            PriceBasis::Rented => self.economics.rent.as_ref().map(|rent| Bill::Rented(rent.datum("rent"))),
            PriceBasis::Owned => self.owned(|part| &part.price).map(Bill::Owned),
        }
    }

    /// The same, where such a device is offered: the share of a board or of a cloud's instance has a cost, but is never
    /// sold.
    pub fn offered_bill(&self) -> Option<Bill<Datum>> {
        let offered = self.economics.basis == PriceBasis::Rented || self.cluster.for_sale;
        self.bill().filter(|_| offered)
    }

    /// Power that comes on top of that of a device.
    fn facility(&self) -> Facility<Datum> {
        Facility {
            node_power: self.economics.node_power.datum("node_power"),
            pue: self.economics.pue.datum("pue"),
        }
    }

    /// Inputs for the cost of an owned device, with one price of each part.
    fn owned(&self, price: impl Fn(&PricePart) -> &Figure<Dollars>) -> Option<Owned<Datum>> {
        let economics = &self.economics;
        let bought = economics.purchase.as_ref()?;
        Some(Owned {
            purchase: price(&bought.device).datum("purchase"),
            host: price(&bought.host).datum("host"),
            network: price(&bought.network).datum("network"),
            amortization: economics.amortization.datum("amortization"),
            utilization: economics.utilization.datum("utilization"),
            electricity: economics.electricity.datum("electricity"),
            pue: economics.pue.datum("pue"),
            node_power: economics.node_power.datum("node_power"),
        })
    }

    /// Range of the cost, from the bounds of its prices.
    pub fn bill_bounds(&self) -> Option<[Bill<Datum>; 2]> {
        let economics = &self.economics;
        match economics.basis {
            PriceBasis::Rented => {
                let PriceRange { low, high } = economics.rent_bounds.as_ref()?;
                Some([low, high].map(|rent| Bill::Rented(rent.datum("rent"))))
            }
            PriceBasis::Owned => {
                let parts = economics.purchase.as_ref()?.parts();
                parts.iter().find(|part| part.bounds.is_some())?;
                let [low, high] = [false, true].map(|high| self.owned(|part| part.end(high)));
                Some([Bill::Owned(low?), Bill::Owned(high?)])
            }
        }
    }

    /// Properties of the model and its traffic that a runtime's fit depends on.
    pub fn calibration_key(&self) -> CalibrationKey {
        CalibrationKey {
            attention: self.graph.attention_kind().unwrap_or(AttentionKind::Full),
            experts: has_experts(&self.graph),
            equal_lengths: self.workload.equal_lengths,
            version: self.runtime_version.clone(),
            link: self.cluster.link_kind(),
            model: model_key(&self.graph),
        }
    }

    /// The factors of one's own measurements of such problems in this weight format.
    pub fn correction(&self, weight_format: &str) -> Option<&CellCorrection> {
        self.runtime.correction(|| model_key(&self.graph), &self.cluster.device, weight_format)
    }

    /// Quantiles of measured / predicted memory: of one's own measurements, else those of the runtime.
    fn memory_quantiles(&self, weight_format: &str) -> Option<MemoryQuantiles> {
        let own = self.correction(weight_format).and_then(|one| Some((one.memory?.quantiles(), one)));
        own.map(|(quantiles, one)| MemoryQuantiles { quantiles, source: one.source.clone() })
            .or_else(|| self.runtime.memory.measured.clone())
    }

    pub fn machine(&self, weights: &FormatOption, kv: &FormatOption) -> Result<Machine<Datum>, Error> {
        self.builder(weights, kv).machine()
    }

    fn builder<'a>(&'a self, weights: &'a FormatOption, kv: &'a FormatOption) -> MachineBuilder<'a> {
        MachineBuilder {
            cluster: &self.cluster,
            runtime: &self.runtime,
            weights: &weights.format,
            kv: &kv.format,
            native: &self.native.format,
            calibration_key: self.calibration_key(),
            correction: self.correction(&weights.format.id),
        }
    }

    pub fn traffic(&self) -> Traffic {
        match (self.workload.concurrency, self.workload.rate) {
            (Some(concurrency), _) => Traffic::InFlight(concurrency.into()),
            (None, Some(rate)) => Traffic::Rate(rate),
            (None, None) => Traffic::Free,
        }
    }

    /// Different prefixes of the traffic, where the runtime stores each once for all their requests.
    pub(super) fn shared_prefixes(&self) -> Option<u64> {
        let shares = self.runtime.memory.shared_prefixes.is_some();
        shares.then_some(self.workload.prefix_groups.unwrap_or(1))
    }

    fn workload_inputs(&self) -> WorkloadInputs {
        let device = &self.cluster.device;
        let economics = &self.economics;
        let memory = &self.runtime.memory;
        let every_slot =
            memory.at_start.as_ref().is_some_and(|held| held.requests == RequestsAtStart::EverySlot);
        WorkloadInputs {
            lengths: self.lengths(),
            longest: self.max_model_len.map(|tokens| LongestRequest { tokens, every_slot }),
            shared_prefixes: self.shared_prefixes(),
            images: self.graph.image_inputs.as_ref().map(|seen| (seen.images, seen.tokens)),
            power_draw: device.power.as_ref().map(|power| PowerDraw {
                tdp: power.tdp.datum("tdp"),
                idle: economics.idle_power.datum("idle_power"),
                compute_bound: economics.compute_bound_power.datum("compute_bound_power"),
                memory_bound: economics.memory_bound_power.datum("memory_bound_power"),
            }),
            bill: self.bill(),
            serving_time: Some(economics.serving_time.datum("serving_time")),
            facility: Some(self.facility()),
            host_link: device.host_link.as_ref().map(|link| link.bandwidth.datum("host_bandwidth")),
            acceptance: self.acceptance.map(|stated| {
                Datum::stated(
                    "acceptance",
                    stated,
                    COUNT,
                    "scenario: acceptance, a measurement of the traffic",
                )
            }),
            tail: self.workload.rate.map(|_| self.workload.percentile.unwrap_or_default()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::answer::report_deployment;
    use crate::search::outcome::Status;
    use crate::search::run::{UNWATCHED, run};

    fn pose(scenario: Scenario) -> Problem {
        ResolvedScenario::resolve(&Catalog::default(), &scenario).unwrap().problem().unwrap()
    }

    #[test]
    fn a_posed_question_is_answered() {
        let problem = pose(Scenario::of("Llama-3.1-8B", "1xh100"));
        let pairs: Vec<_> = problem.formats.iter().map(|f| (f.weights.as_str(), f.kv.as_str())).collect();
        assert_eq!(pairs, [("bf16", "bf16"), ("fp8", "bf16")]);
        assert_eq!(run(&problem, &UNWATCHED).status, Status::Optimal);
    }

    #[test]
    fn a_device_is_rented_where_a_rent_is_known_and_else_bought() {
        let rented = |hardware: &str, stated: Scenario| {
            let problem = pose(stated.or(Scenario::of("Llama-3.1-8B", hardware)));
            match problem.workload.bill {
                Some(Bill::Rented(_)) => Some(true),
                Some(Bill::Owned(_)) => Some(false),
                None => None,
            }
        };
        assert_eq!(rented("8xh100", Scenario::default()), Some(true));
        assert_eq!(rented("1xm4-max", Scenario::default()), Some(false));
        assert_eq!(
            rented("1xm4-max", Scenario { usd_per_device_hour: Some(1.0), ..Scenario::default() }),
            Some(true)
        );
        assert_eq!(
            rented("8xh100", Scenario { amortization_months: Some(48.0), ..Scenario::default() }),
            Some(false)
        );
    }

    /// A rent between 2.35 and 6.88 USD/h, of which 2.95 are billed; a purchase between 25,000 and 30,000 USD, of
    /// which 30,000 are; and an eighth of a server between 30,000 and 70,000 USD, of which 32,010 are.
    #[test]
    fn bounds_of_a_price_become_bounds_of_the_cost() {
        let cost = |scenario: Scenario| {
            let problem = pose(scenario.or(Scenario::of("Llama-3.1-8B", "1xh100")));
            let best = run(&problem, &UNWATCHED).best.unwrap();
            let reported = report_deployment(&problem, &best.candidate);
            (reported.price_bounds, reported.metrics.unwrap())
        };
        let (bounds, metrics) = cost(Scenario::default());
        let (bounds, usd) = (bounds.unwrap(), metrics.usd_per_mtok.unwrap());
        let near =
            |found: f64, by_hand: f64| assert!((found / by_hand - 1.0).abs() < 1e-12, "{found} {by_hand}");
        near(bounds.low.usd_per_mtok, usd * 2.35 / 2.95);
        near(bounds.high.usd_per_mtok, usd * 6.88 / 2.95);
        let (owned, metrics) = cost(Scenario { pue: Some(1.0), ..Scenario::default() });
        let (owned, usd) = (owned.unwrap(), metrics.usd_per_mtok.unwrap());
        let [low, billed, high] = [(25e3, 30e3), (30e3, 32_010.0), (30e3, 70e3)]
            .map(|(device, host): (f64, f64)| device + host / 8.0);
        let (above, below) = (owned.high.usd_per_mtok - usd, usd - owned.low.usd_per_mtok);
        near(above / below, (high - billed) / (billed - low));
        assert!(owned.low.usd_per_mtok > usd * low / billed, "electricity stays");
        let (stated, _) = cost(Scenario { usd_per_device_hour: Some(2.0), ..Scenario::default() });
        assert!(stated.is_none(), "a price that is stated has no bounds");
    }

    #[test]
    fn traffic_is_what_the_scenario_states() {
        let traffic = |concurrency, rate| pose(Scenario { concurrency, rate, ..Scenario::default() }).traffic;
        assert_eq!(traffic(None, None), Traffic::Free);
        assert_eq!(traffic(Some(7), None), Traffic::InFlight(7.into()));
        assert_eq!(traffic(None, Some(2.5)), Traffic::Rate(2.5));
    }
}
