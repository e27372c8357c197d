//! TPOT as formula, numbers and source.

#![allow(clippy::print_stdout)]

use mantile::prelude::*;

fn main() -> Result<(), Error> {
    let scenario = Scenario { concurrency: Some(1), ..Scenario::of("Llama-3.1-8B", "1xh100") };
    let request = ExplainRequest { scenario, number: Number::Tpot, depth: Some(2), ..Default::default() };
    if let ExplainReport::Explained(tpot) = explain(&Catalog::default(), &request, &UNCONTROLLED)? {
        println!("{} = {}", tpot.number.symbol, tpot.number.text);
        println!("  = {}", tpot.number.formula.unwrap_or_default());
        println!("  = {}", tpot.number.substituted.unwrap_or_default());
    }
    Ok(())
}
