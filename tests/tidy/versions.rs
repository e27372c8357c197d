//! Bindings rest on the packages that the program was tested with.

use std::collections::BTreeSet;

use super::none;
use super::source::root;

/// Packages of the lock file in `folder`, as `name version`.
fn locked(folder: &str) -> BTreeSet<String> {
    let text = std::fs::read_to_string(root().join(folder).join("Cargo.lock")).unwrap();
    let lock: toml::Table = toml::from_str(&text).unwrap();
    let packages = lock["package"].as_array().unwrap().iter();
    packages
        .map(|package| {
            format!("{} {}", package["name"].as_str().unwrap(), package["version"].as_str().unwrap())
        })
        .collect()
}

#[test]
fn bindings_have_the_versions_of_the_program() {
    let own = locked("");
    let name = |package: &str| package.split(' ').next().unwrap_or_default().to_owned();
    let names: BTreeSet<String> = own.iter().map(|package| name(package)).collect();
    let mut faults = Vec::new();
    for folder in ["bindings/python", "bindings/wasm"] {
        let other = locked(folder).into_iter().filter(|package| !own.contains(package));
        faults.extend(
            other
                .filter(|package| names.contains(&name(package)))
                .map(|package| format!("{folder}: {package}")),
        );
    }
    none(&faults);
}
