//! Draws of random questions.

/// Number of cases: `usual`, or that of `PROPTEST_CASES`.
pub fn cases(usual: u64) -> u64 {
    std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(usual)
}

/// A number of any size between two.
pub fn between(random: &mut fastrand::Rng, low: f64, high: f64) -> f64 {
    low * libm::pow(high / low, random.f64())
}

/// One of several names.
pub fn name(random: &mut fastrand::Rng, names: &[&str]) -> Option<String> {
    random.choice(names).map(|name| (*name).to_string())
}
