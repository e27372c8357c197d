//! Memory of attention that a server allocates after its cache: partial results of every request and part of its context.

use super::start_memory::StartInputs;
use crate::graph::model::ModelGraph;
use crate::graph::operator::Operator;
use crate::spec::setting::Setting;
use crate::spec::start::AttentionParts;

/// Partial results of attention of a server.
#[derive(Clone, Debug)]
pub struct PartialResults {
    /// Bytes of each request.
    per_request: f64,
    /// Requests that the command states, of a rank.
    stated: Option<u64>,
    /// Tokens of the longest request.
    context: u64,
    rule: AttentionParts,
}

impl PartialResults {
    /// Those of a launch with `tp` ranks; `None` where its attention has another form or back end.
    pub fn of(of: &StartInputs, rule: Option<&AttentionParts>, tp: u64) -> Option<PartialResults> {
        let vendor = of.device.vendor.name();
        let rule = rule.filter(|rule| rule.vendors.iter().any(|known| known == vendor))?;
        if of.after(&rule.options).is_some_and(|word| word != rule.word) {
            return None;
        }
        let (heads, width) = widest(of.graph)?;
        let settings = &of.launch.processes[0].read.settings;
        let context = settings.count(Setting::Context).or(of.graph.max_context)?;
        // Each part of a head has its results, a maximum and a sum.
        let of_part = (heads / tp).max(1) * (width + 2) * rule.element_bytes;
        Some(PartialResults {
            per_request: context.div_ceil(rule.part_tokens).saturating_mul(of_part) as f64,
            stated: settings.count(Setting::MaxSequences),
            context,
            rule: rule.clone(),
        })
    }

    /// The fault where they do not fit in the bytes that are left after a cache of `tokens`.
    pub fn fault(&self, left: f64, tokens: u64) -> Option<String> {
        let [least, most] = self.rule.requests;
        let held = tokens.saturating_mul(self.rule.requests_per_context) / self.context.max(1);
        let requests = self.stated.unwrap_or(held.clamp(least, most));
        let needed = self.per_request * requests as f64;
        let gib = |bytes: f64| bytes / (1u64 << 30) as f64;
        (needed > left).then(|| {
            format!(
                "attention allocates {:.2} GiB after the cache, for {requests} requests of {} tokens, and {:.2} GiB are \
                 left: {}",
                gib(needed),
                self.context,
                gib(left),
                self.rule.source
            )
        })
    }
}

/// Query heads and their width, where attention keeps keys and values by head.
fn widest(graph: &ModelGraph) -> Option<(u64, u64)> {
    let nodes = graph.blocks.iter().flat_map(|block| block.graph.node_weights());
    let heads = nodes.filter_map(|node| match &node.operator {
        Operator::Attention(dims) => Some((dims.heads.value, dims.v_head_dim.value)),
        _ => None,
    });
    heads.max_by_key(|(heads, width)| heads * width)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::catalog::Catalog;

    /// SGLang's default of 4,096 requests of 262,144 tokens of Qwen3-30B-A3B-Instruct-2507: 65 GiB, where 60.65 GB were
    /// left (<https://github.com/sgl-project/sglang/issues/18262>).
    #[test]
    fn partial_results_are_those_that_ran_out_of_memory() {
        let launch = Catalog::default().launch_of("sglang").unwrap().unwrap().0;
        let rule = launch.start.attention_parts.unwrap();
        let per_request = (262_144 / 256 * 32 * 130 * 4) as f64;
        let parts = PartialResults { per_request, stated: None, context: 262_144, rule };
        let left = |gib: f64| gib * f64::from(1 << 30);
        let fault = parts.fault(left(60.65), 2_227_073).unwrap();
        assert!(
            fault.starts_with("attention allocates 65.00 GiB after the cache, for 4096 requests"),
            "{fault}"
        );
        assert_eq!(parts.fault(left(65.1), 2_227_073), None);
        assert_eq!(PartialResults { stated: Some(256), ..parts }.fault(left(10.0), 2_227_073), None);
    }
}
