//! Vendors and generations that files name: those that no device has are typing errors, which would silently borrow the
//! constants of other devices.

use std::collections::BTreeSet;

use super::catalog::{Catalog, read_entry};
use super::kind::CatalogKind;
use crate::spec::device::{Device, Vendor};
use crate::spec::error::Error;
use crate::spec::near::suggest;
use crate::spec::plausible::Warning;
use crate::spec::runtime::Runtime;
use crate::spec::text::from_json;

impl Catalog {
    /// The generations of the shipped devices, and those that devices of the user declare as new.
    fn families(&self) -> Result<BTreeSet<String>, Error> {
        let own = self.entries(CatalogKind::Devices).into_values().filter(|entry| entry.user);
        let own = own.map(|entry| read_entry::<Device>(&entry)).filter_map(Result::ok);
        let shipped = CatalogKind::Devices
            .shipped()
            .iter()
            .map(|(_, file)| from_json::<Device>(file.text(), "a device"));
        let shipped = shipped.collect::<Result<Vec<_>, _>>()?;
        let declared = own.filter(|device| device.new_family).chain(shipped);
        Ok(declared.map(|device| device.family).collect())
    }

    /// A generation that no other file knows borrows constants: a new one is declared, another is a typing error.
    pub(super) fn unknown_family(&self, device: &Device) -> Result<Option<Warning>, Error> {
        let known = self.families()?;
        if device.new_family || known.contains(&device.family) {
            return Ok(None);
        }
        let names = known.iter().map(String::as_str);
        let near = suggest(&device.family, names, "mantile-opt catalog devices --format json");
        let why = format!(
            "unknown generation `{}`, which has the constants of other devices: {near} Set \"new_family\": true for a \
             new one",
            device.family
        );
        Ok(Some(Warning { key: "family".into(), why }))
    }

    /// Names in a runtime that are neither a vendor nor a generation: its entry applies to no device.
    pub(super) fn unknown_makers(&self, runtime: &Runtime) -> Result<Vec<Warning>, Error> {
        let families = self.families()?;
        let known: Vec<&str> = families.iter().map(String::as_str).chain(Vendor::NAMES).collect();
        let lists = [("vendors", &runtime.vendors), ("default_for", &runtime.default_for)].into_iter();
        let excluded = runtime.excludes.iter().map(|exclusion| ("excludes.families", &exclusion.families));
        let measured = runtime.constants.iter().map(|constants| ("constants.families", &constants.families));
        let named = lists.chain(excluded).chain(measured);
        let named = named.flat_map(|(key, names)| names.iter().map(move |name| (key, name)));
        let unknown = named.filter(|(_, name)| !known.contains(&name.as_str()));
        let doubt = |(key, name): (&str, &String)| {
            let near = suggest(name, known.iter().copied(), "mantile-opt catalog devices --format json");
            let why = format!("`{name}` is neither a vendor nor the generation of a device: {near}");
            Warning { key: key.to_owned(), why }
        };
        Ok(unknown.map(doubt).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn doubts(family: &str, new_family: bool) -> Vec<String> {
        let catalog = Catalog::default();
        let shipped: Device = catalog.load("nvidia-h100-sxm").unwrap();
        let device = Device { id: "mine".into(), family: family.into(), new_family, ..shipped };
        catalog.unknown_family(&device).unwrap().into_iter().map(|doubt| doubt.why).collect()
    }

    #[test]
    fn a_family_with_a_typing_error_is_named_and_a_declared_one_is_not() {
        assert!(doubts("hopper", false).is_empty());
        let named = doubts("hoper", false);
        assert!(named.iter().any(|why| why.contains("did you mean `hopper`?")), "{named:?}");
        assert!(doubts("hoper", true).is_empty());
    }

    #[test]
    fn a_vendor_is_one_of_the_list() {
        let text = r#"{"id": "x", "name": "x", "vendor": "nvidai", "family": "hopper"}"#;
        let fault = from_json::<Device>(text, "a device").unwrap_err();
        assert_eq!(fault.key, "vendor", "{fault}");
    }

    #[test]
    fn every_name_in_a_shipped_runtime_exists() {
        let catalog = Catalog::default();
        for file in catalog.entries(CatalogKind::Runtimes).values() {
            assert_eq!(catalog.unknown_makers(&read_entry(file).unwrap()).unwrap(), []);
        }
    }
}
