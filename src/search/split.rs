//! Deployments of two pools, one for prompts and one for answers: which shapes, how many of each, and
//! how heavily the answering ones are loaded.
//!
//! The space: instances of any sizes, both pools in the same formats, any number of instances of each that there is
//! room for, every load that lies evenly on the attention ranks. Regions of it are halved until even the best that one
//! could hold is beaten. The front shows as much of it as [`super::front_sampling::FrontSampling`] says; the optimum
//! considers all.

mod bound;

use super::candidate::{Candidate, PoolPlan, PoolRole};
use super::decode_options::{DecodeOption, DecodeOptionList, reload};
use super::outcome::Census;
use super::pareto::ParetoFront;
use super::point::Point;
use super::prefill_options::PrefillOption;
use super::question::{Problem, Traffic};
use super::region::{Loads, Region};
use super::shape::InstanceConfig;
use super::shape_cache::ShapeCache;
use crate::serving::terms::OffloadTarget;

/// A split deployment, in short.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SplitKey {
    /// Index of the prompt pool's shape, and how many.
    pub front: (usize, u64),
    /// Index of the answer pool's shape, and how many.
    pub back: (usize, u64),
    /// Requests in flight of each answering instance.
    pub concurrency: u64,
}

impl SplitKey {
    /// The candidate in full.
    pub fn candidate(&self, shapes: &[InstanceConfig]) -> Candidate {
        let pool = |duty, (shape, replicas): (usize, u64), concurrency| PoolPlan {
            duty,
            plan: shapes[shape].plan,
            stages: shapes[shape].stages.clone(),
            replicas,
            concurrency,
        };
        let dp = shapes[self.front.0].plan.dp;
        let pools = vec![
            pool(PoolRole::Prefill, self.front, dp),
            pool(PoolRole::Decode, self.back, self.concurrency),
        ];
        Candidate { formats: shapes[self.back.0].formats, pools, offload: OffloadTarget::Nothing }
    }
}

/// What is known of split deployments after some pairs.
pub struct SplitIncumbents {
    /// The front so far.
    pub front: ParetoFront<SplitKey>,
    /// The best so far.
    pub best: Option<(Point, SplitKey)>,
    /// What became of the candidates.
    pub census: Census,
}

impl SplitIncumbents {
    /// Nothing known yet.
    pub fn new(question: &Problem) -> SplitIncumbents {
        SplitIncumbents {
            front: ParetoFront::new(&question.distinct_axes()),
            best: None,
            census: Census::default(),
        }
    }

    /// Both surveys in one; which is taken into which does not matter.
    pub fn merged(mut self, question: &Problem, mut other: SplitIncumbents) -> SplitIncumbents {
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

    fn offer(&mut self, question: &Problem, found: (Point, SplitKey)) {
        let ahead = self.best.as_ref().is_none_or(|known| {
            question.compare(&found.0, &known.0).then_with(|| found.1.cmp(&known.1)).is_lt()
        });
        if ahead {
            self.best = Some(found);
        }
    }
}

/// A prompt shape, and answers of one size: each later one slower.
pub struct PoolPair<'a, 'q> {
    /// What is asked.
    pub question: &'q Problem,
    /// The prompt shape.
    pub front: &'a PrefillOption<'q>,
    /// The answers.
    pub list: &'a DecodeOptionList,
    /// Time to first token of any of the deployments: at least, as nobody waits, and with the queue that is planned for.
    pub ttft: (f64, f64),
    /// All shapes, laid out as far as they were needed.
    pub bench: &'a ShapeCache<'q>,
    /// Whether nothing but pace counts.
    pub by_pace: bool,
    /// The front of what the rest of the search found.
    pub rivals: &'a ParetoFront<super::aggregated::AggregatedKey>,
    /// The best that the rest of the search found.
    pub leader: Option<&'a Point>,
}

/// A region that may matter, as far as was known when so many deployments had been evaluated.
struct OpenRegion {
    bound: Point,
    region: Region,
    evaluated: u64,
}

impl PoolPair<'_, '_> {
    /// Every deployment of the pair that there is room for, at the listed loads; or why there is none.
    fn whole(&self) -> Result<Region, (&'static str, &'static str)> {
        let (front, back) = self.sizes();
        let room = self.question.room();
        let all = self.question.cluster.devices();
        let answers = &self.list.answers;
        let instances = answers[0].instances;
        let (fronts, backs) = match self.question.traffic {
            Traffic::Free => ((1, all), (1, all)),
            Traffic::InFlight(requests) => ((1, all), (1, all.min(requests))),
            Traffic::Rate(rate) => {
                let enough = (rate / self.front.rate).ceil().max(1.0) as u64;
                let one_each = room.beside(front, 1, back).is_some_and(|backs| backs > 0);
                if one_each && room.beside(front, enough, back).is_none_or(|backs| backs < instances) {
                    return Err(("too_much_traffic", "the prompt pool cannot carry the rate"));
                }
                ((enough, enough), (instances, instances))
            }
        };
        let whole = Region { fronts, backs, loads: Loads::Listed(0, answers.len() - 1) };
        whole
            .within(room, self.sizes())
            .ok_or(("too_many_devices", "two pools need more devices than there are"))
    }

    /// Whether anything in the pair may matter beside what the rest of the search found. Most is
    /// beaten as a whole.
    pub fn may_matter(&self, survey: &mut SplitIncumbents) -> bool {
        let whole = match self.whole() {
            Ok(whole) => whole,
            Err((kind, reason)) => {
                survey.census.refuse(kind, 1, reason);
                return false;
            }
        };
        let span = self.list.span.expect("the answers have settled");
        let ideal = self.ideal(&span, &whole, self.passing_any(&span, &whole));
        let beaten = self.beaten(survey, &ideal, &whole);
        if let Some(reason) = beaten {
            let pools = whole.pools(self.question.room(), self.sizes());
            survey.census.discard(reason, pools * self.list.loads);
        }
        beaten.is_none()
    }

    /// The best that any of its deployments could be; nothing where there is room for none.
    pub fn promise(&self) -> Option<Point> {
        let (whole, span) = (self.whole().ok()?, self.list.span?);
        Some(self.ideal(&span, &whole, self.passing_any(&span, &whole)))
    }

    /// Looks at all deployments of the pair.
    pub fn survey(&self, survey: &mut SplitIncumbents) {
        let Ok(Region { fronts, backs, loads }) = self.whole() else { return };
        let deployments = |loads, backs| Region { fronts, backs, loads };
        let shown = self.question.front_sampling.decode_workers;
        if backs.0 <= shown {
            self.explore(survey, deployments(loads, (backs.0, backs.1.min(shown))));
        }
        if backs.1 > shown {
            self.explore(survey, deployments(loads, (backs.0.max(shown + 1), backs.1)));
        }
        for gap in &self.list.gaps {
            self.explore(survey, deployments(Loads::Between(*gap), backs));
        }
    }

    /// Halves a region until nothing in it could matter.
    fn explore(&self, survey: &mut SplitIncumbents, region: Region) {
        let room = self.question.room();
        let mut open: Vec<OpenRegion> = Vec::new();
        self.consider(survey, region, &mut open);
        while let Some(OpenRegion { bound, region, evaluated }) = open.pop() {
            // What was found since may beat it.
            let news = survey.census.evaluated > evaluated;
            let beaten = if news { self.beaten(survey, &bound, &region) } else { None };
            if let Some(reason) = beaten {
                survey.census.discard(reason, region.count(room, self.sizes()));
                continue;
            }
            if region.is_single() {
                self.see(survey, &region);
                continue;
            }
            let at = |answer: &DecodeOption, load| {
                reload(self.question, self.bench.get(answer.shape), answer, load)
            };
            let from = open.len();
            for half in region.halves(self.spread(&region), at) {
                self.consider(survey, half, &mut open);
            }
            // The more promising half is looked into first.
            if open.len() == from + 2 && self.question.ahead(&open[from].bound, &open[from + 1].bound) {
                open.swap(from, from + 1);
            }
        }
    }

    /// Opens a region that may matter.
    fn consider(&self, survey: &mut SplitIncumbents, region: Region, open: &mut Vec<OpenRegion>) {
        let room = self.question.room();
        let Some(region) = region.within(room, self.sizes()) else { return };
        let span = self.span(&region);
        let bound = self.ideal(&span, &region, self.passing(&span, &region));
        let reason = if self.lopsided(&span, &region) {
            Some("other_ratio")
        } else {
            self.beaten(survey, &bound, &region)
        };
        match reason {
            Some(reason) => survey.census.discard(reason, region.count(room, self.sizes())),
            None => open.push(OpenRegion { bound, region, evaluated: survey.census.evaluated }),
        }
    }

    /// Why nothing in a region matters, if so: even its ideal misses a limit, or neither wins nor shows.
    fn beaten(&self, survey: &SplitIncumbents, ideal: &Point, region: &Region) -> Option<&'static str> {
        if self.question.missed(ideal).is_some() {
            return Some("latency_limit");
        }
        let known = survey.best.as_ref().map(|(best, _)| best);
        let wins = known.into_iter().chain(self.leader).all(|best| self.question.ahead(ideal, best));
        let shows = || self.shows(region) && !survey.front.covers(ideal) && !self.rivals.covers(ideal);
        (!wins && !shows()).then_some("dominated")
    }

    /// Whether deployments of a region are shown on the front.
    fn shows(&self, region: &Region) -> bool {
        let sampling = &self.question.front_sampling;
        let (front, back) = self.sizes();
        let (devices, domain) = (self.question.cluster.devices(), self.question.cluster.domain());
        let even = |size: u64| domain % size == 0 || size % domain == 0;
        matches!(region.loads, Loads::Listed(..))
            && region.backs.0 <= sampling.decode_workers
            && (devices <= sampling.across_domains_up_to || front.max(back) <= domain)
            && (devices <= sampling.any_size_up_to || even(front) && even(back))
    }

    /// Evaluates the one deployment of a region.
    fn see(&self, survey: &mut SplitIncumbents, region: &Region) {
        let (fronts, backs) = (region.fronts.0, region.backs.0);
        let answer = match region.loads {
            Loads::Listed(place, _) => self.list.answers[place],
            Loads::Between(gap) => DecodeOption { concurrency: gap.loads.0, ..gap.floor },
        };
        survey.census.candidates += 1;
        survey.census.evaluated += 1;
        let point = self.bench.at(self.front, fronts, &answer, backs);
        if let Some(reason) = self.question.missed(&point) {
            survey.census.refuse(reason.kind(), 1, &reason.to_string());
            return;
        }
        let concurrency = answer.concurrency;
        let key = SplitKey { front: (self.front.index, fronts), back: (answer.shape, backs), concurrency };
        if self.shows(region) && !self.rivals.covers(&point) {
            survey.front.insert(point, key);
        }
        survey.offer(self.question, (point, key));
    }
}
