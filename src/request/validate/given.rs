//! Facts of runs that a file of runs does not state, given next to it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::spec::error::Error;
use crate::spec::limits::{CONCURRENCY, DEGREE, ISL, Limit, OSL};
use crate::spec::run::{OF_SYSTEM, RunRecord};
use crate::store::hardware::Shorthand;
use crate::validate::imported::ImportedRun;

/// Facts of the runs of `bench` and of benchmark files: those that a file does not state, or that are otherwise than it states.
/// Tables of measurements state their own.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[cfg_attr(feature = "cli", derive(clap::Args))]
#[cfg_attr(feature = "cli", command(next_help_heading = "Runs of bench and of benchmark files"))]
#[serde(deny_unknown_fields, default)]
pub struct GivenRunFacts {
    /// Model that the server had: a name, or a file
    #[cfg_attr(feature = "cli", arg(long, value_name = "NAME"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Devices of the server, a system, or local
    #[cfg_attr(feature = "cli", arg(long, value_name = "[COUNTx]DEVICE"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hardware: Option<String>,
    /// Runtime of the server, where the file does not state one.
    #[cfg_attr(feature = "cli", arg(skip))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runtime: Option<String>,
    /// Version of the runtime
    #[cfg_attr(feature = "cli", arg(long, value_name = "VERSION"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runtime_version: Option<String>,
    /// Weight format
    #[cfg_attr(feature = "cli", arg(long, value_name = "FORMAT"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weight_format: Option<String>,
    /// Format of keys and values
    #[cfg_attr(feature = "cli", arg(long, value_name = "FORMAT"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kv_format: Option<String>,
    /// Tensor-parallel degree
    #[cfg_attr(feature = "cli", arg(long, value_name = "N", value_parser = crate::spec::limits::whole(&DEGREE)))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tp: Option<u64>,
    /// Pipeline-parallel degree
    #[cfg_attr(feature = "cli", arg(long, value_name = "N", value_parser = crate::spec::limits::whole(&DEGREE)))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pp: Option<u64>,
    /// Data-parallel degree of attention
    #[cfg_attr(feature = "cli", arg(long, value_name = "N", value_parser = crate::spec::limits::whole(&DEGREE)))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dp: Option<u64>,
    /// Expert-parallel degree
    #[cfg_attr(feature = "cli", arg(long, value_name = "N", value_parser = crate::spec::limits::whole(&DEGREE)))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ep: Option<u64>,
    /// Replicas
    #[cfg_attr(feature = "cli", arg(long, value_name = "N", value_parser = crate::spec::limits::whole(&DEGREE)))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replicas: Option<u64>,
    /// Mean tokens of a prompt
    #[cfg_attr(feature = "cli", arg(long, value_name = "TOKENS", value_parser = crate::spec::limits::whole(&ISL)))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub isl: Option<u64>,
    /// Mean tokens of an answer
    #[cfg_attr(feature = "cli", arg(long, value_name = "TOKENS", value_parser = crate::spec::limits::whole(&OSL)))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub osl: Option<u64>,
    /// Clients, each of which sends its next request after its last answer
    #[cfg_attr(feature = "cli", arg(long, value_name = "N", value_parser = crate::spec::limits::whole(&CONCURRENCY)))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub concurrency: Option<u64>,
}

impl GivenRunFacts {
    /// The run with these facts.
    ///
    /// # Errors
    /// A number is outside of its range.
    pub fn applied(&self, run: ImportedRun) -> Result<ImportedRun, Error> {
        let mut run: RunRecord = run.run;
        let text = |given: &Option<String>| given.as_ref().map(|text| text.trim().to_owned());
        if let Some(model) = text(&self.model) {
            run.model_id = model;
        }
        if run.runtime_id.is_empty() {
            run.runtime_id = text(&self.runtime).unwrap_or_default();
        }
        run.runtime_version = text(&self.runtime_version).or(run.runtime_version);
        run.quant = text(&self.weight_format).or(run.quant);
        run.kv_format = text(&self.kv_format).or(run.kv_format);
        if let Some(hardware) = text(&self.hardware) {
            let Shorthand { nodes, count, device, .. } = Shorthand::parse(&hardware)?;
            // A device without a count: as many as the file states, else one, where no degree says otherwise.
            run.devices = match device != hardware {
                true => Some(nodes.saturating_mul(count)),
                false if self.has_degree() => None,
                false => run.devices.or(Some(1)),
            };
            run.hardware_id = Some(device.to_owned());
            // The host is that of this system now.
            run.env.retain(|key, value| key != "host" || *value != OF_SYSTEM);
        }
        let degrees = &mut run.parallelism;
        for (key, limit, given, place) in [
            ("tp", &DEGREE, self.tp, &mut degrees.tensor_parallel),
            ("pp", &DEGREE, self.pp, &mut degrees.pipeline_parallel),
            ("dp", &DEGREE, self.dp, &mut degrees.data_parallel),
            ("ep", &DEGREE, self.ep, &mut degrees.expert_parallel),
            ("replicas", &DEGREE, self.replicas, &mut degrees.replicas),
            ("concurrency", &CONCURRENCY, self.concurrency, &mut run.concurrency),
        ] {
            checked(key, limit, given)?;
            *place = given.or(*place);
        }
        if self.has_degree() {
            run.plan = None;
        }
        if self.concurrency.is_some() {
            (run.rate_per_s, run.arrival_variation) = (None, None);
        }
        run.context_tokens = checked("isl", &ISL, self.isl)?.unwrap_or(run.context_tokens);
        run.output_tokens = checked("osl", &OSL, self.osl)?.unwrap_or(run.output_tokens);
        Ok(ImportedRun::of(run))
    }

    /// Whether nothing is given.
    pub fn is_empty(&self) -> bool {
        *self == GivenRunFacts::default()
    }

    fn has_degree(&self) -> bool {
        [self.tp, self.pp, self.dp, self.replicas].iter().any(Option::is_some)
    }
}

fn checked(key: &str, limit: &Limit, given: Option<u64>) -> Result<Option<u64>, Error> {
    given.map_or(Ok(()), |number| limit.check_whole(key, number))?;
    Ok(given)
}
