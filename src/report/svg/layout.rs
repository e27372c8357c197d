//! The devices of a deployment as a picture: nodes, and on each device its pool, replica, stage and memory.

use super::marks::{bar, framed, swatch};
use super::{Anchor, SvgPanel, text, text_width};
use crate::report::detail::DeploymentDetail;
use crate::report::inputs::{ReportInputs, ReportedTier};
use crate::report::number::{count, digits, gib};
use crate::report::pool::PoolReport;
use crate::report::result::{MemoryReport, ReportedDeployment};
use crate::report::text::head::pools;
use crate::spec::role::Role;

const DEVICE: [f64; 2] = [64.0, 58.0];
/// Room between devices, and around those of a node.
const GAP: f64 = 6.0;
/// Devices in a row of a node, at most.
const ROW: u64 = 12;
/// Drawn devices, at most; the others are like them.
const MOST: u64 = 144;
const WIDTH: f64 = 1180.0;
const TOP: f64 = 48.0;
/// Room between nodes, and for the name of each.
const NODE: f64 = 20.0;
const COLOURS: usize = 6;

/// One device: its colour, its names, and the share of its memory in use.
struct DrawnDevice<'a> {
    series: usize,
    lines: [String; 2],
    memory: Option<&'a MemoryReport>,
}

/// The devices of a deployment, in the order of ranks; none where the nodes are not known.
pub fn layout(of: &ReportedDeployment, inputs: &ReportInputs, detail: &DeploymentDetail) -> Option<SvgPanel> {
    let outer = inputs.interconnect.iter().map(|tier| tier.devices).max()?;
    let inner = inputs.interconnect.iter().map(|tier| tier.devices).find(|devices| *devices > 1);
    let node = inner.unwrap_or(outer).clamp(1, MOST);
    let devices: Vec<DrawnDevice> = devices(of, detail).take(MOST as usize).collect();
    let idle = (of.idle_devices).min(MOST - devices.len() as u64) as usize;
    let columns = node.min(ROW).min(devices.len() as u64 + idle as u64).max(1);
    let all = devices.len() + idle;
    let node_width = columns as f64 * (DEVICE[0] + GAP) + GAP;
    let across = (((WIDTH + NODE) / (node_width + NODE)) as usize).max(1);
    let node_height = (node.min(all as u64)).div_ceil(columns) as f64 * (DEVICE[1] + GAP) + GAP;
    let corner = |at: usize| {
        [(at % across) as f64 * (node_width + NODE), TOP + (at / across) as f64 * (node_height + NODE) + NODE]
    };
    let mut body = head(of);
    for at in 0..all.div_ceil(node as usize) {
        let [x, y] = corner(at);
        body.push_str(&format!(
            "<rect class=\"box\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{node_width:.1}\" height=\"{node_height:.1}\" rx=\"6\"/>\n"
        ));
        let name = format!("{} {}", unit_name(inputs, node), at + 1);
        body.push_str(&text("tick", Anchor::Start, [x, y - 5.0], &name));
    }
    for at in 0..all {
        let [x, y] = corner(at / node as usize);
        let (row, column) = ((at as u64 % node) / columns, (at as u64 % node) % columns);
        let place = [x + GAP + column as f64 * (DEVICE[0] + GAP), y + GAP + row as f64 * (DEVICE[1] + GAP)];
        body.push_str(&devices.get(at).map_or_else(|| idle_device(place), |device| drawn(device, place)));
    }
    let [_, last] = corner(all.div_ceil(node as usize).max(1) - 1);
    let mut bottom = last + node_height + 18.0;
    let more = of.devices + of.idle_devices - all as u64;
    if more > 0 {
        let words = format!("and {} more in the same way", count(more, "device"));
        body.push_str(&text("tick", Anchor::Start, [0.0, bottom], &words));
        bottom += 16.0;
    }
    for tier in &inputs.interconnect {
        body.push_str(&text("tick", Anchor::Start, [0.0, bottom], &tier_words(tier)));
        bottom += 16.0;
    }
    let width = WIDTH.min(across.min(all.div_ceil(node as usize)) as f64 * (node_width + NODE)).max(420.0);
    Some(SvgPanel { width, height: bottom, body })
}

/// The name of the unit of the interconnect with this number of devices.
fn unit_name(inputs: &ReportInputs, devices: u64) -> &str {
    inputs.interconnect.iter().find(|tier| tier.devices == devices).map_or("node", |tier| tier.name.as_str())
}

fn tier_words(tier: &ReportedTier) -> String {
    let rate = digits(tier.bandwidth_bytes_per_s / 1e9);
    format!(
        "{}: {} over {}, {rate} GB/s per direction and device",
        tier.name,
        count(tier.devices, "device"),
        tier.link
    )
}

/// Title and legend: pools by colour, or the stages of the only pool.
fn head(of: &ReportedDeployment) -> String {
    let mut body = text("name", Anchor::Start, [0.0, 14.0], &of.plan.label);
    let all = pools(of);
    let names: Vec<String> = match all.as_slice() {
        [only] if only.plan.pp > 1 => {
            (0..only.plan.pp.min(COLOURS as u64)).map(|at| stage_words(only, at)).collect()
        }
        several => several.iter().map(|pool| format!("{}: {}", role_name(pool.role), pool.label)).collect(),
    };
    let mut x = 0.0;
    for (at, name) in names.iter().enumerate() {
        body.push_str(&swatch(at % COLOURS, [x + 8.0, 30.0]));
        body.push_str(&text("tick", Anchor::Start, [x + 18.0, 34.0], name));
        x += 34.0 + text_width(name, 11.0);
    }
    body
}

fn role_name(role: Role) -> &'static str {
    match role {
        Role::Aggregated => "replicas",
        Role::Prefill => "prefill",
        Role::Decode => "decode",
    }
}

/// `stage 1: layers 20 to 39`, counted as ranks are.
fn stage_words(pool: &PoolReport, stage: u64) -> String {
    let before: u32 = pool.stages.iter().take(stage as usize).sum();
    let here = pool.stages.get(stage as usize).copied().unwrap_or_default();
    format!("stage {stage}: layers {before} to {}", (before + here).max(1) - 1)
}

/// Every device in use, rank by rank.
fn devices<'a>(
    of: &'a ReportedDeployment,
    detail: &'a DeploymentDetail,
) -> impl Iterator<Item = DrawnDevice<'a>> {
    let all = pools(of);
    let alone = all.len() == 1;
    all.into_iter().enumerate().flat_map(move |(number, pool)| {
        let memory = memory_of(detail, pool);
        let each = (pool.plan.tp * pool.plan.pp * pool.plan.dp * pool.plan.cp).max(1);
        let of_stage = (each / pool.plan.pp.max(1)).max(1);
        (0..pool.replicas * each).map(move |rank| {
            let (replica, inside) = (rank / each, rank % each);
            let (stage, inside) = (inside / of_stage, inside % of_stage);
            let series = if alone && pool.plan.pp > 1 { stage as usize } else { number };
            let parts = [
                (pool.plan.pp > 1).then(|| format!("pp{stage}")),
                (pool.plan.dp > 1).then(|| format!("dp{}", inside / (pool.plan.tp * pool.plan.cp).max(1))),
                (pool.plan.cp > 1).then(|| format!("cp{}", inside / pool.plan.tp.max(1) % pool.plan.cp)),
                (pool.plan.tp > 1).then(|| format!("tp{}", inside % pool.plan.tp)),
            ];
            let parts: Vec<String> = parts.into_iter().flatten().collect();
            let name = match pool.role {
                Role::Aggregated => "replica",
                role => role_name(role),
            };
            let lines = [format!("{name} {}", replica + 1), parts.join(" ")];
            DrawnDevice { series: series % COLOURS, lines, memory }
        })
    })
}

fn memory_of<'a>(detail: &'a DeploymentDetail, pool: &PoolReport) -> Option<&'a MemoryReport> {
    let of_role = || detail.pools.iter().filter(|held| held.role == pool.role);
    let held = of_role().find(|held| held.label == pool.label).or_else(|| of_role().next());
    held.map(|held| &held.memory)
}

fn drawn(device: &DrawnDevice, [x, y]: [f64; 2]) -> String {
    let [name, parts] = &device.lines;
    let share =
        device.memory.map_or(0.0, |held| (held.on_device() / held.usable_bytes.max(1.0)).clamp(0.0, 1.0));
    let memory =
        device.memory.map(|held| format!("{} of {} usable", gib(held.on_device()), gib(held.usable_bytes)));
    let title = format!("{name} {parts}: {}", memory.as_deref().unwrap_or("memory unknown"));
    let width = DEVICE[0] - 10.0;
    framed("box", [x, y], DEVICE, &title)
        + &text("tick", Anchor::Start, [x + 5.0, y + 16.0], name)
        + &text("tick", Anchor::Start, [x + 5.0, y + 31.0], parts)
        + &bar(6, [x + 5.0, y + 40.0], [width, 12.0], &title)
        + &bar(device.series, [x + 5.0, y + 40.0], [width * share, 12.0], &title)
}

fn idle_device([x, y]: [f64; 2]) -> String {
    framed("unused", [x, y], DEVICE, "idle") + &text("tick", Anchor::Start, [x + 5.0, y + 16.0], "idle")
}
