//! Files that come with a request: a model's `config.json`, a device, a system. They are entries of the catalogue for
//! that request.

use schemars::{Schema, json_schema};
use serde_json::{Map, Value};

use crate::spec::error::Error;
use crate::store::catalog::Catalog;
use crate::store::kind::{CatalogKind, KINDS};

/// The key of a request that holds them.
const KEY: &str = "files";
/// Maximum number of files.
const MOST: usize = 32;

/// Takes the files out of a request, and puts them into its catalogue. None where it has none.
///
/// # Errors
/// They are no object, too many, or a name is not that of a folder and an entry.
pub fn taken(catalog: &Catalog, request: &Value) -> Result<Option<(Catalog, Value)>, Error> {
    let Some(files) = request.get(KEY) else { return Ok(None) };
    let expected = "an object with at most 32 files by name, e.g. {\"models/mine\": {…}}";
    let files = files.as_object().filter(|files| files.len() <= MOST);
    let files = files.ok_or_else(|| Error::new(KEY, "another value", expected, "name each file"))?;
    let mut catalog = catalog.clone();
    for (name, file) in files {
        let (kind, id) = entry_of(name)?;
        let text = file.as_str().map_or_else(|| file.to_string(), str::to_owned);
        catalog = catalog.with_entry(kind, id, &text);
    }
    let mut rest = request.as_object().cloned().unwrap_or_default();
    rest.shift_remove(KEY);
    Ok(Some((catalog, Value::Object(rest))))
}

/// The kind and the id of `models/mine`.
fn entry_of(name: &str) -> Result<(CatalogKind, &str), Error> {
    let found = name.rsplit_once('/').and_then(|(folder, id)| {
        let kind = KINDS.iter().find(|kind| kind.folder() == folder)?;
        (!id.is_empty()).then_some((*kind, id))
    });
    found.ok_or_else(|| {
        let folders: Vec<String> = KINDS.iter().map(|kind| format!("{}/NAME", kind.folder())).collect();
        Error::new(KEY, format!("`{name}`"), folders.join(", "), "name the folder of its kind")
    })
}

/// The schema of a request, with the files that it may carry.
pub fn with_files(mut schema: Schema) -> Schema {
    let files = json_schema!({
        "description": "Files for this request alone, by folder and name: `models/NAME` is a config.json, \
                        `hardware/devices/NAME` a device, `hardware/systems/NAME` a system.",
        "type": "object",
        "additionalProperties": true,
        "maxProperties": MOST,
    });
    let properties = schema.ensure_object().entry("properties").or_insert_with(|| Value::Object(Map::new()));
    if let Some(properties) = properties.as_object_mut() {
        properties.insert(KEY.to_owned(), files.into());
    }
    schema
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_file_is_an_entry_of_its_kind() {
        let catalog = Catalog::default();
        let request = json!({"model": "mine", "files": {"models/mine": {"model_type": "llama"}}});
        let (given, rest) = taken(&catalog, &request).unwrap().unwrap();
        assert_eq!(rest, json!({"model": "mine"}));
        assert!(given.entries(CatalogKind::Models).contains_key("mine"));
        assert!(taken(&catalog, &rest).unwrap().is_none());
        for name in ["mine", "models/", "/etc/passwd", "../models/mine"] {
            assert_eq!(taken(&catalog, &json!({"files": {name: {}}})).err().unwrap().key, "files", "{name}");
        }
    }
}
