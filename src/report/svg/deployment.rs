//! A deployment as bars: latency by bottleneck and by module, and the memory of its fullest devices.

use super::bars::{LabelledBar, bars, shares};
use super::front::front;
use super::timeline::timeline_panels;
use super::why::why_panels;
use super::{SvgPanel, SvgPicture};
use crate::plan::parallel::Phase;
use crate::report::breakdown::{CLASSES, MODULES, Module};
use crate::report::detail::{DeploymentDetail, PhaseTime};
use crate::report::inputs::ReportInputs;
use crate::report::number::{format_metric, gib, percent, time};
use crate::report::pool::divided_role;
use crate::report::result::{EstimateResult, MemoryReport, OptimizeResult, ReportedDeployment};
use crate::report::timeline::Timeline;
use crate::spec::objective::Metric;

/// A picture of the result of a search: front, latency and memory of the best, and with `--why` what decides.
pub fn optimize_picture(answer: &OptimizeResult) -> SvgPicture {
    let panels = front(answer).into_iter().chain(answer.detail.iter().flat_map(detail_panels));
    let panels = panels.chain(answer.why.iter().flat_map(why_panels)).collect();
    picture(&answer.question, answer.best.as_ref(), panels)
}

/// A picture of an estimate: latency and memory, and the timeline of its steps.
pub fn estimate_picture(answer: &EstimateResult, timeline: Option<&Timeline>) -> SvgPicture {
    let panels = answer.detail.iter().flat_map(detail_panels);
    let panels = panels.chain(timeline.into_iter().flat_map(timeline_panels)).collect();
    picture(&answer.question, Some(&answer.candidate), panels)
}

fn picture(inputs: &ReportInputs, best: Option<&ReportedDeployment>, panels: Vec<SvgPanel>) -> SvgPicture {
    let shown = [Metric::Ttft, Metric::Tpot, Metric::OutputTokS, Metric::UsdPerMtok];
    let subtitle = best.map(|best| {
        let figures = shown.iter().filter_map(|metric| Some(format_metric(*metric, best.figure(*metric)?)));
        let figures: Vec<String> = figures.collect();
        format!("{}: {}", best.plan.label, figures.join(", "))
    });
    let title = format!(
        "{} on {}, {}, ISL {}, OSL {}",
        inputs.model, inputs.hardware, inputs.runtime, inputs.isl, inputs.osl
    );
    SvgPicture { title, subtitle: subtitle.unwrap_or_default(), panels }
}

/// Latency, where it runs, and memory of a deployment.
pub fn detail_panels(detail: &DeploymentDetail) -> Vec<SvgPanel> {
    let times = match detail.phases.is_empty() {
        true => vec![],
        false => latency(&detail.phases).to_vec(),
    };
    times.into_iter().chain([memory(detail)]).collect()
}

pub(super) fn phase_name(phase: Phase) -> &'static str {
    match phase {
        Phase::Prefill => "prefill",
        Phase::Decode => "decode step",
    }
}

/// A phase as a bar: its label, and the time that its parts add up to.
pub(super) struct PhaseBar<'a, P> {
    pub(super) of: &'a P,
    pub(super) phase: Phase,
    pub(super) label: String,
    pub(super) whole_ms: f64,
}

/// The parts of each phase as shares of its time; `ms` is the time of a part.
pub(super) fn phase_shares<P, T: Copy>(
    title: &str,
    phases: &[PhaseBar<P>],
    parts: &[(T, &str)],
    ms: impl Fn(&P, T) -> f64,
) -> SvgPanel {
    let legend: Vec<(usize, &str)> = parts.iter().map(|(_, name)| *name).enumerate().collect();
    let one = |bar: &PhaseBar<P>| {
        let parts = parts.iter().enumerate().map(|(at, (part, name))| {
            let ms = ms(bar.of, *part);
            let share = percent(ms / bar.whole_ms);
            (at, ms, format!("{} {name}: {}, {share}", phase_name(bar.phase), time(ms)))
        });
        LabelledBar { label: bar.label.clone(), parts: parts.collect(), note: time(bar.whole_ms) }
    };
    shares(title, &legend, &phases.iter().map(one).collect::<Vec<_>>())
}

/// The modules that take time in some phase.
pub(super) fn used_modules<P>(
    phases: &[PhaseBar<P>],
    ms: impl Fn(&P, Module) -> f64,
) -> Vec<(Module, &'static str)> {
    let is_used = |module: Module| phases.iter().any(|bar| ms(bar.of, module) > 0.0);
    MODULES.into_iter().filter(|(module, _)| is_used(*module)).collect()
}

fn latency(phases: &[PhaseTime]) -> [SvgPanel; 2] {
    let bars = phases.iter().map(|of| PhaseBar {
        of,
        phase: of.phase,
        label: phase_name(of.phase).to_owned(),
        whole_ms: of.operators_ms,
    });
    let bars: Vec<_> = bars.collect();
    let of_module = |phase: &PhaseTime, module: Module| -> f64 {
        phase.operators.iter().filter(|line| line.part_of == module).map(|line| line.time_ms).sum()
    };
    let modules = used_modules(&bars, of_module);
    let classes = CLASSES.map(|class| (class, class.name()));
    [
        phase_shares("Latency by bottleneck", &bars, &classes, PhaseTime::of),
        phase_shares("Latency by module", &bars, &modules, of_module),
    ]
}

/// Series of free memory.
const FREE: usize = 6;

/// Parts of the memory of a device, each with the function that reads it.
const MEMORY: [(&str, fn(&MemoryReport) -> f64); 4] = [
    ("weights", |memory| memory.weights_bytes),
    ("KV cache", |memory| memory.kv_cache_bytes),
    ("activations", |memory| memory.activations_bytes),
    ("buffers", |memory| memory.buffers_bytes),
];

/// The legend of [`memory_bar`].
pub(super) fn memory_legend() -> Vec<(usize, &'static str)> {
    let parts = MEMORY.iter().enumerate().map(|(at, (name, _))| (at, *name));
    parts.chain([(FREE, "free, of the usable memory")]).collect()
}

/// The memory of a device by its parts.
pub(super) fn memory_bar(label: String, held: &MemoryReport) -> LabelledBar {
    let part = |(at, (name, read)): (usize, &(&str, fn(&MemoryReport) -> f64))| {
        (at, read(held), format!("{name}: {}", gib(read(held))))
    };
    let free = (held.usable_bytes - held.on_device()).max(0.0);
    let parts = MEMORY.iter().enumerate().map(part).chain([(FREE, free, format!("free: {}", gib(free)))]);
    let note = format!("{} of {} usable", gib(held.on_device()), gib(held.usable_bytes));
    LabelledBar { label, parts: parts.collect(), note }
}

fn memory(detail: &DeploymentDetail) -> SvgPanel {
    let all = detail.pools.iter().map(|pool| {
        let role = divided_role(pool.role, "", " ");
        memory_bar(format!("{role}{}", pool.label), &pool.memory)
    });
    bars("Memory of the fullest device", &memory_legend(), &all.collect::<Vec<_>>())
}
