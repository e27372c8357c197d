//! `config`: the defaults of a problem without flags, and the source of each.

use super::defaults::{UserDefault, UserDefaults};
use super::output::OutputArgs;
use super::{CliError, ExitStatus};
use crate::report::sheet::csv;
use crate::report::table::table;
use crate::spec::error::Error;
use crate::spec::scenario::Scenario;
use crate::store::catalog::Catalog;
use crate::store::file;
use crate::store::resolved_scenario::{DEFAULT_HARDWARE, DEFAULT_MODEL};

const AFTER: &str = "\
Order: flag, scenario file, environment variable, defaults file, program.

The defaults file is $MANTILE_CONFIG, else defaults.toml or defaults.json in $MANTILE_HOME or ~/.config/mantile \
($XDG_CONFIG_HOME/mantile; on Windows %APPDATA%\\mantile). Its keys are those of a scenario file (mantile-opt schema \
scenario). Each key is also a variable: MANTILE_HARDWARE, MANTILE_MODEL, MANTILE_TTFT …

Example of ~/.config/mantile/defaults.toml:
  hardware = \"8xh100-sxm\"
  runtime = \"sglang\"
  objective = \"interactive\"
  ttft = \"500 ms\"
  tpot = \"30 ms\"
  electricity_usd_per_kwh = 0.21
  hours_per_day = 12";

const HEADER: [&str; 3] = ["key", "value", "source"];

#[derive(Clone, Debug, Default, clap::Args)]
#[command(after_long_help = AFTER)]
pub struct Config {
    #[command(flatten)]
    pub output: OutputArgs,
    #[arg(skip)]
    pub defaults: UserDefaults,
}

impl Config {
    pub fn run(&self, catalog: &Catalog) -> Result<ExitStatus, CliError> {
        let file = self.defaults.file.as_deref().map(file::shown);
        let all = self.values(catalog)?;
        let rows = all.iter().map(|one| {
            let text = one.value.as_str().map_or_else(|| one.value.to_string(), str::to_owned);
            vec![one.key.clone(), text, one.source.clone()]
        });
        let rows: Vec<Vec<String>> = rows.collect();
        let name = file.as_deref().unwrap_or("none");
        let text = format!("Defaults file: {name}\n\n{}", table(&HEADER, &rows));
        let value =
            |one: &UserDefault| serde_json::json!({"key": one.key, "value": one.value, "source": one.source});
        let value = serde_json::json!({"file": file, "defaults": all.iter().map(value).collect::<Vec<_>>()});
        self.output.plain(&text, &value, Some(csv(HEADER, rows)))
    }

    /// The user's defaults, and those of the program for other keys.
    fn values(&self, catalog: &Catalog) -> Result<Vec<UserDefault>, Error> {
        let mut all = self.defaults.all();
        let scenario = self.defaults.peek();
        let program = Scenario {
            model: Some(DEFAULT_MODEL.into()),
            hardware: Some(DEFAULT_HARDWARE.into()),
            ..Scenario::default()
        };
        let scenario = scenario.or(program);
        let hardware = scenario.hardware.as_deref().unwrap_or(DEFAULT_HARDWARE);
        let home = catalog.hardware(hardware).is_ok_and(|cluster| cluster.device.is_home());
        let (objective, workload) = catalog.objective_and_workload(&scenario, home)?;
        let time =
            |limit: Option<f64>| limit.map_or_else(|| "none".to_owned(), |seconds| format!("{seconds} s"));
        let of_workload = format!("program, workload {}", workload.id);
        let of_objective = format!("program, objective {}", objective.id);
        let known = [
            ("model", DEFAULT_MODEL.into(), "program"),
            ("hardware", DEFAULT_HARDWARE.into(), "program"),
            ("objective", objective.id.clone().into(), "program"),
            ("workload", workload.id.clone().into(), of_objective.as_str()),
            ("isl", workload.isl.into(), of_workload.as_str()),
            ("osl", workload.osl.into(), of_workload.as_str()),
            ("ttft", time(objective.limits.ttft).into(), of_objective.as_str()),
            ("tpot", time(objective.limits.tpot).into(), of_objective.as_str()),
            ("e2e", time(objective.limits.e2e).into(), of_objective.as_str()),
        ];
        for (key, value, source) in known {
            if !all.iter().any(|one| one.key == key) {
                all.push(UserDefault { key: key.into(), value, source: source.into() });
            }
        }
        Ok(all)
    }
}
