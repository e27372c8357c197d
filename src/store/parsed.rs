//! Values that only built-in files determine, each made once: a search over the catalogue needs the same few many times.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

#[derive(Clone, Debug, Default)]
pub(super) struct Parsed(Arc<Mutex<HashMap<(TypeId, String), Arc<dyn Any + Send + Sync>>>>);

/// The values of built-in files, which are those of the program, whatever catalogue names them.
pub(super) static SHIPPED: LazyLock<Parsed> = LazyLock::new(Parsed::default);

impl Parsed {
    /// The value of this type and name; two threads may both make it. What fails is not kept.
    pub(super) fn once<T: Send + Sync + 'static, E>(
        &self,
        name: &str,
        make: impl FnOnce() -> Result<T, E>,
    ) -> Result<Arc<T>, E> {
        let key = (TypeId::of::<T>(), name.to_owned());
        let kept = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = kept().get(&key).cloned();
        if let Some(known) = known.and_then(|known| known.downcast::<T>().ok()) {
            return Ok(known);
        }
        let fresh = Arc::new(make()?);
        kept().insert(key, Arc::clone(&fresh) as Arc<dyn Any + Send + Sync>);
        Ok(fresh)
    }
}
