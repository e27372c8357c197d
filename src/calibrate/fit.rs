//! The factors of a runtime refitted to measured deployments: robust least squares with a pull to what they were.
//! Knows no formula: it only sees how predictions answer to changes.

use levenberg_marquardt::{LeastSquaresProblem, LevenbergMarquardt};
use nalgebra::storage::Owned;
use nalgebra::{DMatrix, DVector, Dyn};
use rayon::prelude::*;

use super::posed::Posed;
use crate::cost::machine::Machine;
use crate::quantity::num::Qty;
use crate::spec::runtime::{Factor, Fitted, Traits};

/// A measured deployment, on the machine as the runtime's file has it now.
#[derive(Clone, Debug)]
pub struct Sample {
    /// The deployment.
    pub posed: Posed,
    /// Its machine.
    pub machine: Machine<Qty<f64>>,
    /// Generation of its devices.
    pub family: String,
    /// Its weight format.
    pub weight_format: String,
    /// What else factors depend on.
    pub traits: Traits,
    /// Measured time to first token, in seconds.
    pub ttft: Option<f64>,
    /// Measured time per output token, in seconds.
    pub tpot: Option<f64>,
}

/// Constants in the order in which changes to them are kept.
const ORDER: [Fitted; 19] = [
    Fitted::GemmCompute,
    Fitted::GemmMemory,
    Fitted::AttentionCompute,
    Fitted::AttentionMemory,
    Fitted::MoeCompute,
    Fitted::MoeMemory,
    Fitted::CollectiveLatency,
    Fitted::CollectiveBandwidth,
    Fitted::LaunchPerLayer,
    Fitted::KernelLaunch,
    Fitted::QuantisedLaunch,
    Fitted::ExpertsLaunch,
    Fitted::HostPerStep,
    Fitted::HostPerSequence,
    Fitted::PrefillInterference,
    Fitted::RequestOverhead,
    Fitted::PromptQueue,
    Fitted::StepWait,
    Fitted::RequestWork,
];

/// Logarithms of how many times as long each constant's time is.
type Changes = [f64; ORDER.len()];

/// Error, as a logarithm, from which on a row counts linearly: about twice the noise of repeated runs' tails.
const TPOT_SCALE: f64 = 0.1;
/// The same for the time to first token, which scatters three times as much.
const TTFT_SCALE: f64 = 0.3;
/// Weight of a time to first token against a time per output token.
const TTFT_WEIGHT: f64 = 0.3;
/// Pull of a factor to what it was, per unit of its logarithm.
const PULL: f64 = 0.6;
/// A factor is told by the data where doubling it moves some prediction by this much at least.
const TOLD: f64 = 0.02;
/// Step of the difference quotient.
const STEP: f64 = 1e-4;

fn changed(machine: &Machine<Qty<f64>>, changes: &Changes) -> Machine<Qty<f64>> {
    let mut machine = machine.clone();
    let chip = &mut machine.chip;
    for (of, change) in ORDER.iter().zip(changes).filter(|(_, change)| **change != 0.0) {
        let times = Qty::from(change.exp());
        let one = Qty::from(1.0);
        let slower = |figure: &mut Qty<f64>| *figure = *figure * times;
        // An efficiency cannot pass the roofline.
        let lower = |figure: &mut Qty<f64>| *figure = (*figure / times).min(one);
        match of {
            Fitted::GemmCompute => lower(&mut chip.gemm_compute),
            Fitted::GemmMemory => lower(&mut chip.gemm_memory),
            Fitted::AttentionCompute => lower(&mut chip.attention_compute),
            Fitted::AttentionMemory => lower(&mut chip.attention_memory),
            Fitted::MoeCompute => lower(&mut chip.moe_compute),
            Fitted::MoeMemory => lower(&mut chip.moe_memory),
            Fitted::CollectiveBandwidth => lower(&mut chip.collective_bandwidth),
            Fitted::CollectiveLatency => slower(&mut chip.collective_latency),
            Fitted::LaunchPerLayer => slower(&mut chip.launch_per_layer),
            Fitted::KernelLaunch => slower(&mut chip.kernel_launch),
            Fitted::QuantisedLaunch => slower(&mut chip.quantised_launch),
            Fitted::ExpertsLaunch => slower(&mut chip.experts_launch),
            Fitted::HostPerStep => slower(&mut chip.host_per_step),
            Fitted::HostPerSequence => slower(&mut chip.host_per_sequence),
            Fitted::PrefillInterference => slower(&mut chip.prefill_interference),
            Fitted::RequestOverhead => slower(&mut chip.request_overhead),
            Fitted::PromptQueue => slower(&mut chip.prompt_queue),
            Fitted::StepWait => slower(&mut chip.step_wait),
            Fitted::RequestWork => slower(&mut chip.request_work),
        }
    }
    machine
}

/// Predicted times of a sample, in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Times {
    /// To first token.
    pub ttft: f64,
    /// Per output token.
    pub tpot: f64,
}

/// The samples and the factors that may change.
pub struct Fit<'a> {
    samples: Vec<&'a Sample>,
    /// For each sample, which change each factor belongs to; none where its conditions do not hold.
    holds: Vec<Vec<Option<usize>>>,
    x: DVector<f64>,
}

impl<'a> Fit<'a> {
    /// Nothing changed yet.
    pub fn new(samples: Vec<&'a Sample>, factors: &[Factor]) -> Fit<'a> {
        let place = |factor: &Factor| ORDER.iter().position(|of| *of == factor.of);
        let of = |sample: &&Sample| {
            let holds = |f: &Factor| f.holds(&sample.family, &sample.weight_format, &sample.traits);
            factors.iter().map(|factor| place(factor).filter(|_| holds(factor))).collect()
        };
        Fit { holds: samples.iter().map(of).collect(), x: DVector::zeros(factors.len()), samples }
    }

    fn changes(&self, row: usize) -> Changes {
        let mut changes = [0.0; ORDER.len()];
        for (factor, place) in self.holds[row].iter().enumerate() {
            if let Some(place) = place {
                changes[*place] += self.x[factor];
            }
        }
        changes
    }

    fn times(&self, row: usize, changes: &Changes) -> Times {
        let sample = self.samples[row];
        let metrics = sample.posed.evaluate(&changed(&sample.machine, changes), &mut ()).metrics;
        Times { ttft: metrics.ttft.value(), tpot: metrics.tpot.value() }
    }

    /// Predictions with the changes found so far.
    pub fn predictions(&self) -> Vec<Times> {
        (0..self.samples.len()).into_par_iter().map(|row| self.times(row, &self.changes(row))).collect()
    }

    /// Predictions for other samples.
    pub fn carried_over(&self, samples: Vec<&'a Sample>, factors: &[Factor]) -> Vec<Times> {
        let other = Fit::new(samples, factors);
        Fit { x: self.x.clone(), ..other }.predictions()
    }

    /// Finds the changes.
    #[must_use]
    pub fn solve(self) -> Fit<'a> {
        LevenbergMarquardt::new().with_patience(20).with_ftol(1e-6).with_xtol(1e-6).minimize(self).0
    }

    /// How many times as long each factor's time is as before.
    pub fn found(&self) -> Vec<f64> {
        self.x.iter().map(|x| x.exp()).collect()
    }

    /// Which factors the samples tell anything about.
    pub fn told(&self) -> Vec<bool> {
        let slopes = self.slopes();
        let doubling = std::f64::consts::LN_2;
        let most = |factor: usize| {
            let moved = slopes.iter().zip(&self.holds).filter_map(|(row, holds)| {
                let (ttft, tpot) = row[holds[factor]?];
                Some(ttft.abs().max(tpot.abs()) * doubling)
            });
            moved.fold(0.0, f64::max)
        };
        (0..self.x.len()).map(|factor| most(factor) >= TOLD).collect()
    }

    /// How the logarithms of TTFT and TPOT answer to each change, for each sample.
    fn slopes(&self) -> Vec<Vec<(f64, f64)>> {
        let of = |row: usize| {
            let changes = self.changes(row);
            let here = self.times(row, &changes);
            let moved = |place: usize| {
                let mut changes = changes;
                changes[place] += STEP;
                let there = self.times(row, &changes);
                ((there.ttft / here.ttft).ln() / STEP, (there.tpot / here.tpot).ln() / STEP)
            };
            (0..ORDER.len()).map(moved).collect()
        };
        (0..self.samples.len()).into_par_iter().map(of).collect()
    }

    /// Errors as logarithms, their scale and weight: two a sample, none where nothing was measured.
    fn errors(&self) -> Vec<[Option<(f64, f64, f64)>; 2]> {
        let of = |(times, sample): (Times, &&Sample)| {
            let ttft = sample.ttft.map(|m| ((times.ttft / m).ln(), TTFT_SCALE, TTFT_WEIGHT));
            let tpot = sample.tpot.map(|m| ((times.tpot / m).ln(), TPOT_SCALE, 1.0));
            [ttft, tpot]
        };
        self.predictions().into_iter().zip(&self.samples).map(of).collect()
    }
}

/// A residual whose square grows with the square of small errors and linearly with large ones, and its slope.
fn robust(error: f64, scale: f64) -> (f64, f64) {
    let bend = (1.0 + (error / scale).powi(2)).sqrt();
    let residual = error.signum() * scale * (2.0 * (bend - 1.0)).sqrt();
    if residual.abs() < 1e-12 { (error, 1.0) } else { (residual, error / (residual * bend)) }
}

impl LeastSquaresProblem<f64, Dyn, Dyn> for Fit<'_> {
    type ParameterStorage = Owned<f64, Dyn>;
    type ResidualStorage = Owned<f64, Dyn>;
    type JacobianStorage = Owned<f64, Dyn, Dyn>;

    fn set_params(&mut self, x: &DVector<f64>) {
        self.x.copy_from(x);
    }

    fn params(&self) -> DVector<f64> {
        self.x.clone()
    }

    fn residuals(&self) -> Option<DVector<f64>> {
        let one = |error: Option<(f64, f64, f64)>| {
            error.map_or(0.0, |(e, scale, weight)| weight * robust(e, scale).0)
        };
        let measured = self.errors().into_iter().flatten().map(one);
        let all: Vec<f64> = measured.chain(self.x.iter().map(|x| PULL * x)).collect();
        Some(DVector::from_vec(all))
    }

    fn jacobian(&self) -> Option<DMatrix<f64>> {
        let rows = 2 * self.samples.len();
        let mut matrix = DMatrix::zeros(rows + self.x.len(), self.x.len());
        for (row, (slopes, errors)) in self.slopes().iter().zip(self.errors()).enumerate() {
            for (factor, place) in self.holds[row].iter().enumerate() {
                let Some(place) = place else { continue };
                let (ttft, tpot) = slopes[*place];
                for (which, slope) in [ttft, tpot].into_iter().enumerate() {
                    if let Some((error, scale, weight)) = errors[which] {
                        matrix[(2 * row + which, factor)] = weight * robust(error, scale).1 * slope;
                    }
                }
            }
        }
        for factor in 0..self.x.len() {
            matrix[(rows + factor, factor)] = PULL;
        }
        Some(matrix)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_errors_count_linearly() {
        let (small, slope) = robust(0.01, 0.1);
        assert!((small - 0.01).abs() < 1e-4 && (slope - 1.0).abs() < 1e-2);
        let square = |error: f64| robust(error, 0.1).0.powi(2);
        assert!((square(20.0) / square(10.0) - 2.0).abs() < 0.02);
        for error in [-0.7, -0.05, 0.02, 1.3] {
            let numeric = (robust(error + 1e-6, 0.1).0 - robust(error - 1e-6, 0.1).0) / 2e-6;
            assert!((numeric - robust(error, 0.1).1).abs() < 1e-5, "{error}");
        }
    }
}
