//! What predictions of the left out tell: how wide intervals are, and a picture of what the data lack.

use super::{Fault, Sample, Times, csv, errors, kind, medians};
use crate::calibrate::cross::Out;
use crate::calibrate::fit::Found;
use crate::calibrate::profile::Around;
use crate::report::residuals::{Strip, residuals};
use crate::spec::runtime::Near;
use crate::validate::score::quantile;

/// How near a question is to what was left out, by what was left out.
const NEARNESS: [(Near, Out); 5] = [
    (Near::Measured, Out::Fifth),
    (Near::HardwareAndRuntime, Out::Combination),
    (Near::Hardware, Out::DeviceAndRuntime),
    (Near::Vendor, Out::Device),
    (Near::Nothing, Out::Maker),
];

/// Quantiles of measured over predicted where the like was left out, and of split pools, which no fit saw.
pub(super) fn intervals(
    samples: &[&Sample],
    apart: &[(Out, Vec<Times>)],
    split: &[Sample],
    fit: &Found,
) -> Vec<Around> {
    let of = |(near, out): (Near, Out)| {
        let (_, made) = apart.iter().find(|(known, _)| *known == out)?;
        let how = format!("{}, each predicted from {}", kind(samples), out.name());
        Some(around(near, samples, made, &how))
    };
    let mut found: Vec<Around> = NEARNESS.into_iter().filter_map(of).collect();
    let split: Vec<&Sample> = split.iter().collect();
    if !split.is_empty() {
        let how = "serving points with prefill and decode apart, on which no constant was fitted";
        found.push(around(Near::Split, &split, &fit.predict(&split), how));
    }
    found
}

fn around(near: Near, samples: &[&Sample], made: &[Times], how: &str) -> Around {
    let quantiles = |ratio: &dyn Fn(&Sample, &Times) -> Option<f64>| {
        let mut ratios: Vec<f64> =
            samples.iter().zip(made).filter_map(|(sample, times)| ratio(sample, times)).collect();
        [0.1, 0.5, 0.9].map(|p| quantile(&mut ratios, p))
    };
    let whole = |ttft: f64, tpot: f64, sample: &Sample| ttft + (sample.posed.lengths.osl as f64 - 1.0) * tpot;
    let errors = errors("", samples, made);
    Around {
        near,
        quantiles: [
            quantiles(&|sample, times| Some(sample.ttft? / times.ttft)),
            quantiles(&|sample, times| Some(sample.tpot? / times.tpot)),
            quantiles(&|sample, times| {
                let tpot = sample.tpot?;
                Some(match sample.ttft {
                    Some(ttft) => whole(times.ttft, times.tpot, sample) / whole(ttft, tpot, sample),
                    // Runs that time answers alone.
                    None => times.tpot / tpot,
                })
            }),
        ],
        source: format!(
            "quantiles of measured over predicted on {} published {how}: median error {}",
            samples.len(),
            medians(&errors)
        ),
    }
}

/// Each row as measured, as fitted, and as predicted while its like was left out.
pub(super) fn rows(
    samples: &[&Sample],
    fitted: &[Times],
    apart: &[(Out, Vec<Times>)],
) -> Result<String, Fault> {
    let made: Vec<(String, &[Times])> = std::iter::once(("fitted".to_owned(), fitted))
        .chain(apart.iter().map(|(out, made)| (format!("without_{}", out.key_name()), &made[..])))
        .collect();
    let mut header =
        vec!["id".to_owned(), "runtime".into(), "hardware".into(), "model".into(), "weight_format".into()];
    for time in ["ttft_s", "tpot_s"] {
        header.push(time.into());
        header.extend(made.iter().map(|(name, _)| format!("{time}_{name}")));
    }
    let number = |value: Option<f64>| value.map(|value| format!("{value:.6e}")).unwrap_or_default();
    let cells = samples.iter().enumerate().map(|(at, sample)| {
        let Sample { id, runtime, hardware, model, weight_format, .. } = sample;
        let mut cells: Vec<String> = [id, runtime, hardware, model, weight_format].map(Clone::clone).into();
        cells.push(number(sample.ttft));
        cells.extend(made.iter().map(|(_, times)| number(Some(times[at].ttft))));
        cells.push(number(sample.tpot));
        cells.extend(made.iter().map(|(_, times)| number(Some(times[at].tpot))));
        cells
    });
    csv(&header.iter().map(String::as_str).collect::<Vec<_>>(), cells)
}

/// How far each group of model, hardware and runtime is off when it is left out.
pub(super) fn picture(samples: &[&Sample], apart: &[(Out, Vec<Times>)]) -> String {
    let made = apart.iter().find(|(out, _)| *out == Out::Combination).map(|(_, made)| made);
    let mut strips = std::collections::BTreeMap::<String, Strip>::new();
    for (sample, times) in samples.iter().zip(made.into_iter().flatten()) {
        let name = format!("{}, {}, {}", sample.runtime, sample.hardware, short(&sample.model));
        let strip = strips.entry(name).or_default();
        strip.tpot.extend(sample.tpot.map(|measured| times.tpot / measured));
        strip.ttft.extend(sample.ttft.map(|measured| times.ttft / measured));
    }
    let strips: Vec<Strip> = strips
        .into_iter()
        .map(|(name, strip)| Strip {
            name: format!("{name} ({})", strip.tpot.len().max(strip.ttft.len())),
            ..strip
        })
        .collect();
    residuals(
        "Each combination of runtime, hardware and model (rows) as predicted from all others; orange: medians",
        &strips,
    )
}

/// `llama 70553706496` → `llama 71B`.
fn short(model: &str) -> String {
    let (family, count) = model.split_once(' ').unwrap_or((model, ""));
    let billions = count.parse::<f64>().map_or(f64::NAN, |count| count / 1e9);
    if billions < 10.0 { format!("{family} {billions:.1}B") } else { format!("{family} {billions:.0}B") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn models_are_told_by_size() {
        assert_eq!(short("llama 70553706496"), "llama 71B");
        assert_eq!(short("qwen3 751632384"), "qwen3 0.8B");
    }
}
