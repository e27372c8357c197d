//! Outputs of `nvidia-smi`.

use super::printed::{PcieSlot, PrintedAccelerator, memory as size, number};

const MIB: f64 = 1_048_576.0;

/// The GPUs in the rows of `--query-gpu`, with all columns or the first ones. Messages are no rows.
pub fn gpus(text: &str) -> Vec<PrintedAccelerator> {
    text.lines().filter_map(gpu).collect()
}

fn gpu(line: &str) -> Option<PrintedAccelerator> {
    let fields: Vec<&str> = line.split(',').map(str::trim).collect();
    let [name, memory, rest @ ..] = &fields[..] else { return None };
    let of = |at: usize| rest.get(at).and_then(|text| number(text));
    (!name.is_empty()).then(|| PrintedAccelerator {
        name: (*name).to_owned(),
        memory: number(memory).and_then(|mib| size(mib * MIB)),
        used: of(0).map(|mib| mib * MIB),
        slot: of(1).zip(of(2)).and_then(|(generation, lanes)| PcieSlot::new(generation, lanes)),
        power_limit: of(3),
        partitioned: rest.get(4).is_some_and(|mode| *mode == "Enabled"),
        cores: None,
    })
}

/// Pairs of GPUs in the matrix of `topo -m`: all of them, and those that NVLink joins. `None` for other text.
pub fn pairs(text: &str) -> Option<(usize, usize)> {
    // The header is underlined also where the output is no terminal.
    let text = text.replace("\u{1b}[4m", "").replace("\u{1b}[0m", "");
    let is_gpu = |word: &str| {
        word.strip_prefix("GPU").is_some_and(|n| !n.is_empty() && n.bytes().all(|c| c.is_ascii_digit()))
    };
    let mut lines = text.lines();
    let header = lines.find(|line| line.split_whitespace().next().is_some_and(is_gpu))?;
    let gpus = header.split_whitespace().take_while(|word| is_gpu(word)).count();
    let rows = lines.filter(|line| line.split_whitespace().next().is_some_and(is_gpu));
    let linked =
        |word: &str| word.strip_prefix("NV").is_some_and(|n| n.starts_with(|c: char| c.is_ascii_digit()));
    let (mut read, mut joined) = (0, 0);
    for row in rows {
        read += 1;
        joined += row.split_whitespace().skip(1).take(gpus).filter(|word| linked(word)).count();
    }
    (read == gpus).then(|| (gpus * (gpus - 1) / 2, joined / 2))
}
