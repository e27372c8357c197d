//! The best deployment, its metrics and its cost.

#![allow(clippy::print_stdout)]

use mantile::prelude::*;

fn main() -> Result<(), Error> {
    let scenario = Scenario { objective: Some("throughput".into()), ..Scenario::of("Qwen3-32B", "4xh100") };
    let request = OptimizeRequest { scenario, ..OptimizeRequest::default() };
    let report = optimize(&Catalog::default(), &request, &UNCONTROLLED)?;
    match &report.best {
        Some(best) => {
            println!("{:?}: {}", report.status, best.notation);
            println!("{:.0} tok/s", best.figure(Metric::OutputTokS).unwrap_or(f64::NAN));
            println!("{:.3} USD/Mtok", best.figure(Metric::UsdPerMtok).unwrap_or(f64::NAN));
        }
        None => println!("{:?}", report.status),
    }
    Ok(())
}
