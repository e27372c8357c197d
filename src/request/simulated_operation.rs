//! The operation of a simulated deployment, as a request states it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::spec::error::Error;
use crate::spec::limits::{
    CLIENT_TIMEOUT, FAULT_AT, FAULT_REPLICA, MAX_REPLICAS, MIN_REPLICAS, MTBF, RETRIES, SCALE_DOWN_DELAY,
    SCALE_INTERVAL, SCALE_TARGET, STARTUP_TIME,
};
use crate::spec::role::Role;
use crate::traffic::operation::{FaultTimes, OperationSettings};
use crate::traffic::run::PoolSettings;
use crate::traffic::scaler::{ScaleSignal, ScalerSettings};

/// Clients that give up, replicas that fail, and replicas that come and go with the load.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[cfg_attr(feature = "cli", derive(clap::Args))]
#[serde(deny_unknown_fields, default)]
#[schemars(rename = "Operation")]
pub struct SimulatedOperation {
    /// Seconds from the sending of a request at which its client gives it up, where the answer is not complete; the server frees its slot and its cache [default: clients wait]
    #[cfg_attr(feature = "cli", arg(long, value_name = "S", value_parser = crate::spec::limits::number(&CLIENT_TIMEOUT), allow_negative_numbers = true, help_heading = "Operation"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_timeout: Option<f64>,
    /// Seconds from the start of the run at which a replica fails: its requests and its cache are lost
    #[cfg_attr(feature = "cli", arg(long, value_name = "S", value_delimiter = ',', value_parser = crate::spec::limits::number(&FAULT_AT), allow_negative_numbers = true, help_heading = "Operation"))]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub fault_at: Vec<f64>,
    /// The replica that fails then, from 0 [default: 0]
    #[cfg_attr(feature = "cli", arg(long, value_name = "N", value_parser = crate::spec::limits::whole(&FAULT_REPLICA), allow_negative_numbers = true, help_heading = "Operation"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fault_replica: Option<u64>,
    /// Mean time between failures of a replica, in seconds of service, exponential by the seed, instead of stated ones
    #[cfg_attr(feature = "cli", arg(long, value_name = "S", value_parser = crate::spec::limits::number(&MTBF), allow_negative_numbers = true, help_heading = "Operation"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mtbf: Option<f64>,
    /// How often the router sends a request again that was lost in a fault [default: 5, that of SGLang's gateway]
    #[cfg_attr(feature = "cli", arg(long, value_name = "N", value_parser = crate::spec::limits::whole(&RETRIES), allow_negative_numbers = true, help_heading = "Operation"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retries: Option<u64>,
    /// Seconds from the start of a replica, after a fault or when it is added, until it takes requests; required where replicas start
    #[cfg_attr(feature = "cli", arg(long, value_name = "S", value_parser = crate::spec::limits::number(&STARTUP_TIME), allow_negative_numbers = true, help_heading = "Operation"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub startup_time: Option<f64>,
    /// Add and remove replicas by this signal, from those of the plan on [default: their number does not change]
    #[cfg_attr(feature = "cli", arg(long, value_name = "SIGNAL", help_heading = "Operation"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub autoscale: Option<ScaleSignal>,
    /// The value of the signal that a replica should have on average: requests, or the share of the KV cache from 0 to 1
    #[cfg_attr(feature = "cli", arg(long, value_name = "X", value_parser = crate::spec::limits::number(&SCALE_TARGET), allow_negative_numbers = true, help_heading = "Operation"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub autoscale_target: Option<f64>,
    /// Minimum number of replicas [default: 1, that of Kubernetes]
    #[cfg_attr(feature = "cli", arg(long, value_name = "N", value_parser = crate::spec::limits::whole(&MIN_REPLICAS), allow_negative_numbers = true, help_heading = "Operation"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_replicas: Option<u64>,
    /// Maximum number of replicas, those included that are emptied
    #[cfg_attr(feature = "cli", arg(long, value_name = "N", value_parser = crate::spec::limits::whole(&MAX_REPLICAS), allow_negative_numbers = true, help_heading = "Operation"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_replicas: Option<u64>,
    /// Seconds between two readings of the signal [default: 15, that of Kubernetes]
    #[cfg_attr(feature = "cli", arg(long, value_name = "S", value_parser = crate::spec::limits::number(&SCALE_INTERVAL), allow_negative_numbers = true, help_heading = "Operation"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub autoscale_interval: Option<f64>,
    /// Seconds for which fewer replicas must have sufficed before any is removed [default: 300, that of Kubernetes]
    #[cfg_attr(feature = "cli", arg(long, value_name = "S", value_parser = crate::spec::limits::number(&SCALE_DOWN_DELAY), allow_negative_numbers = true, help_heading = "Operation"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scale_down_delay: Option<f64>,
}

/// `--retry-max-retries` of SGLang's Model Gateway (sgl-project/sglang, `sgl-model-gateway/README.md`).
const DEFAULT_RETRIES: u64 = 5;
/// `minReplicas`, `--horizontal-pod-autoscaler-sync-period` and `--horizontal-pod-autoscaler-downscale-stabilization` of
/// Kubernetes (<https://kubernetes.io/docs/tasks/run-application/horizontal-pod-autoscale/>).
const DEFAULT_LEAST: u64 = 1;
const DEFAULT_INTERVAL_S: f64 = 15.0;
const DEFAULT_SCALE_DOWN_S: f64 = 300.0;

impl SimulatedOperation {
    /// Whether nothing but requests happens.
    pub(super) fn is_plain(&self) -> bool {
        *self == SimulatedOperation::default()
    }

    /// The settings of `pools`, whose front ends have a request for `front_end_s` seconds.
    pub(super) fn settings(
        &self,
        pools: &[PoolSettings],
        front_end_s: f64,
    ) -> Result<OperationSettings, Error> {
        self.check_numbers()?;
        self.check_combinations()?;
        let starts = self.has_faults() || self.autoscale.is_some();
        if starts && self.startup_time.is_none() {
            let fix = "state the seconds that weights, graphs and warm-up take on your machines";
            return Err(Error::new("startup_time", "none", "the start-up time of a replica", fix));
        }
        Ok(OperationSettings {
            client_timeout_s: self.client_timeout.map(|seconds| (seconds - front_end_s).max(0.0)),
            faults: self.faults(pools)?,
            retries: self.retries.unwrap_or(DEFAULT_RETRIES) as u32,
            scaler: self.scaler(pools)?,
            startup_s: self.startup_time.unwrap_or(0.0),
        })
    }

    fn check_numbers(&self) -> Result<(), Error> {
        for (limit, name, value) in [
            (&CLIENT_TIMEOUT, "client_timeout", self.client_timeout),
            (&MTBF, "mtbf", self.mtbf),
            (&STARTUP_TIME, "startup_time", self.startup_time),
            (&SCALE_TARGET, "autoscale_target", self.autoscale_target),
            (&SCALE_INTERVAL, "autoscale_interval", self.autoscale_interval),
            (&SCALE_DOWN_DELAY, "scale_down_delay", self.scale_down_delay),
        ] {
            if let Some(value) = value {
                limit.check(name, value)?;
            }
        }
        for (limit, name, value) in [
            (&FAULT_REPLICA, "fault_replica", self.fault_replica),
            (&RETRIES, "retries", self.retries),
            (&MIN_REPLICAS, "min_replicas", self.min_replicas),
            (&MAX_REPLICAS, "max_replicas", self.max_replicas),
        ] {
            if let Some(value) = value {
                limit.check_whole(name, value)?;
            }
        }
        self.fault_at.iter().try_for_each(|seconds| FAULT_AT.check("fault_at", *seconds))
    }

    fn has_faults(&self) -> bool {
        !self.fault_at.is_empty() || self.mtbf.is_some()
    }

    /// Whether each setting is of something that is there.
    fn check_combinations(&self) -> Result<(), Error> {
        if !self.fault_at.is_empty() && self.mtbf.is_some() {
            return Err(Error::new("mtbf", "`fault_at` too", "one of the two", "leave one of them out"));
        }
        let (faults, scales) = (self.has_faults(), self.autoscale.is_some());
        let (of_faults, of_scaler) = ("faults: `fault_at` or `mtbf`", "a signal: `autoscale`");
        let parts = [
            ("fault_replica", self.fault_replica.is_some(), !self.fault_at.is_empty(), "a time: `fault_at`"),
            ("retries", self.retries.is_some(), faults, of_faults),
            (
                "startup_time",
                self.startup_time.is_some(),
                faults || scales,
                "faults, or a signal: `autoscale`",
            ),
            ("autoscale_target", self.autoscale_target.is_some(), scales, of_scaler),
            ("min_replicas", self.min_replicas.is_some(), scales, of_scaler),
            ("max_replicas", self.max_replicas.is_some(), scales, of_scaler),
            ("autoscale_interval", self.autoscale_interval.is_some(), scales, of_scaler),
            ("scale_down_delay", self.scale_down_delay.is_some(), scales, of_scaler),
        ];
        match parts.into_iter().find(|(_, stated, has_use, _)| *stated && !has_use) {
            Some((name, .., expected)) => {
                Err(Error::new(name, "it alone", expected, "state that too, or leave this out"))
            }
            None => Ok(()),
        }
    }

    fn faults(&self, pools: &[PoolSettings]) -> Result<Option<FaultTimes>, Error> {
        if let Some(mean_s) = self.mtbf {
            return Ok(Some(FaultTimes::Drawn { mean_s }));
        }
        if self.fault_at.is_empty() {
            return Ok(None);
        }
        let (replica, replicas) = (self.fault_replica.unwrap_or(0), replicas(pools));
        if replica >= replicas {
            let (found, expected) = (replica.to_string(), format!("a replica from 0 to {}", replicas - 1));
            return Err(Error::new("fault_replica", found, expected, "name one that the plan has"));
        }
        Ok(Some(FaultTimes::At { times_s: self.fault_at.clone(), replica: replica as usize }))
    }

    fn scaler(&self, pools: &[PoolSettings]) -> Result<Option<ScalerSettings>, Error> {
        let Some(signal) = self.autoscale else { return Ok(None) };
        if pools.iter().any(|pool| pool.role != Role::Aggregated) {
            let fix = "simulate a plan whose replicas do both";
            return Err(Error::new("autoscale", "workers of several roles", "replicas of one kind", fix));
        }
        let needed = |key: &'static str, fix: &'static str| Error::new(key, "none", "a number", fix);
        let target = self.autoscale_target.ok_or_else(|| {
            needed("autoscale_target", "state the value of the signal that a replica should have")
        })?;
        let most = self
            .max_replicas
            .ok_or_else(|| needed("max_replicas", "state how many replicas there are machines for"))?;
        let (least, planned) = (self.min_replicas.unwrap_or(DEFAULT_LEAST), replicas(pools));
        if !(least..=most).contains(&planned) {
            let (found, expected) = (format!("a plan of {planned}"), format!("{least} to {most}"));
            let fix = "state bounds around the replicas of the plan, from which the run starts";
            return Err(Error::new("max_replicas", found, expected, fix));
        }
        Ok(Some(ScalerSettings {
            signal,
            target,
            least: least as usize,
            most: most as usize,
            interval_s: self.autoscale_interval.unwrap_or(DEFAULT_INTERVAL_S),
            scale_down_s: self.scale_down_delay.unwrap_or(DEFAULT_SCALE_DOWN_S),
        }))
    }
}

/// The replicas of all pools.
fn replicas(pools: &[PoolSettings]) -> u64 {
    pools.iter().map(|pool| pool.replicas as u64).sum()
}
