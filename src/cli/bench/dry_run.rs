//! The loads of a measurement as a table, with their time and cost by their estimates.

use super::Estimated;
use crate::bench::BenchSettings;
use crate::report::table::table;
use crate::spec::visible::visible;

/// Loads of deployments, and what the rules leave out.
pub(super) struct DryRun {
    settings: BenchSettings,
    /// Whether there are several deployments, which a column names.
    several: bool,
    rows: Vec<Vec<String>>,
    /// Seconds and USD; `None` where those of a load are unknown.
    sums: [Option<f64>; 2],
    /// Loads and deployments that are not measured, and why.
    pub(super) left_out: Vec<(String, String)>,
}

/// Columns after that of the deployment.
const HEADER: [&str; 6] = ["ISL", "OSL", "load", "requests", "s", "USD"];

fn number(value: Option<f64>, digits: usize) -> String {
    value.map_or("?".to_owned(), |it| format!("{it:.digits$}"))
}

impl DryRun {
    pub(super) fn new(settings: BenchSettings, several: bool) -> DryRun {
        DryRun { settings, several, rows: vec![], sums: [Some(0.0); 2], left_out: vec![] }
    }

    /// Adds the loads of a deployment.
    pub(super) fn add(&mut self, deployment: &str, points: &[Estimated]) {
        for (point, found) in points {
            let seconds = self.settings.seconds(point, found.as_ref());
            let per_hour = found.as_ref().and_then(|found| found.candidate.metrics.as_ref()?.usd_per_hour);
            let usd = seconds.zip(per_hour).map(|(seconds, usd)| seconds / 3600.0 * usd);
            for (sum, part) in self.sums.iter_mut().zip([seconds, usd]) {
                *sum = sum.zip(part).map(|(sum, part)| sum + part);
            }
            let requests = self.settings.counted(point);
            let cells = [point.isl, point.osl].map(|tokens| tokens.to_string());
            let load = [point.load_text(), requests.end.to_string(), number(seconds, 1), number(usd, 3)];
            let named = self.several.then(|| deployment.to_owned());
            self.rows.push(named.into_iter().chain(cells).chain(load).collect());
        }
    }

    pub(super) fn text(self) -> String {
        let header: Vec<&str> = self.several.then_some("deployment").into_iter().chain(HEADER).collect();
        let ([seconds, usd], count) = (self.sums, self.rows.len());
        let mut text = table(&header, self.rows);
        text += &format!("\n{count} loads: {} s, {} USD\n", number(seconds, 0), number(usd, 2));
        for (what, reason) in &self.left_out {
            text += &format!("not measured: {}: {}\n", visible(what), visible(reason));
        }
        text
    }
}
