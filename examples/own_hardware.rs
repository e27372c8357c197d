//! A device of one's own: a catalogue entry with a memory upgrade and a negotiated price.

#![allow(clippy::print_stdout)]

use mantile::prelude::*;

const DEVICE: &str = r#"{
    "id": "my-gpu", "name": "My GPU", "vendor": "nvidia", "family": "ada", "class": "datacenter",
    "memory": {
        "kind": "gddr6", "capacity": {"value": "96 GB", "source": "offer"},
        "bandwidth": {"value": "864 GB/s", "source": "offer"}
    },
    "peak": {"bf16": {"value": "362 TFLOP/s", "source": "offer"}},
    "host_link": {"link": "pcie4x16", "bandwidth": {"value": "31.5 GB/s", "source": "offer"}},
    "power": {"tdp": {"value": "350 W", "source": "offer"}},
    "price": {"rent": {"value": "0.80 USD/h", "source": "offer"}}
}"#;

fn main() -> Result<(), Error> {
    let catalog = Catalog::default().with_entry(CatalogKind::Devices, "my-gpu", DEVICE);
    let scenario = Scenario { concurrency: Some(16), ..Scenario::of("Qwen3-32B", "1xmy-gpu") };
    let report = estimate(&catalog, &EstimateRequest::of(scenario), &UNCONTROLLED)?;
    println!("{:.2} USD/Mtok", report.candidate.figure(Metric::UsdPerMtok).unwrap_or(f64::NAN));
    Ok(())
}
