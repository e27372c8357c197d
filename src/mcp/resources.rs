//! Resources: addresses that read a request of the table.

use rmcp::model::{Resource, ResourceTemplate};
use serde_json::{Value, json};

use crate::request::permalink::{PermalinkRequest, permalink};
use crate::request::{UNCONTROLLED, value};
use crate::spec::error::Error;
use crate::store::catalog::Catalog;
use crate::store::kind::KINDS;

/// Beginning of every address.
const START: &str = "mantile://";

pub(super) fn listed() -> Vec<Resource> {
    let of = |path: &str, name: String| {
        Resource::new(format!("{START}{path}"), name).with_mime_type("application/json")
    };
    let catalogues = KINDS
        .iter()
        .map(|kind| of(&format!("catalog/{}", kind.plural()), format!("catalogue: {}", kind.plural())));
    let texts =
        [("glossary", "terms of the reports"), ("formulas", "every formula with unit, reason and citation")];
    catalogues.chain(texts.map(|(path, name)| of(path, name.to_owned()))).collect()
}

/// The resources whose addresses have a part to fill in.
pub(super) fn templates() -> Vec<ResourceTemplate> {
    let of = |path: &str, name: &str| {
        ResourceTemplate::new(format!("{START}{path}"), name).with_mime_type("application/json")
    };
    vec![
        of("catalog/{kind}/{name}", "one entry of the catalogue, every figure with its source"),
        of("schema/{name}", "the JSON Schema of a request, a report or a file"),
        of("explain/{permalink}/{number}", "a number of a linked scenario as formulas, figures and sources"),
    ]
}

/// The request that an address reads: its name and body.
pub(super) fn request(catalog: &Catalog, uri: &str) -> Result<(&'static str, Value), Error> {
    let unknown = || {
        let fix = "list the resources and their templates";
        Error::new("uri", format!("`{uri}`"), format!("an address that begins with {START}"), fix)
    };
    let path: Vec<&str> = uri.strip_prefix(START).ok_or_else(unknown)?.splitn(3, '/').collect();
    Ok(match path[..] {
        ["glossary"] => ("glossary", json!({})),
        ["formulas"] => ("formulas", json!({})),
        ["catalog", kind] => ("catalog", json!({"kind": kind})),
        ["catalog", kind, name] => ("catalog", json!({"kind": kind, "name": name})),
        ["schema", name] => ("schema", json!({"name": name})),
        ["explain", link, number] => {
            let link = PermalinkRequest::Link { link: link.to_owned() };
            let linked = value(&permalink(catalog, &link, &UNCONTROLLED)?);
            ("explain", json!({"scenario": linked["question"]["scenario"], "number": number}))
        }
        _ => return Err(unknown()),
    })
}
