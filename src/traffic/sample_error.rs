//! Standard errors of figures that were found on a part of many equal replicas.
//!
//! Each replica, or group of replicas, is a cluster of requests. Figures are ratios of sums over clusters; their variance
//! is that of Cochran, Sampling Techniques, 3rd edition (1977), 2.11 and 6.4. Of a percentile it is that of the share of
//! values below it, read off the distribution: Woodruff, Journal of the American Statistical Association 47 (1952), 635.

use super::outcome::Distribution;

/// Clusters drawn without replacement.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DrawnClusters {
    /// How many there are; none where the sample is not part of a finite number.
    pub of: Option<u64>,
}

impl DrawnClusters {
    /// The part of a variance that is left, where `count` clusters are known: none of it where these are all.
    fn left(self, count: usize) -> f64 {
        self.of.map_or(1.0, |of| 1.0 - (count as f64 / of.max(1) as f64).min(1.0))
    }

    /// The error of a ratio of sums; each cluster has its part of both. `None` of less than two clusters, and of a ratio
    /// to nothing.
    pub fn ratio(self, clusters: &[[f64; 2]]) -> Option<f64> {
        let count = clusters.len() as f64;
        let (above, below) = clusters.iter().fold((0.0, 0.0), |sum, [a, b]| (sum.0 + a, sum.1 + b));
        if clusters.len() < 2 || below <= 0.0 {
            return None;
        }
        let residue = |[a, b]: &[f64; 2]| a - above / below * b;
        let squares: f64 = clusters.iter().map(|one| residue(one) * residue(one)).sum();
        let variance = self.left(clusters.len()) * count / (count - 1.0) * squares;
        Some(libm::sqrt(variance) / below)
    }

    /// The error of the mean of a value of clusters.
    pub fn mean(self, clusters: &[f64]) -> Option<f64> {
        let each: Vec<[f64; 2]> = clusters.iter().map(|value| [*value, 1.0]).collect();
        self.ratio(&each)
    }

    /// The error of the mean of all values.
    pub fn mean_of(self, clusters: &[&Distribution]) -> Option<f64> {
        let each: Vec<[f64; 2]> = clusters.iter().map(|one| [one.sum(), one.count() as f64]).collect();
        self.ratio(&each)
    }

    /// The error of the percentile `part` of all values.
    pub fn percentile(self, clusters: &[&Distribution], part: f64) -> Option<f64> {
        let mut all = Distribution::default();
        clusters.iter().for_each(|one| all.add_all(one));
        let value = all.percentile(part)?;
        let below = |one: &&Distribution| [one.at_most(value) as f64, one.count() as f64];
        let error = self.ratio(&clusters.iter().map(below).collect::<Vec<_>>())?;
        let [low, high] = [part - error, part + error].map(|part| all.percentile(part.clamp(0.0, 1.0)));
        Some((high? - low?) / 2.0)
    }
}

#[cfg(test)]
mod tests {
    use fastrand::Rng;

    use super::*;

    const ENDLESS: DrawnClusters = DrawnClusters { of: None };

    #[test]
    fn the_error_of_a_mean_is_that_of_the_textbook() {
        // Values 1 to 5: a variance of 2.5, over 5 of them.
        let values = [1.0, 2.0, 3.0, 4.0, 5.0];
        assert!((ENDLESS.mean(&values).unwrap() - libm::sqrt(0.5)).abs() < 1e-12);
        // Half of all of them are known.
        let half = DrawnClusters { of: Some(10) };
        assert!((half.mean(&values).unwrap() - 0.5).abs() < 1e-12);
        assert_eq!(DrawnClusters { of: Some(5) }.mean(&values), Some(0.0));
        assert_eq!(ENDLESS.mean(&values[..1]), None);
        assert_eq!(ENDLESS.ratio(&[[1.0, 0.0], [2.0, 0.0]]), None);
        // A ratio that is equal everywhere has no error, however unequal its clusters.
        assert_eq!(ENDLESS.ratio(&[[1.0, 2.0], [10.0, 20.0], [3.0, 6.0]]), Some(0.0));
    }

    /// Over many samples, figures are off by their stated errors, on average.
    #[test]
    fn errors_cover_the_spread_of_figures() {
        let rng = &mut Rng::with_seed(5);
        let exponential = |rng: &mut Rng| -libm::log(1.0 - rng.f64());
        let mut off = [0.0; 3];
        const SAMPLES: usize = 200;
        for _ in 0..SAMPLES {
            let clusters: Vec<Distribution> = (0..24)
                .map(|_| {
                    // The values of a cluster have its own scale in common.
                    let (mut one, scale) = (Distribution::default(), 0.8 + 0.4 * rng.f64());
                    (0..150).for_each(|_| one.add(scale * exponential(rng), 1));
                    one
                })
                .collect();
            let clusters: Vec<&Distribution> = clusters.iter().collect();
            let mut all = Distribution::default();
            clusters.iter().for_each(|one| all.add_all(one));
            let found = [all.mean(), all.percentile(0.5), all.percentile(0.9)].map(Option::unwrap);
            let errors = [
                ENDLESS.mean_of(&clusters),
                ENDLESS.percentile(&clusters, 0.5),
                ENDLESS.percentile(&clusters, 0.9),
            ];
            // Half of the values are below the second, nine tenths below the third.
            let truth = [1.0, quantile(0.5), quantile(0.9)];
            for (at, error) in errors.iter().enumerate() {
                let parts = (found[at] - truth[at]) / error.unwrap();
                off[at] += parts * parts / SAMPLES as f64;
            }
        }
        assert!(off.iter().all(|square| (0.75..1.6).contains(square)), "{off:?}");
    }

    /// The value below which `part` of exponential values of a scale uniform from 0.8 to 1.2 are.
    fn quantile(part: f64) -> f64 {
        let below = |value: f64| -> f64 {
            let shares = (0..2000).map(|step| 0.8 + 0.4 * (f64::from(step) + 0.5) / 2000.0);
            shares.map(|scale| 1.0 - libm::exp(-value / scale)).sum::<f64>() / 2000.0
        };
        let (mut low, mut high) = (0.0, 20.0);
        for _ in 0..60 {
            let middle = (low + high) / 2.0;
            if below(middle) < part { low = middle } else { high = middle }
        }
        (low + high) / 2.0
    }
}
