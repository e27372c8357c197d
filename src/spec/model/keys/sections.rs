//! Objects inside a `config.json`: single, by name, or in lists. Their unread keys are reported too.

use std::collections::BTreeSet;
use std::rc::Rc;

use serde_json::{Map, Value};

use super::{Keys, Section};
use crate::spec::error::Error;
use crate::spec::model::value::{elided, shown};

impl<'c> Keys<'c> {
    /// The keys of the object at `key`, e.g. `text_config`; `all_read` reports its unread keys too.
    pub fn section(&self, key: &'static str) -> Result<Keys<'c>, Error> {
        match self.section_or_none(key)? {
            Some(section) => Ok(section),
            None => Err(self.error(key, "missing key", "an object")),
        }
    }

    /// The same for an optional object.
    pub fn section_or_none(&self, key: &'static str) -> Result<Option<Keys<'c>>, Error> {
        match self.get(key) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::Object(map)) => {
                let path = format!("{}{key}.", self.path);
                Ok(Some(self.opened(map, path)))
            }
            Some(other) => Err(self.error(key, shown(other), "an object")),
        }
    }

    fn opened(&self, map: &'c Map<String, Value>, path: String) -> Keys<'c> {
        let section = || Section { map, read: BTreeSet::new() };
        self.sections.borrow_mut().entry(path.clone()).or_insert_with(section);
        Keys { map, path, defaults: &[], sections: Rc::clone(&self.sections) }
    }

    /// The keys of each object inside the object at `key`, by name, e.g. `per_layer_config`; `None` if it is absent or
    /// `null`.
    pub fn entries(&self, key: &'static str) -> Result<Option<Vec<(&'c str, Keys<'c>)>>, Error> {
        let Some(outer) = self.section_or_none(key)? else { return Ok(None) };
        let one = |(name, value): (&'c String, &'c Value)| {
            let Value::Object(map) = value else {
                let place = format!("{key}.{}", elided(name));
                return Err(self.error(&place, shown(value), "an object"));
            };
            Ok((name.as_str(), self.opened(map, format!("{}{name}.", outer.path))))
        };
        // The entries account for their own keys.
        self.sections.borrow_mut().remove(&outer.path);
        outer.map.iter().map(one).collect::<Result<_, _>>().map(Some)
    }

    /// The keys of each object in the list at `key`, e.g. `block_configs`.
    pub fn section_list(&self, key: &'static str) -> Result<Vec<Keys<'c>>, Error> {
        let Some(Value::Array(values)) = self.get(key) else {
            return Err(self.error(key, "not a list", "a list of objects"));
        };
        let one = |(at, value): (usize, &'c Value)| {
            let Value::Object(map) = value else {
                return Err(self.error(&format!("{key}[{at}]"), shown(value), "an object"));
            };
            let path = format!("{}{key}[{at}].", self.path);
            Ok(self.opened(map, path))
        };
        values.iter().enumerate().map(one).collect()
    }
}
