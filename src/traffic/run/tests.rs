//! Runs of each scheduler end with all requests answered.

use super::*;
use crate::traffic::sglang::{SglangPolicy, SglangSettings};
use crate::traffic::source::{Arrivals, DrawnTraffic, LengthDistribution};
use crate::traffic::step_load::StepLoad;

fn sglang(overlap: bool, decodes_after_prefill: u32, chunk_tokens: Option<u32>) -> SchedulerSettings {
    SchedulerSettings::Sglang(SglangSettings {
        prefill_tokens: 2048,
        chunk_tokens,
        max_requests: 32,
        cache_tokens: 4000,
        page_tokens: 16,
        context_tokens: 4096,
        policy: SglangPolicy::Lpm,
        conservativeness: 0.1,
        prefix_caching: true,
        mixed_chunk: false,
        overlap,
        output_limit: Some(300),
        exact_output: false,
        prefill_requests: None,
        min_free_slots: None,
        decodes_after_prefill,
        decodes_min_requests: 0,
        delayed_passes: None,
        receive_interval: 1,
        draft: None,
    })
}

fn totals(scheduler: SchedulerSettings, arrivals: Arrivals, ranks: usize) -> (RunTotals, Vec<RequestRecord>) {
    let traffic = DrawnTraffic {
        arrivals,
        requests: 300,
        prompt: LengthDistribution::LogNormal { mean: 150.0, variation: 1.0 },
        output: LengthDistribution::LogNormal { mean: 150.0, variation: 0.5 },
        prefix: 50,
        prefix_groups: 3,
        distinct_prompts: 0,
        sessions: None,
        seed: 11,
    };
    let clock = |ranks: &[StepLoad]| {
        let tokens = |load: &StepLoad| {
            let prompts: u32 = load.prompts.iter().map(|chunk| chunk.new_tokens).sum();
            f64::from(prompts + load.decoding) * 1e-4 + load.kv_tokens as f64 * 1e-7
        };
        5e-3 + ranks.iter().map(tokens).fold(0.0, f64::max)
    };
    let mut records = vec![];
    let mut record = |one: &RequestRecord| records.push(*one);
    let settings = PoolSettings::untiered(Role::Aggregated, (1, ranks), scheduler).into();
    let totals = run(&settings, RequestSource::new(traffic), &clock, &mut record, &|| false);
    (totals, records)
}

/// Also where a loop makes up no step for a while: its requests have ended and it has not read that, or prompts are
/// put off.
#[test]
fn sglang_answers_every_request() {
    for overlap in [false, true] {
        for (deferred, chunk) in [(0, None), (0, Some(64)), (5, Some(64)), (5, None)] {
            for ranks in [1, 2] {
                for arrivals in [
                    Arrivals::Clients(1),
                    Arrivals::Clients(30),
                    Arrivals::Rate { per_s: 1.0, variation: 1.0 },
                    Arrivals::Rate { per_s: 50.0, variation: 1.0 },
                ] {
                    let (totals, records) = totals(sglang(overlap, deferred, chunk), arrivals, ranks);
                    assert_eq!(totals.answered + totals.refused, 300);
                    assert!(totals.refused < 30);
                    for one in records {
                        assert!(one.arrived_s <= one.admitted_s && one.admitted_s < one.first_token_s);
                        assert!(one.first_token_s <= one.last_token_s);
                        assert!(one.output == 1 || one.first_token_s < one.last_token_s);
                    }
                }
            }
        }
    }
}
