//! Comparison of two catalogue entries, figure by figure.

use std::path::Path;

use serde_json::Value;

use crate::report::diff::{Difference, difference};
use crate::spec::error::Error;
use crate::spec::text::from_json;
use crate::store::catalog::{Catalog, CatalogEntry, LookupError, is_path};
use crate::store::check::recognise;
use crate::store::kind::{CatalogKind, KINDS};

/// Differences between two entries; the first kind that contains both if none is given.
pub fn differences(
    catalog: &Catalog,
    kind: Option<CatalogKind>,
    names: [&str; 2],
) -> Result<Vec<Difference>, Error> {
    let (a, b) = both(catalog, kind, names)?;
    Ok(difference(&a, &b))
}

/// Both entries, of the first kind that contains both.
fn both(
    catalog: &Catalog,
    kind: Option<CatalogKind>,
    [first_name, second_name]: [&str; 2],
) -> Result<(Value, Value), Error> {
    let mut first: Option<Error> = None;
    let mut one: Option<(CatalogKind, &str)> = None;
    for kind in kind.map_or_else(|| KINDS.to_vec(), |kind| vec![kind]) {
        match (entry(catalog, kind, first_name), entry(catalog, kind, second_name)) {
            (Ok(a), Ok(b)) => return Ok((a, b)),
            (Ok(_), Err(fault)) => {
                one.get_or_insert((kind, first_name));
                first.get_or_insert(fault);
            }
            (Err(fault), Ok(_)) => {
                one.get_or_insert((kind, second_name));
                first.get_or_insert(fault);
            }
            (Err(_), Err(_)) => {}
        }
    }
    Err(match (first, one) {
        (Some(fault), Some((kind, name))) => {
            Error { expected: format!("{}, the kind of `{name}`", kind.article()), ..fault }
        }
        _ => {
            let found = format!("`{first_name}` and `{second_name}`, both unknown");
            let fix = "`mantile-opt catalog KIND` lists the names";
            Error::new("diff", found, "two entries of one kind", fix)
        }
    })
}

/// The entry of a kind that a name or path refers to.
fn entry(catalog: &Catalog, kind: CatalogKind, name: &str) -> Result<Value, Error> {
    if is_path(name) {
        let (found, map) = recognise(Path::new(name))?;
        if found != kind {
            let fix = "compare two entries of the same kind";
            return Err(Error::new("diff", found.article(), kind.article(), fix).in_file(name));
        }
        return Ok(Value::Object(map));
    }
    let shelved: CatalogEntry = match kind {
        CatalogKind::Models => catalog.known_model(name).map_err(Error::from)?,
        CatalogKind::Devices => {
            let device = catalog.device(name).map_err(Error::from)?;
            catalog.find(kind, device.measured_as()).map_err(Error::from)?
        }
        kind => catalog.find(kind, name).map_err(|miss: LookupError| Error::from(miss))?,
    };
    from_json(&shelved.text()?, kind.article()).map_err(|fault| fault.in_file(&shelved.file))
}
