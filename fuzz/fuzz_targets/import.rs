//! Any text through the door `import`: see `tests/support/hostile.rs`.

#![no_main]

#[allow(dead_code)]
#[path = "../../tests/support/hostile.rs"]
mod hostile;

libfuzzer_sys::fuzz_target!(|text: &str| hostile::imported(text));
