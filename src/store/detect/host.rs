//! Processor and memory of a host: `/proc` on Linux, CIM on Windows; and the name under which a catalogue knows a processor.

use std::collections::BTreeSet;

use serde_json::Value;

use super::printed::{PrintedHost, memory as size, number};

const KIB: f64 = 1024.0;
/// A socket with fewer cores is a virtual core that a hypervisor shows as a socket.
const FEWEST_CORES: u64 = 4;

/// The value of `key` in a line `key : value`.
fn field<'a>(line: &'a str, key: &str) -> Option<&'a str> {
    let (name, value) = line.split_once(':')?;
    (name.trim() == key).then(|| value.trim())
}

/// The processor in `/proc/cpuinfo`.
pub fn linux(text: &str) -> PrintedHost {
    let all = |key: &'static str| text.lines().filter_map(move |line| field(line, key));
    let threads = all("processor").count() as u64;
    let (mut socket, mut sockets, mut cores) = ("", BTreeSet::new(), BTreeSet::new());
    for line in text.lines() {
        if let Some(number) = field(line, "physical id") {
            socket = number;
            sockets.insert(number);
        }
        if let Some(core) = field(line, "core id") {
            cores.insert((socket, core));
        }
    }
    let cores = Some(cores.len() as u64).filter(|cores| *cores > 0);
    let guest =
        all("flags").next().is_some_and(|flags| flags.split_whitespace().any(|flag| flag == "hypervisor"));
    let count = (sockets.len() as u64).max(1);
    let whole = !guest && cores.is_none_or(|cores| cores >= count * FEWEST_CORES);
    let first = |key| all(key).next();
    // Arm prints numbers in the place of a name.
    let arm = || Some(format!("Arm processor {} {}", first("CPU implementer")?, first("CPU part")?));
    let name = first("model name").filter(|name| !name.is_empty()).map(str::to_owned);
    PrintedHost {
        processor: name.or_else(arm),
        sockets: if whole { count } else { 1 },
        cores,
        threads: Some(threads).filter(|threads| *threads > 0),
        memory: None,
        free: None,
        guest,
    }
}

/// Total and available memory in `/proc/meminfo`, in bytes.
pub fn linux_memory(text: &str) -> (Option<f64>, Option<f64>) {
    let of = |key: &str| {
        let value = text.lines().find_map(|line| field(line, key))?;
        number(value.strip_suffix("kB")?).map(|kib| kib * KIB)
    };
    (of("MemTotal").and_then(size), of("MemAvailable"))
}

/// Processor and memory in the JSON of the query of Windows.
pub fn windows(text: &str) -> Option<PrintedHost> {
    let value: Value = serde_json::from_str(text.trim_start_matches('\u{feff}')).ok()?;
    let processors = value.get("processors")?.as_array()?;
    let sum = |key: &str| {
        let counts = processors.iter().map(|one| one.get(key).and_then(Value::as_u64));
        counts.sum::<Option<u64>>().filter(|count| *count > 0)
    };
    let memory =
        |key: &str| value.get("memory")?.get(key)?.as_f64().filter(|kib| *kib >= 0.0).map(|kib| kib * KIB);
    let name = processors.first().and_then(|one| one.get("Name")?.as_str());
    Some(PrintedHost {
        processor: name.map(|name| name.trim().to_owned()).filter(|name| !name.is_empty()),
        sockets: (processors.len() as u64).max(1),
        cores: sum("NumberOfCores"),
        threads: sum("NumberOfLogicalProcessors"),
        memory: memory("TotalVisibleMemorySize").and_then(size),
        free: memory("FreePhysicalMemory"),
        guest: false,
    })
}

/// The name of a processor without marks, clock, core count and the words around it:
/// `13th Gen Intel(R) Core(TM) i9-13900K @ 3.00GHz` → `Intel Core i9-13900K`.
pub fn bare_name(printed: &str) -> String {
    let text = printed.replace("(R)", " ").replace("(TM)", " ").replace("(r)", " ").replace("(tm)", " ");
    let text = [" @", " w/", " with "]
        .iter()
        .fold(text.as_str(), |text, mark| text.split_once(mark).map_or(text, |(name, _)| name));
    let words: Vec<&str> = text.split_whitespace().collect();
    let words = match &words[..] {
        [number, generation, rest @ ..]
            if generation.eq_ignore_ascii_case("gen") && number.ends_with("th") =>
        {
            rest
        }
        words => words,
    };
    let noise = |word: &str| {
        let counted = word.strip_suffix("-Core").or_else(|| word.strip_suffix("-Cores"));
        counted.is_some_and(|count| count.bytes().all(|c| c.is_ascii_digit()))
            || ["CPU", "Processor"].contains(&word)
    };
    let kept: Vec<&str> = words.iter().copied().filter(|word| !noise(word)).collect();
    kept.join(" ").replace("Ryzen Threadripper", "Threadripper")
}
