//! TTFT of one deployment.

#![allow(clippy::print_stdout)]

use mantile::prelude::*;

fn main() -> Result<(), Error> {
    let scenario = Scenario { concurrency: Some(8), ..Scenario::of("Llama-3.1-8B", "1xh100") };
    let report = estimate(&Catalog::default(), &EstimateRequest::of(scenario), &UNCONTROLLED)?;
    println!("TTFT {:.1} ms", report.candidate.figure(Metric::Ttft).unwrap_or(f64::NAN));
    Ok(())
}
