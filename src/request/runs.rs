//! Runs read from a text, and their names as the catalogue has them.

use std::collections::HashMap;

use crate::spec::error::Error;
use crate::spec::limits::ROWS;
use crate::spec::run::RunRecord;
use crate::spec::text::from_json;
use crate::store::catalog::Catalog;

/// The runs of a text with a run a line, as `bench` and `runs export` write them; `name` is that of its file.
///
/// # Errors
/// A line is no run, or has no id; the fault names the line.
pub fn read_runs(text: &str, name: &str) -> Result<Vec<RunRecord>, Error> {
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let read = |(count, (number, line)): (usize, (usize, &str))| {
        ROWS.check_whole("rows", count as u64 + 1)?;
        let named = |fault: Error| {
            let key = format!("line {}: {}", number + 1, fault.key);
            Error { key: key.trim_end_matches([':', ' ']).to_owned(), ..fault }.in_file(name)
        };
        let run: RunRecord = from_json(line, "a run").map_err(named)?;
        if run.run_id.trim().is_empty() {
            return Err(named(Error::new(
                "run_id",
                "an empty id",
                "an id",
                "give each run an id of its own",
            )));
        }
        Ok(run)
    };
    lines.enumerate().map(read).collect()
}

/// The runs of several files as one: each id once, in the order of the files.
///
/// # Errors
/// Two runs that differ have one id.
pub fn merged(files: Vec<(String, Vec<RunRecord>)>) -> Result<Vec<RunRecord>, Error> {
    let (mut places, mut merged) = (HashMap::<String, usize>::new(), Vec::<RunRecord>::new());
    for (file, runs) in files {
        for run in runs {
            match places.get(&run.run_id).and_then(|place| merged.get(*place)) {
                Some(known) if *known != run => {
                    let fix = "keep the file of one of them";
                    let found = format!("two runs with the id {}", run.run_id);
                    return Err(Error::new("run_id", found, "an id for each run", fix).in_file(file));
                }
                Some(_) => {}
                None => {
                    places.insert(run.run_id.clone(), merged.len());
                    merged.push(run);
                }
            }
        }
    }
    Ok(merged)
}

/// Whether a line is of a file of runs.
pub fn is_run(line: &str) -> bool {
    serde_json::from_str::<serde_json::Value>(line).is_ok_and(|run| run.get("run_id").is_some())
}

/// Runs as a text with a run a line.
pub fn lines_of(runs: &[RunRecord]) -> String {
    let line = |run| serde_json::to_string(run).expect("runs have only text keys") + "\n";
    runs.iter().map(line).collect()
}

/// The device of a hardware, and the devices that it has.
type KnownHardware = Option<(String, u64)>;

/// Runs with the runtime without its version, and the device in place of a system: a run may have the ids of the published
/// interface, `vllm-0.6.4-cuda12.4` and `dual-4090-epyc`.
pub(super) fn in_known_names(catalog: &Catalog, runs: &[RunRecord]) -> Vec<RunRecord> {
    let mut hardware = HashMap::<String, KnownHardware>::new();
    let of = |run: &RunRecord| {
        let mut run = run.clone();
        if let Ok((runtime, Some(version))) = catalog.runtime_by_id(&run.runtime_id) {
            run.runtime_id.clone_from(&runtime.id);
            run.runtime_version.get_or_insert(version);
        }
        if let Some(name) = run.hardware_id.clone() {
            let known = hardware.entry(name).or_insert_with_key(|name| device_of(catalog, name));
            if let Some((device, devices)) = known {
                run.hardware_id = Some(device.clone());
                if run.plan.is_none() && stated_devices(&run).is_none() {
                    run.devices = run.devices.or(Some(*devices));
                    run.parallelism.tensor_parallel = run.devices;
                }
            }
        }
        run
    };
    runs.iter().map(of).collect()
}

/// The device of a system; `None` of what is a device, or is not known.
fn device_of(catalog: &Catalog, name: &str) -> KnownHardware {
    if catalog.device(name).is_ok() {
        return None;
    }
    let cluster = catalog.hardware(name).ok()?;
    Some((cluster.device.id.clone(), cluster.devices()))
}

/// The devices that the degrees of a run need, where it states any.
fn stated_devices(run: &RunRecord) -> Option<u64> {
    let degrees = &run.parallelism;
    let stated =
        [degrees.tensor_parallel, degrees.pipeline_parallel, degrees.data_parallel, degrees.replicas];
    stated.into_iter().flatten().reduce(u64::saturating_mul)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_is_no_run_is_named() {
        let run = RunRecord { run_id: "a".to_owned(), ..RunRecord::default() };
        let text = lines_of(&[run.clone(), RunRecord { run_id: "b".to_owned(), ..run.clone() }]);
        assert_eq!(read_runs(&text, "x").unwrap().len(), 2);
        let fault = read_runs(&(text + "{\"run_id\": 5}\n"), "x.jsonl").unwrap_err();
        assert_eq!((fault.file.as_str(), fault.key.as_str()), ("x.jsonl", "line 3: run_id"));
        assert_eq!(read_runs(&lines_of(&[RunRecord::default()]), "x").unwrap_err().key, "line 1: run_id");
    }

    #[test]
    fn names_of_the_published_interface_are_those_of_the_catalogue() {
        let run = RunRecord {
            runtime_id: "vllm-0.6.4-cuda12.4".to_owned(),
            hardware_id: Some("dual-4090-epyc".to_owned()),
            ..RunRecord::default()
        };
        let known = in_known_names(&Catalog::default(), &[run]).remove(0);
        assert_eq!((known.runtime_id.as_str(), known.runtime_version.as_deref()), ("vllm", Some("0.6.4")));
        assert_eq!((known.hardware_id.as_deref(), known.devices), (Some("nvidia-rtx-4090"), Some(2)));
    }
}
