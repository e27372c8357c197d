//! The layout of an answer, on one made by hand: its figures are round and stand for nothing, so that no fitted
//! constant moves them.

use mantile::plan::parallel::ParallelPlan;
use mantile::spec::role::Role;
use std::collections::BTreeMap;

use mantile::plan::infeasible::RejectionCount;
use mantile::plan::parallel::Phase;
use mantile::quantity::datum::Grade;
use mantile::report::audit::{AuditSection, AuditedInput};
use mantile::report::breakdown::{Class, Module, OperatorLine};
use mantile::report::constraint::{Constraint, Resource};
use mantile::report::detail::{DeploymentDetail, LevelLoad, PhaseTime, PoolMemory};
use mantile::report::inputs::ReportInputs;
use mantile::report::pool::PoolReport;
use mantile::report::proof::Proof;
use mantile::report::result::{
    Feasibility, LowerFormat, MemoryReport, MetricsReport, OptimizeResult, Plan, ReportedDeployment,
};
use mantile::report::shard::{Shard, ShardDimension};
use mantile::report::space::Space;
use mantile::report::svg::deployment::optimize_picture;
use mantile::report::svg::palette::SvgTheme;
use mantile::report::text;
use mantile::search::outcome::{Census, Status};
use mantile::spec::format::Quality;
use mantile::spec::objective::{Direction, LatencyLimits, Metric, ObjectiveTerm};
use mantile::spec::percentile::Confidence;
use mantile::spec::price::PriceBasis;

use super::{plain, reads_well};

const GIB: f64 = 1_073_741_824.0;

fn pool(role: Role, (tp, pp): (u64, u64), replicas: u64, label: &str) -> PoolReport {
    PoolReport {
        role,
        label: label.into(),
        plan: ParallelPlan { tp, pp, ..ParallelPlan::SINGLE }.without_experts(),
        stages: vec![16; pp as usize],
        replicas,
        devices: tp * pp * replicas,
        concurrency_per_replica: 40,
    }
}

fn memory(weights: f64) -> MemoryReport {
    MemoryReport {
        weights_bytes: weights * GIB,
        kv_cache_bytes: 20.0 * GIB,
        activations_bytes: 2.0 * GIB,
        buffers_bytes: GIB,
        interval: None,
        total_bytes: (weights + 23.0) * GIB,
        usable_bytes: 72.0 * GIB,
        capacity_bytes: 80.0 * GIB,
        utilization: 0.9,
        offloaded_bytes: 0.0,
        offloaded_interval: None,
        host_bytes: 0.0,
        least_host_bytes: 0.0,
    }
}

/// Two prefill instances of pp2 and a decode instance of tp2, one of seven devices idle; or three of tp2.
fn candidate(separate: bool, speed: f64) -> ReportedDeployment {
    let (front, back) = (pool(Role::Prefill, (1, 2), 2, "pp2"), pool(Role::Decode, (2, 1), 1, "tp2"));
    let both = pool(Role::Aggregated, (2, 1), 3, "tp2");
    let (mode, label) = if separate {
        ("disaggregated", "prefill 2 x pp2, decode 1 x tp2")
    } else {
        ("aggregated", "3 x tp2")
    };
    let (prefill, decode) = if separate { (front, back) } else { (both.clone(), both) };
    ReportedDeployment {
        plan: Plan { mode: mode.into(), label: label.into(), prefill, decode, others: vec![] },
        notation: format!("{label}, weights fp8, kv bf16"),
        weight_format: "fp8".into(),
        prefill_weight_format: None,
        kv_format: "bf16".into(),
        concurrency: if separate { 40.0 } else { 120.0 },
        devices: 6,
        idle_devices: 1,
        feasibility: Feasibility::InVram,
        violations: vec![],
        memory: Some(memory(30.0)),
        bottleneck: Some("memory".into()),
        metrics: Some(MetricsReport {
            ttft_ms: if separate { 400.0 } else { 250.0 },
            tpot_ms: 20.0 / speed,
            e2e_ms: 10_220.0 / speed,
            output_tok_s: 6000.0 * speed,
            output_tok_s_per_device: 1000.0 * speed,
            output_tok_s_per_user: 50.0 * speed,
            requests_per_s: 6000.0 * speed / 512.0,
            usd_per_hour: Some(0.75 * 6000.0 * 3600.0 / 1e6),
            usd_per_mtok: Some(0.75 / speed),
            usd_per_mtok_total: Some(0.15 / speed),
            usd_per_day: Some(0.75 * 6000.0 * 3600.0 / 1e6 * 24.0),
            usd_per_month: Some(0.75 * 6000.0 * 3600.0 / 1e6 * 24.0 * 30.436875),
            tok_per_usd: Some(1e6 / 0.75 * speed),
            watts: Some(3000.0),
            facility_watts: None,
            tok_per_joule: Some(2.0 * speed),
            max_context_tokens: 12_345.0,
        }),
        intervals: None,
        context_bound: None,
        capacity: None,
        slo_odds: None,
        evidence: None,
        price_bounds: None,
        chosen: false,
    }
}

fn phase(phase: Phase, scale: f64) -> PhaseTime {
    let shard = |module: &str| {
        let dim = |name: &str, whole, here| ShardDimension { name: name.into(), whole, here };
        let shape = vec![dim("input", 4096, 4096), dim("output", 4096, 1024)];
        module.ends_with("_proj").then_some(Shard {
            shape,
            shards: 4,
            replicas: 1,
            token_shards: 1,
            attention_ranks: 1,
        })
    };
    let line = |block: &str, module: &str, part_of, layers, class, time: f64, light: f64| OperatorLine {
        phase,
        block: block.into(),
        module: module.into(),
        part_of,
        layers,
        class,
        time_ms: time * scale,
        fused_ms: None,
        speed_of_light_ms: light * scale,
        efficiency: light / time,
        flops: light * 1e12,
        bytes: light * 1e9,
        wire_bytes: if class == Class::Communication { light * 1e8 } else { 0.0 },
        shard: shard(module),
    };
    let operators = vec![
        line("layer", "q_proj", Module::Attention, 32, Class::Compute, 2.0, 1.5),
        line("layer", "attention", Module::Attention, 32, Class::Memory, 4.0, 3.0),
        line("layer", "all_reduce", Module::Communication, 32, Class::Communication, 1.0, 0.25),
        line("layer", "k_proj", Module::Attention, 32, Class::Compute, 0.05, 0.04),
        line("layer", "v_proj", Module::Attention, 32, Class::Compute, 0.05, 0.04),
        line("layer", "down_proj", Module::FeedForward, 32, Class::Memory, 1.9, 1.0),
        line("step", "launches", Module::Overhead, 32, Class::Overhead, 0.4, 0.0),
        line("step", "host", Module::Overhead, 1, Class::Overhead, 0.6, 0.0),
    ];
    PhaseTime {
        phase,
        time_ms: 10.5 * scale,
        operators_ms: 10.0 * scale,
        compute_ms: 2.1 * scale,
        memory_ms: 5.9 * scale,
        communication_ms: scale,
        overhead_ms: scale,
        flops: 5.83e12 * scale,
        bytes: 5.83e9 * scale,
        wire_bytes: 2.5e7 * scale,
        interconnect: [("node", 2.5e7, 0.9), ("network", 0.0, 0.0)]
            .map(|(level, bytes, time)| LevelLoad {
                level: level.into(),
                wire_bytes: bytes * scale,
                time_ms: time * scale,
                load_share: time / 10.5,
            })
            .to_vec(),
        mfu: 0.5,
        mbu: 0.25,
        bubble_share: 0.125,
        operators,
    }
}

fn answer() -> OptimizeResult {
    let requested = ReportInputs {
        theoretical: false,
        version_counts_as_mean: false,
        model: "maker/model".into(),
        read_as: None,
        hardware: "a box".into(),
        devices: 7,
        interconnect: vec![],
        runtime_version: None,
        runtime: "vllm".into(),
        workload: "chat".into(),
        isl: 2048,
        images: None,
        osl: 512,
        prefix: 1024,
        concurrency: None,
        rate: None,
        percentile: None,
        risk: Confidence::Median,
        speculation: None,
        limits: LatencyLimits { ttft: Some(2.0), tpot: Some(0.02), e2e: None },
        objective: "throughput".into(),
        optimize: vec![ObjectiveTerm { metric: Metric::OutputTokS, direction: Direction::Maximize }],
        pareto: vec!["tpot".into(), "output_tok_s_per_device".into()],
        weight_formats: vec![],
        kv_formats: vec![],
        price_basis: Some(PriceBasis::Rented),
        amortization_months: None,
        utilization: None,
        hours_per_day: Some(24.0),
        warnings: vec![],
    };
    let constraint = |resource, binds, used, why: &str| Constraint { resource, binds, used, why: why.into() };
    let assumption = |symbol: &str, value: &str, source: &str| AuditedInput {
        symbol: symbol.into(),
        enters: "t_step".into(),
        value: value.into(),
        grade: Grade::Assumed,
        source: source.into(),
        effects: vec![],
    };
    let best = candidate(true, 1.0);
    let held = |role, label: &str, weights| PoolMemory { role, label: label.into(), memory: memory(weights) };
    OptimizeResult {
        launch: None,
        theoretical: false,
        plain: None,
        checked: None,
        formulas_best: None,
        untried: None,
        simpler: None,
        scenario: None,
        conflict: None,
        programs: vec![],
        split_ratio: None,
        why: None,
        status: Status::Optimal,
        proof: Proof {
            metric: Some("output_tok_s".into()),
            bound: None,
            gap: Some(0.0),
            proved_by: "a fixture".into(),
            stopped_by: None,
            space: Space {
                measured_kinds_only: false,
                plans: 100_000,
                under: "a model of a fixture".into(),
                degrees: vec!["tp".into(), "pp".into()],
                formats: vec!["fp8 weights, bf16 KV".into()],
                split: true,
                mixes: true,
                offload: "not at all".into(),
                family: None,
                most_requests_per_rank: 65_536,
                loads: "every concurrency that fits".into(),
                outside: vec!["uneven load over ranks".into(), "unlike formats per pool".into()],
            },
        },
        question: requested,
        detail: Some(DeploymentDetail {
            percentiles: vec![],
            prefill_tok_s: Some(12_000.0),
            prefill_interval: None,
            prefill_flops: 20e12,
            prefill_flops_noncausal_without_head: 24e12,
            host_memory_peak_bytes: 0.0,
            host_memory_interval: None,
            phases: vec![phase(Phase::Prefill, 20.0), phase(Phase::Decode, 1.0)],
            pools: vec![held(Role::Prefill, "pp2", 15.0), held(Role::Decode, "tp2", 30.0)],
            constraints: vec![
                constraint(Resource::Ttft, false, Some(0.2), "TTFT 400 ms of 2 s"),
                constraint(Resource::Tpot, true, Some(1.0), "TPOT 20.0 ms of 20 ms; 20.3 ms at 41 requests"),
                constraint(Resource::Memory, false, Some(0.736), "memory 53.00 GiB of 72.00 GiB usable"),
                constraint(
                    Resource::Devices,
                    true,
                    Some(6.0 / 7.0),
                    "6 of 7 devices in use; a replica needs 2, 1 idle",
                ),
            ],
            evidence: BTreeMap::from([(Grade::Stated, 12), (Grade::Datasheet, 5), (Grade::Assumed, 3)]),
        }),
        alternatives: vec![candidate(false, 0.5)],
        front_points: 4,
        front_thinning: None,
        front: vec![
            candidate(true, 1.0),
            candidate(true, 1.25),
            candidate(false, 0.5),
            candidate(false, 1.6),
        ],
        best: Some(best),
        census: Census {
            shapes: 12,
            candidates: 3456,
            evaluated: 234,
            pruned: BTreeMap::from([("latency_limit".into(), 2000), ("dominated".into(), 1222)]),
            illegal: BTreeMap::from([(
                "out_of_memory".into(),
                RejectionCount { count: 2, example: "90 GB needed".into(), short: None },
            )]),
        },
        nearest: None,
        weights_need: vec![],
        lower_format: Some(LowerFormat {
            weight_format: "int4".into(),
            bits_per_weight: 4.25,
            metric: "output_tok_s".into(),
            now: Some(6000.0),
            then: Some(7500.0),
            quality: Some(Quality {
                metric: "a benchmark".into(),
                value: "-1.5 points".into(),
                model: "a model".into(),
                source: "https://example.org".into(),
            }),
        }),
        runtimes: vec![],
        audit: Some(AuditSection {
            grade: Grade::Assumed,
            assumptions: vec![
                assumption("launch", "5 µs", "borrowed from a neighbour"),
                assumption("host", "1 ms", "borrowed from a neighbour"),
                assumption("pue", "1.2", "a guess"),
            ],
            overrides: vec![],
            left_out: vec![],
        }),
    }
}

#[test]
fn an_answer_is_placed_out_as_it_was() {
    let text = plain(&text::table(&answer()));
    reads_well(&text, 100);
    insta::assert_snapshot!(text);
}

#[test]
fn an_answer_is_drawn_as_it_was() {
    insta::assert_snapshot!(optimize_picture(&answer()).svg(SvgTheme::Adaptive));
}

#[test]
fn colour_marks_the_answer_and_nothing_else_changes() {
    let text = text::table(&answer());
    let first = text.lines().next().unwrap();
    assert!(first.starts_with('\u{1b}') && first.ends_with('m'), "{first:?}");
    // Every colour is switched off on its own line.
    for line in text.lines().filter(|line| line.contains('\u{1b}')) {
        assert_eq!(line.matches("\u{1b}[0m").count(), 1, "{line:?}");
    }
}

#[test]
fn what_is_unknown_or_one_of_a_kind_is_shown_as_such() {
    let mut answer = answer();
    let best = answer.best.as_mut().unwrap();
    let figures = best.metrics.as_mut().unwrap();
    (figures.usd_per_mtok, figures.usd_per_mtok_total, figures.usd_per_hour) = (None, None, None);
    (figures.watts, figures.tok_per_joule) = (None, None);
    answer.front.truncate(1);
    answer.front_points = 1;
    (answer.alternatives, answer.lower_format) = (vec![], None);
    answer.census.shapes = 1;
    let text = plain(&text::table(&answer));
    reads_well(&text, 100);
    assert!(text.contains("cost         unknown\n") && text.contains("power        unknown\n"), "{text}");
    assert!(text.contains("1 configuration over") && text.contains("1 configuration ("), "{text}");
    assert!(!text.contains("Top configurations") && !text.contains("Lower-precision weights"), "{text}");
    assert!(!text.contains('┤'), "one point is no plot:\n{text}");
}

#[test]
fn long_names_stay_inside_the_page() {
    let mut answer = answer();
    answer.question.model = format!("maker/{}", "long-".repeat(40));
    let other = &mut answer.alternatives[0];
    other.plan.label = "prefill 12 x tp2 pp4 cp2 sp, decode 4 x tp8 pp2 dp4 ep32 sp".into();
    other.weight_format = "fp8-block".into();
    let times = &mut answer.detail.as_mut().unwrap().phases[0];
    times.operators[0].module = "a_projection_with_a_very_long_name_indeed".into();
    let text = plain(&text::table(&answer));
    reads_well(&text, 100);
    assert!(text.contains(&answer.alternatives[0].plan.label), "told in full somewhere:\n{text}");
}
