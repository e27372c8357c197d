//! Keys of transformers' model classes, from `class_keys.json`: defaults for missing ones, and those without effect.
//!
//! Source of the defaults: the class's `configuration_*.py` of transformers 5.23,
//! <https://github.com/huggingface/transformers/tree/v5.23.0/src/transformers/models>. Numbers that classes derive from
//! others are handled by the builders.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;

/// Keys with a default in a class.
type KeyDefaults = &'static [(&'static str, u64)];

/// The file: numbers by class and key, and lists of keys by the builder that ignores them.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ClassFile {
    #[serde(borrow)]
    file_defaults: BTreeMap<&'static str, BTreeMap<&'static str, u64>>,
    #[serde(borrow)]
    section_defaults: BTreeMap<&'static str, BTreeMap<&'static str, u64>>,
    #[serde(borrow)]
    ignored: BTreeMap<&'static str, Vec<&'static str>>,
}

static KEYS: LazyLock<ClassFile> =
    LazyLock::new(|| serde_json::from_str(include_str!("class_keys.json")).expect("the file is valid JSON"));

type DefaultsByClass = BTreeMap<&'static str, Vec<(&'static str, u64)>>;

static FILES: LazyLock<DefaultsByClass> = LazyLock::new(|| rows(&KEYS.file_defaults));
static SECTIONS: LazyLock<DefaultsByClass> = LazyLock::new(|| rows(&KEYS.section_defaults));

fn rows(table: &BTreeMap<&'static str, BTreeMap<&'static str, u64>>) -> DefaultsByClass {
    table
        .iter()
        .map(|(class, keys)| (*class, keys.iter().map(|(key, value)| (*key, *value)).collect()))
        .collect()
}

/// Defaults for a whole file: only keys that older versions of the class did not write. A file without its widths is
/// more likely broken than intended.
pub fn of_file(model_type: &str) -> KeyDefaults {
    FILES.get(model_type).map_or(&[], Vec::as_slice)
}

/// Defaults for a section (`text_config`, `vision_config`): older versions of transformers omitted every key that
/// equals the class's default.
pub fn of_part(model_type: &str) -> KeyDefaults {
    SECTIONS.get(model_type).map_or(&[], Vec::as_slice)
}

/// Keys that change no shape in an architecture, or in a part of its file.
pub fn ignored(part: &str) -> &'static [&'static str] {
    KEYS.ignored.get(part).map_or(&[], Vec::as_slice)
}
