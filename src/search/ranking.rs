//! Ranking of offers: the cheapest feasible one, the best value, the next upgrades, and dominance.
//!
//! An offer is a few numbers here. Those that differ by rounding alone are equal, as metrics of plans are.

use super::point::cost_of;
use crate::spec::objective::Direction;

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OfferMetrics {
    /// Price in USD/s; infinite where unknown.
    pub cost: f64,
    /// Maximum concurrency within the SLOs.
    pub users: u64,
    /// Output tokens per second per user at the required number of users.
    pub tok_s_per_user: f64,
    /// Total output tokens per second at full load.
    pub output: f64,
    /// The weight format preserves the quality of the model.
    pub kept: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// On the Pareto front of cost, users, speed and quality.
    Front,
    /// Dominated by the offer of that index.
    Dominated(usize),
    /// No price is known, so the offer cannot be compared.
    Unpriced,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recommended {
    /// The cheapest offer that preserves the quality of the model.
    pub minimum: Option<usize>,
    /// The cheapest offer of all, where a lower weight format is cheaper than the minimum.
    pub cheapest: Option<usize>,
    /// Most output tokens per dollar at full load, among offers that preserve the quality of the model and cost at
    /// most ten times the minimum.
    pub value: Option<usize>,
    /// Upgrades above the minimum, cheapest first.
    pub tiers: Vec<usize>,
    /// Dominance status of each offer, in order.
    pub standing: Vec<Standing>,
}

/// Minimum factor on users of an upgrade.
const MORE_USERS: f64 = 1.5;
/// Minimum factor on speed of an upgrade.
const MORE_SPEED: f64 = 1.25;

/// Maximum cost of the best value, as a factor of the minimum.
const WITHIN: f64 = 10.0;

impl OfferMetrics {
    /// The price, without what rounding decides.
    fn price(&self) -> f64 {
        cost_of(self.cost, Direction::Minimize)
    }

    /// Its rates with the sign of a cost, without what rounding decides.
    fn rates(&self) -> [f64; 2] {
        [self.tok_s_per_user, self.output].map(|rate| cost_of(rate, Direction::Maximize))
    }

    /// Whether it is no worse in anything.
    pub fn covers(&self, other: &OfferMetrics) -> bool {
        self.price() <= other.price()
            && self.users >= other.users
            && self.rates().iter().zip(other.rates()).all(|(own, other)| *own <= other)
            && self.kept >= other.kept
    }

    /// Whether it is no worse in anything, and better in something.
    pub fn beats(&self, other: &OfferMetrics) -> bool {
        self.covers(other) && !other.covers(self)
    }
}

/// Whether `a` dominates `b`; of equal offers the first dominates.
fn dominates(offers: &[OfferMetrics], a: usize, b: usize) -> bool {
    let (x, y) = (&offers[a], &offers[b]);
    x.covers(y) && (!y.covers(x) || a < b)
}

/// Selects the recommended offers, with at most `most` upgrades.
pub fn choose(offers: &[OfferMetrics], most: usize) -> Recommended {
    let standing: Vec<Standing> = (0..offers.len()).map(|place| stand(offers, place)).collect();
    let front: Vec<usize> = (0..offers.len()).filter(|place| standing[*place] == Standing::Front).collect();
    let least = |places: &mut dyn Iterator<Item = usize>| {
        places.min_by(|a, b| offers[*a].price().total_cmp(&offers[*b].price()).then(a.cmp(b)))
    };
    let minimum = least(&mut front.iter().copied().filter(|place| offers[*place].kept));
    let cheapest = least(&mut front.iter().copied()).filter(|place| Some(*place) != minimum);
    let per_dollar =
        |place: &usize| -cost_of(offers[*place].output / offers[*place].cost, Direction::Maximize);
    let near = |place: &usize| {
        let least = minimum.map_or(f64::INFINITY, |minimum| offers[minimum].cost);
        offers[*place].kept && offers[*place].cost <= WITHIN * least
    };
    let better = |a: &usize, b: &usize| per_dollar(a).total_cmp(&per_dollar(b)).then(b.cmp(a));
    let value = front.iter().copied().filter(near).max_by(better);
    let mut tiers = Vec::new();
    if let Some(from) = minimum {
        let mut above: Vec<usize> =
            front.iter().copied().filter(|place| offers[*place].kept && *place != from).collect();
        above.sort_by(|a, b| offers[*a].price().total_cmp(&offers[*b].price()).then(a.cmp(b)));
        let mut last = offers[from];
        for place in above {
            let next = offers[place];
            let more = next.users >= last.users && next.tok_s_per_user >= last.tok_s_per_user;
            let step = next.users as f64 >= MORE_USERS * last.users as f64
                || next.tok_s_per_user >= MORE_SPEED * last.tok_s_per_user;
            if more && step && tiers.len() < most {
                tiers.push(place);
                last = next;
            }
        }
    }
    Recommended { minimum, cheapest, value, tiers, standing }
}

fn stand(offers: &[OfferMetrics], place: usize) -> Standing {
    if !offers[place].cost.is_finite() {
        return Standing::Unpriced;
    }
    let better = (0..offers.len()).filter(|other| *other != place && dominates(offers, *other, place));
    // Take the cheapest of them.
    let better = better.min_by(|a, b| offers[*a].price().total_cmp(&offers[*b].price()).then(a.cmp(b)));
    better.map_or(Standing::Front, Standing::Dominated)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offer(cost: f64, users: u64, tok_s_per_user: f64, kept: bool) -> OfferMetrics {
        OfferMetrics { cost, users, tok_s_per_user, output: users as f64 * tok_s_per_user, kept }
    }

    #[test]
    fn the_cheapest_the_best_value_and_real_steps_are_named() {
        let offers = [
            offer(2.0, 20, 50.0, true),
            offer(1.0, 20, 50.0, false),
            offer(3.0, 20, 50.0, true),
            offer(2.1, 21, 51.0, true),
            offer(4.0, 80, 60.0, true),
            offer(9.0, 81, 90.0, true),
            offer(f64::INFINITY, 500, 500.0, true),
        ];
        let choice = choose(&offers, 5);
        assert_eq!((choice.minimum, choice.cheapest, choice.value), (Some(0), Some(1), Some(4)));
        assert_eq!(choice.tiers, [4, 5], "3 is no step, 2 is dominated");
        assert_eq!(choice.standing[2], Standing::Dominated(0));
        assert_eq!(choice.standing[6], Standing::Unpriced);
        assert_eq!(choose(&offers, 1).tiers, [4]);
    }

    #[test]
    fn a_lower_format_never_dominates_one_that_keeps_quality_and_equals_keep_the_first() {
        let offers = [offer(1.0, 9, 9.0, false), offer(2.0, 9, 9.0, true), offer(2.0, 9, 9.0, true)];
        assert_eq!(choose(&offers, 3).standing, [Standing::Front, Standing::Front, Standing::Dominated(1)]);
        assert_eq!(choose(&[], 3), Recommended::default());
    }

    #[test]
    fn offers_that_differ_by_rounding_alone_are_equal() {
        let one = offer(2.0, 9, 9.0, true);
        let other = OfferMetrics { cost: 2.0 * (1.0 - 1e-14), output: 81.0 * (1.0 - 1e-14), ..one };
        assert_eq!(choose(&[one, other], 3).standing, [Standing::Front, Standing::Dominated(0)]);
        assert_eq!(choose(&[other, one], 3).minimum, Some(0));
        assert!(!one.beats(&other) && !other.beats(&one));
    }

    /// Every offer off the front is dominated by an offer on it.
    #[test]
    fn a_dominating_point_is_on_the_front_or_dominated_by_one_that_is() {
        let number = |seed: u64, most: u64| (seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40) % most + 1;
        let offers: Vec<OfferMetrics> = (0..200u64)
            .map(|k| offer(number(k, 20) as f64, number(k + 1000, 9), number(k + 2000, 7) as f64, k % 2 == 0))
            .collect();
        let choice = choose(&offers, 9);
        for (place, standing) in choice.standing.iter().enumerate() {
            if let Standing::Dominated(by) = standing {
                assert!(dominates(&offers, *by, place));
                assert!((0..offers.len()).any(
                    |front| choice.standing[front] == Standing::Front && dominates(&offers, front, place)
                ));
            }
        }
    }
}
