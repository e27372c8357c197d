//! Options of published servers, as an answer shows them beyond its own.

use mantile::launch::published_flags::{PUBLISHED, PublishedServer, ServerKind};
use mantile::store::catalog::Catalog;
use mantile::store::kind::CatalogKind;

/// The architecture of a model that the catalogue has, its device, and the effect of each option in its table.
#[test]
fn published_servers_are_of_the_catalogue() {
    let catalog = Catalog::default();
    let devices = catalog.entries(CatalogKind::Devices);
    let mut built = 0;
    assert!(PUBLISHED.servers.len() > 50);
    for one in &PUBLISHED.servers {
        let (launch, _) = catalog.launch_of(&one.runtime).unwrap().unwrap();
        assert_eq!(one.devices.len(), one.scripts.len(), "{one:?}");
        assert!(one.devices.iter().all(|device| devices.contains_key(device)), "{one:?}");
        for words in &one.flags {
            let option = words.split(' ').next().unwrap();
            assert!(matches!(launch.effects.of(option), Some(Err(_))), "{words}");
        }
        if let Ok((_, graph)) = catalog.built(&one.model) {
            assert_eq!(graph.model_type, one.model_type, "{}", one.model);
            built += 1;
        }
    }
    assert!(built > 20, "{built}");
}

#[test]
fn the_nearest_is_of_the_same_kind_and_leaves_out_what_a_command_has() {
    let kind = ServerKind {
        runtime: "sglang",
        device: "nvidia-h200-sxm",
        model: "deepseek-ai/DeepSeek-V3",
        model_type: "deepseek_v3",
        weight_bits: 8.0,
    };
    let found = PublishedServer::nearest(&kind).unwrap();
    assert!(found.source("nvidia-h200-sxm").ends_with("dsr1_fp8_h200.sh"));
    let (launch, _) = Catalog::default().launch_of("sglang").unwrap().unwrap();
    let words = |has: &str| {
        let beyond = found.beyond(|option| option == has, &launch.effects);
        beyond.into_iter().map(|one| one.0).collect::<Vec<_>>()
    };
    assert!(words("").contains(&"--attention-backend flashinfer".to_owned()));
    assert!(!words("--attention-backend").contains(&"--attention-backend flashinfer".to_owned()));
    assert!(PublishedServer::nearest(&ServerKind { runtime: "mlx", ..kind }).is_none());
    assert!(PublishedServer::nearest(&ServerKind { weight_bits: 16.0, ..kind }).is_none());
}
