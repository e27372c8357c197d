//! Laws of detection on random outputs, and of the files that it writes.

use mantile::report::machine::MachineFileKind;
use mantile::report::text::machine::machine as text_of;
use mantile::spec::cluster::System;
use mantile::spec::device::Device;
use mantile::spec::figure::{ByteRate, Bytes, Dimension, DollarRate, FlopRate, Seconds, read, write};
use mantile::store::catalog::Catalog;
use mantile::store::detect::tools::{MachineOutputs, TOOLS, ToolOutput};
use mantile::store::kind::Entry;
use proptest::prelude::*;

use super::{cluster_of_file, machines, on, outputs};

/// Files that the program writes say what it read: every device and system of the catalogue, twice.
#[test]
fn written_devices_and_systems_read_back() {
    fn again<T: Entry + serde::Serialize>() {
        let catalog = Catalog::default();
        for id in catalog.entries(T::KIND).into_keys() {
            let entry: T = catalog.load(&id).unwrap();
            let text = serde_json::to_string(&entry).unwrap();
            let back: T = serde_json::from_str(&text).unwrap_or_else(|fault| panic!("{id}: {fault}"));
            assert_eq!(serde_json::to_string(&back).unwrap(), text, "{id}");
        }
    }
    again::<Device>();
    again::<System>();
}

fn exact<D: Dimension>(value: f64) -> Result<(), TestCaseError> {
    if D::LIMIT.holds(value) {
        let text = write::<D>(value);
        prop_assert_eq!(read::<D>(&text), Ok(value), "{}", text);
    }
    Ok(())
}

/// A saved machine with one output cut, and some of its characters replaced.
fn spoilt() -> impl Strategy<Value = MachineOutputs> {
    let machine = (0..machines().len(), any::<prop::sample::Index>(), any::<prop::sample::Index>());
    (machine, prop::collection::vec((any::<prop::sample::Index>(), any::<char>()), 0..6)).prop_map(
        |((at, which, cut), replaced)| {
            let mut outputs = outputs(&machines()[at]);
            let texts: Vec<&mut String> = outputs
                .0
                .values_mut()
                .filter_map(|output| match output {
                    ToolOutput::Text(text) if !text.is_empty() => Some(text),
                    ToolOutput::Text(_) | ToolOutput::Missing | ToolOutput::Failed(_) => None,
                })
                .collect();
            let count = texts.len();
            if let Some(text) = texts.into_iter().nth(which.index(count.max(1))) {
                let mut characters: Vec<char> = text.chars().collect();
                characters.truncate(cut.index(characters.len()) + 1);
                for (place, character) in replaced {
                    let place = place.index(characters.len());
                    characters[place] = character;
                }
                *text = characters.into_iter().collect();
            }
            outputs
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_output_of_a_tool_panics(text in "\\PC*|[ -~\n\t,:0-9GPUNVX]{0,300}", tool in 0..TOOLS.len()) {
        let mut outputs = outputs("hgx-h100");
        outputs.0.insert(TOOLS[tool].tool, ToolOutput::Text(text));
        let found = on(outputs.clone()).detect(true);
        let _ = on(outputs).hardware("local");
        if let Ok(found) = found {
            text_of(&found, None, 60);
        }
    }

    #[test]
    fn spoilt_outputs_give_a_file_that_reads_back_or_none(outputs in spoilt()) {
        let found = on(outputs).detect(true);
        let Ok(found) = found else { return Ok(()) };
        if found.file.as_ref().is_some_and(|file| file.kind == MachineFileKind::System) {
            cluster_of_file(&found);
        }
    }

    #[test]
    fn written_figures_read_back_exactly(mantissa in 1.0..10.0_f64, power in -12..18_i32, digits in 0..17_i32) {
        let round = 10f64.powi(digits);
        let value = (mantissa * round).round() / round * 10f64.powi(power);
        for value in [value, value * 1_073_741_824.0, value / 3600.0] {
            exact::<Bytes>(value)?;
            exact::<ByteRate>(value)?;
            exact::<FlopRate>(value)?;
            exact::<Seconds>(value)?;
            exact::<DollarRate>(value)?;
        }
    }
}
