//! Images in prompts: what the encoder computes, the tokens that come of it, and who is refused.

use mantile::cost::roofline::Cost;
use mantile::graph::operator::Operator;
use mantile::plan::parallel::{ParallelPlan, Phase};
use mantile::plan::shard::{ShardedBlock, Task, TaskStep};
use mantile::quantity::ledger::Ledger;
use mantile::quantity::num::Qty;
use mantile::quantity::read::Plain;
use mantile::search::problem::Problem;
use mantile::serving::admission::residency;
use mantile::serving::instance::Instance;
use mantile::serving::iteration::prefill;
use mantile::serving::step::CostObserver;
use mantile::spec::image::ImageSize;
use mantile::spec::scenario::Scenario;

use crate::ask;

/// Operations of matrices and attention, and bytes, in and outside the encoder.
#[derive(Default)]
struct Seen {
    encoder: f64,
    bytes: f64,
    outside: f64,
}

impl CostObserver<f64> for Seen {
    fn on_operator(&mut self, _: Phase, block: &ShardedBlock, step: &TaskStep, cost: &Cost<Qty<f64>>) {
        let layers = block.layers.value as f64;
        let Task::Compute { operator, .. } = &step.task else { return };
        let counted = matches!(operator, Operator::Linear { .. } | Operator::Attention(_));
        match block.encoder {
            true if counted => self.encoder += layers * cost.flops.value(),
            false => self.outside += layers * cost.flops.value(),
            true => {}
        }
        if block.encoder {
            self.bytes += layers * cost.bytes.value();
        }
    }

    fn on_idle(&mut self, _: Phase, _: &'static str, _: u64, _: Qty<f64>) {}
}

fn requested(model: &str, images: u64, size: Option<(u64, u64)>) -> Scenario {
    Scenario {
        images: Some(images),
        image_size: size.map(|(width, height)| ImageSize { width, height }),
        isl: Some(500),
        ..ask::on(model, "8xh100")
    }
}

fn put(model: &str, images: u64, size: Option<(u64, u64)>) -> Problem {
    ask::ask(&requested(model, images, size)).unwrap_or_else(|error| panic!("{model}: {error}"))
}

fn placed(problem: &Problem, tp: u64) -> Instance {
    let layers = vec![problem.graph.layer_block.len() as u32];
    Instance::new(&problem.graph, ParallelPlan { tp, ..ParallelPlan::SINGLE }, layers, problem.tiers())
}

fn priced(problem: &Problem, tp: u64) -> (Seen, f64) {
    let mut seen = Seen::default();
    let machine = problem.formats[0].plain();
    let time = prefill(&Plain, &placed(problem, tp), machine, problem.terms(), &mut seen);
    (seen, time.total.value())
}

/// Qwen2.5-VL-7B by hand from its config.json: 1120 × 840 pixels are 80 × 60 patches of 14, 40 × 30 tokens; 28 of
/// 32 layers attend inside windows of 8 × 8 patches.
#[test]
fn an_encoder_computes_every_patch_of_every_image() {
    let (patches, tokens, wide) = (4800.0, 1200.0, 1280.0_f64);
    let matrices = 4.0 * wide * wide + 3.0 * wide * 3420.0;
    let pairs = 28.0 * patches * 64.0 + 4.0 * patches * patches;
    let merger = tokens * (5120.0 * 5120.0 + 5120.0 * 3584.0);
    let by_hand = 2.0 * (patches * (3.0 * 2.0 * 14.0 * 14.0 * wide + 32.0 * matrices) + merger)
        + 2.0 * pairs * 2.0 * wide;
    let model = "Qwen2.5-VL-7B-Instruct";
    for images in [1, 3] {
        let problem = put(model, images, Some((1120, 840)));
        assert_eq!(problem.terms().isl.value(), 500.0 + images as f64 * tokens);
        assert_eq!(priced(&problem, 1).0.encoder, images as f64 * by_hand);
        // Heads and columns are divided; what stays whole on both devices is the embedding of patches.
        let halved = (by_hand + 2.0 * patches * 3.0 * 2.0 * 14.0 * 14.0 * wide) / 2.0;
        assert_eq!(priced(&problem, 2).0.encoder, images as f64 * halved);
    }
}

/// Two counts of one thing: what `inspect` states for an image, and what a prompt with images is charged.
#[test]
fn what_inspect_states_is_what_a_prompt_is_charged() {
    for (model, tokens) in [
        ("gemma-3-27b-it", 256),
        ("Mistral-Small-3.1-24B-Instruct-2503", 55 * 56),
        ("Llama-3.2-11B-Vision-Instruct", 1),
    ] {
        let problem = put(model, 2, None);
        let tower = problem.graph.towers.iter().find(|tower| tower.name == "vision").unwrap();
        let stated = tower.flops_per_image().unwrap() as f64;
        assert_eq!(priced(&problem, 1).0.encoder, 2.0 * stated, "{model}");
        assert_eq!(problem.workload.lengths.isl, 500 + 2 * tokens, "{model}");
    }
}

#[test]
fn the_language_model_works_as_if_the_tokens_were_words() {
    let with = put("gemma-3-27b-it", 2, None);
    let text = ask::ask(&Scenario { isl: Some(500 + 512), ..requested("gemma-3-27b-it", 0, None) }).unwrap();
    let ((seen, slow), (none, fast)) = (priced(&with, 1), priced(&text, 1));
    assert_eq!((seen.outside, none.encoder), (none.outside, 0.0));
    assert!(slow > fast, "encoding takes time: {slow} {fast}");
    let weights = with.graph.towers[0].parameters() as f64 * 2.0;
    assert!(seen.bytes > weights, "its weights are read once");
    let held = |problem: &Problem| {
        let machine = problem.formats[0].plain();
        residency(&Plain, &placed(problem, 1), Phase::Decode, machine, problem.terms(), 4)
    };
    let (seen, none) = (held(&with), held(&text));
    assert_eq!(seen.weights.value(), none.weights.value(), "an encoder is held with images or without");
    assert_eq!(seen.kv.value(), none.kv.value());
    assert!(seen.activations.value() >= none.activations.value());
}

#[test]
fn states_that_layers_attend_to_grow_with_the_images() {
    let kept = |images| {
        let problem = put("Llama-3.2-11B-Vision-Instruct", images, None);
        let machine = problem.formats[0].plain();
        let held = residency(&Plain, &placed(&problem, 1), Phase::Decode, machine, problem.terms(), 1);
        held.state.unwrap().value()
    };
    // 8 layers, keys and values of 8 heads of 128 in 2 bytes, 4 tiles of 1601 positions.
    assert_eq!(kept(1), 8.0 * 2.0 * 8.0 * 128.0 * 2.0 * 4.0 * 1601.0);
    assert_eq!(kept(3), 3.0 * kept(1));
}

#[test]
fn the_drill_down_names_images_and_their_tokens() {
    let problem = put("Qwen2.5-VL-7B-Instruct", 2, Some((1120, 840)));
    let ledger = Ledger::new();
    let machine = problem.formats[0].machine.read(&&ledger);
    let terms = problem.workload.read(&&ledger);
    let time = prefill(&&ledger, &placed(&problem, 1), &machine, &terms, &mut ());
    assert_eq!(time.total.value().to_bits(), priced(&problem, 1).1.to_bits());
    let leaves: Vec<_> = ledger.leaves(time.total).into_iter().map(|leaf| leaf.symbol).collect();
    for symbol in ["images", "image_tokens", "crops", "positions", "window_positions", "isl"] {
        assert!(leaves.iter().any(|leaf| leaf == symbol), "{symbol} not in {leaves:?}");
    }
    assert_eq!(ledger.unit_errors(), Vec::<String>::new());
}

#[test]
fn who_cannot_see_says_so() {
    let refused = |model: &str, images, size| {
        ask::ask(&requested(model, images, size)).map(|_| ()).expect_err("refused").to_string()
    };
    for (model, images, size, key, shown) in [
        ("Llama-3.1-8B", 1, None, "images", "no image encoder"),
        ("Qwen2.5-VL-7B-Instruct", 1, None, "image-size", "accepts any size"),
        ("gemma-3n-E4B-it", 1, None, "images", "preprocessing is supported"),
        ("gemma-3-27b-it", 100_001, None, "images", "100000"),
        ("gemma-3-27b-it", 0, Some((5, 5)), "image-size", "--images"),
        ("Kimi-K2.5", 100_000, Some((65_535, 65_535)), "images", "at most"),
    ] {
        let error = refused(model, images, size);
        assert!(error.contains(&format!("`{key}`")) && error.contains(shown), "{error}");
    }
}
