//! Static batches, and degrees per layer type: laws on random plans, closed forms by hand.

use mantile::plan::parallel::{ParallelPlan, Phase};
use mantile::report::breakdown::Module;
use mantile::report::static_batch::{StaticPhase, StaticReport};
use mantile::request::UNCONTROLLED;
use mantile::request::static_batch::{NativeLayers, StaticRequest, static_batch};
use mantile::spec::degree::Degrees;
use mantile::spec::deployment::Deployment;
use mantile::spec::error::Error;
use mantile::spec::scenario::Scenario;
use mantile::store::catalog::Catalog;
use proptest::prelude::*;

use crate::ask::on;
use crate::cases::each;

fn batch(request: &StaticRequest) -> Result<StaticReport, Error> {
    static_batch(&Catalog::default(), request, &UNCONTROLLED)
}

fn request(model: &str, hardware: &str, both: Degrees, requests: u64) -> StaticRequest {
    let deployment = Some(Deployment { both, ..Deployment::default() });
    let scenario = Scenario { isl: Some(2048), osl: Some(128), deployment, ..on(model, hardware) };
    StaticRequest { scenario, batch: Some(requests), ..StaticRequest::default() }
}

fn of(report: &StaticReport, phase: Phase) -> &StaticPhase {
    report.phases.iter().find(|one| one.phase == phase).unwrap()
}

fn part(phase: &StaticPhase, layer_type: Module) -> [f64; 4] {
    let mut all = phase.layer_types.iter().filter(|one| one.layer_type == layer_type);
    all.next().map_or([0.0; 4], |one| [one.flops, one.bytes, one.wire_bytes, one.weight_bytes])
}

fn near(found: f64, expected: f64) -> bool {
    (found - expected).abs() <= 1e-9 * expected.abs().max(1.0)
}

/// Degrees of a stage with `devices`: tp divides it, and feed-forward and vocabulary have one of its divisors.
fn degrees(devices: u64) -> impl Strategy<Value = Degrees> {
    let power = move || (0..=devices.ilog2()).prop_map(|bit| 1u64 << bit);
    (power(), prop::option::of(power()), prop::option::of(power()), any::<bool>()).prop_map(
        move |(tp, ffn_tp, vocab_tp, sp)| Degrees {
            tp: Some(tp),
            dp: Some(devices / tp),
            ffn_tp,
            vocab_tp,
            sp: sp.then_some(true),
            ..Degrees::default()
        },
    )
}

/// All devices together do the work of the layers once, whatever the degrees; only the vocabulary may be repeated.
#[test]
fn degrees_of_layer_types_divide_their_work() {
    let whole = batch(&request("Llama-3.1-8B", "1xb200", Degrees::default(), 16)).unwrap();
    each(40, (degrees(8), 0..2usize), |(degrees, at)| {
        let phase = [Phase::Prefill, Phase::Decode][at];
        let found = batch(&request("Llama-3.1-8B", "8xb200", degrees.clone(), 16)).unwrap();
        for layer_type in [Module::Attention, Module::FeedForward] {
            let [flops, ..] = part(of(&found, phase), layer_type);
            let [expected, ..] = part(of(&whole, phase), layer_type);
            prop_assert!(near(flops * 8.0, expected), "{layer_type:?} of {degrees:?}: {flops} of {expected}");
        }
        let tp = degrees.tp.unwrap();
        for (layer_type, own) in [
            (Module::Attention, tp),
            (Module::FeedForward, degrees.ffn_tp.unwrap_or(tp)),
            (Module::Vocabulary, degrees.vocab_tp.unwrap_or(tp)),
        ] {
            let [.., weights] = part(of(&found, phase), layer_type);
            let [.., expected] = part(of(&whole, phase), layer_type);
            prop_assert!(near(weights * own as f64, expected), "{layer_type:?} of {degrees:?}");
        }
        Ok(())
    });
}

/// Bytes on the wire by hand: ring algorithms send (n-1)/n of the buffer, an all-reduce twice that.
#[test]
fn resharding_between_layer_types_sends_what_a_ring_sends() {
    let hand = |tp: f64, dp: f64, ffn: f64, requests: f64| {
        let (hidden, layers, bytes) = (4096.0, 32.0, 2.0);
        let own = (requests / dp).ceil() * 2048.0 * hidden * bytes;
        let part = |ranks: f64| (ranks - 1.0) / ranks;
        let pooled = own * ffn / tp;
        let (gather, reduce) = match ffn > tp {
            // The tokens of all pooled ranks in, sums of the own ones out, and whole again on every rank.
            true => (part(ffn / tp) * pooled, part(ffn) * pooled + part(tp) * own),
            false if ffn < tp => (0.0, part(ffn) * pooled + part(tp) * own),
            false => (0.0, 2.0 * part(tp) * own),
        };
        layers * (gather + reduce)
    };
    for (tp, ffn) in [(4, 8), (2, 8), (8, 8), (8, 2), (8, 1), (1, 8), (4, 2)] {
        let degrees = Degrees { tp: Some(tp), dp: Some(8 / tp), ffn_tp: Some(ffn), ..Degrees::default() };
        // A mesh without switches that reduce: the ring is the leanest.
        let found = batch(&request("Llama-3.1-8B", "8xmi300x", degrees, 16)).unwrap();
        let [_, _, wire, _] = part(of(&found, Phase::Prefill), Module::FeedForward);
        let expected = hand(tp as f64, (8 / tp) as f64, ffn as f64, 16.0);
        assert!(near(wire, expected), "tp {tp}, ffn_tp {ffn}: {wire} of {expected}");
    }
}

#[test]
fn the_same_degree_for_a_layer_type_is_none_of_its_own() {
    let degrees = |ffn_tp| Degrees { tp: Some(4), ffn_tp, vocab_tp: ffn_tp, ..Degrees::default() };
    let text = |ffn_tp| {
        let mut found = batch(&request("Qwen3-32B", "4xh100", degrees(ffn_tp), 8)).unwrap();
        assert!(found.theoretical.is_empty(), "{:?}", found.theoretical);
        found.scenario = Scenario::default();
        serde_json::to_string(&found).unwrap()
    };
    assert_eq!(text(None), text(Some(4)));
}

#[test]
fn degrees_that_no_runtime_runs_are_theoretical_and_those_of_no_model_are_refused() {
    let degrees =
        |tp, dp, ffn| Degrees { tp: Some(tp), dp: Some(dp), ffn_tp: Some(ffn), ..Degrees::default() };
    let found = batch(&request("Llama-3.1-8B", "8xh100", degrees(4, 2, 8), 8)).unwrap();
    assert_eq!(found.theoretical, ["vllm does not support ffn_tp"]);
    for (tp, dp, ffn, words) in
        [(8, 1, 3, "mod ffn_tp 3"), (4, 1, 6, "mod tp x cp x dp 4"), (6, 1, 2, "mod tp 6")]
    {
        let fault = batch(&request("Llama-3.1-8B", "8xh100", degrees(tp, dp, ffn), 8)).unwrap_err();
        assert!(fault.to_string().contains(words), "{fault}");
    }
}

/// Phases of unlike batches and degrees are those of two questions.
#[test]
fn phases_have_batches_degrees_and_formats_of_their_own() {
    let prefill = Degrees { tp: Some(4), ..Degrees::default() };
    let decode = Degrees { tp: Some(2), ..Degrees::default() };
    let deployment = Some(Deployment { prefill, decode, ..Deployment::default() });
    let decode_weight_format = Some("fp8".into());
    let lengths = Scenario { isl: Some(2048), osl: Some(128), ..on("Llama-3.1-8B", "8xh100") };
    let scenario = Scenario { deployment, decode_weight_format, ..lengths };
    let both = batch(&StaticRequest {
        scenario,
        prefill_batch: Some(2),
        decode_batch: Some(64),
        ..StaticRequest::default()
    })
    .unwrap();
    let tp = |tp| Degrees { tp: Some(tp), ..Degrees::default() };
    let one = batch(&request("Llama-3.1-8B", "8xh100", tp(4), 2)).unwrap();
    let other = request("Llama-3.1-8B", "8xh100", tp(2), 64);
    let scenario = Scenario { weight_format: Some("fp8".into()), ..other.scenario.clone() };
    let other = batch(&StaticRequest { scenario, ..other }).unwrap();
    assert_eq!(both.ttft_ms, one.ttft_ms);
    assert_eq!(both.tpot_ms, other.tpot_ms);
    assert!(near(both.e2e_ms, both.ttft_ms + 127.0 * both.tpot_ms));
    let formats = |report: &StaticReport, phase| of(report, phase).weight_format.clone();
    assert_eq!([formats(&both, Phase::Prefill), formats(&both, Phase::Decode)], ["bf16", "fp8"]);
}

/// A layer type in the model's own dtype has its bytes: twice those of eight bits.
#[test]
fn a_layer_type_may_stay_in_the_models_own_dtype() {
    let tp = Degrees { tp: Some(4), ..Degrees::default() };
    let requested = request("Qwen3-32B", "4xh100", tp, 8);
    let scenario = Scenario { weight_format: Some("fp8".into()), ..requested.scenario };
    let plain = StaticRequest { scenario, batch: Some(8), ..StaticRequest::default() };
    let native = StaticRequest { native_layers: vec![NativeLayers::FeedForward], ..plain.clone() };
    let weights = |request, layer_type| part(of(&batch(request).unwrap(), Phase::Decode), layer_type)[3];
    let (small, large) = (weights(&plain, Module::FeedForward), weights(&native, Module::FeedForward));
    assert!((1.9..2.01).contains(&(large / small)), "{large} of {small}");
    assert_eq!(weights(&plain, Module::Attention), weights(&native, Module::Attention));
}

/// The fewest devices hold the batch, and the plan that is named says so itself.
#[test]
fn the_fewest_devices_hold_the_batch() {
    for (model, hardware) in
        [("Llama-3.3-70B", "8xh100"), ("Qwen3-30B-A3B", "8xl40s"), ("Llama-3.1-8B", "1xl40s")]
    {
        let found = batch(&request(model, hardware, Degrees::default(), 4)).unwrap();
        let fewest = &of(&found, Phase::Decode).fewest_devices;
        let label = fewest.label.clone().unwrap();
        let plan = Some(format!("1 x {label}"));
        let scenario = Scenario {
            deployment: Some(Deployment { plan, ..Deployment::default() }),
            ..found.scenario.clone()
        };
        let again = batch(&StaticRequest { scenario, batch: Some(4), ..StaticRequest::default() }).unwrap();
        let decode = of(&again, Phase::Decode);
        assert!(decode.fits, "{model}: {label}");
        assert_eq!(Some(decode.devices), fewest.devices, "{model}: {label}");
        assert_eq!(Some(decode.memory.total_bytes), fewest.bytes_per_device, "{model}: {label}");
    }
}

/// Every sum over layer types is that of the phase.
#[test]
fn layer_types_add_up_to_their_phase() {
    for (model, hardware) in
        [("DeepSeek-V3", "8xh200"), ("gpt-oss-120b", "4xh100"), ("Llama-3.3-70B", "8xh100")]
    {
        let tp = Degrees { tp: Some(4), ..Degrees::default() };
        let found = batch(&request(model, hardware, tp, 8)).unwrap();
        for phase in &found.phases {
            let sum = |of: fn(&mantile::report::static_batch::StaticLayerType) -> f64| -> f64 {
                phase.layer_types.iter().map(of).sum()
            };
            assert!(near(sum(|one| one.flops), phase.flops), "{model}");
            assert!(near(sum(|one| one.bytes), phase.bytes), "{model}");
            assert!(near(sum(|one| one.wire_bytes), phase.wire_bytes), "{model}");
            assert!(near(sum(|one| one.time_ms), phase.time_ms), "{model}: {}", phase.time_ms);
        }
    }
}

/// The plain plan is the plan without degrees of layer types.
#[test]
fn degrees_of_layer_types_are_part_of_a_label() {
    let plan = ParallelPlan { tp: 4, dp: 2, ffn_tp: Some(8), vocab_tp: Some(1), ..ParallelPlan::SINGLE };
    assert_eq!(plan.label(), "tp4 dp2 ffn_tp8 vocab_tp1");
}
