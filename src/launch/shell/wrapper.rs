//! Words before a command that do not change it: launchers, and programs that run it in a container.

use crate::launch::images::with_entry_point;
use crate::launch::settings_file::file_name;

use super::studio::of_studio;
use super::{assignment, starts_server};

/// A command without what starts it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Started {
    pub(super) words: Vec<String>,
    pub(super) environment: Vec<(String, String)>,
    /// Variables that it does not get.
    pub(super) unset: Vec<String>,
    /// Whether it gets no variable of the shell.
    pub(super) clears: bool,
    pub(super) image: Option<String>,
    pub(super) devices: Option<u64>,
    pub(super) notes: Vec<String>,
}

/// A program that runs the command in its words.
struct Wrapper {
    names: &'static [&'static str],
    /// The words after its name that run a command; none if it always does.
    runs: &'static [&'static str],
    /// Options whose value is the next word.
    valued: &'static [&'static str],
    /// Words before the command that are no options.
    positional: usize,
    kind: Kind,
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Plain,
    /// The first word that is no option is an image.
    Image,
    /// The command is what follows `--`.
    Dashes,
    /// The words are joined, and a shell reads them.
    Shell,
}

/// Options of `docker compose run` and its kin that take a value.
const COMPOSE_VALUED: [&str; 15] = [
    "-e",
    "--env",
    "--name",
    "-u",
    "--user",
    "-v",
    "--volume",
    "-w",
    "--workdir",
    "--entrypoint",
    "-p",
    "--publish",
    "-l",
    "--label",
    "--index",
];

const fn plain(names: &'static [&'static str], valued: &'static [&'static str]) -> Wrapper {
    Wrapper { names, runs: &[], valued, positional: 0, kind: Kind::Plain }
}

const fn after(names: &'static [&'static str], valued: &'static [&'static str]) -> Wrapper {
    Wrapper { names, runs: &[], valued, positional: 1, kind: Kind::Plain }
}

const fn running(
    names: &'static [&'static str],
    runs: &'static [&'static str],
    valued: &'static [&'static str],
) -> Wrapper {
    Wrapper { names, runs, valued, positional: 0, kind: Kind::Plain }
}

/// Options of `docker run` whose value is the next word, as its reference lists them.
const CONTAINER_OPTIONS: &[&str] = &[
    "-e",
    "--env",
    "--env-file",
    "-v",
    "--volume",
    "--mount",
    "-p",
    "--publish",
    "--name",
    "--gpus",
    "--shm-size",
    "--ipc",
    "--network",
    "--net",
    "-w",
    "--workdir",
    "-u",
    "--user",
    "--entrypoint",
    "--device",
    "--group-add",
    "--cap-add",
    "--cap-drop",
    "--security-opt",
    "--ulimit",
    "-m",
    "--memory",
    "--memory-swap",
    "--cpus",
    "--cpuset-cpus",
    "--cpuset-mems",
    "-c",
    "--cpu-shares",
    "--cpu-quota",
    "--cpu-period",
    "--restart",
    "--runtime",
    "-h",
    "--hostname",
    "-l",
    "--label",
    "--label-file",
    "--log-driver",
    "--log-opt",
    "--pid",
    "--platform",
    "--pull",
    "--tmpfs",
    "--add-host",
    "--dns",
    "--expose",
    "--userns",
    "--uts",
    "--cgroupns",
    "--cgroup-parent",
    "--cidfile",
    "--health-cmd",
    "--health-interval",
    "--health-retries",
    "--health-timeout",
    "--health-start-period",
    "--link",
    "--mac-address",
    "--ip",
    "--network-alias",
    "--oom-score-adj",
    "--pids-limit",
    "--stop-signal",
    "--stop-timeout",
    "--storage-opt",
    "--sysctl",
    "--volume-driver",
    "--volumes-from",
    "--device-cgroup-rule",
    "--annotation",
    "-a",
    "--attach",
    "--blkio-weight",
    "--kernel-memory",
    "--memory-reservation",
    "--memory-swappiness",
    "--isolation",
    "--hooks-dir",
    "--secret",
    "--arch",
    "--os",
    "--pod",
    "--authfile",
    "--creds",
];

/// Options of `mpirun` with one value; `--mca` has two.
const MPI_OPTIONS: &[&str] = &[
    "-n",
    "-np",
    "--n",
    "--np",
    "-c",
    "-N",
    "-npernode",
    "--npernode",
    "-ppn",
    "-H",
    "-host",
    "--host",
    "-hostfile",
    "--hostfile",
    "-machinefile",
    "--machinefile",
    "-x",
    "-map-by",
    "--map-by",
    "-bind-to",
    "--bind-to",
    "-rank-by",
    "--rank-by",
    "-wdir",
    "--wdir",
    "-wd",
    "--output-filename",
    "--prefix",
    "--timeout",
    "--report-pid",
    "--tag-output-to",
];

const SLURM_OPTIONS: &[&str] = &[
    "-N",
    "--nodes",
    "-n",
    "--ntasks",
    "--ntasks-per-node",
    "-c",
    "--cpus-per-task",
    "-p",
    "--partition",
    "-A",
    "--account",
    "-t",
    "--time",
    "-J",
    "--job-name",
    "-w",
    "--nodelist",
    "-x",
    "--exclude",
    "-o",
    "--output",
    "-e",
    "--error",
    "-i",
    "--input",
    "-G",
    "--gpus",
    "--gpus-per-node",
    "--gpus-per-task",
    "--gres",
    "--mem",
    "--mpi",
    "--container-image",
    "--container-mounts",
    "--container-name",
    "--container-workdir",
    "--container-env",
    "--container-save",
    "--export",
    "-D",
    "--chdir",
    "--het-group",
    "--jobid",
    "-q",
    "--qos",
    "-r",
    "--relative",
    "--cpu-bind",
    "--mem-bind",
    "--gpu-bind",
    "--distribution",
    "-m",
    "--reservation",
    "--constraint",
    "-C",
    "--kill-on-bad-exit",
    "--wait",
];

const WRAPPERS: [Wrapper; 31] = [
    plain(
        &["exec", "nohup", "builtin", "setsid", "unbuffer", "trtllm-llmapi-launch", "tini", "dumb-init"],
        &[],
    ),
    plain(
        &["sudo", "doas"],
        &["-u", "--user", "-g", "--group", "-h", "--host", "-p", "-C", "-r", "-t", "-U", "-D"],
    ),
    plain(&["time"], &["-f", "--format", "-o", "--output"]),
    plain(&["env"], &["-u", "--unset", "-C", "--chdir"]),
    plain(&["command"], &[]),
    plain(&["nice"], &["-n", "--adjustment"]),
    plain(&["ionice"], &["-c", "--class", "-n", "--classdata"]),
    plain(
        &["numactl"],
        &[
            "-N",
            "--cpunodebind",
            "-m",
            "--membind",
            "-i",
            "--interleave",
            "-C",
            "--physcpubind",
            "-p",
            "--preferred",
            "-P",
            "--preferred-many",
            "-w",
            "--weighted-interleave",
        ],
    ),
    after(&["taskset"], &[]),
    after(&["timeout"], &["-k", "--kill-after", "-s", "--signal"]),
    after(&["chrt"], &[]),
    plain(&["stdbuf"], &["-i", "--input", "-o", "--output", "-e", "--error"]),
    running(
        &["uv"],
        &["run"],
        &[
            "--with",
            "-w",
            "--with-requirements",
            "--with-editable",
            "--python",
            "-p",
            "--project",
            "--directory",
            "--extra",
            "--group",
            "--no-group",
            "--only-group",
            "--index",
            "--index-url",
            "-i",
            "--default-index",
            "--extra-index-url",
            "--env-file",
            "--package",
            "--cache-dir",
            "--config-file",
            "--prerelease",
            "--index-strategy",
            "--torch-backend",
        ],
    ),
    plain(&["uvx", "pipx"], &["--with", "--from", "--python", "-p", "--spec", "--index", "--torch-backend"]),
    running(
        &["poetry", "pipenv", "pdm", "hatch", "rye"],
        &["run"],
        &["-C", "--directory", "-P", "--project"],
    ),
    running(&["conda", "mamba", "micromamba"], &["run"], &["-n", "--name", "-p", "--prefix", "--cwd"]),
    running(&["pixi"], &["run"], &["-e", "--environment", "--manifest-path"]),
    plain(&["mpirun", "mpiexec", "orterun", "prterun"], MPI_OPTIONS),
    plain(&["srun"], SLURM_OPTIONS),
    running(
        &["nsys"],
        &["profile"],
        &["-o", "--output", "-t", "--trace", "-s", "--sample", "-c", "-w", "-f", "-x"],
    ),
    Wrapper {
        names: &["docker", "podman", "nerdctl"],
        runs: &["run"],
        valued: CONTAINER_OPTIONS,
        positional: 0,
        kind: Kind::Image,
    },
    Wrapper {
        names: &["docker", "podman", "nerdctl"],
        runs: &["exec"],
        valued: &["-e", "--env", "--env-file", "-u", "--user", "-w", "--workdir", "--detach-keys"],
        positional: 1,
        kind: Kind::Plain,
    },
    Wrapper {
        names: &["docker", "podman"],
        runs: &["compose run", "compose exec"],
        valued: &COMPOSE_VALUED,
        positional: 1,
        kind: Kind::Plain,
    },
    Wrapper {
        names: &["docker-compose"],
        runs: &["run", "exec"],
        valued: &COMPOSE_VALUED,
        positional: 1,
        kind: Kind::Plain,
    },
    Wrapper {
        names: &["kubectl", "oc"],
        runs: &["run", "exec"],
        valued: &[],
        positional: 0,
        kind: Kind::Dashes,
    },
    Wrapper {
        names: &["apptainer", "singularity"],
        runs: &["exec", "run"],
        valued: &[
            "-B",
            "--bind",
            "--env",
            "--env-file",
            "-W",
            "--workdir",
            "--pwd",
            "-H",
            "--home",
            "-S",
            "--scratch",
        ],
        positional: 0,
        kind: Kind::Image,
    },
    plain(&["nvidia_entrypoint.sh", "docker-entrypoint.sh"], &[]),
    plain(&["catchsegv", "xargs"], &["-I", "-n", "-P"]),
    plain(&["proxychains", "proxychains4"], &["-f"]),
    plain(&["strace", "ltrace"], &["-o", "-e", "-p", "-s"]),
    Wrapper { names: &["ssh"], runs: &[], valued: &SSH_VALUED, positional: 1, kind: Kind::Shell },
];

/// Options of `ssh` with a value.
const SSH_VALUED: [&str; 20] = [
    "-B", "-b", "-c", "-D", "-E", "-e", "-F", "-I", "-i", "-J", "-L", "-l", "-m", "-O", "-o", "-p", "-Q",
    "-R", "-S", "-W",
];

/// Options whose value is a variable of the command.
const ENVIRONMENT_OPTIONS: [&str; 3] = ["-e", "--env", "-x"];

/// Launchers in launchers.
const DEEPEST: usize = 16;

/// The command that the words start; `exported` gives the variables that an option names without a value.
pub(super) fn started(words: Vec<String>, exported: &dyn Fn(&str) -> Option<String>) -> Started {
    let mut one = Started { words, ..Started::default() };
    for _ in 0..DEEPEST {
        let before = one.words.len();
        // The mark of a prompt.
        if one.words.first().is_some_and(|word| ["$", "#", ">", "%"].contains(&word.as_str())) {
            one.words.remove(0);
        }
        while let Some((name, _, value)) = one.words.first().and_then(|word| assignment(word)) {
            one.environment.push((name.to_owned(), value.to_owned()));
            one.words.remove(0);
        }
        if !unwrap(&mut one, exported) && one.words.len() == before {
            break;
        }
    }
    interpreter(&mut one.words);
    own_launcher(&mut one);
    of_studio(&mut one);
    own_build(&mut one.words);
    one
}

/// Words after which a script of the user's own runs a command.
const RUNS: [&str; 3] = ["exec", "run", "--"];

/// A script that is not known, and runs a server in its last words.
fn own_launcher(one: &mut Started) {
    let at = one.words.iter().position(|word| RUNS.contains(&word.as_str()));
    let Some(at) = at.filter(|at| *at > 0 && starts_server(&one.words[at + 1..])) else { return };
    let launcher: Vec<String> = one.words.drain(..=at).collect();
    one.notes.push(format!("`{}` is taken to run the words after it", launcher.join(" ")));
}

/// A build of llama.cpp under a name of its own, e.g. `llama-server-cuda`, `/opt/llama-server/b7100`, or `server` as in
/// versions before June 2024.
fn own_build(words: &mut [String]) {
    let is_file = |word: &String| word.ends_with(".gguf");
    let old = |first: &str| ["server", "server.exe"].contains(&file_name(first));
    let gguf = words.iter().any(is_file);
    if let Some(first) =
        words.first_mut().filter(|first| first.contains("llama-server") || gguf && old(first))
    {
        *first = "llama-server".to_owned();
    }
}

/// Removes one wrapper.
fn unwrap(one: &mut Started, exported: &dyn Fn(&str) -> Option<String>) -> bool {
    let Some(first) = one.words.first().map(|word| file_name(word).to_owned()) else { return false };
    let Some((wrapper, begin)) =
        WRAPPERS.iter().find_map(|wrapper| Some((wrapper, begins(wrapper, &first, one)?)))
    else {
        return false;
    };
    // A question about a command runs none.
    if first == "command" && one.words.get(1).is_some_and(|word| word == "-v" || word == "-V") {
        one.words.clear();
        return true;
    }
    let words = std::mem::take(&mut one.words);
    let rest = &words[begin..];
    if wrapper.kind == Kind::Dashes {
        let image = rest.iter().find_map(|word| word.strip_prefix("--image="));
        one.image = image.map(str::to_owned).or(one.image.take());
        let at = rest.iter().position(|word| word == "--");
        one.words = at.map(|at| rest[at + 1..].to_vec()).unwrap_or_default();
        if let Some(image) = one.image.clone() {
            enter(one, &image, None);
        }
        return true;
    }
    let mut entry = None;
    let mut at = begin;
    while let Some(word) = words.get(at).filter(|word| word.starts_with('-') && word.len() > 1) {
        at += 1;
        if word == "--" {
            break;
        }
        let (flag, inline) = match word.split_once('=') {
            Some((flag, value)) => (flag, Some(value.to_owned())),
            None => (word.as_str(), None),
        };
        let values = usize::from(inline.is_none() && wrapper.valued.contains(&flag))
            + usize::from(["--mca", "-mca", "-genv"].contains(&flag)) * 2;
        let value = inline.or_else(|| words.get(at).cloned().filter(|_| values > 0));
        at += values;
        if flag == "--entrypoint" {
            entry.clone_from(&value);
        }
        option(one, &first, flag, value, exported);
    }
    let image = (wrapper.kind == Kind::Image).then(|| words.get(at).cloned()).flatten();
    at += wrapper.positional + usize::from(image.is_some());
    one.words = words.get(at..).unwrap_or_default().to_vec();
    if wrapper.kind == Kind::Shell && !one.words.is_empty() {
        one.words = vec!["sh".to_owned(), "-c".to_owned(), one.words.join(" ")];
    } else if let Some(image) = image {
        enter(one, &image, entry);
    } else if let Some(entry) = entry {
        one.words.insert(0, entry);
    }
    true
}

/// The number of words that name the wrapper, where the words begin with it.
fn begins(wrapper: &Wrapper, first: &str, one: &Started) -> Option<usize> {
    if !wrapper.names.contains(&first) {
        return None;
    }
    if wrapper.runs.is_empty() {
        return Some(1);
    }
    let runs = |run: &&&str| {
        let parts: Vec<&str> = run.split(' ').collect();
        one.words.get(1..=parts.len()).is_some_and(|words| words.iter().zip(&parts).all(|(a, b)| a == b))
    };
    wrapper.runs.iter().find(runs).map(|run| 1 + run.split(' ').count())
}

/// Sets in the command the values that an option of its wrapper states.
fn option(
    one: &mut Started,
    wrapper: &str,
    flag: &str,
    value: Option<String>,
    exported: &dyn Fn(&str) -> Option<String>,
) {
    match (wrapper, flag) {
        ("env", "-i" | "-" | "--ignore-environment") => one.clears = true,
        ("env", "-u" | "--unset") => one.unset.extend(value),
        ("env", flag) if flag.starts_with("-u") => one.unset.push(flag[2..].to_owned()),
        ("srun", "--container-image") => one.image = value.map(|image| image.replace('#', "/")),
        ("docker" | "podman" | "nerdctl", "--gpus") => one.devices = value.and_then(|value| devices(&value)),
        (
            "docker" | "podman" | "nerdctl" | "docker-compose" | "mpirun" | "mpiexec" | "orterun" | "prterun",
            flag,
        ) if ENVIRONMENT_OPTIONS.contains(&flag) => {
            let Some(value) = value else { return };
            match value.split_once('=') {
                Some((name, value)) => one.environment.push((name.to_owned(), value.to_owned())),
                None => one.environment.extend(exported(&value).map(|known| (value, known))),
            }
        }
        _ => {}
    }
}

/// Devices of `--gpus 2`, `--gpus device=0,1` and `--gpus count=2`; `all` is no number.
fn devices(value: &str) -> Option<u64> {
    let value = value.trim_matches(['"', '\'']);
    if let Some(ids) = value.strip_prefix("device=") {
        return Some(ids.split(',').count() as u64);
    }
    value.strip_prefix("count=").unwrap_or(value).parse().ok()
}

/// The words of a container as a command: with the program of its image.
fn enter(one: &mut Started, image: &str, entry: Option<String>) {
    one.image = Some(image.to_owned());
    let words = std::mem::take(&mut one.words);
    match entry.filter(|entry| !entry.is_empty()) {
        Some(entry) => one.words = [entry].into_iter().chain(words).collect(),
        None => {
            let (words, note) = with_entry_point(Some(image), words);
            one.words = words;
            one.notes.extend(note);
        }
    }
}

/// Options of an interpreter before its module or script.
fn interpreter(words: &mut Vec<String>) {
    // An interpreter in a variable, e.g. `$PYTHON -m vllm.entrypoints.openai.api_server`.
    if words.first().is_some_and(|word| word.starts_with('$'))
        && words.get(1).is_some_and(|word| word == "-m")
    {
        words[0] = "python3".to_owned();
    }
    if !words.first().is_some_and(|word| file_name(word).starts_with("python")) {
        return;
    }
    while let Some(word) =
        words.get(1).filter(|word| word.starts_with('-') && !["-m", "-c"].contains(&word.as_str()))
    {
        let values = usize::from(["-X", "-W"].contains(&word.as_str()));
        let end = (2 + values).min(words.len());
        words.drain(1..end);
    }
}
