//! Instances of clouds by their names, as the hardware that they are: the table of `instances.json`.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;

use crate::spec::text::folded;

#[derive(Deserialize)]
struct InstanceTable {
    clouds: Vec<CloudInstances>,
}

/// The instances of one cloud.
#[derive(Deserialize)]
struct CloudInstances {
    name: String,
    /// Words that may come before a name: `Standard_`.
    prefixes: Vec<String>,
    /// Hardware words by name.
    instances: BTreeMap<String, String>,
}

/// An instance: its cloud, its name as the cloud writes it, and its hardware.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct CloudInstance {
    pub cloud: &'static str,
    pub name: &'static str,
    pub hardware: &'static str,
}

static TABLE: LazyLock<BTreeMap<String, CloudInstance>> = LazyLock::new(|| {
    static FILE: LazyLock<InstanceTable> =
        LazyLock::new(|| serde_json::from_str(include_str!("instances.json")).expect("the table is JSON"));
    let mut table = BTreeMap::new();
    for cloud in &FILE.clouds {
        for (name, hardware) in &cloud.instances {
            let instance = CloudInstance { cloud: &cloud.name, name, hardware };
            table.insert(folded(name), instance);
            table.extend(cloud.prefixes.iter().map(|prefix| (folded(&format!("{prefix}{name}")), instance)));
        }
    }
    table
});

/// The instance with this name, whatever its case and separators.
pub(super) fn instance(text: &str) -> Option<CloudInstance> {
    TABLE.get(&folded(text)).copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::catalog::Catalog;

    #[test]
    fn every_instance_is_hardware_of_the_catalogue() {
        let catalog = Catalog::default();
        assert!(TABLE.len() > 150, "{}", TABLE.len());
        for one in TABLE.values() {
            let cluster = catalog.hardware(one.name).unwrap_or_else(|fault| panic!("{}: {fault}", one.name));
            let (count, _) = one.hardware.split_once('x').expect("COUNTxDEVICE");
            assert_eq!(cluster.devices(), count.parse::<u64>().expect("a count"), "{}", one.name);
            assert!(cluster.name.contains(one.cloud) && !cluster.for_sale, "{}", cluster.name);
        }
    }

    #[test]
    fn names_are_read_as_clouds_and_people_write_them() {
        for text in ["Standard_ND96isr_H200_v5", "ND96isr_H200_v5", "standard-nd96isr-h200-v5"] {
            assert_eq!(instance(text).map(|one| one.hardware), Some("8xh200-sxm"), "{text}");
        }
        assert_eq!(instance("ml.g6e.12xlarge").map(|one| one.name), Some("g6e.12xlarge"));
        assert_eq!(instance("a2-ultragpu-3g"), None);
    }
}
