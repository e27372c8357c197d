//! The totals of several runs at the same time, as those of one.

use super::outcome::{RunTimeline, TimelinePoint};
use super::replica_use::PoolUse;
use super::run::RunTotals;
use super::source::SessionCounts;

/// Times at which the timelines of several runs are added up.
const POINTS: usize = 200;

impl RunTotals {
    /// The totals of replicas that were run on their own.
    pub fn of_runs(runs: &[RunTotals]) -> RunTotals {
        let mut all = runs.iter().fold(RunTotals::default(), RunTotals::with);
        all.timeline = timeline_of(&runs.iter().map(|run| &run.timeline).collect::<Vec<_>>());
        all
    }

    /// These and those of another run, without its timeline.
    fn with(mut self, other: &RunTotals) -> RunTotals {
        // All fields by name, so that the compiler names one that is missing.
        let RunTotals {
            answered,
            refused,
            aborted,
            failed,
            unanswered,
            faults,
            lost,
            wasted,
            lasted_s,
            replica_seconds,
            preemptions,
            steps,
            end_s,
            request_seconds,
            generated,
            decoded,
            accepted,
            computed_prompt_tokens,
            prompt_tokens,
            cached_tokens,
            reusable_tokens,
            output_tokens,
            tiers,
            sessions: SessionCounts { started, cut, given_up },
            uses,
            itl,
            timeline: _,
        } = other;
        self.answered += answered;
        self.refused += refused;
        self.aborted += aborted;
        self.failed += failed;
        self.unanswered.extend(unanswered);
        self.faults += faults;
        self.lost += lost;
        self.wasted += wasted;
        self.lasted_s = self.lasted_s.max(*lasted_s);
        self.replica_seconds += replica_seconds;
        self.preemptions += preemptions;
        self.steps += steps;
        self.end_s = self.end_s.max(*end_s);
        self.request_seconds += request_seconds;
        self.generated += generated;
        self.decoded += decoded;
        self.accepted += accepted;
        self.computed_prompt_tokens += computed_prompt_tokens;
        self.prompt_tokens += prompt_tokens;
        self.cached_tokens += cached_tokens;
        self.reusable_tokens += reusable_tokens;
        self.output_tokens += output_tokens;
        self.tiers.with(tiers);
        self.sessions.started += started;
        self.sessions.cut += cut;
        self.sessions.given_up += given_up;
        self.uses.resize(self.uses.len().max(uses.len()), PoolUse::default());
        self.uses.iter_mut().zip(uses).for_each(|(all, one)| all.with(one));
        self.itl.add_all(itl);
        self
    }
}

/// The sum of timelines: requests and tokens of all, the mean share of the caches. A run has nothing to do after its last
/// point.
fn timeline_of(all: &[&RunTimeline]) -> RunTimeline {
    let ends = all.iter().filter_map(|one| one.points().last());
    let end_s = ends.map(|last| last.time_s).fold(0.0, f64::max);
    let mut sum = RunTimeline::default();
    if end_s <= 0.0 {
        return sum;
    }
    for step in 1..=POINTS {
        let time_s = end_s * step as f64 / POINTS as f64;
        let states: Vec<TimelinePoint> = all.iter().filter_map(|one| state_at(one, time_s)).collect();
        let total = |of: fn(&TimelinePoint) -> u64| states.iter().map(of).sum();
        sum.add(TimelinePoint {
            time_s,
            running: total(|one| one.running),
            waiting: total(|one| one.waiting),
            kv_used: states.iter().map(|one| one.kv_used).sum::<f64>() / all.len() as f64,
            output_tokens: total(|one| one.output_tokens),
            replicas: None,
        });
    }
    sum
}

/// The state of a run at a time; none before its first point.
fn state_at(run: &RunTimeline, time_s: f64) -> Option<TimelinePoint> {
    let points = run.points();
    let known = points.partition_point(|point| point.time_s <= time_s);
    let last = *points.get(known.checked_sub(1)?)?;
    let is_over = known == points.len() && time_s > last.time_s;
    Some(if is_over { TimelinePoint { running: 0, waiting: 0, ..last } } else { last })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(time_s: f64, running: u64, output_tokens: u64) -> TimelinePoint {
        TimelinePoint { time_s, running, waiting: 1, kv_used: 0.5, output_tokens, replicas: None }
    }

    #[test]
    fn timelines_are_added_up() {
        let [mut one, mut other] = [RunTimeline::default(), RunTimeline::default()];
        [point(0.0, 1, 0), point(4.0, 3, 40)].into_iter().for_each(|point| one.add(point));
        [point(0.0, 2, 0), point(2.0, 5, 10)].into_iter().for_each(|point| other.add(point));
        let sum = timeline_of(&[&one, &other]);
        let at = |time_s: f64| sum.points().iter().find(|point| point.time_s >= time_s - 1e-9).unwrap();
        assert_eq!((at(1.0).running, at(1.0).output_tokens), (3, 0));
        // The second run ends at 2 s, and keeps what it gave.
        assert_eq!((at(3.0).running, at(3.0).waiting, at(3.0).output_tokens), (1, 1, 10));
        assert_eq!((at(4.0).running, at(4.0).output_tokens), (3, 50));
        assert!(timeline_of(&[]).points().is_empty());
    }

    #[test]
    fn totals_of_runs_are_their_sums() {
        let mut one = RunTotals { answered: 3, end_s: 2.0, ..RunTotals::default() };
        one.itl.add(0.5, 4);
        let other = RunTotals { answered: 4, end_s: 5.0, unanswered: vec![9], ..one.clone() };
        let sum = RunTotals::of_runs(&[one, other]);
        assert_eq!((sum.answered, sum.end_s, sum.itl.count()), (7, 5.0, 8));
        assert_eq!(sum.unanswered, [9]);
    }
}
