//! The launch of a placement: commands, and files that run them.

use crate::launch::deployment::{Deployed, LaunchedRuntime};
use crate::launch::files::Case;
use crate::launch::placed::{Placed, PlacedStage, orders};
use crate::launch::settings::LaunchModel;
use crate::report::launch::LaunchReport;
use crate::report::number::{digits, time};
use crate::report::place::{PlacementReport, StageReport};
use crate::request::launch::{
    context_overrides, launch_model, launch_report, lender_of, model_hint, unlisted,
};
use crate::search::placement::price::{MemberPrices, PlacementProblem, PlacementWork};
use crate::search::placement::solve::SolvedPlacement;
use crate::spec::error::Error;
use crate::spec::launch::Launch;
use crate::spec::option_table::OptionTable;
use crate::spec::placing::PlacementScenario;
use crate::spec::runtime::Runtime;
use crate::spec::setting::Setting;
use crate::spec::visible::visible;
use crate::store::catalog::Catalog;
use crate::store::rig::{DevicePlace, ResolvedRig};

pub(super) struct PlacedSolution<'a> {
    pub(super) problem: &'a PlacementProblem,
    pub(super) solved: &'a SolvedPlacement,
    pub(super) report: &'a PlacementReport,
}

/// The launch of a runtime, with that of the program that lends the devices of further hosts.
struct RuntimeLaunch {
    launch: Launch,
    table: OptionTable,
    remote: Option<(Launch, OptionTable)>,
}

impl RuntimeLaunch {
    /// The launch of `runtime`, where the catalogue has one.
    fn load(catalog: &Catalog, runtime: &Runtime) -> Result<Option<RuntimeLaunch>, Error> {
        let Some((launch, table)) = catalog.launch_of(&runtime.id)? else { return Ok(None) };
        let remote = lender_of(catalog, &launch)?;
        Ok(Some(RuntimeLaunch { launch, table, remote }))
    }

    fn deployed(&self, solution: &PlacedSolution, rigged: &ResolvedRig, model: &LaunchModel) -> Deployed<'_> {
        let remote = self.remote.as_ref().map(|(one, table)| (one, table));
        let known = LaunchedRuntime { own: (&self.launch, &self.table), remote };
        let mut deployed = Deployed::placed(known, &solution.placed(rigged), model);
        deployed.refused.extend(solution.refused(&solution.runtimes(rigged)));
        deployed
    }
}

/// Why no software starts a placement; empty where the catalogue knows no reason.
pub(super) fn refusals(
    catalog: &Catalog,
    rigged: &ResolvedRig,
    solution: &PlacedSolution,
) -> Result<Vec<String>, Error> {
    let runtimes = solution.runtimes(rigged);
    let Some(runtime) = runtimes.first() else { return Ok(vec![]) };
    let Some(known) = RuntimeLaunch::load(catalog, runtime)? else { return Ok(solution.refused(&runtimes)) };
    Ok(known
        .deployed(solution, rigged, &launch_model(&rigged.model, &rigged.weights, runtime, &known.launch))
        .missing())
}

/// Whether the launch of a rig states how many layers each stage has; else the runtime divides them evenly.
pub(super) fn divides_freely(catalog: &Catalog, rigged: &ResolvedRig) -> Result<bool, Error> {
    let Some(runtime) = rigged.runtimes.first() else { return Ok(true) };
    let Some((launch, _)) = catalog.launch_of(&runtime.id)? else { return Ok(true) };
    let layers = [Setting::StageLayers, Setting::TensorSplit];
    Ok(launch.settings.iter().any(|option| layers.contains(&option.setting)))
}

pub(super) fn launch_placed(
    catalog: &Catalog,
    scenario: &PlacementScenario,
    rigged: &ResolvedRig,
    solution: &PlacedSolution,
) -> Result<LaunchReport, Error> {
    let runtimes = solution.runtimes(rigged);
    let Some(runtime) = runtimes.first() else { return Ok(LaunchReport::default()) };
    let Some(known) = RuntimeLaunch::load(catalog, runtime)? else { return Ok(unlisted(runtime)) };
    let (launch, placed) = (&known.launch, solution.placed(rigged));
    let (overrides, _) = context_overrides(scenario.set.as_deref(), &rigged.model);
    let overrides = overrides.map(|keys| keys.to_string());
    let model = LaunchModel { overrides, ..launch_model(&rigged.model, &rigged.weights, runtime, launch) };
    let deployed = known.deployed(solution, rigged, &model);
    let [device_order, remote_order] = orders(launch, &placed);
    let case = Case {
        model: rigged.model.name.clone(),
        model_id: model.id.clone(),
        hardware: visible(&rigged.rig.name).into_owned(),
        flags: visible(&scenario.flags()).into_owned(),
        plan: visible(&solution.plan()).into_owned(),
        runtime: runtime.name.clone(),
        model_hint: model_hint(launch, &rigged.model.name, &placed.weights),
        one_file: launch.model_file.as_ref().is_some_and(|hint| hint.one_file),
        isl: placed.lengths.isl,
        osl: placed.lengths.osl,
        prefix: placed.lengths.prefix,
        rate: None,
        concurrency: placed.concurrency,
        predicted: solution.predicted(),
        ngl: None,
        ncmoe: None,
        device_order: visible(&device_order).into_owned(),
        remote_order: visible(&remote_order).into_owned(),
    };
    launch_report(&runtime.id, &deployed, Some(&case))
}

impl PlacedSolution<'_> {
    /// The runtimes of the devices in use, each once.
    fn runtimes<'a>(&self, rigged: &'a ResolvedRig) -> Vec<&'a Runtime> {
        let places = rigged.places_of(self.problem);
        let seats = self.solved.stages.iter().filter_map(|stage| places[stage.member].first());
        let mut runtimes: Vec<&Runtime> = seats.map(|place| &rigged.runtimes[place.seat]).collect();
        let mut seen: Vec<&str> = Vec::new();
        runtimes.retain(|runtime| {
            let new = !seen.contains(&runtime.id.as_str());
            seen.push(&runtime.id);
            new
        });
        runtimes
    }

    fn placed(&self, rigged: &ResolvedRig) -> Placed {
        let places = rigged.places_of(self.problem);
        let stage = |stage: &crate::search::placement::chain::Stage| PlacedStage {
            name: visible(&self.problem.members[stage.member].name).into_owned(),
            layers: (stage.to - stage.from) as u64,
            hosts: places[stage.member].iter().map(|place| place.host).collect(),
        };
        let chips =
            || self.solved.stages.iter().map(|stage| &self.problem.members[stage.member].machine.chip);
        let used: Vec<_> = self.solved.stages.iter().flat_map(|stage| places[stage.member]).collect();
        let host = |place: &DevicePlace| used.iter().any(|one| one.host == place.host);
        let experts = self.report.stages.iter().filter(|stage| stage.offloaded_bytes > 0.0);
        Placed {
            stages: self.solved.stages.iter().map(stage).collect(),
            host_experts: experts
                .filter_map(|stage| stage.experts_out)
                .flat_map(|(first, last)| first..=last)
                .collect(),
            lengths: self.problem.lengths,
            max_context: self.problem.graph.max_context,
            concurrency: self.problem.concurrency,
            // The least of all devices: each is priced for it or more.
            token_budget: chips().map(|chip| chip.max_batched_tokens.value as u64).min().unwrap_or(1),
            memory_share: chips().map(|chip| chip.utilization.value).fold(1.0, f64::min),
            has_idle: rigged.places.iter().filter(|place| host(place)).count() > used.len(),
            weights: rigged.weights.format.id.clone(),
            kv: rigged.kv.format.id.clone(),
        }
    }

    /// Parts of the placement that no runtime has options for, with the nearest.
    fn refused(&self, runtimes: &[&Runtime]) -> Vec<String> {
        let mut refused = Vec::new();
        if runtimes.len() > 1 {
            let names: Vec<&str> = runtimes.iter().map(|runtime| runtime.id.as_str()).collect();
            let nearest = "its nearest is one --runtime for all devices";
            refused.push(format!("stages in several runtimes ({}): {nearest}", names.join(", ")));
        }
        if self.solved.copies.iter().any(|copies| !copies.is_empty()) {
            let nearest = "its nearest is every device in one stage, or a server on each";
            refused.push(format!("several devices with the same layers: {nearest}"));
        }
        // Experts can stay in host memory by layer; other parts cannot.
        let work = PlacementWork::Token(self.solved.batches.1);
        let chain = MemberPrices::new(self.problem).chain(work).chain;
        let hosted = |stage: &&StageReport| stage.offloaded_bytes > 0.0;
        let within = self.solved.stages.iter().all(|stage| {
            let experts: u64 = chain.members[stage.member].experts[stage.from..stage.to].iter().sum();
            chain.over(stage) <= experts
        });
        if self.report.stages.iter().any(|stage| hosted(&stage)) && !within {
            let nearest = "its nearest is whole layers, or the experts of layers";
            refused.push(format!("parts of layers in host memory: {nearest}"));
        }
        refused
    }

    fn plan(&self) -> String {
        let stage = |stage: &StageReport| {
            let shared = if stage.devices > 1 { format!(" tp{}", stage.devices) } else { String::new() };
            format!("{}{shared}: layers {}-{}", stage.member, stage.first_layer, stage.last_layer)
        };
        self.report.stages.iter().map(stage).collect::<Vec<_>>().join("; ")
    }

    /// The predictions that a benchmark can confirm.
    fn predicted(&self) -> Vec<String> {
        vec![
            format!("Prefill {}", time(self.report.prefill_ms)),
            format!("Decode step {}", time(self.report.token_ms)),
            format!("E2E of one request {}", time(self.report.request_ms)),
            format!("Output {} tok/s in decode", digits(self.report.decode_tok_s)),
        ]
    }
}
