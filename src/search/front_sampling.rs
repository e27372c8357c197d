//! Limits on the disaggregated deployments that the Pareto front lists. The optimum considers all of them.

/// Limits on the front.
#[derive(Clone, Copy, Debug)]
pub struct FrontSampling {
    /// Up to this concurrency per attention rank every load is listed; above it, geometric steps of one part in this
    /// number.
    pub every_load_up_to: u64,
    /// Maximum number of decode workers of a listed deployment.
    pub decode_workers: u64,
    /// On more devices than this, every worker lies inside a domain.
    pub across_domains_up_to: u64,
    /// On more devices than this, worker sizes divide a domain or are whole domains.
    pub any_size_up_to: u64,
}

impl Default for FrontSampling {
    fn default() -> FrontSampling {
        FrontSampling {
            every_load_up_to: 32,
            decode_workers: 4,
            across_domains_up_to: 128,
            any_size_up_to: 16,
        }
    }
}
