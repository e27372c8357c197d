//! The user's own files: a saved one counts at once, and every version comes back as it was.

use mantile::store::catalog::Catalog;
use mantile::store::kind::CatalogKind;
use proptest::prelude::*;

/// A workload with this prompt length.
fn workload(isl: u64) -> String {
    format!(
        "{{\"id\": \"mine\", \"description\": \"Mine\", \"isl\": {isl}, \"osl\": 100, \"source\": \"mine\"}}\n"
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_version_is_kept_and_restored(lengths in prop::collection::vec(1u64..5, 1..6), back in any::<prop::sample::Index>()) {
        let home = tempfile::tempdir().unwrap();
        let catalog = || Catalog::at(Some(home.path().to_owned()));
        let given = home.path().join("mine.json");
        let mut texts: Vec<String> = Vec::new();
        for isl in lengths {
            std::fs::write(&given, workload(isl)).unwrap();
            let saved = catalog().save_entry(&given, None).unwrap();
            // The same text is no new version.
            if texts.last() != Some(&workload(isl)) {
                prop_assert_eq!(saved.replaced, (!texts.is_empty()).then_some(texts.len() as u64));
                prop_assert_eq!(saved.changes.len(), usize::from(!texts.is_empty()));
                texts.push(workload(isl));
            }
            let loaded: mantile::spec::objective::Workload = catalog().load("mine").unwrap();
            prop_assert_eq!(loaded.isl, isl);
        }
        let versions = catalog().entry_versions(CatalogKind::Workloads, "mine").unwrap();
        prop_assert_eq!(versions.len(), texts.len());
        for (version, text) in versions.iter().zip(&texts) {
            prop_assert_eq!(&std::fs::read_to_string(&version.file).unwrap(), text);
        }
        prop_assert_eq!(versions.last().unwrap().version, None);
        if texts.len() > 1 {
            let number = back.index(texts.len() - 1) as u64 + 1;
            catalog().restore_entry(CatalogKind::Workloads, "mine", number).unwrap();
            let loaded: mantile::spec::objective::Workload = catalog().load("mine").unwrap();
            prop_assert_eq!(workload(loaded.isl), texts[number as usize - 1].clone());
        }
    }
}

#[test]
fn faulty_files_and_names_are_refused_and_nothing_is_written() {
    let home = tempfile::tempdir().unwrap();
    let catalog = Catalog::at(Some(home.path().to_owned()));
    let given = home.path().join("mine.json");
    for text in ["{\"isl\": -1, \"osl\": 1, \"id\": \"a\", \"description\": \"a\"}", "{}", "no JSON"] {
        std::fs::write(&given, text).unwrap();
        catalog.save_entry(&given, None).unwrap_err();
    }
    for id in ["../up", "a/b", ".hidden", "other"] {
        std::fs::write(&given, workload(3).replace("mine", id)).unwrap();
        catalog.save_entry(&given, None).unwrap_err();
    }
    assert_eq!(std::fs::read_dir(home.path()).unwrap().count(), 1, "only the given file");
    let unknown = catalog.entry_versions(CatalogKind::Workloads, "mine").unwrap_err();
    assert!(unknown.expected.contains("of your own"), "{unknown}");
    assert!(catalog.restore_entry(CatalogKind::Workloads, "mine", 3).unwrap_err().expected.contains("none"));
}
