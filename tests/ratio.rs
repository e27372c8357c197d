//! Mixes of unlike workers: what the dynamic program finds is what trying every mix and the integer program find.

use mantile::report::answer::optimize_result;
use mantile::report::ratio::SplitAdvice;
use mantile::report::text::table;
use mantile::request::verify::optimize::OptimizeRerun;
use mantile::request::verify::{RandomSample, Rerun};
use mantile::search::fills::chains;
use mantile::search::mip::SHARE;
use mantile::search::mip::solve::{SolveBudget, solve};
use mantile::search::outcome::Status;
use mantile::search::point::place;
use mantile::search::problem::Problem;
use mantile::search::ratio::{Goal, Roles, Worker, WorkerMix, best, best_pair, check, one_each, program};
use mantile::search::run::{UNWATCHED, run};
use mantile::spec::objective::Metric;
use mantile::spec::percentile::Confidence;
use mantile::spec::scenario::Scenario;
use mantile::store::catalog::Catalog;
use mantile::store::resolved_scenario::ResolvedScenario;
use proptest::prelude::*;

fn workers(most: usize) -> impl Strategy<Value = Vec<Worker>> {
    let worker = (1u64..=6, 1u32..=200, 1u32..=200).prop_map(|(devices, works, carries)| Worker {
        devices,
        works: works.into(),
        carries: carries.into(),
    });
    prop::collection::vec(worker, 0..=most)
}

fn roles() -> impl Strategy<Value = Roles> {
    (workers(3), workers(3), workers(2)).prop_map(|(prompts, answers, both)| Roles {
        prefill: prompts,
        decode: answers,
        aggregated: both,
    })
}

/// Every mix there is room for: requests per second, and devices.
fn every(roles: &Roles, devices: u64) -> Vec<(f64, u64)> {
    let kinds = [&roles.prefill, &roles.decode, &roles.aggregated];
    let all: Vec<(usize, &Worker)> =
        kinds.iter().enumerate().flat_map(|(kind, workers)| workers.iter().map(move |w| (kind, w))).collect();
    let mut mixes = vec![([0.0; 3], 0)];
    for (kind, worker) in all {
        let more = mixes.into_iter().flat_map(|(rates, used): ([f64; 3], u64)| {
            (0..=(devices - used) / worker.devices).map(move |count| {
                let mut rates = rates;
                rates[kind] += count as f64 * worker.works.min(worker.carries);
                (rates, used + count * worker.devices)
            })
        });
        mixes = more.collect();
    }
    mixes.into_iter().map(|(rates, used)| (rates[0].min(rates[1]) + rates[2], used)).collect()
}

fn worth(goal: Goal, (rate, used): (f64, u64)) -> f64 {
    match goal {
        Goal::Total => rate,
        Goal::PerDevice => rate / used.max(1) as f64,
    }
}

fn found(roles: &Roles, devices: u64, goal: Goal) -> (f64, Option<WorkerMix>) {
    let mix = best(roles, devices, goal);
    (mix.as_ref().map_or(0.0, |mix| mix.value(goal)), mix)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn the_dynamic_programme_is_what_trying_every_mix_finds(roles in roles(), devices in 1u64..=10) {
        let all = every(&roles, devices);
        for goal in [Goal::Total, Goal::PerDevice] {
            let brute = all.iter().map(|mix| worth(goal, *mix)).fold(0.0, f64::max);
            let (value, mix) = found(&roles, devices, goal);
            prop_assert!((value - brute).abs() <= 1e-9 * brute, "{goal:?}: {value}, but {brute} by trying all");
            if let Some(mix) = mix {
                prop_assert!(mix.devices <= devices);
                check(&roles, devices, &mix).map_err(TestCaseError::fail)?;
                // It is a mix that was tried.
                prop_assert!(all.iter().any(|(rate, used)| (rate - mix.rate).abs() < 1e-9 && *used == mix.devices));
            }
        }
        // One shape each is a mix too.
        let alone = Roles { aggregated: vec![], ..roles.clone() };
        let one = one_each(&roles, devices);
        prop_assert!(one <= found(&alone, devices, Goal::Total).0 + 1e-9);
        for goal in [Goal::Total, Goal::PerDevice] {
            let of = |p: usize, d: usize| {
                let pair = Roles { prefill: vec![roles.prefill[p]], decode: vec![roles.decode[d]], aggregated: vec![] };
                found(&pair, devices, goal).0
            };
            let pairs = (0..roles.prefill.len()).flat_map(|p| (0..roles.decode.len()).map(move |d| (p, d)));
            let brute = pairs.map(|(p, d)| of(p, d)).fold(0.0, f64::max);
            let pair = best_pair(&roles, devices, goal);
            let value = pair.as_ref().map_or(0.0, |mix| mix.value(goal));
            prop_assert!((value - brute).abs() <= 1e-9 * brute, "{goal:?}: {value}, but {brute} by trying all");
            if let Some(mix) = pair {
                check(&roles, devices, &mix).map_err(TestCaseError::fail)?;
            }
        }
    }

    #[test]
    fn the_integer_programme_agrees(roles in roles(), devices in 1u64..=12) {
        let (value, mix) = found(&roles, devices, Goal::Total);
        let none = WorkerMix {
            prefill: vec![0; roles.prefill.len()],
            decode: vec![0; roles.decode.len()],
            aggregated: vec![0; roles.aggregated.len()],
            ..WorkerMix::default()
        };
        let mix = mix.unwrap_or(none);
        let (program, point) = program(&roles, devices, 1.0, &mix);
        prop_assert!(program.check(&point).is_ok(), "{:?}", program.check(&point));
        let own = -program.objective(&point) / SHARE;
        let solved = solve(&program, &SolveBudget::default());
        prop_assert_eq!(solved.status, Status::Optimal, "{:?}", solved.doubts);
        prop_assert_eq!(-solved.objective.unwrap(), own as f64);
        prop_assert_eq!(value, own as f64);
    }

    #[test]
    fn one_more_device_is_never_worse(roles in roles(), devices in 1u64..=40) {
        let (less, more) = (found(&roles, devices, Goal::Total).0, found(&roles, devices + 1, Goal::Total).0);
        prop_assert!(more >= less, "{more} on {} devices, {less} on {devices}", devices + 1);
        let per = |devices| found(&roles, devices, Goal::PerDevice).0;
        prop_assert!(per(devices + 1) >= per(devices));
    }

    #[test]
    fn sizes_that_may_stand_side_by_side_fill_their_domains(
        sizes in prop::collection::btree_set(1u64..=48, 1..6), domain in 1u64..=24, counts in prop::collection::vec(0u64..5, 6),
    ) {
        let sizes: Vec<u64> = sizes.into_iter().collect();
        let domains = 4;
        for chain in chains(&sizes, domain, domains) {
            // The larger first, each where there is room.
            let mut headroom = vec![domain; domains as usize];
            let mut left: u64 = headroom.iter().sum();
            let wanted = chain.iter().zip(&counts).rev();
            for (size, count) in wanted {
                for _ in 0..(*count).min(left / size) {
                    left -= size;
                    if *size > domain {
                        let empty: Vec<usize> = (0..headroom.len()).filter(|at| headroom[*at] == domain).collect();
                        prop_assert!(empty.len() as u64 >= size / domain, "{size} of {chain:?}");
                        empty.iter().take((size / domain) as usize).for_each(|at| headroom[*at] = 0);
                    } else {
                        let place = headroom.iter().position(|headroom| headroom >= size);
                        prop_assert!(place.is_some(), "{size} of {chain:?} has no place in {headroom:?}");
                        headroom[place.unwrap()] -= size;
                    }
                }
            }
        }
    }
}

#[test]
fn leftover_devices_are_used_and_unlike_prompt_workers_match_the_answers() {
    let worker = |devices, rate: f64| Worker { devices, works: rate, carries: f64::INFINITY };
    // A decode worker of four keeps up with one and a half prompt workers of two.
    let mut roles = Roles {
        prefill: vec![worker(2, 4.0), worker(1, 1.5)],
        decode: vec![worker(4, 5.5)],
        aggregated: vec![],
    };
    assert_eq!(one_each(&roles, 7), 4.5);
    let mix = best(&roles, 7, Goal::Total).unwrap();
    assert_eq!((mix.prefill, mix.decode, mix.rate, mix.devices), (vec![1, 1], vec![1], 5.5, 7));
    // With room for one more, an instance that does both takes it.
    roles.aggregated.push(worker(1, 0.5));
    let mix = best(&roles, 8, Goal::Total).unwrap();
    assert_eq!((mix.aggregated, mix.disaggregated_rate, mix.rate), (vec![1], 5.5, 6.0));
    // Where those that do both are good enough nothing is split.
    roles.aggregated[0] = worker(1, 0.8);
    assert_eq!(best(&roles, 8, Goal::Total).unwrap().disaggregated_rate, 0.0);
    // A link that carries little holds a worker back, and its row says so.
    roles.prefill[0].carries = 1.0;
    roles.aggregated.clear();
    let slow = best(&roles, 7, Goal::Total).unwrap();
    assert_eq!((slow.prefill.clone(), slow.rate), (vec![0, 3], 4.5));
    let forced = WorkerMix { prefill: vec![1, 1], decode: vec![1], rate: 5.5, ..slow };
    assert!(check(&roles, 7, &forced).is_err());
}

fn posed(model: &str, hardware: &str) -> (ResolvedScenario, Problem) {
    let scenario =
        Scenario { model: Some(model.into()), hardware: Some(hardware.into()), ..Scenario::default() };
    let resolved = ResolvedScenario::resolve(&Catalog::default(), &scenario).unwrap();
    let problem = resolved.problem().unwrap().at_confidence(Confidence::Median);
    (resolved, problem)
}

/// Five devices, of which prompts and answers fill four: the fifth does both, and the answer says what that is worth.
#[test]
fn what_is_left_does_both_and_the_answer_verifies() {
    let (resolved, mut problem) = posed("Llama-3.3-70B", "5xh200-sxm");
    problem.custom_router = true;
    let outcome = run(&problem, &UNWATCHED);
    let best = outcome.best.as_ref().unwrap();
    let ratio = outcome.ratio.as_ref().unwrap();
    let output =
        |found: &mantile::search::outcome::EvaluatedCandidate| found.point[place(Metric::OutputTokS)];
    let split = ratio.disaggregated.as_ref().unwrap();
    assert!(output(best) > 1.05 * output(split), "{} against {}", output(best), output(split));
    assert!((ratio.one_shape_each.unwrap() - output(split)).abs() < 1e-6 * output(split));
    assert!(ratio.rows_checked > 0 && best.candidate.devices() == 5);
    let requested = || mantile::request::inputs::report_inputs(&resolved, &problem);
    let shown = optimize_result(&problem, requested(), &outcome, None, usize::MAX.into());
    assert_eq!(shown.split_ratio.as_ref().unwrap().verdict, SplitAdvice::SplitWithBoth);
    let text = table(&shown).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("aggregated (") && text.contains("leftover devices serve aggregated"), "{text}");
    let mut saved = serde_json::to_value(&shown).unwrap();
    let again = OptimizeRerun { problem, fresh: shown };
    let checked = |saved: &_, count| again.check(saved, RandomSample { count, seed: 1 }).unwrap();
    let verified = checked(&saved, 200);
    assert!(verified.holds, "{:#?}", verified.checks);
    // A mix whose numbers were touched is found out.
    let replicas = saved.pointer_mut("/best/plan/others/0/replicas").unwrap();
    *replicas = 2.into();
    assert!(!checked(&saved, 0).holds);
}

#[test]
fn more_devices_never_yield_less_of_a_real_model() {
    for router in [false, true] {
        let yields = (2..=6).map(|devices| {
            let (_, mut problem) = posed("Llama-3.3-70B", &format!("{devices}xh200-sxm"));
            problem.axes.clear();
            problem.custom_router = router;
            run(&problem, &UNWATCHED).best.map_or(0.0, |best| best.point[place(Metric::OutputTokS)])
        });
        let yields: Vec<f64> = yields.collect();
        assert!(yields.windows(2).all(|pair| pair[1] >= pair[0]), "{router}: {yields:?}");
    }
}
