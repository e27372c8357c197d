//! What we say of whole models, formats and money.

use mantile::cost::batch::Batch;
use mantile::cost::latent::LatentAttentionShard;
use mantile::graph::dimensions::LatentAttention;
use mantile::graph::mask::AttentionMask;
use mantile::graph::model::ModelGraph;
use mantile::graph::tensor::TensorRole;
use mantile::quantity::num::Qty;
use mantile::serving::economy::{Bill, Owned, usd_per_second, usd_per_token};
use mantile::spec::format::NumberFormat;
use mantile::store::catalog::Catalog;

use super::row::Row;

const MILLION: f64 = 1e6;

fn graph(model: &str) -> ModelGraph {
    let found = Catalog::default().model(model).unwrap_or_else(|fault| panic!("{fault}"));
    ModelGraph::build(&found.config).unwrap_or_else(|fault| panic!("{fault}"))
}

/// Elements of the weights of a layer that `wanted` picks; `kind` picks the layer.
fn elements(graph: &ModelGraph, kind: &str, wanted: impl Fn(&str, TensorRole) -> bool) -> f64 {
    let blocks = graph.blocks.iter().filter(|block| block.name.contains(kind));
    let block = blocks.max_by_key(|block| block.layers.len()).expect("the model has such layers");
    let weights = block.graph.node_weights().flat_map(|node| &node.weights);
    weights.filter(|weight| wanted(&weight.name, weight.role)).map(|weight| weight.elements() as f64).sum()
}

/// All weights but norms, which the sheet leaves out; of routed experts only `share`.
fn without_norms(graph: &ModelGraph, share: f64) -> f64 {
    let blocks = graph.blocks.iter().map(|block| (block, block.layers.len() as f64));
    let all = blocks.chain([(&graph.embedding, 1.0), (&graph.head, 1.0)]).flat_map(|(block, layers)| {
        let weights = block.graph.node_weights().flat_map(|node| &node.weights);
        weights.filter(|weight| !weight.buffer && weight.role != TensorRole::Norm).map(move |weight| {
            let part = if weight.role == TensorRole::Expert { share } else { 1.0 };
            weight.elements() as f64 * layers * part
        })
    });
    all.sum()
}

/// Absorbed attention of one query over `keys` latents, and the part of it that is scores.
fn absorbed(keys: f64) -> (f64, f64) {
    let dims = LatentAttention {
        heads: Qty(128.0),
        kv_lora_rank: Qty(512.0),
        qk_rope_head_dim: Qty(64.0),
        qk_nope_head_dim: Qty(128.0),
        v_head_dim: Qty(128.0),
        mask: AttentionMask::All,
    };
    let attention = LatentAttentionShard { dims, matrix: Qty(0.0), absorbed: true };
    let batch = Batch::new((Qty(1.0), Qty(1.0), Qty(keys - 1.0)), (Qty(1.0), Qty(1.0), Qty(1.0)));
    let flops = attention.flops(&batch).value();
    (flops, flops * 576.0 / (576.0 + 512.0))
}

/// The number of a row about DeepSeek-V3, by what it is of.
fn deepseek(metric: &str) -> Option<f64> {
    let graph = graph("DeepSeek-V3");
    let named = |name: &'static str| elements(&graph, "moe", move |weight, _| weight.contains(name));
    let of = |kind, role: TensorRole| elements(&graph, kind, move |_, other| other == role);
    let moe_layers = 58.0;
    Some(match metric {
        "q_a_proj" | "q_b_proj" | "kv_a_proj" | "kv_b_proj" | "o_proj" => {
            let name = ["q_a_proj", "q_b_proj", "kv_a_proj", "kv_b_proj", "o_proj"];
            named(name.into_iter().find(|name| *name == metric)?)
        }
        "MLA total per layer" => of("moe", TensorRole::Attention) / MILLION,
        "dense MLP per layer" => of("dense", TensorRole::Mlp) / MILLION,
        "one expert" => of("moe", TensorRole::Expert) / 256.0 / MILLION,
        "routed+shared experts total" => {
            (of("moe", TensorRole::Expert) + of("moe", TensorRole::SharedExpert)) * moe_layers / MILLION
        }
        "total params" => without_norms(&graph, 1.0) / MILLION,
        "active params" => without_norms(&graph, 8.0 / 256.0) / MILLION,
        "QK FLOPs per layer per token, ctx=1000, absorbed MLA" => absorbed(1000.0).1,
        "PV FLOPs absorbed" => absorbed(1000.0).0 - absorbed(1000.0).1,
        "K-latent elements read, ctx=1000" => {
            let kv = &graph.blocks[0].caches[0];
            let problem = super::ask::ask(&super::ask::on("TinyLlama-1.1B-Chat-v1.0", "1xh100-sxm")).unwrap();
            let mut chip = problem.formats[0].plain().chip;
            (chip.kv_bytes, chip.block_tokens) = (Qty(1.0), Qty(1.0));
            let plain = mantile::quantity::read::Plain;
            mantile::cost::memory::kv_per_sequence(&plain, kv, Qty(1000.0), Qty(1.0), &chip).value()
        }
        // 0.087 USD/kWh, 730 hours, PUE 1.25, 80 % of the power.
        "electricity per kW-month" => {
            let [nothing, whole] = [Qty(0.0), Qty(1.0)];
            let (electricity, pue) = (Qty(0.087 / 3.6e6), Qty(1.25));
            let owned = Owned {
                purchase: nothing,
                host: nothing,
                network: nothing,
                amortization: whole,
                utilization: whole,
                electricity,
                pue,
                node_power: nothing,
            };
            usd_per_second(Qty(1.0), Some(Qty(800.0)), &Bill::Owned(owned)).value() * 730.0 * 3600.0
        }
        _ => return None,
    })
}

fn llama(row: &Row) -> Option<f64> {
    let graph = graph("Llama-3.3-70B-Instruct");
    let attention = |_: &str, role| role == TensorRole::Attention;
    Some(match row.metric.as_str() {
        "total_params" => graph.parameters().unique as f64,
        "weight_bytes" => graph.parameters().unique as f64 * 2.0,
        "embedding_bytes" => (graph.vocab.value * graph.hidden.value) as f64 * 2.0,
        "attn_bytes_per_layer" => elements(&graph, "", attention) * 2.0,
        _ => return None,
    })
}

fn bits(name: &str) -> Option<f64> {
    let format: NumberFormat = Catalog::default().load(name).ok()?;
    Some(format.bits_per_element.value * 8.0)
}

/// The number of a row about a whole, or nothing where no formula of ours states it.
pub fn whole(row: &Row) -> Option<f64> {
    let given = row.given();
    match row.metric.as_str() {
        "bits_per_element" => bits(&row.input),
        "effective bits" => match row.id.rsplit(':').next()? {
            "fp4" => bits("nvfp4"),
            name @ ("fp8" | "bf16") => bits(name),
            _ => None,
        },
        "USD per Mtok from $/GPU-h and tok/s/GPU" | "USD per Mtok 1k/1k" => {
            let first = |text: &str| text.split(' ').next().and_then(|number| number.parse::<f64>().ok());
            let price = given.get("price").or_else(|| first(row.input.strip_prefix("price=")?))?;
            let limit = row.input.split(';').nth(1).and_then(|text| first(&text.replace("tok", " tok")))?;
            let bill = usd_per_second(Qty(1.0), None, &Bill::Rented(Qty(price / 3600.0)));
            Some(usd_per_token(bill, Qty(limit)).value() * MILLION)
        }
        _ if row.id.starts_with("CFG.") => Some(graph(&row.input).parameters().unique as f64),
        _ if row.id.starts_with("L70.") => llama(row),
        metric if row.id.starts_with("XLS.") => deepseek(metric),
        _ => None,
    }
}
