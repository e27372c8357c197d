//! A static batch as bars: time by layer type and by bottleneck, and the memory of a device, in both phases.

use super::bars::bars;
use super::deployment::{PhaseBar, memory_bar, memory_legend, phase_name, phase_shares, used_modules};
use super::{SvgPanel, SvgPicture};
use crate::report::breakdown::{CLASSES, Class, Module};
use crate::report::number::time;
use crate::report::static_batch::{StaticPhase, StaticReport};

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
        panels: times(phases).into_iter().chain([memory(phases)]).collect(),
    }
}

fn label(phase: &StaticPhase) -> String {
    format!("{}, batch {}, {}", phase_name(phase.phase), phase.batch, phase.label)
}
fn times(phases: &[StaticPhase]) -> [SvgPanel; 2] {
    let bars =
        phases.iter().map(|of| PhaseBar { of, phase: of.phase, label: label(of), whole_ms: of.time_ms });
    let bars: Vec<_> = bars.collect();
    let of_type = |phase: &StaticPhase, module: Module| -> f64 {
        let of_type = phase.layer_types.iter().filter(|layers| layers.layer_type == module);
        of_type.map(|layers| layers.time_ms).sum()
    };
    let of_class = |phase: &StaticPhase, class: Class| -> f64 {
        let operators = phase.layer_types.iter().flat_map(|layers| &layers.operators);
        operators.filter(|line| line.class == class).map(|line| line.time_ms).sum()
    };
    let types = used_modules(&bars, of_type);
    let classes = CLASSES.map(|class| (class, class.name()));
    [
        phase_shares("Time by layer type", &bars, &types, of_type),
        phase_shares("Time by bottleneck", &bars, &classes, of_class),
    ]
}

fn memory(phases: &[StaticPhase]) -> SvgPanel {
    let all = phases.iter().map(|phase| memory_bar(label(phase), &phase.memory));
    bars("Memory of the fullest device", &memory_legend(), &all.collect::<Vec<_>>())
}
