//! Spoils real input: values at the edges of their types, keys gone, doubled or out of place, bytes flipped.

use fastrand::Rng;
use serde_json::{Map, Value, json};

/// Numbers at the edges of what types and formulas hold, as JSON writes them.
const EDGES: [&str; 25] = [
    "0",
    "-0.0",
    "-1",
    "1",
    "2",
    "3",
    "7",
    "0.5",
    "1e-320",
    "1e-30",
    "1e-9",
    "1e9",
    "1e15",
    "1e18",
    "1e300",
    "1.7976931348623157e308",
    "127",
    "1048576",
    "100000000",
    "4294967296",
    "9007199254740993",
    "9223372036854775807",
    "18446744073709551615",
    "18446744073709551616",
    "-9223372036854775808",
];

/// Texts that something may take for a number, a unit, a name or a path.
const TEXTS: [&str; 22] = [
    "",
    " ",
    "none",
    "any",
    "NaN",
    "inf",
    "1e999 B/s",
    "0 GB/s",
    "-1 s",
    "1e-300 s",
    "1e17 B/s",
    "5 %",
    "1 B*B*B*B*B*B*B/s/s",
    "99999999999999999999xh100",
    "3x5xh100-sxm",
    "=1+1",
    "\u{202e}\u{0}\u{7}",
    "é😀x",
    "../../../etc/passwd",
    "hf:a/b",
    "8xh100-sxm",
    "1970-13",
];

fn edge(rng: &mut Rng) -> Value {
    match rng.u8(..10) {
        0 => Value::Null,
        1 => json!(rng.bool()),
        2 => json!([]),
        3 => json!({}),
        4 | 5 => json!(TEXTS[rng.usize(..TEXTS.len())]),
        6 => json!(rng.u64(..)),
        7 => {
            let unit =
                ["B", "B/s", "FLOP/s", "s", "W", "USD", "USD/h", "USD/kWh", "", "bit"][rng.usize(..10)];
            json!(format!("{} {unit}", EDGES[rng.usize(..EDGES.len())]))
        }
        _ => serde_json::from_str(EDGES[rng.usize(..EDGES.len())]).unwrap(),
    }
}

/// Every value inside `value`, itself first.
fn all<'a>(value: &'a mut Value, at: &mut usize) -> Option<&'a mut Value> {
    if *at == 0 {
        return Some(value);
    }
    *at -= 1;
    match value {
        Value::Object(map) => map.values_mut().find_map(|inner| all(inner, at)),
        Value::Array(list) => list.iter_mut().find_map(|inner| all(inner, at)),
        _ => None,
    }
}

fn count(value: &Value) -> usize {
    1 + match value {
        Value::Object(map) => map.values().map(count).sum(),
        Value::Array(list) => list.iter().map(count).sum(),
        _ => 0,
    }
}

/// Spoils one place of `value`; `other` lends a part of itself.
fn spoil_value(rng: &mut Rng, value: &mut Value, other: &Value) {
    let mut at = rng.usize(..count(value));
    let Some(place) = all(value, &mut at) else { return };
    match (rng.u8(..10), &mut *place) {
        (0, Value::Object(map)) if !map.is_empty() => {
            let key = map.keys().nth(rng.usize(..map.len())).cloned().unwrap();
            map.remove(&key);
        }
        (1, Value::Object(map)) if !map.is_empty() => {
            let key = map.keys().nth(rng.usize(..map.len())).cloned().unwrap();
            let taken = map.remove(&key).unwrap();
            map.insert(format!("{key}_"), taken);
        }
        (0 | 1, Value::Array(list)) if !list.is_empty() => {
            let one = list[rng.usize(..list.len())].clone();
            let times = [1, 2, 200][rng.usize(..3)];
            list.extend(std::iter::repeat_n(one, times));
        }
        (2, Value::Array(list)) => list.clear(),
        (3, _) => *place = json!([place.clone()]),
        (4, _) => *place = Value::Object(Map::from_iter([("value".to_owned(), place.clone())])),
        (5, _) => {
            let (mut other, mut at) = (other.clone(), rng.usize(..count(other)));
            *place = all(&mut other, &mut at).map_or(Value::Null, |part| part.clone());
        }
        // Numbers near what stands there: what is nearly right goes further in than what is not.
        (6 | 7, Value::Number(number)) => {
            let near = number.as_f64().unwrap_or(1.0) * [0.5, 2.0, 1e3, 1e-3, -1.0][rng.usize(..5)];
            *place = if near.fract() == 0.0 && near.abs() < 1e15 { json!(near as i64) } else { json!(near) };
        }
        _ => *place = edge(rng),
    }
}

/// Spoils the text itself: bytes flipped, cut, doubled, put in.
fn spoil_text(rng: &mut Rng, text: &mut Vec<u8>) {
    if text.is_empty() {
        text.push(b'0');
    }
    let at = rng.usize(..text.len());
    match rng.u8(..6) {
        0 => text[at] = rng.u8(..),
        1 => text.truncate(at),
        2 => text.insert(at, b"0123456789,.xX-+eE\"{}[]:/ \n\xff"[rng.usize(..28)]),
        3 => drop(text.remove(at)),
        4 => {
            let end = (at + rng.usize(1..64)).min(text.len());
            let piece = text[at..end].to_vec();
            text.splice(at..at, piece);
        }
        _ => {
            let word =
                if rng.bool() { EDGES[rng.usize(..EDGES.len())] } else { TEXTS[rng.usize(..TEXTS.len())] };
            let end = (at + rng.usize(..8)).min(text.len());
            text.splice(at..end, word.bytes());
        }
    }
}

/// `seed`, spoilt a few times; another of the same kind lends parts.
pub fn spoilt(rng: &mut Rng, seed: &str, other: &str) -> String {
    let mut text = seed.to_owned();
    if let (Ok(mut value), Ok(other)) =
        (serde_json::from_str::<Value>(seed), serde_json::from_str::<Value>(other))
        && rng.u8(..8) > 0
    {
        (0..=rng.u8(..3)).for_each(|_| spoil_value(rng, &mut value, &other));
        text = value.to_string();
        if rng.u8(..4) > 0 {
            return text;
        }
    }
    let mut bytes = text.into_bytes();
    (0..=rng.u8(..4)).for_each(|_| spoil_text(rng, &mut bytes));
    String::from_utf8_lossy(&bytes).into_owned()
}
