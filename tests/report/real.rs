//! Real answers: the text tells every number of the JSON, parts add up to their wholes, what binds binds.

use mantile::report::number::{digits, gib_number, time};
use mantile::report::result::{Feasibility, MetricsReport, OptimizeResult};
use mantile::report::table::grouped;
use mantile::report::text;
use mantile::search::outcome::Status;
use mantile::spec::degree::Degrees;
use mantile::spec::deployment::Deployment;
use mantile::spec::scenario::Scenario;

use super::{estimate, optimize, plain, reads_well, scenario};

/// Feasible questions of different kinds: one device, two pools, experts, stated traffic, other aims.
pub fn feasible() -> Vec<Scenario> {
    let aim = |objective: &str, base: Scenario| Scenario { objective: Some(objective.into()), ..base };
    vec![
        scenario("Llama-3.1-8B", "1xh100"),
        scenario("Llama-3.1-8B", "2xh100"),
        scenario("gpt-oss-20b", "2xh100"),
        aim("latency", scenario("Llama-3.1-8B", "2xh100")),
        aim("perf-per-dollar", scenario("Llama-3.1-8B", "2xrtx-4090")),
        aim("min-chips", scenario("Qwen3-32B", "4xh100")),
        aim("perf-per-watt", scenario("Qwen3-8B", "2xh100")),
        aim("max-context", scenario("Llama-3.1-8B", "2xh100")),
        Scenario { concurrency: Some(16), ..scenario("Llama-3.1-8B", "2xh100") },
        Scenario { rate: Some(2.0), ..scenario("Llama-3.1-8B", "2xh100") },
    ]
}

fn shown(figures: &MetricsReport) -> Vec<String> {
    let optional = [figures.usd_per_mtok, figures.usd_per_mtok_total, figures.watts, figures.tok_per_joule];
    let always = [figures.output_tok_s, figures.output_tok_s_per_device, figures.output_tok_s_per_user];
    let times = [figures.ttft_ms, figures.tpot_ms, figures.e2e_ms].map(time);
    let numbers = always.into_iter().chain(optional.into_iter().flatten()).map(digits);
    times.into_iter().chain(numbers).chain([digits(figures.max_context_tokens)]).collect()
}

#[test]
fn the_text_shows_every_metric_and_fits_the_terminal() {
    for requested in feasible() {
        let answer = optimize(&requested);
        let text = plain(&text::table(&answer));
        reads_well(&text, 100);
        let best = answer.best.as_ref().unwrap();
        for figure in shown(best.metrics.as_ref().unwrap()) {
            assert!(text.contains(&figure), "{figure} is missing:\n{text}");
        }
        for title in ["Metrics", "Devices", "Memory per device", "Latency breakdown", "Bottlenecks", "Search"]
        {
            assert!(text.lines().any(|line| line.starts_with(title)), "{title} is missing:\n{text}");
        }
        let first = text.lines().next().unwrap();
        assert!(first.contains(&best.weight_format) && first.contains(&best.plan.decode.label), "{first}");
        assert_eq!(text, plain(&text::table(&optimize(&requested))), "the same each time");
    }
}

#[test]
fn devices_add_up_and_none_idles_silently() {
    for requested in feasible() {
        let answer = optimize(&requested);
        let best = answer.best.as_ref().unwrap();
        let prefill = &best.plan.prefill;
        let separate = if best.plan.mode == "disaggregated" { prefill.devices } else { 0 };
        let others: u64 = best.plan.others.iter().map(|pool| pool.devices).sum();
        let sum = separate + best.plan.decode.devices + others + best.idle_devices;
        assert_eq!(sum, answer.question.devices);
        let text = plain(&text::table(&answer));
        assert!(text.contains(&format!("{} = ", answer.question.devices)), "{text}");
        assert!(text.contains(&format!("+ {} idle", best.idle_devices)), "{text}");
        assert_eq!(text.contains("  idle: "), best.idle_devices > 0, "{text}");
    }
}

#[test]
fn memory_parts_add_up_and_are_shown() {
    for requested in feasible() {
        let answer = optimize(&requested);
        let text = plain(&text::table(&answer));
        let detail = answer.detail.as_ref().unwrap();
        let fullest = answer.best.as_ref().unwrap().memory.as_ref().unwrap();
        assert!(detail.pools.iter().any(|pool| pool.memory.total_bytes == fullest.total_bytes));
        for pool in &detail.pools {
            let m = &pool.memory;
            let parts = [m.weights_bytes, m.kv_cache_bytes, m.activations_bytes, m.buffers_bytes];
            let sum: f64 = parts.iter().sum();
            assert!((sum / m.total_bytes - 1.0).abs() < 1e-12);
            assert!((m.capacity_bytes * m.utilization / m.usable_bytes - 1.0).abs() < 1e-12);
            for bytes in
                parts.into_iter().chain([m.total_bytes, m.usable_bytes, m.usable_bytes - m.total_bytes])
            {
                assert!(text.contains(&gib_number(bytes)), "{bytes}:\n{text}");
            }
        }
    }
}

#[test]
fn shares_of_time_add_up_and_nothing_exceeds_light() {
    for requested in feasible() {
        let answer = optimize(&requested);
        let detail = answer.detail.as_ref().unwrap();
        for times in &detail.phases {
            let operators: f64 = times.operators.iter().map(|line| line.time_ms).sum();
            assert!((operators / times.operators_ms - 1.0).abs() < 1e-9);
            let classes = times.compute_ms + times.memory_ms + times.communication_ms + times.overhead_ms;
            assert!((classes / times.operators_ms - 1.0).abs() < 1e-9);
            for line in &times.operators {
                assert!(line.time_ms >= line.speed_of_light_ms * (1.0 - 1e-12), "{line:?}");
            }
        }
        let text = plain(&text::table(&answer));
        let from = text.find("Latency breakdown").unwrap();
        let to = from + text[from..].find("\n\n").unwrap();
        let phases = text[from..to].replace("\n  ", " ");
        let sums: Vec<u64> = phases
            .split(" = ")
            .skip(1)
            .map(|shares| {
                let shares = shares.split("operator").next().unwrap();
                let numbers = shares.split('+').filter_map(|share| share.trim().strip_suffix('%'));
                numbers.map(|share| share.split_whitespace().last().unwrap().parse::<u64>().unwrap()).sum()
            })
            .collect();
        assert_eq!(sums, [100, 100], "{phases}");
    }
}

#[test]
fn something_binds_every_optimum() {
    for requested in feasible() {
        let answer = optimize(&requested);
        assert_eq!(answer.status, Status::Optimal);
        let constraints = &answer.detail.as_ref().unwrap().constraints;
        assert!(constraints.iter().any(|constraint| constraint.binds), "{constraints:?}");
        let better = constraints.iter().any(|constraint| constraint.why.contains("improves the objective"));
        assert!(!better, "the optimum could be bettered: {constraints:?}");
    }
}

#[test]
fn the_front_is_drawn_with_every_kind_of_mark() {
    for requested in feasible() {
        let answer = optimize(&requested);
        let text = plain(&text::table(&answer));
        let from = text.find("Pareto front").unwrap();
        let drawn: Vec<&str> = text[from..].lines().filter(|line| line.contains(['│', '┤'])).collect();
        let field: String = drawn.iter().filter_map(|line| line.split(['│', '┤']).nth(1)).collect();
        let separate = answer.front.iter().filter(|point| point.plan.mode == "disaggregated").count();
        assert!(text.contains(&format!("x disaggregated ({})", grouped(separate as u64))), "{text}");
        assert!(field.contains('#'), "{text}");
        // A few may all lie under the answer's own mark; the rarer kind is on top otherwise.
        let (rarer, sign) = (
            separate.min(answer.front.len() - separate),
            if separate * 2 > answer.front.len() { 'o' } else { 'x' },
        );
        assert!(field.contains(sign) || rarer < 10, "{text}");
        assert!(!field.contains('x') || separate > 0, "{text}");
        assert!(!field.contains('o') || separate < answer.front.len(), "{text}");
        let noun = if answer.front.len() == 1 { "configuration" } else { "configurations" };
        assert!(text.contains(&format!("{} {noun} over", grouped(answer.front.len() as u64))), "{text}");
    }
}

fn infeasible(requested: &Scenario) -> (OptimizeResult, String) {
    let answer = optimize(requested);
    let text = plain(&text::table(&answer));
    reads_well(&text, 100);
    assert_eq!(answer.status, Status::Infeasible);
    assert!(text.starts_with("INFEASIBLE"), "{text}");
    assert!(!text.contains("Metrics"), "{text}");
    (answer, text)
}

#[test]
fn what_is_infeasible_says_so_with_numbers() {
    let (answer, text) = infeasible(&scenario("Llama-3.1-405B", "1xh100"));
    assert_eq!(answer.weights_need.len(), 2);
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for need in &answer.weights_need {
        let hold = |devices: u64| devices as f64 * need.usable_bytes_per_device;
        assert!(hold(need.least_devices) >= need.weights_bytes);
        assert!(hold(need.least_devices - 1) < need.weights_bytes);
        assert!(text.contains(&format!("at least {} devices needed", need.least_devices)), "{text}");
    }
    let long = Scenario { isl: Some(200_000), ..scenario("Llama-3.1-8B", "1xh100") };
    let (answer, text) = infeasible(&long);
    assert!(answer.weights_need.is_empty() && text.contains("131072"), "{text}");
}

#[test]
fn a_stated_deployment_that_cannot_run_has_no_metrics() {
    let stated = |degrees: Degrees, concurrency| Scenario {
        deployment: Some(Deployment { both: degrees, ..Deployment::default() }),
        concurrency: Some(concurrency),
        ..scenario("Llama-3.3-70B", "8xh100")
    };
    let cannot = |degrees, concurrency, feasibility| {
        let estimated = estimate(&stated(degrees, concurrency));
        let text = plain(&text::estimate(&estimated));
        reads_well(&text, 100);
        assert_eq!(estimated.candidate.feasibility, feasibility, "{text}");
        assert!(estimated.candidate.metrics.is_none() && !estimated.candidate.violations.is_empty());
        assert!(text.starts_with("CANNOT RUN"), "{text}");
        assert!(!text.contains("tok/s") && !text.contains("TTFT  "), "{text}");
        text
    };
    let degrees = |tp| Degrees { tp: Some(tp), ..Degrees::default() };
    let text = cannot(degrees(3), 8, Feasibility::Illegal);
    assert!(text.contains("64 mod tp 3 = 1"), "{text}");
    let text = cannot(degrees(1), 8, Feasibility::InsufficientMemory);
    assert!(text.contains("short (mostly weights)") && text.contains("SHORT BY"), "{text}");
    let text = cannot(degrees(8), 100_000, Feasibility::InsufficientMemory);
    assert!(text.contains("short (mostly KV cache)"), "{text}");
}

#[test]
fn a_prefill_pool_that_is_too_small_is_shown_separate() {
    let pools = Deployment {
        prefill: Degrees { tp: Some(1), ..Degrees::default() },
        decode: Degrees { tp: Some(4), ..Degrees::default() },
        ..Deployment::default()
    };
    let requested = Scenario { deployment: Some(pools), ..scenario("Llama-3.3-70B", "8xh100") };
    let estimated = estimate(&requested);
    assert_eq!(estimated.candidate.feasibility, Feasibility::InsufficientMemory);
    assert!(estimated.candidate.violations[0].starts_with("prefill pool: "), "{:?}", estimated.candidate);
}

#[test]
fn a_stated_deployment_that_breaks_a_limit_says_so_first() {
    let requested =
        Scenario { ttft: Some("1ms".into()), tpot: Some("1ms".into()), ..scenario("Llama-3.1-8B", "1xh100") };
    let requested = Scenario {
        deployment: Some(Deployment {
            both: Degrees { tp: Some(1), ..Degrees::default() },
            ..Deployment::default()
        }),
        concurrency: Some(4),
        ..requested
    };
    let estimated = estimate(&requested);
    let text = plain(&text::estimate(&estimated));
    reads_well(&text, 100);
    assert!(text.starts_with("SLO VIOLATED"), "{text}");
    assert_eq!(estimated.candidate.violations.len(), 2, "both limits are told");
    for figure in shown(estimated.candidate.metrics.as_ref().unwrap()) {
        assert!(text.contains(&figure), "{figure} is missing:\n{text}");
    }
    assert_eq!(text.matches("MISSED").count(), 2, "{text}");
}

#[test]
fn a_rate_beyond_what_is_carried_has_no_metrics() {
    let requested = |rate| Scenario {
        deployment: Some(Deployment {
            both: Degrees { tp: Some(1), ..Degrees::default() },
            ..Deployment::default()
        }),
        rate: Some(rate),
        ..scenario("Llama-3.1-8B", "1xh100")
    };
    let carried = estimate(&requested(1.0));
    assert!(carried.candidate.violations.is_empty(), "{:?}", carried.candidate.violations);
    let metrics = carried.candidate.metrics.as_ref().unwrap();
    let in_flight = metrics.e2e_ms / 1e3;
    assert!((in_flight - carried.candidate.concurrency).abs() <= 1.0, "the least load that carries it");
    let swamped = estimate(&requested(1000.0));
    let text = plain(&text::estimate(&swamped));
    assert!(swamped.candidate.metrics.is_none() && text.starts_with("CANNOT RUN"), "{text}");
    assert!(text.contains("1000.00 required") && !text.contains("tok/s"), "{text}");
}
