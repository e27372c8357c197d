//! Names of devices as people write them: short forms, memories, slices, bridges.

use mantile::spec::cluster::Topology;
use mantile::spec::device::Device;
use mantile::spec::scenario::Scenario;
use mantile::store::catalog::{Catalog, read_entry};
use mantile::store::kind::CatalogKind;
use mantile::store::resolved_scenario::ResolvedScenario;
use serde::Deserialize;

/// A line of `tests/data/device_names.csv`: a name that a public list or page has, and what it is.
#[derive(Debug, Deserialize)]
struct DeviceLine {
    name: String,
    /// The id of the device; empty where the catalogue has none.
    device: String,
    count: u64,
    source: String,
}

/// No name of the list is read as another device or another number of them, and what is not read is refused.
#[test]
fn published_names_of_devices_and_instances_are_found() {
    let catalog = Catalog::default();
    let text = include_str!("../data/device_names.csv");
    let lines: Vec<DeviceLine> =
        csv::Reader::from_reader(text.as_bytes()).deserialize().map(|line| line.expect("a line")).collect();
    let (mut read, mut wrong, mut refused) = (0, Vec::new(), Vec::new());
    for line in &lines {
        assert!(line.source.contains(['/', '.']), "{line:?}");
        match catalog.hardware(&line.name) {
            Ok(cluster) if (&cluster.device.id, cluster.devices()) == (&line.device, line.count) => read += 1,
            Ok(cluster) => wrong.push(format!("{line:?}: {} of {}", cluster.devices(), cluster.device.id)),
            Err(fault) if !line.device.is_empty() => refused.push(format!("{}: {}", line.name, fault.found)),
            Err(_) => {}
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let known = lines.iter().filter(|line| !line.device.is_empty()).count();
    assert!(known > 300 && read * 100 >= known * 95, "{read} of {known}:\n{}", refused.join("\n"));
}

/// Every size that a device is sold with is found by its name, and no other.
#[test]
fn memory_sizes_that_are_sold_are_found_and_others_refused() {
    let catalog = Catalog::default();
    let mut several = 0;
    for entry in catalog.entries(CatalogKind::Devices).into_values() {
        let whole: Device = read_entry(&entry).unwrap();
        let sold = &whole.memory.sold;
        let Some(own) = whole.memory.marketed.as_ref().filter(|_| !sold.is_empty()) else { continue };
        several += 1;
        assert!(sold.iter().any(|one| one.marketed.value == own.value), "{}", whole.id);
        assert!(whole.name.contains(&format!("{}GB", own.value / 1e9)), "{}: its size", whole.name);
        for one in sold {
            let gigabytes = one.gigabytes();
            for name in
                [format!("{}-{gigabytes}gb", whole.id), format!("{} {gigabytes} GB", whole.aliases[0])]
            {
                let found = catalog.device(&name).unwrap_or_else(|miss| panic!("{name}: {miss:?}"));
                let capacity = found.memory.capacity.as_ref().unwrap().value;
                assert_eq!(capacity, one.capacity.value, "{name}");
                assert_eq!(found.measured_as(), whole.id, "{name}");
                assert!(found.name.contains(&format!("{gigabytes}GB")), "{name}: {}", found.name);
            }
        }
        let fault = catalog.hardware(&format!("{}-7gb", whole.aliases[0])).unwrap_err();
        assert!(fault.expected.contains(&sold[0].gigabytes().to_string()), "{fault}");
    }
    assert!(several > 20, "{several}");
    let rate = |name: &str| catalog.device(name).unwrap().memory.bandwidth.unwrap().value / 1e9;
    assert_eq!([rate("m4 max 36gb"), rate("m4 max 48gb"), rate("m4-max")], [410.0, 546.0, 546.0]);
    assert_eq!([rate("m3 max 96gb"), rate("m3 max 64gb"), rate("m3-max@36GB")], [300.0, 400.0, 300.0]);
    let name = catalog.hardware("m4 max 36gb").unwrap().name;
    assert!(name.contains("36GB (14-core CPU, 32-core GPU)"), "{name}");
    for wrong in ["m4 max 96gb", "m4-max@96GB", "strix halo 32gb"] {
        let fault = catalog.hardware(wrong).unwrap_err();
        assert!(fault.expected.contains("64") && !fault.fix.is_empty(), "{fault}");
    }
    let fault = catalog.hardware("rtx 4090 48gb").unwrap_err();
    assert!(fault.fix.contains("rtx-4090@48GB"), "{fault}");
}

/// Every profile of every card in the table is a part of that card, in every way that it is written.
#[test]
fn every_profile_of_mig_is_a_part_of_its_card() {
    let catalog = Catalog::default();
    for (card, profiles) in [
        ("a30", "1g.6gb 1g.6gb+me 2g.12gb 2g.12gb+me 4g.24gb"),
        ("a100-40gb", "1g.5gb 1g.5gb+me 1g.10gb 2g.10gb 3g.20gb 4g.20gb 7g.40gb"),
        ("a100-80gb", "1g.10gb 1g.10gb+me 1g.20gb 2g.20gb 3g.40gb 4g.40gb 7g.80gb"),
        ("h100", "1g.10gb 1g.10gb+me 1g.20gb 2g.20gb 3g.40gb 4g.40gb 7g.80gb"),
        ("h100-nvl", "1g.12gb 1g.12gb+me 1g.24gb 2g.24gb 3g.47gb 4g.47gb 7g.94gb"),
        ("h100-96gb", "1g.12gb 1g.12gb+me 1g.24gb 2g.24gb 3g.48gb 4g.48gb 7g.96gb"),
        ("h200", "1g.18gb 1g.18gb+me 1g.35gb 2g.35gb 3g.71gb 4g.71gb 7g.141gb"),
        ("h20", "1g.12gb 1g.24gb 2g.24gb 3g.48gb 4g.48gb 7g.96gb"),
        ("b200", "1g.23gb 1g.23gb+me 1g.45gb 2g.45gb 3g.90gb 4g.90gb 7g.180gb"),
        ("b300", "1g.34gb 1g.67gb 2g.67gb 3g.135gb 4g.135gb 7g.269gb"),
        ("gb200", "1g.24gb 1g.47gb 2g.47gb 3g.95gb 4g.95gb 7g.189gb"),
        (
            "rtx-pro-6000",
            "1g.24gb 1g.24gb+me 1g.24gb+gfx 1g.24gb+me.all 1g.24gb-me 2g.48gb 2g.48gb-me 4g.96gb",
        ),
    ] {
        let whole = catalog.device(card).unwrap_or_else(|miss| panic!("{card}: {miss:?}"));
        for profile in profiles.split(' ') {
            for written in [
                format!("{card}:{profile}"),
                format!("{card}-mig-{profile}"),
                format!("{card} MIG {profile}"),
                format!("{card}:mig-{}", profile.replace('+', ".")),
            ] {
                let part = catalog.device(&written).unwrap_or_else(|miss| panic!("{written}: {miss:?}"));
                assert_eq!(part.id, format!("{}-mig-{profile}", whole.id), "{written}");
                let share = |of: fn(&Device) -> f64| of(&part) / of(&whole);
                let memory = share(|one| one.memory.capacity.as_ref().unwrap().value);
                assert_eq!(memory, share(|one| one.memory.bandwidth.as_ref().unwrap().value), "{written}");
                // A name has the memory of its part, rounded.
                let named: f64 = profile.split(['.', 'g']).nth(2).unwrap().parse().unwrap();
                let label = whole.memory.marketed.as_ref().unwrap().value / 1e9;
                assert!(
                    (named / label / memory - 1.0).abs() < 0.08,
                    "{written}: {named} of {label}, {memory}"
                );
            }
        }
        let fault = catalog.hardware(&format!("{card}:5g.5gb")).unwrap_err();
        let last = profiles.split(' ').next_back().unwrap();
        assert!(fault.expected.contains(last), "{fault}");
    }
    let fault = catalog.hardware("nvidia.com/mig-3g.40gb").unwrap_err();
    assert!(fault.fix.contains(":3g.40gb") && fault.expected.contains("nvidia-h100-sxm"), "{fault}");
}

/// Whatever needs a system names the command for unlike devices, with the model and the options that were given.
#[test]
fn unlike_cards_of_a_host_have_a_command_of_place() {
    let catalog = Catalog::default();
    let like = catalog.hardware("4090,4090").unwrap();
    assert_eq!((like.device.id.as_str(), like.devices()), ("nvidia-rtx-4090", 2));
    for text in ["1x4090+1x3090ti", "4090, 3090 ti"] {
        assert!(catalog.has_rig(text), "{text}");
        let given = Scenario { isl: Some(4096), ..Scenario::of("Qwen/Qwen3-32B", text) };
        let fault = ResolvedScenario::resolve(&catalog, &given).map(|_| ()).unwrap_err();
        assert!(fault.fix.contains("mantile-opt place --model Qwen/Qwen3-32B --device "), "{fault}");
        assert!(fault.fix.contains("4090 --device ") && fault.fix.contains("--isl 4096"), "{fault}");
    }
    for text in ["ryzen ai max+ 395", "4090+nothing", "4090+"] {
        assert!(!catalog.has_rig(text), "{text}");
    }
}

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
