//! Disaggregated deployments of one prefill pool and one decode pool: configurations, number of workers, and decode
//! concurrency.
//!
//! Search space: workers of any sizes, both pools in the same formats, any numbers of workers that fit, every load
//! that is even over the attention ranks. Branch and bound halves regions until their upper bound is dominated. The
//! front lists the part that [`super::front_sampling::FrontSampling`] selects; the optimum considers everything.

mod bound;

use super::aggregated::replicas::CopiedFront;
use super::candidate::Candidate;
use super::decode_options::{DecodeOption, DecodeOptionList, reload};
use super::error_margin::ErrorMargin;
use super::outcome::Census;
use super::pair_capacity::PairCapacity;
use super::pareto::ParetoFront;
use super::point::Point;
use super::prefill_options::{PrefillOption, workers_for};
use super::problem::{Problem, Traffic};
use super::region::{Loads, Region};
use super::required_metrics::RequiredMetrics;
use super::shape_cache::ShapeCache;
use super::shapes::Shapes;
use crate::plan::locality::gcd;
use crate::spec::nearness::ErrorClass;
use crate::spec::offload::Offload;
use crate::spec::role::Role;

/// Compact key of a disaggregated deployment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SplitKey {
    /// Index of the configuration and number of the prefill workers.
    pub prefill: (usize, u64),
    /// Index of the configuration and number of the decode workers.
    pub decode: (usize, u64),
    /// Concurrency of each decode worker.
    pub concurrency: u64,
}

impl SplitKey {
    pub fn candidate(&self, shapes: &Shapes) -> Candidate {
        let (prefill, decode) = (&shapes[self.prefill.0], &shapes[self.decode.0]);
        let pools = vec![
            prefill.pool(Role::Prefill, self.prefill.1, prefill.plan.dp),
            decode.pool(Role::Decode, self.decode.1, self.concurrency),
        ];
        Candidate { formats: decode.formats, pools, offload: Offload::Nothing }
    }
}

pub struct SplitIncumbents {
    pub front: ParetoFront<SplitKey>,
    /// Deployments on the front that are listed instead of their copies.
    pub copied: CopiedFront,
    pub best: Option<(Point, SplitKey)>,
    pub census: Census,
}

impl SplitIncumbents {
    pub fn new(problem: &Problem) -> SplitIncumbents {
        SplitIncumbents {
            front: ParetoFront::of(problem),
            copied: CopiedFront::new(problem),
            best: None,
            census: Census::default(),
        }
    }

    /// Merges two sets of results. The order of the arguments does not matter.
    pub fn merged(mut self, problem: &Problem, mut other: SplitIncumbents) -> SplitIncumbents {
        if other.front.count() > self.front.count() {
            std::mem::swap(&mut self, &mut other);
        }
        self.front.merge(other.front);
        self.copied.merge(other.copied);
        self.census.add(other.census);
        if let Some(found) = other.best {
            self.offer(problem, found);
        }
        self
    }

    fn offer(&mut self, problem: &Problem, found: (Point, SplitKey)) {
        let better = self.best.as_ref().is_none_or(|known| {
            problem.compare(&found.0, &known.0).then_with(|| found.1.cmp(&known.1)).is_lt()
        });
        if better {
            self.best = Some(found);
        }
    }
}

/// A prefill option, and decode options of one size sorted by increasing TPOT.
pub struct PoolPair<'a, 'q> {
    pub problem: &'q Problem,
    pub prefill: &'a PrefillOption<'q>,
    pub decode: &'a DecodeOptionList,
    /// The room of the system for workers of both.
    pub capacity: PairCapacity,
    /// TTFT of any of the deployments, in seconds: without queueing, and with the planned queue.
    pub ttft: (f64, f64),
    pub cache: &'a ShapeCache<'q>,
    pub required: RequiredMetrics,
    /// The front of the rest of the search.
    pub rivals: &'a ParetoFront<super::aggregated::AggregatedKey>,
    /// The best result of the rest of the search.
    pub leader: Option<&'a Point>,
    /// Results of other pairs.
    pub known: &'a SplitIncumbents,
}

/// A region to examine, with the number of evaluations when its bound was checked.
struct OpenRegion {
    bound: Point,
    region: Region,
    evaluated: u64,
}

impl PoolPair<'_, '_> {
    /// The region of all deployments of the pair that fit, at the listed loads; otherwise the reason.
    fn whole(&self) -> Result<Region, (&'static str, &'static str)> {
        let all = self.problem.cluster.devices();
        let options = &self.decode.options;
        let instances = options[0].instances;
        let (prefills, decodes) = match self.problem.traffic {
            Traffic::Free => ((1, all), (1, all)),
            Traffic::InFlight(_) => ((1, all), (1, all.min(self.problem.traffic.slots().unwrap_or(all)))),
            Traffic::Rate(rate) => {
                let enough = workers_for(rate, self.prefill.rate);
                let one_each = self.capacity.next_to_first(1).is_some_and(|decodes| decodes > 0);
                if one_each && self.capacity.next_to_first(enough).is_none_or(|decodes| decodes < instances) {
                    return Err(("too_much_traffic", "the prefill pool cannot sustain the request rate"));
                }
                ((enough, enough), (instances, instances))
            }
        };
        let whole = Region {
            prefill_instances: prefills,
            decode_instances: decodes,
            loads: Loads::Listed(0, options.len() - 1),
        };
        whole.within(&self.capacity).ok_or(("too_many_devices", "two pools need more devices than available"))
    }

    /// The prediction error that the SLOs allow for.
    fn margin(&self) -> ErrorMargin {
        self.problem.margin(self.prefill.prepared.shape.formats, ErrorClass::Disaggregated, 0)
    }

    /// Upper bound over its deployments where they may improve on the rest of the search. Most pairs are pruned as a
    /// whole.
    pub fn may_matter(&self, survey: &mut SplitIncumbents) -> Option<Point> {
        let whole = match self.whole() {
            Ok(whole) => whole,
            Err((kind, reason)) => {
                survey.census.refuse(kind, 1, reason);
                return None;
            }
        };
        let span = self.decode.span.expect("the options have settled");
        let ideal = self.ideal(&span, &whole, self.passing_any(&span, &whole));
        let beaten = self.beaten(survey, &ideal, &whole);
        if let Some(reason) = beaten {
            let pools = whole.pools(&self.capacity);
            survey.census.discard(reason, pools * self.decode.loads);
        }
        beaten.is_none().then_some(ideal)
    }

    /// Upper bound over its deployments; `None` where none fits.
    pub fn best_point(&self) -> Option<Point> {
        let (whole, span) = (self.whole().ok()?, self.decode.span?);
        Some(self.ideal(&span, &whole, self.passing_any(&span, &whole)))
    }

    pub fn explore_all(&self, survey: &mut SplitIncumbents) {
        let Ok(Region { prefill_instances: prefills, decode_instances: decodes, loads }) = self.whole()
        else {
            return;
        };
        let deployments =
            |loads, decodes| Region { prefill_instances: prefills, decode_instances: decodes, loads };
        let shown = self.problem.front_sampling.decode_workers;
        if decodes.0 <= shown {
            self.explore(survey, deployments(loads, (decodes.0, decodes.1.min(shown))));
        }
        if decodes.1 > shown {
            self.explore(survey, deployments(loads, (decodes.0.max(shown + 1), decodes.1)));
        }
        for gap in &self.decode.gaps {
            self.explore(survey, deployments(Loads::Between(*gap), decodes));
        }
    }

    /// Branches on a region until every part is pruned.
    fn explore(&self, survey: &mut SplitIncumbents, region: Region) {
        let mut open: Vec<OpenRegion> = Vec::new();
        self.consider(survey, region, &mut open);
        while let Some(OpenRegion { bound, region, evaluated }) = open.pop() {
            // New results since then may dominate it.
            let news = survey.census.evaluated > evaluated;
            let beaten = if news { self.beaten(survey, &bound, &region) } else { None };
            if let Some(reason) = beaten {
                survey.census.discard(reason, region.count(&self.capacity));
                continue;
            }
            if region.is_single() {
                self.see(survey, &region);
                continue;
            }
            let at = |option: &DecodeOption, load| reload(self.cache.get(option.shape), option, load);
            let from = open.len();
            for half in region.halves(self.spread(&region), at) {
                self.consider(survey, half, &mut open);
            }
            // The half with the better bound first.
            if open.len() == from + 2 && self.problem.is_better(&open[from].bound, &open[from + 1].bound) {
                open.swap(from, from + 1);
            }
        }
    }

    /// Queues a region unless it is pruned.
    fn consider(&self, survey: &mut SplitIncumbents, region: Region, open: &mut Vec<OpenRegion>) {
        let Some(region) = region.within(&self.capacity) else { return };
        let span = self.span(&region);
        let bound = self.ideal(&span, &region, self.passing(&span, &region));
        let reason = if self.lopsided(&span, &region) {
            Some("other_ratio")
        } else {
            self.beaten(survey, &bound, &region)
        };
        match reason {
            Some(reason) => survey.census.discard(reason, region.count(&self.capacity)),
            None => open.push(OpenRegion { bound, region, evaluated: survey.census.evaluated }),
        }
    }

    /// The bound that prunes a region, if any: its ideal misses an SLO, or improves neither the optimum nor the
    /// front.
    fn beaten(&self, survey: &SplitIncumbents, ideal: &Point, region: &Region) -> Option<&'static str> {
        if self.problem.missed(ideal, self.margin()).is_some() {
            return Some("latency_limit");
        }
        let known = [survey, self.known].into_iter().filter_map(|known| Some(&known.best.as_ref()?.0));
        let wins = known.chain(self.leader).all(|best| self.problem.is_better(ideal, best));
        let covered = || {
            let by = |known: &SplitIncumbents| known.copied.replace(ideal) || known.front.covers(ideal);
            by(survey) || by(self.known) || self.rivals.covers(ideal)
        };
        let shows = || self.shows(region) && !self.is_copies(survey, region) && !covered();
        (!wins && !shows()).then_some("dominated")
    }

    /// Whether a region is several copies of a deployment that is listed instead.
    fn is_copies(&self, survey: &SplitIncumbents, region: &Region) -> bool {
        let (prefill_size, decode_size) = self.sizes();
        survey.copied.is_used()
            && region.is_single()
            && gcd(region.prefill_instances.0, region.decode_instances.0) > 1
            && self.problem.capacity().is_plain(prefill_size, decode_size)
    }

    /// Whether the front lists deployments of a region.
    fn shows(&self, region: &Region) -> bool {
        let sampling = &self.problem.front_sampling;
        let (prefill_size, decode_size) = self.sizes();
        let (devices, domain) = (self.problem.cluster.devices(), self.problem.cluster.domain());
        let even = |size: u64| domain.is_multiple_of(size) || size.is_multiple_of(domain);
        matches!(region.loads, Loads::Listed(..))
            && region.decode_instances.0 <= sampling.decode_workers
            && (devices <= sampling.across_domains_up_to || prefill_size.max(decode_size) <= domain)
            && (devices <= sampling.any_size_up_to || even(prefill_size) && even(decode_size))
    }

    fn see(&self, survey: &mut SplitIncumbents, region: &Region) {
        let (prefills, decodes) = (region.prefill_instances.0, region.decode_instances.0);
        let option = match region.loads {
            Loads::Listed(place, _) => self.decode.options[place],
            Loads::Between(gap) => DecodeOption { concurrency: gap.loads.0, ..gap.bound },
        };
        survey.census.candidates += 1;
        survey.census.evaluated += 1;
        let point = self.cache.at(self.prefill, prefills, &option, decodes);
        if let Some(reason) = self.problem.missed(&point, self.margin()) {
            survey.census.reject(&reason);
            return;
        }
        let concurrency = option.concurrency;
        let key = SplitKey {
            prefill: (self.prefill.index, prefills),
            decode: (option.shape, decodes),
            concurrency,
        };
        let shown = self.shows(region) && !self.is_copies(survey, region);
        if shown && self.known.front.admits(&point, &key) && !self.rivals.covers(&point) {
            survey.front.insert(point, key);
            let (prefill_size, decode_size) = self.sizes();
            if self.problem.capacity().is_plain(prefill_size, decode_size) {
                survey.copied.insert(&point);
            }
        }
        survey.offer(self.problem, (point, key));
    }
}
