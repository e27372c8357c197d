//! The Pareto front of speed per user against throughput per device.

#![allow(clippy::print_stdout)]

use mantile::prelude::*;

fn main() -> Result<(), Error> {
    let pareto = Some(vec!["output_tok_s_per_user".into(), "output_tok_s_per_device".into()]);
    let scenario = Scenario { pareto, ..Scenario::of("gpt-oss-20b", "2xh100") };
    let request = OptimizeRequest { scenario, ..OptimizeRequest::default() };
    for point in optimize(&Catalog::default(), &request, &UNCONTROLLED)?.front {
        let figure = |metric| point.figure(metric).unwrap_or(f64::NAN);
        let (user, device) = (Metric::OutputTokSPerUser, Metric::OutputTokSPerDevice);
        println!("{:6.1} tok/s/user {:7.0} tok/s/GPU  {}", figure(user), figure(device), point.notation);
    }
    Ok(())
}
