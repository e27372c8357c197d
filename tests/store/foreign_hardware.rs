//! Hardware files of other planners: their figures count, the catalogue supplies the rest.

use std::path::Path;

use mantile::spec::device::Arithmetic;
use mantile::store::catalog::Catalog;

/// A system as AIConfigurator writes it; each figure differs from the catalogue's.
const AICONFIGURATOR: &str = "\
data_dir: data/h200_sxm
gpu:
  mem_bw: 4700000000000
  mem_bw_empirical_scaling_factor: 0.8
  mem_capacity: 150000000000
  bfloat16_tc_flops: 900000000000000
  fp8_tc_flops: 1800000000000000
  power: 650
  sm_version: 90
node:
  num_gpus_per_node: 4
  inter_node_bw: 25000000000
  intra_node_bw: 400000000000
  pcie_bw: 60000000000
  p2p_latency: 0.00001
";

/// Devices as BLIS writes them.
const BLIS: &str = r#"{
  "H100": {"TFlopsPeak": 989.5, "TFlopsFP8": 1979.0, "BwPeakTBs": 3.3, "mfuPrefill": 0.65, "mfuDecode": 0.12, "MemoryGiB": 80.0},
  "A100-SXM": {"TFlopsPeak": 312.0, "TFlopsFP8": 0, "BwPeakTBs": 2.0, "mfuPrefill": 0.65, "mfuDecode": 0.12, "MemoryGiB": 80.0},
  "X9": {"TFlopsPeak": 1.0, "BwPeakTBs": 1.0, "MemoryGiB": 1.0}
}"#;

fn written(folder: &Path, name: &str, text: &str) -> String {
    let path = folder.join(name);
    std::fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn a_system_of_aiconfigurator_is_a_system() {
    let folder = tempfile::tempdir().unwrap();
    let catalog = Catalog::default();
    let found = catalog.hardware(&written(folder.path(), "h200_sxm.yaml", AICONFIGURATOR)).unwrap();
    let device = &found.device;
    assert_eq!((found.devices_per_node, found.nodes), (4, 1));
    assert_eq!(device.memory.bandwidth.as_ref().unwrap().value, 4.7e12);
    assert_eq!(device.memory.capacity.as_ref().unwrap().value, 1.5e11);
    assert_eq!(device.peak[&Arithmetic::Bf16].value, 9e14);
    assert_eq!(device.peak[&Arithmetic::Fp16].value, 9e14);
    assert_eq!(device.peak[&Arithmetic::Fp8].value, 1.8e15);
    assert_eq!(device.power.as_ref().unwrap().tdp.value, 650.0);
    assert_eq!(found.tiers[0].bandwidth.value, 4e11);
    assert_eq!(device.scale_up.as_ref().unwrap().bandwidth.value, 4e11);
    assert_eq!(device.host_link.as_ref().unwrap().bandwidth.value, 6e10);
    let bandwidth = &device.memory.bandwidth.as_ref().unwrap().source;
    assert!(
        bandwidth.text.contains("gpu.mem_bw") && bandwidth.text.contains("AIConfigurator"),
        "{bandwidth:?}"
    );
    // What the file leaves out is the catalogue's.
    let known = catalog.device("h200-sxm").unwrap();
    assert_eq!(device.peak[&Arithmetic::Fp32].value, known.peak[&Arithmetic::Fp32].value);
    assert_eq!(device.family, known.family);
    let unknown = catalog.hardware(&written(folder.path(), "z9.yaml", AICONFIGURATOR)).unwrap_err();
    assert!(unknown.to_string().contains("z9"), "{unknown}");
    let other = catalog.hardware(&written(folder.path(), "a.yaml", "a: 1")).unwrap_err();
    assert_eq!(other.key, "a", "a file of this program in YAML: {other}");
    let negative = AICONFIGURATOR.replace("4700000000000", "-1");
    let negative = catalog.hardware(&written(folder.path(), "h100_sxm.yaml", &negative)).unwrap_err();
    assert_eq!(negative.key, "gpu.mem_bw");
}

#[test]
fn a_device_of_blis_is_a_node_of_it() {
    let folder = tempfile::tempdir().unwrap();
    let catalog = Catalog::default();
    let path = written(folder.path(), "hardware_config.json", BLIS);
    let found = catalog.hardware(&format!("{path}#h100")).unwrap();
    assert_eq!(found.device.memory.bandwidth.as_ref().unwrap().value, 3.3e12);
    assert_eq!(found.device.memory.capacity.as_ref().unwrap().value, 80.0 * 1024f64.powi(3));
    assert_eq!(found.devices_per_node, 8);
    let ampere = catalog.hardware(&format!("{path}#A100-SXM")).unwrap().device;
    assert!(!ampere.peak.contains_key(&Arithmetic::Fp8), "a peak of 0 is none");
    let several = catalog.hardware(&path).unwrap_err();
    assert!(several.expected.contains("A100-SXM") && several.fix.contains("#H100"), "{several}");
    let unknown = catalog.hardware(&format!("{path}#X9")).unwrap_err();
    assert!(unknown.found.contains("X9"), "{unknown}");
}
