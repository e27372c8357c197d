//! A detected machine as text.

use super::page::{BOLD, bullet_within, heading, styled, wrap};
use crate::quantity::unit::GIB;
use crate::quantity::unit::{BYTE, SECOND, humanize};
use crate::report::machine::{DetectedDevices, DetectedHost, MachineFileKind, MachineReport};
use crate::report::table::table_within;

/// Width of the labels of the host.
const INDENT: usize = 11;

/// `79.6 GiB`.
fn size(bytes: f64) -> String {
    format!("{:.1} GiB", bytes / GIB)
}

fn rate(value: f64) -> String {
    humanize((value / 1e8).round() * 1e8, BYTE.per(SECOND))
}

fn devices(devices: &[DetectedDevices], width: usize) -> String {
    if devices.is_empty() {
        return format!("{}none found\n", heading("Accelerators", ""));
    }
    let row = |one: &DetectedDevices| {
        let free = one.memory_bytes.zip(one.used_bytes).map(|(all, used)| size((all - used).max(0.0)));
        let text = |value: Option<String>| value.unwrap_or_else(|| "-".into());
        vec![
            one.count.to_string(),
            one.printed.clone(),
            one.device.clone().unwrap_or_else(|| "not in the catalogue".into()),
            text(one.memory_bytes.map(size)),
            text(free),
            text(one.slot.clone()),
            text(one.power_limit_w.map(|watts| format!("{watts:.0} W"))),
        ]
    };
    let header = ["count", "device", "catalogue", "memory", "free", "slot", "limit"];
    let mut text = heading("Accelerators", "") + &table_within(&header, devices.iter().map(row), width);
    for one in devices {
        let Some(why) = &one.left_out else { continue };
        let fix = one.fix.as_ref().map(|fix| format!(". Fix: {fix}")).unwrap_or_default();
        text.push_str(&bullet_within(&format!("{} is left out: {why}{fix}", one.printed), width));
    }
    text
}

fn counted(count: u64, of: &str) -> String {
    format!("{count} {of}{}", if count == 1 { "" } else { "s" })
}

fn host(host: &DetectedHost, width: usize) -> String {
    let mut lines = Vec::new();
    let printed = host.processor.as_deref().unwrap_or("no name found");
    let sockets = if host.sockets > 1 { format!("{} x ", host.sockets) } else { String::new() };
    let known = host.device.as_deref().unwrap_or("not in the catalogue");
    lines.push(vec!["processor".to_owned(), format!("{sockets}{printed} ({known})")]);
    let counts = [(host.cores, "core"), (host.threads, "thread")];
    let counts: Vec<String> =
        counts.iter().filter_map(|(count, of)| count.map(|count| counted(count, of))).collect();
    if !counts.is_empty() {
        lines.push(vec!["cores".to_owned(), counts.join(", ")]);
    }
    let free = host.free_bytes.map(|free| format!(", {} available now", size(free))).unwrap_or_default();
    let memory =
        host.memory_bytes.map_or_else(|| "not found".to_owned(), |all| format!("{}{free}", size(all)));
    lines.push(vec!["memory".to_owned(), memory]);
    let nameplate = host.catalogue_bandwidth.map(|of| format!("{} in the catalogue", rate(of)));
    let measured = host.measured.map(|of| {
        let arrays = format!("{} over {}", counted(of.threads, "thread"), size(of.bytes));
        format!("{} measured: read {}, triad {}, {arrays}", rate(of.best()), rate(of.read), rate(of.triad))
    });
    let rates: Vec<String> = measured.into_iter().chain(nameplate).collect();
    let rates = if rates.is_empty() { "not measured".to_owned() } else { rates.join("; ") };
    lines.push(vec!["bandwidth".to_owned(), rates]);
    let line = |line: &Vec<String>| {
        // The label fills the indent of the first line.
        let text = wrap(&line[1], width, INDENT, INDENT);
        format!("{:<INDENT$}{}", line[0], text.trim_start())
    };
    let lines: String = lines.iter().map(line).collect();
    format!("{}{lines}", heading("Host", ""))
}

/// The machine in lines of at most `width` characters; `written` is the path of its file, if one was written.
pub fn machine(report: &MachineReport, written: Option<&str>, width: usize) -> String {
    let mut text = format!("{}\n\n", styled(BOLD, "This machine"));
    text.push_str(&devices(&report.devices, width));
    text.push('\n');
    text.push_str(&host(&report.host, width));
    let tools = report.tools.iter().map(|tool| [&tool.tool, &tool.finds, &tool.result].map(String::clone));
    text.push_str(&format!("\n{}", heading("Looked for", "")));
    text.push_str(&table_within(&["tool", "finds", "result"], tools, width));
    if !report.notes.is_empty() {
        text.push_str(&format!("\n{}", heading("Notes", "")));
        report.notes.iter().for_each(|note| text.push_str(&bullet_within(note, width)));
    }
    let Some(file) = &report.file else { return text };
    let command = match file.kind {
        MachineFileKind::System => "mantile-opt --model MODEL --hardware",
        MachineFileKind::Rig => "mantile-opt place --model MODEL --hardware",
    };
    text.push_str(&format!("\n{}", heading("Use it", "")));
    match written {
        Some(path) => text.push_str(&format!("  {command} {path}\n")),
        None => text.push_str(&format!("  {command} local\n  mantile-opt detect --out machine.json\n")),
    }
    text
}
