//! Files of many workers: ports that exist, no two processes on one, and no file that grows without end.

use std::collections::BTreeSet;
use std::process::Command;

use mantile::launch::slots::MOST_LISTED;

use super::golden::launch;

/// Bytes of all files of a launch, at most.
const LARGEST: usize = 4 << 20;
/// Bytes of an argument of a command on Linux, at most: execve(2).
const LONGEST_ARGUMENT: usize = 128 << 10;

/// The value of `NAME=` in a line.
fn value<'a>(line: &'a str, name: &str) -> &'a str {
    let start = format!("{name}=");
    line.split(' ').find_map(|word| word.strip_prefix(&start)).unwrap_or_else(|| panic!("no {name}: {line}"))
}

/// The ports that a script takes by itself as this replica.
fn own_ports(script: &str, replica: &str) -> String {
    let ports = ["export PORT=", "TRANSFER_PORT="];
    let lines = script.lines().filter(|line| ports.iter().any(|name| line.starts_with(name)));
    let lines: Vec<&str> = lines.collect();
    let text = format!("REPLICA={replica}\n{}\necho $PORT ${{TRANSFER_PORT:-0}}", lines.join("\n"));
    let output = Command::new("bash").args(["-c", &text]).output().unwrap();
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

#[test]
fn every_worker_of_many_has_ports_of_its_own() {
    for (hardware, runtime, plan, workers) in [
        ("64x8xh200", "vllm", "prefill 151 x tp2 @1, decode 52 x tp4 @48", 203),
        ("64x8xh200", "sglang", "prefill 151 x tp2 @1, decode 52 x tp4 @48", 203),
        ("64x8xh200", "trtllm", "prefill 51 x tp4 @1, decode 77 x tp4 @48", 128),
        ("64x8xh200", "vllm", "256 x tp2 @8", 256),
        ("64x8xh200", "vllm", "prefill 30 x tp2 pp2 @1, decode 20 x tp16 @48", 50),
    ] {
        let launch = launch("Llama-3.3-70B", hardware, runtime, plan);
        assert!(launch.runs(), "{plan}: {:?}", launch.unsupported);
        let slurm = &launch.file("slurm.sh").unwrap_or_else(|| panic!("{plan}: no slurm.sh")).text;
        let lines = slurm.lines().filter(|line| line.starts_with("on \"$HOST_") && line.contains("REPLICA="));
        let mut taken = BTreeSet::new();
        let mut found = BTreeSet::new();
        for line in lines {
            let host = line.split('"').nth(1).unwrap();
            let ports = ["PORT", "TRANSFER_PORT"].map(|name| value(line, name));
            for (name, port) in ["", "transfer "].iter().zip(ports) {
                let number: u32 = port.parse().unwrap();
                assert!(number <= u32::from(u16::MAX), "{plan}: {name}port {number}");
                assert!(taken.insert((host, *name, number)), "{plan}: {name}port {number} of {host} twice");
            }
            let script = line.rsplit("./").next().unwrap();
            let replica = value(line, "REPLICA");
            let of_script = &launch.file(script).unwrap().text;
            // Some of them: each starts a shell.
            if found.insert((script, replica)) && found.len() % 37 == 1 {
                let own = own_ports(of_script, replica);
                let (port, transfer) = own.split_once(' ').unwrap();
                assert_eq!(port, ports[0], "{plan}: {script} {replica}");
                let transfers = of_script.contains("TRANSFER_PORT=");
                assert!(!transfers || transfer == ports[1], "{plan}: {script} {replica}: {transfer}");
            }
        }
        assert_eq!(found.len(), workers, "{plan}");
        let bytes: usize = launch.files.iter().map(|file| file.text.len()).sum();
        assert!(bytes < LARGEST, "{plan}: {bytes}");
    }
}

/// The command of a router is one argument in a container, however many workers it names.
#[test]
fn the_most_workers_that_are_listed_fit_in_a_command() {
    for runtime in ["vllm", "sglang", "trtllm"] {
        let workers = MOST_LISTED / 2;
        let plan = format!("prefill {workers} x tp2 @1, decode {workers} x tp2 @8");
        let launch = launch("Llama-3.3-70B", "128x8xh200", runtime, &plan);
        assert!(launch.runs(), "{runtime}: {:?}", launch.unsupported);
        for name in ["router.sh", "kubernetes.yaml"] {
            let file = launch.file(name).unwrap_or_else(|| panic!("{runtime}: no {name}"));
            let longest = file.text.lines().map(str::len).max().unwrap();
            assert!(longest < LONGEST_ARGUMENT, "{runtime}: {longest} bytes in {name}");
        }
    }
}

#[test]
fn files_of_a_hundred_thousand_devices_list_no_worker() {
    for (plan, kubernetes) in
        [("prefill 24000 x tp2 @1, decode 12000 x tp4 @288", false), ("50000 x tp2 @8", true)]
    {
        let launch = launch("Llama-3.3-70B", "12500x8xh200", "vllm", plan);
        assert!(launch.runs(), "{plan}: {:?}", launch.unsupported);
        let bytes: usize = launch.files.iter().map(|file| file.text.len()).sum();
        assert!(bytes < 64 << 10, "{plan}: {bytes}");
        assert!(launch.notes.iter().any(|note| note.contains(&MOST_LISTED.to_string())), "{plan}");
        for (name, expected) in [
            ("kubernetes.yaml", kubernetes),
            ("dynamo.yaml", true),
            ("llm-d-values.yaml", true),
            ("slurm.sh", false),
            ("router.sh", false),
        ] {
            assert_eq!(launch.file(name).is_some(), expected, "{plan}: {name}");
            let readme = &launch.file("README.md").unwrap().text;
            assert_eq!(
                readme.contains(&format!("`{name}`")),
                expected && name != "router.sh",
                "{plan}: {name}"
            );
        }
    }
}
