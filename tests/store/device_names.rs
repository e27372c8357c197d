//! Names of devices as people write them: short forms, memories, slices, bridges.

use mantile::spec::cluster::Topology;
use mantile::store::catalog::Catalog;
use mantile::store::kind::CatalogKind;

/// Words that make another product of a device.
const PRODUCTS: [&str; 9] = ["super", "ti", "xt", "xtx", "nvl", "ultra", "max", "pro", "d"];

/// No name without such a word is a device with it, and none with it is one without.
#[test]
fn a_short_form_never_adds_a_word_of_the_product() {
    let catalog = Catalog::default();
    let ids: Vec<String> = catalog.entries(CatalogKind::Devices).into_keys().collect();
    let mut tried = 0;
    for (at, id) in ids.iter().enumerate() {
        for word in PRODUCTS {
            let longer = format!("{id}-{word}");
            // Each is tried with one of the words.
            let tried_here = at % PRODUCTS.len() == PRODUCTS.iter().position(|one| *one == word).unwrap_or(0);
            if tried_here && let Ok(device) = catalog.device(&longer) {
                assert!(device.id.ends_with(word), "{longer} is {}", device.id);
            }
            let Some(shorter) = id.strip_suffix(&format!("-{word}")) else { continue };
            let (_, short) = shorter.split_once('-').unwrap();
            for name in [shorter, short] {
                tried += 1;
                if let Ok(device) = catalog.device(name) {
                    assert_ne!(&device.id, id, "{name}");
                }
            }
        }
    }
    assert!(tried > 40, "{tried}");
}

/// Each id, and each without its vendor, means its file.
#[test]
fn ids_mean_their_devices_without_their_vendors_too() {
    let catalog = Catalog::default();
    for id in catalog.entries(CatalogKind::Devices).into_keys() {
        let (_, short) = id.split_once('-').unwrap();
        for name in [id.as_str(), short] {
            let device = catalog.device(name).unwrap_or_else(|miss| panic!("{name}: {miss:?}"));
            assert_eq!(device.id, id, "{name}");
        }
    }
}

#[test]
fn a_part_of_a_name_is_refused_with_the_whole_ones() {
    let catalog = Catalog::default();
    for (part, whole) in
        [("1xrtx-4080-s", "nvidia-rtx-4080-super"), ("m4-ma", "apple-m4-max"), ("8xrtx", "nvidia-rtx-2060")]
    {
        let fault = catalog.hardware(part).unwrap_err();
        assert!(fault.found.contains(whole), "{part}: {fault}");
    }
}

/// A memory in the word is that of a product where there is one, and else what the word states.
#[test]
fn the_memory_of_a_device_may_be_stated() {
    let catalog = Catalog::default();
    for (word, id, gib) in [
        ("8xv100-sxm2-16gb", "nvidia-v100-sxm2-16gb", 16.0),
        ("v100-sxm2@16GB", "nvidia-v100-sxm2-16gb", 16.0),
        ("v100-sxm2@32GB", "nvidia-v100-sxm2-32gb", 32.0),
        ("2xrtx-4060-ti-16gb", "nvidia-rtx-4060-ti-16gb", 16.0),
        ("rtx-4060-ti@8GB", "nvidia-rtx-4060-ti-8gb", 8.0),
        ("rtx-3090-24gb", "nvidia-rtx-3090", 24.0),
        ("4xmi50", "amd-mi50-16gb", 16.0),
        ("rtx-2060", "nvidia-rtx-2060", 6.0),
        ("2xrtx-4090@48GB", "nvidia-rtx-4090@48GB", 48.0),
    ] {
        let device = catalog.hardware(word).unwrap_or_else(|fault| panic!("{word}: {fault}")).device;
        assert_eq!(device.id, id, "{word}");
        let capacity = device.memory.capacity.unwrap().value / (1u64 << 30) as f64;
        assert!((capacity - gib).abs() < 0.02 * gib, "{word}: {capacity}");
    }
    for wrong in ["rtx-4090-48gb", "v100@", "v100@0GB", "v100@16", "nothing@16GB"] {
        assert!(catalog.hardware(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn a_slice_is_a_fraction_of_its_device() {
    let catalog = Catalog::default();
    let whole = catalog.hardware("1xa100").unwrap().device;
    for word in ["1xa100:3g.40gb", "1xa100-mig-3g.40gb"] {
        let cluster = catalog.hardware(word).unwrap_or_else(|fault| panic!("{word}: {fault}"));
        let device = cluster.device;
        let ratio = |part: f64, whole: f64| (part / whole * 56.0).round();
        let capacity = [&device, &whole].map(|one| one.memory.capacity.as_ref().unwrap().value);
        let rate = [&device, &whole].map(|one| one.memory.bandwidth.as_ref().unwrap().value);
        assert_eq!([ratio(capacity[0], capacity[1]), ratio(rate[0], rate[1])], [28.0, 28.0]);
        for (arithmetic, peak) in &device.peak {
            assert_eq!(ratio(peak.value, whole.peak[arithmetic].value), 24.0);
        }
        assert!(device.name.contains("MIG 3g.40gb") && device.price.rent.is_none());
    }
    let fault = catalog.hardware("h100:9g.10gb").unwrap_err();
    assert!(fault.expected.contains("1g.10gb"), "{fault}");
    assert!(catalog.hardware("rtx-3090:1g.10gb").is_err());
}

/// Two cards of a home have no bridge between them, unless it is named.
#[test]
fn a_bridge_is_there_where_it_is_named() {
    let catalog = Catalog::default();
    for plain in ["2xrtx-3090", "2x3090", "2x-rtx-3090", "2xrtx-3090-ti"] {
        let cluster = catalog.hardware(plain).unwrap_or_else(|fault| panic!("{plain}: {fault}"));
        assert_eq!(cluster.devices_per_node, 2, "{plain}");
        assert!(cluster.tiers.iter().all(|tier| tier.topology == Topology::Pcie), "{plain}");
    }
    for bridged in ["2xrtx-3090-nvlink", "rtx-3090-x2"] {
        assert_eq!(catalog.hardware(bridged).unwrap().tiers[0].link, "nvlink3-ga102", "{bridged}");
    }
    let fault = catalog.hardware("1xrtx-4090+1xrtx-3090").unwrap_err();
    assert!(fault.fix.contains("place --device 1xrtx-4090 --device 1xrtx-3090"), "{fault}");
}
