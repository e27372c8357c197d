//! Equal steps at once are the same as one by one.

use fastrand::Rng;

use super::*;
use crate::traffic::content::TokenRun;

fn random_settings(rng: &mut Rng) -> SglangSettings {
    let page_tokens = [1, 1, 8, 16][rng.usize(0..4)];
    SglangSettings {
        prefill_tokens: 4096,
        chunk_tokens: [None, Some(64), Some(512)][rng.usize(0..3)],
        max_requests: rng.u32(2..20),
        cache_tokens: rng.u32(500..3000),
        page_tokens,
        context_tokens: 4096,
        policy: if rng.bool() { SglangPolicy::Fcfs } else { SglangPolicy::Lpm },
        conservativeness: [0.0, 0.3, 1.0][rng.usize(0..3)],
        prefix_caching: rng.u32(0..5) > 0,
        mixed_chunk: rng.bool(),
        overlap: rng.bool(),
        output_limit: if rng.bool() { Some(rng.u32(1..300)) } else { None },
        exact_output: rng.u32(0..4) == 0,
        prefill_requests: None,
        min_free_slots: None,
        decodes_after_prefill: if rng.u32(0..4) == 0 { 3 } else { 0 },
        decodes_min_requests: rng.u32(0..3),
        delayed_passes: None,
        receive_interval: [1, 1, 1, 7][rng.usize(0..4)],
        draft: None,
    }
}

fn random_request(rng: &mut Rng, id: u64) -> EngineRequest {
    let run = |id, tokens| TokenRun { id, tokens };
    let (shared, own, output) = (rng.u32(0..100), rng.u32(1..100), rng.u32(1..200));
    let runs = vec![run(rng.u64(0..3), shared), run(10 + id, own), run(1_000_000 + id, output)];
    EngineRequest::new(id, runs, shared + own, output)
}

/// A step: what is noted, and the batch.
fn step(engine: &mut SglangEngine, events: &mut Vec<(u64, EngineEvent)>) -> Vec<(u64, u32)> {
    engine.choose(&mut |id, event| events.push((id, event)));
    engine.settle();
    engine.batch()
}

fn complete(engine: &mut SglangEngine, steps: u32, events: &mut Vec<(u64, EngineEvent)>) {
    if !engine.load().is_empty() {
        engine.complete(steps, &mut |id, event| events.push((id, event)));
    }
}

fn state(engine: &SglangEngine) -> (u64, u64, (usize, usize), u64, u32, bool) {
    let ratio = engine.new_token_ratio().to_bits();
    (engine.cache_used(), engine.evictable(), engine.queued(), ratio, engine.deferred, engine.full)
}

/// Runs a case with several equal steps at a time, next to the same one step by step. Returns the steps and the
/// leaps.
fn run_both(seed: u64) -> (u32, u32) {
    let rng = &mut Rng::with_seed(seed);
    let settings = random_settings(rng);
    let (mut leaping, mut walking) = (SglangEngine::new(settings.clone()), SglangEngine::new(settings));
    let (mut heard, mut expected) = (vec![], vec![]);
    let (mut steps, mut leaps, mut coming) = (0, 0, 0..rng.u64(5..40));
    loop {
        while rng.u32(0..3) == 0 {
            let Some(id) = coming.next() else { break };
            let request = random_request(rng, id);
            if leaping.can_ever_hold(&request) {
                leaping.submit(request.clone());
                walking.submit(request);
            }
        }
        if leaping.is_idle() && coming.is_empty() {
            break;
        }
        let batch = step(&mut leaping, &mut heard);
        let most = leaping.equal_steps();
        let equal = if rng.bool() { most } else { rng.u32(1..=most) };
        complete(&mut leaping, equal, &mut heard);
        for _ in 0..equal {
            assert_eq!(step(&mut walking, &mut expected), batch, "case {seed}, step {steps}");
            complete(&mut walking, 1, &mut expected);
            steps += 1;
        }
        leaps += 1;
        assert_eq!(heard, expected, "case {seed}, step {steps}");
        assert_eq!(state(&leaping), state(&walking), "case {seed}, step {steps}");
        assert!(steps < 100_000, "case {seed} does not end");
    }
    assert_eq!(leaping.free + leaping.tree.evictable(), leaping.settings.cache_tokens);
    (steps, leaps)
}

#[test]
fn several_equal_steps_at_a_time_are_the_same_as_one_by_one() {
    let counts = (0..400).map(run_both);
    let (steps, leaps) = counts.fold((0, 0), |(all, of), (steps, leaps)| (all + steps, of + leaps));
    assert!(steps > 3 * leaps, "{steps} steps in {leaps}");
}
