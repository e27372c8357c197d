//! A static batch as bars: time by layer type and by bottleneck, and the memory of a device, in both phases.

use super::bars::{LabelledBar, bars, shares};
use super::deployment::{MODULES, memory_bar, memory_legend, phase_name};
use super::{SvgPanel, SvgPicture};
use crate::report::breakdown::{CLASSES, Module};
use crate::report::number::{percent, time};
use crate::report::static_batch::{StaticPhase, StaticReport};

/// The picture of a static batch.
pub fn static_picture(report: &StaticReport) -> SvgPicture {
    let phases = &report.phases;
    SvgPicture {
        title: format!(
            "Static batch of {} on {}, ISL {}, OSL {}",
            report.model, report.hardware, report.isl, report.osl
        ),
        subtitle: format!(
            "TTFT {}, TPOT {}, whole batch {}",
            time(report.ttft_ms),
            time(report.tpot_ms),
            time(report.e2e_ms)
        ),
        panels: vec![by_layer_type(phases), by_bottleneck(phases), memory(phases)],
    }
}

fn label(phase: &StaticPhase) -> String {
    format!("{}, batch {}, {}", phase_name(phase.phase), phase.batch, phase.label)
}

fn phase_bar(phase: &StaticPhase, parts: Vec<(usize, f64, String)>) -> LabelledBar {
    LabelledBar { label: label(phase), parts, note: time(phase.time_ms) }
}

fn words(phase: &StaticPhase, name: &str, ms: f64) -> String {
    format!("{} {name}: {}, {}", phase_name(phase.phase), time(ms), percent(ms / phase.time_ms))
}

fn by_layer_type(phases: &[StaticPhase]) -> SvgPanel {
    let of = |phase: &StaticPhase, module: Module| -> f64 {
        let of_type = phase.layer_types.iter().filter(|layers| layers.layer_type == module);
        of_type.map(|layers| layers.time_ms).sum()
    };
    let used: Vec<Module> =
        MODULES.into_iter().filter(|module| phases.iter().any(|phase| of(phase, *module) > 0.0)).collect();
    let legend: Vec<(usize, &str)> = used.iter().enumerate().map(|(at, one)| (at, one.name())).collect();
    let one = |phase: &StaticPhase| {
        let parts = used.iter().enumerate().map(|(at, module)| {
            let ms = of(phase, *module);
            (at, ms, words(phase, module.name(), ms))
        });
        phase_bar(phase, parts.collect())
    };
    shares("Time by layer type", &legend, &phases.iter().map(one).collect::<Vec<_>>())
}

fn by_bottleneck(phases: &[StaticPhase]) -> SvgPanel {
    let legend: Vec<(usize, &str)> = CLASSES.iter().enumerate().map(|(at, one)| (at, one.name())).collect();
    let one = |phase: &StaticPhase| {
        let parts = CLASSES.iter().enumerate().map(|(at, class)| {
            let operators = phase.layer_types.iter().flat_map(|layers| &layers.operators);
            let ms = operators.filter(|line| line.class == *class).map(|line| line.time_ms).sum();
            (at, ms, words(phase, class.name(), ms))
        });
        phase_bar(phase, parts.collect())
    };
    shares("Time by bottleneck", &legend, &phases.iter().map(one).collect::<Vec<_>>())
}

fn memory(phases: &[StaticPhase]) -> SvgPanel {
    let all = phases.iter().map(|phase| memory_bar(label(phase), &phase.memory));
    bars("Memory of the fullest device", &memory_legend(), &all.collect::<Vec<_>>())
}
