//! What our formulas say of one layer of given dimensions, on one of its devices.

use mantile::cost::batch::Batch;
use mantile::cost::collective::cost;
use mantile::cost::elementwise::Elementwise;
use mantile::cost::experts::Experts;
use mantile::cost::linear::Linear;
use mantile::cost::machine::{Chip, Machine, PricedLink};
use mantile::cost::memory::{kv_per_sequence, weights};
use mantile::cost::roofline::{RooflineParams, roofline};
use mantile::graph::cache::Cache;
use mantile::graph::dimensions::SoftmaxAttention;
use mantile::graph::mask::AttentionMask;
use mantile::plan::collective::{Collective, CollectiveOp, Tokens};
use mantile::plan::group::{RankGroup, TierShape};
use mantile::plan::sharding::TokenShare;
use mantile::quantity::count::Count;
use mantile::quantity::datum::Datum;
use mantile::quantity::ledger::Ledger;
use mantile::quantity::num::Qty;
use mantile::quantity::read::Plain;
use mantile::quantity::unit::{BYTE, COUNT, SECOND};
use mantile::spec::cluster::Topology;

use super::row::{Given, Row};

/// What a layer comes to on one device.
#[derive(Clone, Copy, Debug, Default)]
pub struct Layer {
    pub flops: f64,
    pub weights: f64,
    pub kv: f64,
    pub payload: f64,
    /// Devices that hold and compute as much.
    pub devices: f64,
}

/// A chip whose elements are `bytes` wide and whose pages hold one token.
fn chip(bytes: f64) -> Chip<Qty<f64>> {
    let problem = super::ask::ask(&super::ask::on("TinyLlama-1.1B-Chat-v1.0", "1xh100-sxm")).unwrap();
    let known = problem.formats[0].plain().chip;
    let size = Qty(bytes);
    Chip { native_bytes: size, activation_bytes: size, kv_bytes: size, block_tokens: Qty(1.0), ..known }
}

fn linear(tokens: f64, input: f64, output: f64) -> (f64, f64) {
    let matrix =
        Linear { tokens: Qty(tokens), input: Qty(input), output: Qty(output), matrix: Qty(input * output) };
    (matrix.flops().value(), input * output)
}

/// The payload of an exchange among `n`, as the traced reading files it.
fn payload(
    bytes: f64,
    kind: CollectiveOp,
    n: f64,
    width: f64,
    tokens: Tokens,
    batch: [f64; 3],
    parts: f64,
) -> f64 {
    if n < 2.0 {
        return 0.0;
    }
    let tiers = [TierShape { devices: n as u64, topology: Topology::Switch, in_switch_reduction: false }];
    let ledger = Ledger::new();
    let stated = |symbol, value, unit| Datum::stated(symbol, value, unit, "oracle");
    let problem = super::ask::ask(&super::ask::on("TinyLlama-1.1B-Chat-v1.0", "2xh100-sxm")).unwrap();
    let known = &problem.formats[0].machine;
    let mut machine: Machine<Datum> = known.clone();
    machine.chip.activation_bytes = stated("bytes_per_activation", bytes, BYTE);
    machine.links = vec![PricedLink {
        bandwidth: stated("link", 1.0, BYTE.per(SECOND)),
        latency: stated("hop", 0.0, SECOND),
    }];
    let group = RankGroup::place(n as u64, 1, &tiers).unwrap();
    let exchange = Collective::new(kind, group, Count::config("width", width as u64), tokens, &tiers);
    let enter = |value| ledger.input(&stated("given", value, COUNT));
    let batch = Batch::new(
        (enter(batch[0]), enter(batch[1]), enter(batch[2])),
        (enter(parts), enter(1.0), enter(1.0)),
    );
    cost(&&ledger, &exchange, &batch, &machine.read(&&ledger));
    let entries = ledger.entries();
    let filed = entries.iter().find(|entry| entry.formula.is_some_and(|formula| formula.symbol == "payload"));
    filed.expect("an exchange has a payload").value
}

/// Attention with its projections. Where biases are counted, the output's is added once for all devices.
pub fn attention(row: &Row, given: &Given) -> Layer {
    let [d, heads, head] = [given.any(&["d"]), given.any(&["hq", "h"]), given.any(&["dh"])];
    let kv_heads = given.get("hkv").or(given.get("h_kv")).unwrap_or(heads);
    let (tp, cp, bytes) = (given.or_one("tp"), given.or_one("cp"), given.get("by").unwrap_or(2.0));
    let (sequences, length) = (given.any(&["B"]), given.any(&["S", "S_past"]));
    let decode = given.says("decode");
    let chip = chip(bytes);
    let window = given.get("W").map(|window| window + given.get("sinks").unwrap_or(0.0));
    let (new, past) = if decode { (1.0, length) } else { (length, 0.0) };
    let parts = if decode { (1.0, cp) } else { (cp, 1.0) };
    let batch =
        |past| Batch::new((Qty(sequences), Qty(new), Qty(past)), (Qty(parts.0), Qty(parts.1), Qty(1.0)));
    let tokens = batch(past).tokens.value();
    let (queries, keys) = (heads * head / tp, kv_heads * head / tp);
    let projections = [(d, queries), (d, keys), (d, keys), (queries, d)];
    let projections = projections.map(|(input, output)| linear(tokens, input, output));
    let core = SoftmaxAttention {
        heads: Qty(heads / tp),
        kv_heads: Qty(kv_heads / tp),
        head_dim: Qty(head),
        v_head_dim: Qty(head),
        mask: window.map(Qty).into(),
        shared: false,
    };
    let core = if row.non_causal() || (row.id.starts_with("ATT") && !decode) {
        // So long a past that each query sees the whole span on average.
        let span = window.map_or(length, |window| length.min(window));
        SoftmaxAttention { mask: AttentionMask::All, ..core }.flops(&batch(span - (new + 1.0) / 2.0))
    } else {
        core.flops(&batch(past))
    };
    let biases = if given.says("True") { queries + 2.0 * keys + d } else { 0.0 };
    let added = Elementwise {
        elements: Qty(tokens * (biases - if biases > 0.0 { d - d / tp } else { 0.0 })),
        flops_per_element: 1.0,
        moved: Qty(0.0),
        weights: Qty(biases),
    };
    let layout = Cache::Heads {
        kv_heads: Count::config("kv_heads", (kv_heads / tp) as u64),
        head_dim: Count::config("head_dim", head as u64),
        v_head_dim: Count::config("head_dim", head as u64),
        reach: window.map(|window| Count::config("window", window as u64)).into(),
    };
    // `S` is the context before the new token, which is cached too; `S_past` is told without it.
    let cached = if decode && given.get("S").is_some() { length + 1.0 } else { length };
    let kv = kv_per_sequence(&Plain, &layout, Qty(cached), Qty(cp), &chip).value() * sequences;
    let elements = projections.iter().map(|(_, elements)| elements).sum::<f64>() + biases;
    let load = [sequences, new, past];
    let reduce = payload(bytes, CollectiveOp::AllReduce, tp, d, Tokens::Rank(TokenShare::Own), load, parts.0);
    let across = if decode {
        let merged = heads / tp * (head + 4.0);
        payload(bytes, CollectiveOp::AllReduce, cp, merged, Tokens::Rank(TokenShare::Own), load, parts.0)
    } else {
        payload(bytes, CollectiveOp::AllGather, cp, 2.0 * keys, Tokens::KeysValues, load, parts.0)
    };
    Layer {
        flops: projections.iter().map(|(flops, _)| flops).sum::<f64>() + core.value() + added.flops().value(),
        weights: weights(Qty(0.0), Qty(elements), &chip).value(),
        kv,
        payload: reduce + across,
        devices: tp * cp,
    }
}

/// A feed-forward network of `np` matrices: 3, if nothing is said, of a whole model, 2 of a layer.
pub fn network(given: &Given) -> Layer {
    let (d, width) = (given.any(&["d"]), given.any(&["dff", "d_ff"]));
    let (tp, sp, bytes) = (given.or_one("tp"), given.or_one("sp"), given.get("by").unwrap_or(2.0));
    let load = [given.any(&["B"]), given.any(&["S"]), 0.0];
    let tokens = load[0] * load[1] / sp;
    let matrices = given.get("np").unwrap_or(if given.get("L").is_some() { 3.0 } else { 2.0 });
    let (up, down) = (linear(tokens, d, width / tp), linear(tokens, width / tp, d));
    let sum = |pick: fn((f64, f64)) -> f64| (matrices - 1.0) * pick(up) + pick(down);
    Layer {
        flops: sum(|matrix| matrix.0),
        weights: weights(Qty(0.0), Qty(sum(|matrix| matrix.1)), &chip(bytes)).value(),
        kv: 0.0,
        payload: payload(bytes, CollectiveOp::AllReduce, tp, d, Tokens::Rank(TokenShare::Own), load, sp),
        devices: tp * sp,
    }
}

/// Routed experts with their router, and shared ones, whose tokens the expert-parallel devices share.
pub fn experts(given: &Given) -> Layer {
    let (d, width) = (given.any(&["d"]), given.any(&["dff"]));
    let (tp, ep, cp, bytes) =
        (given.or_one("tp"), given.or_one("ep"), given.or_one("cp"), given.any(&["by"]));
    let (experts, matrices, shared) = (given.any(&["E"]), given.any(&["np"]), given.get("Es").unwrap_or(0.0));
    let tokens = given.any(&["B"]) * given.any(&["S"]) / cp;
    let router = linear(tokens, d, experts);
    let matrix = experts / ep * matrices * d * width / tp;
    let routed = Experts {
        hidden: Qty(d),
        experts_here: Qty(experts / ep),
        experts: Qty(experts),
        top_k: Qty(given.any(&["k"])),
        intermediate: Qty(width / tp),
        matrices: Qty(matrices),
        matrix: Qty(matrix),
    };
    let next_to = linear(tokens / ep, d, shared * matrices * width / tp);
    let elements = router.1 + matrix + next_to.1;
    Layer {
        flops: router.0 + routed.flops(Qty(tokens)).value() + next_to.0,
        weights: weights(Qty(0.0), Qty(elements), &chip(bytes)).value(),
        kv: 0.0,
        payload: payload(
            bytes,
            CollectiveOp::AllReduce,
            tp * ep,
            d,
            Tokens::Rank(TokenShare::Own),
            [tokens, 1.0, 0.0],
            1.0,
        ),
        devices: tp * ep * cp,
    }
}

/// Milliseconds of computing, of moving weights and cache, and of the slower of the two.
pub fn times(layer: &Layer, given: &Given) -> [f64; 3] {
    let rates = [given.get("peak"), given.get("mem_bw")].map(|rate| rate.unwrap_or(f64::NAN));
    let one = Qty(1.0);
    let ceiling = RooflineParams { peak: Qty(rates[0]), bandwidth: Qty(rates[1]), compute: one, memory: one };
    let cost = roofline(Qty(layer.flops), Qty(layer.weights + layer.kv), &ceiling);
    [cost.compute_time, cost.memory_time, cost.roofline_time].map(|time| time.value() * 1e3)
}
