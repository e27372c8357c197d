//! Predictions of runs on home machines: of the plan that the row states, else of the best one.

use super::predict::{base, device, format, nearer, reason, runtime};
use crate::quantity::read::Plain;
use crate::quantity::unit::GIB;
use crate::request::build_candidate::candidate;
use crate::request::place::solve::answer_placement;
use crate::search::candidate::Candidate;
use crate::search::problem::Problem;
use crate::search::run::{UNWATCHED, run};
use crate::spec::error::Error;
use crate::spec::host_part::{HostPart, HostedTensors};
use crate::spec::placing::{PlacementObjective, PlacementScenario};
use crate::spec::rule::Allowance;
use crate::spec::scenario::Scenario;
use crate::store::catalog::Catalog;
use crate::store::resolved_scenario::ResolvedScenario;
use crate::validate::figures::{Figures, RunFigure};
use crate::validate::home_run::HomeRun;
use crate::validate::measured::MeasuredRow;
use crate::validate::summary::Prediction;

/// Host memory of a run that does not state its size: it ran, so it was enough.
pub(super) const ENOUGH: &str = "2 TB";
/// Cache formats in the command of a run, and here.
const CACHES: [(&str, &str); 4] =
    [("q8_0 kv", "gguf-q8_0"), ("q8 kv", "gguf-q8_0"), ("q4_0 kv", "gguf-q4_0"), ("f16 kv", "fp16")];
/// The class of runs on several hosts, and that of runs with all of the model on several cards.
const HOSTS: &str = "multi_host";
const CARDS: &str = "multi_gpu";
/// Words of a command on the link between hosts, in lower case, and the link of the catalogue.
const LINKS: [(&str, &str); 4] = [
    ("rdma over thunderbolt 5", "thunderbolt5-rdma"),
    ("50 gb/s ethernet", "ethernet-50g"),
    ("200g link", "ethernet-200g"),
    ("1 gbe", "ethernet-1g"),
];
/// Words of commands that share the tensors of a layer among unlike devices or hosts, which `place` does not.
const SHARED_LAYERS: [&str; 4] = ["tensor", "-sm row", "-sm graph", "split-mode row"];

/// The prediction of a run, or the reason why there is none.
pub(super) fn at_home(
    catalog: &Catalog,
    measured: &MeasuredRow,
    run: &HomeRun,
) -> Result<Prediction, String> {
    let cards = cards(catalog, run)?;
    let unlike = cards.windows(2).any(|pair| pair[0] != pair[1]);
    if unlike || measured.class == HOSTS {
        return placed(catalog, measured, (run, cards));
    }
    let problem = problem(catalog, measured, (run, &cards))?;
    let plan = plan(&problem, run)?;
    let made = plan.evaluate(&Plain, &problem, &mut ()).metrics;
    let (ttft, tpot) = (made.ttft.value(), made.tpot.value());
    if !(ttft.is_finite() && tpot.is_finite() && ttft > 0.0 && tpot > 0.0) {
        return Err("tpot: no finite prediction at these lengths".to_owned());
    }
    Ok(predicted(measured, [ttft, tpot], plan.devices()))
}

/// The prediction with these seconds until the first token and per token.
fn predicted(measured: &MeasuredRow, [ttft, tpot]: [f64; 2], devices: u64) -> Prediction {
    let more = match measured.outcome.more.get(RunFigure::Prefill) {
        Some(_) => Figures::of([(RunFigure::Prefill, measured.isl as f64 / ttft)]),
        None => Figures::default(),
    };
    let figures = Prediction { ttft_ms: 1e3 * ttft, tpot_ms: 1e3 * tpot, more, ..Prediction::default() };
    Prediction { fits: true, devices, ..figures }
}

/// The prediction of a run on unlike cards or several hosts: of the best placement of its layers.
fn placed(
    catalog: &Catalog,
    measured: &MeasuredRow,
    (run, cards): (&HomeRun, Vec<String>),
) -> Result<Prediction, String> {
    let offload = run.offload.to_lowercase();
    if SHARED_LAYERS.iter().any(|words| offload.contains(words)) {
        return Err(
            "offload: layers shared by unlike cards or hosts, which `place` does not search".to_owned()
        );
    }
    let link = LINKS.iter().find(|(words, _)| offload.contains(words)).map(|(_, id)| (*id).to_owned());
    if measured.class == HOSTS && link.is_none() {
        return Err("offload: the link between the hosts is not stated".to_owned());
    }
    if ![HOSTS, CARDS].contains(&measured.class.as_str()) {
        return Err("gpu: unlike cards with a part of the model on the host".to_owned());
    }
    let devices = cards.len() as u64;
    let stated = |text: String| (!text.is_empty()).then_some(text);
    let scenario = |model: &str| PlacementScenario {
        model: Some(model.to_owned()),
        device: cards.clone(),
        link: link.iter().cloned().collect(),
        runtime: Some(runtime(&measured.runtime)),
        weight_format: stated(format(&measured.weight_format)),
        kv_format: cache_format(&offload),
        isl: Some(measured.isl.saturating_add(measured.depth)),
        prefix: (measured.depth > 0).then_some(measured.depth),
        osl: Some(measured.osl),
        concurrency: Some(measured.concurrency.unwrap_or(1)),
        objective: PlacementObjective::Latency,
        ..PlacementScenario::default()
    };
    let of = |model: &str| answer_placement(catalog, &scenario(model), &UNWATCHED);
    let answered = of(&measured.model).or_else(|fault| match base(&measured.model) {
        Some(base) if fault.key == "model" => of(base).map_err(|other| nearer(fault, other)),
        _ => Err(fault),
    });
    let result = answered.map_err(|fault| reason(&fault))?.result;
    let found = result.placement.ok_or("memory: no placement is predicted to fit")?;
    let seconds = [found.prefill_ms / 1e3, found.token_ms / 1e3];
    if seconds.iter().any(|time| !(time.is_finite() && *time > 0.0)) {
        return Err("tpot: no finite prediction at these lengths".to_owned());
    }
    Ok(predicted(measured, seconds, devices))
}

/// The cache format that a command in lower case states.
fn cache_format(offload: &str) -> Option<String> {
    CACHES.iter().find(|(words, _)| offload.contains(words)).map(|(_, id)| (*id).to_owned())
}

/// The problem of a run: its model on its cards or its processor, one request at a time.
fn problem(
    catalog: &Catalog,
    measured: &MeasuredRow,
    (run, cards): (&HomeRun, &[String]),
) -> Result<Problem, String> {
    let hardware = match cards.first() {
        Some(card) => format!("{}x{card}", cards.len()),
        None => processor(&run.cpu).ok_or("cpu: not stated")?,
    };
    let needs_host = run.gpus == 0 || !run.offload.contains("all on GPU");
    let host = [processor(&run.cpu), run.memory()].into_iter().flatten().collect::<Vec<_>>();
    if needs_host && host.is_empty() && measured.class != CARDS {
        return Err("cpu, ram: not stated, so the speed of the host is unknown".to_owned());
    }
    let cache = cache_format(&run.offload.to_lowercase());
    let stated = |text: &String| (!text.is_empty()).then(|| text.clone());
    let scenario = |model: &str, host: Option<String>| Scenario {
        model: Some(model.to_owned()),
        hardware: Some(hardware.clone()),
        runtime: Some(runtime(&measured.runtime)),
        weight_format: stated(&format(&measured.weight_format)),
        kv_format: cache.clone(),
        host,
        host_memory: Some(run.memory_size().unwrap_or_else(|| ENOUGH.to_owned())),
        concurrency: Some(measured.concurrency.unwrap_or(1)),
        isl: Some(measured.isl.saturating_add(measured.depth)),
        prefix: (measured.depth > 0).then_some(measured.depth),
        osl: Some(measured.osl),
        objective: Some("latency".to_owned()),
        ttft: Some("none".to_owned()),
        tpot: Some("none".to_owned()),
        allow: Some(vec![Allowance::Unmeasured]),
        ..Scenario::default()
    };
    let of = |model: &str| {
        let whole = (!host.is_empty()).then(|| host.join(","));
        let found = ResolvedScenario::resolve(catalog, &scenario(model, whole));
        // Memory alone says how fast the host is, where the catalogue lacks the processor.
        let memory = run.memory().filter(|_| host.len() > 1);
        match (found, memory) {
            (Err(fault), Some(memory)) if fault.key == "host" => {
                ResolvedScenario::resolve(catalog, &scenario(model, Some(memory)))
            }
            (found, _) => found,
        }
    };
    let resolved = of(&measured.model).or_else(|fault| match base(&measured.model) {
        Some(base) if fault.key == "model" => of(base).map_err(|other| nearer(fault, other)),
        _ => Err(fault),
    });
    resolved.and_then(|resolved| resolved.problem()).map_err(|fault: Error| reason(&fault))
}

/// The cards of a run by their names in the catalogue.
fn cards(catalog: &Catalog, run: &HomeRun) -> Result<Vec<String>, String> {
    let cards = run.cards().ok_or_else(|| format!("gpu: `{}`, of which {} ran", run.gpu, run.gpus))?;
    if run.gpus > 0 && cards.is_empty() {
        return Err("gpu: not stated".to_owned());
    }
    Ok(cards.iter().map(|published| card(catalog, published)).collect())
}

/// The name of a card in the catalogue: as published, or without its memory where that is the memory of the device.
fn card(catalog: &Catalog, published: &str) -> String {
    let published = &*device(published);
    let sized = published.rsplit_once('-').and_then(|(name, size)| {
        let gigabytes: f64 = size.strip_suffix("gb")?.parse().ok()?;
        Some((name, gigabytes))
    });
    let Some((name, gigabytes)) = sized.filter(|_| catalog.device(published).is_err()) else {
        return published.to_owned();
    };
    let capacity = catalog.device(name).ok().and_then(|device| device.memory.capacity);
    let has = capacity.is_some_and(|bytes| (bytes.value / GIB / gigabytes - 1.0).abs() < SAME_SIZE);
    if has { name } else { published }.to_owned()
}

/// Memory that a device keeps to itself, as a share of what its name says: a gigabyte of a card's name is a GiB.
const SAME_SIZE: f64 = 0.1;

/// The name of a processor without cores, sockets in use or settings: `Threadripper PRO 7965WX 24c`; `None` where there is
/// none.
fn processor(published: &str) -> Option<String> {
    let name = published.split([',', '(', '@']).next()?.trim();
    let cores = |word: &str| word.strip_suffix('c').is_some_and(|number| number.parse::<u64>().is_ok());
    let words: Vec<&str> = name.split_whitespace().filter(|word| !cores(word)).collect();
    // A socket count is written `2x`, as the catalogue writes it.
    let name = words.join("-").to_lowercase().replacen(
        "x-",
        "x",
        usize::from(name.starts_with(|c: char| c.is_ascii_digit())),
    );
    (!name.is_empty()).then_some(name)
}

/// The plan that a run states, on one card; else the best.
fn plan(problem: &Problem, home: &HomeRun) -> Result<Candidate, String> {
    let stated = (home.gpus == 1).then(|| part(&home.offload, problem.graph.layers.value as u32)).flatten();
    if let Some(stated) = stated {
        let host = stated.map(|part| format!(", host {part}")).unwrap_or_default();
        let text = format!("1 x tp1{host}").parse().map_err(|fault: Error| reason(&fault))?;
        return candidate(problem, &text).map_err(|fault| reason(&fault));
    }
    let best = run(problem, &UNWATCHED).best;
    best.map(|best| best.candidate).ok_or_else(|| "memory: no plan is predicted to fit".to_owned())
}

/// The whole number after a flag.
fn flag(command: &str, name: &str) -> Option<u32> {
    let (_, after) = command.split_once(name)?;
    after.trim_start().split(|letter: char| !letter.is_ascii_digit()).next()?.parse().ok()
}

/// The part on the host that a command states, `Some(None)` where nothing is there; `None` where it does not say.
fn part(command: &str, layers: u32) -> Option<Option<HostPart>> {
    let of = |tensors, number: u32| match number.min(layers) {
        0 => None,
        layers => Some(HostPart { tensors, layers }),
    };
    if command.contains("all on GPU") {
        return Some(None);
    }
    let first = ["--n-cpu-moe", "-ncmoe"].iter().find_map(|name| flag(command, name));
    if let Some(number) = first {
        return Some(of(HostedTensors::Experts, number));
    }
    if command.contains("exps=CPU") || command.starts_with("routed experts on CPU") {
        return Some(of(HostedTensors::Experts, layers));
    }
    let others = ["-ot", "FFN", "expert"].iter().any(|word| command.contains(word));
    let on_card = flag(command, "-ngl").filter(|_| !others)?;
    Some(of(HostedTensors::Layers, layers.saturating_sub(on_card)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_states_what_is_on_the_host() {
        let part = |command| part(command, 48).map(|part| part.map(|part| part.to_string()));
        for (command, expected) in [
            ("-ngl 99 --n-cpu-moe 36, ctx 4096", Some(Some("experts 36"))),
            ("--n-cpu-moe 999", Some(Some("experts 48"))),
            ("-ngl 63 -ot exps=CPU -mla 2", Some(Some("experts 48"))),
            ("-ngl 30 (whole layers on CPU)", Some(Some("layers 18"))),
            ("-ngl 99, all on GPU", Some(None)),
            ("-ngl 99", Some(None)),
            ("-ngl 99; FFN of layers 12-93 on CPU", None),
            ("automatic GPU/CPU split", None),
        ] {
            assert_eq!(part(command), expected.map(|part| part.map(str::to_owned)), "{command}");
        }
    }

    #[test]
    fn processors_are_named_as_in_the_catalogue() {
        for (published, name) in [
            ("Threadripper PRO 7965WX 24c", "threadripper-pro-7965wx"),
            ("EPYC 9355 (VM, 56 of 64 threads)", "epyc-9355"),
            ("2x EPYC 9355 (NPS4)", "2xepyc-9355"),
            ("Core i9-7980XE @4.2GHz", "core-i9-7980xe"),
            ("Ryzen 7 5800X3D", "ryzen-7-5800x3d"),
        ] {
            assert_eq!(processor(published).as_deref(), Some(name));
        }
        assert_eq!(processor(""), None);
    }
}
