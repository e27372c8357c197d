//! What the arrangement of a layer costs a tensor-parallel plan: exchanges, derived from shardings alone.

use mantile::plan::collective::CollectiveOp;
use mantile::plan::group::TierShape;
use mantile::plan::parallel::{ParallelPlan, Phase};
use mantile::plan::shard::{ShardedBlock, ShardedModel, Task, shard};
use mantile::spec::cluster::Topology;

use super::*;

/// Widths in the words of most families; a family adds its own.
const WIDTHS: &str =
    r#""vocab_size": 64, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 4"#;

fn sharded(family: &str, sp: bool) -> ShardedModel {
    let config = ModelConfig::parse(&format!("{{{family}, {WIDTHS}}}")).unwrap();
    let graph = ModelGraph::build(&config).unwrap_or_else(|error| panic!("{family}: {error}"));
    let plan = ParallelPlan { tp: 2, moe_tp: 2, sp, ..ParallelPlan::SINGLE };
    let tier = TierShape { devices: 2, topology: Topology::Switch, in_switch_reduction: false };
    shard(&graph, plan, Phase::Prefill, &[tier])
}

fn count(block: &ShardedBlock, kind: CollectiveOp) -> usize {
    let is = |task: &Task| matches!(task, Task::Communicate(collective) if collective.op == kind);
    block.steps.iter().filter(|step| is(&step.task)).count()
}

/// A family and the exchanges of its layer: what it sums over ranks, and norms over split widths.
const FAMILIES: &[(&str, usize, usize)] = &[
    (r#""model_type": "llama", "intermediate_size": 32"#, 2, 0),
    (r#""model_type": "olmo2", "intermediate_size": 32"#, 2, 2),
    (r#""model_type": "gemma2", "intermediate_size": 32, "num_key_value_heads": 4"#, 2, 0),
    (r#""model_type": "cohere", "intermediate_size": 32"#, 1, 0),
    (r#""model_type": "phi", "intermediate_size": 32"#, 1, 0),
    (r#""model_type": "gpt_neox", "intermediate_size": 32"#, 1, 0),
    (r#""model_type": "gpt_neox", "intermediate_size": 32, "use_parallel_residual": false"#, 2, 0),
    (r#""model_type": "falcon", "new_decoder_architecture": true, "num_kv_heads": 2"#, 1, 0),
    (r#""model_type": "falcon", "parallel_attn": false, "multi_query": false"#, 2, 0),
    (r#""model_type": "gptj", "n_positions": 8"#, 1, 0),
    (
        r#""model_type": "opt", "ffn_dim": 32, "max_position_embeddings": 8, "do_layer_norm_before": false"#,
        2,
        0,
    ),
];

#[test]
fn attention_and_network_side_by_side_are_summed_over_ranks_once() {
    for (family, sums, statistics) in FAMILIES {
        for block in sharded(family, false).blocks.iter() {
            assert_eq!(count(block, CollectiveOp::AllReduce), sums + statistics, "{family}");
        }
    }
}

#[test]
fn sequence_parallelism_scatters_every_sum_and_gathers_before_matrices() {
    for (family, sums, statistics) in FAMILIES {
        for block in sharded(family, true).blocks.iter() {
            assert_eq!(count(block, CollectiveOp::AllReduce), *statistics, "{family}");
            assert_eq!(count(block, CollectiveOp::ReduceScatter), *sums, "{family}");
            assert!(count(block, CollectiveOp::AllGather) > 0, "{family}");
        }
    }
}

#[test]
fn learned_positions_and_a_norm_after_the_embedding_cost_one_sum() {
    for family in [
        r#""model_type": "gpt2", "n_positions": 8"#,
        r#""model_type": "bloom""#,
        r#""model_type": "opt", "ffn_dim": 32, "max_position_embeddings": 8, "word_embed_proj_dim": 8"#,
    ] {
        assert_eq!(count(&sharded(family, false).embedding, CollectiveOp::AllReduce), 1, "{family}");
    }
}
