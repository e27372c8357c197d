//! Speculative decoding in single steps: how many of the tokens that a draft proposes a request gets.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::content::mixed;

/// A draft that proposes tokens for each step of the requests that decode.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DraftSettings {
    /// Tokens that it proposes for a step.
    pub tokens: u32,
    /// The probability that the model accepts one of them, where it accepted all before it.
    pub acceptance: f64,
}

/// Halvings after which a chance is exact.
const HALVINGS: u32 = 60;

impl DraftSettings {
    /// A draft of whose tokens the model accepts the part `share`: the chance `a` of each next one solves
    /// `a + a^2 + ... + a^tokens = tokens x share`.
    pub fn of_share(tokens: u32, share: f64) -> DraftSettings {
        let (mut low, mut high) = (0.0, 1.0);
        for _ in 0..HALVINGS {
            let acceptance = f64::midpoint(low, high);
            let is_less = DraftSettings { tokens, acceptance }.share() < share;
            (low, high) = if is_less { (acceptance, high) } else { (low, acceptance) };
        }
        let acceptance = if share <= 0.0 { 0.0 } else { high };
        DraftSettings { tokens, acceptance }
    }

    /// The part of its tokens that the model accepts.
    pub fn share(self) -> f64 {
        let accepted = (0..self.tokens).fold(0.0, |sum, _| self.acceptance * (1.0 + sum));
        accepted / f64::from(self.tokens.max(1))
    }

    /// The proposed tokens that request `id` gets in the step after its `made` tokens of output. Requests of equal number
    /// get equal ones whatever the plan and the order of steps, so that plans are compared on the same drafts.
    ///
    /// Follows the geometric law of Leviathan et al. 2023 (speculative decoding), section 3.1: the first `n` are
    /// accepted with probability `acceptance^n`.
    pub fn accepted(&self, id: u64, made: u32) -> u32 {
        if self.acceptance >= 1.0 {
            return self.tokens;
        }
        // Uniform in (0, 1): the upper 53 bits, and a half.
        let drawn = ((mixed(mixed(0, id), u64::from(made)) >> 11) as f64 + 0.5) / (1u64 << 53) as f64;
        let accepted = libm::log(drawn) / libm::log(self.acceptance);
        if accepted < f64::from(self.tokens) { accepted as u32 } else { self.tokens }
    }
}

/// Tokens that a request gets in a step: one of the model, and those of its draft, `left` at most.
pub(super) fn tokens_of_step(draft: Option<DraftSettings>, id: u64, made: u32, left: u32) -> u32 {
    draft.map_or(1, |draft| 1 + draft.accepted(id, made)).min(left.max(1))
}

/// Tokens that a step proposes for a request.
pub(super) fn proposed(draft: Option<DraftSettings>) -> u32 {
    draft.map_or(0, |draft| draft.tokens)
}

/// Places that a request may have beyond its last token: those of its last step, and of one made up before that ended.
pub(super) fn places_beyond(draft: Option<DraftSettings>) -> u32 {
    draft.map_or(0, |draft| draft.tokens.saturating_add(1).saturating_mul(2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accepted_tokens_are_geometric_up_to_the_last() {
        for (tokens, acceptance) in [(1, 0.5), (3, 0.7), (7, 0.9), (4, 0.02)] {
            let draft = DraftSettings { tokens, acceptance };
            let count = 200_000u32;
            let mut at_least = vec![0u32; tokens as usize + 1];
            for made in 0..count {
                let accepted = draft.accepted(u64::from(made % 977), made);
                at_least[..=accepted as usize].iter_mut().for_each(|times| *times += 1);
            }
            for (number, times) in at_least.iter().enumerate() {
                let (share, expected) =
                    (f64::from(*times) / f64::from(count), acceptance.powi(number as i32));
                // Five standard deviations of a share of that many draws.
                let error = 5.0 * (expected * (1.0 - expected) / f64::from(count)).sqrt();
                assert!((share - expected).abs() <= error, "{tokens} {acceptance}: {number} {share}");
            }
        }
    }

    #[test]
    fn the_chance_of_a_token_gives_the_accepted_share() {
        for (tokens, share) in [(1, 0.85), (3, 0.645), (3, 0.0), (7, 0.29), (8, 1.0), (4, 0.02)] {
            let draft = DraftSettings::of_share(tokens, share);
            assert!((draft.share() - share).abs() < 1e-12, "{tokens} {share}: {draft:?}");
            assert!(draft.acceptance >= share, "a chance under all earlier ones is no smaller: {draft:?}");
        }
    }

    #[test]
    fn a_sure_draft_gives_all_and_a_useless_one_none() {
        let of = |acceptance| DraftSettings { tokens: 5, acceptance }.accepted(3, 9);
        assert_eq!((of(1.0), of(0.0)), (5, 0));
        assert_eq!(tokens_of_step(Some(DraftSettings { tokens: 5, acceptance: 1.0 }), 3, 9, 4), 4);
        assert_eq!((tokens_of_step(None, 3, 9, 4), proposed(None)), (1, 0));
    }
}
