//! Reads JSON text into the types of this floor, and turns what goes wrong into a fault that can be mended.

use serde::de::DeserializeOwned;

use super::error::Error;

/// Reads `text`; `what` says what it should be, e.g. "a device".
///
/// # Errors
/// Names the key, what was found there and what was expected.
pub fn from_json<T: DeserializeOwned>(text: &str, what: &str) -> Result<T, Error> {
    let mut reader = serde_json::Deserializer::from_str(text);
    let value = serde_path_to_error::deserialize(&mut reader).map_err(|fault| {
        let key = fault.path().to_string();
        let inner = fault.into_inner();
        let key = if key == "." { String::new() } else { key };
        if inner.is_syntax() || inner.is_eof() {
            return Error::new(
                key,
                format!("text that is not JSON: {inner}"),
                format!("{what} as a JSON object"),
                "mend the syntax at that line and column",
            );
        }
        let message = inner.to_string();
        let message = message.split(" at line ").next().unwrap_or(&message).to_string();
        let (found, expected) = match message.split_once(", expected ") {
            Some((found, expected)) => (found.to_string(), expected.to_string()),
            None => (message, what.to_string()),
        };
        Error::new(key, found, expected, format!("mend the key, or see the schema of {what}"))
    })?;
    reader.end().map_err(|fault| {
        Error::new(
            "",
            format!("more text after the end: {fault}"),
            what.to_string(),
            "keep one JSON object a file",
        )
    })?;
    Ok(value)
}

/// The names nearest to `wrong`, best first; at most three, and only near ones.
pub fn near<'a>(wrong: &str, known: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let wrong = wrong.to_lowercase();
    let mut scored: Vec<(f64, &str)> = known
        .map(|name| {
            let lower = name.to_lowercase();
            let within = lower.contains(&wrong) || wrong.contains(&lower);
            (strsim::jaro_winkler(&wrong, &lower) + if within { 0.5 } else { 0.0 }, name)
        })
        .filter(|(score, _)| *score > 0.75)
        .collect();
    scored.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(b.1)));
    scored.dedup_by_key(|(_, name)| *name);
    scored.into_iter().take(3).map(|(_, name)| name).collect()
}

/// `did you mean a, b or c?`, or where to find the list.
pub fn suggest<'a>(wrong: &str, known: impl Iterator<Item = &'a str>, list: &str) -> String {
    match near(wrong, known)[..] {
        [] => format!("`{list}` lists what is known"),
        [one] => format!("did you mean `{one}`?"),
        [one, two] => format!("did you mean `{one}` or `{two}`?"),
        [one, two, three, ..] => format!("did you mean `{one}`, `{two}` or `{three}`?"),
    }
}
