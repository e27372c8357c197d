//! Names of catalogue entries as people write them.

use mantile::spec::text::folded;
use mantile::store::catalog::Catalog;
use mantile::store::kind::{CatalogKind, KINDS};

/// Separators and case say nothing, and what is misspelt is near what was meant.
#[test]
fn names_are_found_however_they_are_written() {
    let catalog = Catalog::default();
    for (written, meant) in [
        ("llama_3.3_70b", "meta-llama/Llama-3.3-70B-Instruct"),
        ("QWEN3 32B", "Qwen/Qwen3-32B"),
        ("meta_llama.llama-3.1-8b", "meta-llama/Llama-3.1-8B"),
    ] {
        assert_eq!(catalog.model(written).unwrap_or_else(|fault| panic!("{fault}")).name, meant, "{written}");
    }
    for (written, meant) in [
        ("nvidia_h100_80gb", "nvidia-h100-sxm"),
        ("8xH100_SXM", "nvidia-h100-sxm"),
        ("4xL40S", "nvidia-l40s"),
    ] {
        let cluster = catalog.hardware(written).unwrap_or_else(|fault| panic!("{fault}"));
        assert_eq!(cluster.device.id, meant, "{written}");
    }
    let fix = |written: &str| catalog.model(written).unwrap_err().fix;
    assert!(fix("lama3").to_lowercase().contains("llama"), "{}", fix("lama3"));
    assert!(fix("qwen3-32bb").contains("Qwen3-32B"), "{}", fix("qwen3-32bb"));
}

/// Two entries whose names differ in separators alone could not be told apart.
#[test]
fn no_two_ids_differ_in_separators_alone() {
    for kind in KINDS {
        let mut seen = std::collections::BTreeMap::new();
        for id in Catalog::default().entries(kind).into_keys() {
            if let Some(other) = seen.insert(folded(&id), id.clone()) {
                panic!("{other} and {id}");
            }
        }
    }
}

/// Devices that are equal and devices that differ have questions of their own: each says which is the other's.
#[test]
fn a_rig_is_no_system_and_a_system_is_no_rig() {
    let catalog = Catalog::default();
    for id in catalog.entries(CatalogKind::Rigs).keys() {
        let fault = catalog.hardware(id).unwrap_err();
        assert!(fault.found.contains("rig") && fault.fix.contains("place"), "{fault}");
    }
    for id in catalog.entries(CatalogKind::Systems).keys() {
        let fault = catalog.rig(id).unwrap_err();
        assert!(fault.found.contains("a system") && fault.fix.contains("`optimize`"), "{fault}");
    }
}
