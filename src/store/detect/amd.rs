//! Outputs of `amd-smi` and `rocm-smi`.

use serde_json::Value;

use super::printed::{PcieSlot, PrintedAccelerator, memory as size, number};

/// Both tools write MB for 2^20 bytes.
const MIB: f64 = 1_048_576.0;

/// The number in `196592`, `"196592 MB"` or `{"value": 196592, "unit": "MB"}`.
fn quantity(value: &Value) -> Option<f64> {
    match value {
        Value::Number(number) => number.as_f64().filter(|number| *number >= 0.0),
        Value::String(text) => number(text.split_whitespace().next()?),
        Value::Object(fields) => fields.get("value").and_then(quantity),
        Value::Null | Value::Bool(_) | Value::Array(_) => None,
    }
}

/// The GPUs of `amd-smi static --json`; some versions wrap the list in an object.
pub fn amd_smi(text: &str) -> Option<Vec<PrintedAccelerator>> {
    let value: Value = serde_json::from_str(text).ok()?;
    let list = value.get("gpu_data").unwrap_or(&value).as_array()?;
    let gpu = |gpu: &Value| {
        let asic = gpu.get("asic")?;
        let name = asic.get("market_name")?.as_str().filter(|name| *name != "N/A")?;
        let vram = |key: &str| gpu.get("vram")?.get(key).and_then(quantity);
        let bus = |key: &str| gpu.get("bus")?.get(key);
        let generation = bus("pcie_interface_version")
            .and_then(|version| number(version.as_str()?.trim_start_matches(|c: char| !c.is_ascii_digit())));
        let lanes = bus("max_pcie_width").and_then(quantity);
        let limit = |key: &str| gpu.get("limit")?.get(key).and_then(quantity);
        Some(PrintedAccelerator {
            name: name.trim().to_owned(),
            memory: vram("size").or_else(|| vram("size_mb")).and_then(|mb| size(mb * MIB)),
            slot: generation.zip(lanes).and_then(|(generation, lanes)| PcieSlot::new(generation, lanes)),
            power_limit: limit("max_power"),
            ..PrintedAccelerator::default()
        })
    };
    Some(list.iter().filter_map(gpu).collect())
}

/// The GPUs of `rocm-smi --json`: objects `card0`, `card1` … The case of the keys differs between versions.
pub fn rocm_smi(text: &str) -> Option<Vec<PrintedAccelerator>> {
    // Warnings may precede the object.
    let value: Value = serde_json::from_str(text.get(text.find('{')?..)?).ok()?;
    let mut cards: Vec<(u64, &Value)> = value
        .as_object()?
        .iter()
        .filter_map(|(key, card)| Some((key.strip_prefix("card")?.parse().ok()?, card)))
        .collect();
    cards.sort_by_key(|(number, _)| *number);
    let card = |card: &Value| {
        let fields = card.as_object()?;
        let of = |wanted: &str| {
            let same = fields.iter().find(|(key, _)| key.eq_ignore_ascii_case(wanted));
            same.map(|(_, value)| value)
        };
        let named = ["Card Series", "Device Name", "Card Model"];
        let names = named.iter().filter_map(|key| of(key)?.as_str());
        // A model is often only a number of the bus: 0x74a1.
        let name = names
            .map(str::trim)
            .find(|name| !name.is_empty() && *name != "N/A" && !name.starts_with("0x"))?;
        let bytes = |key: &str| of(key).and_then(quantity);
        Some(PrintedAccelerator {
            name: name.to_owned(),
            memory: bytes("VRAM Total Memory (B)").and_then(size),
            used: bytes("VRAM Total Used Memory (B)"),
            power_limit: bytes("Max Graphics Package Power (W)"),
            ..PrintedAccelerator::default()
        })
    };
    Some(cards.into_iter().filter_map(|(_, fields)| card(fields)).collect())
}
