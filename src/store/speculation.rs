//! The draft of speculative decoding, from a scenario.

use super::catalog::Catalog;
use crate::graph::draft::Draft;
use crate::graph::model::ModelGraph;
use crate::spec::error::Error;
use crate::spec::limits::{ACCEPTANCE, DRAFT_TOKENS};
use crate::spec::scenario::Scenario;

/// Maximum vocabulary difference within one family, from padded tokens (SPEC_VOCAB_MAX_SIZE_DIFFERENCE, llama.cpp
/// common/speculative.cpp; Qwen2.5's sizes reach it).
const PADDING: u64 = 128;

/// Name of the model's own module in a scenario.
const OWN: &str = "mtp";

impl Catalog {
    /// Adds the draft of the scenario to `graph`; returns the acceptance rate. Without one, no draft token counts as
    /// accepted: memory does not depend on it, and a step yields no less.
    pub(super) fn speculation(
        &self,
        scenario: &Scenario,
        graph: &mut ModelGraph,
    ) -> Result<Option<f64>, Error> {
        let Some(name) = &scenario.draft else {
            return match (scenario.draft_tokens, scenario.acceptance) {
                (None, None) => Ok(None),
                _ => Err(Error::new("draft", "nothing", "a draft", "set `mtp` or a model's name")),
            };
        };
        let acceptance = scenario.acceptance.unwrap_or(0.0);
        ACCEPTANCE.check("acceptance", acceptance)?;
        let tokens = scenario.draft_tokens.unwrap_or(1);
        DRAFT_TOKENS.check_whole("draft-tokens", tokens)?;
        let (name, draft) = match name.eq_ignore_ascii_case(OWN) {
            true => (OWN.to_owned(), own(graph)?),
            false => self.smaller(name, graph)?,
        };
        graph.draft = Some(Draft { name, graph: Box::new(draft), tokens });
        Ok(Some(acceptance))
    }

    fn smaller(&self, name: &str, graph: &ModelGraph) -> Result<(String, ModelGraph), Error> {
        let (model, draft) = self.built(name).map_err(|fault| Error { key: "draft".into(), ..fault })?;
        let (own, its) = (graph.vocab.value, draft.vocab.value);
        if own.abs_diff(its) > PADDING {
            let found = format!("a vocabulary of {its} tokens");
            let expected = format!("that of the model, {own}, up to padding");
            return Err(Error::new("draft", found, expected, "use a smaller model of the same family"));
        }
        Ok((model.name, draft))
    }
}

fn own(graph: &ModelGraph) -> Result<ModelGraph, Error> {
    graph.multi_token_prediction().ok_or_else(|| {
        let found = match graph.mtp.is_empty() {
            true => "a model without multi-token prediction in its checkpoint",
            false => "a multi-token-prediction module that differs from the model's last layer",
        };
        Error::new("draft", found, "a draft module", "name a smaller model of the same family instead")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::resolved_scenario::ResolvedScenario;

    fn resolve(
        model: &str,
        draft: Option<&str>,
        tokens: Option<u64>,
        acceptance: Option<f64>,
    ) -> Result<ResolvedScenario, Error> {
        let scenario = Scenario {
            draft: draft.map(str::to_owned),
            draft_tokens: tokens,
            acceptance,
            ..Scenario::of(model, "8xh200")
        };
        ResolvedScenario::resolve(&Catalog::default(), &scenario)
    }

    #[test]
    fn deepseeks_module_is_a_layer_and_the_matrix_before_it() {
        let problem = resolve("DeepSeek-V3", Some("mtp"), None, Some(0.85)).unwrap();
        let module = problem.graph.draft.as_ref().unwrap();
        // All that the checkpoint adds but norms, embedding and head, which it holds twice.
        let shipped = problem.graph.parameters().mtp;
        let taken = module.graph.parameters().unique;
        assert!(taken <= shipped && (shipped - taken) < 100_000, "{taken} of {shipped}");
        assert_eq!(module.tokens, 1);
    }

    #[test]
    fn what_cannot_guess_is_refused() {
        let key = |result: Result<ResolvedScenario, Error>| result.map(|_| "accepted").unwrap_err().key;
        assert_eq!(key(resolve("Llama-3.3-70B-Instruct", Some("mtp"), None, Some(0.8))), "draft");
        assert_eq!(key(resolve("Llama-3.3-70B-Instruct", Some("DeepSeek-V3"), None, Some(0.8))), "draft");
        let unknown = resolve("DeepSeek-V3", Some("mtp"), None, None).unwrap();
        assert_eq!((unknown.acceptance, unknown.unstated_acceptance), (Some(0.0), true));
        assert_eq!(key(resolve("DeepSeek-V3", Some("mtp"), None, Some(1.5))), "acceptance");
        assert_eq!(key(resolve("DeepSeek-V3", Some("mtp"), Some(0), Some(0.8))), "draft-tokens");
        assert_eq!(key(resolve("DeepSeek-V3", None, Some(3), None)), "draft");
        resolve("Llama-3.3-70B-Instruct", Some("Llama-3.2-3B-Instruct"), Some(3), Some(0.7)).unwrap();
    }
}
