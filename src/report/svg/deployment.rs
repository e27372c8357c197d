//! A deployment as bars: latency by bottleneck and by module, and the memory of its fullest devices.

use super::bars::{LabelledBar, bars, shares};
use super::front::front;
use super::timeline::timeline_panels;
use super::why::why_panels;
use super::{SvgPanel, SvgPicture};
use crate::plan::parallel::Phase;
use crate::report::breakdown::{CLASSES, Module};
use crate::report::detail::{DeploymentDetail, PhaseTime};
use crate::report::inputs::ReportInputs;
use crate::report::number::{format_metric, gib, percent, time};
use crate::report::result::{EstimateResult, MemoryReport, OptimizeResult, ReportedDeployment};
use crate::report::timeline::Timeline;
use crate::spec::objective::Metric;
use crate::spec::role::Role;

/// Every module, in the order of the legend.
pub(super) const MODULES: [Module; 8] = [
    Module::Attention,
    Module::FeedForward,
    Module::Experts,
    Module::Residual,
    Module::Vocabulary,
    Module::Images,
    Module::Communication,
    Module::Overhead,
];

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
        false => vec![by_bottleneck(&detail.phases), by_module(&detail.phases)],
    };
    times.into_iter().chain([memory(detail)]).collect()
}

pub(super) fn phase_name(phase: Phase) -> &'static str {
    match phase {
        Phase::Prefill => "prefill",
        Phase::Decode => "decode step",
    }
}

/// A part of a phase in words.
fn words(phase: &PhaseTime, name: &str, ms: f64) -> String {
    format!("{} {name}: {}, {}", phase_name(phase.phase), time(ms), percent(ms / phase.operators_ms))
}

fn by_bottleneck(phases: &[PhaseTime]) -> SvgPanel {
    let legend: Vec<(usize, &str)> =
        CLASSES.iter().enumerate().map(|(at, class)| (at, class.name())).collect();
    let one = |phase: &PhaseTime| {
        let parts = CLASSES.iter().enumerate().map(|(at, class)| {
            let ms = phase.of(*class);
            (at, ms, words(phase, class.name(), ms))
        });
        phase_bar(phase, parts.collect())
    };
    shares("Latency by bottleneck", &legend, &phases.iter().map(one).collect::<Vec<_>>())
}

fn by_module(phases: &[PhaseTime]) -> SvgPanel {
    let of = |phase: &PhaseTime, module: Module| -> f64 {
        phase.operators.iter().filter(|line| line.part_of == module).map(|line| line.time_ms).sum()
    };
    let used: Vec<Module> =
        MODULES.into_iter().filter(|module| phases.iter().any(|phase| of(phase, *module) > 0.0)).collect();
    let legend: Vec<(usize, &str)> =
        used.iter().enumerate().map(|(at, module)| (at, module.name())).collect();
    let one = |phase: &PhaseTime| {
        let parts = used.iter().enumerate().map(|(at, module)| {
            let ms = of(phase, *module);
            (at, ms, words(phase, module.name(), ms))
        });
        phase_bar(phase, parts.collect())
    };
    shares("Latency by module", &legend, &phases.iter().map(one).collect::<Vec<_>>())
}

fn phase_bar(phase: &PhaseTime, parts: Vec<(usize, f64, String)>) -> LabelledBar {
    LabelledBar { label: phase_name(phase.phase).to_owned(), parts, note: time(phase.operators_ms) }
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
        let role = match pool.role {
            Role::Aggregated => "",
            Role::Prefill => "prefill ",
            Role::Decode => "decode ",
        };
        memory_bar(format!("{role}{}", pool.label), &pool.memory)
    });
    bars("Memory of the fullest device", &memory_legend(), &all.collect::<Vec<_>>())
}
