//! Robust least squares over measured deployments, with a zero-mean prior on each unknown.
//!
//! Contains no formulas: it only evaluates predictions and their sensitivities.

use nalgebra::{Cholesky, DMatrix, DVector};
use rayon::prelude::*;

use super::deployment::PredictedTimes;
use super::levels::CalibrationUnknown;
use super::sample::{CalibrationSample, FitStage, LogMultipliers};
use crate::spec::constant::CONSTANTS;

/// Log error above which a row has linear weight: about twice the noise in the tails of repeated runs. For TPOT.
const TPOT_SCALE: f64 = 0.1;
/// Log error of a TTFT above which a row counts less and less: means over a run include compilation and other events of
/// its start, which are ten times as long as any prompt.
const TTFT_SCALE: f64 = 0.4;
/// Weight of a TTFT residual relative to a TPOT residual.
const TTFT_WEIGHT: f64 = 0.3;
/// Noise of a row: sets the strength of the priors against one row.
const NOISE: f64 = 0.12;
/// Exponent on group size: rows of one model, device, runtime and format are correlated, so their total weight grows
/// more slowly than their number.
const ALIKE: f64 = -0.25;
/// A constant is identified by the data if doubling it changes some prediction by at least this fraction.
const IDENTIFIED: f64 = 0.01;

/// Fitted log multipliers of every unknown.
#[derive(Clone, Debug)]
pub struct FitSolution {
    pub unknowns: Vec<CalibrationUnknown>,
    /// Their values, in the same order.
    pub x: DVector<f64>,
}

/// Contribution of one sample: residual, scale at which it becomes linear, weight.
type WeightedResidual = Option<(f64, f64, f64)>;

/// The samples, and the unknowns of each.
struct FitProblem<'a> {
    samples: &'a [&'a CalibrationSample],
    stage: FitStage,
    /// Changes of each sample that do not vary.
    fixed: &'a [LogMultipliers],
    /// For each sample: the unknowns that apply to it and affect it, and the constant that each changes.
    holds: Vec<Vec<(usize, usize)>>,
    weights: Vec<f64>,
    unknowns: &'a [CalibrationUnknown],
}

/// The unknowns that apply to `sample`, and the constant that each changes.
fn unknowns_by_sample(unknowns: &[CalibrationUnknown], sample: &CalibrationSample) -> Vec<(usize, usize)> {
    let of = |(at, unknown): (usize, &CalibrationUnknown)| {
        unknown.holds(sample).then_some((at, unknown.factor.of as usize))
    };
    unknowns.iter().enumerate().filter_map(of).collect()
}

fn changes(holds: &[(usize, usize)], x: &DVector<f64>, fixed: &LogMultipliers) -> LogMultipliers {
    let mut changes = *fixed;
    for (unknown, place) in holds {
        changes[*place] += x[*unknown];
    }
    changes
}

/// No change of any constant.
pub const UNCHANGED: LogMultipliers = [0.0; CONSTANTS.len()];

impl FitSolution {
    /// The changes of all constants for `sample`.
    pub fn changes(&self, sample: &CalibrationSample) -> LogMultipliers {
        changes(&unknowns_by_sample(&self.unknowns, sample), &self.x, &UNCHANGED)
    }

    /// Predictions of a stage.
    pub fn predict(&self, stage: FitStage, samples: &[&CalibrationSample]) -> Vec<PredictedTimes> {
        samples.par_iter().map(|sample| sample.times(stage, &self.changes(sample))).collect()
    }

    /// All changes zero.
    pub fn nothing(unknowns: Vec<CalibrationUnknown>) -> FitSolution {
        FitSolution { x: DVector::zeros(unknowns.len()), unknowns }
    }

    /// Fits the changes to `samples`, starting from these, until a step reduces the squared error by a fraction of at
    /// most `gain`. `fixed` are changes of each sample that other unknowns have made.
    #[must_use]
    pub fn solve(
        self,
        stage: FitStage,
        (samples, fixed): (&[&CalibrationSample], &[LogMultipliers]),
        gain: f64,
    ) -> FitSolution {
        // A dense model has no expert constants, a single device no collective constants, at any value of the others.
        let bearing = |(sample, fixed): (&&CalibrationSample, &LogMultipliers)| {
            let slopes = sample.slopes(stage, fixed, sample.times(stage, fixed), &[true; CONSTANTS.len()]);
            let mut holds = unknowns_by_sample(&self.unknowns, sample);
            holds.retain(|(_, place)| slopes[*place] != (0.0, 0.0));
            holds
        };
        let fit = FitProblem {
            holds: samples.par_iter().zip(fixed).map(bearing).collect(),
            weights: weights(samples),
            samples,
            stage,
            fixed,
            unknowns: &self.unknowns,
        };
        let x = fit.minimum(self.x, gain);
        FitSolution { x, unknowns: self.unknowns }
    }
}

/// The constants that `samples` identify.
pub fn determined(stage: FitStage, samples: &[&CalibrationSample]) -> [bool; CONSTANTS.len()] {
    let of = |sample: &&CalibrationSample| {
        let here = sample.times(stage, &UNCHANGED);
        let slopes = sample.slopes(stage, &UNCHANGED, here, &[true; CONSTANTS.len()]);
        slopes.map(|(ttft, tpot)| ttft.abs().max(tpot.abs()) * std::f64::consts::LN_2 >= IDENTIFIED)
    };
    let either =
        |a: [bool; CONSTANTS.len()], b: [bool; CONSTANTS.len()]| std::array::from_fn(|at| a[at] || b[at]);
    samples.par_iter().map(of).reduce(|| [false; CONSTANTS.len()], either)
}

fn weights(samples: &[&CalibrationSample]) -> Vec<f64> {
    let like = |a: &CalibrationSample, b: &CalibrationSample| {
        (&a.model, &a.hardware, &a.runtime, &a.weight_format)
            == (&b.model, &b.hardware, &b.runtime, &b.weight_format)
    };
    let counts = samples.iter().map(|a| samples.iter().filter(|b| like(a, b)).count() as f64);
    let counts: Vec<f64> = counts.collect();
    let mean = counts.iter().sum::<f64>() / counts.len().max(1) as f64;
    counts.iter().map(|count| libm::pow(count / mean, ALIKE / 2.0)).collect()
}

/// A residual whose square grows with the logarithm for large errors (Cauchy), so that outliers have no pull, and its
/// slope.
fn bounded(error: f64, scale: f64) -> (f64, f64) {
    let square = (error / scale).powi(2);
    let residual = error.signum() * scale * libm::log1p(square).sqrt();
    if residual.abs() < 1e-12 { (error, 1.0) } else { (residual, error / (residual * (1.0 + square))) }
}

/// A residual whose square grows quadratically for small errors and linearly for large ones, and its slope.
fn robust(error: f64, scale: f64) -> (f64, f64) {
    let bend = (1.0 + (error / scale).powi(2)).sqrt();
    let residual = error.signum() * scale * (2.0 * (bend - 1.0)).sqrt();
    if residual.abs() < 1e-12 { (error, 1.0) } else { (residual, error / (residual * bend)) }
}

fn errors(stage: FitStage, sample: &CalibrationSample, times: PredictedTimes) -> [WeightedResidual; 2] {
    let ttft = sample.ttft.filter(|_| sample.has_ttft_of_steps() || stage == FitStage::Waits);
    let ttft = ttft.map(|measured| (libm::log(times.ttft / measured), TTFT_SCALE, TTFT_WEIGHT));
    let tpot = sample.tpot.map(|measured| (libm::log(times.tpot / measured), TPOT_SCALE, 1.0));
    [ttft, tpot]
}

/// Sum of squared residuals, gradient, and lower triangle of the normal matrix.
struct NormalEquations {
    square: f64,
    gradient: DVector<f64>,
    matrix: DMatrix<f64>,
}

impl NormalEquations {
    fn new(size: usize) -> NormalEquations {
        NormalEquations { square: 0.0, gradient: DVector::zeros(size), matrix: DMatrix::zeros(size, size) }
    }

    /// The step to the least squares of the linear problem, its diagonal larger by `damping`.
    fn step(&self, damping: f64) -> DVector<f64> {
        let mut damped = self.matrix.clone();
        for at in 0..damped.nrows() {
            damped[(at, at)] *= 1.0 + damping;
        }
        let factors = Cholesky::new(damped).expect("every unknown has a prior");
        -factors.solve(&self.gradient)
    }

    /// Adds a row; `slopes` are in ascending order.
    fn add(&mut self, residual: f64, slopes: &[(usize, f64)]) {
        self.square += residual * residual;
        for (number, (at, slope)) in slopes.iter().enumerate() {
            self.gradient[*at] += residual * slope;
            let mut column = self.matrix.column_mut(*at);
            for (below, slope_there) in &slopes[number..] {
                column[*below] += slope * slope_there;
            }
        }
    }
}

/// Factors on the damping after a step that helps, and after one that does not; and its first value.
const DAMPING: f64 = 1e-4;
const LESS: f64 = 0.2;
const MORE: f64 = 10.0;
/// A step damped more than this is none.
const MOST_DAMPING: f64 = 1e8;
/// Steps at most: each at least reduces the error by the smallest gain.
const STEPS: usize = 200;

impl FitProblem<'_> {
    /// The normal equations at `x`.
    fn at(&self, x: &DVector<f64>) -> NormalEquations {
        let rows: Vec<_> = (0..self.samples.len())
            .into_par_iter()
            .map(|row| {
                let (sample, holds) = (self.samples[row], &self.holds[row]);
                let changes = changes(holds, x, &self.fixed[row]);
                let here = sample.times(self.stage, &changes);
                let mut selected = [false; CONSTANTS.len()];
                holds.iter().for_each(|(_, place)| selected[*place] = true);
                (errors(self.stage, sample, here), sample.slopes(self.stage, &changes, here, &selected))
            })
            .collect();
        let mut normal = NormalEquations::new(x.len());
        for (row, (errors, slopes)) in rows.into_iter().enumerate() {
            for (which, error) in errors.into_iter().enumerate() {
                let Some((error, scale, weight)) = error else { continue };
                let (residual, bend) = [bounded, robust][which](error, scale);
                let weight = weight * self.weights[row];
                let slope = |place: usize| [slopes[place].0, slopes[place].1][which];
                let held: Vec<(usize, f64)> =
                    self.holds[row].iter().map(|(at, place)| (*at, weight * bend * slope(*place))).collect();
                normal.add(weight * residual, &held);
            }
        }
        for (at, unknown) in self.unknowns.iter().enumerate() {
            let pull = NOISE / unknown.spread;
            normal.add(pull * x[at], &[(at, pull)]);
        }
        normal
    }

    /// The `x` of the least squares, from this one (Levenberg 1944, Marquardt 1963), until a step reduces the squared
    /// error by a fraction of at most `gain`.
    fn minimum(&self, mut x: DVector<f64>, gain: f64) -> DVector<f64> {
        let (mut here, mut damping) = (self.at(&x), DAMPING);
        for _ in 0..STEPS {
            let next = &x + here.step(damping);
            let there = self.at(&next);
            // Where it is no number, it is not better.
            let better = there.square < here.square;
            if !better {
                damping *= MORE;
                if damping > MOST_DAMPING {
                    break;
                }
                continue;
            }
            let gained = 1.0 - there.square / here.square;
            (x, here, damping) = (next, there, damping * LESS);
            if gained <= gain {
                break;
            }
        }
        x
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outliers_have_no_pull() {
        let pull = |error: f64| {
            let (residual, slope) = bounded(error, 0.4);
            residual * slope
        };
        assert!(pull(0.4) > pull(2.4) && pull(2.4) > pull(20.0) && pull(200.0) < 1e-3);
        for error in [-0.7, -0.05, 0.02, 1.3] {
            let numeric = (bounded(error + 1e-6, 0.4).0 - bounded(error - 1e-6, 0.4).0) / 2e-6;
            assert!((numeric - bounded(error, 0.4).1).abs() < 1e-5, "{error}");
        }
    }

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
