//! `optimize`: the best deployment and the Pareto front.

use std::io::Write;
use std::path::{Path, PathBuf};

use super::deadline::with_deadline;
use super::emit::EmitArgs;
use super::output::OutputArgs;
use super::place::PlaceArgs;
use super::plot::PlotArgs;
use super::problem::ProblemArgs;
use super::progress::is_quiet;
use super::terminal::width;
use super::trace::TraceArgs;
use super::{CliError, ExitStatus, workbook};
use crate::report::format::Format;
use crate::report::pretty::pretty;
use crate::report::result::OptimizeResult;
use crate::report::rows::front_csv;
use crate::report::svg::deployment::optimize_picture;
use crate::report::text::front::front_listed;
use crate::report::text::screen;
use crate::request::optimize::{OptimizeRequest, optimize};
use crate::request::place::of_scenario;
use crate::request::timeline::answer_timeline;
use crate::spec::deployment::Deployment;
use crate::spec::error::Error;
use crate::spec::front_points::FrontPoints;
use crate::spec::limits::{TIME_LIMIT, number};
use crate::store::catalog::Catalog;
use crate::store::file;

#[derive(Clone, Debug, Default, clap::Args)]
pub struct Optimize {
    #[command(flatten)]
    pub problem: ProblemArgs,
    /// Show everything: memory, breakdown, alternatives, Pareto front, sources, search
    #[arg(long, help_heading = "Output")]
    pub detail: bool,
    /// Show the analysis: whether to disaggregate, best of each strategy, crossover to the runner-up, sensitivity to constraints
    #[arg(long, help_heading = "Output")]
    pub why: bool,
    /// Simulate the best plans request by request, also where no percentile of a rate calls for it
    #[arg(long, help_heading = "Output")]
    pub check: bool,
    /// Stop after S seconds and report the best found so far [default: no limit]
    #[arg(long, value_name = "S", value_parser = number(&TIME_LIMIT), help_heading = "Search space")]
    pub time_limit: Option<f64>,
    #[command(flatten)]
    pub emit: EmitArgs,
    /// Where the timeline of the best deployment is written.
    #[command(flatten)]
    pub trace: TraceArgs,
    #[command(flatten)]
    pub output: OutputArgs,
    /// Write the Pareto front to a file; the ending selects CSV or JSON
    #[arg(long, value_name = "FILE.csv|.json", help_heading = "Output")]
    pub pareto_out: Option<PathBuf>,
    /// Points of the Pareto front to list; a longer one is thinned to points that represent it [default: 1000]
    #[arg(long, value_name = "N|all", help_heading = "Output")]
    pub front: Option<FrontPoints>,
    #[command(flatten)]
    pub plot: PlotArgs,
}

impl Optimize {
    pub fn run(&self, catalog: &Catalog) -> Result<ExitStatus, CliError> {
        let request = self.request()?;
        self.plot.check()?;
        self.output.check::<OptimizeResult>()?;
        let in_workbook = self.output.format() == Format::Xlsx;
        let front_ending = self.pareto_out.as_deref().map(FrontEnding::of).transpose()?;
        // A rig has heterogeneous devices: the problem is a placement of layers.
        if request.scenario.hardware.as_deref().is_some_and(|name| catalog.has_rig(name)) {
            if in_workbook {
                let fix = "use --format json, or a system of equal devices";
                return Err(Error::new("format", "xlsx, for a rig", "table, json or csv", fix).into());
            }
            let scenario = of_scenario(catalog, request.scenario)?;
            let (time_limit, detail, output) = (self.time_limit, self.detail, self.output.clone());
            let emit = self.emit.clone();
            return PlaceArgs { scenario, time_limit, detail, emit, output, ..PlaceArgs::default() }
                .run(catalog);
        }
        self.problem.save(catalog, &request.scenario)?;
        let report = with_deadline(self.time_limit, |control| optimize(catalog, &request, control))?;
        if let (Some(path), Some(ending)) = (&self.pareto_out, front_ending) {
            let text = match ending {
                FrontEnding::Csv => front_csv(&report),
                FrontEnding::Json => pretty(&report.front),
            };
            file::write(path, &text)?;
        }
        self.plot.write(|| optimize_picture(&report))?;
        self.emit.write(report.launch.iter().map(|launch| (None, launch)))?;
        self.trace.write(|| {
            let best = report.best.as_ref()?;
            let scenario = report.scenario.as_ref()?;
            Some(answer_timeline(catalog, scenario, &best.notation))
        })?;
        if in_workbook {
            if !workbook::write(&self.output, catalog, &report)? {
                workbook::note(&screen::optimize(&report, width()))?;
            }
            return Ok(report.status.into());
        }
        self.output.answer(&report, self.detail)?;
        let rows_only = self.pareto_out.is_some() || self.output.format() == Format::Csv;
        if let Some(thinned) = front_listed(&report).filter(|_| rows_only && !is_quiet()) {
            writeln!(anstream::stderr(), "note: {thinned}; --front all lists all")?;
        }
        Ok(report.status.into())
    }

    pub fn request(&self) -> Result<OptimizeRequest, Error> {
        Ok(OptimizeRequest {
            scenario: self.problem.scenario(&Deployment::default())?,
            why: self.why,
            check: self.check.then_some(true),
            max_front_points: self.front,
        })
    }
}

#[derive(Clone, Copy)]
enum FrontEnding {
    Csv,
    Json,
}

impl FrontEnding {
    /// By the ending of the file.
    fn of(path: &Path) -> Result<FrontEnding, Error> {
        if path.as_os_str() == "-" {
            return Ok(FrontEnding::Json);
        }
        match path.extension().and_then(|ending| ending.to_str()).map(str::to_lowercase).as_deref() {
            Some("csv") => Ok(FrontEnding::Csv),
            Some("json") => Ok(FrontEnding::Json),
            _ => {
                let (found, fix) = (format!("`{}`", path.display()), "write e.g. --pareto-out front.csv");
                Err(Error::new("pareto-out", found, "a file that ends in .csv or .json", fix))
            }
        }
    }
}
