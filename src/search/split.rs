//! Deployments of two pools, one for prompts and one for answers: every pair of shapes, how many of
//! each, and every concurrency of the answering ones.
//!
//! The space: sizes that divide a domain or fill whole ones, both pools in the same formats, and the
//! smallest prompt pool that keeps up, or the largest that does not outrun the answers.

use super::candidate::{Candidate, Duty, PoolPlan};
use super::outcome::Census;
use super::pareto::ParetoFront;
use super::point::{Point, before, place, point};
use super::question::{Question, Traffic};
use super::shape::{Laid, Shape, largest};
use crate::plan::parallel::Phase;
use crate::quantity::read::Plain;
use crate::serving::evaluate::{decode_pool, prefill_rate, split};
use crate::serving::residency::cache_per_sequence;
use crate::serving::terms::{Load, Offload};
use crate::spec::objective::Metric;

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

/// A shape that prefills, with what counts about it.
pub struct Front<'q> {
    index: usize,
    laid: Laid<'q>,
    rate: f64,
    figures: [f64; 7],
}

/// The shapes worth prefilling with: none is beaten by another of the same formats in every respect.
pub fn fronts<'q>(question: &'q Question, shapes: &'q [Shape]) -> Vec<Front<'q>> {
    let mut kept: Vec<Front> = Vec::new();
    for (index, shape) in shapes.iter().enumerate() {
        if !shape.prefills || !even(question, shape) {
            continue;
        }
        let laid = Laid::new(question, shape);
        let rate = prefill_rate(&Plain, &laid.instance, &laid.prompt).value();
        let machine = question.formats[shape.formats].plain();
        let sent = cache_per_sequence(&Plain, &laid.instance, Phase::Prefill, question.terms().isl, machine);
        let (prompt, pp) = (&laid.prompt, shape.plan.pp as f64);
        let figures = [
            shape.plan.devices() as f64,
            prompt.total.value(),
            prompt.slowest.value(),
            1.0 / rate,
            sent.value(),
            prompt.computing.value() / pp,
            prompt.moving.value() / pp,
        ];
        let beats = |a: &[f64; 7], b: &[f64; 7]| a.iter().zip(b).all(|(x, y)| x <= y);
        let same = |front: &Front| front.laid.shape.formats == shape.formats;
        if kept.iter().any(|front| same(front) && beats(&front.figures, &figures)) {
            continue;
        }
        kept.retain(|front| !(same(front) && beats(&figures, &front.figures)));
        kept.push(Front { index, laid, rate, figures });
    }
    kept
}

/// Sizes that fill domains without gaps.
fn even(question: &Question, shape: &Shape) -> bool {
    let (devices, domain) = (shape.plan.devices(), question.cluster.domain());
    domain % devices == 0 || devices % domain == 0
}

/// What is known of split deployments after some shapes.
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
        Survey { front: ParetoFront::new(&question.axes), best: None, census: Census::default() }
    }

    /// Takes another survey in.
    pub fn merge(&mut self, question: &Question, other: Survey) {
        self.front.merge(other.front);
        self.census.add(other.census);
        if let Some(found) = other.best {
            self.offer(question, found);
        }
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

/// One pair of shapes under study.
struct Pair<'a, 'q> {
    question: &'q Question,
    front: &'a Front<'q>,
    back: &'a Laid<'q>,
    back_index: usize,
    rivals: &'a ParetoFront<super::aggregated::Key>,
}

/// Looks at `index` as the answering shape with every prompt shape.
pub fn survey<'q>(
    question: &'q Question,
    shapes: &'q [Shape],
    fronts: &[Front<'q>],
    index: usize,
    rivals: &ParetoFront<super::aggregated::Key>,
    survey: &mut Survey,
) {
    let shape = &shapes[index];
    if shape.fits == 0 || shape.plan.sp || shape.offload != Offload::Nothing || !even(question, shape) {
        return;
    }
    let back = Laid::new(question, shape);
    let devices = question.cluster.devices();
    for front in fronts.iter().filter(|front| front.laid.shape.formats == shape.formats) {
        if front.laid.shape.plan.devices() + shape.plan.devices() > devices {
            survey.census.refuse("too_many_devices", 1, "two pools need more devices than there are");
            continue;
        }
        let pair = Pair { question, front, back: &back, back_index: index, rivals };
        match question.traffic {
            Traffic::Free => pair.free(survey),
            _ => pair.stated(survey),
        }
    }
}

impl Pair<'_, '_> {
    fn rates(&self, concurrency: u64) -> (f64, f64) {
        let machine = self.question.formats[self.back.shape.formats].plain();
        let load = Load { concurrency, offload: Offload::Nothing };
        let (tpot, rate) = decode_pool(&Plain, &self.back.instance, machine, self.question.terms(), &load);
        (tpot.value(), rate.value())
    }

    fn at(&self, fronts: u64, backs: u64, concurrency: u64) -> Point {
        let machine = self.question.formats[self.back.shape.formats].plain();
        let front = self.front.laid.pool(fronts, self.front.laid.shape.plan.dp);
        let back = self.back.pool(backs, concurrency);
        let demand = self.question.traffic.demand(&Plain);
        point(&split(&Plain, &front, &back, machine, self.question.terms(), &demand, &mut ()).metrics)
    }

    fn sizes(&self) -> (u64, u64) {
        (self.front.laid.shape.plan.devices(), self.back.shape.plan.devices())
    }

    fn see(&self, survey: &mut Survey, fronts: u64, backs: u64, concurrency: u64) -> Option<Point> {
        survey.census.candidates += 1;
        survey.census.evaluated += 1;
        let point = self.at(fronts, backs, concurrency);
        if let Some(reason) = self.question.missed(&point) {
            survey.census.refuse(reason.kind(), 1, &reason.to_string());
            return None;
        }
        let key = Key { front: (self.front.index, fronts), back: (self.back_index, backs), concurrency };
        survey.front.insert(point, key);
        survey.offer(self.question, (point, key));
        Some(point)
    }

    /// Numbers of prompt instances worth having beside `backs` answering ones that need `need` requests
    /// per second: just enough, or just not.
    fn counts(&self, backs: u64, need: f64) -> impl Iterator<Item = u64> + use<> {
        let (front, back) = self.sizes();
        let room = self.question.cluster.devices().saturating_sub(backs * back) / front;
        let enough = (need / self.front.rate).ceil().max(1.0) as u64;
        let below = (need / self.front.rate).floor() as u64;
        let mut counts = [enough.min(room), below.min(room)];
        counts.sort_unstable();
        let once = if counts[0] == counts[1] { 1 } else { 2 };
        counts.into_iter().take(once).filter(|&count| count > 0)
    }

    fn most_backs(&self) -> u64 {
        let (front, back) = self.sizes();
        (self.question.cluster.devices() - front) / back
    }

    /// As much traffic as can be carried.
    fn free(&self, survey: &mut Survey) {
        if self.see(survey, 1, 1, self.back.concurrency(1)).is_none() {
            return;
        }
        let fits = self.back.shape.fits;
        let alone = |requests| self.at(1, 1, self.back.concurrency(requests));
        let within = largest(fits, |requests| self.question.missed(&alone(requests)).is_none());
        survey.census.prune("latency_limit", fits - within);
        self.optimum(survey, within);
        let mut between = vec![(1, within)];
        self.mixes(survey, 1);
        if within > 1 {
            self.mixes(survey, within);
        }
        while let Some((low, high)) = between.pop() {
            if high - low < 2 {
                continue;
            }
            let bound = self.ideal(low, high - 1);
            if survey.front.dominates(&bound) || self.rivals.dominates(&bound) {
                survey.census.candidates += high - low - 1;
                survey.census.prune("dominated", high - low - 1);
                continue;
            }
            let middle = low + (high - low) / 2;
            self.mixes(survey, middle);
            between.push((low, middle));
            between.push((middle, high));
        }
    }

    /// The most that pools of these shapes can yield, where that is what counts: at the highest load
    /// that keeps the limits, for every number of answering instances.
    fn optimum(&self, survey: &mut Survey, within: u64) {
        let osl = self.question.stated.lengths.osl as f64;
        let concurrency = self.back.concurrency(within);
        let (_, rate) = self.rates(concurrency);
        let throughput = self.question.aims.first().is_some_and(|aim| aim.metric == Metric::OutputTokS);
        for backs in 1..=self.most_backs() {
            let need = rate * backs as f64;
            for fronts in self.counts(backs, need) {
                let flow = need.min(fronts as f64 * self.front.rate);
                let beaten = survey
                    .best
                    .as_ref()
                    .is_some_and(|(best, _)| flow * osl < best[place(Metric::OutputTokS)] * (1.0 - 1e-12));
                if throughput && beaten {
                    survey.census.candidates += 1;
                    survey.census.prune("less_throughput", 1);
                    continue;
                }
                let carried = fronts as f64 * self.front.rate;
                let enough = if need > carried { self.least(within, carried / backs as f64) } else { within };
                self.see(survey, fronts, backs, self.back.concurrency(enough));
            }
        }
    }

    /// The least load at which an answering instance makes way for `rate` requests per second.
    fn least(&self, within: u64, rate: f64) -> u64 {
        let too_few = largest(within, |requests| self.rates(self.back.concurrency(requests)).1 < rate);
        (too_few + 1).min(within)
    }

    /// Every number of answering instances at one load, those first that use their devices better than
    /// all smaller deployments.
    fn mixes(&self, survey: &mut Survey, requests: u64) {
        let concurrency = self.back.concurrency(requests);
        let (front, back) = self.sizes();
        let (_, rate) = self.rates(concurrency);
        let mut best = 0.0;
        for backs in 1..=self.most_backs() {
            let need = rate * backs as f64;
            for fronts in self.counts(backs, need) {
                let flow = need.min(fronts as f64 * self.front.rate);
                let yielded = flow / (fronts * front + backs * back) as f64;
                if yielded > best {
                    best = yielded;
                    self.see(survey, fronts, backs, concurrency);
                } else {
                    survey.census.candidates += 1;
                    survey.census.prune("dominated", 1);
                }
            }
        }
    }

    /// The best that any number of instances at any load from `low` to `high` could be: latencies of
    /// the lower load, pools in the ideal proportion, the fewest devices.
    fn ideal(&self, low: u64, high: u64) -> Point {
        let mut best = self.at(1, 1, self.back.concurrency(low));
        let (front, back) = self.sizes();
        let (tpot, _) = self.rates(self.back.concurrency(low));
        let osl = self.question.stated.lengths.osl as f64;
        let fastest = self.back.concurrency(high) as f64 / ((osl - 1.0) * tpot);
        let per_request = front as f64 / self.front.rate + back as f64 / fastest;
        let per_device = osl / per_request;
        let gain = per_device / best[place(Metric::OutputTokSPerDevice)];
        let idle = self.question.idle(front + back);
        let devices = self.question.cluster.devices() as f64;
        let watts = best[place(Metric::Watts)];
        best[place(Metric::UsdPerMtok)] /= gain;
        if idle.owned && !watts.is_nan() {
            best[place(Metric::UsdPerMtok)] *= idle.watts / watts;
        }
        best[place(Metric::OutputTokSPerDevice)] = per_device;
        best[place(Metric::OutputTokS)] = per_device * devices;
        best[place(Metric::Watts)] = idle.watts;
        best[place(Metric::TokPerJoule)] = per_device * (front + back) as f64 / idle.watts;
        best
    }

    /// A stated number of requests in flight, or per second.
    fn stated(&self, survey: &mut Survey) {
        for backs in 1..=self.most_backs() {
            let load = match self.question.traffic {
                Traffic::InFlight(requests) => Some((requests.div_ceil(backs), None)),
                Traffic::Rate(rate) => {
                    let each = rate / backs as f64;
                    let requests = self.least(self.back.shape.fits, each);
                    let enough = self.rates(self.back.concurrency(requests)).1 >= each;
                    enough.then(|| (self.back.concurrency(requests), Some(rate)))
                }
                Traffic::Free => None,
            };
            let Some((concurrency, rate)) = load else {
                survey.census.candidates += 1;
                survey.census.refuse("too_much_traffic", 1, "the answering pool cannot carry the rate");
                continue;
            };
            if concurrency > self.back.concurrency(self.back.shape.fits) {
                survey.census.candidates += 1;
                survey.census.refuse("out_of_memory", 1, "more requests in flight than the cache holds");
                continue;
            }
            let need = rate.unwrap_or_else(|| self.rates(concurrency).1 * backs as f64);
            for fronts in self.counts(backs, need) {
                if rate.is_some_and(|rate| fronts as f64 * self.front.rate < rate) {
                    survey.census.candidates += 1;
                    survey.census.refuse("too_much_traffic", 1, "the prompt pool cannot carry the rate");
                    continue;
                }
                self.see(survey, fronts, backs, concurrency);
            }
        }
    }
}
