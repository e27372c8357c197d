//! A cache without limits: how many tokens of each prompt it would have held.

use super::engine::EngineRequest;
use super::number_map::NumberMap;

/// Runs of tokens that came in this place: after these runs before it, of which the last ended here.
#[derive(Clone, Copy, Debug)]
struct SeenRun {
    /// Its number, from 1.
    number: usize,
    /// Its tokens, in the request that had most of them.
    longest: u32,
}

/// All requests of a run, as a tree of their runs of tokens.
#[derive(Clone, Debug, Default)]
pub struct UnlimitedCache {
    /// By the number of the run before, the tokens of that one, and the identity of this one.
    seen: NumberMap<(usize, u32, u64), SeenRun>,
}

impl UnlimitedCache {
    /// Tokens of the prompt that earlier requests had computed, in whole blocks of `block_tokens`; the request is one of
    /// those from now on. The last token of a prompt is computed in any case, and that of an output never.
    pub fn found(&mut self, request: &EngineRequest, block_tokens: u32) -> u32 {
        let mut left = request.prompt.saturating_add(request.output.saturating_sub(1));
        let (mut shared, mut equal) = (0, true);
        let (mut number, mut cut) = (0, 0);
        let mut start = 0u32;
        for run in &request.runs {
            if start >= request.shared {
                // No other request begins with the rest.
                break;
            }
            start = start.saturating_add(run.tokens);
            let tokens = run.tokens.min(left);
            if tokens == 0 {
                continue;
            }
            left -= tokens;
            let next = SeenRun { number: self.seen.len() + 1, longest: 0 };
            let seen = self.seen.entry((number, cut, run.id)).or_insert(next);
            if equal {
                let common = tokens.min(seen.longest);
                shared += common;
                equal = common == tokens;
            }
            seen.longest = seen.longest.max(tokens);
            (number, cut) = (seen.number, tokens);
        }
        let block = block_tokens.max(1);
        shared.min(request.prompt.saturating_sub(1)) / block * block
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::traffic::content::TokenRun;

    fn request(runs: &[(u64, u32)], output: u32) -> EngineRequest {
        let runs: Vec<_> = runs.iter().map(|&(id, tokens)| TokenRun { id, tokens }).collect();
        let all: u32 = runs.iter().map(|run| run.tokens).sum();
        EngineRequest::new(0, runs, all - output, output)
    }

    #[test]
    fn a_prompt_is_found_as_far_as_an_earlier_one_is_equal() {
        let mut cache = UnlimitedCache::default();
        let mut found = |runs: &[(u64, u32)], output| cache.found(&request(runs, output), 1);
        assert_eq!(found(&[(1, 40), (2, 20)], 20), 0);
        // The next turn has the answer, but for its last token, which no step computed.
        assert_eq!(found(&[(1, 40), (2, 20), (3, 10), (4, 5)], 5), 59);
        // The same again: all but the last token of the prompt.
        assert_eq!(found(&[(1, 40), (2, 20), (3, 10), (9, 5)], 5), 69);
        // A run that ends earlier, and one that goes on.
        assert_eq!(found(&[(1, 30), (2, 20), (9, 1)], 1), 30);
        assert_eq!(found(&[(1, 50), (9, 1)], 1), 40);
        // The same tokens after others are not the same.
        assert_eq!(found(&[(2, 20), (1, 40), (9, 1)], 1), 0);
    }

    #[test]
    fn whole_blocks_count() {
        let mut cache = UnlimitedCache::default();
        assert_eq!(cache.found(&request(&[(1, 40), (2, 8)], 8), 16), 0);
        assert_eq!(cache.found(&request(&[(1, 40), (2, 8), (3, 9), (4, 2)], 2), 16), 32);
        assert_eq!(cache.found(&request(&[(1, 48), (4, 2)], 2), 16), 32);
    }
}
