//! Results of InferenceX (InferenceMAX): `agg_*.json`, one or a list.
//!
//! Keys: `utils/process_result.py`, its tests and `utils/collect_results.py` of SemiAnalysisAI/InferenceX (843c625).
//! Latencies are seconds; `tput_per_gpu` counts prompts and answers, `output_tput_per_gpu` answers, with separate pools
//! of the decoding devices alone. With `dp_attention` each device of a worker is an attention rank.

use super::documents::FileContent;
use super::fields::{FileFields, LatencyKeys, LatencyUnit};
use super::{first_has, model_of, objects, runtime_of};
use crate::spec::degree::Degrees;
use crate::spec::error::Error;
use crate::spec::limits::{DEGREE, DEVICES, MEASURED};
use crate::spec::notation::{PlanText, PoolText};
use crate::spec::percentile::Percentile;
use crate::spec::role::Role;
use crate::spec::run::{RunDegrees, RunLatency, RunRecord, RunStatistic};
use crate::validate::measured::MEAN_OF_DRAWN;

const LATENCIES: LatencyKeys = LatencyKeys {
    path: "{s}_{l}",
    latencies: &[
        (RunLatency::Ttft, "ttft"),
        (RunLatency::Tpot, "tpot"),
        (RunLatency::Itl, "itl"),
        (RunLatency::E2e, "e2el"),
    ],
    statistics: &[
        (RunStatistic::Mean, "mean"),
        (RunStatistic::At(Percentile::P50), "median"),
        (RunStatistic::At(Percentile::P90), "p90"),
        (RunStatistic::At(Percentile::P95), "p95"),
        (RunStatistic::At(Percentile::P99), "p99"),
    ],
    unit: LatencyUnit::Of(1e3),
};

pub(super) fn recognises(content: &FileContent<'_>) -> bool {
    first_has(content, &["conc", "framework", "precision", "output_tput_per_gpu"])
}

pub(super) fn read(content: &FileContent<'_>) -> Result<Vec<RunRecord>, Error> {
    objects(content).map(|fields| run(&fields)).collect()
}

/// The end of the name of a runner after the device: `h200-nv`, `mi300x-amds`.
const RUNNERS: [&str; 6] = ["-nv", "-amds", "-amd", "-nb", "-cw", "-cr"];

fn run(fields: &FileFields<'_>) -> Result<RunRecord, Error> {
    let hardware = fields.text_of(&["hw", "device"])?;
    let device = |name: &str| {
        let small = name.to_lowercase();
        let bare = RUNNERS.iter().find_map(|end| small.split_once(end)).map(|(bare, _)| bare.to_owned());
        bare.unwrap_or(small)
    };
    // The lengths of requests are drawn from 80 to 100 % of these.
    let mean = |key: &str| {
        let nominal = fields.number(key, &MEASURED)?.unwrap_or(0.0);
        Ok::<_, Error>((nominal * MEAN_OF_DRAWN).round() as u64)
    };
    let mut run = RunRecord {
        model_id: fields.text("model")?.map(model_of).unwrap_or_default(),
        runtime_id: fields.text("framework")?.map(runtime_of).unwrap_or_default(),
        runtime_version: fields
            .text("image")?
            .and_then(|image| image.rsplit_once(':'))
            .map(|(_, tag)| tag.to_owned()),
        hardware_id: hardware.map(device),
        quant: fields.text("precision")?.map(str::to_owned),
        context_tokens: mean("isl")?,
        output_tokens: mean("osl")?,
        concurrency: fields.some("conc")?,
        ..RunRecord::default()
    };
    LATENCIES.read(fields, &mut run.metrics)?;
    let answering = match fields.is_true("disagg") {
        true => separate(fields, &mut run)?,
        false => aggregated(fields, &mut run)?,
    };
    let per_device = fields.measured("output_tput_per_gpu")?;
    run.metrics.decode_toks_sec = per_device.zip(answering).map(|(rate, devices)| rate * devices as f64);
    if fields.text("spec_decoding")?.is_some_and(|method| !["none", "false", ""].contains(&method)) {
        // How many tokens were accepted is not stated, so that the speed of a step is not known.
        run.env.insert("speculative".to_owned(), fields.find("spec_decoding").cloned().unwrap_or_default());
    }
    Ok(run)
}

/// The degrees of workers: TP and EP, and whether attention is data-parallel over them.
fn degrees(fields: &FileFields<'_>, prefix: &str) -> Result<Degrees, Error> {
    let degree = |name: &str| {
        let found = fields.some(&format!("{prefix}{name}"))?;
        found.map_or(Ok(()), |number| DEGREE.check_whole(name, number))?;
        Ok::<_, Error>(found)
    };
    let (tp, pp, ep) = (degree("tp")?, degree("pp")?.filter(|pp| *pp > 1), degree("ep")?);
    let ranks = fields.is_true(&format!("{prefix}dp_attention"));
    let replicas = degree("num_workers")?;
    let (tp, dp) = if ranks { (Some(1), tp) } else { (tp, None) };
    Ok(Degrees { tp, pp, dp, ep, replicas, ..Degrees::default() })
}

/// One pool, and its devices.
fn aggregated(fields: &FileFields<'_>, run: &mut RunRecord) -> Result<Option<u64>, Error> {
    let Degrees { tp, pp, dp, ep, replicas, .. } = degrees(fields, "")?;
    run.parallelism = RunDegrees {
        tensor_parallel: tp,
        pipeline_parallel: pp,
        data_parallel: dp,
        expert_parallel: ep,
        replicas,
    };
    let devices = [tp, pp, dp].into_iter().flatten().fold(1, u64::saturating_mul);
    run.devices = tp.map(|_| devices);
    run.devices.map_or(Ok(()), |devices| DEVICES.check_whole("tp", devices))?;
    Ok(run.devices)
}

/// Prefill and decode workers, and the devices of the latter.
fn separate(fields: &FileFields<'_>, run: &mut RunRecord) -> Result<Option<u64>, Error> {
    let pool = |role, prefix| {
        Ok::<_, Error>(PoolText { role, degrees: degrees(fields, prefix)?, concurrency: None })
    };
    let pools = vec![pool(Role::Prefill, "prefill_")?, pool(Role::Decode, "decode_")?];
    run.plan = Some(PlanText { pools, ..PlanText::default() }.to_string());
    let [prompts, answers] = ["num_prefill_gpu", "num_decode_gpu"].map(|key| fields.some(key));
    let (prompts, answers) = (prompts?, answers?);
    run.devices = prompts.zip(answers).map(|(prompts, answers)| prompts.saturating_add(answers));
    Ok(answers)
}
