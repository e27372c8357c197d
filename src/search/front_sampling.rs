//! Limits on the deployments that the Pareto front lists. The optimum considers all of them.

#[derive(Clone, Copy, Debug)]
pub struct FrontSampling {
    /// Up to twice this concurrency per attention rank every load is listed; above it, geometric steps of one part in
    /// this number.
    pub load_steps: u64,
    /// Up to twice this number of equal instances every number is listed; above it, geometric steps of one part in this
    /// number. So that the front does not grow with the system, but only with its logarithm.
    pub count_steps: u64,
    /// Maximum number of decode workers of a listed deployment: every number on few devices. Above them a bound keeps
    /// the front from growing with the system; the optimum is not bound by it.
    pub decode_workers: u64,
    /// On more devices than this, every worker lies inside a domain.
    pub across_domains_up_to: u64,
    /// On more devices than this, worker sizes divide a domain or are whole domains.
    pub any_size_up_to: u64,
}

impl FrontSampling {
    /// The limits for a system of `devices` devices: the more plans, the coarser the steps between loads.
    pub fn of(devices: u64) -> FrontSampling {
        let any_size_up_to = 16;
        let few = devices <= any_size_up_to;
        FrontSampling {
            load_steps: if few { 16 } else { 8 },
            count_steps: 32,
            decode_workers: if few { devices } else { 8 },
            across_domains_up_to: 128,
            any_size_up_to,
        }
    }
}

/// The numbers from one to `most`: every one at first, then geometric steps of one part in `every`, and the last.
/// Empty if `most` is 0.
pub fn sampled(most: u64, every: u64) -> impl Iterator<Item = u64> + Clone {
    let next = move |&number: &u64| Some(number + (number / every).max(1));
    let below = std::iter::successors(Some(1), next).take_while(move |&number| number < most);
    below.chain((most > 0).then_some(most))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(most: u64) -> Vec<u64> {
        sampled(most, 32).collect()
    }

    #[test]
    fn numbers_are_every_one_at_first_and_end_at_the_last() {
        assert!(numbers(0).is_empty());
        assert_eq!(numbers(1), [1]);
        assert_eq!(numbers(3), [1, 2, 3]);
        let many = numbers(1000);
        assert_eq!(many[..64], (1..=64).collect::<Vec<_>>());
        assert_eq!(many.last(), Some(&1000));
        assert!(many.windows(2).all(|pair| pair[1] - pair[0] <= pair[0].div_ceil(32).max(1)));
    }
}
