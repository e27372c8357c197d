//! How many copies of a system it takes: against the search, which looks at every load.

use mantile::search::point::place;
use mantile::search::problem::{Problem, Traffic};
use mantile::search::run::{UNWATCHED, run};
use mantile::search::sizing::size;
use mantile::spec::objective::{Direction, Metric, ObjectiveTerm};
use mantile::spec::offload::OffloadPolicy;
use mantile::spec::scenario::Scenario;
use mantile::store::catalog::Catalog;
use mantile::store::resolved_scenario::ResolvedScenario;

fn question(model: &str, hardware: &str, tpot: &str) -> Problem {
    let scenario = Scenario {
        model: Some(model.into()),
        hardware: Some(hardware.into()),
        objective: Some("throughput".into()),
        tpot: Some(tpot.into()),
        offload: Some(OffloadPolicy::Never),
        ..Scenario::default()
    };
    let mut problem = ResolvedScenario::resolve(&Catalog::default(), &scenario).unwrap().problem().unwrap();
    problem.split = false;
    problem.axes.clear();
    problem.objective = vec![ObjectiveTerm { metric: Metric::OutputTokS, direction: Direction::Maximize }];
    problem
}

/// The search's best with so many requests in flight.
fn searched(problem: &Problem, users: u64) -> Option<f64> {
    let mut requested = problem.clone();
    requested.traffic = Traffic::InFlight(users.into());
    // Of like instances that prefill and decode.
    requested.split = false;
    let outcome = run(&requested, &UNWATCHED);
    let alike = outcome.best.into_iter().chain(outcome.alternatives).chain(outcome.front);
    let alike = alike.filter(|found| found.candidate.pools.len() == 1);
    alike.map(|found| found.point[place(Metric::E2e)]).reduce(f64::min)
}

#[test]
fn the_search_finds_nothing_quicker_and_nothing_that_carries_more() {
    for (model, hardware, tpot, users) in [
        ("Llama-3.1-8B", "1xh100", "20 ms", 300),
        ("Llama-3.1-8B", "2xrtx-4090", "40 ms", 9),
        ("Llama-3.3-70B", "dgx-h100", "30 ms", 40),
        ("gpt-oss-120b", "4xh100", "15 ms", 7),
        ("Qwen3-30B-A3B", "mac-studio-m3-ultra-x2", "50 ms", 4),
        ("DeepSeek-V3", "8xh200", "50 ms", 900),
    ] {
        let problem = question(model, hardware, tpot);
        let sized =
            size(&problem, users).unwrap_or_else(|unfit| panic!("{model} on {hardware}: {}", unfit.reason));
        let sized = sized.at_full_load(&problem);
        let name = format!("{model} on {hardware}: {} copies of {}", sized.copies, sized.full_users);
        assert_eq!(sized.share, users.div_ceil(sized.copies), "{name}");
        assert!(sized.share <= sized.full_users, "{name}");
        assert!(sized.copies == 1 || users.div_ceil(sized.copies - 1) > sized.full_users, "{name}");
        if sized.at_share.candidate.pools.len() == 1 {
            let quickest = searched(&problem, sized.share).unwrap();
            let ours = sized.at_share.point[place(Metric::E2e)];
            assert!(ours <= quickest * (1.0 + 1e-9), "{name}: {ours} s, the search {quickest} s");
            assert!(searched(&problem, sized.full_users).is_some(), "{name}");
            assert!(searched(&problem, sized.full_users + 1).is_none(), "{name}");
        }
        let free = run(&problem, &UNWATCHED).best.unwrap().point[place(Metric::OutputTokS)];
        let full = sized.full.point[place(Metric::OutputTokS)];
        assert!((full / free - 1.0).abs() < 1e-9, "{name}: {full} tok/s, the search {free} tok/s");
    }
}

#[test]
fn what_cannot_serve_says_by_what() {
    let tight = size(&question("Llama-3.3-70B", "dgx-h100", "1 ms"), 1).err().unwrap();
    assert_eq!((tight.kind.as_str(), tight.nearest.is_some()), ("tpot", true), "{}", tight.reason);
    let large = size(&question("Llama-3.3-70B", "1xh100", "50 ms"), 1).err().unwrap();
    assert_eq!(large.kind, "out_of_memory");
    assert!(large.reason.contains("short"), "{}", large.reason);
}
