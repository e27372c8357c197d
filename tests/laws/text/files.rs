//! Laws of the emitted files: any text in any field of the input, in every file.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use fastrand::Rng;
use mantile::request::{UNCONTROLLED, entry};
use mantile::spec::visible::acts;
use mantile::store::catalog::Catalog;
use serde_json::{Value, json};

use super::{HIDDEN, PAYLOADS};
use crate::draw::cases;

/// Programs that a recorder stands in for.
const RECORDED: [&str; 20] = [
    "vllm",
    "python",
    "python3",
    "trtllm-serve",
    "llama-server",
    "llama-bench",
    "rpc-server",
    "mlx.launch",
    "mlx_lm.server",
    "exo",
    "uv",
    "aiperf",
    "vllm-router",
    "nginx",
    "curl",
    "jq",
    "srun",
    "sleep",
    "touch",
    "mantile",
];
/// Programs of the system that scripts need.
const REAL: [&str; 6] = ["bash", "env", "dirname", "seq", "mktemp", "cat"];

/// A folder of recorders: each appends its words to a file, NUL between them.
struct Recorder {
    folder: tempfile::TempDir,
}

impl Recorder {
    fn new() -> Recorder {
        let folder = tempfile::tempdir().unwrap();
        let programs = folder.path().join("programs");
        fs::create_dir(&programs).unwrap();
        let record = folder.path().join("record");
        let script = format!(
            "#!/bin/bash\nprintf '%s\\0' \"${{0##*/}}\" \"$@\" >>{0}\nprintf '\\n' >>{0}\n",
            record.display()
        );
        let runs = |name: &str, text: &str| {
            let path = programs.join(name);
            fs::write(&path, text).unwrap();
            #[cfg(unix)]
            fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        };
        RECORDED.iter().for_each(|name| runs(name, &script));
        runs("scontrol", "#!/bin/bash\nfor number in {0..15}; do echo node-$number; done\n");
        for name in REAL {
            let found = ["/bin", "/usr/bin"].map(|place| Path::new(place).join(name));
            let found = found.iter().find(|path| path.exists()).unwrap();
            #[cfg(unix)]
            std::os::unix::fs::symlink(found, programs.join(name)).unwrap();
        }
        Recorder { folder }
    }

    /// Runs a script among the files of a launch; the words of all programs that it started.
    fn run(&self, files: &[(String, String)], script: &str) -> Vec<Vec<String>> {
        let work = tempfile::tempdir_in(self.folder.path()).unwrap();
        for (path, text) in files {
            fs::write(work.path().join(path), text).unwrap();
        }
        let record = self.folder.path().join("record");
        let _ = fs::remove_file(&record);
        let mut shell = Command::new("/bin/bash");
        shell.arg(script).current_dir(work.path()).env_clear().stdin(Stdio::null());
        shell.env("PATH", self.folder.path().join("programs")).env("SLURM_JOB_NODELIST", "nodes");
        for name in ["MODEL", "DEVICES", "RPC_SERVERS", "HOSTFILE", "NODES"] {
            shell.env(name, "given");
        }
        shell
            .env("HOST_RANK", "0")
            .env("FIRST_HOST", "first")
            .envs((0..16).map(|n| (format!("HOST_{n}"), "h")));
        shell.env("TMPDIR", self.folder.path());
        let done = shell.output().unwrap();
        let found: BTreeSet<PathBuf> =
            work.path().read_dir().unwrap().map(|one| one.unwrap().path()).collect();
        let written: BTreeSet<PathBuf> = files.iter().map(|(path, _)| work.path().join(path)).collect();
        assert_eq!(found, written, "{script} made a file");
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        assert!(!said.contains("syntax error") && !said.contains("command not found"), "{script}: {said}");
        let record = fs::read_to_string(&record).unwrap_or_default();
        let calls = record.split_terminator("\0\n").map(|call| call.split('\0').map(str::to_owned).collect());
        calls.collect()
    }
}

/// A problem with its files.
struct Seed {
    request: Value,
}

fn shipped(path: &str) -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

/// One problem for each way to launch, with every file that it rests on among those of the request.
fn seeds() -> Vec<Seed> {
    let model = |name: &str| shipped(&format!("models/{name}.json"));
    let device = |name: &str| shipped(&format!("hardware/devices/{name}.json"));
    let system = |name: &str| shipped(&format!("hardware/systems/{name}.json"));
    let of = |runtime: &str, hardware: &str, device_name: &str, system_name: &str, plan: &str| {
        let mut mine = model("meta-llama--Llama-3.1-8B");
        mine["name"] = "Mine".into();
        mine["aliases"] = json!([]);
        Seed {
            request: json!({
                "scenario": {
                    "model": "mine", "hardware": hardware, "runtime": runtime, "isl": 512, "osl": 128,
                    "set": ["device.memory.bandwidth=800GB/s"], "deployment": {"plan": plan},
                },
                "files": {
                    "models/mine": mine,
                    format!("hardware/devices/{device_name}"): device(device_name),
                    format!("hardware/systems/{system_name}"): system(system_name),
                },
            }),
        }
    };
    vec![
        of("vllm", "l40s-x1", "nvidia-l40s", "l40s-x1", "1 x tp1 @4, weights bf16"),
        of("vllm", "l40s-x8", "nvidia-l40s", "l40s-x8", "2 x tp2 @4, weights fp8"),
        of(
            "vllm",
            "l40s-x8",
            "nvidia-l40s",
            "l40s-x8",
            "prefill 1 x tp2 @1, decode 1 x tp2 @4, weights bf16",
        ),
        of(
            "sglang",
            "l40s-x8",
            "nvidia-l40s",
            "l40s-x8",
            "prefill 1 x tp2 @1, decode 1 x tp2 @4, weights bf16",
        ),
        of(
            "trtllm",
            "l40s-x8",
            "nvidia-l40s",
            "l40s-x8",
            "prefill 1 x tp2 @1, decode 1 x tp2 @4, weights bf16",
        ),
        of("llama.cpp", "l40s-x1", "nvidia-l40s", "l40s-x1", "1 x tp1 @1, weights q8_0"),
    ]
}

/// The pointers of all texts in a value.
fn texts(value: &Value, at: &str, found: &mut Vec<String>) {
    match value {
        Value::String(_) => found.push(at.to_owned()),
        Value::Array(items) => {
            (0..).zip(items).for_each(|(n, item)| texts(item, &format!("{at}/{n}"), found))
        }
        Value::Object(items) => items.iter().for_each(|(key, item)| {
            texts(item, &format!("{at}/{}", key.replace('~', "~0").replace('/', "~1")), found);
        }),
        _ => {}
    }
}

fn files(answer: &Value) -> Vec<(String, String)> {
    let text = |file: &Value, key: &str| file[key].as_str().unwrap().to_owned();
    let files = answer["files"].as_array().into_iter().flatten();
    files.map(|file| (text(file, "path"), text(file, "text"))).collect()
}

fn answer(request: &Value) -> Result<Value, mantile::spec::error::Error> {
    (entry("deploy")?.answer)(&Catalog::default(), request, &UNCONTROLLED)
}

/// The keys of a document and the number of its items, without the values.
fn shape(value: &Value, at: String, found: &mut Vec<String>) {
    match value {
        Value::Array(items) => (0..).zip(items).for_each(|(n, item)| shape(item, format!("{at}/{n}"), found)),
        Value::Object(items) => {
            items.iter().for_each(|(key, item)| shape(item, format!("{at}/{key}"), found))
        }
        _ => found.push(at),
    }
}

fn shapes(text: &str) -> Vec<String> {
    let documents: Vec<Value> =
        serde_saphyr::from_multiple(text).unwrap_or_else(|fault| panic!("{fault}\n{text}"));
    let mut found = Vec::new();
    shape(&Value::Array(documents), String::new(), &mut found);
    found
}

/// The names of programs and their flags, without the values.
fn programs(calls: &[Vec<String>]) -> BTreeSet<String> {
    calls.iter().map(|call| call[0].clone()).collect()
}

/// The files of a launch against those of the same launch with plain names.
fn check(recorder: &Recorder, plain: &[(String, String)], found: &[(String, String)], what: &str) {
    let names = |files: &[(String, String)]| files.iter().map(|(path, _)| path.clone()).collect::<Vec<_>>();
    if names(plain) != names(found) {
        // Another runtime version, format or device: another launch. Its files are still run.
        assert!(found.iter().all(|(path, _)| !path.contains("..")), "{what}");
    }
    for (path, text) in found {
        assert!(!text.chars().any(|c| acts(c) && c != '\n'), "{what}: {path} has hidden characters\n{text}");
        if path.ends_with(".yaml") {
            let same = plain.iter().find(|(name, _)| name == path);
            let (ours, theirs) = (shapes(text), same.map(|(_, text)| shapes(text)));
            let own =
                |shape: &Vec<String>| shape.iter().any(|at| at.contains("PWNED") || at.contains("touch"));
            assert!(!own(&ours), "{what}: {path}\n{text}");
            let _ = theirs.filter(|_| names(plain) == names(found)).map(|theirs| {
                assert_eq!(ours.len(), theirs.len(), "{what}: {path}\n{text}");
            });
        }
        if path.ends_with(".sh") {
            let calls = recorder.run(found, path);
            assert!(!programs(&calls).contains("touch"), "{what}: {path} ran it\n{text}");
            assert!(!calls.is_empty(), "{what}: {path} ran nothing\n{text}");
        }
    }
}

/// Law 5: any text in any field of any input. Nothing but the runtimes' own programs runs, no file appears, every YAML
/// file parses with the same keys, and no file has hidden characters.
#[test]
#[cfg(unix)]
fn no_text_of_an_input_is_obeyed_by_a_file() {
    let recorder = Recorder::new();
    let mut rng = Rng::with_seed(5);
    let seeds = seeds();
    let plain: Vec<Vec<(String, String)>> = seeds
        .iter()
        .map(|seed| files(&answer(&seed.request).unwrap_or_else(|fault| panic!("{fault}"))))
        .collect();
    assert!(
        plain.iter().all(|files| files.len() > 4),
        "{:?}",
        plain.iter().map(Vec::len).collect::<Vec<_>>()
    );
    let mut launched = 0;
    let named = ["/files/models~1mine/name", "/files/models~1mine/published/0/id", "/scenario/set/0"];
    for case in 0..cases(12) as usize {
        let at = if case < seeds.len() { case } else { rng.usize(..seeds.len()) };
        let mut request = seeds[at].request.clone();
        let mut fields = Vec::new();
        texts(&request, "", &mut fields);
        let systems = fields.iter().filter(|at| at.ends_with("/name") && !at.contains("tiers"));
        let often: Vec<String> = systems.cloned().chain(named.map(str::to_owned)).collect();
        let from = if rng.u8(..3) > 0 { &often } else { &fields };
        let field = rng.choice(from).unwrap().clone();
        let payload = match rng.u8(..6) {
            0 => rng.choice(HIDDEN).unwrap().to_owned(),
            1 => format!("org/{}", rng.choice(PAYLOADS).unwrap()),
            _ => rng.choice(PAYLOADS).unwrap().to_owned(),
        };
        let set = ["system.name", "device.name", "runtime.name", "system.host.cpu"][rng.usize(..4)];
        let payload = if field.ends_with("/set/0") { format!("{set}={payload}") } else { payload };
        *request.pointer_mut(&field).unwrap() = payload.as_str().into();
        let what = format!("{field} = {payload:?} of {}", seeds[at].request["scenario"]);
        match answer(&request) {
            Err(fault) => {
                assert!(!fault.to_string().chars().any(|c| acts(c) && c != '\n'), "{what}");
                assert!(!fault.key.is_empty() || !fault.file.is_empty(), "{what}: {fault}");
                assert!(fault.key != "launch", "{what}: {fault}");
            }
            Ok(found) => {
                let hidden =
                    payload.chars().any(acts) && (field.ends_with("/name") || field.ends_with("/id"));
                assert!(!hidden, "{what}: a name with hidden characters was taken");
                check(&recorder, &plain[at], &files(&found), &what);
                launched += usize::from(found["files"].as_array().is_some_and(|files| !files.is_empty()));
            }
        }
    }
    assert!(launched > 3, "{launched} launches");
}

/// Law 6: the name of a model and of a published checkpoint reaches the programs as it is.
#[test]
#[cfg(unix)]
fn programs_are_given_a_name_as_it_is() {
    let recorder = Recorder::new();
    let mut rng = Rng::with_seed(6);
    let seeds = seeds();
    for case in 0..cases(8) as usize {
        let payload = PAYLOADS[case % PAYLOADS.len()];
        let at = rng.usize(..2);
        let mut request = seeds[at].request.clone();
        request["files"]["models/mine"]["name"] = payload.into();
        for number in 0..4 {
            request["files"]["models/mine"]["published"][number]["id"] =
                format!("org{number}/{payload}").into();
        }
        let found = files(&answer(&request).unwrap_or_else(|fault| panic!("{payload}: {fault}")));
        let given = if at == 1 { "org0/".to_owned() + payload } else { payload.to_owned() };
        let given = if at == 1 || !payload.contains('/') { given } else { payload.to_owned() };
        for script in ["benchmark-vllm.sh", "benchmark-aiperf.sh"] {
            let calls = recorder.run(&found, script);
            let words: Vec<&String> = calls.iter().flatten().collect();
            assert!(words.iter().any(|word| **word == given), "{script}: {given:?} in {words:?}");
        }
        let title = format!("# {payload} on ");
        let server = &found.iter().find(|(path, _)| path == "server.sh").unwrap().1;
        assert!(server.contains(&title), "{title}: {server}");
        if at == 1 {
            let kubernetes = &found.iter().find(|(path, _)| path == "kubernetes.yaml").unwrap().1;
            let documents: Vec<Value> = serde_saphyr::from_multiple(kubernetes).unwrap();
            let arguments = &documents[0]["spec"]["template"]["spec"]["containers"][0]["args"];
            let wanted = given.replace('$', "$$");
            let found = arguments.as_array().unwrap().iter().any(|word| *word == wanted.as_str());
            assert!(found, "{wanted}: {arguments}");
        }
    }
}
