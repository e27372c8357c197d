//! Laws of sessions: no turn before the answer that it follows, no token lost, and a cache that is large enough finds all
//! that came before.

use std::collections::HashMap;

use fastrand::Rng;
use mantile::traffic::content::TokenRun;
use mantile::traffic::engine::{EngineRequest, SchedulerSettings};
use mantile::traffic::outcome::RequestRecord;
use mantile::traffic::router::RoutePolicy;
use mantile::traffic::run::{DeploymentSettings, RunTotals};
use mantile::traffic::session::{DrawnSessions, Session, SessionTurn, TurnLink};
use mantile::traffic::sglang::SglangSettings;
use mantile::traffic::source::{Arrivals, DrawnTraffic, LengthDistribution, RequestSource, played};
use mantile::traffic::trtllm::TrtllmSettings;
use mantile::traffic::vllm::VllmSettings;
use proptest::prelude::*;
use proptest::sample::select;

use crate::traffic::{
    AMPLE, AMPLE_SGLANG, AMPLE_TRTLLM, arrivals, clock, equal_replicas, lengths, mean, records,
};

/// The settings of each scheduler with a cache of this many tokens.
fn schedulers(cache_tokens: u32) -> [SchedulerSettings; 3] {
    let sglang = SglangSettings { cache_tokens, ..AMPLE_SGLANG };
    let trtllm = TrtllmSettings { blocks: cache_tokens / 32, partial_reuse: false, ..AMPLE_TRTLLM };
    let vllm = VllmSettings { blocks: cache_tokens / AMPLE.block_tokens, ..AMPLE };
    [SchedulerSettings::Vllm(vllm), SchedulerSettings::Sglang(sglang), SchedulerSettings::Trtllm(trtllm)]
}

fn run_of(scheduler: SchedulerSettings, source: RequestSource) -> (RunTotals, Vec<RequestRecord>) {
    records(&equal_replicas(scheduler, 1, 1), source, &clock)
}

fn agents(clients: u64, requests: u64) -> DrawnTraffic {
    DrawnTraffic {
        arrivals: Arrivals::Clients(clients),
        requests,
        prompt: LengthDistribution::Fixed(2000),
        output: LengthDistribution::LogNormal { mean: 80.0, variation: 0.8 },
        prefix: 0,
        prefix_groups: 1,
        distinct_prompts: 0,
        sessions: Some(DrawnSessions {
            turns: 10.0,
            turns_variation: 0.5,
            new: LengthDistribution::LogNormal { mean: 300.0, variation: 1.0 },
            think_s: 1.5,
            think_variation: 0.0,
        }),
        seed: 3,
    }
}

fn traffic() -> impl Strategy<Value = DrawnTraffic> {
    let arrivals = arrivals(vec![0.0, 1.0, 2.5], 20);
    let turns =
        (1.0f64..12.0, select(vec![0.0, 0.5, 2.0]), lengths(300), 0.0f64..3.0, select(vec![0.0, 1.0]));
    let sessions = turns.prop_map(|(turns, turns_variation, new, think_s, think_variation)| DrawnSessions {
        turns,
        turns_variation,
        new,
        think_s,
        think_variation,
    });
    (arrivals, 20u64..150, lengths(900), lengths(200), 0u32..300, 0u64..20, sessions, any::<u64>()).prop_map(
        |(arrivals, requests, prompt, output, prefix, distinct_prompts, sessions, seed)| DrawnTraffic {
            arrivals,
            requests,
            prompt,
            output,
            prefix,
            prefix_groups: 2,
            distinct_prompts,
            sessions: Some(sessions),
            seed,
        },
    )
}

/// All requests of a source with their times, where each is answered after a random time.
fn answered(mut source: RequestSource, seed: u64) -> Vec<(f64, EngineRequest, f64)> {
    let mut rng = Rng::with_seed(seed);
    let (mut under_way, mut all): (Vec<(f64, u64)>, _) = (vec![], vec![]);
    loop {
        let ends = under_way.iter().enumerate().min_by(|a, b| a.1.0.total_cmp(&b.1.0));
        let ends = ends.map(|(at, &(end, id))| (at, end, id));
        match (source.next_s(), ends) {
            (Some(time), ends) if ends.is_none_or(|(_, end, _)| time <= end) => {
                let Some(arrival) = source.take() else { continue };
                let end = arrival.time_s + 0.01 + rng.f64() * 4.0;
                under_way.push((end, arrival.request.id));
                all.push((arrival.time_s, arrival.request, end));
            }
            (_, Some((at, end, id))) => {
                under_way.swap_remove(at);
                source.answered(id, end);
            }
            (_, None) => return all,
        }
    }
}

proptest! {
    /// Law 1: a turn is sent after the answer before it, with all of that as its beginning; a client has one session at a
    /// time; requests are numbered in order; what a session sends does not depend on when it is answered.
    #[test]
    fn turns_follow_answers(traffic in traffic(), seed in any::<u64>()) {
        let all = answered(RequestSource::new(traffic.clone()), seed);
        prop_assert_eq!(all.len() as u64, traffic.requests);
        let sessions = traffic.sessions.clone().unwrap();
        let mut before: HashMap<u64, (EngineRequest, f64)> = HashMap::new();
        for (at, (time, request, end)) in all.iter().enumerate() {
            prop_assert_eq!(request.id, at as u64);
            let tokens: u64 = request.runs.iter().map(|run| u64::from(run.tokens)).sum();
            prop_assert_eq!(tokens, u64::from(request.prompt) + u64::from(request.output));
            if let Some((last, answer)) = before.get(&request.session) {
                let think = if sessions.think_variation == 0.0 { sessions.think_s } else { 0.0 };
                prop_assert!(*time >= answer + think);
                prop_assert!(sessions.think_variation > 0.0 || *time <= answer + think + 1e-9);
                prop_assert_eq!(&request.runs[..last.runs.len()], &last.runs[..]);
                prop_assert!(request.prompt > last.prompt + last.output);
            }
            before.insert(request.session, (request.clone(), *end));
        }
        if let Arrivals::Clients(clients) = traffic.arrivals {
            // The sessions that run at a time: those between their first request and their last answer.
            let spans: Vec<(f64, f64)> = before.keys().map(|session| {
                let of = || all.iter().filter(|(_, request, _)| request.session == *session);
                (of().map(|one| one.0).fold(f64::INFINITY, f64::min), of().map(|one| one.2).fold(0.0, f64::max))
            }).collect();
            for (start, _) in &spans {
                let others = spans.iter().filter(|(from, to)| from <= start && start < to).count();
                prop_assert!(others as u64 <= clients);
            }
        }
        let again = answered(RequestSource::new(traffic), seed.wrapping_add(1));
        let lengths = |all: &[(f64, EngineRequest, f64)]| {
            let mut of: HashMap<u64, Vec<(u32, u32)>> = HashMap::new();
            all.iter().for_each(|(_, one, _)| of.entry(one.session).or_default().push((one.prompt, one.output)));
            of
        };
        let (one, other) = (lengths(&all), lengths(&again));
        for (session, lengths) in one {
            let others = other.get(&session).cloned().unwrap_or_default();
            let both = lengths.len().min(others.len());
            prop_assert_eq!(&lengths[..both], &others[..both]);
        }
    }

    /// Law 2: requests and tokens of sessions are conserved, with caches that are too small too; no cache finds more than
    /// one without limits; equal seeds give equal runs, bit for bit.
    #[test]
    fn nothing_of_a_session_is_lost(traffic in traffic(), which in 0usize..3, cache in 1500u32..40_000) {
        let [one, other] = [0, 1].map(|_| run_of(schedulers(cache)[which].clone(), RequestSource::new(traffic.clone())));
        prop_assert_eq!(&one.1, &other.1);
        prop_assert_eq!(&one.0, &other.0);
        let (totals, all) = one;
        prop_assert_eq!(totals.answered + totals.refused, traffic.requests);
        let sum = |of: fn(&RequestRecord) -> u32| all.iter().map(|one| u64::from(of(one))).sum::<u64>();
        prop_assert_eq!(totals.output_tokens, sum(|one| one.output));
        prop_assert_eq!(totals.prompt_tokens, sum(|one| one.prompt));
        // TensorRT-LLM finds the last block of a prompt too where it is not full, as a whole.
        let last_blocks = if which == 2 { 31 * totals.answered } else { 0 };
        prop_assert!(totals.cached_tokens <= totals.reusable_tokens + last_blocks);
        prop_assert!(totals.reusable_tokens <= totals.prompt_tokens);
        prop_assert!(totals.sessions.cut <= totals.sessions.started && totals.sessions.cut >= totals.refused.min(1));
    }
}

/// Sessions of other clients do not matter to a cache that holds them all.
#[test]
fn a_large_cache_finds_what_one_without_limits_does() {
    for (at, scheduler) in schedulers(40_000_000).into_iter().enumerate() {
        let (totals, all) = run_of(scheduler, RequestSource::new(agents(12, 600)));
        assert!(
            totals.reusable_tokens * 10 > totals.prompt_tokens * 7,
            "scheduler {at}: sessions share most"
        );
        assert_eq!(totals.cached_tokens, totals.reusable_tokens, "scheduler {at}");
        assert_eq!(all.len(), 600);
    }
}

/// Less cache than the sessions need: what was found is evicted before its next turn, and prompts are computed again.
#[test]
fn a_cache_below_the_working_set_is_a_cliff() {
    for at in 0..3 {
        let figures = [2_000_000, 60_000, 12_000].map(|cache| {
            let (totals, all) = run_of(schedulers(cache)[at].clone(), RequestSource::new(agents(16, 800)));
            let hits = totals.cached_tokens as f64 / totals.reusable_tokens as f64;
            (hits, mean(all.iter().map(RequestRecord::ttft_s)))
        });
        let [(all, fast), (some, slower), (few, slowest)] = figures;
        assert!(all > 0.99 && some < 0.9 * all && few < 0.6 * some, "scheduler {at}: hits {figures:?}");
        assert!(slower > 1.2 * fast && slowest > 1.2 * slower, "scheduler {at}: TTFT {figures:?}");
    }
}

/// Sessions start at a rate by which requests come at the stated one, once as many end as start.
#[test]
fn requests_of_sessions_come_at_the_rate() {
    let arrivals = Arrivals::Rate { per_s: 8.0, variation: 1.0 };
    let all = answered(RequestSource::new(DrawnTraffic { arrivals, ..agents(1, 40_000) }), 1);
    let later = &all[10_000..];
    let found = later.len() as f64 / (later.last().unwrap().0 - later[0].0);
    assert!((found / 8.0 - 1.0).abs() < 0.05, "{found}");
}

/// The first turns are the requests that come without sessions.
#[test]
fn first_turns_are_the_single_requests() {
    let traffic = agents(5, 400);
    let first = |traffic: DrawnTraffic| {
        let all = answered(RequestSource::new(traffic), 4);
        let mut of: HashMap<u64, Vec<TokenRun>> = HashMap::new();
        for (_, one, _) in all {
            of.entry(one.session).or_insert(one.runs);
        }
        of
    };
    let single = first(DrawnTraffic { sessions: None, ..traffic.clone() });
    let sessions = first(traffic);
    assert!(sessions.len() > 20);
    sessions.iter().for_each(|(number, runs)| assert_eq!(single[number], *runs));
}

/// The session that outgrows the model's window, or the cache, ends there, and its client starts the next one.
#[test]
fn a_session_ends_where_its_context_does() {
    let source = RequestSource::new(agents(4, 400)).within(4000);
    let (totals, all) = run_of(schedulers(2_000_000)[0].clone(), source);
    assert!(totals.sessions.cut > 20 && totals.refused == 0, "{:?}", totals.sessions);
    assert!(all.iter().all(|one| one.prompt + one.output <= 4000) && all.len() == 400);
    let (totals, _) = run_of(schedulers(4000)[0].clone(), RequestSource::new(agents(4, 400)));
    assert_eq!(totals.answered + totals.refused, 400);
    assert!(totals.refused > 20);
    assert_eq!(totals.sessions.cut, totals.refused);
}

fn listed(waits: &[(f64, f64)]) -> Vec<Session> {
    let turn = |session: u64, at: usize, wait_s: f64| {
        let run = |id, tokens| TokenRun { id, tokens };
        SessionTurn {
            new: vec![run(100 * session, 500), run(100 * session + 1, 40 * at as u32)],
            continues: false,
            output: run(100 * session + 2 + at as u64, 30),
            after: (at > 0)
                .then(|| TurnLink { turn: at - 1, of_sending: false, wait_s })
                .into_iter()
                .collect(),
            start_s: 0.0,
        }
    };
    let session = |(number, &(start_s, wait_s)): (usize, &(f64, f64))| {
        let turns = (0..4).map(|at| turn(number as u64, at, wait_s)).collect();
        Session { start_s, turns }
    };
    waits.iter().enumerate().map(session).collect()
}

/// One client plays the sessions of a trace: the run is the sum of their turns and of what lies between these.
#[test]
fn one_client_plays_turns_in_order() {
    let sessions = listed(&[(0.0, 0.5), (0.1, 2.0), (7.0, 0.0)]);
    for scheduler in schedulers(2_000_000) {
        let (totals, all) = run_of(scheduler.clone(), played(sessions.clone(), Some(1)).pausing(0.25));
        let waits: f64 = sessions
            .iter()
            .flat_map(|one| &one.turns)
            .flat_map(|turn| &turn.after)
            .map(|link| link.wait_s)
            .sum();
        let served: f64 = all.iter().map(RequestRecord::e2e_s).sum();
        assert_eq!((all.len(), totals.sessions.started), (12, 3));
        assert!((totals.end_s - (served + waits + 11.0 * 0.25)).abs() < 1e-6, "{}", totals.end_s);
        assert!(all.windows(2).all(|two| two[0].last_token_s < two[1].arrived_s && two[0].id < two[1].id));
        // At their own times, they overlap.
        let (_, all) = run_of(scheduler, played(sessions.clone(), None));
        assert!(all.iter().any(|one| all.iter().any(|other| other.id != one.id
            && other.arrived_s < one.last_token_s
            && one.arrived_s < other.last_token_s)));
        for start in [0.0, 0.1, 7.0] {
            assert!(all.iter().any(|one| one.arrived_s == start));
        }
    }
}

/// Turns find what their rank has cached only where a router sends them there.
#[test]
fn a_router_that_knows_sessions_or_prefixes_finds_their_caches() {
    for scheduler in schedulers(200_000) {
        let hits = |router: RoutePolicy| {
            let settings = DeploymentSettings { router, ..equal_replicas(scheduler.clone(), 2, 2) };
            let (totals, _) = records(&settings, RequestSource::new(agents(12, 600)), &clock);
            assert_eq!(totals.answered, 600);
            totals.cached_tokens as f64 / totals.reusable_tokens as f64
        };
        let [turns, random] = [RoutePolicy::RoundRobin, RoutePolicy::Random].map(hits);
        let session = hits(RoutePolicy::Session);
        assert!(session > 0.95, "{scheduler:?}: {session}");
        // This one also spreads the load.
        let prefix = hits(RoutePolicy::Prefix);
        assert!(prefix > turns + 0.1 && prefix > random + 0.1, "{turns} and {random} for {prefix}");
    }
}
