//! Which replica, and which of its attention ranks, a request goes to.

use std::ops::Range;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::content::{BlockIdentities, mixed};
use super::engine::EngineRequest;
use super::replica_set::ReplicaSet;

/// How requests are spread over replicas and their attention ranks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[cfg_attr(feature = "cli", derive(clap::ValueEnum))]
#[serde(rename_all = "kebab-case")]
pub enum RoutePolicy {
    /// To the replica with the fewest requests, and there to the rank with the fewest.
    #[default]
    LeastRequests,
    /// To each in turn.
    RoundRobin,
    /// At random.
    Random,
    /// All requests of a session to the same.
    Session,
    /// Where the least is to be computed and held: the prompt without its cached beginning, and what is there already.
    Prefix,
}

impl RoutePolicy {
    /// The number of the engine that a request goes to, the `sent`th of a router with this `seed`, where that does not
    /// depend on the state of replicas; numbers begin anew after the last engine.
    pub fn engine_number(self, seed: u64, sent: u64, [id, session]: [u64; 2]) -> Option<u64> {
        match self {
            RoutePolicy::RoundRobin => Some(sent),
            RoutePolicy::Random => Some(mixed(mixed(seed, id), 10)),
            RoutePolicy::Session => Some(mixed(mixed(seed, session), 11)),
            RoutePolicy::LeastRequests | RoutePolicy::Prefix => None,
        }
    }
}

/// Work of an engine that its router knows of, in tokens.
#[derive(Clone, Copy, Debug, Default)]
struct RoutedWork {
    /// Of prompts, to be computed.
    prefill: u64,
    /// Of prompts, held.
    held: u64,
}

/// The engine of an attention rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RouteTarget {
    pub replica: usize,
    pub rank: usize,
}

/// A request on its way, as its router counts it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    pub target: RouteTarget,
    prefill: u32,
    held: u32,
}

/// Spreads requests over the ranks of replicas.
pub struct RequestRouter {
    policy: RoutePolicy,
    seed: u64,
    sent: u64,
    /// Of all ranks, those of a replica next to each other; the policies that need it keep it.
    work: Vec<RoutedWork>,
    /// By replica: the place of its first rank, and in the end their number.
    firsts: Vec<usize>,
}

impl RequestRouter {
    /// A router of replicas with these numbers of ranks.
    pub fn new(policy: RoutePolicy, seed: u64, ranks: impl Iterator<Item = usize>) -> RequestRouter {
        let mut firsts = vec![0];
        firsts.extend(ranks.scan(0, |all, ranks| {
            *all += ranks;
            Some(*all)
        }));
        let work = vec![RoutedWork::default(); firsts.last().copied().unwrap_or(0)];
        RequestRouter { policy, seed, sent: 0, work, firsts }
    }

    /// The places of the ranks of a replica.
    fn places(&self, replica: usize) -> Range<usize> {
        self.firsts[replica]..self.firsts[replica + 1]
    }

    fn work_of(&mut self, target: RouteTarget) -> &mut RoutedWork {
        &mut self.work[self.firsts[target.replica] + target.rank]
    }

    /// Where `request` goes, of the replicas numbered `open`, of which there is at least one.
    pub fn route(&mut self, replicas: &ReplicaSet, open: &[usize], request: &EngineRequest) -> Route {
        let number = self.sent;
        self.sent += 1;
        let ids = [request.id, request.session];
        let target = match self.policy.engine_number(self.seed, number, ids) {
            Some(engine) => self.nth(open, engine),
            None if self.policy == RoutePolicy::Prefix => return self.cheapest(replicas, open, request),
            None => fewest(replicas, open),
        };
        Route { target, prefill: 0, held: 0 }
    }

    /// The engine of this number, beginning anew after the last; of equal replicas each comes before the second rank of
    /// the first.
    fn nth(&self, open: &[usize], number: u64) -> RouteTarget {
        let ranks = |replica: &usize| self.places(*replica).len();
        let all: usize = open.iter().map(ranks).sum();
        let mut left = (number % all.max(1) as u64) as usize;
        for rank in 0.. {
            let wide: Vec<usize> = open.iter().copied().filter(|replica| rank < ranks(replica)).collect();
            if left < wide.len() {
                return RouteTarget { replica: wide[left], rank };
            }
            if wide.is_empty() {
                break;
            }
            left -= wide.len();
        }
        RouteTarget { replica: open[0], rank: 0 }
    }

    /// The rule of NVIDIA Dynamo's KV router, with its default weight of 1: prompt tokens to be computed plus tokens
    /// held, least first (docs/router, cost function).
    fn cheapest(&mut self, replicas: &ReplicaSet, open: &[usize], request: &EngineRequest) -> Route {
        // Most engines have more than another one would have with the request: their caches are not searched.
        let least = u64::from(request.prompt - request.shared.min(request.prompt));
        let mut identities = BlockIdentities::default();
        let mut best: Option<(u64, Route)> = None;
        for target in [self.idlest(open)].into_iter().chain(self.targets(open)) {
            let order = |target: &RouteTarget| (target.replica, target.rank);
            let is_better = |cost: u64| {
                best.as_ref()
                    .is_none_or(|(lowest, route)| (cost, order(&target)) < (*lowest, order(&route.target)))
            };
            let RoutedWork { prefill, held } = self.work[self.firsts[target.replica] + target.rank];
            if !is_better(prefill + held + least) {
                continue;
            }
            let found = replicas[target.replica].engines()[target.rank].found(request, &mut identities);
            let new = request.prompt - found.min(request.prompt);
            let cost = prefill + held + u64::from(new);
            if is_better(cost) {
                best = Some((cost, Route { target, prefill: new, held: request.prompt }));
            }
        }
        let (_, route) = best.expect("a replica is open");
        let work = self.work_of(route.target);
        work.prefill += u64::from(route.prefill);
        work.held += u64::from(route.held);
        route
    }

    /// All engines of the replicas `open`.
    fn targets(&self, open: &[usize]) -> impl Iterator<Item = RouteTarget> {
        let ranks = |replica| (0..self.places(replica).len()).map(move |rank| RouteTarget { replica, rank });
        open.iter().flat_map(move |&replica| ranks(replica))
    }

    /// The first of the engines with the least work.
    fn idlest(&self, open: &[usize]) -> RouteTarget {
        let mut least = (u64::MAX, RouteTarget { replica: open[0], rank: 0 });
        for &replica in open {
            for (rank, work) in self.work[self.places(replica)].iter().enumerate() {
                if work.prefill + work.held < least.0 {
                    least = (work.prefill + work.held, RouteTarget { replica, rank });
                }
            }
        }
        least.1
    }

    /// The first token of a request has come.
    pub fn computed(&mut self, route: &mut Route) {
        self.work_of(route.target).prefill -= u64::from(std::mem::take(&mut route.prefill));
    }

    /// A request has left its engine.
    pub fn left(&mut self, route: &mut Route) {
        self.computed(route);
        self.work_of(route.target).held -= u64::from(std::mem::take(&mut route.held));
    }
}

/// The rank with the fewest requests of the replica with the fewest.
fn fewest(replicas: &ReplicaSet, open: &[usize]) -> RouteTarget {
    let replica = open.iter().copied().min_by_key(|&at| replicas.load(at)).expect("a replica is open");
    RouteTarget { replica, rank: replicas[replica].emptiest_rank() }
}
