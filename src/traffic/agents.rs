//! Sessions of agents in progress, with stated means and published spreads around them.

use fastrand::Rng;

use super::content::{TokenRun, mixed};
use super::session::{Session, SessionTurn, TurnLink};
use super::source::log_normal;

/// A log-normal quantity.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MeanAndVariation {
    pub mean: f64,
    /// Its coefficient of variation.
    pub variation: f64,
}

impl MeanAndVariation {
    /// The log-normal quantity of this mean and median; equal values where the median is not below the mean.
    pub fn of_median(mean: f64, median: f64) -> MeanAndVariation {
        let ratio = (mean / median).max(1.0);
        MeanAndVariation { mean, variation: libm::sqrt(ratio * ratio - 1.0) }
    }

    /// The log-normal quantity of this mean whose quarters end at these values, or at equal multiples of them.
    pub fn of_quartiles(mean: f64, [first, third]: [f64; 2]) -> MeanAndVariation {
        // A normal quantity has its third quartile 0.6745 standard deviations above its mean.
        let spread = libm::log(third / first) / (2.0 * 0.674_489_75);
        MeanAndVariation { mean, variation: libm::sqrt(libm::exp(spread * spread) - 1.0) }
    }

    fn draw(self, rng: &mut Rng) -> f64 {
        if self.variation == 0.0 || self.mean == 0.0 {
            return self.mean;
        }
        log_normal(rng, self.mean, self.variation)
    }
}

/// Agents with a session each: a prompt is all that came before it in its session, and new tokens.
#[derive(Clone, Debug, PartialEq)]
pub struct AgentTraffic {
    /// Mean tokens of a prompt.
    pub prompt: f64,
    /// Coefficient of variation of the tokens with which sessions end.
    pub sizes_variation: f64,
    /// Tokens with which a session ends, at most.
    pub longest: f64,
    /// Tokens of a prompt that no earlier one of its session had.
    pub new_tokens: MeanAndVariation,
    pub output: MeanAndVariation,
    /// Seconds from an answer to the next turn.
    pub think_s: MeanAndVariation,
}

/// The agents of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AgentPlay {
    /// Agents.
    pub clients: u64,
    /// The parts of its first session at which an agent begins, at least and at most.
    pub begins: [f64; 2],
    /// Requests of one token, without a pause, with which each agent begins.
    pub warm_up: usize,
    /// Seconds for which the sessions are to suffice.
    pub lasts_s: f64,
    pub seed: u64,
}

/// An answer and a pause take no less.
const LEAST_CYCLE_S: f64 = 1.0;

impl AgentTraffic {
    /// Sessions for all agents: the first of each is in progress.
    ///
    /// One that a moment finds in progress is as much likelier as it is longer, so that prompts have their mean from the
    /// start: half of the mean size of those.
    pub fn sessions(&self, play: &AgentPlay) -> Vec<Session> {
        let longer = 1.0 + self.sizes_variation * self.sizes_variation;
        let size = MeanAndVariation { mean: 2.0 * self.prompt / longer, variation: self.sizes_variation };
        let met = MeanAndVariation { mean: size.mean * longer, ..size };
        let mut sessions = Vec::new();
        for number in 0..play.clients {
            sessions.push(self.in_progress(play, number, met));
        }
        let cycles = play.lasts_s / self.think_s.mean.max(LEAST_CYCLE_S);
        let (wanted, mut turns) = (play.clients as f64 * cycles, 0.0);
        while turns < wanted {
            let number = sessions.len() as u64;
            let rng = &mut Rng::with_seed(mixed(play.seed, number));
            let ends = size.draw(rng);
            let prompts = self.prompts(rng, ends, 1);
            turns += prompts.len() as f64;
            sessions.push(self.session(rng, number, &prompts, 0));
        }
        sessions
    }

    fn in_progress(&self, play: &AgentPlay, number: u64, size: MeanAndVariation) -> Session {
        let rng = &mut Rng::with_seed(mixed(play.seed, number));
        let ends = size.draw(rng);
        let prompts = self.prompts(rng, ends, play.warm_up + 1);
        let [least, most] = play.begins;
        let begins = (least + (most - least) * rng.f64()) * prompts.len() as f64;
        let first = (begins as usize).min(prompts.len() - play.warm_up - 1);
        self.session(rng, number, &prompts[first..], play.warm_up)
    }

    /// The prompts of a session that ends with `size` tokens; `least` of them where it has fewer.
    fn prompts(&self, rng: &mut Rng, size: f64, least: usize) -> Vec<u32> {
        let size = size.min(self.longest);
        let (mut held, mut prompts) = (0.0, vec![]);
        while held < size || prompts.len() < least {
            let more = self.new_tokens.draw(rng).max(1.0);
            held = (held + more).min(size.max(held + 1.0));
            prompts.push(held.round().max(1.0) as u32);
        }
        prompts
    }

    fn session(&self, rng: &mut Rng, number: u64, prompts: &[u32], warm_up: usize) -> Session {
        let turn = |(at, &tokens): (usize, &u32)| {
            let (output, wait_s) = (self.output.draw(rng), self.think_s.draw(rng));
            let is_warm_up = at < warm_up;
            let after = at.checked_sub(1).map(|turn| TurnLink {
                turn,
                of_sending: false,
                wait_s: if is_warm_up { 0.0 } else { wait_s },
            });
            let output = if is_warm_up { 1 } else { output.round().max(1.0) as u32 };
            SessionTurn {
                new: vec![TokenRun { id: mixed(14, number), tokens }],
                continues: false,
                output: TokenRun { id: mixed(mixed(15, number), at as u64), tokens: output },
                after: after.into_iter().collect(),
                start_s: 0.0,
            }
        };
        Session { start_s: 0.0, turns: prompts.iter().enumerate().map(turn).collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAY: AgentPlay =
        AgentPlay { clients: 400, begins: [0.25, 0.75], warm_up: 11, lasts_s: 3600.0, seed: 3 };

    fn traffic() -> AgentTraffic {
        AgentTraffic {
            prompt: 100_000.0,
            sizes_variation: 0.9,
            longest: 1e9,
            new_tokens: MeanAndVariation::of_median(2_000.0, 857.0),
            output: MeanAndVariation::of_median(1_000.0, 365.0),
            think_s: MeanAndVariation::of_quartiles(10.0, [0.69, 8.6]),
        }
    }

    fn prompts(session: &Session) -> impl Iterator<Item = f64> {
        session.turns.iter().map(|turn| f64::from(turn.new[0].tokens))
    }

    #[test]
    fn prompts_outputs_and_waits_have_their_means() {
        let sessions = traffic().sessions(&PLAY);
        let later = &sessions[PLAY.clients as usize..];
        let turns = || later.iter().flat_map(|session| &session.turns);
        let count = turns().count() as f64;
        assert!(count >= 400.0 * 360.0, "{count}");
        let near = |found: f64, stated: f64| assert!((found / stated - 1.0).abs() < 0.08, "{found} {stated}");
        near(later.iter().flat_map(prompts).sum::<f64>() / count, 100_000.0);
        near(turns().map(|turn| f64::from(turn.output.tokens)).sum::<f64>() / count, 1_000.0);
        let ends: f64 = later.iter().filter_map(|session| prompts(session).last()).sum();
        near(ends / count, 2_000.0);
        let waits = || turns().flat_map(|turn| &turn.after).map(|link| link.wait_s);
        near(waits().sum::<f64>() / waits().count() as f64, 10.0);
    }

    /// Half of the new parts are no longer than the published median.
    #[test]
    fn a_spread_has_its_median() {
        let spread = MeanAndVariation::of_median(4_000.0, 857.0);
        let rng = &mut Rng::with_seed(1);
        let below = (0..10_000).filter(|_| spread.draw(rng) < 857.0).count();
        assert!((4_800..5_200).contains(&below), "{below}");
        assert_eq!(MeanAndVariation::of_median(500.0, 857.0).variation, 0.0);
    }

    #[test]
    fn agents_begin_within_their_sessions_with_short_requests() {
        let sessions = traffic().sessions(&PLAY);
        let first = &sessions[..PLAY.clients as usize];
        let begun: f64 = first.iter().filter_map(|session| prompts(session).next()).sum();
        // Between a quarter and three quarters of what a moment finds, which is twice the mean prompt.
        let mean = begun / PLAY.clients as f64;
        assert!((80_000.0..120_000.0).contains(&mean), "{mean}");
        for session in first {
            assert!(session.turns.len() > PLAY.warm_up);
            let warm_up = &session.turns[..PLAY.warm_up];
            assert!(warm_up.iter().all(|turn| turn.output.tokens == 1));
            assert!(warm_up.iter().flat_map(|turn| &turn.after).all(|link| link.wait_s == 0.0));
        }
        assert_eq!(sessions, traffic().sessions(&PLAY));
    }
}
