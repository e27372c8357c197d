//! Processor and memory of a host: `/proc` on Linux, CIM on Windows; and the name under which a catalogue knows a processor.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use serde_json::Value;

use super::printed::{CoreRate, PrintedHost, memory as size, number};

const KIB: f64 = 1024.0;
/// A socket with fewer cores is a virtual core that a hypervisor shows as a socket.
const FEWEST_CORES: u64 = 4;

/// The value of `key` in a line `key : value`.
fn field<'a>(line: &'a str, key: &str) -> Option<&'a str> {
    let (name, value) = line.split_once(':')?;
    (name.trim() == key).then(|| value.trim())
}

/// The widest instructions of x86 processors by their flags, and the fp32 operations of a core a clock with them: two
/// multiply-adds, or an addition and a multiplication, each of as many numbers as a register holds. Of Zen 5 and of Xeons
/// AVX-512 does twice as much, of others as much as AVX2 (<http://numberworld.org/blogs/2024_8_7_zen5_avx512_teardown>);
/// flags say which only of cores with AMX, those of Xeons since Sapphire Rapids
/// (<https://chipsandcheese.com/p/a-peek-at-sapphire-rapids>).
///
/// Source: <https://stackoverflow.com/questions/15655835/flops-per-cycle-for-sandy-bridge-and-haswell-sse2-avx-avx2>.
const WIDEST: [(&[&str], f64, &str); 4] = [
    (&["avx512f", "amx_tile"], 64.0, "2 FMA of 512 bit a clock and core, as Xeons with AMX have"),
    (&["avx2", "fma"], 32.0, "2 FMA of 256 bit a clock and core, as AVX2 has"),
    (&["avx"], 16.0, "an addition and a multiplication of 256 bit a clock and core, as AVX has"),
    (&["sse2"], 8.0, "an addition and a multiplication of 128 bit a clock and core, as SSE2 has"),
];

/// Clocks that a processor can have, in MHz: others are faults of the tool.
const MEGAHERTZ: RangeInclusive<f64> = 100.0..=10_000.0;

/// The values of a key in all lines.
fn values<'a>(text: &'a str, key: &'static str) -> impl Iterator<Item = &'a str> {
    text.lines().filter_map(move |line| field(line, key))
}

/// The rate of a core in `/proc/cpuinfo`. The clock may be lower at the moment: the counter of time stamps, whose rate is
/// half of the BogoMIPS, runs at that without boost.
fn core_rate(text: &str) -> Option<CoreRate> {
    let flags: Vec<&str> = values(text, "flags").next()?.split_whitespace().collect();
    let highest = |key: &'static str| values(text, key).filter_map(number).fold(0.0, f64::max);
    let mega = highest("cpu MHz").max(highest("bogomips") / 2.0);
    let widest = WIDEST.iter().find(|(all, ..)| all.iter().all(|flag| flags.contains(flag)))?;
    let (_, operations, instructions) = *widest;
    MEGAHERTZ.contains(&mega).then_some(CoreRate { clock: mega * 1e6, operations, instructions })
}

/// The processors of a machine that a container, `taskset` or `numactl` leaves to a process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProcessorLimits {
    /// Their numbers; empty where they are not printed.
    allowed: Vec<RangeInclusive<u64>>,
    /// Their time, in whole processors.
    quota: Option<u64>,
}

impl ProcessorLimits {
    /// By `/proc/self/status` (`0-3,8`) and by the `cpu.max` of a cgroup (microseconds in each period, or `max`).
    ///
    /// Sources: <https://man7.org/linux/man-pages/man5/proc_pid_status.5.html>,
    /// <https://docs.kernel.org/admin-guide/cgroup-v2.html#cpu-interface-files>.
    pub fn of(status: Option<&str>, quota: Option<&str>) -> ProcessorLimits {
        let range = |text: &str| {
            let (first, last) = text.split_once('-').unwrap_or((text, text));
            Some(first.trim().parse().ok()?..=last.trim().parse().ok()?)
        };
        let list = status.and_then(|text| values(text, "Cpus_allowed_list").next());
        let allowed: Option<Vec<_>> =
            list.map(|list| list.split(',').map(range).collect()).unwrap_or_default();
        let processors = |text: &str| {
            let (time, period) = text.trim().split_once(' ')?;
            let (time, period) = (number(time)?, number(period).filter(|period| *period > 0.0)?);
            Some((time / period).ceil().max(1.0) as u64)
        };
        ProcessorLimits { allowed: allowed.unwrap_or_default(), quota: quota.and_then(processors) }
    }

    /// The paragraphs of `/proc/cpuinfo` of these processors; all of them where none is.
    fn paragraphs<'a>(&self, text: &'a str) -> Vec<&'a str> {
        let all: Vec<&str> = text.split("\n\n").collect();
        let is_allowed = |paragraph: &&str| {
            let number = values(paragraph, "processor").next().and_then(|number| number.parse().ok());
            number.is_none_or(|number: u64| self.allowed.iter().any(|range| range.contains(&number)))
        };
        let kept: Vec<&str> = all.iter().copied().filter(is_allowed).collect();
        if kept.iter().any(|paragraph| values(paragraph, "processor").next().is_some()) { kept } else { all }
    }
}

/// The processor in `/proc/cpuinfo`, as far as it may be used.
pub fn linux(text: &str, limits: &ProcessorLimits) -> PrintedHost {
    let kept = limits.paragraphs(text);
    let all = |key: &'static str| kept.iter().flat_map(move |paragraph| values(paragraph, key));
    let (mut sockets, mut cores) = (BTreeSet::new(), BTreeSet::new());
    for paragraph in &kept {
        let of = |key| values(paragraph, key).next();
        let socket = of("physical id");
        sockets.extend(socket);
        cores.extend(of("core id").map(|core| (socket, core)));
    }
    let of_sockets = |paragraph: &&str| {
        let socket = values(paragraph, "physical id").next();
        socket.is_none_or(|socket| sockets.contains(socket))
    };
    let there =
        text.split("\n\n").filter(of_sockets).flat_map(|paragraph| values(paragraph, "processor")).count();
    let most = |count: usize| (count as u64).min(limits.quota.unwrap_or(u64::MAX));
    let threads = most(all("processor").count());
    let limited = threads < there as u64;
    let cores = Some(most(cores.len())).filter(|cores| *cores > 0);
    let guest =
        all("flags").next().is_some_and(|flags| flags.split_whitespace().any(|flag| flag == "hypervisor"));
    let count = (sockets.len() as u64).max(1);
    let whole = !guest && !limited && cores.is_none_or(|cores| cores >= count * FEWEST_CORES);
    let first = |key| all(key).next();
    // Arm prints numbers in the place of a name.
    let arm = || Some(format!("Arm processor {} {}", first("CPU implementer")?, first("CPU part")?));
    let name = first("model name").filter(|name| !name.is_empty()).map(str::to_owned);
    PrintedHost {
        processor: name.or_else(arm),
        sockets: if whole { count } else { 1 },
        cores,
        threads: Some(threads).filter(|threads| *threads > 0),
        core: core_rate(text),
        memory: None,
        free: None,
        guest,
        limited,
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
        core: None,
        memory: memory("TotalVisibleMemorySize").and_then(size),
        free: memory("FreePhysicalMemory"),
        guest: false,
        limited: false,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_core_has_the_widest_of_its_instructions_at_the_clock_without_boost() {
        let rate = |flags: &str, mega: &str| core_rate(&format!("flags : {flags}\n{mega}"));
        let of = |flags: &str| rate(flags, "cpu MHz : 800.0\nbogomips : 4000.0").map(|one| one.operations);
        assert_eq!(["sse2", "sse2 avx", "sse2 avx avx2 fma"].map(of), [8.0, 16.0, 32.0].map(Some));
        assert_eq!((of("sse2 avx avx2"), of("asimd")), (Some(16.0), None));
        // Without AMX, flags do not say how wide AVX-512 is.
        assert_eq!(["avx avx2 fma avx512f", "avx avx2 fma avx512f amx_tile"].map(of), [32.0, 64.0].map(Some));
        let clock = |mega: &str| rate("sse2", mega).map(|one| one.clock);
        assert_eq!(clock("cpu MHz : 800.0\nbogomips : 4000.0"), Some(2e9));
        assert_eq!(clock("cpu MHz : 3100.5\ncpu MHz : 900.0"), Some(3.1005e9));
        assert_eq!((clock("cpu MHz : 1e9"), clock("")), (None, None));
    }
}
