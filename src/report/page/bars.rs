//! Bars of the page: where the time of a reply goes, and the memory of a device. Each is as wide as its whole.

use minijinja::{Value as TemplateValue, context};

use crate::plan::parallel::Phase;
use crate::report::breakdown::Module;
use crate::report::detail::{DeploymentDetail, PhaseTime};
use crate::report::inputs::ReportInputs;
use crate::report::number::{gib, percent, time};
use crate::report::result::{MemoryReport, ReportedDeployment};

/// Parts of a whole below this share are not drawn.
const LEAST: f64 = 0.002;
/// Share of a bar that a letter takes, at the width that the page gives a bar.
const LETTER: f64 = 0.0155;
/// From this share of a reply on, the wait for other prompts is what a reader should know first.
const WAIT: f64 = 0.15;

/// A part: its class of colour, its name, its figure in words, and how much it is.
type BarPart = (&'static str, String, String, f64);

/// A bar with its parts in percent; a part has its words where they fit.
fn bar(title: String, note: String, whole: f64, parts: Vec<BarPart>) -> TemplateValue {
    let mut left = 0.0;
    let drawn =
        parts.into_iter().filter(|(.., size)| *size > LEAST * whole).map(|(class, name, figure, size)| {
            let (at, width) = (left, (size / whole).min(1.0 - left));
            left += width;
            let both = format!("{name} {figure}");
            let fits = |text: &str| text.chars().count() as f64 * LETTER < width;
            let shown = [&both, &name].into_iter().find(|text| fits(text)).cloned().unwrap_or_default();
            context! { class, title => both, shown, left => at * 100.0, width => width * 100.0 }
        });
    context! { parts => drawn.collect::<Vec<_>>(), title, note }
}

/// The time of a reply, of a prefill and of a decode step; none where the deployment does not run.
pub fn times(
    of: &ReportedDeployment,
    inputs: &ReportInputs,
    detail: &DeploymentDetail,
) -> Option<TemplateValue> {
    let metrics = of.metrics.as_ref()?;
    let phase = |wanted: Phase| detail.phases.iter().find(|one| one.phase == wanted);
    let (prefill, decode) = (phase(Phase::Prefill)?, phase(Phase::Decode)?);
    let steps = inputs.osl.saturating_sub(1) as f64;
    let whole = metrics.ttft_ms + steps * metrics.tpot_ms;
    let own = (steps * decode.time_ms).min(whole - metrics.ttft_ms);
    let others = (whole - metrics.ttft_ms - own).max(0.0);
    let reply = vec![
        ("b-prefill", "first token".to_owned(), time(metrics.ttft_ms), metrics.ttft_ms),
        ("b-decode", format!("{steps} decode steps"), time(own), own),
        ("b-wait", "waiting".to_owned(), time(others), others),
    ];
    let finding = match others / whole {
        share if share >= WAIT => format!("{} of a reply is {}", percent(share), waits(of)),
        _ => format!("{} of a reply are its own decode steps", percent(own / whole)),
    };
    let bars = vec![
        bar(
            format!("One reply {}", time(whole)),
            format!("first token at {}", time(metrics.ttft_ms)),
            whole,
            reply,
        ),
        step(format!("Prefill {}", time(prefill.time_ms)), prefill),
        step(format!("Decode step {}", time(decode.time_ms)), decode),
    ];
    Some(context! { finding, bars })
}

/// The rest of a reply: neither its first token nor its own steps.
fn waits(of: &ReportedDeployment) -> &'static str {
    if of.plan.mode == "aggregated" { "waiting for other prompts" } else { "waiting and transfer" }
}

/// A step by the modules of the model, the longest first.
fn step(title: String, phase: &PhaseTime) -> TemplateValue {
    let all = [
        (Module::FeedForward, "feed-forward"),
        (Module::Experts, "experts"),
        (Module::Attention, "attention"),
        (Module::Images, "images"),
        (Module::Communication, "links"),
        (Module::Overhead, "host"),
        (Module::Vocabulary, "vocabulary"),
        (Module::Residual, "norms"),
    ];
    let sum = |module: Module| -> f64 {
        phase.operators.iter().filter(|line| line.part_of == module).map(|line| line.time_ms).sum()
    };
    let mut parts: Vec<BarPart> = all
        .into_iter()
        .map(|(module, name)| {
            let ms = sum(module);
            let class = match (module, phase.phase) {
                (Module::Communication, _) => "b-wire",
                (Module::Overhead, _) => "b-host",
                (Module::FeedForward | Module::Experts, Phase::Prefill) => "b-prefill",
                (Module::FeedForward | Module::Experts, Phase::Decode) => "b-decode",
                (_, Phase::Prefill) => "b-wait",
                (_, Phase::Decode) => "b-pale",
            };
            (class, name.to_owned(), time(ms), ms)
        })
        .collect();
    parts.sort_by(|a, b| b.3.total_cmp(&a.3));
    let whole = parts.iter().map(|part| part.3).sum();
    bar(title, format!("MFU {}, MBU {}", percent(phase.mfu), percent(phase.mbu)), whole, parts)
}

/// The memory of the fullest device.
pub fn memory(of: &MemoryReport) -> TemplateValue {
    let here = of.total_bytes - of.offloaded_bytes;
    let free = of.usable_bytes - here;
    let whole = of.usable_bytes.max(here);
    let finding = match free >= 0.0 {
        true => {
            format!("{} of {} usable on each device, {} free", gib(here), gib(of.usable_bytes), gib(free))
        }
        false => format!("{} short of {} on each device", gib(-free), gib(of.usable_bytes)),
    };
    let sizes = [
        ("b-weights", "weights", of.weights_bytes),
        ("b-kv", "KV cache", of.kv_cache_bytes),
        ("b-host", "activations", of.activations_bytes),
        ("b-host", "buffers", of.buffers_bytes),
        ("b-free", "free", free.max(0.0)),
    ];
    let parts = sizes.map(|(class, name, bytes)| (class, name.to_owned(), gib(bytes), bytes)).to_vec();
    // A part in host memory is in the sizes of weights and KV cache.
    let whole = whole.max(parts.iter().map(|part| part.3).sum());
    let outside = match of.offloaded_bytes > 0.0 {
        true => format!("{} of it in host memory", gib(of.offloaded_bytes)),
        false => format!("usable: {} of {}", percent(of.utilization), gib(of.capacity_bytes)),
    };
    context! { finding, bars => vec![bar("Memory".to_owned(), outside, whole, parts)] }
}
