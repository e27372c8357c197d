//! Unknown keys of models' configurations that are ignored: warnings, or errors under `--strict`.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use crate::spec::error::Error;

/// Whether ignored keys are errors, and the warnings so far. Clones share the warnings.
#[derive(Clone, Debug, Default)]
pub struct UnknownKeys {
    /// Whether each ignored key is an error.
    pub strict: bool,
    warnings: Arc<Mutex<BTreeSet<String>>>,
}

impl UnknownKeys {
    /// Records the ignored keys of the configuration from `source`.
    pub fn check(&self, source: &str, keys: &[String]) -> Result<(), Error> {
        let Some(warning) = warning(source, keys) else { return Ok(()) };
        if self.strict {
            let fix = "remove the keys, or omit --strict";
            let expected = "only known keys, with --strict";
            return Err(
                Error::new(keys.join(", "), "unknown for this model_type", expected, fix).in_file(source)
            );
        }
        self.warnings.lock().unwrap_or_else(PoisonError::into_inner).insert(warning);
        Ok(())
    }

    pub fn warnings(&self) -> Vec<String> {
        self.warnings.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }
}

/// The warning about ignored keys; `None` without any.
pub fn warning(source: &str, keys: &[String]) -> Option<String> {
    let list = keys.join(", ");
    (!keys.is_empty()).then(|| {
        format!(
            "{source}: ignored unknown keys: {list}; by their names they change no tensor, cache or operator"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ignored_keys_warn_once_and_fail_under_strict() {
        let keys = ["eos_token_ids".to_owned()];
        let lax = UnknownKeys::default();
        for _ in 0..2 {
            lax.clone().check("a.json", &keys).unwrap();
        }
        lax.check("b.json", &[]).unwrap();
        assert_eq!(lax.warnings(), [warning("a.json", &keys).unwrap()]);
        let strict = UnknownKeys { strict: true, ..UnknownKeys::default() };
        let fault = strict.check("a.json", &keys).unwrap_err();
        assert_eq!((fault.file.as_str(), fault.key.as_str()), ("a.json", "eos_token_ids"));
        assert!(strict.warnings().is_empty());
    }
}
