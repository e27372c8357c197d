//! Placements over unlike members: 16 distinct, 32 of four kinds, 4, 16 with more layers, 64 of eight kinds; where memory
//! binds, and where it does not.

use std::hint::black_box;
use std::time::Duration;

use criterion::{Criterion, criterion_group, criterion_main};
use mantile::search::placement::bottleneck::MinMaxStage;
use mantile::search::placement::chain::{Chain, Member, SegmentCost};
use mantile::search::placement::solve::{PlacementTime, solve};
use mantile::search::placement::{device_classes, least_sum};
use mantile::search::run::UNWATCHED;
use mantile::spec::rig::{Rig, RigLink, RigMember, RigTopology};
use mantile::spec::scenario::Scenario;
use mantile::store::catalog::Catalog;
use mantile::store::rig::ResolvedRig;

/// `kinds` kinds of `each` members that together hold `slack` times the `layers`.
fn chain(layers: usize, kinds: u64, each: u64, slack: f64) -> Chain {
    let members = kinds * each;
    let headroom = slack * layers as f64 / members as f64;
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = |below: u64| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) % below
    };
    let kind = |ticks: u64, headroom: u64| Member {
        layers: vec![SegmentCost { ticks, pages: 10 }; layers],
        experts: vec![0; layers],
        first: SegmentCost { ticks: 3_000, pages: 5 },
        last: SegmentCost { ticks: 9_000, pages: 5 },
        copy: 0,
        host: 1_000,
        base: 3,
        usable: 13 + 10 * headroom,
        spill: None,
        disk: None,
    };
    let of_kind: Vec<Member> = (0..kinds)
        .map(|_| kind(5_000 + next(20_000), (headroom * (0.5 + next(100) as f64 / 100.0)) as u64))
        .collect();
    let costs: Vec<u64> = (0..kinds * kinds).map(|_| 500 + next(2_000)).collect();
    let at = |member: u64| member / each;
    let link = |a: u64, b: u64| Some(costs[(at(a).min(at(b)) * kinds + at(a).max(at(b))) as usize]);
    Chain {
        layers,
        members: (0..members).map(|member| of_kind[at(member) as usize].clone()).collect(),
        links: (0..members).map(|a| (0..members).map(|b| link(a, b)).collect()).collect(),
        hosts: vec![],
    }
}

/// The least slowest stage of any number of stages.
fn slowest(chain: &Chain) -> Option<u64> {
    let groups = device_classes(chain);
    let mut programme = MinMaxStage::new(chain, &groups);
    let mut counts: Vec<(u64, usize)> =
        (1..=chain.members.len()).map(|stages| (programme.floor(stages), stages)).collect();
    counts.sort_unstable();
    counts.into_iter().fold(None, |best, (floor, stages)| {
        let below = best.unwrap_or(u64::MAX);
        let found = if floor < below { programme.least(stages, below, &|| false).found } else { None };
        found.map(|(ticks, _)| ticks).or(best)
    })
}

/// Sixteen devices of the catalogue, no two alike, on one network.
const SIXTEEN: [&str; 16] = [
    "nvidia-rtx-3060-12gb",
    "nvidia-rtx-3070",
    "nvidia-rtx-3080",
    "nvidia-rtx-3090",
    "nvidia-rtx-3090-ti",
    "nvidia-rtx-4060-ti-16gb",
    "nvidia-rtx-4070",
    "nvidia-rtx-4070-ti-super",
    "nvidia-rtx-4080",
    "nvidia-rtx-4080-super",
    "nvidia-rtx-4090",
    "nvidia-rtx-5060-ti-16gb",
    "nvidia-rtx-5070",
    "nvidia-rtx-5070-ti",
    "nvidia-rtx-5080",
    "nvidia-rtx-5090",
];

fn sixteen() -> Rig {
    let post = |device: &str| RigMember {
        name: None,
        device: device.into(),
        count: 1,
        joined: None,
        runtime: None,
        host: None,
    };
    let wire = RigLink { link: "ethernet-10g".into(), between: None, bandwidth: None, latency: None };
    Rig {
        members: SIXTEEN.map(post).into(),
        topology: Some(RigTopology::Mesh),
        links: vec![wire],
        ..Rig::default()
    }
}

fn benches(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("placement");
    group.sample_size(10).measurement_time(Duration::from_secs(5));
    let cases = [
        ("16 distinct", 80, 16, 1),
        ("32 of 4 kinds", 80, 4, 8),
        ("4 distinct", 80, 4, 1),
        ("16 distinct, 200 layers", 200, 16, 1),
        ("64 of 8 kinds", 80, 8, 8),
    ];
    for (name, layers, kinds, each) in cases {
        for (slack_name, slack) in [("tight", 1.3), ("ample", 6.0)] {
            let chain = chain(layers, kinds, each, slack);
            let name = format!("{name}, {slack_name}");
            group.bench_function(format!("sum, {name}"), |b| b.iter(|| least_sum(black_box(&chain))));
            group.bench_function(format!("slowest, {name}"), |b| b.iter(|| slowest(black_box(&chain))));
        }
    }
    let scenario = Scenario { weight_format: Some("q4_k_m".into()), ..Scenario::default() };
    let catalog = Catalog::default();
    let rigged = catalog
        .rig("pcie-four-cards")
        .and_then(|rig| ResolvedRig::resolve(&catalog, &scenario, rig, 1))
        .unwrap_or_else(|fault| panic!("{fault}"));
    group.bench_function("four PCIe cards, priced and placed", |b| {
        b.iter(|| {
            solve(black_box(&rigged.problems), PlacementTime::Step, &UNWATCHED).map(|found| found.seconds)
        });
    });
    let scenario = Scenario { model: Some("Llama-3.3-70B".into()), ..scenario };
    for (name, concurrency) in [("16 requests", 16), ("6 requests", 6)] {
        let rigged = ResolvedRig::resolve(&catalog, &scenario, sixteen(), concurrency)
            .unwrap_or_else(|fault| panic!("{fault}"));
        group.bench_function(format!("16 devices of the catalogue, throughput of {name}"), |b| {
            let solved = || solve(black_box(&rigged.problems), PlacementTime::Cycle, &UNWATCHED);
            b.iter(|| solved().map(|found| found.seconds));
        });
    }
    group.finish();
}

criterion_group!(placement, benches);
criterion_main!(placement);
