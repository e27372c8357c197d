//! Deployments of two pools, one for prompts and one for answers: which shapes, how many of each, and
//! how heavily the answering ones are loaded.
//!
//! The space: sizes that divide a domain or fill whole ones, both pools in the same formats, and the
//! smallest prompt pool that keeps up or the largest that does not outrun the answers. Loads are every
//! integer; the front, beyond [`super::answers::EVERY_LOAD_UP_TO`] requests a rank, shows them at steps of 1/32, the
//! optimum considers all. The front shows up to [`FRONT_BACKS`] answering instances, and on more
//! than [`FRONT_DEVICES`] devices instances inside a domain; the optimum considers all that there is
//! room for. An answering shape that another of its size outruns at a shorter TPOT is left
//! out: with any prompt pool it would yield no more.

use super::answers::Answer;
use super::candidate::{Candidate, Duty, PoolPlan};
use super::outcome::Census;
use super::pareto::ParetoFront;
use super::point::{Point, before, place, point};
use super::prompts::Front;
use super::question::{Question, Traffic};
use super::shape::{Laid, Shape, largest};
use crate::quantity::read::Plain;
use crate::serving::evaluate::{decode_pool, split};
use crate::serving::terms::{Load, Offload};
use crate::spec::objective::Metric;

/// Answering instances of a deployment on the front, at most.
pub const FRONT_BACKS: u64 = 4;

/// On larger systems the front shows only pools whose instances lie inside a domain.
pub const FRONT_DEVICES: u64 = 128;

/// A split deployment, in short.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    /// Index of the prompt pool's shape, and how many.
    pub front: (usize, u64),
    /// Index of the answer pool's shape, and how many.
    pub back: (usize, u64),
    /// Requests in flight of each answering instance.
    pub concurrency: u64,
}

impl Key {
    /// The candidate in full.
    pub fn candidate(&self, shapes: &[Shape]) -> Candidate {
        let pool = |duty, (shape, replicas): (usize, u64), concurrency| PoolPlan {
            duty,
            plan: shapes[shape].plan,
            stages: shapes[shape].stages.clone(),
            replicas,
            concurrency,
        };
        let dp = shapes[self.front.0].plan.dp;
        let pools =
            vec![pool(Duty::Prefill, self.front, dp), pool(Duty::Decode, self.back, self.concurrency)];
        Candidate { formats: shapes[self.back.0].formats, pools, offload: Offload::Nothing }
    }
}

/// What is known of split deployments after some pairs.
pub struct Survey {
    /// The front so far.
    pub front: ParetoFront<Key>,
    /// The best so far.
    pub best: Option<(Point, Key)>,
    /// What became of the candidates.
    pub census: Census,
}

impl Survey {
    /// Nothing known yet.
    pub fn new(question: &Question) -> Survey {
        Survey { front: ParetoFront::new(&question.distinct_axes()), best: None, census: Census::default() }
    }

    /// Both surveys in one; which is taken into which does not matter.
    pub fn merged(mut self, question: &Question, mut other: Survey) -> Survey {
        if other.front.len() > self.front.len() {
            std::mem::swap(&mut self, &mut other);
        }
        self.front.merge(other.front);
        self.census.add(other.census);
        if let Some(found) = other.best {
            self.offer(question, found);
        }
        self
    }

    fn offer(&mut self, question: &Question, found: (Point, Key)) {
        let ahead = self.best.as_ref().is_none_or(|known| {
            before(&found.0, &known.0, &question.aims)
                || (!before(&known.0, &found.0, &question.aims) && found.1 < known.1)
        });
        if ahead {
            self.best = Some(found);
        }
    }
}

/// A prompt shape, and answers of one size: each later one slower and carrying more.
pub struct Pair<'a, 'q> {
    /// What is asked.
    pub question: &'q Question,
    /// The prompt shape.
    pub front: &'a Front<'q>,
    /// The answers.
    pub answers: &'a [Answer],
    /// Their shapes, laid out.
    pub laid: &'a [Option<Laid<'q>>],
    /// The front of what the rest of the search found.
    pub rivals: &'a ParetoFront<super::aggregated::Key>,
    /// The best that the rest of the search found.
    pub leader: Option<&'a Point>,
}

impl Pair<'_, '_> {
    /// Whether there is room for the pair, and it is shown or may yield more than what is known.
    pub fn matters(&self) -> bool {
        let (front, back) = self.sizes();
        let devices = self.question.cluster.devices();
        let most =
            self.front.promise(self.answers) * devices as f64 * self.question.stated.lengths.osl as f64;
        let known = self.leader.map_or(0.0, |best| best[place(Metric::OutputTokS)]);
        let beaten = self.question.wants_throughput()
            && self.question.traffic == Traffic::Free
            && most < known * (1.0 - 1e-9);
        front + back <= devices && (self.shows() || !beaten)
    }

    /// Looks at all deployments of the pair.
    pub fn survey(&self, survey: &mut Survey) {
        if self.sizes().0 + self.sizes().1 > self.question.cluster.devices() {
            survey.census.refuse("too_many_devices", 1, "two pools need more devices than there are");
            return;
        }
        match self.question.traffic {
            Traffic::Free => self.free(survey),
            _ => self.answers.iter().for_each(|answer| self.stated(survey, answer)),
        }
    }

    fn at(&self, fronts: u64, backs: u64, answer: &Answer) -> Point {
        let machine = self.question.formats[answer.formats].plain();
        let front = self.front.laid.pool(fronts, self.front.laid.shape.plan.dp);
        let laid = self.laid[answer.shape].as_ref().expect("answers' shapes are laid out");
        let back = laid.pool(backs, answer.concurrency);
        let demand = self.question.traffic.demand(&Plain);
        point(&split(&Plain, &front, &back, machine, self.question.terms(), &demand, &mut ()).metrics)
    }

    fn sizes(&self) -> (u64, u64) {
        (self.front.laid.shape.plan.devices(), self.answers[0].devices)
    }

    fn see(&self, survey: &mut Survey, fronts: u64, backs: u64, answer: &Answer) -> bool {
        survey.census.candidates += 1;
        survey.census.evaluated += 1;
        let point = self.at(fronts, backs, answer);
        if let Some(reason) = self.question.missed(&point) {
            survey.census.refuse(reason.kind(), 1, &reason.to_string());
            return false;
        }
        let concurrency = answer.concurrency;
        let key = Key { front: (self.front.index, fronts), back: (answer.shape, backs), concurrency };
        if self.shows() && !self.rivals.dominates(&point) {
            survey.front.insert(point, key);
        }
        survey.offer(self.question, (point, key));
        true
    }

    /// Numbers of prompt instances worth having beside `backs` answering ones that need `need` requests
    /// per second: just enough, or just not.
    fn counts(&self, backs: u64, need: f64) -> impl Iterator<Item = u64> + use<> {
        let (front, back) = self.sizes();
        let room = self.question.cluster.devices().saturating_sub(backs * back) / front;
        let enough = ((need / self.front.rate).ceil().max(1.0) as u64).min(room);
        let below = ((need / self.front.rate).floor() as u64).min(room);
        let once = if enough == below { 1 } else { 2 };
        [enough, below].into_iter().take(once).filter(|&count| count > 0)
    }

    fn most_backs(&self) -> u64 {
        let (front, back) = self.sizes();
        (self.question.cluster.devices() - front) / back
    }

    /// As much traffic as can be carried.
    fn free(&self, survey: &mut Survey) {
        let end = self.answers.len() - 1;
        let devices = self.question.cluster.devices() as f64;
        let most = self.front.promise(self.answers) * devices * self.question.stated.lengths.osl as f64;
        let beaten = self.question.wants_throughput() && most < self.record(survey) * (1.0 - 1e-9);
        if (beaten && !self.shows()) || self.hopeless(survey, &self.ideal(0, end)) {
            survey.census.candidates += self.answers.len() as u64;
            survey.census.prune("dominated", self.answers.len() as u64);
            return;
        }
        if !self.see(survey, 1, 1, &self.answers[0]) {
            return;
        }
        // TTFT is the pair's, TPOT and E2E grow along the answers.
        let meets = |answer: &Answer| self.question.missed(&self.at(1, 1, answer)).is_none();
        let within = self.answers.partition_point(meets);
        survey.census.prune("latency_limit", (self.answers.len() - within) as u64);
        let Some(last) = within.checked_sub(1) else { return };
        self.optimum(survey, last);
        let mut between = vec![(0, last)];
        self.mixes(survey, 0);
        if last > 0 {
            self.mixes(survey, last);
        }
        while let Some((low, high)) = between.pop() {
            if high - low < 2 {
                continue;
            }
            let bound = self.ideal(low, high - 1);
            if self.shown(survey, &bound) {
                survey.census.candidates += (high - low - 1) as u64;
                survey.census.prune("dominated", (high - low - 1) as u64);
                continue;
            }
            let middle = low + (high - low) / 2;
            self.mixes(survey, middle);
            between.push((low, middle));
            between.push((middle, high));
        }
    }

    /// Most output tokens per second known so far.
    fn record(&self, survey: &Survey) -> f64 {
        let known = survey.best.as_ref().map(|(best, _)| best).into_iter().chain(self.leader);
        known.map(|best| best[place(Metric::OutputTokS)]).fold(0.0, f64::max)
    }

    /// Whether deployments of this pair are shown on the front.
    fn shows(&self) -> bool {
        let (front, back) = self.sizes();
        let domain = self.question.cluster.domain();
        self.question.cluster.devices() <= FRONT_DEVICES || front.max(back) <= domain
    }

    /// Whether something on the front is better than even this ideal, or the pair is not shown.
    fn shown(&self, survey: &Survey, ideal: &Point) -> bool {
        !self.shows() || survey.front.dominates(ideal) || self.rivals.dominates(ideal)
    }

    /// Whether even this ideal misses a limit, or neither wins nor shows.
    fn hopeless(&self, survey: &Survey, ideal: &Point) -> bool {
        let wins = survey
            .best
            .as_ref()
            .map(|(best, _)| best)
            .or(self.leader)
            .is_none_or(|best| before(ideal, best, &self.question.aims));
        self.question.missed(ideal).is_some() || (!wins && self.shown(survey, ideal))
    }

    /// The most that the pair can yield: at the highest load that keeps the limits, for every number
    /// of answering instances; where the prompt pool is the narrower, at the least load that fills it.
    fn optimum(&self, survey: &mut Survey, last: usize) {
        let osl = self.question.stated.lengths.osl as f64;
        let throughput = self.question.wants_throughput();
        let rate = self.answers[last].rate;
        for backs in 1..=self.most_backs() {
            let need = rate * backs as f64;
            for fronts in self.counts(backs, need) {
                let carried = fronts as f64 * self.front.rate;
                let best = self.record(survey);
                // Rounding may hide a tie: what comes within a hair is evaluated.
                if throughput && need.min(carried) * osl < best * (1.0 - 1e-9) {
                    survey.census.candidates += 1;
                    survey.census.prune("less_throughput", 1);
                    continue;
                }
                let each = carried / backs as f64;
                let enough = self.answers[..last].partition_point(|answer| answer.rate < each);
                self.see(survey, fronts, backs, &self.least(enough, each));
            }
        }
    }

    /// The lightest load of the same shape, not below the answer before, that still makes way for
    /// `rate` requests per second.
    fn least(&self, index: usize, rate: f64) -> Answer {
        let answer = self.answers[index];
        let Some(before) = index.checked_sub(1).map(|i| self.answers[i]).filter(|b| b.shape == answer.shape)
        else {
            return answer;
        };
        if answer.rate < rate {
            return answer;
        }
        let machine = self.question.formats[answer.formats].plain();
        let laid = self.laid[answer.shape].as_ref().expect("answers' shapes are laid out");
        let at = |concurrency: u64| {
            let load = Load { concurrency, offload: Offload::Nothing };
            let (tpot, rate) = decode_pool(&Plain, &laid.instance, machine, self.question.terms(), &load);
            Answer { concurrency, tpot: tpot.value(), rate: rate.value(), ..answer }
        };
        let dp = laid.shape.plan.dp;
        let steps = (answer.concurrency - before.concurrency) / dp;
        let short = largest(steps, |step| at(before.concurrency + step * dp).rate < rate);
        if short >= steps { answer } else { at(before.concurrency + (short + 1) * dp) }
    }

    /// Every number of answering instances at one load, as long as more of them use their devices
    /// better than all fewer did.
    fn mixes(&self, survey: &mut Survey, index: usize) {
        let (front, back) = self.sizes();
        let answer = &self.answers[index];
        let one = self.at(1, 1, answer);
        let mut best = 0.0;
        let pools = |backs| {
            let fronts = self.counts(backs, answer.rate * backs as f64);
            fronts.map(move |fronts| (fronts * front + backs * back, fronts, backs))
        };
        let mut pools: Vec<_> = (1..=self.most_backs().min(FRONT_BACKS)).flat_map(pools).collect();
        pools.sort_unstable();
        for (devices, fronts, backs) in pools {
            let flow = (answer.rate * backs as f64).min(fronts as f64 * self.front.rate);
            let yielded = flow / devices as f64;
            let better = yielded > best * (1.0 + 1e-12);
            if better && !self.shown(survey, &self.at_most(one, yielded, devices)) {
                best = yielded;
                self.see(survey, fronts, backs, answer);
            } else {
                survey.census.candidates += 1;
                survey.census.prune("dominated", 1);
            }
        }
    }

    /// The best that any number of instances at any of the answers `low` to `high` could be: latencies
    /// of the first, rate of the last, pools in the ideal proportion, the fewest devices.
    fn ideal(&self, low: usize, high: usize) -> Point {
        let (front, back) = self.sizes();
        let per_request = front as f64 / self.front.rate + back as f64 / self.answers[high].rate;
        let one = self.at(1, 1, &self.answers[low]);
        let best = self.at_most(one, 1.0 / per_request, front + back);
        let mut most = best;
        let all = self.question.cluster.devices() as f64 / (front + back) as f64;
        most[place(Metric::OutputTokS)] *= all;
        most
    }

    /// What a deployment of `devices` is at best that differs from `one` only in how many instances
    /// there are, and comes to `rate` requests per second and device: a hair above, for rounding.
    fn at_most(&self, one: Point, rate: f64, devices: u64) -> Point {
        let mut best = one;
        let osl = self.question.stated.lengths.osl as f64;
        let per_device = osl * rate * (1.0 + 1e-12);
        let gain = per_device / best[place(Metric::OutputTokSPerDevice)];
        let idle = self.question.idle(devices);
        let watts = best[place(Metric::Watts)] / best[place(Metric::Devices)];
        best[place(Metric::UsdPerMtok)] /= gain;
        if idle.owned && !watts.is_nan() {
            best[place(Metric::UsdPerMtok)] *= idle.watts / devices as f64 / watts;
        }
        best[place(Metric::OutputTokSPerDevice)] = per_device;
        best[place(Metric::OutputTokS)] = per_device * devices as f64;
        best[place(Metric::Devices)] = devices as f64;
        best[place(Metric::Watts)] = idle.watts;
        best[place(Metric::TokPerJoule)] = per_device * devices as f64 / idle.watts;
        best
    }

    /// A stated number of requests in flight, or per second: each answer says for how many instances
    /// it is meant.
    fn stated(&self, survey: &mut Survey, answer: &Answer) {
        if answer.instances > self.most_backs() {
            return;
        }
        let need = match self.question.traffic {
            Traffic::Rate(rate) => rate,
            _ => answer.rate * answer.instances as f64,
        };
        for fronts in self.counts(answer.instances, need) {
            let carried = fronts as f64 * self.front.rate;
            if matches!(self.question.traffic, Traffic::Rate(rate) if carried < rate) {
                survey.census.candidates += 1;
                survey.census.refuse("too_much_traffic", 1, "the prompt pool cannot carry the rate");
                continue;
            }
            self.see(survey, fronts, answer.instances, answer);
        }
    }
}
