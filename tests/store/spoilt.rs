//! Spoilt texts and files: an error or an answer, never a panic.

use mantile::spec::cluster::Cluster;
use mantile::spec::text::from_json;
use mantile::store::hub::HubName;
use proptest::prelude::*;
use serde_json::json;

use super::*;

/// What a spoiler may put in place of a value.
fn spoilt() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(json!(null)),
        Just(json!(true)),
        Just(json!([])),
        Just(json!({})),
        Just(json!("NaN B")),
        Just(json!("-1 GB")),
        Just(json!("1e308 TB")),
        Just(json!("0")),
        any::<i64>().prop_map(|number| json!(number)),
        any::<u64>().prop_map(|number| json!(number)),
        any::<f64>().prop_map(|number| json!(number)),
        (0u64..20).prop_map(|number| json!(number)),
        ".{0,8}".prop_map(|text| json!(text)),
    ]
}

/// Puts `value` somewhere into `tree`, as `path` leads.
fn spoil(tree: &mut Value, path: &[prop::sample::Index], value: Value) {
    let Some((first, rest)) = path.split_first() else {
        *tree = value;
        return;
    };
    match tree {
        Value::Object(map) if !map.is_empty() => {
            let key = map.keys().nth(first.index(map.len())).unwrap().clone();
            spoil(&mut map[&key], rest, value);
        }
        Value::Array(list) if !list.is_empty() => {
            let at = first.index(list.len());
            spoil(&mut list[at], rest, value);
        }
        _ => *tree = value,
    }
}

fn shipped(kind: CatalogKind, at: prop::sample::Index) -> Value {
    let shelf = Catalog::default().entries(kind);
    let file = shelf.values().nth(at.index(shelf.len())).unwrap();
    serde_json::from_str(&file.text().unwrap()).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn hardware_in_any_words_is_a_cluster_or_an_error(text in prop_oneof![
        "[0-9]{0,9}[xX]?[0-9]{0,20}[xX]?(h100|gb200|l40s|rtx|rtx-4090|mi300x|dgx-h100|nvl72|)",
        "[a-z0-9-]{0,12}",
        "\\PC{0,12}",
    ]) {
        prop_assume!(!text.contains('/'));
        if let Ok(cluster) = Catalog::default().hardware(&text) {
            let last = cluster.tiers.last().map_or(1, |tier| tier.devices);
            prop_assert_eq!(last, cluster.devices(), "{}", text);
            // Part of a node may end in a partial unit.
            let node = cluster.devices() / cluster.nodes;
            let whole = |inner: u64, outer: u64| outer <= node || outer.is_multiple_of(inner);
            let tiers = cluster.tiers.windows(2);
            prop_assert!(tiers.into_iter().all(|pair| whole(pair[0].devices, pair[1].devices)), "{}", text);
        }
    }

    #[test]
    fn a_spoilt_system_is_a_cluster_or_an_error(
        system in any::<prop::sample::Index>(),
        spoilers in prop::collection::vec((prop::collection::vec(any::<prop::sample::Index>(), 1..4), spoilt()), 1..3),
        nodes in any::<u64>(),
        per_node in 0u64..20,
    ) {
        let mut value = shipped(CatalogKind::Systems, system);
        let device: Device = Catalog::default().load("h100").unwrap();
        for (path, with) in spoilers {
            spoil(&mut value, &path, with);
        }
        if let Ok(system) = from_json::<System>(&value.to_string(), "a system") {
            for (nodes, per_node) in [(system.nodes, system.devices_per_node), (nodes, per_node), (nodes % 64, per_node)] {
                if let Ok(cluster) = Cluster::build(&system, device.clone(), nodes, per_node) {
                    prop_assert!(cluster.devices() > 0);
                }
            }
        }
    }

    #[test]
    fn spoilt_files_of_every_kind_are_read_or_refused(
        at in any::<prop::sample::Index>(),
        path in prop::collection::vec(any::<prop::sample::Index>(), 1..5),
        with in spoilt(),
    ) {
        let spoilt = |kind| {
            let mut value = shipped(kind, at);
            spoil(&mut value, &path, with.clone());
            value.to_string()
        };
        let device = from_json::<Device>(&spoilt(CatalogKind::Devices), "a device").and_then(|device| device.check().map(|()| device));
        let sound = |d: Device| d.memory.capacity.is_none_or(|c| c.value > 0.0 && c.value.is_finite());
        prop_assert!(device.is_err() || device.is_ok_and(sound));
        let _ = from_json::<NumberFormat>(&spoilt(CatalogKind::Formats), "a format");
        let _ = from_json::<Link>(&spoilt(CatalogKind::Links), "a link");
        let objective = from_json::<Objective>(&spoilt(CatalogKind::Objectives), "an objective").and_then(|o| o.check().map(|()| o));
        prop_assert!(objective.is_err() || objective.is_ok_and(|o| !o.pareto.is_empty() && !o.optimize.is_empty()));
        let workload = from_json::<Workload>(&spoilt(CatalogKind::Workloads), "a workload").and_then(|w| w.check().map(|()| w));
        prop_assert!(workload.is_err() || workload.is_ok_and(|w| w.isl > w.prefix && w.osl > 0));
    }

    #[test]
    fn a_repository_never_leaves_its_folder(text in "(hf:|https://huggingface.co/)[a-z./@%\\\\?#-]{0,16}") {
        if let Ok(Some(name)) = HubName::parse(&text, "https://huggingface.co") {
            let folder = name.repository.folder();
            prop_assert!(folder.is_relative() && folder.components().count() <= 2, "{}", folder.display());
            prop_assert!(folder.components().all(|part| matches!(part, std::path::Component::Normal(_))), "{}", folder.display());
        }
    }
}
