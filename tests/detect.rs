//! Detection on outputs of real tools: every folder of `tests/detect/machines` is a machine, every file of it the output of one
//! tool, under the tool's name; `.failed` is the message of a tool that failed.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use mantile::quantity::datum::Grade;
use mantile::report::machine::{MachineFileKind, MachineReport, MeasuredBandwidth};
use mantile::report::schema::schema;
use mantile::report::text::machine::machine as text_of;
use mantile::report::text::screen;
use mantile::request::UNCONTROLLED;
use mantile::request::detect::{DetectRequest, detect};
use mantile::request::estimate::{EstimateRequest, estimate};
use mantile::request::optimize::{OptimizeRequest, optimize};
use mantile::spec::cluster::Cluster;
use mantile::spec::deployment::Deployment;
use mantile::spec::device::{Arithmetic, Device};
use mantile::spec::scenario::Scenario;
use mantile::store::catalog::Catalog;
use mantile::store::detect::tools::{
    MachineOutputs, MachineProbe, MachineTool, StreamTest, TOOLS, ToolOutput,
};
use mantile::store::kind::Entry;
use serde_json::Value;

#[path = "detect/properties.rs"]
mod properties;

const MEASURED: MeasuredBandwidth = MeasuredBandwidth { read: 60e9, triad: 45e9, threads: 16, bytes: 1e9 };

/// A machine whose tools have printed these outputs, and whether its memory can be measured.
#[derive(Debug)]
struct Saved(MachineOutputs, bool);

impl MachineProbe for Saved {
    fn outputs(&self) -> MachineOutputs {
        self.0.clone()
    }

    fn bandwidth(&self, _: &str, most: f64, wanted: StreamTest) -> Option<MeasuredBandwidth> {
        assert!(most > 0.0 && wanted != StreamTest::None);
        self.1.then_some(MEASURED)
    }
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/detect/machines")
}

fn outputs(name: &str) -> MachineOutputs {
    let of = |file: String| std::fs::read_to_string(folder().join(name).join(file)).ok();
    let entry = |name: &str| {
        let name = name.replace(' ', "-");
        let failed = || of(format!("{name}.failed")).map(|why| ToolOutput::Failed(why.trim().to_owned()));
        of(name.clone()).map(ToolOutput::Text).or_else(failed).unwrap_or(ToolOutput::Missing)
    };
    MachineOutputs(TOOLS.iter().map(|tool| (tool.tool, entry(tool.name))).collect())
}

fn on(outputs: MachineOutputs) -> Catalog {
    Catalog::default().with_machine(Arc::new(Saved(outputs, true)))
}

fn on_unmeasured(outputs: MachineOutputs) -> Catalog {
    Catalog::default().with_machine(Arc::new(Saved(outputs, false)))
}

fn report(outputs: MachineOutputs, stream: bool) -> MachineReport {
    detect(&on(outputs), &DetectRequest { stream }, &UNCONTROLLED).unwrap_or_else(|fault| panic!("{fault}"))
}

fn machines() -> Vec<String> {
    let folders = std::fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().file_name());
    let mut names: Vec<String> = folders.map(|name| name.into_string().unwrap()).collect();
    names.sort();
    assert!(names.len() > 15, "{names:?}");
    names
}

/// A GPU that `nvidia-smi` prints, in a host with this memory.
fn gpu(row: &str, host_kib: u64) -> MachineOutputs {
    let memory = format!("MemTotal: {host_kib} kB\n");
    let texts = [(MachineTool::NvidiaSmi, format!("{row}\n")), (MachineTool::MemInfo, memory)];
    MachineOutputs(texts.into_iter().map(|(tool, text)| (tool, ToolOutput::Text(text))).collect())
}

/// The reports of the folders: devices with their counts, processor, and the kind of file.
#[test]
fn saved_machines_are_recognized() {
    use MachineFileKind::{Rig, System};
    type Expected =
        (&'static str, &'static [(u64, Option<&'static str>)], Option<&'static str>, MachineFileKind);
    const EXPECTED: [Expected; 21] = [
        ("a100-mig", &[(1, None)], Some("amd-epyc-7742"), System),
        ("broken-driver", &[], Some("amd-ryzen-9-7950x"), System),
        ("cloud-epyc", &[], Some("amd-epyc-9654"), System),
        ("cloud-vm", &[], None, System),
        ("dgx-spark", &[(1, Some("nvidia-gb10-dgx-spark"))], None, System),
        ("epyc-server", &[], Some("amd-epyc-9654"), System),
        ("hgx-h100", &[(8, Some("nvidia-h100-sxm"))], Some("intel-xeon-8480"), System),
        ("laptop", &[(1, Some("nvidia-rtx-4090-laptop"))], None, System),
        ("mac-intel", &[], None, System),
        ("mac-studio-m3-ultra", &[(1, Some("apple-m3-ultra"))], None, System),
        ("macbook-m4-pro", &[(1, Some("apple-m4-pro-24gb"))], None, System),
        ("mi300x-8", &[(8, Some("amd-mi300x"))], Some("amd-epyc-9654"), System),
        ("old-driver", &[(1, Some("nvidia-gtx-1080-ti"))], Some("intel-xeon-e5-2690-v3"), System),
        ("radeon-desktop", &[(1, Some("amd-rx-7900-xtx")), (1, None)], Some("amd-ryzen-9-7950x"), System),
        ("radeon-old-rocm", &[(1, Some("amd-mi210")), (1, None)], Some("amd-epyc-7763"), System),
        ("rtx-3090-bridged", &[(2, Some("nvidia-rtx-3090"))], Some("amd-ryzen-9-7950x"), System),
        ("rtx-3090-unbridged", &[(2, Some("nvidia-rtx-3090"))], Some("amd-ryzen-9-7950x"), System),
        (
            "rtx-4090-3090",
            &[(1, Some("nvidia-rtx-4090")), (1, Some("nvidia-rtx-3090"))],
            Some("amd-ryzen-9-7950x"),
            Rig,
        ),
        ("rtx-4090-desktop", &[(1, Some("nvidia-rtx-4090"))], Some("amd-ryzen-9-7950x"), System),
        ("strix-halo", &[(1, Some("amd-ryzen-ai-max-395"))], None, System),
        ("windows", &[(1, Some("nvidia-rtx-5090"))], None, System),
    ];
    assert_eq!(EXPECTED.map(|(name, ..)| name.to_owned()).to_vec(), machines());
    for (name, devices, processor, kind) in EXPECTED {
        let found = report(outputs(name), true);
        let ids: Vec<_> = found.devices.iter().map(|one| (one.count, one.device.as_deref())).collect();
        assert_eq!(ids, devices, "{name}");
        assert_eq!(found.host.device.as_deref(), processor, "{name}");
        assert_eq!(found.file.as_ref().map(|file| file.kind), Some(kind), "{name}: {:?}", found.notes);
        for one in &found.devices {
            assert_eq!(one.device.is_none(), one.left_out.is_some(), "{name}");
        }
        let text = text_of(&found, None, 80);
        assert!(text.lines().all(|line| line.chars().count() <= 90), "{text}");
    }
}

fn cluster_of_file(found: &MachineReport) -> Cluster {
    let file = found.file.as_ref().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("machine.json");
    std::fs::write(&path, file.content.to_string()).unwrap();
    let cluster = Catalog::default().hardware(path.to_str().unwrap());
    Cluster { id: "local".into(), ..cluster.unwrap_or_else(|fault| panic!("{fault}")) }
}

/// The file fits its schema and says the same as `--hardware local`, figure by figure and source by source.
#[test]
fn the_file_reads_back_to_the_machine() {
    for name in machines() {
        let catalog = on(outputs(&name));
        let found = catalog.detect(true).unwrap();
        let file = found.file.as_ref().unwrap();
        let schema = serde_json::to_value(schema(file.kind.name()).unwrap()).unwrap();
        let validator = jsonschema::validator_for(&schema).unwrap();
        let faults: Vec<String> =
            validator.iter_errors(&file.content).map(|fault| fault.to_string()).collect();
        assert!(faults.is_empty(), "{name}: {faults:?}");
        let unknown = found.devices.iter().any(|one| one.device.is_none() && one.fix.is_some());
        match (file.kind, unknown) {
            (MachineFileKind::System, false) => {
                let local = catalog.hardware("local").unwrap_or_else(|fault| panic!("{name}: {fault}"));
                assert_eq!(format!("{local:?}"), format!("{:?}", cluster_of_file(&found)), "{name}");
            }
            (MachineFileKind::System, true) => {
                let fault = catalog.hardware("local").unwrap_err();
                assert!(
                    fault.fix.contains("aliases") && fault.fix.contains("schema device"),
                    "{name}: {fault}"
                );
                cluster_of_file(&found);
            }
            (MachineFileKind::Rig, _) => {
                assert!(catalog.has_rig("local"), "{name}");
                assert!(catalog.hardware("local").unwrap_err().fix.contains("place"), "{name}");
                let folder = tempfile::tempdir().unwrap();
                let path = folder.path().join("machine.json");
                std::fs::write(&path, file.content.to_string()).unwrap();
                let read =
                    Catalog::default().rig(path.to_str().unwrap()).unwrap_or_else(|fault| panic!("{fault}"));
                assert_eq!(format!("{read:?}"), format!("{:?}", catalog.rig("LOCAL").unwrap()), "{name}");
            }
        }
    }
}

/// `local` of any machine has the figures of its file, also where the memory cannot be measured: there the headline of
/// a processor says what is assumed.
#[test]
fn local_and_the_file_of_detect_are_one_machine() {
    let (mut assumed, mut known) = (0, 0);
    for name in machines() {
        for (catalog, measured) in [(on(outputs(&name)), true), (on_unmeasured(outputs(&name)), false)] {
            let Ok(local) = catalog.hardware("local") else { continue };
            let found = catalog.detect(measured).unwrap();
            let file = cluster_of_file(&found);
            assert_eq!(format!("{local:?}"), format!("{file:?}"), "{name}, measured: {measured}");
            let rate = local.device.memory.bandwidth.clone().unwrap();
            if local.device.is_processor() {
                let grade = rate.source.grade;
                assert_eq!(grade == Grade::Measured, measured, "{name}: {rate:?}");
                let says = headline(&catalog).contains("memory bandwidth assumed");
                assert_eq!(says, grade == Grade::Assumed, "{name}: {rate:?}");
                assumed += u64::from(says);
                known += u64::from(!says);
            }
        }
    }
    assert!(assumed > 1 && known > 4, "{assumed} {known}");
}

/// The headline of a small model on this machine.
fn headline(catalog: &Catalog) -> String {
    let scenario =
        Scenario { model: Some("Qwen3-0.6B".into()), hardware: Some("local".into()), ..Scenario::default() };
    let request = OptimizeRequest { scenario, ..OptimizeRequest::default() };
    let answer = optimize(catalog, &request, &UNCONTROLLED).unwrap_or_else(|fault| panic!("{fault}"));
    screen::optimize(&answer, 200).lines().take(2).collect()
}

/// What a machine runs by default it also runs by name; and what computes on accelerators alone runs on no processor.
#[test]
fn the_default_runtime_of_a_machine_has_a_name() {
    let mut processors = 0;
    for name in machines() {
        let catalog = on(outputs(&name));
        let estimate = |runtime: Option<&str>| {
            let scenario = Scenario {
                runtime: runtime.map(str::to_owned),
                deployment: Some(Deployment { plan: Some("1 x tp1 @1".into()), ..Deployment::default() }),
                ..Scenario::of("Qwen3-0.6B", "local")
            };
            estimate(&catalog, &EstimateRequest::of(scenario), &UNCONTROLLED)
        };
        let Ok(usual) = estimate(None) else { continue };
        let named = estimate(Some(&usual.question.runtime)).unwrap_or_else(|fault| panic!("{name}: {fault}"));
        assert_eq!(named.candidate.notation, usual.candidate.notation, "{name}");
        let cluster = catalog.hardware("local").unwrap();
        if cluster.device.is_processor() {
            processors += 1;
            let fault = estimate(Some("vllm")).unwrap_err();
            assert!(fault.found.contains("accelerators alone"), "{name}: {fault}");
            assert!(fault.expected.contains("llama.cpp"), "{name}: {fault}");
        }
    }
    assert!(processors > 2, "{processors}");
}

#[test]
fn figures_of_the_machine_replace_those_of_the_catalogue() {
    let cluster =
        |name: &str| on(outputs(name)).hardware("local").unwrap_or_else(|fault| panic!("{name}: {fault}"));
    let tiers = |name: &str| cluster(name).tiers.iter().map(|tier| tier.link.clone()).collect::<Vec<_>>();
    assert_eq!(tiers("rtx-3090-bridged"), ["nvlink3-ga102"]);
    assert_eq!(tiers("rtx-3090-unbridged"), ["pcie4x16"], "no bridge is plugged in");
    assert_eq!(tiers("hgx-h100"), ["nvlink4"]);
    let shipped = Catalog::default().hardware("8xh100").unwrap();
    let found = cluster("hgx-h100");
    assert_eq!(format!("{:?}", found.device), format!("{:?}", shipped.device));
    let rent = |cluster: &Cluster| cluster.price.rent.as_ref().map(|rent| rent.value);
    assert_eq!(rent(&found), rent(&shipped));
    let host = found.host.unwrap();
    assert_eq!(host.memory.unwrap().value, 2_113_418_240.0 * 1024.0);
    assert_eq!(host.cpu.as_deref(), Some("2 x intel-xeon-8480"));
    let capacity = |name: &str| cluster(name).device.memory.capacity.unwrap().value;
    assert_eq!(capacity("mac-studio-m3-ultra"), 498.21621e9);
    let sold = Catalog::default().device("apple-m4-pro-24gb").unwrap().memory.capacity.unwrap().value;
    assert_eq!(capacity("macbook-m4-pro"), sold, "that of the size that the machine was sold with");
    assert_eq!(capacity("cloud-vm"), 8_589_934_592.0, "the limit of the container");
    assert_eq!(capacity("epyc-server"), 1_584_988_160.0 * 1024.0, "no limit");
    // A virtual machine has no more bandwidth than a desktop, unless it was measured.
    let assumed = Catalog::default().defaults().unwrap().host_memory_bandwidth.value;
    let unmeasured = |name: &str| on_unmeasured(outputs(name)).hardware("local").unwrap();
    let rate = |name: &str| unmeasured(name).device.memory.bandwidth.unwrap().value;
    assert_eq!((rate("cloud-epyc"), rate("cloud-vm")), (assumed, assumed));
    assert_eq!(rate("epyc-server"), 460.8e9, "of one socket");
    let measured = |name: &str| cluster(name).device.memory.bandwidth.unwrap();
    assert_eq!(measured("epyc-server").value, MEASURED.best() / 2.0);
    assert_eq!(measured("cloud-vm").value, MEASURED.best());
    assert_eq!(measured("cloud-vm").source.grade.to_string(), "measured");
    // 32 operations a clock with AVX2, 2 GHz; 2 and 8 cores.
    let peak = |name: &str| cluster(name).device.peak[&Arithmetic::Fp32].value;
    assert_eq!((peak("cloud-vm"), peak("cloud-epyc")), (128e9, 512e9));
}

/// Of the processors of a machine, those count that a container, `taskset` or `numactl` leaves to a process.
#[test]
fn processors_that_may_not_be_used_do_not_count() {
    let within = |list: &str, quota: &str| {
        let mut outputs = outputs("epyc-server");
        let status = format!("Name:\tx\nCpus_allowed:\tff\nCpus_allowed_list:\t{list}\n");
        for (tool, text) in
            [(MachineTool::AllowedProcessors, status), (MachineTool::ProcessorLimit, quota.into())]
        {
            outputs.0.insert(tool, ToolOutput::Text(text));
        }
        outputs
    };
    let found = |list: &str, quota: &str| {
        let machine = report(within(list, quota), false).host;
        let device = on(within(list, quota)).hardware("local").unwrap().device;
        (machine.sockets, machine.cores, device.peak[&Arithmetic::Fp32].value, device.id)
    };
    let whole = on(outputs("epyc-server")).hardware("local").unwrap().device;
    let socket = whole.peak[&Arithmetic::Fp32].value;
    let own = |cores: u64| (1, Some(cores), cores as f64 * 32.0 * 2e9, "unlisted-processor".to_owned());
    assert_eq!(found("0-15", "max 100000"), (2, Some(16), socket, whole.id.clone()));
    assert_eq!(found("0-7", "max 100000"), (1, Some(8), socket, whole.id.clone()), "a whole socket");
    assert_eq!(found("0-2,9", "max 100000"), own(4));
    assert_eq!(found("0-15", "150000 100000"), own(2));
    assert_eq!(found("0-7", "1600000 100000"), (1, Some(8), socket, whole.id.clone()), "more than there are");
    // What cannot be read limits nothing.
    assert_eq!(found("0-x", "many"), (2, Some(16), socket, whole.id.clone()));
    assert_eq!(found("99", "1 0"), (2, Some(16), socket, whole.id));
    let notes = report(within("0-2,9", "max 100000"), false).notes.join(" ");
    assert!(notes.contains("Only some of the cores of this processor may be used"), "{notes}");
}

/// The names of `nvidia-smi` in several versions, with the size that selects or rejects a variant.
#[test]
fn printed_names_are_devices_or_nothing() {
    const GIB_512: u64 = 536_870_912;
    for (row, id) in [
        ("NVIDIA A100-SXM4-80GB, 81920, 0", Some("nvidia-a100-sxm-80gb")),
        ("A100-SXM4-40GB, 40536, 0", Some("nvidia-a100-sxm-40gb")),
        ("NVIDIA A100-SXM4-40GB, 40960, 0", Some("nvidia-a100-sxm-40gb")),
        ("NVIDIA A100 80GB PCIe, 81920, 0", Some("nvidia-a100-pcie-80gb")),
        ("NVIDIA A100-PCIE-40GB, 40960, 0", Some("nvidia-a100-pcie-40gb")),
        ("GRID A100-20C, 20475, 0", None),
        ("NVIDIA H100 PCIe, 81559, 0", Some("nvidia-h100-pcie")),
        ("NVIDIA H100 NVL, 95830, 0", Some("nvidia-h100-nvl")),
        ("NVIDIA H200, 143771, 0", Some("nvidia-h200-sxm")),
        ("NVIDIA H200 NVL, 143771, 0", Some("nvidia-h200-nvl")),
        ("NVIDIA H20, 97871, 0", Some("nvidia-h20")),
        ("NVIDIA H20-3e, 143771, 0", Some("nvidia-h20-141gb")),
        ("NVIDIA B200, 183359, 0", Some("nvidia-b200-sxm")),
        ("NVIDIA GB200, 189471, 0", Some("nvidia-gb200")),
        ("NVIDIA GH200 480GB, 97871, 0", Some("nvidia-gh200-96gb")),
        ("NVIDIA L4, 23034, 0", Some("nvidia-l4")),
        ("NVIDIA L40S, 46068, 0", Some("nvidia-l40s")),
        ("NVIDIA A10G, 23028, 0", Some("nvidia-a10g")),
        ("Tesla T4, 15109, 0", Some("nvidia-t4")),
        ("Tesla V100-SXM2-32GB, 32510, 0", Some("nvidia-v100-sxm2-32gb")),
        ("Tesla V100-SXM2-16GB, 16160, 0", Some("nvidia-v100-sxm2-16gb")),
        ("NVIDIA RTX A6000, 46068, 0", Some("nvidia-rtx-a6000")),
        ("NVIDIA RTX 6000 Ada Generation, 49140, 0", Some("nvidia-rtx-6000-ada")),
        (
            "NVIDIA RTX PRO 6000 Blackwell Workstation Edition, 97887, 0",
            Some("nvidia-rtx-pro-6000-blackwell"),
        ),
        (
            "NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition, 97887, 0",
            Some("nvidia-rtx-pro-6000-blackwell-max-q"),
        ),
        ("NVIDIA GeForce RTX 3060, 12288, 0", Some("nvidia-rtx-3060-12gb")),
        ("NVIDIA GeForce RTX 3060, 8192, 0", None),
        ("NVIDIA GeForce RTX 3080, 12288, 0", None),
        ("NVIDIA GeForce RTX 4060 Ti, 16380, 0", Some("nvidia-rtx-4060-ti-16gb")),
        ("NVIDIA GeForce RTX 4060 Ti, 8188, 0", None),
        ("NVIDIA GeForce RTX 4090 D, 24564, 0", Some("nvidia-rtx-4090-d")),
        ("NVIDIA GeForce RTX 4090, 49140, 0", None),
        ("NVIDIA GeForce RTX 4090 Laptop GPU, 16376, 0", Some("nvidia-rtx-4090-laptop")),
        ("NVIDIA GeForce RTX 3080 Laptop GPU, 16384, 0", Some("nvidia-rtx-3080-laptop-16gb")),
        ("Quadro RTX 8000, 46080, 0", Some("nvidia-quadro-rtx-8000")),
        ("NVIDIA Thor, [N/A], [N/A]", None),
    ] {
        let found = report(gpu(row, GIB_512), false);
        let [one] = &found.devices[..] else { panic!("{row}: {:?}", found.devices) };
        assert_eq!(one.device.as_deref(), id, "{row}: {:?}", one.left_out);
    }
    // The memory of a machine that shares it selects the variant.
    let orin = |kib| report(gpu("Orin (nvgpu), [N/A], [N/A]", kib), false).devices[0].device.clone();
    assert_eq!(orin(64_349_000).as_deref(), Some("nvidia-jetson-agx-orin-64gb"));
    assert_eq!(orin(31_270_000), None);
    for text in ["No devices were found", "", "\n\n", "NVIDIA-SMI has failed because it couldn't communicate"]
    {
        assert!(report(gpu(text, GIB_512), false).devices.is_empty(), "{text}");
    }
}

#[test]
fn a_slower_slot_is_the_link_to_the_host() {
    let link = |row: &str| {
        let cluster = on(gpu(row, 65_536_000)).hardware("local").unwrap();
        cluster.device.host_link.map(|link| (link.link, link.bandwidth.value))
    };
    let of =
        |lanes: &str| link(&format!("NVIDIA GeForce RTX 4090, 24564, 0, {lanes}, 450.00, [N/A]")).unwrap();
    assert_eq!(of("4, 16"), ("pcie4x16".into(), 31.5e9));
    assert_eq!(of("5, 16"), ("pcie4x16".into(), 31.5e9), "no faster than the device");
    assert_eq!(of("[N/A], [N/A]"), ("pcie4x16".into(), 31.5e9));
    assert_eq!(of("4, 8"), ("pcie4x8".into(), 15.75e9));
    assert_eq!(of("3, 4"), ("pcie3x16".into(), 15.75e9 / 4.0));
}

#[test]
fn faults_of_tools_are_reported_and_the_library_has_no_machine() {
    let found = report(outputs("broken-driver"), false);
    let smi = found.tools.iter().find(|tool| tool.tool == "nvidia-smi").unwrap();
    assert!(!smi.found && smi.result.contains("version mismatch"), "{smi:?}");
    let text = text_of(&found, Some("machine.json"), 100);
    assert!(text.contains("Driver/library") && text.contains("--hardware machine.json"), "{text}");
    let fault = Catalog::default().hardware("local").unwrap_err();
    assert!(fault.key == "hardware" && fault.fix.contains("detect --out"), "{fault}");
    assert!(Catalog::default().detect(true).is_err());
    let nothing = report(MachineOutputs(BTreeMap::new()), true);
    assert!(
        nothing.file.is_none() && nothing.notes.iter().any(|note| note.contains("memory")),
        "{nothing:?}"
    );
    let mig = report(outputs("a100-mig"), false);
    assert!(mig.devices[0].left_out.as_ref().unwrap().contains("MIG"), "{mig:?}");
}

/// A device file of the user makes a device known, by the name that the tool prints.
#[test]
fn a_file_of_the_user_makes_a_device_known() {
    let mut file: Value = Catalog::default()
        .load::<Device>("nvidia-rtx-4090")
        .map(|d| serde_json::to_value(d).unwrap())
        .unwrap();
    file["id"] = "laptop-4090".into();
    file["aliases"] = serde_json::json!(["NVIDIA GeForce RTX 4090 Laptop GPU"]);
    file["memory"]["capacity"]["value"] = "16376 MiB".into();
    file["system"] = Value::Null;
    let kind = <Device as Entry>::KIND;
    let catalog = on(outputs("laptop")).with_entry(kind, "laptop-4090", &file.to_string());
    assert_eq!(catalog.hardware("local").unwrap().device.id, "laptop-4090");
}

#[test]
fn the_order_of_rows_changes_nothing() {
    let rows = [
        "NVIDIA GeForce RTX 3090, 24576, 7, 4, 8, 350.00, [N/A]",
        "NVIDIA GeForce RTX 3090, 24576, 1, 3, 16, 280.00, [N/A]",
    ];
    let of = |rows: &[&str]| serde_json::to_string(&report(gpu(&rows.join("\n"), 65_536_000), true)).unwrap();
    assert_eq!(of(&rows), of(&[rows[1], rows[0]]));
}
