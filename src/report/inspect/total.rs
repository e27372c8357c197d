//! A checkpoint's published total, and the counts of a model that add up to it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::graph::inspect::{InspectedTensor, Inspection};
use crate::report::table::grouped;
use crate::spec::model::file::PublishedTotal;

/// A published total, explained or not.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Reconciliation {
    /// Published number of elements.
    pub published: u64,
    /// Source.
    pub source: String,
    /// The counts that add up to it, or the nearest ones.
    pub terms: Vec<CountTerm>,
    /// Whether they add up exactly.
    pub explained: bool,
    /// Published elements beyond the counts; negative if the counts exceed the total.
    pub unexplained: i64,
}

/// A count that a published total may include.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CountTerm {
    /// Name of the count.
    pub name: String,
    /// Number of elements.
    pub elements: u64,
}

impl Reconciliation {
    /// Finds the counts that add up to `total`: unique parameters and optional checkpoint contents.
    pub fn of(inspection: &Inspection, total: &PublishedTotal) -> Reconciliation {
        let optional = optional(inspection);
        let unique = CountTerm { name: "unique".to_owned(), elements: inspection.parameters.unique };
        let published = i128::from(total.elements);
        // Fewer counts come first, so that the simplest explanation wins.
        let mut choices: Vec<u32> = (0..1 << optional.len()).collect();
        choices.sort_by_key(|choice: &u32| choice.count_ones());
        let chosen = |choice: u32| optional.iter().enumerate().filter(move |(at, _)| choice >> at & 1 == 1);
        let rest = |choice: u32| {
            let sum: u64 = chosen(choice).map(|(_, term)| term.elements).sum();
            published - i128::from(unique.elements) - i128::from(sum)
        };
        let best = choices.into_iter().min_by_key(|choice| rest(*choice).unsigned_abs()).unwrap_or_default();
        let terms = [unique.clone()].into_iter().chain(chosen(best).map(|(_, term)| term.clone())).collect();
        let unexplained = rest(best).clamp(i64::MIN.into(), i64::MAX.into()) as i64;
        let source = total.source.clone();
        Reconciliation { published: total.elements, source, terms, explained: unexplained == 0, unexplained }
    }
}

/// Optional checkpoint contents of this model in addition to unique parameters.
fn optional(inspection: &Inspection) -> Vec<CountTerm> {
    let parameters = inspection.parameters;
    let elements = |tensor: &InspectedTensor| tensor.shape.iter().product::<u64>();
    let mtp_buffers: u64 = inspection.mtp.iter().filter(|tensor| tensor.buffer).map(elements).sum();
    let terms = [
        ("buffers", parameters.buffers),
        ("copy of the tied head", tied_copy(inspection).unwrap_or_default()),
        ("multi-token prediction", parameters.mtp - mtp_buffers),
        ("buffers of multi-token prediction", mtp_buffers),
        ("copies of embedding and head in multi-token prediction", parameters.mtp_copies),
        ("scales", inspection.checkpoint.map_or(0, |checkpoint| checkpoint.scales)),
    ];
    let there = terms.into_iter().filter(|(_, elements)| *elements > 0);
    there.map(|(name, elements)| CountTerm { name: name.to_owned(), elements }).collect()
}

/// Elements of a head that is the embedding's weights: a checkpoint may store them a second time.
pub fn tied_copy(inspection: &Inspection) -> Option<u64> {
    let mut operators = inspection.blocks.iter().flat_map(|block| &block.operators);
    let head = operators.rfind(|operator| operator.name == "lm_head")?;
    let elements = head.dims.iter().map(|dim| dim.value).product();
    inspection.tied.then_some(elements)
}

/// The lines in the text of `inspect`.
pub fn text(reconciliation: &Reconciliation) -> Vec<String> {
    let Reconciliation { published, source, terms, explained, unexplained } = reconciliation;
    let mut lines = vec![format!("  published   {} in the checkpoint ({source})", grouped(*published))];
    for (at, CountTerm { name, elements }) in terms.iter().enumerate() {
        let sign = if at == 0 { "=" } else { "+" };
        lines.push(format!("              {sign} {} {name}", grouped(*elements)));
    }
    if !explained {
        let sign = if *unexplained < 0 { "-" } else { "+" };
        let size = unexplained.unsigned_abs();
        lines.push(format!("              {sign} {} unexplained", grouped(size)));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::inspect::tests::llama;

    fn tied(tied: bool) -> Inspection {
        llama(&format!(r#""num_key_value_heads": 1, "tie_word_embeddings": {tied}"#)).inspection
    }

    fn lines(inspection: &Inspection, elements: u64) -> Vec<String> {
        let total = PublishedTotal { elements, source: "s".to_owned() };
        text(&Reconciliation::of(inspection, &total))
    }

    #[test]
    fn a_copy_of_a_tied_head_explains_a_total_and_one_element_more_is_not_explained() {
        let tied = tied(true);
        let unique = tied.parameters.unique;
        let exact = lines(&tied, unique + 11 * 6);
        assert_eq!(exact[2].trim(), "+ 66 copy of the tied head");
        assert_eq!(exact.len(), 3);
        let more = lines(&tied, unique + 11 * 6 + 1);
        assert_eq!(more[3].trim(), "+ 1 unexplained");
        assert_eq!(lines(&tied, unique - 2)[2].trim(), "- 2 unexplained");
    }

    #[test]
    fn a_head_of_its_own_is_no_copy() {
        let own = tied(false);
        assert_eq!(tied_copy(&own), None);
        assert_eq!(lines(&own, own.parameters.unique).len(), 2);
    }
}
