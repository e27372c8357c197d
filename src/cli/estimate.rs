//! `estimate`: one stated deployment, the same metrics.

use super::output::{Format, Output, json};
use super::question::Question;
use super::{Fault, Verdict, ask};
use crate::graph::model::ModelGraph;
use crate::plan::legal::has_experts;
use crate::plan::parallel::ParallelPlan;
use crate::report::answer::estimated;
use crate::report::rows::csv;
use crate::report::text::estimate;
use crate::search::candidate::Duty;
use crate::spec::deployment::{Degrees, Deployment, Pools};
use crate::spec::error::Error;
use crate::store::catalog::Catalog;
use crate::store::problem::Problem;

/// The flags of `estimate`.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Estimate {
    /// The question.
    #[command(flatten)]
    pub question: Question,
    /// The deployment.
    #[command(flatten)]
    pub deployment: Deployment,
    /// Where the answer goes.
    #[command(flatten)]
    pub output: Output,
}

/// Equal instances.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pool {
    /// The degrees of one.
    pub plan: ParallelPlan,
    /// How many.
    pub replicas: u64,
}

/// A stated deployment with its degrees worked out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stated {
    /// The same instances prefill and decode.
    Aggregated(Pool),
    /// Pools of their own.
    Disaggregated {
        /// Those that prefill.
        prefill: Pool,
        /// Those that decode.
        decode: Pool,
    },
}

impl Estimate {
    /// Resolves the question and answers it.
    ///
    /// # Errors
    /// The question is faulty, or the answer cannot be written.
    pub fn run(&self, catalog: &Catalog) -> Result<Verdict, Fault> {
        let problem = self.question.resolve(catalog, &self.deployment)?;
        let deployment = deployment(&problem)?;
        self.answer(&problem, &deployment)
    }

    fn answer(&self, problem: &Problem, deployment: &Stated) -> Result<Verdict, Fault> {
        let question = problem.question()?;
        let candidate = ask::candidate(&question, &deployment.pools());
        let estimated = estimated(&question, ask::asked(problem, &question), &candidate);
        let text = match self.output.format {
            Format::Table => estimate(&estimated),
            Format::Json => json(&estimated),
            Format::Csv => csv(std::slice::from_ref(&estimated.candidate)),
        };
        self.output.write(&text)?;
        Ok(if estimated.candidate.metrics.is_some() { Verdict::Found } else { Verdict::Infeasible })
    }
}

impl Stated {
    /// Its pools: what they do, how one is split, how many there are.
    pub fn pools(&self) -> Vec<(Duty, ParallelPlan, u64)> {
        let of = |duty, pool: &Pool| (duty, pool.plan, pool.replicas);
        match self {
            Stated::Aggregated(both) => vec![of(Duty::Both, both)],
            Stated::Disaggregated { prefill, decode } => {
                vec![of(Duty::Prefill, prefill), of(Duty::Decode, decode)]
            }
        }
    }
}

/// The deployment that the problem states; nothing stated is one instance on one device.
///
/// # Errors
/// Its degrees contradict each other or the number of devices.
pub fn deployment(problem: &Problem) -> Result<Stated, Error> {
    let stated = problem.deployment.clone().unwrap_or_default();
    let there = problem.cluster.devices();
    let pool = |degrees: &Degrees, prefix: &str| pool(degrees, &problem.graph, prefix);
    let fits = |used: u64| {
        let found = format!("{used} devices");
        let fix = "lower a degree or the replicas, or state more hardware";
        let fault =
            Error::new("deployment", found, format!("at most {there}: {}", problem.cluster.name), fix);
        if used <= there { Ok(()) } else { Err(fault) }
    };
    let devices = |pool: &Pool| pool.plan.devices().saturating_mul(pool.replicas);
    match stated.pools()? {
        Pools::Aggregated(degrees) => {
            let both = pool(&degrees, "")?;
            fits(devices(&both))?;
            Ok(Stated::Aggregated(both))
        }
        Pools::Disaggregated { prefill, decode } => {
            let (prefill, decode) = (pool(&prefill, "prefill-")?, pool(&decode, "decode-")?);
            fits(devices(&prefill).saturating_add(devices(&decode)))?;
            Ok(Stated::Disaggregated { prefill, decode })
        }
    }
}

/// Works out what the degrees leave open: expert layers take the devices that attention takes.
fn pool(degrees: &Degrees, graph: &ModelGraph, prefix: &str) -> Result<Pool, Error> {
    let one = |degree: Option<u64>| degree.unwrap_or(1);
    let (tp, pp, dp, cp) = (one(degrees.tp), one(degrees.pp), one(degrees.dp), one(degrees.cp));
    let product = [tp, cp, dp, pp, one(degrees.replicas)].iter().try_fold(1u64, |all, n| all.checked_mul(*n));
    if product.is_none_or(|devices| devices > 1 << 20) {
        let found = format!("tp {tp} x cp {cp} x dp {dp} x pp {pp} x replicas {}", one(degrees.replicas));
        return Err(Error::new("deployment", found, "at most 1048576 devices", "lower the degrees"));
    }
    let stage = tp * cp * dp;
    let (ep, moe_tp) = if has_experts(graph) {
        match (degrees.ep, degrees.moe_tp) {
            (None, None) => (1, stage),
            (Some(ep), None) if stage.is_multiple_of(ep) => (ep, stage / ep),
            (None, Some(moe_tp)) if stage.is_multiple_of(moe_tp) => (stage / moe_tp, moe_tp),
            (Some(ep), Some(moe_tp)) if ep.checked_mul(moe_tp) == Some(stage) => (ep, moe_tp),
            (ep, moe_tp) => {
                let spell = |degree: Option<u64>| degree.map_or("unset".to_owned(), |n| n.to_string());
                let found = format!("ep {}, moe-tp {}", spell(ep), spell(moe_tp));
                let expected = format!("ep x moe-tp = tp x cp x dp = {stage}");
                return Err(Error::new(
                    format!("{prefix}ep"),
                    found,
                    expected,
                    "state one of them, and one that divides",
                ));
            }
        }
    } else {
        let experts = [("ep", degrees.ep), ("moe-tp", degrees.moe_tp)];
        if let Some((name, degree)) = experts.iter().find(|(_, degree)| degree.is_some_and(|n| n > 1)) {
            let found = format!("{} for a model without experts", one(*degree));
            return Err(Error::new(format!("{prefix}{name}"), found, "1, or nothing", "leave it out"));
        }
        (1, tp)
    };
    let sp = degrees.sp.unwrap_or(false);
    Ok(Pool { plan: ParallelPlan { tp, pp, dp, cp, ep, moe_tp, sp }, replicas: one(degrees.replicas) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::scenario::Scenario;

    fn of(model: &str, hardware: &str, both: Degrees) -> Result<Stated, Error> {
        let deployment = Some(Deployment { both, ..Deployment::default() });
        let scenario = Scenario {
            model: Some(model.into()),
            hardware: Some(hardware.into()),
            deployment,
            ..Scenario::default()
        };
        deployment_of(&Problem::resolve(&Catalog::default(), &scenario).unwrap())
    }

    use super::deployment as deployment_of;

    #[test]
    fn expert_degrees_follow_from_the_others() {
        let degrees = |tp, dp, ep, moe_tp| Degrees { tp, dp, ep, moe_tp, ..Degrees::default() };
        let split = |stated: Result<Stated, Error>| match stated.unwrap() {
            Stated::Aggregated(pool) => (pool.plan.ep, pool.plan.moe_tp),
            other => panic!("{other:?}"),
        };
        let moe = |d| of("DeepSeek-V3", "8xh200", d);
        assert_eq!(split(moe(degrees(Some(8), None, None, None))), (1, 8));
        assert_eq!(split(moe(degrees(Some(1), Some(8), Some(8), None))), (8, 1));
        assert_eq!(split(moe(degrees(Some(4), Some(2), None, Some(2)))), (4, 2));
        assert_eq!(moe(degrees(Some(4), Some(2), Some(3), None)).unwrap_err().key, "ep");
        assert_eq!(split(of("Llama-3.1-8B", "8xh100", degrees(Some(4), None, None, None))), (1, 4));
        assert!(of("Llama-3.1-8B", "8xh100", degrees(None, None, Some(8), None)).is_err());
    }

    #[test]
    fn a_deployment_takes_no_more_devices_than_there_are() {
        let degrees = Degrees { tp: Some(4), replicas: Some(3), ..Degrees::default() };
        let error = of("Llama-3.1-8B", "8xh100", degrees).unwrap_err();
        assert_eq!(error.found, "12 devices");
        let degrees =
            Degrees { tp: Some(1 << 20), dp: Some(1 << 20), pp: Some(1 << 20), ..Degrees::default() };
        assert!(of("DeepSeek-V3", "8xh100", degrees).is_err());
    }
}
